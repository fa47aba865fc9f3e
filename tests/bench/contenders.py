"""The proxies that are measured side by side, each in front of the same
origin: ourselves, nginx and HAProxy from the distribution, as an expert would
set them up (persistent connections to the origin, no access log).

Contenders are pinned to one processor, the origin and the load to another.
"""

import os
import re
import socket
import ssl
import subprocess
import time
from pathlib import Path

import muster

HOST = "bench.test"
PROXY_CPU, LOAD_CPU = 0, 1
FILES = {"5": 5, "1k": 1000, "10k": 10000, "100k": 100000, "20M": 20 << 20}

ORIGIN = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/err warn;
user root;
events {{ worker_connections 8192; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p;
  fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{ listen {address}:8080 backlog=4096; root {dir}/www;
    location = /chunked {{ chunked_transfer_encoding on; ssi on;
      ssi_types *; try_files /10k =404; default_type text/plain; }} }}
}}
"""

NGINX = """
daemon off; worker_processes {workers}; pid {dir}/nginx.pid;
error_log {dir}/err warn; user root;
events {{ worker_connections 16384; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p;
  fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  upstream origin {{ server {origin}:8080; keepalive 512;
    keepalive_requests 1000000000; }}
  server {{ listen {address}:8000 backlog=4096; location / {{
    proxy_pass http://origin; proxy_http_version 1.1;
    proxy_set_header Connection ""; proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $remote_addr; }} }}
}}
"""

HAPROXY = """
global
  nbthread {workers}
  maxconn 11000
  no strict-limits
  {splice_global}
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 60s
  timeout http-keep-alive 600s
  http-reuse always
  {splice}
frontend f
  bind {address}:8000 backlog 4096
  default_backend b
backend b
  balance leastconn
  option forwardfor
  server o {origin}:8080
"""

# With a certificate of make_certificate() in the directory {tls}.
TLS_PORT = 8443
CIPHERS = ":".join(
    f"ECDHE-{auth}-{cipher}"
    for cipher in ("AES128-GCM-SHA256", "AES256-GCM-SHA384",
                   "CHACHA20-POLY1305")
    for auth in ("ECDSA", "RSA"))
CURVES = "X25519:P-256:P-384"
NEW_KEY = {"ecdsa": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
           "rsa": ["rsa:2048"]}
NGINX_TLS = (
    "ssl_certificate {tls}/cert; ssl_certificate_key {tls}/key;"
    f" ssl_protocols TLSv1.2 TLSv1.3; ssl_ciphers {CIPHERS};"
    f" ssl_ecdh_curve {CURVES}; ssl_prefer_server_ciphers off;"
    " ssl_session_tickets on;")
HAPROXY_TLS = (f"ssl crt {{tls}}/both ssl-min-ver TLSv1.2 ciphers {CIPHERS} "
               f"curves {CURVES} alpn http/1.1")


def make_certificate(dir, kind):
    """cert, key, and both in one file, for HOST."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", *NEW_KEY[kind], "-nodes",
         "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}",
         "-days", "90", "-keyout", dir / "key", "-out", dir / "cert"],
        check=True, stderr=subprocess.DEVNULL)
    (dir / "both").write_text((dir / "cert").read_text()
                              + (dir / "key").read_text())


def children(pid):
    tasks = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(p) for p in tasks.split()]


def family(pid):
    """A process and all below it."""
    found = [pid]
    for child in children(pid):
        found += family(child)
    return found


def accepts(address, port):
    try:
        socket.create_connection((address, port), 1).close()
        return True
    except OSError:
        return False


def threads(pid):
    return [int(t) for t in os.listdir(f"/proc/{pid}/task")]


class Server:
    """Something that listens, pinned to a processor."""

    def __init__(self, name, argv, address, port, cpus):
        self.name, self.address, self.port = name, address, port
        self.proc = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=muster.clean_env())
        try:
            muster.wait_for(lambda: accepts(address, port), 20, name)
        except AssertionError:
            self.close()
            raise
        self.pin(cpus)

    def pin(self, cpus):
        for pid in family(self.proc.pid):
            for thread in threads(pid):
                os.sched_setaffinity(thread, cpus)

    def workers(self):
        """The processes that carry the traffic."""
        return children(self.proc.pid) or [self.proc.pid]

    def cpu_s(self):
        """CPU seconds that the workers have used, to the nanosecond."""
        return sum(int(Path(f"/proc/{pid}/task/{t}/schedstat")
                       .read_text().split()[0])
                   for pid in self.workers() for t in threads(pid)) / 1e9

    def rss_kb(self):
        return sum(muster.memory_kb(p)["VmRSS"] for p in self.workers())

    def close(self):
        self.proc.terminate()
        try:
            self.proc.wait(20)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()


