"""Static files in use: what is never shown, what changes, what is slow."""

import contextlib
import gzip
import os
import re
import shutil
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

import muster
import proxy as px
from static_site import NODE, OURS, Answer, Site

SECRET = b"of nobody's business"


@pytest.fixture
def make_site(tmp_path):
    made = []

    def make(**options):
        made.append(Site(tmp_path, **options))
        return made[-1]
    yield make
    wrong = [w for s in made for w in s.close()]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.fixture
def site(make_site):
    s = make_site()
    s.write("x.css", "body { }\n")
    s.serves("/x.css", OURS)
    return s


# ---- never ----

def test_hidden_files_are_refused(site):
    names = [".env", ".git/config", ".htaccess", "a.css~", "a.php~", "b.bak",
             "c.old", ".a.css.swp", "d.orig", "#e#", "sub/.hidden.css"]
    for name in names:
        site.write(name, SECRET)
        answer = site.through("/" + name.replace("#", "%23"))
        assert (answer.status, SECRET in answer.body) == (403, False), name
    # The node may make of a missing one what it likes.
    assert site.through("/.missing").by == NODE


ESCAPES = ["/{out}", "/../{up}/secret.txt", "/%2e%2e/{up}/secret.txt",
           "/..%2f{up}/secret.txt", "/out.txt", "/outdir/secret.txt",
           "/abs.txt", "/loop.txt", "/up/{up}/secret.txt", "/chain.txt",
           "/out.txt%00.css", "/x.css%00/../out.txt", "/proc/self/environ.txt",
           "/outdir/../out.txt", "/.//..//{up}//secret.txt",
           "/etc.txt", "//out.txt", "/%6fut.txt"]


def test_nothing_outside_of_the_home_is_served(site, tmp_path):
    outside = Path(site.home.parent / (site.home.name + "-out"))
    outside.mkdir(mode=0o755)
    try:
        secret = outside / "secret.txt"
        secret.write_bytes(SECRET)
        secret.chmod(0o644)
        links = {"out.txt": f"../{outside.name}/secret.txt",
                 "outdir": f"../{outside.name}", "abs.txt": secret,
                 "loop.txt": "loop.txt", "up": "..", "chain.txt": "out.txt",
                 "proc": "/proc", "etc.txt": "/etc/passwd"}
        for name, to in links.items():
            (site.home / name).symlink_to(to)
        for path in ESCAPES:
            path = path.format(up=outside.name, out=secret)
            answer = site.through(path)
            assert answer.by == NODE or answer.status == 400, path
            assert SECRET not in answer.body and b"root:" not in answer.body
    finally:
        shutil.rmtree(outside)


def test_symlinks_inside_are_fine(site):
    site.write("real/deep/y.css", "y\n")
    (site.home / "link").symlink_to("real/deep")
    (site.home / "real/up.css").symlink_to("../x.css")
    assert site.through("/link/y.css").content == b"y\n"
    assert site.through("/real/up.css").by == OURS


@muster.needs_root
def test_only_plain_files(site):
    os.mkfifo(site.home / "fifo.txt", 0o644)
    os.mknod(site.home / "null.txt", 0o666 | 0o020000, os.makedev(1, 3))
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(site.home / "sock.txt"))
    site.write("private.txt", SECRET, mode=0o600)
    (site.home / "dir.txt").mkdir(mode=0o755)
    for name in ("fifo.txt", "null.txt", "sock.txt", "private.txt",
                 "dir.txt"):
        start = time.monotonic()
        assert site.through("/" + name).by == NODE, name
        assert time.monotonic() - start < muster.SOON_S
    assert site.through("/x.css").by == OURS


@muster.needs_root
def test_owner_check(site):
    mine = site.write("mine.css", "mine\n")
    other = site.write("other.css", "other\n")
    os.chown(other, 12345, 12345)
    assert site.through("/other.css").by == OURS
    site.set("--owner-check", "on")
    site.serves("/other.css", NODE)
    assert site.through("/mine.css").by == OURS
    os.chown(mine, 12345, 12345)
    site.serves("/mine.css", NODE)


