"""Compression with a real Apache behind, that compresses itself or does not;
while the proxy is upgraded or set otherwise; for a client that does not read.
"""

import os
import threading

import pytest

import muster
import proxy as px
import webservers
from compressed import Answer, Chunks, Decoder, some_text
from live_proxy import LiveProxy, RawOrigin, close_all

# Without its own suffix Apache knows its tags again.
DEFLATE = """
AddOutputFilterByType DEFLATE text/html text/plain
DeflateAlterETag NoChange
"""
CGI = """#!/bin/sh
printf 'Content-Type: text/plain\\r\\n\\r\\n'
i=0
while [ $i -lt 2000 ]; do echo "line $i of a program"; i=$((i + 1)); done
"""


class Site:
    def __init__(self, tmp, more=""):
        self.proxy = px.Proxy(
            tmp, settings={"proxy.trusted": "127.0.0.0/8"},
            origin=lambda a: webservers.Apache(a, workers=8, more=more))
        self.apache = self.proxy.origin
        self.apache.cgi("lines", CGI)
        self.page = self.apache.docs / "page.html"
        self.write(some_text(20_000))
        self.proxy.ctl("site", "set", "a", "--compress", "gzip,br")
        muster.wait_for(lambda: "compress=off" not in self.get(
            "/page.html")[1].field("X-Muster-Why"),
            what="the proxy to compress")

    def write(self, content):
        """Long ago: of a file that is new, Apache's own tag is weak."""
        self.page.write_bytes(content)
        os.utime(self.page, (1e9 + len(content),) * 2)

    def get(self, path, *fields, method="GET"):
        """What Apache says by itself, and through the proxy."""
        lines = [f"{method} {path} HTTP/1.1", "Host: a", "Connection: close",
                 "X-Muster-Why: 1", *fields, "", ""]
        answers = []
        for address, port in ((self.apache.address, self.apache.port),
                              (self.proxy.address, px.Proxy.PORT)):
            with px.connect(address, port) as s:
                s.sendall("\r\n".join(lines).encode())
                answers.append(Answer(*px.read_all(s)))
        return answers


@pytest.fixture(params=["", DEFLATE], ids=["plain", "mod_deflate"])
def site(tmp_path, request):
    s = Site(tmp_path, request.param)
    s.deflates = request.param != ""
    yield s
    wrong = s.proxy.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_apache(site):
    page = site.page.read_bytes()
    lines = b"".join(b"line %d of a program\n" % i for i in range(2000))
    for path, body in ("/page.html", page), ("/cgi/lines", lines):
        for accept in "gzip", "br", "gzip, br", "identity", "*;q=0":
            direct, through = site.get(path, f"Accept-Encoding: {accept}")
            assert direct.content == through.content == body
            told = through.field("X-Muster-Why")
            if direct.coding is not None:  # what Apache compressed stays
                assert site.deflates and direct.coding == "gzip"
                assert through.coding == "gzip"
                assert through.body == direct.body
                assert "compress=encoded" in told
                assert through.field("ETag") == direct.field("ETag")
            elif accept[0] in "gb":
                assert through.coding == ("br" if "br" in accept else "gzip")
                assert "compress=yes" in told
            else:
                assert through.coding is None
            assert "accept-encoding" in through.field("Vary").lower()


