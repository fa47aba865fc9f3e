"""Static files of a site that compresses: forms made by the proxy are as good
as siblings on disk: one length, one tag, ranges, conditions."""

import gzip
import os
import random

import brotli
import pytest

import muster
from static_site import OURS, Site

TEXT = b"".join(b"<p>line %d of it</p>\n" % (i * i) for i in range(20_000))
DECODE = {"gzip": gzip.decompress, "br": brotli.decompress,
          None: lambda body: body}


@pytest.fixture
def site(tmp_path):
    s = Site(tmp_path)
    s.set("--compress", "gzip,br")
    s.write("small.css", b"x" * 1023)
    s.write("page.html", TEXT)
    s.write("short.css", TEXT[:2000])
    s.write("noise.txt", random.Random(1).randbytes(5000))
    s.write("image.png", TEXT)
    s.serves("/page.html", OURS)
    muster.wait_for(lambda: ask(s, "/page.html")[1] == "br",
                    what="the first form")
    yield s
    wrong = s.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def ask(site, path, accept="gzip, br", *fields, **options):
    a = site.through(path, *([f"Accept-Encoding: {accept}"] if accept else []),
                     *fields, **options)
    assert a.by == OURS, a.head
    return a, a.fields.get("content-encoding")


def test_files_are_compressed(site):
    for path in "/page.html", "/short.css":
        whole = (site.home / path[1:]).read_bytes()
        tags = set()
        for accept, coding in (("gzip", "gzip"), ("br", "br"),
                               ("gzip, br", "br"), ("", None),
                               ("br;q=0.1, gzip", "gzip")):
            a, got = ask(site, path, accept)
            assert (a.status, got) == (200, coding)
            assert DECODE[got](a.body) == whole
            assert int(a.fields["content-length"]) == len(a.body)
            assert a.fields["vary"] == "Accept-Encoding"
            tags.add(a.fields["etag"])
            head, got = ask(site, path, accept, method="HEAD")
            assert head.body == b"" and got == coding
            for field in "etag", "content-length", "vary":
                assert head.fields[field] == a.fields[field]
        assert len(tags) == 3
        assert all(t.startswith('"') for t in tags)


def test_conditions_and_ranges_are_of_the_form(site):
    a, _ = ask(site, "/page.html", "gzip")
    tag = f'If-None-Match: {a.fields["etag"]}'
    same, _ = ask(site, "/page.html", "gzip", tag)
    assert same.status == 304 and same.fields["vary"] == "Accept-Encoding"
    for other in "", "br":
        assert ask(site, "/page.html", other, tag)[0].status == 200
    n = len(a.body)
    for span, part in {"0-99": a.body[:100], "100-": a.body[100:],
                       "-7": a.body[-7:]}.items():
        r, coding = ask(site, "/page.html", "gzip", f"Range: bytes={span}",
                        f'If-Range: {a.fields["etag"]}')
        assert (r.status, coding, r.body) == (206, "gzip", part)
        assert r.fields["content-range"].endswith(f"/{n}")
    r, _ = ask(site, "/page.html", "", "Range: bytes=0-9",
               f'If-Range: {a.fields["etag"]}')
    assert (r.status, r.body) == (200, TEXT)
    assert ask(site, "/page.html", "gzip",
               f"Range: bytes={n}-")[0].status == 416


def test_what_is_left_as_it_is(site):
    huge = random.Random(2).choices([b"a page of words\n", b"and more\n"],
                                    k=400_000)
    site.write("huge.txt", b"".join(huge))
    assert os.path.getsize(site.home / "huge.txt") > 4 << 20
    for path in "/small.css", "/image.png", "/huge.txt":
        a, coding = ask(site, path)
        assert coding is None and "vary" not in a.fields
        assert a.body == (site.home / path[1:]).read_bytes()
    a, coding = ask(site, "/noise.txt")
    assert coding is None and a.fields["vary"] == "Accept-Encoding"


def test_a_sibling_on_disk_wins(site):
    site.write("page.html.gz", gzip.compress(TEXT[:77]))
    muster.wait_for(lambda: ask(site, "/page.html", "gzip")[0].content ==
                    TEXT[:77], what="the sibling")
    a, coding = ask(site, "/page.html", "br")
    assert coding == "br" and brotli.decompress(a.body) == TEXT


def test_changes_are_seen(site):
    def content(path, accept="gzip"):
        a, coding = ask(site, path, accept)
        return DECODE[coding](a.body), coding

    assert content("/page.html") == (TEXT, "gzip")
    for n in range(4):
        site.write("page.html", TEXT[n:])
        muster.wait_for(lambda: content("/page.html") == (TEXT[n:], "gzip"),
                        timeout=5, what="the file's new content")
    for options, coding in ((("--compress", "br"), None),
                            (("--compress", "gzip"), "gzip"),
                            (("--compress-types", "text/css"), None),
                            (("--compress-types", "text/html"), "gzip"),
                            (("--compress-min", "1M"), None),
                            (("--compress-min", "2"), "gzip"),
                            (("--cache-control", "no-transform"), None),
                            (("--cache-control", "none"), "gzip"),
                            (("--compress", "off"), None)):
        site.set(*options)
        muster.wait_for(lambda: content("/page.html")[1] == coding,
                        what=" ".join(options))
    assert content("/page.html") == (TEXT[3:], None)
