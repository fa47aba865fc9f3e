"""The PROXY protocol, both ways: other balancers before us, nodes that want
to know whose connection they have; cases J1 to J3."""

import contextlib
import json
import os
import socket
import ssl
import tempfile

import pytest

import muster
import proxy as px
import proxy_header as ph
from muster import wait_for
from proxy import field
from secure import authority, give, issued

G = b"GET /%s HTTP/1.1\r\nHost: a\r\n"
ONE = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
SENDER = "127.0.0.1"  # where connections to any loopback address come from


def behind_balancer(tmp, **settings):
    tmp.chmod(0o755)
    log = tmp / "access.log"
    p = px.Proxy(tmp, settings={
        "proxy.proxy_protocol": f"{SENDER} unix",
        "proxy.access_log": log, "proxy.access_log_format": "json",
        "proxy.trusted": "10.0.0.0/8", "proxy.header_timeout": "3s",
        **settings})
    p.log = log
    p.daemon.expect_log("no right PROXY header")
    return p


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    p = behind_balancer(tmp_path_factory.mktemp("pp"))
    yield p
    wrong = p.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.fixture
def proxy(front):
    front.reset()
    return front


def seen(proxy, *pieces):
    """The head of the one request that reached the node."""
    got, how = proxy.talk(*pieces)
    assert px.statuses(got) == [200] and how == "fin", got
    (head, _), = proxy.origin.requests
    proxy.reset()
    return head


def client_of(head):
    (ip,), (real,) = (field(head, n) for n in
                      (b"X-Forwarded-For", b"X-Real-IP"))
    assert ip == real
    return ip.decode()


# ---- headers that come in ----------------------------------------------------

@pytest.mark.parametrize("header,source", [
    (ph.v1(), "1.2.3.4"),
    (ph.v1("2001:db8::7", to="::1"), "2001:db8::7"),
    (ph.v1("::ffff:1.2.3.4", to="::1"), "1.2.3.4"),
    (b"PROXY UNKNOWN\r\n", SENDER),
    (b"PROXY UNKNOWN ffff::1 what ever\r\n", SENDER),
    (ph.v2(), "1.2.3.4"),
    (ph.v2("2001:db8::7", to="::1"), "2001:db8::7"),
    (ph.v2(tlvs=ph.tlv(0xee, b"unknown") + ph.tlv(ph.NOOP, b"")), "1.2.3.4"),
    (ph.v2(command=0x20), SENDER),
    (ph.v2(None), SENDER),
    (ph.v2_raw(0x21, 0x31, bytes(216)), SENDER),
    (ph.v2_raw(0x21, 0x12, ph.v2()[16:]), "1.2.3.4"),
], ids=lambda v: v[:24] if isinstance(v, str) else None)
def test_J1_J3_the_client_is_who_the_header_names(proxy, header, source):
    assert client_of(seen(proxy, header, ONE)) == source
    assert client_of(seen(proxy, header + ONE)) == source


def test_the_log_names_it_too(proxy):
    seen(proxy, ph.v1("9.9.9.9"), ONE)
    wait_for(lambda: '"9.9.9.9"' in proxy.log.read_text(), what="the log")
    lines = [json.loads(x) for x in proxy.log.read_text().splitlines()]
    assert any(line["client"] == "9.9.9.9" for line in lines)


@pytest.mark.parametrize("header", [ph.v1("8.8.8.8"), ph.v2("8.8.8.8")],
                         ids=["v1", "v2"])
def test_it_may_come_byte_by_byte(proxy, header):
    assert client_of(seen(proxy, *[bytes([b]) for b in header + ONE])) \
        == "8.8.8.8"


def test_it_counts_for_every_request_of_the_connection(proxy):
    got, _ = proxy.talk(ph.v2("8.8.8.8") + G % b"1" + b"\r\n" + ONE)
    assert px.statuses(got) == [200, 200]
    assert [client_of(h) for h, _ in proxy.origin.requests] == ["8.8.8.8"] * 2


