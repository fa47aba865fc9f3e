"""Nodes that are Unix sockets on the proxy's machine."""

import contextlib
import hashlib
import os
import re
import shutil
import socket
import tempfile
import threading
from pathlib import Path

import pytest

import muster
import proxy as px
from live_proxy import LiveProxy, Server
from muster import needs_root, wait_for

R = b"HTTP/1.1 200 OK\r\n"


class UnixOrigin(px.RawOrigin):
    """A RawOrigin on a Unix socket that anybody may connect to."""

    def __init__(self, path):
        self.path = path
        super().__init__(f"unix:{path}")

    def listen(self):
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.path))
        self.path.chmod(0o777)
        listener.listen(512)
        return listener


class UnixNginx(Server):
    """Echoes the path, serves a big file, and takes any upload."""

    def configure(self):
        docs = Path(self.address.removeprefix("unix:")).parent
        (docs / "big").write_bytes(b"0123456789abcdef" * (8 << 16))
        (self.dir / "nginx.conf").write_text(f"""
            daemon off; worker_processes 1; pid {self.dir}/pid;
            error_log {self.log} error;
            events {{ worker_connections 1024; }}
            http {{
              access_log off;
              client_body_temp_path {self.dir}/t1;
              proxy_temp_path {self.dir}/t2; fastcgi_temp_path {self.dir}/t3;
              uwsgi_temp_path {self.dir}/t4; scgi_temp_path {self.dir}/t5;
              server {{
                listen {self.address};
                location = /big {{ root {docs}; }}
                location / {{ return 200 "nginx $uri"; }}
              }}
            }}""")

    def argv(self):
        return [shutil.which("nginx") or "/usr/sbin/nginx", "-p",
                str(self.dir), "-c", "nginx.conf"]

    def answers(self):
        with contextlib.suppress(OSError), socket.socket(
                socket.AF_UNIX) as s:
            s.connect(self.address.removeprefix("unix:"))
            return True
        return False


@pytest.fixture
def sockets():
    """A folder with a short name that anybody may enter."""
    with tempfile.TemporaryDirectory(prefix="muster-u-") as d:
        os.chmod(d, 0o755)
        yield Path(d)


@pytest.fixture
def live(tmp_path, sockets):
    """Proxies that end before the folder of their nodes' sockets goes."""
    made = []

    def make(*origins, **options):
        p = LiveProxy(tmp_path, **options)
        made.append(p)
        for i, origin in enumerate(origins):
            p.raw.append(origin)
            add(p, f"u{i + 1}", origin.address)
        p.await_revision()
        return p
    yield make
    for p in made:
        wrong = p.close()
        assert not wrong, "\n".join(wrong)


def add(p, name, address):
    p.ctl("node", "add", name, address, "--role", "worker_http")


def why(p, path="/"):
    """What X-Muster-Why says, asked by a trusted peer."""
    with p.connect() as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nX-Muster-Why: 1\r\n"
                  "Connection: close\r\n\r\n".encode())
        got, _ = px.read_all(s)
    return got.split(b"\r\n\r\n")[0].decode()


def test_requests_and_connections_that_are_kept(live, sockets):
    origin = UnixOrigin(sockets / "app")
    p = live(origin, settings={"proxy.workers": "1"})
    for _ in range(20):
        assert p.get() == (200, b"ok")
    assert origin.connections == 1
    row = p.nodes()["u1"]
    assert row["address"] == origin.address and row["total"] == 20
    assert origin.address in p.ctl("show_nodes").stdout
    assert origin.address in p.ctl("node", "show", "u1").stdout
    assert p.ctl("--json", "nodes").json_lines[-1]["address"] == origin.address


def test_big_bodies_both_ways(live, sockets):
    body = os.urandom(1 << 20) * 5
    digest = hashlib.sha256(body).hexdigest()
    origin = UnixOrigin(sockets / "app")

    def script(sock, head, got):
        assert hashlib.sha256(got).hexdigest() == digest
        sock.sendall(R + b"Content-Length: %d\r\n\r\n" % len(body))
        sock.sendall(body)
    origin.script = script
    p = live(origin)
    for _ in range(2):
        with p.connect() as s:
            threading.Thread(target=s.sendall, daemon=True, args=(
                b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body) + body,)).start()
            got, how = px.read_all(s)
        head, _, rest = got.partition(b"\r\n\r\n")
        assert px.statuses(head) == [200] and how == "fin"
        assert hashlib.sha256(rest).hexdigest() == digest