def test_a_redirect_is_a_path(site):
    """I9: never built of a Host, never to another host."""
    site.write("dir/index.html", "i\n")
    assert site.through("/dir?a=b").fields["location"] == "/dir/?a=b"
    for path in ("//dir", "/%5cdir", "/./dir"):
        assert site.through(path).by == NODE, path


@muster.needs_root
def test_why_a_node_serves_is_told(site):
    site.write("p/.htaccess", "Require all denied\n")
    site.write("p/y.css")
    site.write("both/index.html")
    site.write("both/index.php")
    site.write("private.css", mode=0o600)
    os.mkfifo(site.home / "fifo.css", 0o644)
    os.chown(site.write("other.css"), 12345, 12345)
    (site.home / "out.css").symlink_to("/etc/passwd")
    site.set("--owner-check", "on")
    site.serves("/other.css", NODE)
    reasons = {"/a.php": "name", "/%00.css": "request", "/no.css": "missing",
               "/out.css": "outside", "/fifo.css": "not_plain",
               "/other.css": "owner", "/p/y.css": "htaccess", "/p": "htaccess",
               "/both/": "index", "/no": "missing", "/x.css/": "missing",
               "/private.css": "unreadable"}
    for path, reason in reasons.items():
        told = site.through(path).fields.get("x-muster-why", "")
        assert f"static={reason}" in told.split(), (path, told)
    site.set("--home", "/nonexistent")
    muster.wait_for(lambda: site.through("/x.css").fields[
        "x-muster-why"].split().count("static=home"))
    site.set("--static", "off")
    muster.wait_for(lambda: site.through("/x.css").fields[
        "x-muster-why"].split().count("static=off"))


# ---- options ----

def test_options(site):
    site.write("page.html", "<p>\n")
    site.write("a.foo", "foo\n")
    assert site.through("/a.foo").by == NODE
    site.set("--static-ext", "foo,html", "--cache-control",
             "public, max-age=60", "--charset", "windows-1251")
    site.serves("/a.foo", OURS)
    assert site.through("/x.css").by == NODE
    page = site.through("/page.html").fields
    assert page["content-type"] == "text/html; charset=windows-1251"
    assert page["cache-control"] == "public, max-age=60"
    # I8: a 304 says it too.
    fields = site.through("/page.html",
                          f"If-None-Match: {page['etag']}").fields
    assert fields["cache-control"] == "public, max-age=60"
    assert fields["etag"] == page["etag"]
    assert "content-type" not in fields and "content-length" not in fields
    site.set("--static", "off")
    site.serves("/a.foo", NODE)


@pytest.mark.parametrize("options, words", [
    (("--static-ext", "PHP"), "no extension"),
    (("--cache-control", "a\\b"), "no Cache-Control"),
    (("--charset", "utf 8"), "no charset"),
    (("--static", "perhaps"), "static"),
    (("--owner-check", "perhaps"), "owner"),
])
def test_wrong_options_are_refused(site, options, words):
    done = site.proxy.ctl("site", "set", "a", *options, status=2)
    assert words in done.stderr


# ---- HTTP ----

def test_precompressed_siblings(site):
    text = "body { color: red }\n" * 100
    site.write("z.css", text)
    os.utime(site.home / "z.css", (1577836800, 1577836800))
    assert "vary" not in site.through("/z.css").fields
    site.write("z.css.gz", gzip.compress(text.encode()))
    site.write("z.css.br", b"brotli, as far as we know")

    def coding(accept):
        a = site.through("/z.css", f"Accept-Encoding: {accept}")
        assert a.by == OURS and a.fields["vary"] == "Accept-Encoding"
        assert a.fields["content-type"] == "text/css"
        return a.fields.get("content-encoding"), a
    muster.wait_for(lambda: "vary" in site.through("/z.css").fields)
    assert coding("gzip, br")[0] == "br"
    assert coding("gzip, br;q=0.5")[0] == "gzip"
    assert coding("deflate")[0] is None
    assert coding("gzip;q=0")[0] is None
    assert coding("gzip")[1].content == text.encode()
    tags = {coding(c)[1].fields["etag"] for c in ("br", "gzip", "identity")}
    assert len(tags) == 3
    # One that is older than its file was forgotten.
    for end in ("gz", "br"):
        os.utime(site.home / f"z.css.{end}", (1577836000, 1577836000))
    muster.wait_for(lambda: "vary" not in site.through(
        "/z.css", "Accept-Encoding: gzip").fields)


