"""Compression, buffering, bandwidth and TLS at once, before slow clients: the
bytes are the same, and no node waits."""

import random
import socket
import threading

import pytest

import muster
import proxy as px
import secure
from compressed import Answer, Chunks, some_text
from live_proxy import LiveProxy, RawOrigin, answers_at, close_all
from secure import TLS_PORT
from test_bodies import worker
from test_slow_clients import CLOSE, KINDS, MB, empty, hurry


def mixed(size):
    """Text whose every third piece does not compress."""
    rnd = random.Random(size)
    pieces, n = [], 0
    text = some_text(20_000)
    while n < size:
        pieces.append(rnd.randbytes(10_000) if len(pieces) % 3 == 0 else text)
        n += len(pieces[-1])
    return b"".join(pieces)[:size]


BODY = mixed(3 * MB)


def serve(sock, head, body):
    kind = head.split(b" ")[1][1:]
    start = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
    if kind == b"length":
        sock.sendall(start + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
    elif kind == b"chunked":
        sock.sendall(start + b"Transfer-Encoding: chunked\r\n\r\n")
        rnd, at = random.Random(1), 0
        while at < len(BODY):
            n = min(rnd.choice([1, 100, 9000, 200_000]), len(BODY) - at)
            sock.sendall(b"%x\r\n%s\r\n" % (n, BODY[at:at + n]))
            at += n
        sock.sendall(b"0\r\nX-Sum: 1\r\n\r\n")
    else:
        sock.sendall(start + b"Connection: close\r\n\r\n" + BODY)
        return False
    return None


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    p = LiveProxy(tmp_path_factory.mktemp("slow"), [RawOrigin],
                  {"proxy.workers": "1"}, role=("--maxconn", "1"))
    secure.give(p.ctl, "a", *secure.issued("a"))
    p.ctl("site", "set", "a", "--compress", "gzip,br")
    p.set({"proxy.https.listen": f"{p.address}:{TLS_PORT}"})
    muster.wait_for(lambda: answers_at(p.address, TLS_PORT), what="HTTPS")
    yield p
    close_all(p)


@pytest.fixture
def proxy(shared):
    shared.raw[0].reset()
    shared.raw[0].script = serve
    yield shared
    shared.ctl("site", "limit", "a", "--bandwidth", "off",
               "--client-bandwidth", "off")
    empty(shared)
    muster.wait_for(lambda: compressors(shared) == 0,
                    what="the compressors' memory")


def compressors(proxy):
    """Bytes of those that somebody has, as told now and then."""
    return sum(v for k, v in proxy.metrics().items()
               if k.startswith("muster_worker_compress_held"))


def slow(proxy, tls, *requests):
    """A client that has asked, and reads nothing yet."""
    s = socket.socket()
    s.settimeout(muster.PATIENCE_S)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
    s.connect((proxy.address, TLS_PORT if tls else proxy.PORT))
    if tls:
        s = secure.wrap(s, secure.authority().context())
    s.sendall(b"".join(requests))
    return s


def get(kind, coding, more=CLOSE):
    return (b"GET /%s HTTP/1.1\r\nHost: a\r\nAccept-Encoding: %s\r\n%s\r\n"
            % (kind.encode(), coding.encode(), more))


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("coding", ["gzip", "br"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_compressed_is_put_away(proxy, kind, coding, tls):
    """The node is free at once, and the client has every byte at last."""
    s = slow(proxy, tls, get(kind, coding))
    muster.wait_for(lambda: worker(proxy)["delivering"] == 1,
                    what="all of the response")
    muster.wait_for(lambda: proxy.nodes()["n1"]["active"] == 0
                    and compressors(proxy) == 0,
                    what="node and compressor to be free")
    with s:
        a = Answer(*hurry(s))
    assert a.how == "fin" and a.coding == coding and a.content == BODY


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_one_answer_behind_the_other(proxy, tls):
    """Pipelined: compressed, as it is, compressed again."""
    s = slow(proxy, tls, get("length", "gzip", b""),
             get("chunked", "identity", b""), get("chunked", "br", b""),
             get("length", "gzip"))
    muster.wait_for(lambda: worker(proxy)["delivering"] == 1,
                    what="all of the first response")
    with s:
        raw, how = hurry(s)
    assert how == "fin" and px.statuses(raw) == [200] * 4
    for coding in ("gzip", None, "br", "gzip"):
        head, _, rest = raw.partition(b"\r\n\r\n")
        end = len(head) + 4 + len(rest)
        if px.field(head, b"Transfer-Encoding"):
            chunks = Chunks()
            chunks.add(rest)
            end -= len(chunks.raw)
        a = Answer(raw[:end])
        raw = raw[end:]
        assert a.coding == coding and a.content == BODY
    assert raw == b""


@pytest.mark.parametrize("tls,limit", [(False, "--client-bandwidth"),
                                       (True, "--bandwidth")],
                         ids=["plain", "tls"])
def test_a_bandwidth_changes_no_byte(proxy, tls, limit):
    """Of several clients at once, each with a coding of its own; the limit
    holds the clients back, and no node."""
    proxy.ctl("site", "limit", "a", limit, "2M/s,burst=200K")
    proxy.await_revision()
    asked = [(kind, coding) for kind in KINDS
             for coding in ("gzip", "br", "identity")]
    crowd = [slow(proxy, tls, get(*a)) for a in asked]
    muster.wait_for(lambda: len(proxy.raw[0].requests) == len(asked)
                    and proxy.nodes()["n1"]["active"] == 0,
                    what="all of them taken from the node")
    proxy.ctl("site", "limit", "a", limit, "off")
    answers = [None] * len(crowd)

    def read(i):
        with crowd[i] as s:
            answers[i] = Answer(*hurry(s))
    readers = [threading.Thread(target=read, args=(i,))
               for i in range(len(crowd))]
    for r in readers:
        r.start()
    for r in readers:
        r.join(muster.PATIENCE_S)
    for (_, coding), a in zip(asked, answers):
        assert a.how == "fin" and a.content == BODY
        assert a.coding == (None if coding == "identity" else coding)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_whoever_leaves_in_the_middle_frees_all(proxy, tls):
    for coding in ("gzip", "br", "identity"):
        s = slow(proxy, tls, get("chunked", coding))
        muster.wait_for(lambda: worker(proxy)["delivering"] == 1)
        s.recv(5000)
        px.reset(s)
        empty(proxy)
