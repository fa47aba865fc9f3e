"""Request bodies that are collected before a node is asked."""

import os
import random
import tempfile
import threading
from pathlib import Path

import pytest

import muster
import proxy as px
from live_proxy import LiveProxy, RawOrigin, close_all
from test_http_cases import BAD_BODY, C

K = 1024
SIZES = [0, 1, 5, 2000, 16 * K - 200, 16 * K, 64 * K - 1, 64 * K, 64 * K + 1,
         200 * K, 3000 * K]


def pattern(size, start=0):
    """Bytes that tell where they belong."""
    block = b"".join(b"%07d\n" % i for i in range(start, start + 4 * K))
    return (block * (size // len(block) + 1))[:size]


def chunks(body, seed=1):
    """A chunked body, in chunks of all sizes."""
    rng, out, at = random.Random(seed), [], 0
    while at < len(body):
        n = rng.choice((1, 10, 1000, 20000, 100000))
        piece = body[at:at + n]
        out.append(b"%x\r\n%s\r\n" % (len(piece), piece))
        at += n
    return b"".join(out) + b"0\r\n\r\n"


def post(body, more=b"", method=b"POST", host=b"a"):
    return (b"%s / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n%s\r\n"
            % (method, host, len(body), more)) + body


def post_chunked(body, more=b"", method=b"POST"):
    return (b"%s / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n%s"
            b"\r\n" % (method, more)) + chunks(body)


CLOSE = b"Connection: close\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@pytest.fixture
def make(tmp_path):
    made = []

    def start(origins=1, settings=None, **options):
        made.append(LiveProxy(tmp_path, [RawOrigin] * origins, {
            "proxy.workers": "1", "proxy.pool_idle_timeout": "0s",
            **(settings or {})}, **options))
        return made[-1]
    yield start
    close_all(*made)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    p = LiveProxy(tmp_path_factory.mktemp("bodies"), [RawOrigin],
                  {"proxy.workers": "1", "proxy.body_timeout": "1s",
                   "proxy.body_min_rate": "200"})
    p.ctl("site", "set", "b", "--max-body", "200K")
    p.await_revision()
    yield p
    close_all(p)


@pytest.fixture
def proxy(shared):
    shared.raw[0].reset()
    yield shared
    # Whatever a test did, nothing is held in the end.
    muster.wait_for(lambda: worker(shared)["spool_bytes"] == 0
                    and worker(shared)["collecting"] == 0,
                    what="the spool to be empty")


def worker(proxy):
    return proxy.workers()[0]


def talk(proxy, *pieces):
    with proxy.connect() as s:
        for piece in pieces:
            s.sendall(piece)
        return px.read_all(s)


@pytest.mark.parametrize("kind", [post, post_chunked])
@pytest.mark.parametrize("size", SIZES)
def test_a_body_arrives_whole_and_with_its_length(proxy, kind, size):
    body = pattern(size)
    sent = kind(body)
    got, how = talk(proxy, sent, LAST)
    assert px.statuses(got) == [200, 200] and how == "fin"
    (head, raw), (last, _) = proxy.raw[0].requests
    assert px.field(head, b"Content-Length") == [b"%d" % size]
    assert not px.field(head, b"Transfer-Encoding")
    assert raw == body
    assert last.startswith(b"GET /last ")


@pytest.mark.parametrize("kind", [post, post_chunked])
def test_in_small_pieces(proxy, kind):
    body = pattern(150 * K)
    sent = kind(body) + LAST
    got, _ = talk(proxy, *[sent[i:i + 1777]
                           for i in range(0, len(sent), 1777)])
    assert px.statuses(got) == [200, 200]
    assert proxy.raw[0].requests[0][1] == body


@pytest.mark.parametrize("row, sent", BAD_BODY,
                         ids=[f"{i}-{c[0]}" for i, c in enumerate(BAD_BODY)])
@pytest.mark.parametrize("pieces", ["whole", "head first"])
def test_a_bad_body_reaches_no_node(proxy, row, sent, pieces):
    with proxy.connect() as s:
        if pieces == "head first":
            s.sendall(C)
            muster.wait_for(lambda: worker(proxy)["collecting"] == 1,
                            what="the head to be read")
            sent = sent[len(C):]
        s.sendall(sent)
        got, _ = px.read_all(s)
    assert px.statuses(got) == [400]
    assert proxy.raw[0].connections == 0


def test_nobody_is_asked_before_the_body_is_there(proxy):
    """Any number of clients that send slowly, or go away, cost no node."""
    body = pattern(100 * K)
    request = post(body)
    socks = [proxy.connect() for _ in range(40)]
    for s in socks:
        s.sendall(request[:-1])
    muster.wait_for(lambda: worker(proxy)["collecting"] == 40,
                    what="all bodies but a byte")
    muster.wait_for(lambda: worker(proxy)["spool_bytes"] >= 40 * 64 * K,
                    what="bodies on disk")
    assert worker(proxy)["queued"] == 0
    assert proxy.raw[0].connections == 0
    for s in socks[:20]:
        s.close()
    muster.wait_for(lambda: worker(proxy)["collecting"] == 20,
                    what="those who left to be forgotten")
    assert proxy.raw[0].connections == 0
    for s in socks[20:]:
        s.sendall(request[-1:])
        assert s.recv(100).startswith(b"HTTP/1.1 200 ")
        s.close()
    assert [raw for _, raw in proxy.raw[0].requests] == [body] * 20


def test_100_continue_is_ours_to_say(proxy):
    body = pattern(70 * K)
    request = post(body, b"Expect: 100-continue\r\nConnection: close\r\n")
    with proxy.connect() as s:
        s.sendall(request[:-len(body)])
        assert s.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert proxy.raw[0].connections == 0
        s.sendall(body)
        got, _ = px.read_all(s)
    assert px.statuses(got) == [200]
    (head, raw), = proxy.raw[0].requests
    assert raw == body and not px.field(head, b"Expect")


def test_whoever_sends_at_once_awaits_no_100(proxy):
    got, _ = talk(proxy, post(b"hello", b"Expect: 100-continue\r\n"), LAST)
    assert px.statuses(got) == [200, 200]
    assert not px.field(proxy.raw[0].requests[0][0], b"Expect")


def test_a_body_too_large_or_too_slow_reaches_no_node(proxy):
    large = chunks(pattern(300 * K))
    head = (b"POST / HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n"
            b"\r\n")
    assert px.statuses(talk(proxy, head, large)[0]) == [413]
    assert px.statuses(talk(proxy, post(b"x" * 300 * K, host=b"b"))[0]) \
        == [413]
    with proxy.connect() as s:
        s.sendall(post(pattern(100 * K))[:5000])
        got, _ = px.read_all(s)
    assert px.statuses(got) == [408]
    assert proxy.raw[0].connections == 0


def outlives_its_body(proxy, head):
    """Whether an answer to the head alone can be followed by the body, as
    clients send it that look for answers later."""
    with proxy.connect() as s:
        s.sendall(head)
        assert b" 413 " in px.read_all(s)[0]
        try:
            for _ in range(4):
                s.sendall(bytes(10 * K))
            return s.recv(1) == b""
        except OSError:
            return False


@pytest.mark.parametrize("head", [
    b"POST / HTTP/1.1\r\nHost: b\r\nContent-Length: 300000\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: b\r\nConnection: close\r\n"
    b"Content-Length: 300000\r\n\r\n"])
def test_an_early_answer_is_not_reset(proxy, head):
    # It is kept open for two seconds, which may be over on a slow machine.
    assert any(outlives_its_body(proxy, head) for _ in range(5))


def test_off_means_that_it_goes_through(make):
    proxy = make()
    proxy.ctl("site", "set", "a", "--request-buffering", "off")
    proxy.await_revision()
    with proxy.connect() as s:
        s.sendall(post(b"x" * 100)[:-1])
        muster.wait_for(lambda: proxy.raw[0].connections == 1,
                        what="the head at the node")
        s.sendall(b"x")
        assert s.recv(100).startswith(b"HTTP/1.1 200 ")
    for kind in (post, post_chunked):
        body = pattern(20000 * K)
        got, _ = talk(proxy, kind(body, CLOSE))
        raw = proxy.raw[0].requests[-1][1]
        assert (raw if kind is post else unchunked(raw)) == body
    assert worker(proxy)["spool_bytes"] == 0


def test_bytes_are_counted_once(make):
    """Of nodes and of sites: payload, as it went and came."""
    proxy = make()
    before = proxy.nodes()["n1"]
    for kind in (post, post_chunked):
        talk(proxy, kind(pattern(300 * K), CLOSE))
    after = proxy.nodes()["n1"]
    assert after["bytes_out"] - before["bytes_out"] == 2 * 300 * K
    assert after["bytes_in"] - before["bytes_in"] == 2 * len(b"ok")
    site = next(s for s in proxy.ask(ask="sites")["sites"]
                if s.get("site") == "a")
    assert site["bytes_in"] == 600 * K and site["bytes_out"] == 4


@pytest.mark.parametrize("kind", [post, post_chunked])
def test_a_held_body_is_sent_again(make, kind):
    """To another node when one refuses, or fails with a safe request."""
    proxy = make(origins=2)
    body = pattern(500 * K)
    proxy.raw[0].stop()
    for _ in range(4):
        got, _ = talk(proxy, kind(body, CLOSE))
        assert px.statuses(got) == [200]
    assert [raw for _, raw in proxy.raw[1].requests] == [body] * 4
    proxy.raw[0].start()
    asked = []

    def fails_once(sock, head, raw):
        asked.append(raw)
        if len(asked) == 1:
            return False
        sock.sendall(px.OK)
    for origin in proxy.raw:
        origin.script = fails_once
    got, _ = talk(proxy, kind(body, CLOSE, b"PUT"))
    assert px.statuses(got) == [200] and asked == [body, body]
    asked.clear()
    got, _ = talk(proxy, kind(body, CLOSE, b"POST"))
    assert px.statuses(got) == [502] and asked == [body]


@pytest.mark.parametrize("kind", [post, post_chunked])
@pytest.mark.parametrize("settings", [
    {"proxy.spool_size": "1M"}, {"proxy.spool_size": "off"}])
def test_what_finds_no_room_goes_through(make, kind, settings):
    proxy = make(settings=settings)
    body = pattern(3000 * K)
    sent = kind(body) + LAST
    with proxy.connect() as s:
        threading.Thread(target=s.sendall, args=(sent[:-500],)).start()
        muster.wait_for(lambda: proxy.raw[0].connections == 1,
                        what="the body on its way to the node")
        s.sendall(sent[-500:])
        got, _ = px.read_all(s)
    assert px.statuses(got) == [200, 200]
    head, raw = proxy.raw[0].requests[0]
    if kind is post_chunked:
        assert px.field(head, b"Transfer-Encoding") == [b"chunked"]
        raw = unchunked(raw)
    assert raw == body
    muster.wait_for(lambda: worker(proxy)["spool_bytes"] == 0,
                    what="an empty spool")


def unchunked(raw):
    out, at = [], 0
    while at < len(raw):
        end = raw.index(b"\r\n", at)
        size = int(raw[at:end], 16)
        out.append(raw[end + 2:end + 2 + size])
        at = end + 2 + size + 2
        assert raw[at - 2:at] == b"\r\n"
    return b"".join(out)


@pytest.fixture
def sign():
    """A file whose presence makes the disk full, where workers see it."""
    with tempfile.TemporaryDirectory(prefix="muster-") as path:
        os.chmod(path, 0o755)
        yield Path(path) / "full"


@pytest.mark.parametrize("kind", [post, post_chunked])
def test_a_disk_that_fails_costs_no_upload(make, tmp_path, sign, kind):
    proxy = make(start=False)
    proxy.daemon.expect_log("cannot be written")
    proxy.daemon.start(env={
        "LD_PRELOAD": str(muster.preload(tmp_path, "full_disk")),
        "FULL_DISK": str(sign)})
    body = pattern(4000 * K)
    sent = kind(body, CLOSE)
    for full_at in (0, 1000 * K):
        with proxy.connect() as s:
            if full_at == 0:
                sign.write_text("")
            s.sendall(sent[:full_at])
            if full_at > 0:
                muster.wait_for(lambda: worker(proxy)["spool_bytes"] > 500 * K,
                                what="a part on disk")
                sign.write_text("")
            s.sendall(sent[full_at:])
            got, _ = px.read_all(s)
        sign.unlink()
        assert px.statuses(got) == [200]
        raw = proxy.raw[0].requests[-1][1]
        assert (unchunked(raw) if kind is post_chunked else raw) == body
        # It is tried again after a while.
        muster.wait_for(lambda: kept(proxy), what="a disk that is used again")
        muster.wait_for(lambda: worker(proxy)["spool_bytes"] == 0,
                        what="an empty spool")
    assert worker(proxy)["spool_errors"] >= 2
    assert proxy.log.count("cannot be written") == 1


def kept(proxy):
    """Whether a body goes to disk just now."""
    with proxy.connect() as s:
        s.sendall(post(pattern(400 * K))[:-1])
        try:
            muster.wait_for(lambda: worker(proxy)["spool_bytes"] > 300 * K,
                            timeout=0.5, what="it on disk")
        except AssertionError:
            return False
        return True
