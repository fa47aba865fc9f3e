"""Active checks: what they find, how soon, and that nothing fails by it."""

import re

import pytest

import muster
from live_proxy import Apache, LiveProxy, Nginx
from muster import wait_for
from proxy import OK, RawOrigin, say

CHECKED = ("--interval", "100ms", "--check-timeout", "100ms", "--rise", "2",
           "--fall", "3", "--slow-start", "0")


@pytest.fixture
def make_proxy(tmp_path, request):
    made = []

    def make(*origins, health="tcp", role=(), **options):
        p = LiveProxy(tmp_path, origins,
                      role=("--health", health, *CHECKED, *role), **options)
        p.daemon.expect_log(r"node [nx]\d+ as worker_http is (up|down): check_")
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


def verdicts(p, node):
    """What the log says of a node, in order."""
    return re.findall(rf"node {node} as worker_http is (\w+: \w+)", p.log)


def checked(p, state="up"):
    for node in p.nodes():
        p.await_state(node, state)
        wait_for(lambda: p.nodes()[node]["why"].startswith("check_"),
                 what="a first check")


@pytest.mark.parametrize("kind", (Nginx, Apache))
def test_a_node_that_is_killed_and_comes_back(make_proxy, kind):
    p = make_proxy(kind, kind)
    checked(p)
    load = p.load(check=lambda path, status, body: status == 200)
    p.origins[0].kill()
    p.await_state("n1", "down")
    row = p.nodes()["n1"]
    assert row["why"] == "check_cannot_connect"
    assert row["since_ms"] < muster.PATIENCE_S * 1000
    load.await_more()
    total = p.nodes()["n1"]["total"]
    load.await_more()
    assert p.nodes()["n1"]["total"] == total
    p.origins[0].start()
    p.await_state("n1", "up")
    load.await_more(200)
    assert p.nodes()["n1"]["total"] > total
    # What was on its way when the node was killed may be lost: a GET is
    # tried on the other one.
    assert load.stop() == []


def test_a_node_that_is_stopped(make_proxy):
    """It still accepts connections: only a check that asks finds out."""
    p = make_proxy(Nginx, Nginx, health="http GET /well 200-299",
                   settings={"proxy.response_timeout": "2s"})
    checked(p)
    p.origins[0].freeze()
    p.await_state("n1", "down")
    assert p.nodes()["n1"]["why"] == "check_timeout"
    load = p.load()
    load.await_more()
    p.origins[0].thaw()
    p.await_state("n1", "up")
    assert load.stop() == []


