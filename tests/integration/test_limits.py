"""Limits of sites and of their clients: who gets 429, how fast bytes go out,
what is shown of it.  Rates are checked by what was counted, never by when."""

import contextlib
import json
import os
import socket
import ssl
import tempfile
import threading
import time
from pathlib import Path

import pytest

import muster
import proxy as px
from authority import self_signed
from live_proxy import LiveProxy, close_all

HTTPS = 8443
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CLOSE = b"Connection: close\r\n"


def get(host=b"a", path=b"/", more=b""):
    return (b"GET " + path + b" HTTP/1.1\r\nHost: " + host + b"\r\n" + more
            + b"\r\n")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two workers; 127.0.0.0/8 is trusted, so a test may be many clients."""
    p = px.Proxy(tmp_path_factory.mktemp("limits"), settings={
        "proxy.workers": "2", "proxy.trusted": "127.0.0.0/8",
        "proxy.access_log_format": "json"})
    p.log = p.cluster.tmp / "access.log"
    p.ctl("set", "proxy.https.listen", f"{p.address}:{HTTPS}")
    p.ctl("set", "proxy.access_log", p.log)
    p.n_sites = 0
    yield p
    close_all(p)


@pytest.fixture
def site(whole):
    """A new site a test, with the limits that the test asks for."""
    whole.reset()
    whole.n_sites += 1
    return Site(whole, f"s{whole.n_sites}")


def await_registry(ctl, status):
    """Until every worker has the registry's revision."""
    last = ctl("registry", "log", "--json", "-n", "1").stdout
    revision = json.loads(last.splitlines()[-1])["revision"]
    muster.wait_for(lambda: status()["revision"] >= revision,
                    what=f"revision {revision}")


class Site:
    def __init__(self, proxy, name):
        self.proxy, self.name = proxy, name
        self.host = name.encode()
        proxy.ctl("site", "add", name)
        self.wait()

    def limit(self, *options):
        self.proxy.ctl("site", "limit", self.name, *options)
        self.wait()

    def wait(self):
        await_registry(self.proxy.ctl, lambda: ask(self.proxy, "status"))

    def shown(self):
        """The rows of site limit, by name."""
        out = self.proxy.ctl("site", "limit", self.name, "--json").stdout
        return {r["limit"]: r for r in map(json.loads, out.splitlines())}

    def hits(self):
        return {name: r["hits"] for name, r in self.shown().items()
                if r["hits"] is not None}

    def get(self, client=None, more=b"", path=b"/"):
        if client is not None:
            more += b"X-Forwarded-For: " + client.encode() + b"\r\n"
        return get(self.host, path, more)

    def ask(self, *args, **options):
        """(status, head) on a connection of its own."""
        got, _ = self.proxy.talk(self.get(*args, **options).replace(
            b"\r\n\r\n", b"\r\n" + CLOSE + b"\r\n"))
        return int(got[9:12]), got.partition(b"\r\n\r\n")[0]


def ask(proxy, word, **more):
    with socket.socket(socket.AF_UNIX) as s:
        fd = os.open(proxy.cluster.master.state / "run", os.O_PATH)
        try:
            s.connect(f"/proc/self/fd/{fd}/proxyd.sock")
        finally:
            os.close(fd)
        s.settimeout(muster.PATIENCE_S)
        s.sendall(json.dumps({"ask": word, **more}).encode() + b"\n")
        with s.makefile("rb") as f:
            return json.loads(f.readline())


def storm(site, n, threads=8, client=None):
    """n requests over several connections; the statuses."""
    lock, statuses, left = threading.Lock(), [], [n]

    def run():
        with contextlib.suppress(OSError), site.proxy.connect() as s:
            rest = b""
            while True:
                with lock:
                    if left[0] == 0:
                        return
                    left[0] -= 1
                s.sendall(site.get(client))
                head, rest = px.read_head(s, rest)
                _, rest = px.read_body(s, head, rest)
                with lock:
                    statuses.append(int(head[9:12]))

    crowd = [threading.Thread(target=run) for _ in range(threads)]
    for t in crowd:
        t.start()
    for t in crowd:
        t.join()
    assert len(statuses) == n
    return statuses


