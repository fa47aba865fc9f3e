"""The processes of proxyd: start, settings that are followed while it runs,
workers that die, upgrades, the end.  Under load, and without a request lost."""

import os
import re
import signal
import socket
import stat
import subprocess

import pytest

import muster
from live_proxy import LiveProxy, Nginx, answers_at
from muster import wait_for


@pytest.fixture
def new_proxy(tmp_path, request):
    """Makes proxies; they are taken down, and must have nothing to say."""
    made = []

    def make(*origins, **options):
        options.setdefault("settings", {})
        p = LiveProxy(tmp_path, origins, **options)
        made.append(p)
        return p
    yield make
    wrong = [w for p in made for w in p.close()]
    report = getattr(request.node, "report_call", None)
    if report is not None and report.failed:
        for p in made:
            print(p.log[-4000:])
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.fixture
def proxy(new_proxy):
    return new_proxy(Nginx, Nginx)


def proxyd(state, *args, **options):
    return muster.run(muster.program("proxyd"), "--state", state, *args,
                      **options)


def start_fails(p, status):
    """What a start that fails says."""
    return proxyd(p.state, "run", status=status).stderr


# ---- the start -------------------------------------------------------------

def test_start_says_ready_and_takes_its_place(proxy):
    assert proxy.get("/x")[0] == 200
    text = proxyd(proxy.state, "run", status=8).stderr
    assert text.startswith("proxyd: ") and str(proxy.pid) in text
    run = proxy.state / "run"
    assert stat.S_IMODE((run / "proxyd.sock").stat().st_mode) == 0o600
    assert stat.S_IMODE(run.stat().st_mode) == 0o700


def test_start_errors_reach_the_terminal(new_proxy, tmp_path):
    p = new_proxy(start=False)
    # An address that another program has.
    with socket.create_server((p.address, LiveProxy.PORT)):
        text = start_fails(p, 8)
        assert f"listen on {p.address}:8080: another program has it" in text
    # One that is not ours.
    p.ctl("set", "proxy.http.listen", "192.0.2.1:80")
    assert "listen on 192.0.2.1:80: cannot bind" in start_fails(p, 8)
    p.ctl("set", "proxy.http.listen", f"{p.address}:8080")
    # A log that cannot be written.
    p.ctl("set", "proxy.access_log", "/nonexistent/log")
    assert "access log /nonexistent/log: No such file" in start_fails(p, 8)
    p.ctl("set", "proxy.access_log", "off")
    p.ctl("set", "proxy.user", "nobody-knows")
    if os.geteuid() == 0:
        text = start_fails(p, 2)
        assert "there is no account 'nobody-knows'" in text
    p.ctl("set", "proxy.user", "nobody")
    assert "neither a registry nor a roster" in proxyd(
        muster.copy_state(p.state / "run", tmp_path / "empty"), "run",
        status=8).stderr
    (p.state / "registry.db").write_bytes(b"garbage" * 1000)
    assert "registry" in start_fails(p, 8)


def test_command_line_errors(new_proxy):
    p = new_proxy(start=False)
    for args, text in [
            (["walk"], "no such command 'walk'"), ([], "a command is missing"),
            (["--colour", "run"], "unknown"), (["run", "run"], "one command"),
            (["--ready-fd", "x", "run"], "--ready-fd"),
            (["--ready-fd", "99", "run"], "--ready-fd 99")]:
        assert text in proxyd(p.state, *args, status=2).stderr
    assert "no proxyd runs" in proxyd(p.state, "upgrade", status=4).stderr
    assert "run" in proxyd(p.state, "help").stdout


def test_ready_fd_is_told_only_once_it_serves(new_proxy):
    p = new_proxy(Nginx, start=False)
    p.daemon.start()
    assert p.get("/now")[0] == 200


# ---- settings, followed while it runs --------------------------------------

