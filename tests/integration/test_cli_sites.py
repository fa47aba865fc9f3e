"""Sites, roles and settings from the command line."""

import array
import fcntl
import json
import subprocess
import termios
import time

import pytest

import muster


@pytest.fixture
def master(empty_cluster):
    empty_cluster.init(start=False)
    return empty_cluster


def show(master, site):
    return master.ctl("site", "show", site, "--json").json


def test_a_site_and_its_options(master):
    ctl = master.ctl
    ctl("site", "add", "a.example", "--alias", "www.a.example", "--alias",
        "*.a.example", "--owner", "anna", "--home", "/home/anna/www",
        "--max-body", "100M")
    s = show(master, "a.example")
    assert s["aliases"] == ["*.a.example", "www.a.example"] or \
        s["aliases"] == ["www.a.example", "*.a.example"]
    assert s["enabled"] is True and s["id"] > 0
    assert s["options"]["owner"] == "anna"
    assert s["options"]["max_body"] == "100M"
    assert s["options"]["role"] == "worker_http"
    assert show(master, "www.a.example") == s
    ctl("site", "set", "a.example", "--owner", "bert", "--share", "3")
    assert show(master, "a.example")["options"]["owner"] == "bert"
    ctl("site", "disable", "a.example", "--page", "/srv/suspended.html")
    s = show(master, "a.example")
    assert s["enabled"] is False
    assert s["options"]["page"] == "/srv/suspended.html"
    ctl("site", "enable", "a.example")
    ctl("site", "alias", "del", "a.example", "www.a.example")
    ctl("site", "alias", "add", "a.example", "shop.a.example")
    assert sorted(show(master, "a.example")["aliases"]) == [
        "*.a.example", "shop.a.example"]
    text = ctl("site", "show", "a.example").stdout
    assert text.startswith("name     a.example\nenabled  yes\n")
    ctl("site", "del", "a.example")
    assert ctl("site", "list").stdout == ""


def test_selections(master):
    ctl = master.ctl
    for name, owner in (("a.example", "anna"), ("b.example", "anna"),
                        ("c.test", "bert")):
        ctl("site", "add", name, "--owner", owner)
    ctl("site", "disable", "b.example")
    assert ctl("site", "list").lines == ["a.example", "b.example", "c.test"]
    assert ctl("site", "list", "*.example").lines == ["a.example",
                                                      "b.example"]
    assert ctl("site", "list", "--owner", "bert").lines == ["c.test"]
    assert ctl("site", "list", "--disabled").lines == ["b.example"]
    assert ctl("site", "list", "--role", "storage").lines == []
    rows = ctl("site", "list", "c*", "--json").json_lines
    assert rows == [{"name": "c.test", "enabled": True, "owner": "bert",
                     "role": "worker_http", "home": None}]


def test_many_at_once(master):
    r = master.ctl("site", "add", "--from-file", "-", "--owner", "anna",
                   "--json", stdin="\n".join([
                       "# two plain ones", "a.example", "  b.example", "",
                       json.dumps({"name": "c.example", "owner": "bert",
                                   "aliases": ["d.example"],
                                   "max_body": 1048576, "enabled": False}),
                   ]))
    assert r.json["done"] == "3 sites are added."
    assert show(master, "a.example")["options"]["owner"] == "anna"
    c = show(master, "d.example")
    assert c["name"] == "c.example" and c["enabled"] is False
    assert c["options"]["owner"] == "bert"
    assert c["options"]["max_body"] == "1M"


@pytest.mark.parametrize("line, text", [
    ("A.example", "host name 'A.example' is not valid"),
    ('{"name": "x.example", "ownr": "a"}', "did you mean 'owner'?"),
    ('{"owner": "a"}', '"name"'),
    ('{"name": "x.example", "max_body": [1]}',
     "field 'max_body' is neither text, number nor true or false"),
    ('{"name": "x.example", "aliases": "a"}', "field 'aliases' is no list"),
    ('{"name": "x.example", "aliases": [1]}',
     "field 'aliases' holds something that is no text"),
    ('{"name": "x.example"', "JSON"),
    ("a.example", "site a.example exists already"),
    ("x" * 70000, "longer than 65536 bytes"),
    ("x.example\0y", "it holds a NUL byte"),
])
def test_one_bad_line_of_many(master, line, text):
    r = master.ctl("site", "add", "--from-file", "-",
                   stdin=f"a.example\n\n{line}\nz.example\n", status=2)
    assert r.stderr.startswith("clusterctl: line 3: ") and text in r.stderr
    assert r.stderr.count("\n") == 1
    assert master.ctl("site", "list").stdout == ""


def test_text_is_utf8(master):
    r = master.ctl("site", "add", "a.example", "--home", b"/home/\xff",
                   status=2)
    assert "home '/home/" in r.stderr


@muster.needs_root
def test_a_slow_writer_holds_up_nobody(master):
    """Others change the registry while the list still comes in."""
    proc = master.ctl_start("site", "add", "--from-file", "-",
                            stdin=subprocess.PIPE)
    proc.stdin.write(b"a.example\n")
    proc.stdin.flush()
    muster.wait_for(lambda: reads_stdin(proc.pid), what="its read(2)")
    master.ctl("site", "add", "b.example")
    out, err = proc.communicate(b"c.example\n", timeout=muster.PATIENCE_S)
    assert proc.returncode == 0, err
    assert master.ctl("site", "list").lines == [
        "a.example", "b.example", "c.example"]