# ---- requests ----

def test_requests_are_counted_exactly_over_all_workers(site):
    site.limit("--requests", "5/h,burst=40")
    before = [w["requests"] for w in ask(site.proxy, "workers")["workers"]]
    got = storm(site, 400)
    assert got.count(200) == 40 and got.count(429) == 360
    # A connection's worker is the kernel's choice; both had some.
    after = [w["requests"] for w in ask(site.proxy, "workers")["workers"]]
    assert all(a > b for a, b in zip(after, before))
    assert len(site.proxy.origin.requests) == 40  # none touched the node
    assert site.hits() == {"requests": 360}


def test_what_a_refused_client_is_told(site):
    site.limit("--requests", "1/m,burst=1")
    assert site.ask()[0] == 200
    status, head = site.ask(more=b"X-Muster-Why: 1\r\n")
    assert status == 429
    assert px.field(head, b"X-Muster-Why") == [b"limit_requests"]
    retry, = px.field(head, b"Retry-After")
    assert 1 <= int(retry) <= 60
    assert px.field(head, b"Cache-Control") == [b"no-store"]

    def logged():
        lines = [json.loads(line) for line in
                 site.proxy.log.read_text().splitlines()]
        return [r for r in lines if r["host"] == site.name
                and r["status"] == 429]
    muster.wait_for(logged, what="a line in the access log")
    assert logged()[0]["why"] == "limit_requests"
    assert not [line for line in site.proxy.daemon.text.splitlines()
                if "limit" in line]


def test_a_refused_request_leaves_the_connection_open(site):
    site.limit("--requests", "1/h,burst=1")
    with site.proxy.connect() as s:
        rest = b""
        for wanted in (200, 429, 429):
            s.sendall(site.get())
            head, rest = px.read_head(s, rest)
            _, rest = px.read_body(s, head, rest)
            assert int(head[9:12]) == wanted


def test_each_client_has_its_own(site):
    site.limit("--client-requests", "5/h,burst=3")
    for client in ("192.0.2.1", "192.0.2.2", "2001:db8::1"):
        got = storm(site, 10, client=client)
        assert got.count(200) == 3, client
    # The same /64; and another one.
    assert site.ask("2001:db8::ffff")[0] == 429
    assert site.ask("2001:db8:0:1::1")[0] == 200
    assert site.hits() == {"client_requests": 22}


def test_whom_nobody_trusts_cannot_choose_its_address(site):
    site.proxy.ctl("set", "proxy.trusted", "none")
    try:
        site.limit("--client-requests", "5/h,burst=3")
        got = [site.ask(f"192.0.2.{i}")[0] for i in range(10)]
        assert got.count(200) == 3
    finally:
        site.proxy.ctl("set", "proxy.trusted", "127.0.0.0/8")
        site.wait()


def test_a_client_over_its_limit_leaves_the_sites_alone(site):
    site.limit("--requests", "1/h,burst=10", "--client-requests",
               "1/h,burst=2")
    assert storm(site, 50, client="192.0.2.1").count(200) == 2
    got = [site.ask(f"192.0.2.{i}")[0] for i in range(2, 12)]
    assert got.count(200) == 8
    assert site.hits() == {"requests": 2, "client_requests": 48}


# ---- connections ----

class Held:
    """Requests that the node keeps waiting until free()."""

    def __init__(self, site):
        self.site, self.socks = site, []
        self.go = threading.Event()
        site.proxy.origin.script = self.script

    def script(self, sock, head, body):
        if b"/hold" in head:
            self.go.wait(muster.PATIENCE_S)
        sock.sendall(OK)

    def hold(self, n, client=None):
        """One by one: two workers that meet a new client in the same instant
        may each let one through."""
        seen = self.site.proxy.origin.requests
        for _ in range(n):
            before = len(seen)
            s = self.site.proxy.connect()
            s.sendall(self.site.get(client, path=b"/hold"))
            self.socks.append(s)
            muster.wait_for(lambda n=before: len(seen) > n,
                            what="a request at the node")

    def free(self):
        self.go.set()
        for s in self.socks:
            head, _ = px.read_head(s)
            assert head.startswith(b"HTTP/1.1 200")
        return self.socks

    def close(self):
        self.go.set()
        for s in self.socks:
            s.close()