def test_validators_round_trip(site):
    first = site.through("/x.css").fields
    for fields, status in (
            ((f"If-None-Match: {first['etag']}",), 304),
            ((f"If-None-Match: W/{first['etag']}",), 304),
            ((f"If-Match: {first['etag']}",), 200),
            ((f"If-Match: W/{first['etag']}",), 412),
            ((f"If-Modified-Since: {first['last-modified']}",), 304),
            (("Range: bytes=0-3", f"If-Range: {first['etag']}"), 206),
            (("Range: bytes=0-3", 'If-Range: "other"'), 200),
            # I5: the date is not looked at.
            (('If-None-Match: "x"',
              f"If-Modified-Since: {first['last-modified']}"), 200)):
        answer = site.through("/x.css", *fields)
        assert (answer.status, answer.by) == (status, OURS), fields
    # Twice the same field: the node's to understand.
    assert site.through("/x.css", "Range: bytes=0-1",
                        "Range: bytes=2-3").by == NODE


def test_head_says_what_get_says(site):
    site.write("big.txt", b"0123456789" * 5000)
    for path in ("/x.css", "/big.txt"):
        get, head = (site.through(path, method=m) for m in ("GET", "HEAD"))
        assert head.body == b""
        for fields in (get.fields, head.fields):
            fields.pop("date")
        assert head.fields == get.fields


def test_a_thousand_ranges_are_the_whole(site):
    """I4"""
    many = ",".join(["0-"] * 1000)
    answer = site.through("/x.css", f"Range: bytes={many}")
    assert (answer.status, answer.content) == (200, b"body { }\n")


def test_many_requests_on_one_connection(site):
    """Pipelined, ours and the node's in between: in order."""
    site.write("big.txt", b"0123456789" * 20000)
    one = (b"GET /x.css HTTP/1.1\r\nHost: a\r\n\r\n"
           b"GET /node.php HTTP/1.1\r\nHost: a\r\n\r\n"
           b"GET /big.txt HTTP/1.1\r\nHost: a\r\n\r\n")
    got, end = site.proxy.talk(
        one * 20 + b"GET /x.css HTTP/1.1\r\nHost: a\r\n"
                   b"Connection: close\r\n\r\n")
    assert end == "fin"
    sizes = []
    while got:
        head, _, got = got.partition(b"\r\n\r\n")
        sizes.append(int(px.field(head, b"Content-Length")[0]))
        got = got[sizes[-1]:]
    assert sizes == [9, 2, 200000] * 20 + [9]


def test_http10(site):
    got, end = site.proxy.talk(b"GET /x.css HTTP/1.0\r\nHost: a\r\n\r\n")
    assert got.endswith(b"\r\n\r\nbody { }\n") and end == "fin"


def test_a_slow_reader_gets_it_all(site):
    data = os.urandom(8 << 20)
    site.write("big.zip", data)
    with site.proxy.connect() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        s.sendall(b"GET /big.zip HTTP/1.1\r\nHost: a\r\n"
                  b"Range: bytes=0-3,1000000-6000000,7000000-\r\n"
                  b"X-Muster-Why: 1\r\nConnection: close\r\n\r\n")
        raw = px.read_all(s)[0]
    assert Answer(raw).content == [
        (b"bytes 0-3/8388608", data[:4] + b"\r\n"),
        (b"bytes 1000000-6000000/8388608", data[1000000:6000001] + b"\r\n"),
        (b"bytes 7000000-8388607/8388608", data[7000000:] + b"\r\n")]


# ---- change ----

def test_changes_are_seen_within_a_second(site):
    def within_a_second(condition):
        """On a machine that has nothing else to do."""
        muster.wait_for(condition, muster.SOON_S, "the change")
    assert site.through("/x.css").content == b"body { }\n"
    site.write("x.css", "other\n")
    within_a_second(lambda: site.through("/x.css").content == b"other\n")
    rules = site.write(".htaccess", "Require all denied\n")
    within_a_second(lambda: site.through("/x.css").by == NODE)
    rules.write_text("ServerSignature Off\n")
    within_a_second(lambda: site.through("/x.css").by == OURS)
    rules.write_text("Header set A b\n")
    within_a_second(lambda: site.through("/x.css").by == NODE)
    rules.unlink()
    within_a_second(lambda: site.through("/x.css").by == OURS)
    (site.home / "x.css").unlink()
    within_a_second(lambda: site.through("/x.css").by == NODE)