def test_a_client_comes_back(site):
    """With its tag, weak or not: the node says 304, and the tag fits."""
    for accept in "br", "gzip", "identity":
        first = site.get("/page.html", f"Accept-Encoding: {accept}")[1]
        tag = first.field("ETag")
        assert tag.startswith("W/") == (
            first.coding == "br" or first.coding == "gzip" and
            not site.deflates)
        again = site.get("/page.html", f"Accept-Encoding: {accept}",
                         f"If-None-Match: {tag}")[1]
        assert (again.status, again.body) == (304, b"")
        assert again.field("ETag") == tag
        modified = first.field("Last-Modified")
        assert site.get("/page.html", f"Accept-Encoding: {accept}",
                        f"If-Modified-Since: {modified}")[1].status == 304
        # A weak tag is good for no part (RFC 9110, section 13.1.5).
        part = site.get("/page.html", "Accept-Encoding: br",
                        "Range: bytes=0-9", f"If-Range: {tag}")[1]
        assert part.status == (200 if tag.startswith("W/") else 206)
        page = site.page.read_bytes() + b"more"
        site.write(page)
        changed = site.get("/page.html", f"Accept-Encoding: {accept}",
                           f"If-None-Match: {tag}")[1]
        assert changed.status == 200 and changed.content == page
    part = site.get("/page.html", "Accept-Encoding: br", "Range: bytes=0-9")
    assert [(a.status, a.coding, a.body) for a in part] == \
        [(206, None, page[:10])] * 2


# ---- while something happens ----

@pytest.fixture
def live(tmp_path):
    p = LiveProxy(tmp_path, [RawOrigin])
    p.ctl("site", "set", "a", "--compress", "gzip,br")
    p.await_revision()
    yield p
    close_all(p)


class Download:
    """A body in pieces that the test lets go, one by one."""

    def __init__(self, p, coding):
        self.go = threading.Semaphore(0)
        self.pieces = [some_text(5000 + i) for i in range(6)]
        p.raw[0].script = self._serve
        self.socket = p.connect()
        self.socket.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: "
                            b"%s\r\n\r\n" % coding.encode())
        head, rest = px.read_head(self.socket)
        assert px.field(head, b"Content-Encoding") == [coding.encode()]
        self.chunks, self.decoder = Chunks(), Decoder(coding)
        self.got, self.n = self.decoder.add(self.chunks.add(rest)), 0

    def _serve(self, sock, head, body):
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")
        for piece in self.pieces:
            assert self.go.acquire(timeout=muster.PATIENCE_S)
            sock.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        sock.sendall(b"0\r\n\r\n")

    def next(self):
        """The next piece comes through."""
        self.n += 1
        self.go.release()
        while self.got != b"".join(self.pieces[:self.n]):
            data = self.socket.recv(65536)
            assert data
            self.got += self.decoder.add(self.chunks.add(data))

    def finish(self):
        while self.n < len(self.pieces):
            self.next()
        while not self.chunks.ended:
            self.got += self.decoder.add(self.chunks.add(
                self.socket.recv(65536)))
        assert self.decoder.ended
        self.socket.close()


@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_what_is_under_way_stays_as_it_is(live, coding):
    d = Download(live, coding)
    d.next()
    live.ctl("site", "set", "a", "--compress", "off")
    live.await_revision()
    d.next()
    live.raw[0].script = None
    status, _ = live.get()
    assert status == 200
    upgrade = threading.Thread(target=live.upgrade)
    upgrade.start()
    d.next()
    d.finish()
    upgrade.join(muster.PATIENCE_S)
    assert not upgrade.is_alive()
    live.raw[0].script = px.say(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
        b"Content-Length: 4000\r\n\r\n" + some_text(4000))
    assert live.get()[1] == some_text(4000)


def test_a_slow_client_holds_neither_node_nor_compressor(live):
    body = some_text(400_000) * 100
    done = threading.Event()

    def serve(sock, head, raw):
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(body) + body)
        done.set()
    live.raw[0].script = serve

    def held():
        return sum(v for k, v in live.metrics().items()
                   if k.startswith("muster_worker_compress_held"))
    with live.connect() as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                  b"Accept-Encoding: gzip\r\n\r\n")
        assert done.wait(muster.PATIENCE_S)
        muster.wait_for(lambda: held() == 0, what="the compressor back")
        a = Answer(*px.read_all(s))
    assert a.coding == "gzip" and len(a.body) > 1 << 20
    assert a.content == body