@pytest.fixture
def held(site):
    h = Held(site)
    yield h
    h.close()


def in_use(site):
    return site.shown()["connections"]["in_use"]


def test_connections_in_use_are_bounded(site, held):
    site.limit("--connections", "4")
    held.hold(4)
    muster.wait_for(lambda: in_use(site) == 4, what="four in use")
    status, head = site.ask(more=b"X-Muster-Why: 1\r\n")
    assert status == 429
    assert px.field(head, b"X-Muster-Why") == [b"limit_connections"]
    assert px.field(head, b"Retry-After") == [b"1"]
    held.free()
    # They stay open, idle: that counts for no site.
    muster.wait_for(lambda: in_use(site) == 0, what="none in use")
    assert site.ask()[0] == 200
    assert site.hits()["connections"] == 1


def test_connections_of_each_client(site, held):
    site.limit("--client-connections", "2")
    for client in ("192.0.2.1", "192.0.2.2"):
        held.hold(2, client)
    muster.wait_for(lambda: len(site.proxy.origin.requests) == 4,
                    what="all four at the node")
    assert site.ask("192.0.2.1")[0] == 429
    assert site.ask("192.0.2.2")[0] == 429
    assert site.ask("192.0.2.3")[0] == 200
    held.free()
    muster.wait_for(lambda: site.ask("192.0.2.1")[0] == 200,
                    what="room for the first")


def test_a_crashed_worker_holds_nothing(site, held):
    import signal
    site.limit("--connections", "100", "--client-connections", "8")
    held.hold(8, "192.0.2.1")
    muster.wait_for(lambda: in_use(site) == 8, what="eight in use")
    assert site.ask("192.0.2.1")[0] == 429
    site.proxy.daemon.expect_log(r"worker .*killed", r"worker")
    for w in ask(site.proxy, "workers")["workers"]:
        os.kill(w["pid"], signal.SIGKILL)
    muster.wait_for(lambda: in_use(site) == 0, what="none in use")
    held.go.set()
    muster.wait_for(lambda: site.ask("192.0.2.1")[0] == 200,
                    what="room again")


UPGRADE = (b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
           b"Sec-WebSocket-Version: 13\r\n"
           b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")


def upgrade(site, client=None):
    """A WebSocket that the node agrees to."""
    s = site.proxy.connect()
    s.sendall(site.get(client, UPGRADE))
    head, rest = px.read_head(s)
    return s, head, rest


AGREE = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
         b"Upgrade: websocket\r\n"
         b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")


def agrees(then=lambda sock: None):
    def script(sock, head, body):
        if b"Upgrade: websocket" not in head:
            sock.sendall(OK)
            return True
        sock.sendall(AGREE)
        then(sock)
        sock.recv(1)  # until the other side ends
        return False
    return script


def test_tunnels_count_for_as_long_as_they_live(site):
    site.limit("--connections", "2", "--client-connections", "1")
    site.proxy.origin.script = agrees()
    s, head, _ = upgrade(site, "192.0.2.1")
    assert head.startswith(b"HTTP/1.1 101")
    assert site.ask("192.0.2.1")[0] == 429
    t, head, _ = upgrade(site, "192.0.2.2")
    assert head.startswith(b"HTTP/1.1 101")
    assert site.ask("192.0.2.3")[0] == 429
    assert in_use(site) == 2
    s.close()
    muster.wait_for(lambda: site.ask("192.0.2.1")[0] == 200,
                    what="the tunnel's place")
    t.close()
    muster.wait_for(lambda: in_use(site) == 0, what="none in use")


# ---- bandwidth ----

def pour(sock, seconds, already=0, least=None, pieces=1):
    """Reads for a while, and until more than `least` (the burst) is there in
    so many pieces; every mark is (time, bytes so far)."""
    marks, total = [], already
    least = BURST if least is None else least
    end = time.monotonic() + seconds
    while (time.monotonic() < end or total <= least or len(marks) < pieces) \
            and time.monotonic() < end + muster.PATIENCE_S:
        got = sock.recv(1 << 20)
        if not got:
            break
        total += len(got)
        marks.append((time.monotonic(), total))
    return marks


def never_faster(marks, start, rate, burst, slack=0):
    """At no mark was more received than the rate and the burst allow.  `start`
    is before the request: being late can only make it less."""
    for at, total in marks:
        assert total <= rate * (at - start) + burst + slack, (at - start)


RATE, BURST = 400 << 10, 100 << 10
SPEED = f"{RATE >> 10}K/s,burst={BURST >> 10}K"


def big(size=64 << 20):
    return px.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
                  + bytes(1 << 20), then=True)


