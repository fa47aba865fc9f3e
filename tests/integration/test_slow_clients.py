"""Clients that read slowly hold no node: responses that are put away."""

import random
import socket
import threading

import pytest

import muster
import proxy as px
from live_proxy import LiveProxy, RawOrigin, close_all
from slow import Slow, SlowCrowd
from test_bodies import chunks, pattern, unchunked, worker

K = 1024
MB = 1024 * K
LONG = 2 * MB  # more than sockets hold, less than the bound
GET = b"GET %s HTTP/1.1\r\nHost: a\r\n%s\r\n"
CLOSE = b"Connection: close\r\n"


@pytest.fixture
def make(tmp_path):
    made = []

    def start(settings=None, role=("--maxconn", "1"), **options):
        made.append(LiveProxy(tmp_path, [RawOrigin], {
            "proxy.workers": "1", **(settings or {})}, role=role, **options))
        made[-1].raw[0].script = answer
        return made[-1]
    yield start
    close_all(*made)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A node that does one thing at a time."""
    p = LiveProxy(tmp_path_factory.mktemp("slow"), [RawOrigin],
                  {"proxy.workers": "1"}, role=("--maxconn", "1"))
    yield p
    close_all(p)


@pytest.fixture
def proxy(shared):
    shared.raw[0].reset()
    shared.raw[0].script = answer
    yield shared
    empty(shared)


def empty(proxy):
    muster.wait_for(lambda: worker(proxy)["spool_bytes"] == 0
                    and worker(proxy)["delivering"] == 0,
                    what="nothing to be held")


def answer(sock, head, body):
    """/KIND/SIZE: that many bytes in that framing."""
    _, kind, size = head.split(b" ")[1].split(b"/")
    data = pattern(int(size))
    if kind == b"length":
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
                     % len(data) + data)
    elif kind == b"chunked":
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                     + chunks(data, len(data)))
    elif kind == b"unbuffered":
        sock.sendall(b"HTTP/1.1 200 OK\r\nX-Accel-Buffering: No\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(data) + data)
    else:
        sock.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + data)
        return False
    return None


def slow(proxy, path, more=CLOSE):
    """A client that asks, and whose socket takes little."""
    s = socket.socket()
    s.settimeout(muster.PATIENCE_S)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    # As from afar: with the loopback's segments of 64 KB the kernel would
    # take up megabytes by itself.
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
    s.connect((proxy.address, proxy.PORT))
    s.sendall(GET % (path.encode(), more))
    return s


def hurry(s):
    """From now on it reads as fast as anybody: all there is."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * MB)
    return px.read_all(s)


def quick(proxy, path="/length/10", more=CLOSE):
    with proxy.connect() as s:
        s.sendall(GET % (path.encode(), more))
        return px.read_all(s)[0]


def payload(data):
    head, _, body = data.partition(b"\r\n\r\n")
    return unchunked(body) if px.field(head, b"Transfer-Encoding") else body


def finish(s, want):
    """The slow client reads on to the end, and gets all of it."""
    with s:
        got, how = hurry(s)
    assert how == "fin" and payload(got) == want


