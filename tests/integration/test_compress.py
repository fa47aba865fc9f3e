"""Compression on the way: what is compressed decodes to what the node sent,
byte for byte; what must not be compressed is left alone; nothing waits."""

import random
import threading

import pytest

import muster
import proxy as px
from compressed import Answer, Chunks, Decoder, some_text

HTML = b"Content-Type: text/html\r\n"
CODINGS = ("gzip", "br")


class Site:
    """The proxy's site a, its answers compressed."""

    def __init__(self, tmp, **options):
        self.proxy = px.Proxy(tmp, settings={
            "proxy.trusted": "127.0.0.0/8"}, **options)
        self.origin = self.proxy.origin
        self.set("--compress", "gzip,br")
        muster.wait_for(lambda: self.get("/", "Accept-Encoding: gzip").why
                        != "off", what="the proxy to compress")

    def set(self, *options):
        self.proxy.ctl("site", "set", "a", *options)

    def get(self, path="/", *fields, method="GET", version="1.1",
            body=b""):
        lines = [f"{method} {path} HTTP/{version}", "Host: a",
                 "Connection: close", "X-Muster-Why: 1", *fields, "", ""]
        a = Answer(*self.proxy.talk("\r\n".join(lines).encode() + body))
        told = a.field("X-Muster-Why") or ""
        a.why = dict(w.split("=", 1) for w in told.split()
                     if "=" in w).get("compress")
        return a

    def say(self, fields, body=b"", status="200 OK"):
        """What the node answers from now on."""
        head = (b"HTTP/1.1 " + status.encode() + b"\r\n" + fields + b"\r\n")
        self.origin.script = px.say(head + body)

    def metrics(self):
        with px.connect(self.proxy.address, 7480) as s:
            s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = px.read_all(s)[0].decode()
        return {line.split("{")[0]: int(line.split()[-1])
                for line in text.splitlines()
                if line.startswith("muster_worker_compress")}

    def close(self):
        return self.proxy.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    s = Site(tmp_path_factory.mktemp("compress"))
    yield s
    wrong = s.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.fixture
def site(shared):
    shared.origin.reset()
    return shared


def chunked(pieces):
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + \
        b"0\r\n\r\n"


BODIES = {
    "empty": b"",
    "one byte": b"x",
    "text": some_text(3 << 20),
    "noise": random.Random(1).randbytes(700_000),
    "zeros": bytes(10 << 20),
}


# ---- what comes out is what went in ----

@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("kind", BODIES)
def test_the_body_is_the_same(site, kind, coding):
    body = BODIES[kind]
    framings = {
        "chunked": (b"Transfer-Encoding: chunked\r\n", chunked(
            body[i:i + 30000] for i in range(0, len(body), 30000))),
        "length": (b"Content-Length: %d\r\n" % len(body), body),
        "close": (b"", body),
    }
    for framing, (field, raw) in framings.items():
        if framing == "length" and len(body) < 1024:
            continue
        site.origin.script = px.say(b"HTTP/1.1 200 OK\r\n" + HTML + field +
                                    b"\r\n" + raw, then=framing != "close")
        a = site.get("/", f"Accept-Encoding: {coding}")
        assert (a.status, a.coding, a.why) == (200, coding, "yes"), framing
        assert a.field("Content-Length") is None
        assert a.content == body, framing


@pytest.mark.parametrize("coding", CODINGS)
def test_chunks_of_one_byte(site, coding):
    body = some_text(3000)
    site.say(HTML + b"Transfer-Encoding: chunked\r\n",
             chunked(body[i:i + 1] for i in range(len(body))))
    assert site.get("/", f"Accept-Encoding: {coding}").content == body


