"""Section I of the HTTP cases (tests/fixtures/http_cases.md), row by row,
through the whole proxy."""

from pathlib import Path

import pytest

import muster
from static_site import NODE, OURS, Site

BODY = b"0123456789"
OLD, NEW = "Sun, 06 Nov 1994 08:49:37 GMT", "Thu, 31 Dec 2099 23:59:59 GMT"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    s = Site(tmp_path_factory.mktemp("cases"))
    s.write("x.txt", BODY)
    s.write("dir/index.html", "there")
    for name in ".htaccess", ".git/config", ".env", "x.php~":
        s.write("secret/" + name, "# of nobody's business\n")
    s.set("--cache-control", "max-age=60")
    muster.wait_for(lambda: "cache-control" in s.through("/x.txt").fields,
                    what="the site")
    yield s
    wrong = s.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.mark.parametrize("asked,part", [
    ("0-3", b"0123"), ("-2", b"89"), ("4-", b"456789"), ("0-99999", BODY)])
def test_i1_ranges(site, asked, part):
    a = site.through("/x.txt", f"Range: bytes={asked}")
    first = BODY.index(part)
    assert (a.status, a.by, a.body) == (206, OURS, part)
    assert a.fields["content-range"] == \
        f"bytes {first}-{first + len(part) - 1}/10"


def test_i2_a_range_that_is_not_there(site):
    a = site.through("/x.txt", "Range: bytes=99999-")
    assert (a.status, a.body) == (416, b"")
    assert a.fields["content-range"] == "bytes */10"


def test_i4_a_thousand_ranges(site):
    master = site.proxy.daemon.pid
    children = Path(f"/proc/{master}/task/{master}/children")

    def memory():
        return sum(muster.memory_kb(p)["VmRSS"]
                   for p in children.read_text().split())
    before = memory()
    for ranges in ("0-," * 1000)[:-1], ",".join("0-0" for _ in range(9)):
        a = site.through("/x.txt", f"Range: bytes={ranges}")
        assert (a.status, a.body) in ((200, BODY), (416, b""))
    assert memory() < before + 1024


def test_i5_a_tag_outweighs_a_date(site):
    whole = site.through("/x.txt")
    tag, date = whole.fields["etag"], whole.fields["last-modified"]
    assert site.through("/x.txt", 'If-None-Match: "x"',
                        f"If-Modified-Since: {date}").status == 200
    assert site.through("/x.txt", f"If-None-Match: {tag}",
                        f"If-Modified-Since: {OLD}").status == 304


@pytest.mark.parametrize("date", ["garbage", NEW])
def test_i6_dates_that_are_none(site, date):
    assert site.through("/x.txt", f"If-Modified-Since: {date}").status == 200
    a = site.through("/x.txt", f"If-Modified-Since: {date}",
                     "Content-Length: 0", method="POST")
    assert (a.status, a.by) == (200, NODE)


def test_i8_unchanged(site):
    whole = site.through("/x.txt")
    a = site.through("/x.txt", f"If-None-Match: {whole.fields['etag']}")
    assert (a.status, a.body) == (304, b"")
    for name in "etag", "cache-control", "last-modified":
        assert a.fields[name] == whole.fields[name]
    assert "date" in a.fields
    assert not {"content-length", "content-type"} & set(a.fields)


def test_i9_a_redirect_names_no_host(site):
    site.proxy.ctl("set", "proxy.default_site", "a")
    muster.wait_for(lambda: b" 301 " in site.proxy.talk(
        b"GET /dir HTTP/1.1\r\nHost: evil\r\nConnection: close\r\n\r\n")[0],
        what="the default site")
    raw, _ = site.proxy.talk(
        b"GET /dir?q HTTP/1.1\r\nHost: evil\r\nConnection: close\r\n\r\n")
    assert b"\r\nLocation: /dir/?q\r\n" in raw and b"evil" not in raw


@pytest.mark.parametrize("name", [".htaccess", ".git/config", ".env",
                                  "x.php~"])
def test_i10_hidden_files(site, name):
    a = site.through(f"/secret/{name}")
    assert a.status in (403, 404) and b"business" not in a.body


@pytest.mark.parametrize("path", ["/x.txt", "/dir/", "/dir", "/secret/.env"])
def test_i12_head(site, path):
    get, head = (site.through(path, method=m) for m in ("GET", "HEAD"))
    assert head.body == b"" and head.status == get.status
    for fields in get.fields, head.fields:
        fields.pop("date"), fields.pop("x-request-id", None)
    assert head.fields == get.fields and "content-length" in head.fields