def reads_stdin(pid):
    """Its input is a pipe that it has emptied, and it is asleep."""
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()[0] == "S" and \
            empty(f"/proc/{pid}/fd/0")


def empty(pipe):
    with open(pipe, "rb", 0) as f:
        n = array.array("i", [0])
        fcntl.ioctl(f, termios.FIONREAD, n)
        return n[0] == 0


def test_a_list_without_end(master):
    r = master.ctl("site", "add", "--from-file", "/dev/zero", status=2)
    assert r.stderr == "clusterctl: /dev/zero is larger than " \
        "268435456 bytes\n"


def test_a_hundred_thousand(master, tmp_path):
    """In seconds, not in minutes; and shown again as fast."""
    n = 5000 if muster.ASAN else 100000
    many = tmp_path / "many"
    with open(many, "w") as f:
        for i in range(n):
            f.write(f'{{"name":"s{i}.example","aliases":["www.s{i}.example"],'
                    f'"owner":"u{i % 1000}"}}\n')
    begin = time.monotonic()
    master.ctl("site", "add", "--from-file", many, timeout=120)
    took = time.monotonic() - begin
    print(f"{n} sites: {took:.1f} s")
    assert len(master.ctl("site", "list").lines) == n
    last = f"s{n - 1}.example"
    assert show(master, f"www.{last}")["name"] == last
    master.ctl("registry", "check", timeout=120)


def test_roles(master):
    ctl = master.ctl
    ctl("role", "add", "cache", "--port", "6081")
    assert ctl("role", "list").lines == ["cache", "master", "storage",
                                         "worker_http", "worker_mysql"]
    ctl("role", "set", "cache", "--balance", "hash:uri", "--health",
        "http GET /alive 200-299", "--queue-timeout", "7s", "--rise", "3",
        "--slow-start", "0")
    options = ctl("role", "show", "cache", "--json").json["options"]
    assert (options["port"], options["balance"], options["health"],
            options["queue_timeout"], options["rise"]) == (
                "6081", "hash:uri", "http GET /alive 200-299", "7s", "3")
    row = [r for r in ctl("role", "list", "--json").json_lines
           if r["name"] == "master"][0]
    assert row["nodes"] == 1 and row["port"] is None
    ctl("node", "add", "b1", "10.0.0.1", "--role", "cache")
    r = ctl("role", "remove", "cache", status=2)
    assert "cache" in r.stderr
    ctl("node", "role", "del", "b1", "cache")
    ctl("role", "remove", "cache")
    help_text = ctl("role", "set", "--help").stdout
    assert "--queue-timeout TIME" in help_text


def test_settings(master):
    ctl = master.ctl
    assert ctl("get", "proxy.workers").lines == ["auto"]
    ctl("set", "proxy.workers", "3")
    assert ctl("get", "proxy.workers").lines == ["3"]
    ctl("set", "proxy.trusted", "10.0.0.0/8", "fd00::/8")
    assert ctl("get", "proxy.trusted").lines == ["10.0.0.0/8 fd00::/8"]
    ctl("set", "proxy.trusted", "--reset")
    assert ctl("get", "proxy.trusted").lines == ["none"]
    one = ctl("get", "proxy.workers", "--json").json
    assert one["value"] == "3" and one["default"] == "auto"
    assert one["rule"] and one["help"] and one["restart"] is False
    table = ctl("get", "--all", "--json").json_lines
    by_name = {row["option"]: row for row in table}
    assert by_name["proxy.workers"]["value"] == "3"
    assert all(row["help"] and "unit" in row for row in table)
    # Each default is a value that is taken.
    for row in table:
        ctl("set", row["option"], *row["default"].split())
    t = master.terminal("set", "proxy.workers", "4")
    assert t.status() == 0 and t.text == "proxy.workers is 4.\n"


@pytest.mark.parametrize("key", ["proxy.default_site",
                                 "proxy.https.default_cert"])
def test_a_setting_that_names_no_site_is_remarked(master, key):
    ctl = master.ctl
    ctl("site", "add", "fallback.example", "--alias", "www.fallback.example")
    assert f"{key} does nothing so far: no such site 'nobody.example'" in ctl(
        "set", key, "nobody.example").stderr
    assert "is another name of site fallback.example" in ctl(
        "set", key, "www.fallback.example").stderr
    for value in ("fallback.example", "none"):
        assert ctl("set", key, value).stderr == ""
    ctl("site", "del", "fallback.example")


def test_static_without_a_home_is_remarked(master, tmp_path):
    ctl = master.ctl
    remark = "static.example has no home yet, so --static on does nothing"
    r = ctl("site", "add", "static.example", "--static", "on")
    assert remark in r.stderr
    assert "--home DIR" in r.stderr
    assert remark in ctl("site", "set", "static.example", "--share",
                         "2").stderr
    for options in (["--home", "/home/s"], ["--home", "none", "--static",
                                            "off"]):
        assert ctl("site", "set", "static.example", *options).stderr == ""
    assert remark in ctl("site", "set", "static.example", "--static",
                         "on").stderr
    lines = tmp_path / "sites"
    lines.write_text('{"name": "h1.example", "home": "/h"}\n'
                     'h2.example\nh3.example\n')
    r = ctl("site", "add", "--from-file", lines, "--static", "on")
    assert "2 of them have no home yet" in r.stderr
    ctl("site", "del", "static.example", "h1.example", "h2.example",
        "h3.example")
