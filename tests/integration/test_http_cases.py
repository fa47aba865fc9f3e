"""The byte-level cases of tests/fixtures/http_cases.md, rows A to H, sent
through a real proxyd to a scripted raw origin; what reaches either end is
compared.  Rows that need TLS are not here."""

import re
import socket
from pathlib import Path

import pytest

import muster
import proxy as px

G = b"GET / HTTP/1.1\r\nHost: a\r\n"
P = b"POST / HTTP/1.1\r\nHost: a\r\n"
C = P + b"Transfer-Encoding: chunked\r\n\r\n"
E = b"\r\n\r\n"
R = b"HTTP/1.1 200 OK\r\n"
HOST = b"\r\nHost: a" + E
LAST = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
TIMEOUTS = {"proxy.header_timeout": "1s", "proxy.response_timeout": "2s"}


@pytest.fixture(scope="module")
def shared_proxy(tmp_path_factory):
    # Bodies as they come; test_bodies.py has those that are collected.
    p = px.Proxy(tmp_path_factory.mktemp("proxy"), settings=TIMEOUTS,
                 site=("--request-buffering", "off"))
    yield p
    wrong = p.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.fixture
def proxy(shared_proxy):
    shared_proxy.reset()
    yield shared_proxy
    for origin in shared_proxy.origins:
        origin.drop()


def line(request):
    return request[0].split(b"\r\n")[0]


# ---- refusals: (row, bytes, status); nothing reaches the node ----

