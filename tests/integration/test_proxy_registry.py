"""What the proxy makes of its registry: it follows every change, and goes on
with the last good one when there is nothing good to follow."""

import json
import os
import shutil
import signal
import sqlite3
import threading

import pytest

import muster
from live_proxy import LiveProxy, Nginx
from muster import wait_for
from proxy import connect


@pytest.fixture
def proxy(tmp_path, request):
    p = LiveProxy(tmp_path, [Nginx, Nginx])
    yield p
    wrong = p.close()
    report = getattr(request.node, "report_call", None)
    if report is not None and report.failed:
        print(p.log[-4000:])
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def follower(p):
    """The pid of the follower of the present master."""
    for pid, _, argv in muster.children(p.pid):
        if " follower" in argv:
            return pid
    return None


def test_a_locked_registry_is_only_late(proxy):
    """A writer that holds it for long delays changes, and nothing else."""
    load = proxy.load()
    db = sqlite3.connect(proxy.state / "registry.db", isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    load.await_more(500)
    db.execute("ROLLBACK")
    proxy.ctl("site", "add", "late", "--role", "worker_http")
    wait_for(lambda: proxy.get("/", host="late")[0] == 200,
             what="a site that was added afterwards")
    db.close()
    assert load.stop() == []


@pytest.mark.parametrize("fault", ("removed", "garbage", "empty", "cut"))
def test_a_broken_registry_changes_nothing(proxy, fault):
    proxy.daemon.expect_log("the last good settings stay in force")
    load = proxy.load()
    db = proxy.state / "registry.db"
    # As a backup would have it: whole, and nobody in between.
    kept = proxy.state / "kept.db"
    proxy.ctl("registry", "backup", str(kept))
    whole = kept.read_bytes()
    if fault == "removed":
        db.unlink()
    else:
        spoilt = {"garbage": b"garbage" * 10000, "empty": b"",
                  "cut": whole[:len(whole) // 2]}[fault]
        new = proxy.state / "new.db"
        new.write_bytes(spoilt)
        new.chmod(0o600)
        new.rename(db)
    for f in ("registry.db-wal", "registry.db-shm"):
        (proxy.state / f).unlink(missing_ok=True)
    wait_for(lambda: "stay in force" in proxy.log, what="a complaint")
    load.await_more(300)
    # Once, not ten times a second.
    assert proxy.log.count("stay in force") <= 2
    # A worker that dies now is replaced all the same.
    proxy.daemon.expect_log("was killed by signal 9")
    victim = proxy.workers()[0]["pid"]
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: victim not in [w["pid"] for w in proxy.workers()]
             and len(proxy.workers()) == 2)
    assert proxy.get("/still")[0] == 200
    # And when it is back, it is followed again.
    shutil.copy(kept, proxy.state / "back.db")
    (proxy.state / "back.db").rename(db)
    proxy.ctl("site", "add", "back", "--role", "worker_http")
    wait_for(lambda: proxy.get("/", host="back")[0] == 200,
             what="a site of the restored registry")
    # Only what the killed worker held may be lost.
    assert len(load.stop()) <= 4


def test_a_registry_from_the_future_is_not_followed(proxy):
    """A newer muster has migrated it while this one still runs."""
    proxy.daemon.expect_log("written by a newer version")
    load = proxy.load()
    with sqlite3.connect(proxy.state / "registry.db") as db:
        was = db.execute("PRAGMA user_version").fetchone()[0]
        db.execute(f"PRAGMA user_version = {was + 1}")
    # An open handle does not look at the version again; a new one does.
    proxy.daemon.expect_log("the follower was killed by signal 9")
    os.kill(follower(proxy), signal.SIGKILL)
    wait_for(lambda: "newer" in proxy.log, what="a word on the version")
    load.await_more()
    with sqlite3.connect(proxy.state / "registry.db") as db:
        db.execute(f"PRAGMA user_version = {was}")
    proxy.ctl("site", "add", "again", "--role", "worker_http")
    wait_for(lambda: proxy.get("/", host="again")[0] == 200)
    assert load.stop() == []


def test_a_follower_that_dies_is_replaced(proxy):
    proxy.daemon.expect_log("the follower was killed by signal 9")
    load = proxy.load()
    before = follower(proxy)
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: follower(proxy) not in (None, before))
    proxy.ctl("site", "add", "new", "--role", "worker_http")
    wait_for(lambda: proxy.get("/", host="new")[0] == 200)
    assert load.stop() == []
    # Not one row was given out twice: both sites count for themselves.
    def counts():
        return {s["site"]: s["requests"] for s in
                proxy.ask(ask="sites")["sites"]}
    wait_for(lambda: counts()["a"] == load.done, what="the last ones")
    assert counts()["new"] >= 1 and counts()["b"] == 0


def test_a_hundred_changes_a_second(proxy):
    """Sites come and go under load; the last state is in force within a
    second, and no request fails or waits for it."""
    load = proxy.load(threads=4)
    stop = threading.Event()
    changes = [0]

    def churn():
        db = sqlite3.connect(proxy.state / "registry.db", timeout=30,
                             isolation_level=None)
        db.execute("PRAGMA foreign_keys = on")
        db.execute("PRAGMA synchronous = off")  # no disk is that fast
        while not stop.is_set():
            n = changes[0]
            db.execute("BEGIN IMMEDIATE")
            db.execute("UPDATE cluster SET revision = revision + 1")
            if n % 2:
                db.execute("DELETE FROM sites WHERE name = 'churn'")
            else:
                db.execute("INSERT INTO sites (name, enabled, role) "
                           "VALUES ('churn', 1, 'worker_http')")
                db.execute("INSERT INTO hosts (host, site_id, alias) SELECT "
                           "name, id, 0 FROM sites WHERE name = 'churn'")
            db.execute("COMMIT")
            changes[0] += 1
            stop.wait(0.01)
        db.close()
    thread = threading.Thread(target=churn)
    thread.start()
    try:
        wait_for(lambda: changes[0] >= 300, what="300 changes")
        load.await_more(300)
    finally:
        stop.set()
        thread.join()
    wait_for(lambda: proxy.status()["revision"] ==
             proxy.status()["compiled"])
    assert load.stop() == []
    assert load.slowest < muster.SOON_S
    # The rows of sites that went are given back.
    metrics = proxy.metrics()
    assert any(k.startswith("muster_site_requests_total") for k in metrics)


def test_a_hundred_thousand_sites(proxy, tmp_path):
    """They are served, changed and disabled while requests go on."""
    lines = tmp_path / "sites.jsonl"
    with lines.open("w") as f:
        for i in range(100_000):
            f.write(json.dumps({
                "name": f"s{i}.example", "aliases": [f"*.s{i}.example"],
                "owner": f"u{i % 1000}"}) + "\n")
    load = proxy.load()
    proxy.ctl("site", "add", "--from-file", str(lines), "--role",
              "worker_http", timeout=240)
    proxy.await_revision()
    for i in (0, 1, 4711, 99_999):
        assert proxy.get("/x", host=f"s{i}.example")[0] == 200
        assert proxy.get("/x", host=f"www.s{i}.example")[0] == 200
    assert proxy.get("/x", host="s100000.example")[0] == 421
    proxy.ctl("site", "disable", "s4711.example")
    wait_for(lambda: proxy.get("/", host="s4711.example")[0] == 503,
             what="a disabled site")
    proxy.ctl("site", "enable", "s4711.example")
    wait_for(lambda: proxy.get("/", host="s4711.example")[0] == 200,
             what="an enabled site")
    proxy.ctl("site", "set", "s1.example", "--max-body", "1")

    def refused():
        with proxy.connect() as s:
            s.sendall(b"POST / HTTP/1.1\r\nHost: s1.example\r\n"
                      b"Content-Length: 2\r\nConnection: close\r\n\r\nxx")
            return b" 413 " in s.makefile("rb").readline()
    wait_for(refused, what="a changed site")
    # What is asked for stays bounded, however many there are.
    answer = proxy.ask(ask="sites", top=5)
    assert len(answer["sites"]) == 5
    assert answer["rest"]["requests"] >= 0
    assert len(proxy.ask(ask="sites")["sites"]) == 10_000
    series = [k for k in proxy.metrics() if k.startswith("muster_site_req")]
    assert len(series) == 101
    assert 'muster_site_requests_total{site="other",owner=""}' in series
    proxy.upgrade()
    assert proxy.get("/x", host="s99999.example")[0] == 200
    assert load.stop() == []
    assert load.slowest < muster.SOON_S


def test_on_another_machine_it_follows_the_roster(tmp_path):
    """An entry machine that is not the master: signed roster, no registry."""
    tmp_path.chmod(0o700)
    c = muster.Cluster(tmp_path)
    try:
        c.init()
        origin = Nginx(c, "n1", c.net.address())
        edge = c.add_worker("edge", role="master")
        address = c.net.address()
        c.ctl("role", "set", "worker_http", "--port", "9000")
        c.ctl("node", "add", "n1", origin.address, "--role", "worker_http")
        c.ctl("site", "add", "a", "--role", "worker_http")
        c.ctl("set", "proxy.http.listen", f"{address}:8080")
        c.ctl("set", "proxy.status.listen", f"{address}:7480")
        wait_for(lambda: b"n1" in (edge.state / "roster").read_bytes() and
                 address.encode() in (edge.state / "roster").read_bytes(),
                 what="the roster on the edge")
        d = c.daemon("proxyd", muster.program("proxyd"), "--state",
                     edge.state, "run")
        d.expect_log("stay in force")

        def status(host):
            with connect(address, 8080) as s:
                s.sendall(b"GET / HTTP/1.1\r\nHost: %s\r\n"
                          b"Connection: close\r\n\r\n" % host.encode())
                return int(s.makefile("rb").readline().split()[1])
        assert status("a") == 200
        c.ctl("site", "add", "b", "--role", "worker_http")
        wait_for(lambda: status("b") == 200, what="a site from the roster")
        # One that is not signed by the authority is not followed.
        roster = edge.state / "roster"
        good = roster.read_bytes()
        edge.stop()
        (edge.state / "bad").write_bytes(good.replace(b'"b"', b'"z"'))
        (edge.state / "bad").rename(roster)
        wait_for(lambda: "stay in force" in d.text, what="a complaint")
        assert status("b") == 200 and status("z") == 421
        (edge.state / "bad").write_bytes(good)
        (edge.state / "bad").rename(roster)
        edge.start()
        c.ctl("site", "add", "c", "--role", "worker_http")
        wait_for(lambda: status("c") == 200)
    finally:
        wrong = c.close()
    assert wrong == []