def endless(sock, head, body):
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1 << 34))
    piece = bytes(1 << 18)
    while True:
        sock.sendall(piece)


def chunks(sock, head, body):
    sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    piece = b"10000\r\n" + bytes(1 << 16) + b"\r\n"
    while True:
        sock.sendall(piece)


def flood(sock):
    sock.settimeout(muster.PATIENCE_S)
    piece = bytes(1 << 16)
    while True:
        sock.sendall(piece)


@pytest.mark.parametrize("script", [endless, chunks])
def test_a_response_keeps_to_the_bandwidth(site, script):
    site.proxy.origin.script = script
    site.limit("--bandwidth", SPEED)
    start = time.monotonic()
    with site.proxy.connect() as s:
        s.sendall(site.get())
        marks = pour(s, 1, pieces=9)
    never_faster(marks, start, RATE, BURST)
    # It does come, and in small pieces.
    assert marks[-1][1] > BURST and len(marks) > 8
    assert site.hits() == {"bandwidth": 1}


def test_all_responses_of_a_site_share_it(site):
    site.proxy.origin.script = endless
    site.limit("--bandwidth", SPEED)
    start = time.monotonic()
    got = []

    def read():
        with site.proxy.connect() as s:
            s.sendall(site.get())
            got.append(pour(s, 1, least=0))
    crowd = [threading.Thread(target=read) for _ in range(6)]
    for t in crowd:
        t.start()
    for t in crowd:
        t.join()
    every = sorted((at, total - before) for marks in got
                   for (at, total), before in
                   zip(marks, [0] + [m[1] for m in marks]))
    total, marks = 0, []
    for at, n in every:
        total += n
        marks.append((at, total))
    never_faster(marks, start, RATE, BURST)
    assert all(len(m) > 0 for m in got)  # nobody was forgotten


def test_each_client_has_its_own_bandwidth(site):
    site.proxy.origin.script = endless
    site.limit("--client-bandwidth", SPEED)
    start = time.monotonic()
    got = {}

    def read(client):
        with site.proxy.connect() as s:
            s.sendall(site.get(client))
            got[client] = pour(s, 0.8)
    crowd = [threading.Thread(target=read, args=(f"192.0.2.{i}",))
             for i in range(3)]
    for t in crowd:
        t.start()
    for t in crowd:
        t.join()
    for marks in got.values():
        never_faster(marks, start, RATE, BURST)
        assert marks[-1][1] > BURST


def test_a_response_that_both_limits_slow(site):
    """First the site's, until the client's burst is used up."""
    site.proxy.origin.script = endless
    site.limit("--bandwidth", "4M/s,burst=64K",
               "--client-bandwidth", "64K/s,burst=512K")
    with site.proxy.connect() as s:
        s.sendall(site.get())
        pour(s, 0, least=640 << 10)
    assert site.hits() == {"bandwidth": 1, "client_bandwidth": 1}


def test_a_tunnel_keeps_to_the_bandwidth(site):
    site.proxy.origin.script = agrees(flood)
    site.limit("--bandwidth", SPEED)
    start = time.monotonic()
    s, head, rest = upgrade(site)
    with s:
        marks = pour(s, 1, len(rest), pieces=9)
    # What came together with the 101 is not held back.
    never_faster(marks, start, RATE, BURST, slack=16 << 10)
    assert marks[-1][1] > BURST and len(marks) > 8