def test_the_client_goes_on_behind_it(site):
    """On one connection: what follows a compressed body is in its place."""
    body = some_text(5000)
    site.say(HTML + b"Content-Length: 5000\r\n", body)
    ask = b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: %s\r\n\r\n"
    last = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    raw, how = site.proxy.talk(ask % b"gzip" + ask % b"br" + last)
    assert px.statuses(raw) == [200, 200, 200]
    assert raw.count(b"Content-Encoding: ") == 2
    assert raw.endswith(b"\r\n\r\n" + body)


# ---- what its head says ----

def test_the_head(site):
    body = some_text(5000)
    site.say(HTML + b"Content-Length: 5000\r\nETag: \"x\"\r\n"
             b"Accept-Ranges: bytes\r\nVary: Cookie\r\n", body)
    for method in ("GET", "HEAD"):
        plain = site.get(method=method)
        assert plain.coding is None
        assert plain.field("ETag") == '"x"'
        assert plain.field("Vary") == "Cookie, Accept-Encoding"
        assert plain.field("Content-Length") == "5000"
        if method == "HEAD":
            site.say(HTML + b"Content-Length: 5000\r\nETag: \"x\"\r\n"
                     b"Accept-Ranges: bytes\r\nVary: Cookie\r\n")
        a = site.get("/", "Accept-Encoding: gzip", method=method)
        assert a.coding == "gzip"
        assert a.field("ETag") == 'W/"x"'
        assert a.field("Vary") == "Cookie, Accept-Encoding"
        assert a.field("Content-Length") is None
        assert a.field("Accept-Ranges") is None
        assert a.body == b"" if method == "HEAD" else a.content == body


LEFT_ALONE = {
    "encoded": dict(fields=b"Content-Encoding: gzip\r\n"),
    "range": dict(fields=b"Content-Range: bytes 0-1999/2000\r\n"),
    "status": dict(status="206 Partial Content",
                   fields=b"Content-Range: bytes 0-1999/4000\r\n"),
    "no_transform": dict(fields=b"Cache-Control: no-transform\r\n"),
    "no_transform, says the client": dict(asked="Cache-Control: no-transform"),
    "digest": dict(fields=b"Repr-Digest: sha-256=:x:\r\n"),
    "type": dict(kind=b"image/png"),
    "type: event streams": dict(kind=b"text/event-stream"),
    "small": dict(body=b"x" * 1023),
    "http10": dict(version="1.0"),
    "not_accepted": dict(asked="Accept-Encoding: gzip;q=0, br;q=0"),
    "not_accepted: none": dict(asked="X: y"),
}


@pytest.mark.parametrize("why", LEFT_ALONE)
def test_left_alone(site, why):
    it = LEFT_ALONE[why]
    body = it.get("body", b"a page\n" * 300)
    length = b"Content-Length: %d\r\n" % len(body)
    site.say(b"Content-Type: " + it.get("kind", b"text/html") + b"\r\n" +
             it.get("fields", b"") + length + b"ETag: \"x\"\r\n", body,
             it.get("status", "200 OK"))
    asked = it.get("asked", "")
    fields = [asked] if asked.startswith(("Accept", "X")) else \
        [f for f in (asked, "Accept-Encoding: gzip, br") if f]
    a = site.get("/", *fields, version=it.get("version", "1.1"))
    assert a.why == why.split(",")[0].split(":")[0]
    assert a.field("Content-Length") == str(len(body))
    assert a.field("ETag") == '"x"'
    assert a.body == body


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified",
                                    "101 Switching Protocols"])
def test_answers_without_a_body(site, status):
    site.say(HTML, b"", status)
    a = site.get("/", "Accept-Encoding: gzip")
    if status.startswith("101"):  # which nobody asked for
        assert a.status == 502
    else:
        assert (a.status, a.why, a.body) == (int(status[:3]), "status", b"")
    assert a.coding is None


def test_interim_answers_pass(site):
    body = some_text(4000)
    site.say(b"Link: </a.css>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\n" + HTML +
             b"Content-Length: 4000\r\n", body, "103 Early Hints")
    raw, _ = site.proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close"
                             b"\r\nAccept-Encoding: gzip\r\n\r\n")
    assert px.statuses(raw) == [103, 200]
    assert Answer(raw.partition(b"\r\n\r\n")[2]).content == body