KINDS = ["length", "chunked", "close"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_node_is_free_while_a_client_still_reads(proxy, kind):
    """Of a node that does one thing at a time, others are served."""
    s = slow(proxy, f"/{kind}/{LONG}")
    muster.wait_for(lambda: worker(proxy)["delivering"] == 1,
                    what="all of the response")
    # Written now and then.
    muster.wait_for(lambda: worker(proxy)["spool_bytes"] > MB)
    assert proxy.nodes()["n1"]["active"] == 0
    for _ in range(3):
        assert px.statuses(quick(proxy)) == [200]
    assert worker(proxy)["delivering"] == 1
    finish(s, pattern(LONG))


def test_its_connection_is_free_too(proxy):
    s = slow(proxy, f"/length/{LONG}")
    muster.wait_for(lambda: worker(proxy)["delivering"] == 1,
                    what="all of the response")
    opened = proxy.raw[0].connections
    for _ in range(3):
        assert px.statuses(quick(proxy)) == [200]
    assert proxy.raw[0].connections == opened
    finish(s, pattern(LONG))


def test_the_client_goes_on_behind_it(proxy):
    """A pipelined request is answered after what was put away."""
    s = slow(proxy, f"/length/{LONG}", b"")
    s.sendall(GET % (b"/length/5", CLOSE))
    muster.wait_for(lambda: worker(proxy)["delivering"] == 1,
                    what="all of the response")
    with s:
        got, how = hurry(s)
    assert px.statuses(got) == [200, 200] and how == "fin"
    assert got.endswith(b"\r\n\r\n" + pattern(5))


def test_those_who_wait_are_served(proxy):
    """A place is given to the queue when the response is there, not when the
    client has read it."""
    slows = [slow(proxy, f"/length/{LONG + i}") for i in range(8)]
    muster.wait_for(lambda: worker(proxy)["delivering"] == 8,
                    what="all eight, one after the other")
    for i, s in enumerate(slows):
        finish(s, pattern(LONG + i))


def test_many_at_once_get_what_is_theirs(proxy):
    """Sizes around every bound, in every framing, read in bites."""
    rng = random.Random(7)
    wrong = []

    def one(number):
        kind, size = KINDS[number % 3], rng.choice(
            (0, 1, 60000, 65536, 130000, 700000, LONG)) + number
        with slow(proxy, f"/{kind}/{size}") as s:
            data = b""
            for bite in rng.choices((1, 500, 5000, 50000), k=100):
                data += s.recv(bite)
            data += hurry(s)[0]
        if payload(data) != pattern(size):
            wrong.append((kind, size, len(payload(data))))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(48)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(muster.PATIENCE_S)
        assert not t.is_alive()
    assert wrong == []


def test_whoever_leaves_frees_his_blocks(proxy):
    socks = [slow(proxy, f"/length/{LONG}") for _ in range(10)]
    muster.wait_for(lambda: worker(proxy)["delivering"] == 10,
                    what="ten responses")
    muster.wait_for(lambda: worker(proxy)["spool_bytes"] > 10 * MB)
    for s in socks[:5]:
        px.reset(s)
    muster.wait_for(lambda: worker(proxy)["delivering"] == 5,
                    what="five to be gone")
    muster.wait_for(lambda: worker(proxy)["spool_bytes"] < 6 * LONG,
                    what="their blocks")
    for s in socks[5:]:
        px.reset(s)


def test_it_is_shown(proxy):
    s = slow(proxy, f"/length/{LONG}")
    muster.wait_for(lambda: worker(proxy)["spool_bytes"] > MB,
                    what="something to be shown")
    row, = proxy.ctl("--json", "show_workers").json_lines
    assert row["delivering"] == 1 and row["spool_bytes"] > MB
    assert any(k.startswith("muster_worker_spool_bytes") and v > MB
               for k, v in proxy.metrics().items())
    finish(s, pattern(LONG))


def test_a_client_that_is_held_back_holds_no_node_either(make):
    """By a limit of the site's; it is lifted while he waits."""
    proxy = make()
    proxy.ctl("site", "limit", "a", "--bandwidth", "50K/s,burst=50K")
    proxy.await_revision()
    with proxy.connect() as s:
        s.sendall(GET % (b"/chunked/%d" % LONG, CLOSE))
        muster.wait_for(lambda: worker(proxy)["delivering"] == 1,
                        what="all of the response")
        assert proxy.nodes()["n1"]["active"] == 0
        proxy.ctl("site", "limit", "a", "--bandwidth", "off")
        got, how = px.read_all(s)
    assert how == "fin" and payload(got) == pattern(LONG)


class Prefork(RawOrigin):
    """Serves one connection at a time, an idle one too, as a process of
    Apache's does."""

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.sockets.add(sock)
                self.connections += 1
            self._serve(sock)


def test_an_idle_connection_keeps_no_other_worker_out(tmp_path):
    """Kept for an hour by one worker, of a node with one process."""
    proxy = LiveProxy(tmp_path, settings={
        "proxy.workers": "2", "proxy.pool_idle_timeout": "1h"},
        role=("--maxconn", "1"))
    origin = Prefork(proxy.cluster.net.address(), 9000)
    proxy.raw.append(origin)
    proxy.ctl("node", "add", "n1", origin.address, "--role", "worker_http")
    proxy.await_revision()
    try:
        origin.script = answer
        for _ in range(30):
            assert px.statuses(quick(proxy)) == [200]
        assert all(w["requests"] > 0 for w in proxy.workers())
    finally:
        wrong = proxy.close()
    assert wrong == []


# ---- what passes through at once ----

def lockstep(proxy, begin, say, end, hear):
    """The node says the next word only when the client has heard the last
    one: nothing may wait anywhere."""
    heard = threading.Semaphore(0)

    def script(sock, head, body):
        sock.sendall(begin)
        for i in range(20):
            sock.sendall(say(b"event %d\n" % i))
            assert heard.acquire(timeout=muster.PATIENCE_S)
        sock.sendall(end)
        return False

    proxy.raw[0].script = script
    with proxy.connect() as s, s.makefile("rb") as f:
        s.sendall(GET % (b"/events", CLOSE))
        while f.readline() != b"\r\n":
            pass
        for i in range(20):
            assert hear(f) == b"event %d\n" % i
            heard.release()


def test_events_in_chunks_pass_at_once(proxy):
    def say(text):
        return b"%x\r\n%s\r\n" % (len(text), text)

    def hear(f):
        size = int(f.readline(), 16)
        return f.read(size + 2)[:-2]
    lockstep(proxy, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
             b"Transfer-Encoding: chunked\r\n\r\n", say, b"0\r\n\r\n", hear)


def test_events_until_the_end_pass_at_once(proxy):
    def hear(f):
        size = int(f.readline(), 16)
        return f.read(size + 2)[:-2]
    lockstep(proxy, b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
             lambda text: text, b"", hear)


def test_a_long_poll_passes_at_once(proxy):
    """Known length, said piece by piece."""
    size = sum(len(b"event %d\n" % i) for i in range(20))
    lockstep(proxy, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size,
             lambda text: text, b"", lambda f: f.readline())


def test_slow_is_not_stalled(make):
    """Whoever reads a little is waited for, if it takes for ever; whoever
    reads nothing is not."""
    proxy = make({"proxy.send_timeout": "1s"}, role=())
    reads, stalls = [Slow(proxy.address, proxy.PORT, "a", f"/length/{LONG}")
                     for _ in range(2)]
    crowd = SlowCrowd([reads] * 5)  # five times a second
    try:
        while stalls.sent < len(stalls.out):
            stalls.bite()
        muster.wait_for(lambda: worker(proxy)["delivering"] == 2,
                        what="both")
        muster.wait_for(lambda: worker(proxy)["delivering"] == 1,
                        what="the silent one to be cut")
        muster.wait_for(lambda: crowd.rounds > 25, what="many reads")
        assert worker(proxy)["delivering"] == 1
        assert crowd.failures == [] and reads.got > 10000
        with pytest.raises(ConnectionResetError):
            while stalls.sock.recv(4096):
                pass
    finally:
        crowd.end()
        stalls.close()


# ---- bounds ----

def test_x_accel_buffering_no_is_respected(proxy):
    """The node sees how far its client is; the field is for us alone."""
    size = 8 * MB
    s = slow(proxy, f"/unbuffered/{size}")
    muster.wait_for(lambda: s.recv(15, socket.MSG_PEEK), what="its head")
    with proxy.connect() as other:
        other.sendall(GET % (b"/length/1", CLOSE))
        muster.wait_for(lambda: worker(proxy)["queued"] == 1,
                        what="one who waits for the node")
        assert worker(proxy)["spool_bytes"] == 0
        with s:
            got, _ = hurry(s)
        assert payload(got) == pattern(size)
        assert b"X-Accel" not in got[:1000]
        assert px.statuses(px.read_all(other)[0]) == [200]


@pytest.mark.parametrize("settings, site, full", [
    ({"proxy.response_buffer": "1M"}, (), False),
    ({}, ("--response-buffer", "1M"), False),
    ({"proxy.spool_size": "1M"}, (), True),
    ({"proxy.spool_size": "off"}, (), False),
    ({"proxy.response_buffer": "0"}, (), False)])
def test_beyond_a_bound_the_node_waits(make, settings, site, full):
    """And is slowed down as ever, but nothing is lost."""
    proxy = make(settings)
    if site:
        proxy.ctl("site", "set", "a", *site)
        proxy.await_revision()
    size = 8 * MB
    s = slow(proxy, f"/length/{size}")
    muster.wait_for(lambda: s.recv(15, socket.MSG_PEEK), what="its head")
    if full:
        muster.wait_for(lambda: worker(proxy)["spool_full"] == 1,
                        what="a full spool")
    with proxy.connect() as other:
        other.sendall(GET % (b"/length/1", CLOSE))
        muster.wait_for(lambda: worker(proxy)["queued"] == 1,
                        what="one who waits for the node")
        assert worker(proxy)["delivering"] == 0
        assert worker(proxy)["spool_bytes"] <= 3 * MB
        finish(s, pattern(size))
        assert px.statuses(px.read_all(other)[0]) == [200]
    empty(proxy)


def test_a_bound_changes_while_it_runs(make):
    proxy = make({"proxy.response_buffer": "0"})
    proxy.ctl("set", "proxy.response_buffer", "8M")
    proxy.await_revision()
    s = slow(proxy, f"/length/{LONG}")
    muster.wait_for(lambda: worker(proxy)["delivering"] == 1,
                    what="all of the response")
    finish(s, pattern(LONG))