@pytest.fixture
def home():
    """Where the workers' account may look."""
    with tempfile.TemporaryDirectory(prefix="muster-home-") as d:
        os.chmod(d, 0o755)
        yield Path(d)


def share(site, home, big):
    """The proxy serves /big.zip and /small.css itself."""
    (home / "big.zip").write_bytes(big)
    (home / "small.css").write_bytes(bytes(2000))
    for f in home.iterdir():
        f.chmod(0o644)
    site.proxy.ctl("site", "set", site.name, "--home", home, "--static", "on")

    def is_ours():
        """For both workers: who opens files hears of a site a moment after
        they do."""
        site.proxy.reset()
        return all(site.ask(path=b"/small.css")[0] == 200 for _ in range(8)) \
            and not site.proxy.origin.requests
    muster.wait_for(is_ours, what="static files")


def test_a_file_keeps_to_the_bandwidth(site, home):
    share(site, home, bytes(8 << 20))
    site.limit("--bandwidth", SPEED)
    start = time.monotonic()
    with site.proxy.connect() as s:
        s.sendall(site.get(path=b"/big.zip"))
        marks = pour(s, 1.2)
    assert not site.proxy.origin.requests  # the proxy's own
    never_faster(marks, start, RATE, BURST)
    assert marks[-1][1] > BURST
    site.limit("--requests", "1/h,burst=1")
    assert site.ask(path=b"/small.css")[0] == 200
    assert site.ask(path=b"/small.css")[0] == 429


def test_a_whole_body_arrives(site):
    """Nothing is lost or doubled at the seams of the pieces."""
    body = bytes(i * 7 % 251 for i in range(300_000))
    site.proxy.origin.script = px.say(
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    site.limit("--bandwidth", "512K/s,burst=16K")
    with site.proxy.connect() as s:
        s.sendall(site.get())
        head, rest = px.read_head(s)
        got, _ = px.read_body(s, head, rest)
    assert got == body


@pytest.mark.parametrize("static", [False, True])
def test_over_tls(site, home, static):
    """A client with little room, so that records are cut off by both: the
    socket that is full, and the leave that is used up."""
    size, rate, burst = 1_500_000, 3 << 20, 50_000
    body = bytes(i * 7 % 251 for i in range(size))
    if static:
        share(site, home, body)
    else:
        site.proxy.origin.script = px.say(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + body)
    made = self_signed(site.proxy.cluster.tmp, site.name)
    site.proxy.ctl("site", "cert", site.name, "--cert", made.cert, "--key",
                   made.key)
    site.limit("--bandwidth", f"{rate >> 20}M/s,burst={burst}",
               "--client-bandwidth", f"{rate >> 20}M/s")
    context = ssl.create_default_context(cafile=made.cert)
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20000)
    raw.settimeout(muster.PATIENCE_S)
    raw.connect((site.proxy.address, HTTPS))
    start = time.monotonic()
    with context.wrap_socket(raw, server_hostname=site.name) as s:
        s.sendall(site.get(path=b"/big.zip"))
        _, got = px.read_head(s)
        marks = []
        while len(got) < size:
            got += s.recv(9000)
            marks.append((time.monotonic(), len(got)))
    assert got == body
    assert bool(site.proxy.origin.requests) != static
    never_faster(marks, start, rate, burst)


def test_a_slowed_response_does_not_hold_its_node(site):
    """The node gave it all; the proxy keeps the rest."""
    size, gone = 600_000, threading.Event()

    def script(sock, head, body):
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n"
                     b"Connection: close\r\n\r\n" % size + bytes(size))
        gone.set()
        return False
    site.proxy.origin.script = script
    site.limit("--bandwidth", "100K/s,burst=16K")
    with site.proxy.connect() as s:
        s.sendall(site.get())
        assert s.recv(1000)
        assert gone.wait(muster.PATIENCE_S)

        def let_go():
            rows = ask(site.proxy, "nodes")["nodes"]
            return all(r["active"] == 0 for r in rows)
        muster.wait_for(let_go, what="the node to be free")
        # The client still waits; the site counts it as in use.
        site.limit("--connections", "100")
        assert in_use(site) == 1


