"""WebSockets through the proxy: rows G of http_cases.md that concern tunnels,
what a tunnel costs, how it ends, and a real browser's."""

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest

import muster
import proxy as px
import ws

KEY = base64.b64encode(b"0123456789abcdef")
G = b"GET /ws HTTP/1.1\r\nHost: a\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
SAID_KEY = b"Sec-WebSocket-Key: " + KEY + b"\r\n"


@pytest.fixture
def make_proxy(tmp_path):
    made = []

    def make(*args, **options):
        made.append(px.Proxy(tmp_path, *args, **options))
        made[-1].reset()
        for origin in made[-1].origins:
            origin.script = ws.echo_script
        return made[-1]
    yield make
    wrong = [w for p in made for w in p.close()]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.fixture
def proxy(make_proxy):
    return make_proxy()


@pytest.fixture
def tunnels(proxy):
    t = ws.Tunnels(proxy)
    yield t
    t.close()


def workers_of(pid):
    return [p for p, _, argv in muster.children(pid)
            if argv.split()[1:2] == ["worker"]]


def status(proxy):
    with socket.create_connection((proxy.address, 7480)) as s:
        s.sendall(b"GET /status.json HTTP/1.0\r\n\r\n")
        return json.loads(px.read_all(s)[0].partition(b"\r\n\r\n")[2])


def site(proxy, *columns):
    """What operators see of site a."""
    for row in proxy.ctl("show_sites", "--json").json_lines:
        if row["site"] == "a":
            return [row[c] for c in columns]
    return None


def counted(proxy):
    """(tunnels of all workers, places held at all nodes)"""
    report = status(proxy)
    return (sum(w["tunnels"] for w in report["workers"]),
            sum(n["active"] for n in report["nodes"]))


def wait_for_count(proxy, tunnels, places=None):
    wanted = (tunnels, tunnels if places is None else places)
    muster.wait_for(lambda: counted(proxy) == wanted,
                    what=f"{wanted} in the scoreboard")


# ---- the handshake ----

def test_texts_come_back(proxy):
    peer = ws.open_client(proxy)
    for text in ("", "Grüße, 世界! 🌍", "x" * 125, "x" * 126, "x" * 65535,
                 "x" * 65536, "x" * 1000000):
        peer.echo(text.encode())
    peer.echo(os.urandom(100000), ws.BINARY)
    peer.goodbye()


def test_fragments_and_control_frames_pass(proxy):
    peer = ws.open_client(proxy)
    peer.send("Grü".encode()[:4], fin=False)  # in the middle of a letter
    peer.send(b"are you there?", ws.PING)
    peer.send("üße".encode()[1:], 0)
    assert peer.recv() == (ws.TEXT, False, "Grü".encode()[:4])
    assert peer.recv() == (ws.PONG, True, b"are you there?")
    assert peer.recv() == (0, True, "üße".encode()[1:])
    peer.send(b"ping me")
    assert peer.recv() == (ws.PING, True, b"from the node")
    peer.send(b"from the node", ws.PONG)
    assert peer.recv() == (ws.TEXT, True, b"ping me")
    peer.goodbye()


def test_what_the_node_is_asked(proxy):
    peer = ws.open_client(
        proxy, "/chat?room=1", more="Origin: http://a\r\nX-Real-IP: 9.9.9.9"
        "\r\nSec-WebSocket-Protocol: chat, superchat\r\n"
        "Sec-WebSocket-Extensions: permessage-deflate\r\n")
    head = proxy.origin.requests[0][0]
    assert head.startswith(b"GET /chat?room=1 HTTP/1.1\r\n")
    for name, value in ((b"Upgrade", b"websocket"),
                        (b"Connection", b"Upgrade"),
                        (b"Sec-WebSocket-Version", b"13"),
                        (b"Sec-WebSocket-Protocol", b"chat, superchat"),
                        (b"Sec-WebSocket-Extensions", b"permessage-deflate"),
                        (b"Origin", b"http://a"), (b"Host", b"a")):
        assert px.field(head, name) == [value]
    assert px.field(head, b"X-Real-IP") != [b"9.9.9.9"]
    assert px.field(head, b"X-Forwarded-Proto") == [proxy.SCHEME]
    peer.goodbye()