class Muster(Server):
    """proxyd on a registry of its own."""

    def __init__(self, tmp, address, origin, workers, cpus, sites=()):
        self.state = tmp / "muster"
        self.ctl("init", "--cluster", "bench", "--name", "m1",
                 "--address", f"{address}:7400")
        self.ctl("node", "add", "o1", origin, "--role", "worker_http",
                 "--port", "worker_http=8080")
        self.ctl("site", "add", HOST)
        for key, value in (("proxy.http.listen", f"{address}:8000"),
                           ("proxy.status.listen", f"{address}:7480"),
                           ("proxy.workers", workers),
                           ("proxy.keepalive", "10m"),
                           ("proxy.max_connections", 20000), *sites):
            self.ctl("set", key, str(value))
        super().__init__("muster", [muster.program("proxyd"), "--state",
                                    self.state, "run"], address, 8000, cpus)

    def ctl(self, *args, **options):
        return subprocess.run(
            [muster.program("clusterctl"), "--state", self.state, *args],
            check=True, stdout=subprocess.PIPE, env=muster.clean_env(),
            **options).stdout.decode()

    def workers(self):
        """With their openers, which read files for them."""
        return [p for pid in children(self.proc.pid)
                if b"\0worker\0" in
                Path(f"/proc/{pid}/cmdline").read_bytes()
                for p in family(pid)]


class SecureMuster(Muster):
    """Clients speak TLS to it; the certificate is in tmp."""

    def __init__(self, tmp, address, origin, workers, cpus):
        super().__init__(tmp, address, origin, workers, cpus, (
            ("proxy.https.default_cert", HOST),
            ("proxy.https.listen", f"{address}:{TLS_PORT}")))
        self.ctl("site", "cert", HOST, "--cert", tmp / "cert", "--key",
                 tmp / "key", stderr=subprocess.DEVNULL)
        self.port = TLS_PORT
        muster.wait_for(self._shakes, 20, "a certificate")

    def _shakes(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            context.wrap_socket(socket.create_connection(
                (self.address, TLS_PORT))).close()
            return True
        except OSError:
            return False


class Field:
    """The origin and all contenders, in a private directory."""

    def __init__(self, tmp, workers=1, cpus=(PROXY_CPU,)):
        self.net = muster.Net()
        self.servers = []
        self.tmp, self.n_workers, self.cpus = tmp, workers, set(cpus)
        try:
            self._start_all()
        except BaseException:
            self.close()
            raise

    def _start_all(self):
        self.origin = self._origin()
        self.muster = self._keep(Muster(
            self.tmp, self.net.address(), self.origin.address,
            self.n_workers, self.cpus))
        self.nginx = self._nginx()
        self.haproxy = self._haproxy("haproxy", "", "")
        self.haproxy_splice = self._haproxy(
            "haproxy, splice", "tune.pipesize 1048576",
            "option splice-response")

    @property
    def contenders(self):
        return {s.name: s for s in (self.muster, self.nginx, self.haproxy)}

    def close(self):
        for server in reversed(self.servers):
            server.close()
        self.net.close()

    def _keep(self, server):
        self.servers.append(server)
        return server

    def _origin(self):
        place = self._directory("origin")
        (place / "www").mkdir()
        for name, size in FILES.items():
            (place / "www" / name).write_bytes(b"x" * size)
        address = self.net.address()
        return self._start("origin", "nginx", place, ORIGIN.format(
            dir=place, address=address), address, 8080, {LOAD_CPU})

    def _nginx(self):
        place, address = self._directory("nginx"), self.net.address()
        return self._start("nginx", "nginx", place, NGINX.format(
            dir=place, address=address, origin=self.origin.address,
            workers=self.n_workers), address, 8000, self.cpus)

    def _haproxy(self, name, splice_global, splice):
        place = self._directory(name.replace(", ", "-"))
        address = self.net.address()
        conf = place / "conf"
        conf.write_text(HAPROXY.format(
            address=address, origin=self.origin.address, splice=splice,
            splice_global=splice_global, workers=self.n_workers))
        return self._keep(Server(name, ["haproxy", "-f", conf], address,
                                 8000, self.cpus))

    def _start(self, name, program, place, conf, address, port, cpus):
        (place / "conf").write_text(conf)
        return self._keep(Server(name, [program, "-c", place / "conf"],
                                 address, port, cpus))

    def _directory(self, name):
        place = self.tmp / name
        place.mkdir()
        return place


def wrk(server, path, connections, seconds=1, threads_=1, close=False,
        load_cpus=(LOAD_CPU,), fields=(), scheme="http"):
    """Loads a server; returns what one request cost its workers, and how
    many a second there were."""
    argv = ["taskset", "-c", ",".join(map(str, load_cpus)), "wrk",
            f"-t{threads_}", f"-c{connections}", f"-d{seconds}s",
            "-H", f"Host: {HOST}"]
    for field in ("Connection: close",) * close + tuple(fields):
        argv += ["-H", field]
    before = server.cpu_s()
    start = time.monotonic()
    out = subprocess.run(
        [*argv, f"{scheme}://{server.address}:{server.port}{path}"],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    wall = time.monotonic() - start
    cpu = server.cpu_s() - before
    n = int(re.search(r"(\d+) requests in", out).group(1))
    if "Non-2xx" in out or n == 0:
        raise RuntimeError(f"{server.name}, {path}: {out}")
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))
    return {"cpu": cpu / n, "rate": rate, "busy": cpu / wall}
