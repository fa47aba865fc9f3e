"""Slow clients that speak TLS: what was put away is encrypted when it goes,
and offered again as it was offered."""

import socket
import threading

import pytest

import muster
import proxy as px
import secure
from live_proxy import LiveProxy, RawOrigin, answers_at, close_all
from test_bodies import pattern, post, post_chunked, worker
from test_slow_clients import (CLOSE, GET, KINDS, LONG, MB, answer, empty,
                               hurry, payload)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    p = LiveProxy(tmp_path_factory.mktemp("slow"), [RawOrigin],
                  {"proxy.workers": "1"}, role=("--maxconn", "1"))
    secure.give(p.ctl, "a", *secure.issued("a"))
    p.set({"proxy.https.listen": f"{p.address}:{secure.TLS_PORT}"})
    muster.wait_for(lambda: answers_at(p.address, secure.TLS_PORT),
                    what="HTTPS")
    yield p
    close_all(p)


@pytest.fixture
def proxy(shared):
    shared.raw[0].reset()
    shared.raw[0].script = answer
    yield shared
    empty(shared)


def slow(proxy, *requests):
    s = socket.socket()
    s.settimeout(muster.PATIENCE_S)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
    s.connect((proxy.address, secure.TLS_PORT))
    s = secure.wrap(s, secure.authority().context())
    for request in requests:
        s.sendall(request)
    return s


@pytest.mark.parametrize("kind", KINDS)
def test_the_node_is_free_while_a_client_still_reads(proxy, kind):
    s = slow(proxy, GET % (b"/%s/%d" % (kind.encode(), LONG), CLOSE))
    muster.wait_for(lambda: worker(proxy)["delivering"] == 1,
                    what="all of the response")
    muster.wait_for(lambda: worker(proxy)["spool_bytes"] > MB)
    assert proxy.nodes()["n1"]["active"] == 0
    with s:
        got, how = hurry(s)
    assert how == "fin" and payload(got) == pattern(LONG)


@pytest.mark.parametrize("size", [1, 5000, 17000, 100000, 2000000])
def test_answers_behind_answers(proxy, size):
    """A head that finds the connection full, with a body of each size."""
    s = slow(proxy, *[GET % (b"/length/%d" % n, more) for n, more in (
        (LONG, b""), (size, b""), (size, b""), (size, CLOSE))])
    muster.wait_for(lambda: worker(proxy)["delivering"] == 1,
                    what="the first response")
    data = b""
    while len(data) < LONG // 2:  # bit by bit, then all
        data += s.recv(3000)
    with s:
        more, how = hurry(s)
    data += more
    assert px.statuses(data) == [200] * 4 and how == "fin"
    assert data.endswith(b"\r\n\r\n" + pattern(size))
    assert data.count(b"\r\n\r\n" + pattern(size)) >= 3


def test_many_at_once(proxy):
    wrong = []

    def one(i):
        size = 100000 * i + 1
        with slow(proxy, GET % (b"/%s/%d" % (KINDS[i % 3].encode(), size),
                                CLOSE)) as s:
            data = s.recv(1 + i * 100)
            data += hurry(s)[0]
        if payload(data) != pattern(size):
            wrong.append((i, len(data)))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(30)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(muster.PATIENCE_S)
        assert not t.is_alive()
    assert wrong == []


@pytest.mark.parametrize("kind", [post, post_chunked])
@pytest.mark.parametrize("size", [5, 70000, 3 * MB])
def test_bodies_arrive_whole(proxy, kind, size):
    proxy.raw[0].script = None
    body = pattern(size)
    with slow(proxy, kind(body, CLOSE)) as s:
        got, how = px.read_all(s)
    assert px.statuses(got) == [200] and how == "fin"
    (head, raw), = proxy.raw[0].requests
    assert raw == body
    assert px.field(head, b"Content-Length") == [b"%d" % size]
