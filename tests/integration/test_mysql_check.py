"""Health checks of MySQL servers: a scripted one, and a real MariaDB."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

import muster
from live_proxy import LiveProxy
from muster import wait_for

PORT = 3306
GREETING = (b"\x4a\0\0\0\x0a8.0.36\0\x05\0\0\0abcdefgh\0\xff\xff\x21\x02\0"
            b"\xff\xdf\x15" + bytes(10) + b"ijklmnopqrst\0"
            b"caching_sha2_password\0")
OK = b"\x07\0\0\x02\0\0\0\x02\0\0\0"
QUIT = b"\x01\0\0\0\x01"


def error(code, text, seq=0):
    body = b"\xff" + code.to_bytes(2, "little") + text
    return len(body).to_bytes(3, "little") + bytes([seq]) + body


class FakeServer:
    """Says what it is told to; logins: what was sent after the greeting."""

    def __init__(self, address, says):
        self.says, self.logins = says, []
        self.listener = socket.create_server((address, PORT))
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, daemon=True,
                             args=(s,)).start()

    def serve(self, s):
        with contextlib.suppress(OSError), s:
            heard = b""
            for piece in self.says:
                for byte in piece:
                    s.sendall(bytes([byte]))
                heard += s.recv(4096)
            while more := s.recv(4096):
                heard += more
            self.logins.append(heard)

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def live(tmp_path):
    made = []

    def make(address, health, **options):
        p = LiveProxy(tmp_path, **options)
        made.append(p)
        p.daemon.expect_log("node db as worker_mysql is")
        p.ctl("role", "set", "worker_mysql", "--health", health,
              "--interval", "100ms", "--fall", "1", "--rise", "1")
        p.ctl("node", "add", "db", address, "--role", "worker_mysql")
        return p
    yield make
    for p in made:
        wrong = p.close()
        assert not wrong, "\n".join(wrong)


def await_why(p, why):
    wait_for(lambda: p.nodes().get("db", {}).get("why") == why,
             what=f"db to be {why}")


@pytest.fixture
def address():
    net = muster.Net()
    yield net.address()
    net.close()


def test_what_a_server_says_first(live, address):
    server = FakeServer(address, [GREETING])
    p = live(address, "mysql")
    await_why(p, "check_ok")
    server.says = [error(1040, b"#08004Too many connections")]
    await_why(p, "check_error")
    assert "is down: check_error: 1040 Too many connections" in p.log
    server.says = [GREETING]
    await_why(p, "check_ok")
    server.says = [b"HTTP/1.1 400 Bad Request\r\n\r\n"]
    await_why(p, "check_garbage")
    server.stop()
    await_why(p, "check_garbage")  # still down, no news
    p.ctl("role", "set", "worker_mysql", "--health", "tcp")
    server = FakeServer(address, [])
    await_why(p, "check_ok")
    server.stop()


def test_a_login(live, address):
    server = FakeServer(address, [GREETING, OK])
    p = live(address, "mysql user=muster")
    await_why(p, "check_ok")
    wait_for(lambda: server.logins, what="the end of a check")
    login = server.logins[0]
    assert login.endswith(QUIT) and b"muster\0\0mysql_native_password" in login
    server.says = [GREETING, error(1045, b"#28000Access denied for user", 2)]
    await_why(p, "check_error")
    assert "1045 Access denied for user" in p.log
    server.stop()


def test_a_server_that_says_nothing(live, address):
    listener = socket.create_server((address, PORT))
    p = live(address, "mysql")
    p.ctl("role", "set", "worker_mysql", "--check-timeout", "200ms")
    await_why(p, "check_timeout")
    listener.close()


# ---- MariaDB -----------------------------------------------------------------

class MariaDB:
    def __init__(self, address):
        self.dir = Path(tempfile.mkdtemp(prefix="muster-db-"))
        self.socket = self.dir / "s"
        user = "nobody" if os.geteuid() == 0 else None
        if user:
            shutil.chown(self.dir, user)
        muster.run("mariadb-install-db", "--no-defaults", "--auth-root-"
                   "authentication-method=normal", f"--datadir={self.dir}/d",
                   "--skip-test-db", *([f"--user={user}"] if user else []),
                   timeout=120)
        self.log = open(self.dir / "log", "wb")
        self.proc = subprocess.Popen(
            ["mariadbd", "--no-defaults", f"--datadir={self.dir}/d",
             f"--socket={self.socket}", f"--bind-address={address}",
             f"--port={PORT}", "--innodb-buffer-pool-size=8M",
             "--innodb-log-file-size=4M", "--performance-schema=off",
             "--skip-name-resolve",
             "--proxy-protocol-networks=127.0.0.0/8",
             *([f"--user={user}"] if user else [])],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        wait_for(self.answers, timeout=60, what="MariaDB")

    def answers(self):
        assert self.proc.poll() is None, (self.dir / "log").read_text()
        return self.sql("SELECT 1", status=None).status == 0

    def sql(self, text, **options):
        return muster.run("mariadb", "--no-defaults", "-u", "root", "-S",
                          self.socket, "-N", "-e", text, **options)

    def status(self, name):
        return int(self.sql(f"SHOW GLOBAL STATUS LIKE '{name}'").stdout
                   .split()[1])

    def close(self):
        self.proc.terminate()
        self.proc.wait()
        self.log.close()
        shutil.rmtree(self.dir)


@pytest.fixture
def mariadb(address):
    for program in ("mariadbd", "mariadb", "mariadb-install-db"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    db = MariaDB(address)
    yield db
    db.close()


def test_a_real_server(live, address, mariadb):
    """With a user that needs no password, nothing is counted as aborted."""
    p = live(address, "mysql user=muster")
    await_why(p, "check_error")
    assert re.search(r"check_error: 1045 Access denied for user 'muster'",
                     p.log)
    mariadb.sql("CREATE USER muster@'127.%'")
    await_why(p, "check_ok")
    before = mariadb.status("Aborted_connects")
    clients = mariadb.status("Aborted_clients")
    had = mariadb.status("Connections")
    wait_for(lambda: mariadb.status("Connections") > had + 20,
             what="twenty checks")
    assert mariadb.status("Aborted_connects") == before
    assert mariadb.status("Aborted_clients") == clients
    # With a PROXY header before it, too.
    for version in ("v2", "v1"):
        p.ctl("role", "set", "worker_mysql", "--proxy-protocol", version)
        had = mariadb.status("Connections")
        wait_for(lambda: mariadb.status("Connections") > had + 10,
                 what="ten checks")
    assert p.nodes()["db"]["state"] == "up"
    assert mariadb.status("Aborted_connects") == before
    p.ctl("role", "set", "worker_mysql", "--health", "mysql",
          "--proxy-protocol", "off")
    wait_for(lambda: mariadb.status("Aborted_connects") > before,
             what="checks without a login")
    await_why(p, "check_ok")
