"""Nodes that lie, break off or say more than they should while what came
before is still put away for a slow client."""

import threading

import pytest

import muster
import proxy as px
from live_proxy import LiveProxy, RawOrigin, close_all
from test_bodies import chunks, pattern, worker
from test_slow_clients import (CLOSE, GET, LONG, empty, finish, hurry,
                               payload, quick,
                               slow)

HALF = LONG // 2
OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = OK + b"Content-Length: %d\r\n\r\n" % LONG
LAST = b"0\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
FORGED = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    p = LiveProxy(tmp_path_factory.mktemp("slow"), [RawOrigin],
                  {"proxy.workers": "1"}, role=("--maxconn", "1"))
    yield p
    close_all(p)


@pytest.fixture
def proxy(shared):
    shared.raw[0].reset()
    yield shared
    empty(shared)


def by_path(path, raw):
    """A script: these bytes to that path, "ok" to all others."""
    def script(sock, head, body):
        sock.sendall(raw if head.split(b" ")[1] == path else px.OK)
    return script


@pytest.mark.parametrize("then", ["fin", "reset"])
@pytest.mark.parametrize("kind", ["length", "chunked"])
def test_a_node_that_breaks_off(proxy, kind, then):
    """The client sees that it is not the whole, and nothing comes behind."""
    data = pattern(HALF)
    raw = (LENGTH + data if kind == "length" else
           CHUNKED + chunks(data)[:-len(LAST)])
    go = threading.Event()

    def script(sock, head, body):
        sock.sendall(raw)
        assert go.wait(muster.PATIENCE_S)
        if then == "reset":
            px.reset(sock)
        return False
    proxy.raw[0].script = script
    s = slow(proxy, "/x", b"")
    s.sendall(GET % (b"/next", CLOSE))
    muster.wait_for(lambda: worker(proxy)["spool_bytes"] > HALF // 4,
                    what="some of it put away")
    go.set()
    muster.wait_for(lambda: proxy.nodes()["n1"]["active"] == 0)
    with s:
        got, how = hurry(s)
    assert how == "reset" and px.statuses(got) == [200]
    assert not got.endswith(LAST)
    if kind == "length":
        assert data.startswith(got.partition(b"\r\n\r\n")[2])
    proxy.raw[0].script = None
    assert px.statuses(quick(proxy)) == [200]


@pytest.mark.parametrize("bad", [b"zz\r\n", b"-1\r\n", b"10\r\n" + b"x" * 18,
                                 b"fffffffffffffffff\r\n"])
def test_chunks_that_are_none(proxy, bad):
    raw = CHUNKED + chunks(pattern(HALF))[:-len(LAST)] + bad
    proxy.raw[0].script = by_path(b"/x", raw)
    s = slow(proxy, "/x", b"")
    s.sendall(GET % (b"/next", CLOSE))
    muster.wait_for(lambda: proxy.nodes()["n1"]["active"] == 0 and
                    proxy.raw[0].requests, what="the node to be let go")
    with s:
        got, how = hurry(s)
    assert how == "reset" and px.statuses(got) == [200]
    assert not got.endswith(LAST)
    assert px.statuses(quick(proxy)) == [200]


@pytest.mark.parametrize("kind", ["length", "chunked"])
def test_what_comes_behind_an_answer_is_nobodys(proxy, kind):
    """Neither the next client nor the next request of this one gets it."""
    data = pattern(LONG)
    raw = (LENGTH + data if kind == "length" else CHUNKED + chunks(data))
    proxy.raw[0].script = by_path(b"/x", raw + FORGED)
    s = slow(proxy, "/x", b"")
    s.sendall(GET % (b"/next", CLOSE))
    muster.wait_for(lambda: worker(proxy)["delivering"] == 1)
    for _ in range(3):
        assert quick(proxy).endswith(b"\r\n\r\nok")
    with s:
        got, how = hurry(s)
    assert how == "fin" and px.statuses(got) == [200, 200]
    assert got.endswith(b"\r\n\r\nok") and b"forged" not in got


def test_trailers_behind_a_stored_body(proxy):
    data = pattern(LONG)
    raw = CHUNKED + chunks(data)[:-2] + b"X-Sum: 17\r\nX-More: 1\r\n\r\n"
    proxy.raw[0].script = by_path(b"/x", raw)
    s = slow(proxy, "/x", b"")
    s.sendall(GET % (b"/next", CLOSE))
    muster.wait_for(lambda: worker(proxy)["delivering"] == 1)
    with s:
        got, how = hurry(s)
    assert how == "fin" and px.statuses(got) == [200, 200]
    first = got[:got.rindex(b"HTTP/1.1 200")]
    assert payload(first) == data


def test_heads_alone_between_stored_bodies(proxy):
    """HEAD and 304, which speak of a length and have no body."""
    data = pattern(LONG)
    proxy.raw[0].script = lambda sock, head, body: sock.sendall(
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"
        if b" /304 " in head else
        LENGTH if head.startswith(b"HEAD") else LENGTH + data)
    s = slow(proxy, "/x", b"")
    s.sendall(b"HEAD /h HTTP/1.1\r\nHost: a\r\n\r\n" + GET % (b"/304", b"") +
              GET % (b"/x", b"") + b"HEAD /h HTTP/1.1\r\nHost: a\r\n\r\n" +
              GET % (b"/x", CLOSE))
    muster.wait_for(lambda: worker(proxy)["delivering"] == 1)
    with s:
        got, how = hurry(s)
    assert how == "fin"
    bodies = got.split(data)
    assert [px.statuses(b) for b in bodies] == \
        [[200], [200, 304, 200], [200, 200], []]


def test_an_upgrade_while_it_is_stored(proxy):
    """The old workers leave when they have handed out what they keep."""
    data = pattern(LONG)
    proxy.raw[0].script = by_path(b"/x", LENGTH + data)
    crowd = [slow(proxy, "/x") for _ in range(4)]
    muster.wait_for(lambda: worker(proxy)["delivering"] == 4)
    muster.run(muster.program("proxyd"), "--state", proxy.state, "upgrade")
    assert px.statuses(quick(proxy)) == [200]
    for s in crowd:
        finish(s, data)
    proxy.adopt()