REFUSED = [
    ("A2", b"\r\n" * 5 + G + b"\r\n", 400),
    ("A3", b"GET  / HTTP/1.1" + HOST, 400),
    ("A3", b"GET\t/ HTTP/1.1" + HOST, 400),
    ("A3", b"GET / HTTP/1.1 " + HOST, 400),
    ("A3", b"GET\x0b/ HTTP/1.1" + HOST, 400),
    ("A5", b"GET / http/1.1" + HOST, 400),
    ("A5", b"GET / HTTP/1.10" + HOST, 400),
    ("A5", b"GET / HTTP/01.1" + HOST, 400),
    ("A5", b"GET / HTTP/1" + HOST, 400),
    ("A5", b"GET / HTTP/\r\r1.1" + HOST, 400),
    ("A7", b"GET / HTTP/2.0" + HOST, 505),
    ("A7", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ("A8", b"GET /\r\n", 400),
    ("A8", b"GET /\nHTTP/1.1\r\n\r\n", 400),
    ("A9", b'G=":<>(e),[T];?" /get HTTP/1.1' + HOST, 400),
    ("A9", b" / HTTP/1.1" + HOST, 400),
    ("A11", b"M" * 40 + b" / HTTP/1.1" + HOST, 501),
    ("A12", b"GET /" + b"x" * 8192 + b" HTTP/1.1" + HOST, 414),
    ("A16", b"GET http://u:p@a/ HTTP/1.1" + HOST, 400),
    ("A16", b"GET ftp://a/ HTTP/1.1" + HOST, 400),
    ("A16", b"GET http:///x HTTP/1.1" + HOST, 400),
    ("A17", b"GET /a#x HTTP/1.1" + HOST, 400),
    ("A19", b"CONNECT a:443 HTTP/1.1" + HOST + G + b"\r\n", 405),
    ("A20", b"TRACE / HTTP/1.1" + HOST, 405),
    ("A22", b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1" + HOST, 400),
    ("A22", b"GET /a/../../b HTTP/1.1" + HOST, 400),
    ("B1", b"GET / HTTP/1.1" + E, 400),
    ("B2", G + b"Host: a\r\n\r\n", 400),
    ("B2", G + b"Host: b\r\n\r\n", 400),
    ("B4", b"GET / HTTP/1.1\r\nHost:" + E, 400),
    ("B5", b"GET / HTTP/1.0" + E, 400),
    ("B7", b"GET / HTTP/1.1\r\n Host: a" + E, 400),
    ("B7", b"GET / HTTP/1.1\r\nHost : a" + E, 400),
    ("B7", G + b"X: y\r\n Host: b\r\n\r\n", 400),
    ("C1", P + b"Content-Length : 5\r\n\r\nhello", 400),
    ("C2", b"GET / HTTP/1.1\r\n\tX: 1" + HOST, 400),
    ("C3", G + b"X: 1\r\n 2\r\n\r\n", 400),
    ("C3", P + b"Transfer-Encoding:\r\n chunked\r\n\r\n0" + E, 400),
    ("C4", G + b": v\r\n\r\n", 400),
    ("C4", G + b":\r\nI: cut\r\n\r\n", 400),
    ("C6", G + b"Na me: v\r\n\r\n", 400),
    ("C6", G + b"Na\x00me: v\r\n\r\n", 400),
    ("C6", G + b"Na\x80me: v\r\n\r\n", 400),
    ("C6", G + b"Na(me: v\r\n\r\n", 400),
    ("C7", G + b"X: a\x00b\r\n\r\n", 400),
    ("C9", b"GET / HTTP/1.1\nHost: a\n\n", 400),
    ("C9", P + b"x:x\nTransfer-Encoding: chunked\r\n\r\n0" + E, 400),
    ("C14", G + b"".join(b"X%d: y\r\n" % i for i in range(100)) + b"\r\n",
     431),
    ("C14", G + (b"X: " + b"y" * 8000 + b"\r\n") * 9 + b"\r\n", 431),
    ("C14", G + b"X: " + b"y" * 16384 + b"\r\n\r\n", 431),
    ("D1", P + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0"
     + E, 400),
    ("D1", P + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0"
     + E, 400),
    ("D2", b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked"
     b"\r\n\r\n0" + E, 400),
    ("D4", P + b"Transfer-Encoding: gzip, chunked\r\n\r\n0" + E, 501),
    ("D4", P + b"Transfer-Encoding: deflate, chunked\r\n\r\n0" + E, 501),
    *[("D5", P + b"Transfer-Encoding: " + te + b"\r\n\r\n0" + E, 400)
      for te in (b"chunked, identity", b"identity", b"xchunked",
                 b"chunkedchunked", b"gzip", b"cow")],
    *[("D7", P + b"Transfer-Encoding: " + te + b"\r\n\r\n0" + E, 400)
      for te in (b"\x0bchunked", b"\x0cchunked", b"\xa0chunked",
                 b"chunked\x00")],
    ("D9", P + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
    ("D9", P + b"Content-Length: 5, 6\r\n\r\nhello", 400),
    ("D11", P + b"Content-Length:\r\n\r\n", 400),
    ("D11", P + b"Content-Length:\r\nContent-Length: 5\r\n\r\nhello", 400),
    ("D14", P + b"Content-Length: 18446744073709551621\r\n\r\n", 400),
    ("D14", P + b"Content-Length: " + b"0" * 39 + b"5\r\n\r\n", 400),
    ("D14", P + b"Content-Length: 9223372036854775807\r\n\r\n", 413),
    ("G4", P + b"Content-Length: 5\r\nExpect: x\r\n\r\n", 417),
    ("G4", P + b"Content-Length: 5\r\nExpect: y 100-continue\r\n\r\n", 417),
    ("G4", P + b"Content-Length: 5\r\nExpect: 100-continue, z\r\n\r\n", 417),
    ("G4", G + b"Expect: 100-continue\r\n\r\n", 417),
    ("G11", G + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 400),
]


@pytest.mark.parametrize("row, sent, status", REFUSED,
                         ids=[f"{i}-{c[0]}" for i, c in enumerate(REFUSED)])
def test_refused(proxy, row, sent, status):
    got, how = proxy.talk(sent)
    assert px.statuses(got) == [status]
    assert how == "fin", "the answer must not be lost to a reset"
    head = got.partition(E)[0]
    assert px.field(head, b"Connection") == [b"close"]
    if status == 405:
        assert px.field(head, b"Allow")
    assert not proxy.origin.requests


# A body that turns out wrong: the node's connection is cut, the client told.
BAD_BODY = [
    ("E2", C + b"5\nhello\r\n0" + E),
    ("E2", C + b"5\r\nhello\n0" + E),
    ("E2", C + b"0\n\r\n"),
    ("E2", C + b"0\r\n\n"),
    ("E4", C + b"5;\nx\r\nhello\r\n0" + E),
    ("E6", C + b'5;a="x\r\n0\r\n\r\n"\r\nhello\r\n0' + E),
    ("E9", C + b"5;a=" + b"x" * 4096 + b"\r\nhello\r\n0" + E),
    ("E9", C + (b"1;a=" + b"x" * 1000 + b"\r\nh\r\n") * 17 + b"0" + E),
    ("E11", C + b"10000000000000005\r\nhello\r\n0" + E),
    ("E11", C + b"ffffffffffffffff\r\nhello\r\n0" + E),
    ("E11", C + b"0" * 200 + b"5\r\nhello\r\n0" + E),
    ("E15", C + b"0\r\n" + b"X: y\r\n" * 33 + b"\r\n"),
    ("E15", C + b"0\r\nX: " + b"y" * 8192 + E),
]


@pytest.mark.parametrize("row, sent", BAD_BODY,
                         ids=[f"{i}-{c[0]}" for i, c in enumerate(BAD_BODY)])
@pytest.mark.parametrize("pieces", ["whole", "head first"])
def test_bad_body(proxy, row, sent, pieces):
    if pieces == "whole":
        got, _ = proxy.talk(sent)
    else:
        with proxy.connect() as s:
            s.sendall(C)
            muster.wait_for(lambda: proxy.origin.connections,
                            what="the head at the node")
            s.sendall(sent[len(C):])
            got, _ = px.read_all(s)
    assert px.statuses(got) == [400]
    # Whatever reached the node was no whole request.
    assert not proxy.origin.requests


# ---- forwarded: (row, bytes, request line, raw body, fields that must be
# there, fields that must not) ----

FORWARDED = [
    ("A1", G + b"\r\n", b"GET / HTTP/1.1", b"", [b"Host: a"], []),
    ("A2", b"\r\n" + G + b"\r\n", b"GET / HTTP/1.1", b"", [b"Host: a"], []),
    ("A6", b"GET / HTTP/1.2" + HOST, b"GET / HTTP/1.1", b"", [], []),
    ("A10", b"get / HTTP/1.1" + HOST, b"get / HTTP/1.1", b"", [], []),
    ("A12", b"GET /" + b"x" * 7999 + b" HTTP/1.1" + HOST,
     b"GET /" + b"x" * 7999 + b" HTTP/1.1", b"", [], []),
    ("A14", b"OPTIONS * HTTP/1.1" + HOST, b"OPTIONS * HTTP/1.1", b"",
     [b"Host: a"], []),
    ("A14", b"OPTIONS http://a HTTP/1.1" + HOST, b"OPTIONS * HTTP/1.1", b"",
     [b"Host: a"], []),
    ("A15", b"GET http://b/x HTTP/1.1" + HOST, b"GET /x HTTP/1.1", b"",
     [b"Host: b"], [b"Host: a"]),
    ("A15", b"GET http://b?x HTTP/1.1" + HOST, b"GET /?x HTTP/1.1", b"",
     [b"Host: b"], []),
    ("A21", b"GET //evil.example/x HTTP/1.1" + HOST,
     b"GET //evil.example/x HTTP/1.1", b"", [b"Host: a"], []),
    ("A22", b"GET /a/../%2e/b HTTP/1.1" + HOST,
     b"GET /a/../%2e/b HTTP/1.1", b"", [], []),
    ("A24", b"GET /..;/manager/html HTTP/1.1" + HOST,
     b"GET /..;/manager/html HTTP/1.1", b"", [], []),
    ("C11", G + b"X: \xffa\x85\r\n\r\n", b"GET / HTTP/1.1", b"",
     [b"X: \xffa\x85"], []),
    ("C12", G + b"X:a\r\n\r\n", b"GET / HTTP/1.1", b"", [b"X: a"], [b"X:a"]),
    ("C12", G + b"X: \t a \t\r\n\r\n", b"GET / HTTP/1.1", b"", [b"X: a"],
     []),
    ("C13", P + b"Content_Length: 5\r\nContent-Length: 2\r\n\r\nhi",
     b"POST / HTTP/1.1", b"hi", [b"Content-Length: 2"],
     [b"Content_Length: 5"]),
    ("C13", P + b"Transfer_Encoding: chunked\r\n\r\n", b"POST / HTTP/1.1",
     b"", [], [b"Transfer_Encoding: chunked"]),
    ("D8", P + b"tRANSFER-eNCODING: Chunked\r\n\r\n0" + E,
     b"POST / HTTP/1.1", b"0\r\n\r\n", [b"Transfer-Encoding: chunked"], []),
    ("D16", G + b"Content-Length: 5\r\n\r\nhello", b"GET / HTTP/1.1",
     b"hello", [b"Content-Length: 5"], []),
    *[("D16", m + b" / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
       m + b" / HTTP/1.1", b"hello", [b"Content-Length: 5"], [])
      for m in (b"OPTIONS", b"DELETE")],
    ("E1", C + b"5\r\nhello\r\n0" + E, b"POST / HTTP/1.1",
     b"5\r\nhello\r\n0\r\n\r\n", [b"Transfer-Encoding: chunked"], []),
    ("E1", C + b"A\r\n0123456789\r\n000" + E, b"POST / HTTP/1.1",
     b"a\r\n0123456789\r\n0\r\n\r\n", [], []),
    ("E7", C + b'5;foo=bar;q="z"\r\nhello\r\n0' + E, b"POST / HTTP/1.1",
     b"5\r\nhello\r\n0\r\n\r\n", [], []),
    ("E12", C + b"0\r\nX-Sum: 1\r\n\r\n", b"POST / HTTP/1.1", b"0\r\n\r\n",
     [], [b"X-Sum: 1"]),
    ("E14", C + b"0\r\nX:POST / HTTP/1.1" + E, b"POST / HTTP/1.1",
     b"0\r\n\r\n", [], []),
    ("F3", G + b"Keep-Alive: x\r\nProxy-Connection: x\r\nTE: gzip\r\n"
     b"Upgrade: x\r\nTrailer: y\r\n\r\n", b"GET / HTTP/1.1", b"", [],
     [b"Keep-Alive: x", b"Proxy-Connection: x", b"TE: gzip", b"Upgrade: x",
      b"Trailer: y"]),
    ("F5", G + b"X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: https\r\n"
     b"X-Forwarded-Host: evil\r\nForwarded: for=1.1.1.1\r\n"
     b"X-Real-IP: 1.1.1.1\r\n\r\n", b"GET / HTTP/1.1", b"",
     [b"X-Forwarded-For: 127.0.0.1", b"X-Forwarded-Proto: SCHEME",
      b"X-Forwarded-Host: a", b"X-Real-IP: 127.0.0.1"],
     [b"Forwarded: for=1.1.1.1", b"X-Forwarded-For: 1.1.1.1",
      b"X-Real-IP: 1.1.1.1"]),
    ("F5", G + b"X-Forwarded-Port: 1\r\nx-fORWARDED-pREFIX: /evil\r\n"
     b"X-Forwarded: 1\r\n\r\n", b"GET / HTTP/1.1", b"",
     [b"X-Forwarded: 1"],
     [b"X-Forwarded-Port: 1", b"x-fORWARDED-pREFIX: /evil"]),
    ("F6", G + b"Via: 1.1 other\r\n\r\n", b"GET / HTTP/1.1", b"",
     [b"Via: 1.1 other", b"Via: 1.1 muster"], []),
    ("F7", b"OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 3" + E,
     b"OPTIONS / HTTP/1.1", b"", [b"Max-Forwards: 2"],
     [b"Max-Forwards: 3"]),
    ("G9", G + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
     b"HTTP2-Settings: AAMA\r\n\r\n", b"GET / HTTP/1.1", b"", [],
     [b"Upgrade: h2c", b"HTTP2-Settings: AAMA", b"Connection: Upgrade"]),
    ("G9", G + b"Connection: Upgrade\r\nUpgrade: foo\r\nUpgrade: h2c\r\n"
     b"\r\n", b"GET / HTTP/1.1", b"", [], [b"Upgrade: h2c",
                                           b"Upgrade: foo"]),
    ("G11", P + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
     b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
     b"POST / HTTP/1.1", b"", [], [b"Upgrade: websocket"]),
    ("httpoxy", G + b"Proxy: evil\r\n\r\n", b"GET / HTTP/1.1", b"", [],
     [b"Proxy: evil"]),
]


@pytest.mark.parametrize(
    "row, sent, first, body, there, gone", FORWARDED,
    ids=[f"{i}-{c[0]}" for i, c in enumerate(FORWARDED)])
def test_forwarded(proxy, row, sent, first, body, there, gone):
    got, how = proxy.talk(sent + LAST)
    assert px.statuses(got) == [200, 200] and how == "fin"
    (head, raw), last = proxy.origin.requests
    lines = head.split(b"\r\n")
    assert lines[0] == first
    assert raw == body
    for wanted in there:
        wanted = wanted.replace(b"SCHEME", proxy.SCHEME)
        assert lines.count(wanted) == 1, (wanted, head)
    for unwanted in gone:
        assert unwanted not in lines, head
    assert len(px.field(head, b"Host")) == 1
    ids = px.field(head, b"X-Request-Id")
    assert len(ids) == 1 and re.fullmatch(rb"[0-9a-f]{32}", ids[0])
    assert line(last) == b"GET /last HTTP/1.1"


@pytest.mark.parametrize("sent", [c[1] for c in FORWARDED],
                         ids=[f"{i}-{c[0]}" for i, c in enumerate(FORWARDED)])
def test_forwarded_byte_by_byte(proxy, sent):
    """The same requests in many pieces reach the node as the same."""
    proxy.talk(sent + LAST)
    whole = proxy.origin.requests
    proxy.reset()
    step = max(1, len(sent) // 200)
    proxy.talk(*[sent[i:i + step] for i in range(0, len(sent), step)], LAST)
    for (head, raw), (head2, raw2) in zip(whole, proxy.origin.requests):
        def drop(h):
            return re.sub(rb"X-Request-Id: \w+", b"", h)
        assert drop(head) == drop(head2)
        assert unchunked(raw) == unchunked(raw2)


def unchunked(raw):
    """The payload, if it is chunked (pieces may differ)."""
    if not re.match(rb"[0-9a-f]+\r\n", raw):
        return raw
    data = b""
    while raw:
        size, _, raw = raw.partition(b"\r\n")
        data, raw = data + raw[:int(size, 16)], raw[int(size, 16) + 2:]
    return data


# ---- single rows ----

def test_B9_an_unknown_site_goes_nowhere(proxy):
    got, _ = proxy.talk(b"GET / HTTP/1.1\r\nHost: nobody.a\r\n"
                        b"Connection: close" + E)
    assert px.statuses(got) == [421]
    assert not proxy.origin.requests


def test_B5_http10_without_host_takes_the_default_site(proxy):
    proxy.ctl("set", "proxy.default_site", "b")
    try:
        muster.wait_for(lambda: px.statuses(
            proxy.talk(b"GET / HTTP/1.0" + E)[0]) == [200],
            what="the default site")
        assert px.field(proxy.origin.requests[-1][0], b"Host") == [b"b"]
    finally:
        proxy.ctl("set", "proxy.default_site", "none")
        muster.wait_for(lambda: px.statuses(
            proxy.talk(b"GET / HTTP/1.0" + E)[0]) == [400],
            what="no default site")


def test_C16_a_slow_head_has_an_absolute_deadline(proxy):
    with proxy.connect() as s:
        s.settimeout(0.2)
        got, sent = b"", 0
        while not got and sent < 200:
            s.sendall(b"GET / HT"[sent:sent + 1] or b"P")
            sent += 1
            try:
                got = s.recv(65536)
            except TimeoutError:
                pass
    assert px.statuses(got) == [408]


def test_C17_same_names_keep_their_order(proxy):
    proxy.talk(G + b"Cookie: a=1\r\nCookie: b=2\r\n\r\n" + LAST)
    assert px.field(proxy.origin.requests[0][0], b"Cookie") == [b"a=1",
                                                               b"b=2"]


def test_D15_a_post_without_length_has_no_body(proxy):
    got, _ = proxy.talk(P + b"\r\nGET /2" + LAST[9:])
    assert px.statuses(got) == [200, 200]
    assert [line(r) for r in proxy.origin.requests] == [
        b"POST / HTTP/1.1", b"GET /2 HTTP/1.1"]


def test_D17_an_unread_body_is_never_a_request(proxy):
    evil = b"GET /evil HTTP/1.1\r\nHost: a\r\n\r\n"
    got, how = proxy.talk(
        b"POST / HTTP/1.1\r\nHost: nobody\r\nContent-Length: %d\r\n\r\n"
        % len(evil) + evil)
    assert px.statuses(got) == [421] and how == "fin"
    assert not proxy.origin.requests


def test_D18_an_early_answer_ends_the_connection(proxy):
    def script(sock, head, body):
        raise AssertionError("the body never comes")

    # The node answers as soon as it has the head.
    def serve(sock):
        px.read_head(sock)
        sock.sendall(b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno")
        px.read_all(sock)
    # The rest is read out: a reset might destroy the answer.  After two
    # seconds it is not, which may be over on a slow machine.
    def outlives_its_body():
        with proxy.connect() as s:
            s.sendall(P + b"Content-Length: 100000\r\n\r\nhello")
            got, _ = px.read_all(s)
            assert px.statuses(got) == [401] and got.endswith(b"no")
            assert px.field(got.partition(E)[0], b"Connection") == [b"close"]
            try:
                for _ in range(4):
                    s.sendall(bytes(10000))
                return s.recv(1) == b""
            except OSError:
                return False
    proxy.origin._serve, saved = serve, proxy.origin._serve
    try:
        assert any(outlives_its_body() for _ in range(5))
    finally:
        proxy.origin._serve = saved


def test_D19_a_cut_body_is_not_padded(proxy):
    got, _ = proxy.talk(P + b"Content-Length: 5\r\n\r\nhel", fin=True)
    assert px.statuses(got) == []
    muster.wait_for(lambda: proxy.origin.cut, what="the cut request")
    assert not proxy.origin.requests


def test_E16_a_cut_chunked_body_gets_no_last_chunk(proxy):
    seen = []

    def serve(sock):
        seen.append(px.read_all(sock)[0])
        sock.close()
    proxy.origin._serve, saved = serve, proxy.origin._serve
    try:
        proxy.talk(C + b"5\r\nhello", fin=True)
        muster.wait_for(lambda: seen, what="the end at the node")
    finally:
        proxy.origin._serve = saved
    assert b"hello" in seen[0] and not seen[0].endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("chunked", [False, True])
def test_D20_the_site_limits_bodies(proxy, chunked):
    proxy.ctl("site", "set", "b", "--max-body", "1000")

    def refused():
        head = b"POST / HTTP/1.1\r\nHost: b\r\n"
        if chunked:
            sent = (head + b"Transfer-Encoding: chunked\r\n\r\n7d0\r\n"
                    + b"x" * 2000 + b"\r\n0" + E)
        else:
            sent = head + b"Content-Length: 2000\r\n\r\n" + b"x" * 2000
        return px.statuses(proxy.talk(sent + LAST)[0])[:1] == [413]
    muster.wait_for(refused, what="413")


def test_E17_pipelined_requests_are_answered_in_order(proxy):
    proxy.origin.script = lambda sock, head, body: sock.sendall(
        R + b"Content-Length: 1\r\n\r\n" + head.split(b" ")[1][-1:])
    got, _ = proxy.talk(
        C + b"0" + E
        + b"".join(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % i
                   for i in range(1, 8)) + LAST)
    assert px.statuses(got) == [200] * 9
    assert [m[-1:] for m in got.split(R)[1:]] == [
        b"/", *b"1 2 3 4 5 6 7".split(), b"t"]


def test_E18_big_chunks_and_bodies(proxy):
    """Larger than any buffer or pipe, both ways."""
    size = 5 << 20

    def script(sock, head, body):
        payload = unchunked(body)
        assert payload == b"u" * size
        sock.sendall(R + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % size
                     + b"d" * size + b"\r\n0" + E)
    proxy.origin.script = script
    got, _ = proxy.talk(P + b"Connection: close\r\nTransfer-Encoding: chunked"
                        b"\r\n\r\n%x\r\n" % size + b"u" * size + b"\r\n0" + E)
    head, _, body = got.partition(E)
    assert unchunked(body) == b"d" * size


def test_F1_what_connection_names_stays_behind(proxy):
    got, how = proxy.talk(G + b"Connection: close, X-Foo\r\nX-Foo: 1\r\n"
                          b"X-Bar: 2\r\n\r\n" + G + b"\r\n")
    assert px.statuses(got) == [200] and how == "fin"
    (head, _), = proxy.origin.requests
    assert b"X-Foo" not in head and b"X-Bar: 2" in head
    assert not px.field(head, b"Connection")


def test_F5_a_trusted_peer_is_appended_to(proxy):
    proxy.ctl("set", "proxy.trusted", "127.0.0.1", "10.0.0.0/8")
    sent = (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
            b"X-Forwarded-For: 6.6.6.6, 1.2.3.4\r\n"
            b"X-Forwarded-For: 10.1.1.1\r\nX-Forwarded-Proto: https\r\n"
            b"X-Forwarded-Port: 443\r\n"
            b"X-Request-Id: kept-1\r\nForwarded: for=1.2.3.4\r\n\r\n")

    def trusted():
        proxy.talk(sent)
        head = proxy.origin.requests[-1][0]
        return px.field(head, b"X-Request-Id") == [b"kept-1"] and head
    try:
        head = muster.wait_for(trusted, what="trust")
    finally:
        proxy.ctl("set", "proxy.trusted", "none")
    assert px.field(head, b"X-Forwarded-For") == [
        b"6.6.6.6, 1.2.3.4, 10.1.1.1, 127.0.0.1"]
    assert px.field(head, b"X-Real-IP") == [b"1.2.3.4"]
    assert px.field(head, b"X-Forwarded-Proto") == [b"https"]
    assert px.field(head, b"X-Forwarded-Port") == [b"443"]
    assert px.field(head, b"Forwarded") == [b"for=1.2.3.4, for=127.0.0.1"]
    muster.wait_for(lambda: not trusted(), what="no trust")


def test_F6_a_loop_is_seen(proxy):
    got, _ = proxy.talk(G + b"Via: 1.1 muster, 1.1 x, 1.1 muster\r\n"
                        b"Via: 1.1 muster (x)\r\n\r\n" + LAST)
    assert px.statuses(got) == [508, 200]
    assert len(proxy.origin.requests) == 1


def test_F7_no_forwards_are_answered_here(proxy):
    got, _ = proxy.talk(b"OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0"
                        + E + LAST)
    assert px.statuses(got) == [200, 200]
    assert [line(r) for r in proxy.origin.requests] == [
        b"GET /last HTTP/1.1"]


def test_F8_nothing_follows_a_close(proxy):
    got, _ = proxy.talk(G + b"Connection: close\r\n\r\n" + G + b"\r\n")
    assert px.statuses(got) == [200]
    assert len(proxy.origin.requests) == 1


def test_F9_http10_is_closed(proxy):
    got, how = proxy.talk(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n"
                          b"Host: a" + E)
    assert px.statuses(got) == [200] and how == "fin"


def test_F10_an_error_is_not_lost_to_unread_input(proxy):
    got, how = proxy.talk(b"GET / HTTP/1.1\r\nbad line\r\n" + b"x" * 100000)
    assert px.statuses(got) == [400] and how == "fin"


def use_pooled(proxy):
    """Leaves one idle connection to the node in the pool."""
    proxy.talk(LAST)
    n = proxy.origin.connections
    proxy.talk(LAST)
    assert proxy.origin.connections == n, "the pool is not used"
    proxy.origin.requests.clear()


@pytest.mark.parametrize("method, body, again", [
    (b"POST", b"hello", False), (b"PATCH", b"hello", False),
    (b"GET", b"", True), (b"HEAD", b"", True), (b"OPTIONS", b"", True),
    (b"PUT", b"hello", True), (b"DELETE", b"", True)])
def test_F11_a_dead_pooled_connection(proxy, method, body, again):
    use_pooled(proxy)
    n = []

    def script(sock, head, body):
        n.append(1)
        if len(n) == 1:
            px.reset(sock)
            return False
        sock.sendall(R + b"Content-Length: 0\r\n\r\n")
        return True
    proxy.origin.script = script
    got, _ = proxy.talk(method + b" / HTTP/1.1\r\nHost: a\r\n"
                        b"Connection: close\r\nContent-Length: %d\r\n\r\n"
                        % len(body) + body)
    assert px.statuses(got) == [200 if again else 502]
    assert len(proxy.origin.requests) == (2 if again else 1)


def test_F13_a_half_closed_client_is_answered(proxy):
    got, _ = proxy.talk(G + b"\r\n", fin=True)
    assert px.statuses(got) == [200] and got.endswith(b"ok")


# ---- G ----

def test_G1_the_nodes_100_is_relayed(proxy):
    def serve(sock):
        px.read_head(sock)
        sock.sendall(b"HTTP/1.1 100 Continue" + E)
        assert sock.recv(5) == b"hello"
        sock.sendall(px.OK)
        px.read_all(sock)
    proxy.origin._serve, saved = serve, proxy.origin._serve
    try:
        with proxy.connect() as s:
            s.sendall(P + b"Content-Length: 5\r\nExpect: 100-continue\r\n"
                      b"Connection: close\r\n\r\n")
            head, rest = px.read_head(s)
            assert head.startswith(b"HTTP/1.1 100 ")
            s.sendall(b"hello")
            got = rest + px.read_all(s)[0]
    finally:
        proxy.origin._serve = saved
    assert px.statuses(got) == [200] and got.endswith(b"ok")


def test_G3_http10_knows_no_expectations(proxy):
    proxy.origin.script = px.say(b"HTTP/1.1 100 Continue" + E + px.OK)
    got, _ = proxy.talk(b"POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\n"
                        b"Expect: 100-continue\r\n\r\nhello")
    assert px.statuses(got) == [200]
    assert not px.field(proxy.origin.requests[0][0], b"Expect")


def test_G5_early_hints(proxy):
    proxy.origin.script = px.say(
        b"HTTP/1.1 103 Early Hints\r\nLink: x" + E + px.OK)
    got, _ = proxy.talk(LAST)
    assert px.statuses(got) == [103, 200] and b"Link: x" in got
    got, _ = proxy.talk(b"GET / HTTP/1.0\r\nHost: a" + E)
    assert px.statuses(got) == [200]


def test_G6_interim_responses_without_end(proxy):
    proxy.origin.script = px.say(
        b"HTTP/1.1 102 Processing\r\n\r\n" * 1000 + px.OK)
    got, _ = proxy.talk(LAST)
    assert px.statuses(got) == [102] * 16 + [502]


def test_G7_no_tunnel_without_101(proxy):
    got, _ = proxy.talk(G + b"Connection: Upgrade\r\nUpgrade: foo\r\n\r\n"
                        + LAST)
    assert px.statuses(got) == [200, 200]
    head = proxy.origin.requests[0][0]
    assert px.field(head, b"Upgrade") == [b"foo"]
    assert px.field(head, b"Connection") == [b"Upgrade"]


def test_G11_http10_does_not_upgrade(proxy):
    got, _ = proxy.talk(b"GET / HTTP/1.0\r\nHost: a\r\nConnection: Upgrade\r\n"
                        b"Upgrade: websocket" + E)
    assert px.statuses(got) == [200]
    assert not px.field(proxy.origin.requests[0][0], b"Upgrade")


WEBSOCKET = (G + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
             b"Sec-WebSocket-Version: 13\r\n"
             b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
ACCEPT = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
          b"Upgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n")


@pytest.mark.parametrize("answer", [
    ACCEPT % b"s3pPLMBiTxaQ9kYGzzhZRbK+xOp=",
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\n\r\n",
    (ACCEPT % b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=").replace(b"websocket", b"foo"),
])
def test_G12_a_wrong_101(proxy, answer):
    proxy.origin.script = px.say(answer)
    got, _ = proxy.talk(WEBSOCKET)
    assert px.statuses(got) == [502]


def test_G12_an_unasked_101(proxy):
    proxy.origin.script = px.say(ACCEPT % b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    assert px.statuses(proxy.talk(LAST)[0]) == [502]


@pytest.mark.parametrize("first", ["client", "node"])
def test_G14_a_tunnel(proxy, first):
    def serve(sock):
        px.read_head(sock)
        sock.sendall(ACCEPT % b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" + b"first")
        while data := sock.recv(65536):
            sock.sendall(data.upper())
            if data.endswith(b"bye"):
                break
        sock.shutdown(socket.SHUT_WR)
        px.read_all(sock)
        sock.close()
    proxy.origin._serve, saved = serve, proxy.origin._serve
    try:
        with proxy.connect() as s:
            s.sendall(WEBSOCKET + b"early")
            head, rest = px.read_head(s)
            assert head.startswith(b"HTTP/1.1 101 ")
            assert px.field(head, b"Sec-WebSocket-Accept")
            s.sendall(b"-late" + (b"-bye" if first == "node" else b""))
            if first == "client":
                s.shutdown(socket.SHUT_WR)
            got, how = px.read_all(s)
    finally:
        proxy.origin._serve = saved
    assert rest + got == (b"firstEARLY-LATE-BYE" if first == "node"
                          else b"firstEARLY-LATE")
    assert how == "fin"


# ---- H: what a node may send ----

GARBAGE = [
    ("H1", R + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0"
     + E),
    ("H3", R + b"X: a\r\n b\r\nContent-Length: 0" + E),
    ("H12", R + b"X: a\x00\r\nContent-Length: 0" + E),
    ("H12", R + b"X: a\rb\r\nContent-Length: 0" + E),
    ("H12", R + b"X(: a\r\nContent-Length: 0" + E),
    ("H12", R + (b"X: " + b"y" * 8000 + b"\r\n") * 9 + b"\r\n"),
    ("H12", b"SSH-2.0-OpenSSH\r\n\r\n"),
    ("H12", R + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
]


@pytest.mark.parametrize("row, answer", GARBAGE,
                         ids=[f"{i}-{c[0]}" for i, c in enumerate(GARBAGE)])
def test_garbage_is_502(proxy, row, answer):
    proxy.origin.script = px.say(answer)
    got, how = proxy.talk(LAST)
    assert px.statuses(got) == [502] and how == "fin"
    n = proxy.origin.connections
    proxy.origin.script = None
    assert px.statuses(proxy.talk(LAST)[0]) == [200]
    assert proxy.origin.connections == n + 1, "it was pooled"


def test_H4_space_before_the_colon_is_taken_off(proxy):
    proxy.origin.script = px.say(R + b"Name : v\r\nContent-Length: 0" + E)
    assert b"\r\nName: v\r\n" in proxy.talk(LAST)[0]


def test_H5_head_has_no_body(proxy):
    proxy.origin.script = lambda sock, head, body: sock.sendall(
        R + b"Content-Length: 100\r\n\r\n" if head.startswith(b"HEAD")
        else px.OK)
    got, _ = proxy.talk(b"HEAD / HTTP/1.1" + HOST + LAST)
    assert px.statuses(got) == [200, 200]
    assert px.field(got.partition(E)[0], b"Content-Length") == [b"100"]
    assert got.endswith(b"ok") and proxy.origin.connections == 1


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_H5_statuses_without_a_body(proxy, status):
    proxy.origin.script = lambda sock, head, body: sock.sendall(
        px.OK if b"/last" in head else b"HTTP/1.1 " + status + E)
    got, _ = proxy.talk(G + b"\r\n" + LAST)
    assert px.statuses(got) == [int(status[:3]), 200]


def test_H7_a_body_until_the_end_is_framed_anew(proxy):
    proxy.origin.script = px.say(R + b"\r\ndata", then=False)
    got, how = proxy.talk(LAST)
    head, _, body = got.partition(E)
    assert px.field(head, b"Transfer-Encoding") == [b"chunked"]
    assert body.endswith(b"0\r\n\r\n") and unchunked(body) == b"data"
    got, how = proxy.talk(b"GET / HTTP/1.0\r\nHost: a" + E)
    assert got.endswith(E + b"data") and how == "fin"
    assert b"chunked" not in got


@pytest.mark.parametrize("minor", [b"0", b"1"])
def test_H8_a_reset_is_no_end(proxy, minor):
    proxy.origin.script = px.say(R + b"\r\ndata", then="reset")
    got, how = proxy.talk(b"GET / HTTP/1." + minor + HOST)
    assert not got.endswith(b"0\r\n\r\n")
    assert how == "reset" or px.statuses(got) == [502] or minor == b"1"


@pytest.mark.parametrize("answer", [
    R + b"Content-Length: 5\r\n\r\nhel",
    R + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
    R + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    R + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nx\r\n",
])
def test_H9_a_cut_body_ends_the_connection(proxy, answer):
    proxy.origin.script = px.say(answer, then=False)
    got, _ = proxy.talk(G + b"\r\n" + LAST)
    # Where nothing had gone out yet, 502 and on with the next.
    assert px.statuses(got) in ([], [200], [502, 502])
    assert not got.endswith(b"0\r\n\r\n")


def test_H10_http10_gets_no_chunks(proxy):
    proxy.origin.script = px.say(R + b"Transfer-Encoding: chunked\r\n\r\n"
                                 b"5\r\nhello\r\n0" + E)
    got, how = proxy.talk(b"GET / HTTP/1.0\r\nHost: a" + E)
    assert got.endswith(E + b"hello") and how == "fin"
    assert not px.field(got.partition(E)[0], b"Transfer-Encoding")


def test_H13_set_cookie_stays_two_lines(proxy):
    proxy.origin.script = px.say(R + b"Set-Cookie: a\r\nSet-Cookie: b\r\n"
                                 b"Content-Length: 0" + E)
    got, _ = proxy.talk(LAST)
    assert px.field(got, b"Set-Cookie") == [b"a", b"b"]


def test_bytes_behind_a_response_are_no_response(proxy):
    """A node that sends more than it announced is not asked again there."""
    proxy.origin.script = px.say(px.OK + px.OK.replace(b"ok", b"no"))
    got, _ = proxy.talk(G + b"\r\n" + LAST)
    assert got.count(b"ok") == 2 and b"no" not in got


def test_every_row_of_the_table_is_here_or_in_the_unit_tests():
    table = (Path(__file__).parents[1] / "fixtures/http_cases.md").read_text()
    rows = set(re.findall(r"^\| ([A-H]\d+) \|", table, re.M))
    rows -= {"B8", "H14"}  # TLS
    here = Path(__file__).read_text()
    missing = {r for r in rows if not re.search(rf"\b{r}\b|_{r}_", here)}
    assert not missing