@pytest.mark.parametrize("row, sent, answer", [
    ("G11: no key", G + UPGRADE + b"\r\n", 400),
    ("G11: two keys", G + UPGRADE + SAID_KEY + SAID_KEY + b"\r\n", 400),
])
def test_refused_handshakes_reach_no_node(proxy, row, sent, answer):
    got, _ = proxy.talk(sent)
    assert px.statuses(got) == [answer]
    assert not proxy.origin.requests


@pytest.mark.parametrize("row, sent", [
    ("G11: HTTP/1.0", G.replace(b"/1.1", b"/1.0") + UPGRADE + SAID_KEY),
    ("G11: POST", G.replace(b"GET", b"POST") + UPGRADE + SAID_KEY),
    ("F3: not in Connection", G + b"Upgrade: websocket\r\n" + SAID_KEY),
    ("G9: h2c too", G + UPGRADE + b"Upgrade: h2c\r\n" + SAID_KEY),
])
def test_no_upgrade_is_asked(proxy, row, sent):
    """The request goes on as a plain one, and a node that switches all the
    same is at fault."""
    proxy.origin.script = None
    got, _ = proxy.talk(sent + b"Connection: close\r\n\r\n")
    assert px.statuses(got) == [200]
    assert not px.field(proxy.origin.requests[0][0], b"Upgrade")
    proxy.origin.script = lambda s, head, body: s.sendall(
        ws.switch(head + SAID_KEY))
    got, _ = proxy.talk(sent + b"Connection: close\r\n\r\n")
    assert px.statuses(got) == [502]
    assert counted(proxy) == (0, 0)


def test_G7_a_refused_upgrade_stays_http(proxy):
    """What a client sends behind a refused handshake is a request, parsed by
    us; on the node's side the connection is used again."""
    proxy.origin.script = None
    got, _ = proxy.talk(
        ws.request(KEY), G + b"Connection: close\r\n\r\n")
    assert px.statuses(got) == [200, 200]
    assert len(proxy.origin.requests) == 2
    got, _ = proxy.talk(ws.request(KEY) + b"\x81\x85abcd-no request\r\n\r\n")
    assert px.statuses(got) == [200, 400]
    assert len(proxy.origin.requests) == 3


def test_early_bytes_of_both_sides_are_kept(proxy):
    """Frames in the same segment as the heads."""
    def script(sock, head, body):
        sock.sendall(ws.switch(head) + b"\x81\x05first")
        assert sock.recv(100) == b"early"
        sock.sendall(b"\x81\x06second")
        return False
    proxy.origin.script = script
    got, how = proxy.talk(ws.request(KEY) + b"early", fin=True)
    assert got.partition(b"\r\n\r\n")[2] == b"\x81\x05first\x81\x06second"
    assert how == "fin"


# ---- back-pressure ----

def push_until_stuck(sock, block):
    """Writes until nobody takes more; the bytes that were taken."""
    sock.setblocking(False)
    sent = 0
    while select.select([], [sock], [], 0.5)[1]:
        with contextlib.suppress(BlockingIOError):
            sent += sock.send(block)
    sock.setblocking(True)
    sock.settimeout(muster.PATIENCE_S)
    return sent


def read_exactly(sock, size):
    got = 0
    while got < size:
        more = sock.recv(1 << 20)
        assert more, f"ended after {got} of {size} bytes"
        assert more == b"x" * len(more)
        got += len(more)


@pytest.mark.parametrize("slow", ["node", "client"])
def test_a_slow_reader_slows_the_writer(proxy, tunnels, slow):
    ends = [tunnels.open() for _ in range(5)]
    worker = workers_of(proxy.daemon.pid)[0]
    before = muster.memory_kb(worker)["VmRSS"]
    sent = []
    for client, node in ends:
        source = client if slow == "node" else node
        sent.append(push_until_stuck(source, b"x" * 65536))
        # The other direction is not disturbed.
        other = node if slow == "node" else client
        other.sendall(b"x" * 10)
        read_exactly(source, 10)
    assert min(sent) > 65536
    if not muster.ASAN:
        grown = muster.memory_kb(worker)["VmRSS"] - before
        assert grown < 512, f"{grown} kB for 5 stuck tunnels"
    for (client, node), size in zip(ends, sent):
        read_exactly(node if slow == "node" else client, size)
    assert counted(proxy) == (5, 5)