def test_a_file_cut_short_ends_the_connection(site):
    """The client must see that something is missing."""
    file = site.write("big.zip", bytes(64 << 20))
    with site.proxy.connect() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        s.sendall(b"GET /big.zip HTTP/1.1\r\nHost: a\r\n\r\n")
        assert s.recv(100)
        os.truncate(file, 1 << 20)
        got, end = px.read_all(s)
    assert end == "reset" and len(got) < 64 << 20


def test_a_replaced_file_is_sent_as_it_was(site):
    data = os.urandom(4 << 20)
    site.write("big.zip", data)
    with site.proxy.connect() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        s.sendall(b"GET /big.zip HTTP/1.1\r\nHost: a\r\n"
                  b"Connection: close\r\n\r\n")
        first = s.recv(100)
        site.write("new", b"new")
        os.rename(site.home / "new", site.home / "big.zip")
        got = first + px.read_all(s)[0]
    assert Answer(got).content == data
    muster.wait_for(lambda: site.through("/big.zip").content == b"new")


# ---- the opener ----

def processes(site, kind):
    """The master's: "opener" or "worker"."""
    return [pid for pid, state, argv in muster.children(
                site.proxy.daemon.proc.pid)
            if state != "Z" and argv.split()[:2] == ["proxyd", kind]]


def openers(site):
    return processes(site, "opener")


def test_a_dead_opener_is_replaced(site):
    """Until then the nodes serve; the worker and its clients stay."""
    (worker,) = processes(site, "worker")
    (first,) = openers(site)
    site.proxy.daemon.expect_log("the opener of worker .*; starting another")

    def ask(s):
        s.sendall(b"GET /x.css HTTP/1.1\r\nHost: a\r\n\r\n")
        head, rest = px.read_head(s)
        assert head.startswith(b"HTTP/1.1 200")
        return px.read_body(s, head, rest)[0]

    with site.proxy.connect() as s:
        def a_node_serves():
            for pid in openers(site):
                os.kill(pid, signal.SIGKILL)
            return ask(s) == b"ok"
        muster.wait_for(a_node_serves, what="a node's answer")
        muster.wait_for(lambda: ask(s) != b"ok", what="the proxy's own")
    assert openers(site) not in ([], [first])
    assert processes(site, "worker") == [worker]


def test_a_large_file_outlives_an_opener(site):
    """It is open already; what is read ahead comes later, or blocks."""
    data = os.urandom(4 << 20)
    site.write("big.zip", data)
    site.proxy.daemon.expect_log("the opener of worker .*; starting another")
    with site.proxy.connect() as s:
        s.sendall(b"GET /big.zip HTTP/1.1\r\nHost: a\r\n"
                  b"Connection: close\r\n\r\n")
        got = s.recv(100)
        for pid in openers(site):
            os.kill(pid, signal.SIGKILL)
        got += px.read_all(s)[0]
    assert Answer(got).content == data
    site.serves("/x.css", OURS)


def test_the_opener_goes_with_its_worker(site):
    (pid,) = openers(site)
    (worker,) = processes(site, "worker")
    site.proxy.daemon.expect_log("was killed by signal 9")
    os.kill(worker, signal.SIGKILL)
    muster.wait_for(lambda: openers(site) not in ([], [pid])
                    and pid not in openers(site))
    site.serves("/x.css", OURS)


def test_the_opener_is_confined(site):
    (pid,) = openers(site)
    status = Path(f"/proc/{pid}/status").read_text()
    assert re.search(r"^NoNewPrivs:\t1$", status, re.M)
    assert re.search(r"^CapEff:\t0+$", status, re.M)
    if not muster.ASAN:
        assert re.search(r"^Seccomp:\t2$", status, re.M)
    if os.geteuid() == 0:
        assert not re.search(r"^Uid:.*\t0\b", status, re.M)


