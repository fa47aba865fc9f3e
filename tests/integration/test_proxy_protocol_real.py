"""The PROXY protocol with those who speak it: Apache, nginx and HAProxy
behind us, HAProxy and nginx before us."""

import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

import muster
import proxy as px
import webservers
from live_proxy import LiveProxy, close_all
from muster import wait_for
from proxy import field
from secure import authority, give, issued, wrap

ONE = b"GET /cgi/addr HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

HAPROXY = """
global
    log stderr format raw daemon
defaults
    mode {mode}
    timeout client 20s
    timeout server 20s
    timeout connect 5s
{rest}
"""


class HAProxy:
    """HAProxy in the foreground with this configuration."""

    def __init__(self, rest, mode="http"):
        if shutil.which("haproxy") is None:
            pytest.skip("haproxy is not installed")
        self.dir = Path(tempfile.mkdtemp(prefix="muster-ha-"))
        conf = self.dir / "haproxy.cfg"
        conf.write_text(HAPROXY.format(mode=mode, rest=rest))
        self.proc = subprocess.Popen(
            ["haproxy", "-db", "-f", str(conf)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=muster.clean_env())

    def close(self):
        self.proc.kill()
        self.proc.wait()
        shutil.rmtree(self.dir)


class HANode(HAProxy):
    """Answers with whom the header named, and what else it told."""

    def __init__(self, address):
        self.address = address
        super().__init__(f"""
frontend f
    bind {address}:9000 accept-proxy
    http-request return status 200 content-type text/plain lf-string \
"%[src] %[dst_port] %[fc_pp_authority]"
""")

    def reset(self):
        pass


class ApacheNode(webservers.Apache):
    MODULES = (*webservers.Apache.MODULES, "remoteip")

    def __init__(self, address):
        super().__init__(address, workers=8,
                         more="RemoteIPProxyProtocol On\n")
        self.cgi("addr", "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n"
                 "\\r\\n%s' \"$REMOTE_ADDR\"\n")

    def reset(self):
        pass


class NginxNode(webservers.Nginx):
    def __init__(self, address):
        super().__init__(address, port=9001, more=f"""
            listen {address}:9000 proxy_protocol;
            location / {{
                return 200 "$proxy_protocol_addr $proxy_protocol_server_port";
            }}""")

    def reset(self):
        pass


def ask(address, port, source, n=1):
    """The bodies of n answers on one connection from a source."""
    with socket.create_connection((address, port),
                                  timeout=muster.PATIENCE_S,
                                  source_address=(source, 0)) as s:
        s.sendall(ONE.replace(b"Connection: close\r\n", b"") * (n - 1) + ONE)
        got, _ = px.read_all(s)
    bodies = []
    while got:
        head, _, got = got.partition(b"\r\n\r\n")
        assert px.statuses(head) == [200], head
        size = field(head, b"Content-Length")
        if size:
            body, got = got[:int(size[0])], got[int(size[0]):]
        else:  # chunked
            body, _, got = got.partition(b"\r\n0\r\n\r\n")
            body = body.partition(b"\r\n")[2]
        bodies.append(body.decode())
    return bodies


class Behind(px.Proxy):
    ask, nodes = LiveProxy.ask, LiveProxy.nodes

    @property
    def state(self):
        return self.cluster.master.state


@pytest.fixture(params=[ApacheNode, NginxNode, HANode],
                ids=["apache", "nginx", "haproxy"])
def behind(request, tmp_path):
    p = Behind(tmp_path, origin=request.param)
    yield p
    wrong = p.close()
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_nodes_know_the_client(behind, version):
    behind.ctl("role", "set", "worker_http", "--proxy-protocol", version,
               "--health", "http GET /cgi/addr", "--interval", "200ms",
               "--rise", "1", "--fall", "1")
    behind.daemon.expect_log("node n1 as worker_http is")
    sources = [behind.cluster.net.address() for _ in range(3)]

    # The checks' headers are right, too.
    wait_for(lambda: behind.nodes()["n1"]["why"] == "check_ok",
             what="a good check")
    for source in sources * 3:
        for body in ask(behind.address, behind.PORT, source, 3):
            assert body.split()[0] == source, body
            if " " in body:
                assert body.split()[1] == str(behind.PORT)


def test_haproxy_reads_what_tls_told(tmp_path):
    p = Behind(tmp_path, origin=HANode, role=("--proxy-protocol", "v2"))
    p.ctl("site", "add", "shop.example", "--role", "worker_http")
    give(p.ctl, "shop.example", *issued("shop.example"))
    p.ctl("set", "proxy.https.listen", f"{p.address}:8443")
    source = p.cluster.net.address()

    def asked():
        try:
            s = socket.create_connection((p.address, 8443), timeout=10,
                                         source_address=(source, 0))
        except OSError:  # not in force yet
            return None
        with wrap(s, authority().context(alpn=["http/1.1"]),
                  "shop.example") as t:
            t.sendall(ONE.replace(b": a", b": shop.example"))
            return px.read_all(t)[0]
    got = wait_for(asked, what="HTTPS")
    assert got.endswith(f"{source} 8443 shop.example".encode())
    wrong = p.close()
    assert not wrong, "\n".join(wrong)


# ---- before us ---------------------------------------------------------------

@pytest.fixture(scope="module")
def front(tmp_path_factory):
    p = px.Proxy(tmp_path_factory.mktemp("front"),
                 settings={"proxy.proxy_protocol": "127.0.0.1",
                           "proxy.header_timeout": "2s"})
    yield p
    close_all(p)


def check_front(p, address, port):
    def listens():
        try:
            socket.create_connection((address, port)).close()
            return True
        except OSError:
            return False
    wait_for(listens, what="the balancer")
    for _ in range(5):
        source = p.cluster.net.address()
        p.reset()
        with socket.create_connection((address, port),
                                      timeout=muster.PATIENCE_S,
                                      source_address=(source, 0)) as s:
            s.sendall(ONE.replace(b"Connection: close\r\n", b"") + ONE)
            assert px.statuses(px.read_all(s)[0]) == [200, 200]
        assert [field(h, b"X-Real-IP") for h, _ in p.origin.requests] == [
            [source.encode()]] * 2


@pytest.mark.parametrize("option", [
    "send-proxy", "send-proxy-v2",
    "send-proxy-v2 proxy-v2-options crc32c,unique-id,authority"])
def test_haproxy_before_us(front, option):
    address = front.cluster.net.address()
    # Its checks send LOCAL headers with send-proxy-v2.
    balancer = HAProxy(f"""
listen l
    bind {address}:8000
    unique-id-format %{{+X}}o%pid-%ci-%cp
    server s {front.address}:{front.PORT} {option} check inter 100ms
""", mode="tcp")
    try:
        check_front(front, address, 8000)
    finally:
        balancer.close()


def test_nginx_before_us(front, tmp_path):
    module = Path("/usr/lib/nginx/modules/ngx_stream_module.so")
    if not module.exists():
        pytest.skip("nginx has no stream module")
    address = front.cluster.net.address()
    (tmp_path / "nginx.conf").write_text(f"""
        load_module {module};
        daemon off; worker_processes 1; pid {tmp_path}/pid;
        error_log {tmp_path}/error.log;
        events {{ worker_connections 256; }}
        stream {{ server {{
            listen {address}:8000;
            proxy_pass {front.address}:{front.PORT};
            proxy_protocol on;
        }} }}""")
    proc = subprocess.Popen(["nginx", "-c", f"{tmp_path}/nginx.conf"],
                            stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    try:
        check_front(front, address, 8000)
    finally:
        proc.terminate()
        proc.wait()