AGAIN = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def test_both_directions_at_once(proxy, tunnels):
    """Much both ways: every byte arrives.  In one thread: a TLS socket is not
    for two."""
    size = 20 << 20
    data = b"x" * size
    ends = tunnels.open()
    put, got = dict.fromkeys(ends, 0), dict.fromkeys(ends, 0)
    for s in ends:
        s.setblocking(False)

    def all_there():
        select.select(ends, [s for s in ends if put[s] < size], [], 0.05)
        for s in ends:
            with contextlib.suppress(*AGAIN):
                if put[s] < size:
                    put[s] += s.send(data[put[s]:put[s] + (1 << 16)])
            with contextlib.suppress(*AGAIN):
                if got[s] < size:
                    more = s.recv(1 << 18)
                    assert more and more == data[:len(more)]
                    got[s] += len(more)
        return all(got[s] == put[s] == size for s in ends)
    end = time.monotonic() + muster.PATIENCE_S
    while not all_there():
        assert time.monotonic() < end, (list(put.values()), list(got.values()))
    muster.wait_for(lambda: site(proxy, "bytes_in", "bytes_out")
                    == [size, size],
                    what="the bytes to be counted while the tunnel is open")


# ---- how it ends ----

@pytest.mark.parametrize("first", ["client", "node"])
def test_G14_half_closed(proxy, tunnels, first):
    client, node = tunnels.open()
    a, b = (client, node) if first == "client" else (node, client)
    a.sendall(b"the last")
    a.shutdown(socket.SHUT_WR)
    assert px.read_all(b) == (b"the last", "fin")
    b.sendall(b"an answer")
    assert a.recv(100) == b"an answer"
    b.sendall(b", and its end")
    b.shutdown(socket.SHUT_WR)
    assert px.read_all(a) == (b", and its end", "fin")
    wait_for_count(proxy, 0)


@pytest.mark.parametrize("first", ["client", "node"])
def test_a_half_closed_tunnel_has_a_limit(make_proxy, first):
    proxy = make_proxy(settings={"proxy.send_timeout": "300ms"})
    t = ws.Tunnels(proxy)
    a, b = t.open() if first == "client" else reversed(t.open())
    a.shutdown(socket.SHUT_WR)
    assert px.read_all(b) == (b"", "fin")
    px.read_all(a)  # although b says nothing
    wait_for_count(proxy, 0)
    t.close()


@pytest.mark.parametrize("first", ["client", "node"])
def test_a_reset_is_passed_on(proxy, tunnels, first):
    client, node = tunnels.open()
    a, b = (client, node) if first == "client" else (node, client)
    px.reset(a)
    assert px.read_all(b) == (b"", "reset")
    wait_for_count(proxy, 0)


def test_idle_tunnels_end_and_pings_keep_them(make_proxy):
    proxy = make_proxy(settings={"proxy.tunnel_idle": "1s"})
    silent, alive = ws.open_client(proxy), ws.open_client(proxy)
    start = time.monotonic()
    silent.sock.settimeout(0.1)
    while True:
        alive.send(b"?", ws.PING)
        assert alive.recv() == (ws.PONG, True, b"?")
        try:
            assert silent.sock.recv(1) == b""
        except TimeoutError:
            assert time.monotonic() - start < muster.PATIENCE_S
            continue
        except ConnectionResetError:
            pass
        break
    assert time.monotonic() - start > 0.9
    wait_for_count(proxy, 1)
    proxy.ctl("set", "proxy.tunnel_idle", "1h")  # at once, also for old ones
    alive.goodbye()
    wait_for_count(proxy, 0)


# ---- counted ----