def test_errors_and_posts_are_compressed(site):
    body = some_text(4000)
    site.say(HTML + b"Content-Length: 4000\r\n", body, "404 Not Found")
    a = site.get("/", "Accept-Encoding: br", "Content-Length: 3",
                 method="POST", body=b"abc")
    assert (a.status, a.coding, a.content) == (404, "br", body)
    assert site.origin.requests[-1][1] == b"abc"


def test_accept_encoding_reaches_the_node(site):
    site.get("/", "Accept-Encoding: gzip;q=0.5, zstd")
    assert px.field(site.origin.requests[-1][0], b"Accept-Encoding") == \
        [b"gzip;q=0.5, zstd"]


# ---- nothing waits ----

@pytest.mark.parametrize("coding", CODINGS)
def test_a_drip_gets_through_at_once(site, coding):
    """The node sends its next line only when the client has read the last."""
    read = threading.Semaphore(0)
    lines = [b"line %d\n" % i for i in range(20)]

    def drip(sock, head, body):
        sock.sendall(b"HTTP/1.1 200 OK\r\n" + HTML +
                     b"Transfer-Encoding: chunked\r\n\r\n")
        for line in lines:
            sock.sendall(b"%x\r\n%s\r\n" % (len(line), line))
            assert read.acquire(timeout=muster.PATIENCE_S)
        sock.sendall(b"0\r\n\r\n")
    site.origin.script = drip
    with site.proxy.connect() as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: %s\r\n\r\n"
                  % coding.encode())
        head, rest = px.read_head(s)
        chunks, decoder = Chunks(), Decoder(coding)
        got = decoder.add(chunks.add(rest))
        for n in range(1, len(lines) + 1):
            while got != b"".join(lines[:n]):
                data = s.recv(65536)
                assert data, got
                got += decoder.add(chunks.add(data))
            read.release()
        while not chunks.ended:
            got += decoder.add(chunks.add(s.recv(65536)))
    assert decoder.ended


def test_others_have_their_turn(site):
    """While one worker compresses a body without end, others are served."""
    ending = threading.Event()
    piece = some_text(1 << 20)

    def endless(sock, head, body):
        if b"GET /endless" not in head:
            sock.sendall(px.OK)
            return None
        sock.sendall(b"HTTP/1.1 200 OK\r\n" + HTML +
                     b"Transfer-Encoding: chunked\r\n\r\n")
        while not ending.is_set():
            sock.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        sock.sendall(b"0\r\n\r\n")
        return None
    site.origin.script = endless
    got = bytearray()

    def read(s):
        while not got.endswith(b"\r\n0\r\n\r\n"):
            got.extend(s.recv(1 << 20))
    with site.proxy.connect() as s:
        s.sendall(b"GET /endless HTTP/1.1\r\nHost: a\r\n"
                  b"Accept-Encoding: gzip\r\n\r\n")
        reader = threading.Thread(target=read, args=(s,), daemon=True)
        reader.start()
        muster.wait_for(lambda: len(got) > 100_000, what="the long body")
        for _ in range(20):
            before = len(got)
            assert site.get().status == 200
        muster.wait_for(lambda: len(got) > before, what="more of it")
        ending.set()
        reader.join(muster.PATIENCE_S)
        assert not reader.is_alive()
    a = Answer(bytes(got))
    content = a.content
    assert content == piece * (len(content) // len(piece))


# ---- ends that come too early ----

def test_a_node_that_cuts_is_seen(site):
    site.origin.script = px.say(
        b"HTTP/1.1 200 OK\r\n" + HTML + b"Content-Length: 500000\r\n\r\n" +
        some_text(100_000), then=False)
    a = site.get("/", "Accept-Encoding: gzip")
    assert a.coding == "gzip" and not a.whole
    assert not Decoder("gzip").ended


def test_a_client_that_leaves_gives_its_memory_back(site):
    body = random.Random(2).randbytes(8 << 20)
    site.say(HTML + b"Content-Length: %d\r\n" % len(body), body)
    sockets = [site.proxy.connect() for _ in range(8)]
    for i, s in enumerate(sockets):
        s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: %s\r\n\r\n"
                  % CODINGS[i % 2].encode())
        assert s.recv(1000)
    muster.wait_for(lambda: site.metrics()[
        "muster_worker_compress_held_bytes"] > 8 * 250_000,
        what="eight streams")
    for s in sockets:
        px.reset(s)
    muster.wait_for(lambda: site.metrics()[
        "muster_worker_compress_held_bytes"] == 0, what="their memory back")
    assert site.get("/", "Accept-Encoding: br").content == body