BROKEN = {
    "none": ONE,
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "lower case": b"proxy TCP4 1.2.3.4 5.6.7.8 1 80\r\n",
    "bad family": b"PROXY TCP5 1.2.3.4 5.6.7.8 1 80\r\n",
    "lone LF": b"PROXY TCP4 1.2.3.4 5.6.7.8 1 80\n" + ONE,
    "port": b"PROXY TCP4 1.2.3.4 5.6.7.8 1 65536\r\n" + ONE,
    "no CRLF in 107 bytes": b"PROXY UNKNOWN " + b"x" * 93,
    "108 bytes": b"PROXY UNKNOWN " + b"x" * 92 + b"\r\n" + ONE,
    "v2 signature": ph.v2()[:11] + b"\r" + ph.v2()[12:] + ONE,
    "v2 version": ph.v2(command=0x31) + ONE,
    "v2 too short": ph.v2_raw(0x21, 0x11, b"\0" * 11) + ONE,
    "v2 too long": ph.v2_raw(0x21, 0x11, b"", length=65535),
    "TLV past the end": ph.v2(tlvs=b"\x04\x00\x05abcd") + ONE,
    "checksum": ph.v2(tlvs=ph.tlv(ph.CRC32C, b"abcd")) + ONE,
    "cut": ph.v2()[:20],
}


@pytest.mark.parametrize("sent", BROKEN.values(), ids=BROKEN.keys())
def test_J2_a_broken_one_ends_it_without_a_word(proxy, sent):
    got, how = proxy.talk(sent, fin=sent == BROKEN["cut"])
    assert got == b"" and how in ("fin", "reset")
    assert proxy.origin.requests == []


def test_J1_nobody_else_is_believed(proxy):
    for header in (ph.v1(), ph.v2()):
        with socket.create_connection(
                (proxy.address, proxy.PORT), timeout=muster.PATIENCE_S,
                source_address=(proxy.cluster.net.address(), 0)) as s:
            s.sendall(header + ONE)
            got, _ = px.read_all(s)
        assert px.statuses(got) == [400]
    assert proxy.origin.requests == []


def test_the_sender_is_not_the_client_when_it_comes_to_trust(proxy):
    """10/8 is trusted, the sender is not; what counts is who it names."""
    asked = ONE[:-2] + b"X-Forwarded-For: 7.7.7.7\r\n\r\n"
    head = seen(proxy, ph.v1("10.1.1.1"), asked)
    assert field(head, b"X-Real-IP") == [b"7.7.7.7"]
    assert field(head, b"X-Forwarded-For") == [b"7.7.7.7, 10.1.1.1"]
    assert client_of(seen(proxy, ph.v1("11.1.1.1"), asked)) == "11.1.1.1"


def test_tls_before_us_is_https(proxy):
    for tlvs, proto in ((ph.ssl(1), b"https"), (ph.ssl(0), b"http"),
                        (ph.ssl(7, ph.tlv(ph.SSL_VERSION, b"TLSv1.3")),
                         b"https"), (b"", b"http")):
        head = seen(proxy, ph.v2(tlvs=tlvs), ONE)
        assert field(head, b"X-Forwarded-Proto") == [proto]


def test_the_connections_id_is_that_of_its_first_request(proxy):
    got, _ = proxy.talk(
        ph.v2(tlvs=ph.tlv(ph.UNIQUE_ID, b"from-lb-1")) + G % b"1" + b"\r\n"
        + ONE)
    assert px.statuses(got) == [200, 200]
    first, second = (field(h, b"X-Request-Id")[0]
                     for h, _ in proxy.origin.requests)
    assert first == b"from-lb-1" and second != first
    proxy.reset()
    head = seen(proxy, ph.v2(tlvs=ph.tlv(ph.UNIQUE_ID, b"not a\r\ntoken")),
                ONE)
    assert len(field(head, b"X-Request-Id")[0]) == 32


def test_half_a_header_is_waited_for_so_long_and_no_longer(proxy):
    """Two thousand at once: each is closed; others are served meanwhile."""
    silent = []
    for i in range(2000):
        s = proxy.connect()
        s.sendall((ph.v1() if i % 2 else ph.v2())[:5 + i % 8])
        silent.append(s)
    assert client_of(seen(proxy, ph.v1("4.4.4.4"), ONE)) == "4.4.4.4"
    for s in silent:
        assert px.read_all(s)[0] == b""
        s.close()
    assert client_of(seen(proxy, ph.v1("4.4.4.5"), ONE)) == "4.4.4.5"