def test_tunnels_are_counted(proxy, tunnels):
    ends = [tunnels.open() for _ in range(5)]
    assert counted(proxy) == (5, 5)
    assert proxy.ctl("show_workers", "--json").json["tunnels"] == 5
    assert site(proxy, "tunnels", "active") == [5, 5]
    for client, node in ends[:2]:
        client.close()
        node.close()
    wait_for_count(proxy, 3)
    tunnels.over.set()
    for client, _ in ends[2:]:
        client.close()
    wait_for_count(proxy, 0)
    # Of a site: those that were ever opened.
    assert site(proxy, "tunnels", "active") == [5, 0]


def test_a_bound_of_the_node_holds_for_tunnels(make_proxy):
    proxy = make_proxy(role=["--maxconn", "2", "--queue", "10"])
    peers = [ws.open_client(proxy) for _ in range(2)]
    with proxy.connect() as s:
        s.sendall(G + b"Connection: close\r\n\r\n")
        muster.wait_for(lambda: status(proxy)["workers"][0]["queued"] == 1,
                        what="the request to wait")
        proxy.origin.script = None
        peers.pop().goodbye()
        assert px.statuses(px.read_all(s)[0]) == [200]
    peers.pop().goodbye()
    wait_for_count(proxy, 0)


def test_the_log_has_one_line_at_the_end(make_proxy, tmp_path):
    log = tmp_path / "access.log"
    proxy = make_proxy(settings={"proxy.access_log": log,
                                 "proxy.access_log_format": "json"})
    peer = ws.open_client(proxy, "/chat", more="User-Agent: me\r\n")
    peer.echo(b"x" * 1000)
    proxy.talk(b"GET / HTTP/1.1\r\nHost: nobody.example\r\n"
               b"Connection: close\r\n\r\n")
    muster.wait_for(lambda: log.exists() and log.read_text(),
                    what="the line of another request")
    assert "/chat" not in log.read_text()
    peer.goodbye()
    muster.wait_for(lambda: "/chat" in log.read_text(), what="its line")
    line = next(json.loads(text) for text in log.read_text().splitlines()
                if "/chat" in text)
    assert line["status"] == 101
    assert line["site"] == "a" and line["host"] == "a"
    assert line["agent"] == "me"
    assert line["bytes_in"] == 1000 + 8 + 2 + 6  # masked: text and close
    assert line["bytes_out"] == 1000 + 4 + 2 + 2


# ---- life around it ----

def test_a_node_killed(make_proxy):
    """Its tunnels end, others do not notice; nothing stays counted."""
    proxy = make_proxy(2)
    peers = [ws.open_client(proxy) for _ in range(20)]
    muster.wait_for(lambda: counted(proxy) == (20, 20))
    proxy.origins[0].stop()
    proxy.origins[0].start()  # so that the proxy's close() can stop it
    ended, alive = [], []
    for p in peers:
        try:
            p.echo(b"still there?")
            alive.append(p)
        except (EOFError, OSError):
            ended.append(p)
    assert len(ended) == len(alive) == 10
    for p in ended:
        p.sock.close()
    wait_for_count(proxy, 10)
    for p in alive:
        p.goodbye()
    wait_for_count(proxy, 0)


@muster.needs_root
def test_changes_of_the_registry_pass_by(proxy):
    """A tunnel lives through them, and keeps no old snapshot alive."""
    def maps():
        worker = workers_of(proxy.daemon.pid)[0]
        return Path(f"/proc/{worker}/maps").read_text().count("memfd:")

    def served(name):
        got, _ = proxy.talk(b"GET / HTTP/1.1\r\nHost: %s\r\n"
                            b"Connection: close\r\n\r\n" % name.encode())
        return px.statuses(got) == [200]
    peer = ws.open_client(proxy)
    proxy.origin.script = None
    before = maps()
    for i in range(8):
        name = f"new{i}.example"
        proxy.ctl("site", "add", name, "--role", "worker_http")
        muster.wait_for(lambda: served(name), what=f"{name} to be served")
        peer.echo(b"still there?")
    assert maps() <= before + 1
    proxy.ctl("site", "del", "a")
    muster.wait_for(lambda: not served("a"), what="site a to go")
    peer.echo(b"still there?")
    peer.goodbye()
    wait_for_count(proxy, 0)