def test_nginx_on_a_socket(live, sockets):
    p = live()
    nginx = UnixNginx(p.cluster, "n", f"unix:{sockets}/nginx")
    (sockets / "nginx").chmod(0o777)
    add(p, "n", nginx.address)
    p.await_revision()
    assert p.get("/x") == (200, b"nginx /x")
    status, body = p.get("/big")
    assert status == 200 and body == b"0123456789abcdef" * (8 << 16)


def test_a_program_that_starts_again_and_one_that_is_gone(live, sockets):
    one, two = UnixOrigin(sockets / "1"), UnixOrigin(sockets / "2")
    p = live(one, two, settings={"proxy.trusted": "127.0.0.1"})
    assert p.get() == (200, b"ok")
    one.stop()
    one.start()
    for _ in range(10):
        assert p.get() == (200, b"ok")
    one.stop()
    two.stop()
    (sockets / "2").unlink()
    assert "connect_refused" in why(p)
    two.start()
    wait_for(lambda: p.get() == (200, b"ok"), what="the second again")


def test_a_node_that_moves(live, sockets):
    """Kept connections to where it was are not used any more."""
    one, two = UnixOrigin(sockets / "1"), UnixOrigin(sockets / "2")
    p = live(one)
    p.raw.append(two)
    for _ in range(4):
        assert p.get() == (200, b"ok")
    p.ctl("node", "set", "u1", "--address", two.address)
    p.await_revision()
    before = len(one.requests)
    for _ in range(4):
        assert p.get() == (200, b"ok")
    assert len(one.requests) == before and len(two.requests) == 4


@pytest.mark.parametrize("balance", ["hash:ip", "sticky"])
def test_a_client_stays_with_its_socket(live, sockets, balance):
    origins = [UnixOrigin(sockets / str(i)) for i in range(3)]
    p = live(*origins, role=("--balance", balance))
    with p.connect() as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        got, _ = px.read_all(s)
    cookie = re.search(rb"Set-Cookie: (\w+=[^;]+)", got)
    first, = (o for o in origins if o.requests)
    for _ in range(12):
        with p.connect() as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                      + (b"Cookie: %s\r\n" % cookie.group(1) if cookie
                         else b"") + b"\r\n")
            px.read_all(s)
    assert len(first.requests) == 13


def test_a_full_socket_is_waited_for(live, sockets):
    """Where TCP would keep the connection waiting, a Unix socket refuses at
    once: the request waits in the role's queue, and the node is not blamed."""
    path = sockets / "app"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o777)
    listener.listen(0)
    p = live(settings={"proxy.workers": "1", "proxy.eject_failures": "1"},
             role=("--queue-timeout", "1h"))
    add(p, "u1", f"unix:{path}")
    p.await_revision()
    asking = []
    for i in range(8):
        s = p.connect()
        s.sendall(b"GET /%d HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
                  % i)
        asking.append(s)
    wait_for(lambda: p.nodes()["u1"]["queued"] >= 6, what="a queue")
    assert p.nodes()["u1"]["state"] == "up"
    stop = threading.Event()

    def serve():
        while not stop.is_set():
            conn, _ = listener.accept()
            with contextlib.suppress(OSError), conn:
                px.read_head(conn)
                conn.sendall(R + b"Content-Length: 2\r\n"
                                 b"Connection: close\r\n\r\nok")
    threading.Thread(target=serve, daemon=True).start()
    for s in asking:
        assert px.statuses(px.read_all(s)[0]) == [200]
        s.close()
    assert p.nodes()["u1"]["failed"] == 0
    stop.set()