def test_statuses(make_proxy):
    p = make_proxy(RawOrigin, RawOrigin, health="http GET /health 200-299")
    checked(p)
    origin = p.raw[0]
    for answer, why in (
            (say(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
             "check_status"),
            (say(b"HTTP/1.1 301 Away\r\nContent-Length: 0\r\n\r\n"),
             "check_status"),
            (say(b"SSH-2.0-OpenSSH\r\n"), "check_garbage"),
            (say(b"HTTP/2 200\r\n\r\n"), "check_garbage"),
            (say(b"", then=False), "check_garbage"),
            (say(b"HTTP/1.1 2", then=False), "check_garbage"),
            (say(b"HTTP/1.1 200"), None),
            (say(b"HTTP/1.0 204 No Content\r\n\r\n"), None)):
        origin.script = answer
        if why is None:
            p.await_state("n1", "up")
            assert p.nodes()["n1"]["why"] == "check_ok"
        else:
            p.await_state("n1", "down")
            wait_for(lambda: p.nodes()["n1"]["why"] == why, what=why)
            origin.script = say(OK)
            p.await_state("n1", "up")
    head = next(h for h, _ in origin.requests if b"/health" in h)
    assert head.startswith(b"GET /health HTTP/1.1\r\nHost: n1\r\n")


def test_rise_and_fall(make_proxy):
    """Three bad ones in a row, then two good ones in a row."""
    p = make_proxy(RawOrigin, RawOrigin, health="http GET / 200-299")
    checked(p)
    results = []
    bad = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"

    def script(sock, head, body):
        good = results.pop(0) if results else True
        sock.sendall(OK if good else bad)
        return True
    origin = p.raw[0]
    before = len(verdicts(p, "n1"))
    # Never three in a row: it stays up.
    results[:] = [False, False, True, False, False, True]
    origin.script = script
    wait_for(lambda: not results)
    assert len(verdicts(p, "n1")) == before
    # Three, then never two good ones in a row, then two.
    results[:] = [False, False, False, True, False, True, False, True, True]
    wait_for(lambda: len(verdicts(p, "n1")) == before + 2, what="down and up")
    assert verdicts(p, "n1")[before:] == ["down: check_status",
                                          "up: check_ok"]
    assert not results


def test_the_last_nodes_are_tried_all_the_same(make_proxy):
    """A check may be wrong; no answer is no better than a failing node's."""
    p = make_proxy(RawOrigin, health="http GET /health 200-299")
    p.raw[0].script = lambda sock, head, body: say(
        OK if b"/health" not in head else
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")(sock, head, body)
    p.await_state("n1", "down")
    assert p.get("/") == (200, b"ok")


def test_checks_change_and_end(make_proxy):
    p = make_proxy(Nginx, Nginx, health="http GET /sick 200-299")
    checked(p, "down")
    p.ctl("role", "set", "worker_http", "--health", "http GET /sick 500")
    checked(p, "up")
    p.ctl("role", "set", "worker_http", "--health", "http GET /sick 200")
    checked(p, "down")
    # Without checks no verdict stays.
    p.ctl("role", "set", "worker_http", "--health", "none")
    p.await_state("n1", "up")
    assert p.nodes()["n1"]["why"] == "-"
    p.ctl("role", "set", "worker_http", "--health", "tcp")
    checked(p, "up")


def test_maintenance_is_not_checked(make_proxy):
    p = make_proxy(RawOrigin, RawOrigin, health="http GET /health 200-299")
    checked(p)
    p.ctl("node", "maintenance", "on", "n1")
    p.await_state("n1", "maintenance")
    wait_for(lambda: p.nodes()["n1"]["since_ms"] > 300)
    asked = len(p.raw[0].requests)
    others = len(p.raw[1].requests)
    wait_for(lambda: len(p.raw[1].requests) > others + 3)
    assert len(p.raw[0].requests) == asked
    p.raw[0].stop()
    p.ctl("node", "maintenance", "off", "n1")
    p.await_state("n1", "down")


def test_slow_start(make_proxy):
    """A node that comes back gets its share by and by."""
    p = make_proxy(Nginx, Nginx, role=("--slow-start", "1h",
                                       "--balance", "round_robin"))
    checked(p)
    p.origins[0].kill()
    p.await_state("n1", "down")
    p.origins[0].start()
    p.await_state("n1", "up")
    before = {k: n["total"] for k, n in p.nodes().items()}
    load = p.load()
    load.await_more(400)
    assert load.stop() == []
    got = {k: n["total"] - before[k] for k, n in p.nodes().items()}
    assert 0 < got["n1"] < got["n2"] / 3, got


def test_verdicts_survive_an_upgrade(make_proxy):
    p = make_proxy(Nginx, Nginx)
    checked(p)
    p.origins[0].kill()
    p.await_state("n1", "down")
    load = p.load()
    p.upgrade()
    load.await_more()
    assert p.nodes()["n1"]["state"] == "down"
    assert verdicts(p, "n1").count("down: check_cannot_connect") == 1
    assert load.stop() == []


def test_hundreds_of_nodes_are_checked(make_proxy):
    """As fast as the interval says, by one process that stays small."""
    p = make_proxy(RawOrigin)
    origin = p.raw[0].address
    for i in range(200):
        p.ctl("node", "add", f"x{i}", origin, "--role", "worker_http")
    wait_for(lambda: len(p.nodes()) == 201 and all(
        n["state"] == "up" and n["why"] == "check_ok"
        for n in p.nodes().values()), what="201 nodes up")
    p.raw[0].stop()
    wait_for(lambda: all(n["state"] == "down" for n in p.nodes().values()),
             what="201 nodes down")
    assert muster.memory_kb(p.pid)["VmRSS"] < 64 * 1024 or muster.ASAN