def refuses(proxy):
    try:
        proxy.connect().close()
        return False
    except OSError:
        return True


def ends_within(peer, seconds):
    """Whether the other side ends it; how long that took."""
    start = time.monotonic()
    peer.sock.settimeout(seconds)
    try:
        assert peer.sock.recv(1) == b""
    except ConnectionResetError:
        pass
    return time.monotonic() - start


def test_draining_lets_tunnels_live_until_the_deadline(make_proxy):
    proxy = make_proxy(settings={"proxy.drain_timeout": "2s"})
    peer, other = ws.open_client(proxy), ws.open_client(proxy)
    start = time.monotonic()
    proxy.daemon.proc.terminate()
    muster.wait_for(lambda: refuses(proxy), what="the listener to close")
    peer.echo(b"while it drains")
    other.goodbye()
    ends_within(peer, muster.PATIENCE_S)
    assert time.monotonic() - start > 1.9
    assert proxy.daemon.proc.wait(muster.PATIENCE_S) == 0


def test_draining_ends_with_the_last_tunnel(make_proxy):
    proxy = make_proxy(settings={"proxy.drain_timeout": "1h"})
    peer = ws.open_client(proxy)
    proxy.daemon.proc.terminate()
    muster.wait_for(lambda: refuses(proxy), what="the listener to close")
    peer.echo(b"while it drains")
    peer.goodbye()
    assert proxy.daemon.proc.wait(muster.PATIENCE_S) == 0


def test_an_upgrade_cuts_no_tunnel_before_the_deadline(make_proxy):
    proxy = make_proxy(settings={"proxy.drain_timeout": "3s"})
    peers = [ws.open_client(proxy) for _ in range(10)]
    start = time.monotonic()
    said = muster.run(muster.program("proxyd"), "--state",
                      proxy.cluster.master.state, "upgrade").stdout
    new = int(said.split()[1])
    try:
        fresh = ws.open_client(proxy)
        for p in peers:
            p.echo(b"still there?")
        if time.monotonic() - start < 2.5:
            peers.pop().goodbye()
        for p in peers:
            ends_within(p, muster.PATIENCE_S)
        assert time.monotonic() - start > 2.9
        fresh.echo(b"by the new one")
        assert proxy.daemon.proc.wait(muster.PATIENCE_S) == 0
        wait_for_count(proxy, 1)
        fresh.goodbye()
    finally:
        os.kill(new, signal.SIGTERM)
        os.waitpid(new, 0)


def test_a_drained_node_keeps_its_tunnels(make_proxy):
    proxy = make_proxy(2)
    peers = [ws.open_client(proxy) for _ in range(4)]
    proxy.ctl("node", "drain", "n1")
    muster.wait_for(lambda: "drain" in [n["state"] for n in
                                        status(proxy)["nodes"]],
                    what="the drain to be known")
    for p in peers:
        p.echo(b"still there?")
        p.goodbye()
    wait_for_count(proxy, 0)


def test_a_worker_killed_takes_its_count_with_it(make_proxy):
    proxy = make_proxy()
    proxy.daemon.expect_log("worker")
    peer = ws.open_client(proxy)
    muster.wait_for(lambda: counted(proxy) == (1, 1))
    os.kill(workers_of(proxy.daemon.pid)[0], signal.SIGKILL)
    ends_within(peer, muster.PATIENCE_S)
    wait_for_count(proxy, 0)
    ws.open_client(proxy).goodbye()


# ---- many ----

@pytest.fixture
def echo_behind(make_proxy):
    """A proxy before wsecho, good for thousands of tunnels."""
    proxy = make_proxy(0, settings={"proxy.max_connections": "20000"})
    address = proxy.cluster.net.address()
    server = subprocess.Popen([muster.BIN / "tests/bench/wsecho",
                               f"{address}:9000"], env=muster.clean_env())
    try:
        proxy.ctl("node", "add", "n1", address, "--role", "worker_http")
        muster.wait_for(lambda: [n for n in status(proxy)["nodes"]
                                 if n["node"] == "n1"], what="the node")
        yield proxy
    finally:
        server.kill()
        server.wait()