# ---- changes ----

def test_changes_hold_at_once(site):
    site.limit("--requests", "1/h,burst=1")
    assert [site.ask()[0] for _ in range(3)] == [200, 429, 429]
    site.limit("--requests", "1000/s")  # an old debt is forgotten
    muster.wait_for(lambda: site.ask()[0] == 200, what="the new rate")
    site.limit("--requests", "off")
    assert storm(site, 50).count(200) == 50
    assert site.shown()["requests"]["value"] == "off"


def test_a_response_under_way_is_let_go(site):
    site.proxy.origin.script = endless
    site.limit("--bandwidth", "1K/s,burst=8K")
    with site.proxy.connect() as s:
        s.sendall(site.get())
        assert s.recv(100)
        site.limit("--bandwidth", "off")
        left = 32 << 20
        while left > 0:  # at 1 kB/s it would take nine hours
            left -= len(s.recv(1 << 20))


def test_limits_come_and_go_under_load(site):
    """Whatever changes, answers are whole, and in the end nothing is held."""
    site.proxy.origin.script = None
    wrong, end = [], threading.Event()

    def run(client):
        while not end.is_set():
            try:
                status, _ = site.ask(client)
            except OSError as e:
                wrong.append(e)
                return
            if status not in (200, 429):
                wrong.append(status)
    crowd = [threading.Thread(target=run, args=(f"192.0.2.{i % 3}",))
             for i in range(6)]
    for t in crowd:
        t.start()
    try:
        for round_ in range(4):
            site.limit("--requests", f"{50 + round_}/s,burst=3",
                       "--connections", "3")
            site.limit("--client-requests", "20/s,burst=2",
                       "--client-connections", "1", "--bandwidth", "1M/s",
                       "--client-bandwidth", "1M/s")
            site.limit("--requests", "off", "--connections", "off",
                       "--client-requests", "off")
            site.limit("--client-connections", "off", "--bandwidth", "off",
                       "--client-bandwidth", "off")
    finally:
        end.set()
        for t in crowd:
            t.join()
    assert not wrong
    site.limit("--connections", "1", "--client-connections", "1")
    muster.wait_for(lambda: site.ask("192.0.2.1")[0] == 200,
                    what="nothing held")
    assert in_use(site) == 0


def test_an_upgrade_forgets_nothing(tmp_path):
    p = LiveProxy(tmp_path, [px.RawOrigin])

    def limits():
        return p.ask(ask="limits", site="a")["limits"]
    try:
        p.ctl("site", "limit", "a", "--requests", "3/h", "--connections",
              "10")
        p.raw[0].script = agrees()
        await_registry(p.ctl, p.status)
        s = p.connect()
        s.sendall(get(more=UPGRADE))
        head, _ = px.read_head(s)
        assert head.startswith(b"HTTP/1.1 101")
        assert [p.get()[0] for _ in range(4)] == [200, 200, 429, 429]
        muster.run(muster.program("proxyd"), "--state", p.state, "upgrade")
        # The burst was used up before; the old worker's tunnel counts.
        assert p.get()[0] == 429
        assert limits()["hits"]["requests"] == 3
        assert limits()["connections"] == 1
        s.close()
        muster.wait_for(lambda: limits()["connections"] == 0,
                        what="none in use")
        p.adopt()
    finally:
        wrong = p.close()
    assert not wrong


# ---- all sites together ----