def test_choice_and_limits_go_by_the_header(tmp_path):
    p = px.Proxy(tmp_path, 3, role=("--balance", "hash:ip"),
                 settings={"proxy.proxy_protocol": SENDER,
                           "proxy.max_client_connections": "2"})
    try:
        for n in range(12):
            for _ in range(3):
                assert px.statuses(p.talk(ph.v1(f"9.9.9.{n}"), ONE)[0]) == [
                    200]
        clients = [{client_of(h) for h, _ in o.requests} for o in p.origins]
        assert all(clients) and sum(map(len, clients)) == 12

        # Two connections an address, whoever passes them on.
        def ask(ip):
            s = p.connect()
            s.sendall(ph.v2(ip) + G % b"x" + b"\r\n")
            try:
                return s, s.recv(4096)[:12]
            except ConnectionResetError:
                return s, b""
        ok = b"HTTP/1.1 200"
        kept = [ask(ip) for ip in ("8.8.8.8", "8.8.8.8", "8.8.4.4")]
        assert [status for _, status in kept] == [ok] * 3
        kept.append(ask("8.8.8.8"))
        assert kept[-1][1] == b""
        kept.append(ask("8.8.4.4"))
        assert kept[-1][1] == ok
        for s, _ in kept:
            s.close()
    finally:
        wrong = p.close()
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def socket_path():
    with tempfile.TemporaryDirectory(prefix="muster-u-") as d:
        os.chmod(d, 0o755)
        yield f"{d}/web"


def talk_unix(proxy, path, *pieces):
    def ready():
        with contextlib.suppress(OSError):
            s = socket.socket(socket.AF_UNIX)
            s.connect(path)
            return s
    with wait_for(ready, what="the Unix listener") as s:
        s.settimeout(muster.PATIENCE_S)
        for piece in pieces:
            s.sendall(piece)
        got, _ = px.read_all(s)
    return got


def test_peers_of_a_unix_socket(proxy, socket_path):
    """'unix' in proxy.proxy_protocol and proxy.trusted stands for them."""
    tcp = f"{proxy.address}:{proxy.PORT}"
    proxy.ctl("set", "proxy.http.listen", tcp, f"unix:{socket_path}")
    try:
        for piece in (ph.v1("7.1.1.1"), ph.v2("7.1.1.1")):
            got = talk_unix(proxy, socket_path,
                            *[bytes([b]) for b in piece + ONE])
            assert px.statuses(got) == [200]
            (head, _), = proxy.origin.requests
            assert client_of(head) == "7.1.1.1"
            proxy.reset()
        assert talk_unix(proxy, socket_path, ONE) == b""
        # LOCAL: a peer without an address.
        talk_unix(proxy, socket_path, ph.v2(command=0x20) + ONE)
        assert client_of(proxy.origin.requests[0][0]) == "unknown"
        wait_for(lambda: '"unix:"' in proxy.log.read_text(), what="the log")
        proxy.reset()
        # Without headers, and believed or not.
        proxy.ctl("set", "proxy.proxy_protocol", "none")
        proxy.ctl("set", "proxy.trusted", "unix")
        asked = ONE[:-2] + b"X-Forwarded-For: 3.3.3.3\r\n\r\n"

        def believed():
            proxy.reset()
            return px.statuses(talk_unix(proxy, socket_path, asked)) == [
                200] and client_of(proxy.origin.requests[0][0])
        wait_for(lambda: believed() == "3.3.3.3", what="trust")
        proxy.ctl("set", "proxy.trusted", "10.0.0.0/8")
        wait_for(lambda: believed() == "unknown", what="no trust")
    finally:
        proxy.ctl("set", "proxy.http.listen", tcp)
        proxy.ctl("set", "proxy.proxy_protocol", SENDER, "unix")
        proxy.ctl("set", "proxy.trusted", "10.0.0.0/8")

        def back():
            proxy.reset()
            return px.statuses(proxy.talk(ph.v1() + ONE)[0]) == [200]
        wait_for(back, what="the settings")