def wsload(proxy, n, *options):
    return subprocess.Popen(
        [muster.BIN / "tests/bench/wsload", "-n", str(n), "-c", "50",
         "--host", "a", "--json", *options,
         *(["--tls"] if proxy.SCHEME == b"https" else []),
         f"{proxy.address}:{proxy.CLIENT_PORT}"], env=muster.clean_env(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def outcome(generator):
    out = generator.communicate(timeout=4 * muster.PATIENCE_S)[0]
    taken = json.loads(out.splitlines()[-1])
    assert taken["failed"] == {} and taken["done"] == taken["connections"]


def test_an_idle_tunnel_takes_little(echo_behind):
    """Measured over thousands, once the pools are warm."""
    proxy, n = echo_behind, 300 if muster.ASAN else 3000
    soft, hard = (int(v) for v in subprocess.run(
        ["sh", "-c", "ulimit -Sn; ulimit -Hn"], stdout=subprocess.PIPE,
        check=True, text=True).stdout.split())
    if soft < n + 100:
        pytest.skip(f"{soft} descriptors are too few for {n} tunnels "
                    f"(ulimit -n; up to {hard})")
    outcome(wsload(proxy, 200))
    worker = workers_of(proxy.daemon.pid)[0]
    fds = f"/proc/{worker}/fd"
    before, open_before = muster.memory_kb(worker)["VmRSS"], len(
        os.listdir(fds))
    generator = wsload(proxy, n, "--hold")
    assert generator.stdout.readline() == "held\n"
    wait_for_count(proxy, n)
    each = (muster.memory_kb(worker)["VmRSS"] - before) * 1024 / n
    print(f"{each:.0f} bytes each")
    outcome(generator)
    wait_for_count(proxy, 0)
    muster.wait_for(lambda: len(os.listdir(fds)) <= open_before + 1,
                    what="descriptors to close")
    assert muster.ASAN or each < proxy.TUNNEL_BYTES


# ---- a browser ----

PAGE = """<!DOCTYPE html><title>waits</title><script>
const said = "Grüße, 世界! 🌍";
const w = new WebSocket(location.href.replace("http", "ws") + "ws");
const tell = what => fetch("/told?" + encodeURIComponent(what));
w.onopen = () => w.send(said);
w.onmessage = m => { if (m.data === said) w.close(1000); else tell("wrong"); };
w.onclose = c => tell("closed " + c.code + " clean " + c.wasClean);
</script>"""


def test_a_page_in_a_browser(make_proxy, tmp_path):
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("there is no chromium (Debian package chromium)")
    proxy = make_proxy(settings={"proxy.default_site": "a"})
    page = PAGE.encode()

    def script(sock, head, body):
        if b"GET /ws " in head:
            return ws.echo_script(sock, head, body)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html; "
                     b"charset=utf-8\r\nContent-Length: %d\r\n\r\n%s"
                     % (len(page), page))
        return True
    proxy.origin.script = script

    def told():
        return [head.split()[1] for head, _ in proxy.origin.requests
                if b"/told?" in head.split(b"\r\n")[0]]
    profile = tmp_path / "browser"
    with open(tmp_path / "browser.log", "wb") as log:
        process = subprocess.Popen(
            [browser, "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage",
             "--disable-quic", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-breakpad",
             "--disable-component-update", "--remote-debugging-port=0",
             "--ignore-certificate-errors", f"--user-data-dir={profile}",
             f"{proxy.SCHEME.decode()}://{proxy.address}:"
             f"{proxy.CLIENT_PORT}/"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, env=muster.clean_env(
                {"HOME": str(tmp_path)}))
    try:
        muster.wait_for(told, 60, "the page's word")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        muster.wait_for(lambda: not of_profile(profile),
                        what="the browser's processes to end")
    assert told()[0] == b"/told?closed%201000%20clean%20true"
    wait_for_count(proxy, 0)


def of_profile(profile):
    """Processes that still use it; those that are ours are reaped."""
    return [pid for pid, state, argv in muster.children()
            if state != "Z" and str(profile) in argv]