@needs_root
def test_a_socket_that_the_workers_may_not_connect_to(live, sockets):
    """Root may, and yet the check says what the workers would find."""
    origin = UnixOrigin(sockets / "app")
    origin.path.chmod(0o770)
    p = live(origin, settings={"proxy.trusted": "127.0.0.1"})
    assert "connect_denied" in why(p)
    p.daemon.expect_log("check_denied: the account proxy.user may not")
    p.ctl("role", "set", "worker_http", "--health", "tcp", "--interval",
          "100ms", "--fall", "1", "--rise", "1")
    p.await_state("u1", "down")
    assert p.nodes()["u1"]["why"] == "check_denied"
    assert "may not connect to its socket" in p.log
    origin.path.chmod(0o777)
    p.daemon.expect_log("is up: check_ok")
    p.await_state("u1", "up")
    wait_for(lambda: p.get() == (200, b"ok"), what="an answer")
    sockets.chmod(0o700)  # and a folder that may not be entered
    p.await_state("u1", "down")
    assert p.nodes()["u1"]["why"] == "check_denied"
    # With an account's group alone, too.
    sockets.chmod(0o755)
    shutil.chown(origin.path, group="nogroup")
    origin.path.chmod(0o770)
    p.await_state("u1", "up")


def test_http_checks_of_a_socket(live, sockets):
    origin = UnixOrigin(sockets / "app")
    p = live(origin)
    p.daemon.expect_log("node u1 as worker_http is")
    p.ctl("role", "set", "worker_http", "--health", "http GET /alive",
          "--interval", "100ms", "--fall", "1", "--rise", "1")
    wait_for(lambda: any(h.startswith(b"GET /alive") for h, _ in
                         list(origin.requests)), what="a check")
    p.await_state("u1", "up")
    origin.script = px.say(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
    p.await_state("u1", "down")


def test_it_goes_into_an_export_and_back(live, sockets, tmp_path):
    origin = UnixOrigin(sockets / "app")
    p = live(origin)
    p.ctl("role", "set", "worker_http", "--proxy-protocol", "v1")
    out = tmp_path / "export.json"
    out.write_text(p.ctl("registry", "export").stdout)
    assert f'"{origin.address}"' in out.read_text()
    p.ctl("node", "remove", "u1")
    assert "add node u1 unix:" in p.ctl("registry", "apply", "--dry-run",
                                        out).stdout
    p.ctl("registry", "apply", out)
    assert origin.address in p.ctl("node", "show", "u1").stdout
    assert p.ctl("registry", "apply", "--dry-run", out).stdout == ""


def test_agents_and_a_proxy_that_go_by_the_roster(tmp_path, sockets):
    tmp_path.chmod(0o755)
    c = muster.Cluster(tmp_path)
    origin = UnixOrigin(sockets / "app")
    try:
        c.init()
        edge = c.add_worker("edge", role="master")
        address = c.net.address()
        c.ctl("role", "set", "worker_http", "--proxy-protocol", "v1",
              "--health", "none")
        c.ctl("node", "add", "php", origin.address, "--role", "worker_http")
        c.ctl("site", "add", "a", "--role", "worker_http")
        c.ctl("set", "proxy.status.listen", "off")
        c.ctl("set", "proxy.http.listen", f"{address}:8080")
        wait_for(lambda: address.encode() in
                 (edge.state / "roster").read_bytes(), what="the roster")
        c.daemon("proxyd", muster.program("proxyd"), "--state", edge.state,
                 "run")
        with px.connect(address, 8080) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close"
                      b"\r\n\r\n")
            assert px.statuses(px.read_all(s)[0]) == [200]
        assert origin.requests[0][0].startswith(b"PROXY TCP4 127.0.0.1 ")
        assert origin.address in edge.ctl("node", "show", "php").stdout
        # It takes no orders and stops none.
        assert "php" not in c.ctl("exec", "-a", "true").stdout
        assert "php" in c.ctl("exec", "php", "true", status=4).stderr
    finally:
        wrong = c.close()
        origin.close()
    assert wrong == []


def test_what_cannot_be_is_refused(live):
    p = live()
    for args, text in [
            (["unix:app"], "absolute path"),
            (["unix:/" + "x" * 107], "too long"),
            (["unix:/run/a b"], "a space"),
            (["unix:/run/a", "--port", "worker_http=80"], "has no port")]:
        r = p.ctl("node", "add", "x", *args, "--role", "worker_http",
                  status=2)
        assert text in r.stderr
    assert "x" not in p.ctl("nodes").stdout.split()
    r = p.ctl("node", "set", "m1", "--address", "unix:/run/a", status=2)
    assert "has an agent" in r.stderr
    assert p.get()[0] == 503