def test_a_check_that_only_connects_is_no_fault(proxy):
    refused = 'muster_reasons_total{reason="bad_proxy_header"}'
    before = metric(proxy, refused)
    for _ in range(10):
        proxy.connect().close()
    proxy.talk(b"x")
    wait_for(lambda: metric(proxy, refused) > before, what="the last one")
    assert metric(proxy, refused) == before + 1


def metric(proxy, name):
    with socket.create_connection((proxy.address, 7480)) as s:
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n"
                  b"Connection: close\r\n\r\n")
        got, _ = px.read_all(s)
    for line in got.decode().splitlines():
        if line.startswith(name):
            return float(line.rsplit(" ", 1)[1])
    return 0.0


# ---- headers that go out -----------------------------------------------------

class Curious(px.RawOrigin):
    """A node that wants a PROXY header on each connection.  heads: what came
    on one connection, as [Header, head, head...]."""

    def reset(self):
        super().reset()
        self.heads = []

    def greet(self, sock):
        data = b""
        while not (got := ph.read(data)):
            more = sock.recv(65536)
            if not more:  # a check says nothing more
                return None
            data += more
        header, rest = got
        with self.lock:
            self.heads.append(header)
        return rest

    @property
    def named(self):
        return [h.source and h.source[0] for h in self.heads]


@pytest.fixture(scope="module", params=["v1", "v2"])
def curious(request, tmp_path_factory):
    p = px.Proxy(tmp_path_factory.mktemp("out"), origin=Curious,
                 role=("--proxy-protocol", request.param),
                 settings={"proxy.trusted": "127.0.0.1",
                           "proxy.pool_idle_timeout": "1h"})
    p.version = int(request.param[1])
    p.daemon.expect_log("no right PROXY header")
    yield p
    wrong = p.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.fixture
def node(curious):
    wait_for(lambda: metric(curious, "muster_worker_node_connections") == 0,
             what="connections that are kept no longer")
    curious.reset()
    return curious


def test_a_node_is_told_whose_connection_it_has(node):
    with node.connect() as s:
        port = s.getsockname()[1]
        s.sendall(ONE)
        assert px.statuses(px.read_all(s)[0]) == [200]
    header, = node.origin.heads
    assert header.version == node.version
    assert header.source == (SENDER, port)
    assert header.to == (node.address, node.PORT)
    (head, _), = node.origin.requests
    assert head.startswith(b"GET / HTTP/1.1\r\n")


def test_a_connection_serves_its_client_again_and_nobody_else(node):
    got, _ = node.talk(G % b"1" + b"\r\n" + G % b"2" + b"\r\n" + ONE)
    assert px.statuses(got) == [200] * 3 and node.origin.connections == 1
    for _ in range(5):
        node.talk(ONE)
    assert node.origin.connections == 6
    sources = [h.source for h in node.origin.heads]
    assert len(set(sources)) == 6  # each with its port


def test_clients_behind_a_trusted_peer_are_named_one_by_one(node):
    def asks(ip, last=b""):
        return (G % ip + b"X-Forwarded-For: " + ip + b"\r\n" + last
                + b"\r\n")
    got, _ = node.talk(
        asks(b"1.1.1.1") + asks(b"1.1.1.1") + asks(b"2001:db8::2")
        + asks(b"1.1.1.1", b"Connection: close\r\n"))
    assert px.statuses(got) == [200] * 4
    assert node.origin.named == ["1.1.1.1", "2001:db8::2"]
    assert node.origin.heads[1].to == ("::", node.PORT)
    assert [client_of_last(h) for h, _ in node.origin.requests] == [
        "1.1.1.1", "1.1.1.1", "2001:db8::2", "1.1.1.1"]


def client_of_last(head):
    return field(head, b"X-Real-IP")[0].decode()


def test_few_connections_are_kept_for_one_client(node):
    """Those used last: of eight clients behind a trusted peer, five."""
    with node.connect() as s:
        for n in (1, 2, 3, 4, 5, 6, 7, 8, 4, 1):
            s.sendall(G % b"x" + b"X-Forwarded-For: 1.1.1.%d\r\n\r\n" % n)
            assert s.recv(4096).startswith(b"HTTP/1.1 200")
        wait_for(lambda: metric(node, "muster_worker_node_connections") == 5,
                 what="the last to be kept")
    assert node.origin.named == [f"1.1.1.{n}" for n in
                                 (1, 2, 3, 4, 5, 6, 7, 8, 1)]