def test_listen_addresses_come_and_go(proxy):
    other = proxy.cluster.net.address()
    unix = proxy.state / "run" / "web.sock"
    first = f"{proxy.address}:8080"
    load = proxy.load()
    short = proxy.cluster.tmp.parent / "w.sock"  # a path of bearable length
    unix = short if len(str(unix)) > 100 else unix
    proxy.ctl("set", "proxy.http.listen", first, f"{other}:8081",
              f"unix:{unix}")
    wait_for(lambda: answers_at(other, 8081), what="the new address")
    assert proxy.get("/new", address=other, port=8081)[0] == 200
    wait_for(unix.exists, what="the new socket")
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(unix))
        s.sendall(b"GET /u HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert s.recv(4096).startswith(b"HTTP/1.1 200")
    load.await_more()
    proxy.ctl("set", "proxy.http.listen", first)
    wait_for(lambda: not answers_at(other, 8081), what="the old address")
    assert not unix.exists()
    load.await_more()
    assert load.stop() == []


def test_an_address_that_is_taken_changes_nothing(proxy):
    other = proxy.cluster.net.address()
    proxy.daemon.expect_log("another program has it.*; what was in force stays")
    load = proxy.load()
    with socket.create_server((other, 8081)):
        proxy.ctl("set", "proxy.http.listen", f"{proxy.address}:8080",
                  f"{other}:8081")
        wait_for(lambda: proxy.status()["settings_trouble"])
        # It is said once, however many changes come.
        proxy.ctl("set", "proxy.keepalive", "50s")
        proxy.await_revision()
        assert proxy.log.count("another program has it") == 1
        load.await_more()
    proxy.ctl("set", "proxy.keepalive", "51s")
    wait_for(lambda: not proxy.status()["settings_trouble"])
    assert proxy.get("/", address=other, port=8081)[0] == 200
    assert load.stop() == []


def test_the_number_of_workers_changes_under_load(proxy):
    load = proxy.load(threads=8)
    for n in (4, 1, 3, 2):
        proxy.ctl("set", "proxy.workers", str(n))
        wait_for(lambda: len(proxy.workers()) == n, what=f"{n} workers")
        load.await_more(300)
    assert load.stop() == []


def test_new_connections_survive_fewer_workers(proxy):
    """Each request on a connection of its own: some wait in the queue of a
    socket whose worker goes."""
    proxy.ctl("set", "proxy.workers", "4")
    wait_for(lambda: len(proxy.workers()) == 4)
    proxy.ctl("set", "proxy.keepalive_requests", "1")
    proxy.await_revision()
    load = proxy.load(threads=8)
    for n in ("1", "4", "1"):
        proxy.ctl("set", "proxy.workers", n)
        proxy.await_revision()
        load.await_more(400)
    assert load.stop() == []
    assert load.connections >= load.done - 8


def test_trusted_peers_are_followed(proxy):
    def has_why():
        with proxy.connect() as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: nowhere\r\n"
                      b"X-Muster-Why: 1\r\nConnection: close\r\n\r\n")
            return b"x-muster-why" in s.makefile("rb").read().lower()
    assert not has_why()
    proxy.ctl("set", "proxy.trusted", "127.0.0.0/8")
    wait_for(has_why, what="a trusted peer")
    proxy.ctl("set", "proxy.trusted", "none")
    wait_for(lambda: not has_why(), what="a peer like any other")


def test_wrong_values_are_refused_with_the_rule(new_proxy):
    p = new_proxy(start=False)
    for key, value, rule in [
            ("proxy.workers", "0", "1..256"),
            ("proxy.workers", "many", "1..256"),
            ("proxy.http.listen", "127.0.0.1", "port"),
            ("proxy.http.listen", "somewhere:80", "address"),
            ("proxy.trusted", "10.0.0.0/33", "10.0.0.0/33"),
            ("proxy.access_log", "relative", "absolute"),
            ("proxy.access_log_format", "apache", "common|combined|json"),
            ("proxy.header_timeout", "1ms", "100ms"),
            ("proxy.header_fields", "100000", "128"),
            ("proxy.retry_budget", "101%", "101%"),
            ("proxy.default_site", "a host", "a host")]:
        text = p.ctl("set", key, value, status=2).stderr
        assert rule in text, text
    assert "did you mean" in p.ctl("set", "proxy.worker", "2",
                                   status=2).stderr


