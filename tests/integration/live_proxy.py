"""A proxy before real servers, under load: what tests of its processes use.

LiveProxy is a proxyd with its own cluster and any number of Nginx, Apache or
scripted origins.  Load keeps asking through it from several connections at
once and checks every byte of every answer; whatever goes wrong is noted, so a
test does something to the proxy and asserts that `load.stop()` is empty.
"""

import contextlib
import grp
import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

import muster
from proxy import OK, RawOrigin, connect, read_all  # noqa: F401

PORT = 9000  # of every origin


def answers_at(address, port):
    """Whether somebody answers there."""
    with contextlib.suppress(OSError), \
            socket.create_connection((address, port), timeout=1):
        return True
    return False


class Server:
    """A server of the distribution with a private configuration; it looks
    like a muster.Daemon to the cluster that ends it."""

    def __init__(self, cluster, name, address, port=PORT):
        self.dir = cluster.tmp / name
        self.dir.mkdir()
        self.name, self.address, self.port = name, address, port
        self.log = self.dir / "log"
        self.proc = None
        cluster.others.append(self)
        self.configure()
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.proc = subprocess.Popen(
                self.argv(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=muster.clean_env(), cwd=self.dir,
                start_new_session=True)  # Apache ends its process group
        muster.Daemon.alive[self.proc.pid] = self

        def answers():
            assert self.proc.poll() is None, self.text
            return self.answers()
        muster.wait_for(answers, what=f"{self.name} on {self.address}")

    def answers(self):
        return answers_at(self.address, self.port)

    def stop(self):
        if self.proc is None or self.proc.poll() is not None:
            return
        for pid in [self.proc.pid, *self.children()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.proc.terminate()
        self.proc.wait(timeout=muster.PATIENCE_S)

    def children(self):
        return [pid for pid, _, _ in muster.children(self.proc.pid)]

    def kill(self):
        """kill -9 of the server and all its processes."""
        for pid in [self.proc.pid, *self.children()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.proc.wait()

    def freeze(self, sig=signal.SIGSTOP):
        for pid in [self.proc.pid, *self.children()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)

    def thaw(self):
        self.freeze(signal.SIGCONT)

    @property
    def text(self):
        return self.log.read_text(errors="replace")

    def complaints(self):
        return []

    def forget(self):
        if self.proc is not None:
            muster.Daemon.alive.pop(self.proc.pid, None)


class Nginx(Server):
    """Answers any path with its name and the path; /big is 8 MiB."""

    def configure(self):
        root = self.dir / "root"
        root.mkdir()
        (root / "big").write_bytes(b"0123456789abcdef" * (8 << 16))
        (self.dir / "nginx.conf").write_text(f"""
            daemon off; worker_processes 1; pid {self.dir}/pid;
            error_log {self.log} error;
            events {{ worker_connections 4096; }}
            http {{
              access_log off; keepalive_requests 10000000;
              client_body_temp_path {self.dir}/t1;
              proxy_temp_path {self.dir}/t2; fastcgi_temp_path {self.dir}/t3;
              uwsgi_temp_path {self.dir}/t4; scgi_temp_path {self.dir}/t5;
              server {{
                listen {self.address}:{self.port} backlog=4096;
                location = /big {{ root {root}; }}
                location = /sick {{ return 500 "sick"; }}
                location / {{ return 200 "{self.name} $uri"; }}
              }}
            }}""")

    def argv(self):
        return [shutil.which("nginx") or "/usr/sbin/nginx", "-p",
                str(self.dir), "-c", "nginx.conf"]


class Apache(Server):
    """Prefork, as hosters run it; answers any path with one page, from a
    folder that its account can reach."""

    MODULES = ("mpm_prefork", "authz_core", "rewrite")

    def configure(self):
        modules = Path("/usr/lib/apache2/modules")
        self.root = root = Path(tempfile.mkdtemp(prefix="muster-web-"))
        root.chmod(0o755)
        (root / "page").write_text(f"{self.name} page")
        user = "www-data" if os.geteuid() == 0 else pwd.getpwuid(
            os.geteuid()).pw_name
        group = grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name
        load = "\n".join(f"LoadModule {m}_module {modules}/mod_{m}.so"
                         for m in self.MODULES)
        (self.dir / "httpd.conf").write_text(f"""
            {load}
            ServerRoot {self.dir}
            PidFile {self.dir}/pid
            Listen {self.address}:{self.port}
            ServerName origin
            User {user}
            Group {group}
            ErrorLog {self.log}
            Mutex file:{self.dir}
            StartServers 3
            MaxRequestWorkers 10
            KeepAlive On
            KeepAliveTimeout 5
            DocumentRoot {root}
            RewriteEngine On
            RewriteRule ^ /page
            <Directory {root}>
              Require all granted
            </Directory>""")

    def forget(self):
        super().forget()
        shutil.rmtree(self.root)

    def argv(self):
        return ["/usr/sbin/apache2", "-f", str(self.dir / "httpd.conf"),
                "-D", "FOREGROUND"]


class Load:
    """Asks again and again, each thread on one connection for as long as the
    proxy keeps it.  `wrong` notes every answer that is not the right one,
    every connection that ended without its answer, every refusal."""

    def __init__(self, address, port, threads=4, host="a", path=None,
                 check=None, kind=http.client.HTTPConnection):
        self.address, self.port, self.host = address, port, host
        self.path, self.kind = path, kind
        self.check = check or self._echoes
        self.wrong, self.done = [], 0
        self.slowest = 0.0
        self.connections = 0
        self.lock = threading.Lock()
        self.ending = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(i,),
                                         daemon=True) for i in range(threads)]
        for t in self.threads:
            t.start()
        self.await_more(10)

    @staticmethod
    def _echoes(path, status, body):
        return status == 200 and body.endswith(b" " + path.encode())

    def _run(self, number):
        conn = None
        count = 0
        while not self.ending.is_set():
            count += 1
            path = self.path or f"/{number}/{count}"
            start = time.monotonic()
            try:
                if conn is None:
                    conn = self.kind(self.address, self.port,
                                     timeout=muster.PATIENCE_S)
                    conn.connect()
                    with self.lock:
                        self.connections += 1
                conn.request("GET", path, headers={"Host": self.host})
                answer = conn.getresponse()
                body = answer.read()
                good = self.check(path, answer.status, body)
                if not good:
                    self._note(f"{path}: {answer.status} {body[:80]!r}")
                if answer.will_close:
                    conn.close()
                    conn = None
            except (OSError, http.client.HTTPException) as e:
                self._note(f"{path}: {type(e).__name__}: {e}")
                conn.close()
                conn = None
            with self.lock:
                self.done += 1
                self.slowest = max(self.slowest, time.monotonic() - start)
        if conn is not None:
            conn.close()

    def _note(self, text):
        with self.lock:
            if len(self.wrong) < 20:  # enough to see what is wrong
                self.wrong.append(text)

    def await_more(self, n=100):
        """Waits until so many more requests were answered."""
        goal = self.done + n
        muster.wait_for(lambda: self.done >= goal, what=f"{n} more requests")

    def stop(self):
        """Ends it; what was wrong."""
        self.ending.set()
        for t in self.threads:
            t.join(muster.PATIENCE_S)
            assert not t.is_alive(), "a request hangs"
        return self.wrong


class LiveProxy:
    """A proxyd on a state directory of its own."""

    PORT = 8080

    def __init__(self, tmp, origins=(), settings=None, role=(), start=True):
        tmp.chmod(0o700)
        self.cluster = muster.Cluster(tmp)
        self.cluster.init(start=False)
        self.state = self.cluster.master.state
        self.address = self.cluster.net.address()
        self.ctl = self.cluster.ctl
        self.origins, self.raw, self.loads = [], [], []
        self.ctl("role", "set", "worker_http", "--port", str(PORT),
                 "--health", "none", *role)
        for kind in origins:
            self.add_origin(kind)
        for site in ("a", "b"):
            self.ctl("site", "add", site, "--role", "worker_http", "--owner",
                     f"owner-{site}")
        self.set({"proxy.http.listen": f"{self.address}:{self.PORT}",
                  "proxy.status.listen": f"{self.address}:7480",
                  "proxy.workers": "2", **(settings or {})})
        self.daemon = self.cluster.daemon(
            "proxyd", muster.program("proxyd"), "--state", self.state, "run",
            start=start)

    def add_origin(self, kind, *options):
        n = len(self.origins) + 1
        name, address = f"n{n}", self.cluster.net.address()
        if kind is RawOrigin:
            origin = RawOrigin(address, PORT)
            self.raw.append(origin)
        else:
            origin = kind(self.cluster, name, address)
        self.origins.append(origin)
        self.ctl("node", "add", name, address, "--role", "worker_http",
                 *options)
        return origin

    def set(self, settings):
        for key, value in settings.items():
            self.ctl("set", key, *str(value).split())

    # ---- asking it ----

    def load(self, port=None, **options):
        self.loads.append(Load(self.address, port or self.PORT, **options))
        return self.loads[-1]

    def connect(self, port=None):
        return connect(self.address, port or self.PORT)

    def get(self, path="/", host="a", address=None, port=None):
        """(status, body) of one request on a connection of its own."""
        conn = http.client.HTTPConnection(address or self.address,
                                          port or self.PORT,
                                          timeout=muster.PATIENCE_S)
        try:
            conn.request("GET", path, headers={"Host": host})
            answer = conn.getresponse()
            return answer.status, answer.read()
        finally:
            conn.close()

    def ask(self, **question):
        """The admin socket's answer."""
        with socket.socket(socket.AF_UNIX) as s:
            fd = os.open(self.state / "run", os.O_PATH)
            try:  # a path of any length
                s.connect(f"/proc/self/fd/{fd}/proxyd.sock")
            finally:
                os.close(fd)
            s.settimeout(muster.PATIENCE_S)
            s.sendall(json.dumps(question).encode() + b"\n")
            with s.makefile("rb") as f:
                return json.loads(f.readline())

    def status(self):
        return self.ask(ask="status")

    def nodes(self):
        """The rows of the nodes, by name."""
        return {row["node"]: row for row in self.ask(ask="nodes")["nodes"]}

    def workers(self):
        return [w for w in self.ask(ask="workers")["workers"]
                if w["state"] == "serving"]

    def metrics(self):
        """Samples of /metrics as {"name{labels}": value}."""
        status, body = self.get("/metrics", port=7480)
        assert status == 200
        return {k: float(v) for k, v in (
            line.rsplit(" ", 1) for line in body.decode().splitlines()
            if not line.startswith("#"))}

    # ---- its processes ----

    @property
    def pid(self):
        """Of the master that serves, also after an upgrade."""
        return int((self.state / "run" / "proxyd.lock").read_text())

    @property
    def log(self):
        return self.daemon.text

    def await_revision(self):
        """Every worker has what was set last."""
        out = self.ctl("--json", "registry", "log")
        revision = out.json_lines[0]["revision"]
        muster.wait_for(
            lambda: self.ask(ask="status")["revision"] >= revision,
            what=f"revision {revision} in every worker")

    def await_state(self, node, state, timeout=muster.PATIENCE_S):
        muster.wait_for(lambda: self.nodes()[node]["state"] == state, timeout,
                        f"{node} to be {state}")

    def upgrade(self, status=0):
        """`proxyd upgrade`; the daemon of the test is the new one then."""
        result = muster.run(muster.program("proxyd"), "--state", self.state,
                            "upgrade", status=status)
        self.adopt()
        return result

    def adopt(self):
        """Looks after the master that serves now, whoever started it."""
        if self.pid != self.daemon.pid:
            old, self.daemon.proc = self.daemon.proc, Adopted(self.pid)
            muster.Daemon.alive[self.pid] = self.daemon
            muster.wait_for(lambda: old.poll() is not None,
                            what="the old master to leave")
            assert old.poll() == 0
            muster.Daemon.alive.pop(old.pid, None)

    def close(self):
        for load in self.loads:
            load.ending.set()
        wrong = self.cluster.close()
        for origin in self.raw:
            origin.stop()
        return wrong


def close_all(*proxies):
    """Fails with what their logs say that no test has announced."""
    wrong = [w for p in proxies for w in p.close()]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


class Adopted:
    """A process that somebody else started, as a Popen."""

    def __init__(self, pid):
        self.pid, self.returncode = pid, None

    def poll(self):
        if self.returncode is None:
            with contextlib.suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid == self.pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout=None):
        muster.wait_for(lambda: self.poll() is not None,
                        timeout or muster.PATIENCE_S, "a process to end")
        return self.returncode

    def send_signal(self, sig):
        os.kill(self.pid, sig)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)