def test_a_body_goes_behind_it_and_may_be_large(node):
    body = b"0123456789abcdef" * 65536
    got, _ = node.talk(b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                       b"Content-Length: %d\r\n\r\n" % len(body), body)
    assert px.statuses(got) == [200]
    assert node.origin.requests[0][1] == body


def test_a_tunnel_begins_with_it(node):
    def upgrade(sock, head, body):
        sock.sendall(b"HTTP/1.1 101 Go\r\nConnection: Upgrade\r\n"
                     b"Upgrade: echo\r\n\r\n")
        while data := sock.recv(4096):
            sock.sendall(data)
        return False
    node.origin.script = upgrade
    with node.connect() as s:
        s.sendall(G % b"x" + b"Connection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        head, rest = px.read_head(s)
        assert px.statuses(head) == [101] and rest == b""
        for n in range(3):
            s.sendall(b"%d" % n * 1000)
            got = b""
            while len(got) < 1000:
                got += s.recv(4096)
            assert got == b"%d" % n * 1000
    assert node.origin.named == [SENDER]


def test_a_node_that_closes_at_the_header(node):
    """Each try is another connection with a header of its own."""
    def cut(sock):
        sock.recv(3)
        px.reset(sock)
        raise OSError
    node.origin.greet = cut
    try:
        got, _ = node.talk(ONE)
        assert px.statuses(got) == [502]
    finally:
        del node.origin.greet
    node.reset()
    assert px.statuses(node.talk(ONE)[0]) == [200]


def test_a_kept_connection_that_the_node_closes(node):
    with node.connect() as s:
        s.sendall(G % b"1" + b"\r\n")
        assert s.recv(4096).startswith(b"HTTP/1.1 200")
        node.origin.drop()
        wait_for(lambda: metric(node, "muster_worker_node_connections") == 0,
                 what="the end of it")
        s.sendall(ONE)
        assert px.statuses(px.read_all(s)[0]) == [200]
    assert len(node.origin.heads) == 2


def test_kept_connections_end_with_their_clients(node):
    clients = [node.connect() for _ in range(20)]
    for s in clients:
        s.sendall(G % b"1" + b"\r\n")
        assert s.recv(4096).startswith(b"HTTP/1.1 200")
    wait_for(lambda: metric(node, "muster_worker_node_connections") == 20,
             what="the last to be kept")
    for s in clients:
        s.close()
    wait_for(lambda: metric(node, "muster_worker_node_connections") == 0,
             what="the node's connections to end")


def test_checks_name_nobody(node):
    node.daemon.expect_log("node n1 as worker_http is")
    try:
        for check in ("tcp", "http GET /alive"):
            node.ctl("role", "set", "worker_http", "--health", check,
                     "--interval", "100ms")
            node.reset()
            # We are nobody's client but our own.
            wait_for(lambda: node.origin.heads, what="a check")
            assert set(node.origin.named) == {
                SENDER if node.version == 1 else None}
        wait_for(lambda: any(h.startswith(b"GET /alive") for h, _ in
                             list(node.origin.requests)), what="a request")
    finally:
        node.ctl("role", "set", "worker_http", "--health", "none")
    assert {h.version for h in node.origin.heads} == {node.version}


def test_from_one_balancer_through_us_to_a_node(node):
    """What the header that came in says goes on in ours."""
    node.ctl("set", "proxy.proxy_protocol", SENDER)
    try:
        sent = ph.v2("9.8.7.6", 4711, "5.6.7.8", 443, ph.ssl(1)
                     + ph.tlv(ph.AUTHORITY, b"shop.example")) + ONE
        wait_for(lambda: px.statuses(node.talk(sent)[0]) == [200],
                 what="the setting")
    finally:
        node.ctl("set", "proxy.proxy_protocol", "none")
    header = node.origin.heads[-1]
    assert header.source == ("9.8.7.6", 4711)
    assert header.to == ("5.6.7.8", 443)
    if node.version == 2:
        client, verify, inside = header.ssl
        assert client == 1 and verify != bytes(4) and inside == {}
        assert header.tlvs[ph.AUTHORITY] == b"shop.example"
    wait_for(lambda: px.statuses(node.talk(ONE)[0]) == [200],
             what="no headers again")


# ---- with TLS ----------------------------------------------------------------

@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """HTTPS for shop.example, whose nodes want headers of version 2."""
    p = px.Proxy(tmp_path_factory.mktemp("tls"), origin=Curious,
                 role=("--proxy-protocol", "v2"),
                 settings={"proxy.proxy_protocol": SENDER,
                           "proxy.header_timeout": "2s"})
    p.ctl("site", "add", "shop.example", "--role", "worker_http")
    give(p.ctl, "shop.example", *issued("shop.example"))
    p.ctl("set", "proxy.https.listen", f"{p.address}:8443")
    p.daemon.expect_log("no right PROXY header")

    def listens():
        with contextlib.suppress(OSError):
            socket.create_connection((p.address, 8443)).close()
            return True
    wait_for(listens, what="HTTPS")
    yield p
    wrong = p.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


class Tls:
    """A client whose bytes can be held back: what it would send comes from
    hello() and goes where it is told."""

    def __init__(self, proxy, alpn=("http/1.1",), source=None):
        ctx = authority().context(alpn=alpn)
        self.into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = ctx.wrap_bio(self.into, self.out,
                                server_hostname="shop.example")
        self.sock = socket.create_connection(
            (proxy.address, 8443), timeout=muster.PATIENCE_S,
            source_address=(source, 0) if source else None)

    def hello(self):
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.out.read()

    def call(self, fn, *args):
        while True:
            try:
                got = fn(*args)
                self.sock.sendall(self.out.read())
                return got
            except ssl.SSLWantReadError:
                self.sock.sendall(self.out.read())
                more = self.sock.recv(65536)
                if more:
                    self.into.write(more)
                else:
                    self.into.write_eof()

    def ask(self):
        self.call(self.tls.do_handshake)
        self.call(self.tls.write, ONE.replace(b": a", b": shop.example"))
        return self.call(self.tls.read, 65536)


@pytest.mark.parametrize("cut", ["whole", "bytes", "apart"])
@pytest.mark.parametrize("header", [ph.v1("7.7.7.7"), ph.v2("7.7.7.7")],
                         ids=["v1", "v2"])
def test_a_header_before_tls(secure, header, cut):
    """Not a byte of the handshake behind it is lost."""
    secure.reset()
    client = Tls(secure)
    sent = header + client.hello()
    pieces = {"whole": [sent], "bytes": [bytes([b]) for b in sent],
              "apart": [header, sent[len(header):]]}[cut]
    for piece in pieces:
        client.sock.sendall(piece)
    assert px.statuses(client.ask()) == [200]
    head, = [h for h, _ in secure.origin.requests]
    assert client_of(head) == "7.7.7.7"
    assert field(head, b"X-Forwarded-Proto") == [b"https"]


def test_nodes_are_told_of_tls(secure):
    for alpn in (["http/1.1"], []):
        secure.reset()
        client = Tls(secure, alpn)
        client.sock.sendall(ph.v1("7.7.7.7", 99))
        assert px.statuses(client.ask()) == [200]
        header, = secure.origin.heads
        assert header.source == ("7.7.7.7", 99)
        assert header.tlvs[ph.AUTHORITY] == b"shop.example"
        assert header.tlvs.get(ph.ALPN) == (
            b"http/1.1" if alpn else None)
        told, verify, inside = header.ssl
        assert told == 1 and verify != bytes(4)
        assert inside[ph.SSL_VERSION].decode() == client.tls.version()
        assert inside[ph.SSL_CIPHER].decode() == client.tls.cipher()[0]


def test_tls_without_its_header_and_a_header_from_others(secure):
    secure.reset()
    client = Tls(secure)  # no header: not even an alert comes back
    client.sock.sendall(client.hello())
    assert px.read_all(client.sock)[0] == b""
    other = Tls(secure, source=secure.cluster.net.address())
    other.sock.sendall(ph.v1() + other.hello())  # no TLS
    assert px.statuses(px.read_all(other.sock)[0]) in ([], [400])
    assert secure.origin.requests == []