def test_one_address_has_so_many_connections(site):
    proxy = site.proxy
    proxy.ctl("set", "proxy.trusted", "none")
    proxy.ctl("set", "proxy.max_client_connections", "5")
    try:
        site.wait()
        open_, refused = [], 0
        for _ in range(12):
            s = proxy.connect()
            with contextlib.suppress(OSError):
                s.sendall(site.get())
                if s.recv(1000).startswith(b"HTTP/1.1 200"):
                    open_.append(s)
                    continue
            refused += 1
            s.close()
        assert (len(open_), refused) == (5, 7)
        rows = ask(proxy, "workers")["workers"]
        assert sum(w["refused"] for w in rows) == 7
        # Another address, and this one when one has left.
        s = socket.create_connection(
            (proxy.address, proxy.PORT), muster.PATIENCE_S,
            source_address=("127.0.24.201", 0))
        s.sendall(site.get())
        assert s.recv(1000).startswith(b"HTTP/1.1 200")
        s.close()
        open_.pop().close()

        def again():
            with contextlib.suppress(OSError):
                got, _ = proxy.talk(site.get(more=CLOSE))
                return px.statuses(got) == [200]  # or nothing at all
        muster.wait_for(again, what="a place for it")
        for s in open_:
            s.close()
    finally:
        proxy.ctl("set", "proxy.max_client_connections", "off")
        proxy.ctl("set", "proxy.trusted", "127.0.0.0/8")
        site.wait()


def test_behind_a_balancer_the_address_it_tells_counts(site):
    proxy = site.proxy
    proxy.ctl("set", "proxy.proxy_protocol", "127.0.0.0/8")
    proxy.ctl("set", "proxy.max_client_connections", "2")
    try:
        site.wait()
        open_, answers = [], []
        for client in ("192.0.2.1", "192.0.2.2") * 3:
            s = proxy.connect()
            with contextlib.suppress(OSError):
                s.sendall(b"PROXY TCP4 %s 192.0.2.9 1 80\r\n"
                          % client.encode() + site.get())
                if s.recv(1000).startswith(b"HTTP/1.1 200"):
                    answers.append(client)
            open_.append(s)
        assert sorted(answers) == ["192.0.2.1"] * 2 + ["192.0.2.2"] * 2
        for s in open_:
            s.close()
    finally:
        proxy.ctl("set", "proxy.max_client_connections", "off")
        proxy.ctl("set", "proxy.proxy_protocol", "none")
        site.wait()


# ---- the command ----

def test_what_is_shown(site):
    site.limit("--requests", "100/s", "--client-bandwidth", "2048K/s")
    rows = site.shown()
    assert {n: r["value"] for n, r in rows.items()} == {
        "requests": "100/s", "connections": "off", "bandwidth": "off",
        "client_requests": "off", "client_connections": "off",
        "client_bandwidth": "2M/s"}
    assert rows["requests"]["hits"] == 0
    assert rows["bandwidth"]["hits"] is None
    # The same as options of the site, and in what is exported.
    shown = json.loads(site.proxy.ctl("site", "show", site.name,
                                      "--json").stdout)
    assert shown["options"]["requests"] == "100/s"
    site.proxy.ctl("site", "set", site.name, "--requests", "off")
    assert site.shown()["requests"]["value"] == "off"
    exported = site.proxy.ctl("registry", "export").stdout
    assert '"client_bandwidth": "2M/s"' in exported \
        or '"client_bandwidth":"2M/s"' in exported


def test_wrong_limits_are_told_the_rule(site):
    ctl = site.proxy.ctl
    for option, value, rule in (
            ("--requests", "ten", "requests 'ten' is not N/s, N/m or N/h"),
            ("--bandwidth", "1", "bandwidth '1' is not SIZE/s"),
            ("--client-connections", "0", "is not 1..10000, or off")):
        r = ctl("site", "limit", site.name, option, value, status=2)
        assert rule in r.stderr
    r = ctl("site", "limit", "nowhere", "--requests", "1/s", status=3)
    assert "no such site" in r.stderr
    assert "no such site" in ctl("site", "limit", "nowhere", status=3).stderr


def test_they_are_counted_and_shown(site):
    site.limit("--requests", "1/h,burst=2")
    storm(site, 12)
    rows = {r["site"]: r for r in ask(site.proxy, "sites")["sites"]}
    assert rows[site.name]["limited"] == 10
    assert rows[site.name]["s4xx"] == 10
    got = site.proxy.ctl("show_sites", "--json").stdout
    row, = [r for r in map(json.loads, got.splitlines())
            if r["site"] == site.name]
    assert row["limited"] == 10
    with px.connect(site.proxy.address, 7480) as s:
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        text, _ = px.read_all(s)
    assert (b'muster_site_limited_total{site="%s",owner=""} 10'
            % site.host) in text