def test_every_setting_is_explained(new_proxy):
    p = new_proxy(start=False)
    rows = p.ctl("--json", "get", "--all").json_lines
    assert len(rows) > 30
    for row in rows:
        assert row["help"] and row["rule"] and row["default"], row
    page = (muster.ROOT / "docs" / "man" / "proxyd.8").read_text()
    told = re.findall(r"^\.It Li (proxy\.\S+) Pq (.*)", page, re.M)
    assert sorted(told) == sorted((r["option"], r["default"]) for r in rows
                                  if r["option"].startswith("proxy."))
    user = next(r for r in rows if r["option"] == "proxy.user")
    assert user["restart"] is True
    assert "next start" in next(line for line in p.ctl("get", "--all").lines
                                if line.startswith("proxy.user"))


# ---- workers ---------------------------------------------------------------

def test_a_killed_worker_is_replaced_at_once(proxy):
    """Its own connections are lost, nobody else's; what waits for it is
    served by the next one; nothing it held stays held."""
    proxy.daemon.expect_log(r"worker \d+ was killed by signal 9")
    before = proxy.workers()
    load = proxy.load(threads=8)
    # It is stopped while connections pile up in its socket.
    victim = before[0]["pid"]
    os.kill(victim, signal.SIGSTOP)
    waiting = [proxy.connect() for _ in range(32)]
    for s in waiting:
        s.sendall(b"GET /w HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: len(proxy.workers()) == 2 and victim not in
             [w["pid"] for w in proxy.workers()], what="another worker")
    for s in waiting:
        assert s.makefile("rb").read().startswith(b"HTTP/1.1 200")
        s.close()
    load.await_more()
    lost = load.stop()
    assert len(lost) <= 8 and not any("Refused" in w for w in lost)
    wait_for(lambda: all(n["active"] == 0 and n["queued"] == 0
                         for n in proxy.nodes().values()),
             what="the scoreboard to heal")
    assert all(s["active"] == 0 for s in proxy.ask(ask="sites")["sites"])


def test_all_that_piled_up_are_served(proxy):
    """More than a worker takes in one turn, and then one more."""
    workers = [w["pid"] for w in proxy.workers()]
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    waiting = [proxy.connect() for _ in range(300)]
    for pid in workers:
        os.kill(pid, signal.SIGCONT)
    waiting.append(proxy.connect())
    for s in waiting:
        s.sendall(b"GET /w HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    for s in waiting:
        assert s.makefile("rb").read().startswith(b"HTTP/1.1 200")
        s.close()


def test_requests_of_a_killed_worker_are_not_held(new_proxy):
    """A request that waits for its node when its worker dies."""
    from live_proxy import RawOrigin
    p = new_proxy(RawOrigin, settings={"proxy.workers": "1"})
    p.daemon.expect_log(r"worker \d+ was killed by signal 9")
    p.raw[0].script = lambda sock, head, body: True  # never answers
    held = [p.connect() for _ in range(5)]
    for s in held:
        s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    wait_for(lambda: p.nodes()["n1"]["active"] == 5, what="5 active requests")
    wait_for(lambda: p.workers()[0]["since_ms"] > 1000,
             what="a worker of some age")
    victim = p.workers()[0]["pid"]
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: any(w["pid"] != victim for w in p.workers()))
    assert p.nodes()["n1"]["active"] == 0
    assert p.ask(ask="sites")["sites"][0]["active"] == 0
    for s in held:
        s.close()


def test_workers_can_do_nothing(proxy):
    for w in proxy.workers():
        status = dict(
            line.split(":\t", 1) for line in
            open(f"/proc/{w['pid']}/status").read().splitlines()
            if ":\t" in line)
        assert int(status["CapEff"], 16) == 0
        assert int(status["CapPrm"], 16) == 0
        assert status["NoNewPrivs"] == "1"
        # The leak check of a sanitizer needs calls that are forbidden.
        assert muster.ASAN or status.get("Seccomp", "2") == "2"
        if os.geteuid() == 0:
            assert "0" not in status["Uid"].split()
            assert "0" not in status["Gid"].split()
            assert status["Groups"].strip() == ""


# ---- upgrade ---------------------------------------------------------------