def test_many_files_at_once(site):
    """More than the opener is asked at a time; the same ones again."""
    for i in range(200):
        site.write(f"many/{i}.txt", f"{i}\n" * (1 + i * 50))
    wrong = []

    def ask(i):
        answer = site.through(f"/many/{i}.txt")
        if answer.by != OURS or answer.body != b"%d\n" % i * (1 + i * 50):
            wrong.append(answer.head)
    threads = [threading.Thread(target=ask, args=(i,))
               for i in range(200) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@muster.needs_root
def test_descriptors_are_bounded_and_come_back(site):
    (worker,) = processes(site, "worker")

    def n_open():
        n = 0
        for f in Path(f"/proc/{worker}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                n += "many" in os.readlink(f)
        return n
    for i in range(1200):
        site.write(f"many/{i}.zip", bytes(20000))
    requests = b"".join(b"HEAD /many/%d.zip HTTP/1.1\r\nHost: a\r\n\r\n" % i
                        for i in range(1200))
    got, _ = site.proxy.talk(requests + b"GET /x.css HTTP/1.1\r\nHost: a\r\n"
                             b"Connection: close\r\n\r\n")
    assert px.statuses(got) == [200] * 1201
    assert got.count(b"ETag") == 1201
    assert n_open() <= 1024
    muster.wait_for(lambda: n_open() == 0, what="idle files to be closed")


def test_an_upgrade_cuts_no_file(site):
    data = os.urandom(8 << 20)
    site.write("big.zip", data)
    with site.proxy.connect() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        s.sendall(b"GET /big.zip HTTP/1.1\r\nHost: a\r\n\r\n")
        first = s.recv(100)
        said = muster.run(muster.program("proxyd"), "--state",
                          site.proxy.cluster.master.state, "upgrade").stdout
        new = int(said.split()[1])
        try:
            got = first + px.read_all(s)[0]
            assert Answer(got).content == data
            site.serves("/x.css", OURS)
            assert site.proxy.daemon.proc.wait(muster.PATIENCE_S) == 0
        finally:
            os.kill(new, signal.SIGTERM)
            os.waitpid(new, 0)


# ---- slow disks ----

@pytest.fixture
def slow_site(make_site, tmp_path):
    """Files of one size are never in memory and read at 2.5 MB/s; opening
    names with "stuck" takes seconds."""
    library = muster.preload(tmp_path, "slow_disk")
    s = make_site(prefix=("env", f"LD_PRELOAD={library}"))
    s.write("x.css", "body { }\n")
    s.serves("/x.css", OURS)
    return s


class Watcher(threading.Thread):
    """Asks for one file over and over; the longest it had to wait."""

    def __init__(self, site, path):
        super().__init__(daemon=True)
        self.site, self.path = site, path
        self.over = threading.Event()
        self.longest, self.n, self.wrong = 0, 0, []

    def run(self):
        while not self.over.is_set():
            start = time.monotonic()
            answer = self.site.through(self.path)
            self.longest = max(self.longest, time.monotonic() - start)
            self.n += 1
            if answer.by != OURS:
                self.wrong.append(answer.head)


def test_cold_files_stall_nobody_else(slow_site):
    data = os.urandom(3000001)
    slow_site.write("cold.zip", data)
    watcher = Watcher(slow_site, "/x.css")
    watcher.start()
    got, start = [], time.monotonic()
    clients = [threading.Thread(
        target=lambda: got.append(slow_site.through("/cold.zip").content))
        for _ in range(3)]
    for c in clients:
        c.start()
    for c in clients:
        c.join()
    took = time.monotonic() - start
    watcher.over.set()
    watcher.join()
    assert got == [data] * 3
    assert took > 1, "the disk was not slow: nothing is shown"
    assert watcher.n > 20 and not watcher.wrong
    assert watcher.longest < took / 2


def test_a_disk_that_hangs_sends_to_the_node(slow_site):
    slow_site.write("stuck.css", "stuck\n")
    watcher = Watcher(slow_site, "/x.css")
    watcher.start()
    start = time.monotonic()
    assert slow_site.through("/stuck.css").by == NODE
    assert time.monotonic() - start < muster.SOON_S
    watcher.over.set()
    watcher.join()
    assert not watcher.wrong and watcher.longest < muster.SOON_S