# ---- what it is set to ----

def test_settings_and_options(site):
    body = some_text(4000)
    site.say(HTML + b"Content-Length: 4000\r\n", body)

    def goes_out(coding, why, accept="gzip, br"):
        def check():
            a = site.get("/", f"Accept-Encoding: {accept}")
            assert a.content == body
            return (a.coding, a.why) == (coding, why)
        muster.wait_for(check, what=f"{coding} ({why})")

    goes_out("br", "yes")
    site.set("--compress", "gzip")
    goes_out("gzip", "yes")
    goes_out(None, "not_accepted", "br")
    site.set("--compress", "br", "--compress-min", "4001")
    goes_out(None, "small")
    site.set("--compress-min", "1k", "--compress-types", "text/plain")
    goes_out(None, "type")
    site.set("--compress-types", "text/plain,text/*")
    goes_out("br", "yes")
    site.set("--compress-types", "default", "--compress", "off")
    goes_out(None, "off")
    site.set("--compress", "gzip,br")
    goes_out("br", "yes")
    before = site.metrics()
    site.proxy.ctl("set", "proxy.compress_memory", "300K")
    goes_out(None, "memory")
    site.proxy.ctl("set", "proxy.compress_memory", "64M")
    goes_out("br", "yes")
    after = site.metrics()
    assert after["muster_worker_compress_full_total"] > \
        before["muster_worker_compress_full_total"]


def test_levels(site):
    """A higher level makes the same body smaller."""
    body = some_text(50_000)
    site.say(HTML + b"Content-Length: %d\r\n" % len(body), body)
    for coding, setting, levels in (("gzip", "proxy.gzip_level", (1, 9)),
                                    ("br", "proxy.brotli_level", (1, 6))):
        def size():
            a = site.get("/", f"Accept-Encoding: {coding}")
            assert a.content == body
            return len(a.body)
        last = size()
        for level, smaller in zip(levels, (False, True)):
            site.proxy.ctl("set", setting, str(level))
            muster.wait_for(lambda: (size() < last) == smaller
                            and size() != last, what=f"{coding} {level}")
            last = size()


def test_counters(site):
    body = some_text(4000)
    site.say(HTML + b"Content-Length: 4000\r\n", body)
    before = site.metrics()
    a = site.get("/", "Accept-Encoding: gzip")
    after = {k: v - before[k] for k, v in site.metrics().items()}
    assert after["muster_worker_compressed_total"] == 1
    assert after["muster_worker_compress_in_bytes_total"] == 4000
    assert after["muster_worker_compress_out_bytes_total"] == len(a.body)


@pytest.mark.parametrize("option,value,rule", [
    ("compress", "deflate", "off|gzip|br|gzip,br"),
    ("compress-types", "html", "no media type"),
    ("compress-types", "text/*x", "no media type"),
    ("compress-min", "0", "1..1G"),
])
def test_refused_values(site, option, value, rule):
    r = site.proxy.cluster.ctl("site", "set", "a", f"--{option}", value,
                               status=2)
    assert rule in r.stderr