def test_upgrade_under_load(proxy):
    load = proxy.load(threads=8)
    before = proxy.pid
    text = proxy.upgrade().stdout
    assert f"pid {proxy.pid} serves; pid {before} drains" in text
    load.await_more(300)
    # And by signal, while every request comes on a new connection.
    proxy.ctl("set", "proxy.keepalive_requests", "1")
    proxy.await_revision()
    before = proxy.pid
    os.kill(before, signal.SIGUSR2)
    wait_for(lambda: proxy.pid != before, what="a new master")
    load.await_more(300)
    assert load.stop() == []
    proxy.adopt()
    # Whatever was counted still is, and what is asked the new one answers.
    wait_for(lambda: {s["site"]: s["requests"] for s in proxy.ask(
        ask="sites")["sites"]}["a"] == load.done, what="the same count")
    assert proxy.status()["pid"] == proxy.pid
    assert {w["pid"] for w in proxy.workers()} == set(
        w["pid"] for w in proxy.status()["workers"])


def test_upgrade_keeps_what_is_under_way(new_proxy):
    """A request that began before the upgrade ends after it."""
    from live_proxy import OK, RawOrigin
    p = new_proxy(RawOrigin)
    go = []

    def script(sock, head, body):
        wait_for(lambda: go, what="the word to go on")
        sock.sendall(OK)
        return True
    p.raw[0].script = script
    with p.connect() as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: p.nodes()["n1"]["active"] == 1)
        before = p.pid
        muster.run(muster.program("proxyd"), "--state", p.state, "upgrade")
        assert p.pid != before
        # Both count on one scoreboard.
        assert p.nodes()["n1"]["active"] == 1
        # The old master hears of it a moment after we do.
        wait_for(lambda: "draining" in [
            w["state"] for w in p.ask(ask="workers")["workers"]],
                 what="the old worker to drain")
        go.append(True)
        data = s.makefile("rb").read()
        assert data.startswith(b"HTTP/1.1 200") and data.endswith(b"ok")
    p.adopt()
    assert p.nodes()["n1"]["active"] == 0


def test_a_successor_that_fails_leaves_the_old_one(proxy, tmp_path):
    proxy.daemon.expect_log("upgrade: .*; going on with this one")
    load = proxy.load()
    before = proxy.pid
    # It cannot open this log, which the old one could: the folder is gone.
    folder = tmp_path / "logs"
    folder.mkdir()
    proxy.ctl("set", "proxy.access_log", f"{folder}/access")
    wait_for((folder / "access").exists, what="the log")
    (folder / "access").unlink()
    folder.rmdir()
    text = proxyd(proxy.state, "upgrade", status=8).stderr
    assert "access log" in text and "No such file" in text
    assert proxy.pid == before
    load.await_more()
    # It still follows, and a later upgrade works.
    proxy.ctl("set", "proxy.access_log", "off")
    proxy.await_revision()
    proxy.upgrade()
    assert proxy.pid != before
    load.await_more()
    assert load.stop() == []


@muster.needs_root
def test_upgrade_again_and_again(proxy):
    load = proxy.load()
    for _ in range(4):
        proxy.upgrade()
        load.await_more(50)
    assert load.stop() == []
    assert len(proxy.workers()) == 2
    # Nothing is passed on twice.
    assert len(os.listdir(f"/proc/{proxy.pid}/fd")) < 64


# ---- the end ---------------------------------------------------------------

def test_sigterm_drains(new_proxy):
    from live_proxy import OK, RawOrigin
    p = new_proxy(RawOrigin)
    go = []

    def script(sock, head, body):
        wait_for(lambda: go, what="the word to go on")
        sock.sendall(OK)
        return True
    p.raw[0].script = script
    with p.connect() as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: p.nodes()["n1"]["active"] == 1)
        p.daemon.proc.terminate()
        wait_for(lambda: not answers_at(p.address, p.PORT),
                 what="nobody new to be taken")
        assert p.daemon.running
        go.append(True)
        data = s.makefile("rb").read()
        assert data.startswith(b"HTTP/1.1 200") and data.endswith(b"ok")
    assert p.daemon.proc.wait(timeout=muster.PATIENCE_S) == 0
    assert not (p.state / "run" / "proxyd.sock").exists()


def test_the_drain_has_an_end(new_proxy):
    from live_proxy import RawOrigin
    p = new_proxy(RawOrigin, settings={"proxy.drain_timeout": "500ms"})
    p.raw[0].script = lambda sock, head, body: True  # never answers
    with p.connect() as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: p.nodes()["n1"]["active"] == 1)
        p.daemon.proc.terminate()
        assert p.daemon.proc.wait(timeout=muster.PATIENCE_S) == 0


def test_a_second_sigterm_ends_it_at_once(new_proxy):
    from live_proxy import RawOrigin
    p = new_proxy(RawOrigin)
    p.raw[0].script = lambda sock, head, body: True  # never answers
    with p.connect() as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: p.nodes()["n1"]["active"] == 1)
        p.daemon.proc.terminate()
        wait_for(lambda: "draining" in p.log)
        p.daemon.proc.terminate()
        assert p.daemon.proc.wait(timeout=muster.PATIENCE_S) == 0


def test_workers_outlive_a_killed_master_for_what_is_under_way(new_proxy):
    p = new_proxy(Nginx)
    with p.connect() as s:
        s.sendall(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert s.recv(4096).startswith(b"HTTP/1.1 200")
        workers = [w["pid"] for w in p.workers()]
        p.daemon.kill()
        s.sendall(b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"200 OK" in s.makefile("rb").read()
    wait_for(lambda: not any(os.path.exists(f"/proc/{w}/exe") and
                             os.path.exists(f"/proc/{w}/fd/3")
                             for w in workers), what="the workers to end")
    muster.reap_orphans()
    p.daemon.start()
    assert p.get("/3")[0] == 200


# ---- the access log --------------------------------------------------------

def test_the_access_log_is_switched_and_reopened(proxy, tmp_path):
    log = tmp_path / "access.log"
    load = proxy.load()
    proxy.ctl("set", "proxy.access_log", str(log))
    wait_for(lambda: log.exists() and log.stat().st_size > 0, what="lines")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    moved = tmp_path / "access.log.1"
    log.rename(moved)
    os.kill(proxy.pid, signal.SIGUSR1)
    wait_for(log.exists, what="a new file")
    load.await_more()
    proxy.ctl("set", "proxy.access_log_format", "json")
    wait_for(lambda: b"\n{" in log.read_bytes(), what="lines of JSON")
    proxy.ctl("set", "proxy.access_log", "off")
    proxy.await_revision()
    load.await_more()
    assert load.stop() == []
    lines = (moved.read_text() + log.read_text()).splitlines()
    assert all(line.startswith(("127.", "{")) and line[-1] in "\"}"
               for line in lines), lines[:3]


def test_sigusr1_reopens_while_the_folder_is_gone(proxy, tmp_path):
    proxy.daemon.expect_log("the old file stays open")
    folder = tmp_path / "logs"
    folder.mkdir()
    proxy.ctl("set", "proxy.access_log", f"{folder}/access")
    wait_for((folder / "access").exists)
    shelf = folder.rename(tmp_path / "shelf")
    os.kill(proxy.pid, signal.SIGUSR1)
    wait_for(lambda: "the old file stays open" in proxy.log)
    proxy.get("/after")
    wait_for(lambda: "/after" in (shelf / "access").read_text())


def test_a_full_disk_loses_lines_not_requests(new_proxy, tmp_path):
    p = new_proxy(Nginx)
    p.daemon.expect_log("cannot write: No space left")
    with muster.tmpfs(tmp_path / "disk") as disk:
        p.ctl("set", "proxy.access_log", f"{disk}/access")
        p.await_revision()
        muster.fill(disk)
        load = p.load()
        wait_for(lambda: "cannot write" in p.log, what="a complaint")
        load.await_more(300)
        (disk / "ballast").unlink()
        wait_for(lambda: (disk / "access").stat().st_size > 5000,
                 what="lines again")
        assert load.stop() == []
        assert p.log.count("cannot write") == 1
        # Half a line may be left of before, but none with another in it.
        assert all(line.count("HTTP/1.1") <= 1 for line in
                   (disk / "access").read_text().splitlines())
        p.ctl("set", "proxy.access_log", "off")
        p.await_revision()


# ---- leftovers -------------------------------------------------------------

def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


@muster.needs_root
def test_no_descriptor_is_left_behind(new_proxy):
    p = new_proxy(Nginx, settings={"proxy.workers": "1",
                                   "proxy.pool_idle_timeout": "1s"})
    for _ in range(20):
        p.get("/x")
    worker = p.workers()[0]["pid"]

    def settled():
        """Nobody is there, no node connection is kept."""
        w = p.workers()[0]
        return w["clients"] == 0 and w["node_connections"] == 0
    wait_for(settled)
    before = fds(worker), fds(p.pid)
    for i in range(1000):
        with p.connect() as s:
            if i % 3:
                s.sendall(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % i)
                if i % 5 == 0:
                    s.recv(100)
            if i % 7 == 0:  # a RST
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                             b"\1\0\0\0\0\0\0\0")
    for _ in range(20):
        p.status()
        p.metrics()
    wait_for(settled, what="everybody to be gone")
    assert p.nodes()["n1"]["active"] == 0
    wait_for(lambda: (fds(worker), fds(p.pid)) <= before,
             what=f"descriptors as before: {before}")


def test_out_of_descriptors_it_pauses_and_goes_on(new_proxy):
    """Whoever waits is served once others go; nobody spins."""
    p = new_proxy(Nginx, settings={"proxy.workers": "1"}, start=False)
    p.daemon.argv = ["prlimit", "--nofile=64:64", *p.daemon.argv]
    p.daemon.start()
    idle = [p.connect() for _ in range(100)]
    for s in idle:
        s.sendall(b"GET /i HTTP/1.1\r\nHost: a\r\n\r\n")
    worker = p.workers()[0]["pid"]
    wait_for(lambda: p.workers()[0]["clients"] >= 16, what="all it can take")

    def cpu():
        return next(w["cpu_s"] for w in p.workers())
    used = cpu()
    ticks = p.workers()[0]["since_ms"]
    wait_for(lambda: p.workers()[0]["since_ms"] > ticks + 1000)
    assert cpu() - used < 0.5, "it spins"
    for s in idle:
        assert s.recv(4096).startswith(b"HTTP/1.1 200")
        s.close()
    assert p.get("/after")[0] == 200


def test_systemd_is_told(new_proxy, tmp_path):
    """READY=1, MAINPID= after an upgrade, STOPPING=1."""
    path = f"/tmp/muster-notify-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        s.settimeout(muster.PATIENCE_S)
        try:
            p = new_proxy(Nginx, start=False)
            p.daemon.start(env={"NOTIFY_SOCKET": path})
            said = b""
            while b"READY=1" not in said:
                said += s.recv(4096) + b"\n"
            p.upgrade()
            while b"MAINPID=%d" % p.pid not in said:
                said += s.recv(4096) + b"\n"
            assert b"STOPPING" not in said
            p.daemon.stop()
            while b"STOPPING=1" not in said:
                said += s.recv(4096) + b"\n"
        finally:
            os.unlink(path)


def test_a_unix_socket_of_a_live_program_is_not_taken(new_proxy):
    p = new_proxy(start=False)
    path = f"/tmp/muster-live-{os.getpid()}.sock"
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        s.listen(1)
        try:
            p.ctl("set", "proxy.http.listen", f"unix:{path}")
            assert "another program has it" in start_fails(p, 8)
            assert os.path.exists(path)
        finally:
            os.unlink(path)


def test_wrk_sees_no_error_through_it_all(proxy):
    """A load generator with eyes of its own."""
    script = proxy.cluster.tmp / "host.lua"
    script.write_text('wrk.headers["Host"] = "a"\n')
    wrk = subprocess.Popen(
        ["wrk", "-t1", "-c32", "-d60s", "-s", str(script),
         f"http://{proxy.address}:{proxy.PORT}/x"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        env=muster.clean_env())
    muster.Daemon.alive[wrk.pid] = wrk

    def requests():
        return {s["site"]: s for s in
                proxy.ask(ask="sites")["sites"]}["a"]["requests"]
    wait_for(lambda: requests() > 1000)
    proxy.upgrade()
    proxy.ctl("set", "proxy.workers", "1")
    proxy.await_revision()
    proxy.ctl("set", "proxy.workers", "3")
    proxy.await_revision()
    so_far = requests()
    wait_for(lambda: requests() > so_far + 1000)
    wrk.send_signal(signal.SIGINT)
    out = wrk.communicate(timeout=muster.PATIENCE_S)[0]
    muster.Daemon.alive.pop(wrk.pid)
    assert "requests in" in out
    assert "Socket errors" not in out and "Non-2xx" not in out, out
