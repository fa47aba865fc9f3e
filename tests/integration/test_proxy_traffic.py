"""Requests through a proxyd with several nodes: choice, retries, queues,
limits, what is logged and told."""

import json
import os
import resource
import signal
import socket
import threading
import time

import pytest

import muster
import proxy as px

CLOSE = b"Connection: close\r\n"


def get(path=b"/", host=b"a", more=CLOSE, method=b"GET"):
    return (method + b" " + path + b" HTTP/1.1\r\nHost: " + host + b"\r\n"
            + more + b"\r\n")


@pytest.fixture
def make_proxy(tmp_path):
    made = []

    def make(*args, **options):
        made.append(px.Proxy(tmp_path, *args, **options))
        return made[-1]
    yield make
    wrong = [w for p in made for w in p.close()]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def named(proxy):
    """Each origin answers with its number."""
    for i, origin in enumerate(proxy.origins):
        origin.script = px.say(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"
                               + str(i).encode())


def ask(proxy, *args, **options):
    """(status, last byte of the body, head)."""
    got, _ = proxy.talk(get(*args, **options))
    status = px.statuses(got)
    return (status[0] if status else None, got[-1:],
            got.partition(b"\r\n\r\n")[0])


def in_parallel(n, what):
    """Runs what() n times at once; returns the results."""
    results, threads = [], []
    for _ in range(n):
        threads.append(threading.Thread(
            target=lambda: results.append(what())))
        threads[-1].start()
    for t in threads:
        t.join(muster.PATIENCE_S)
    return results


# ---- choice ----

def test_nodes_take_turns(make_proxy):
    proxy = make_proxy(3)
    named(proxy)
    got = [ask(proxy)[1] for _ in range(30)]
    assert {got.count(b"0"), got.count(b"1"), got.count(b"2")} == {10}


def test_weights(make_proxy):
    proxy = make_proxy(2, role=["--balance", "round_robin"])
    named(proxy)
    for name, weight in (("n1", "30"), ("n2", "10")):
        proxy.ctl("node", "set", name, "--weight", weight)

    def weighed():
        got = [ask(proxy)[1] for _ in range(40)]
        return got.count(b"0") == 30
    muster.wait_for(weighed, what="three to one")


def test_the_same_uri_goes_to_the_same_node(make_proxy):
    proxy = make_proxy(3, role=["--balance", "hash:uri"])
    named(proxy)
    nodes = {}
    for i in range(60):
        path = b"/%d" % (i % 20)
        node = ask(proxy, path + b"?q=%d" % i)[1]
        assert nodes.setdefault(path, node) == node
    assert set(nodes.values()) == {b"0", b"1", b"2"}


def test_a_sticky_client_stays(make_proxy):
    proxy = make_proxy(3, role=["--balance", "sticky=SRV"])
    named(proxy)
    _, node, head = ask(proxy)
    cookie, = px.field(head, b"Set-Cookie")
    assert cookie.startswith(b"SRV=") and b"HttpOnly" in cookie
    more = CLOSE + b"Cookie: x=1; " + cookie.split(b";")[0] + b"\r\n"
    for _ in range(9):
        _, again, head = ask(proxy, more=more)
        assert again == node and not px.field(head, b"Set-Cookie")
    name = f"n{int(node) + 1}"
    proxy.ctl("node", "maintenance", "on", name)

    def moved():
        _, other, head = ask(proxy, more=more)
        return other != node and px.field(head, b"Set-Cookie")
    muster.wait_for(moved, what="another node")


def test_drain_and_maintenance_act_at_once(make_proxy):
    proxy = make_proxy(2)
    named(proxy)
    for off, on in ((["drain"], ["undrain"]),
                    (["maintenance", "on"], ["maintenance", "off"])):
        proxy.ctl("node", *off, "n1")
        start = time.monotonic()
        muster.wait_for(lambda: {ask(proxy)[1] for _ in range(6)} == {b"1"},
                        what=f"{off}")
        assert time.monotonic() - start < muster.SOON_S
        proxy.ctl("node", *on, "n1")
        muster.wait_for(lambda: len({ask(proxy)[1] for _ in range(6)}) == 2,
                        what="both again")


# ---- failures ----

@pytest.mark.parametrize("method", [b"GET", b"POST"])
def test_a_refused_connection_goes_to_another_node(make_proxy, method):
    proxy = make_proxy(3)
    named(proxy)
    proxy.origins[0].stop()
    got = [ask(proxy, method=method)[:2] for _ in range(30)]
    assert all(status == 200 for status, _ in got)
    assert {node for _, node in got} == {b"1", b"2"}


def test_a_request_is_sent_again_only_when_that_is_safe(make_proxy):
    proxy = make_proxy(2)
    named(proxy)
    proxy.origins[0].script = lambda sock, head, body: px.reset(sock)
    gets = [ask(proxy)[0] for _ in range(4)]
    assert gets == [200] * 4
    posts = [ask(proxy, method=b"POST")[0] for _ in range(4)]
    assert set(posts) == {200, 502}


def test_no_node_at_all(make_proxy):
    proxy = make_proxy(2)
    for origin in proxy.origins:
        origin.stop()
    status, _, head = ask(proxy)
    assert status == 502
    proxy.ctl("node", "maintenance", "on", "n[1-2]")
    muster.wait_for(lambda: ask(proxy)[0] == 503, what="503")
    assert px.field(ask(proxy)[2], b"Retry-After")


def test_a_failing_node_is_ejected_but_never_the_last(make_proxy):
    proxy = make_proxy(2, settings={"proxy.eject_failures": "3",
                                    "proxy.eject_time": "60s"})
    named(proxy)
    bad = proxy.origins[0]
    bad.script = px.say(b"garbage\r\n\r\n")
    for _ in range(30):
        ask(proxy)
    n = len(bad.requests)
    assert {ask(proxy)[1] for _ in range(10)} == {b"1"}
    assert len(bad.requests) == n, "it is asked again too early"
    proxy.origins[1].script = px.say(b"garbage\r\n\r\n")
    n = len(proxy.origins[1].requests)
    for _ in range(10):
        assert ask(proxy)[0] == 502
    assert len(proxy.origins[1].requests) > n + 5


def test_retries_have_a_budget(make_proxy):
    proxy = make_proxy(2, settings={"proxy.retry_budget": "0",
                                    "proxy.eject_failures": "1000"})
    for origin in proxy.origins:
        origin.script = lambda sock, head, body: px.reset(sock)
    assert {ask(proxy)[0] for _ in range(20)} == {502}
    assert sum(len(o.requests) for o in proxy.origins) == 20


def test_a_silent_node_times_out(make_proxy):
    proxy = make_proxy(1, settings={"proxy.response_timeout": "300ms"})
    done = threading.Event()
    proxy.origin.script = lambda sock, head, body: done.wait(10)
    assert ask(proxy)[0] == 504
    done.set()


def test_a_node_that_stops_in_the_body(make_proxy):
    proxy = make_proxy(1, settings={"proxy.response_timeout": "300ms"})
    done = threading.Event()

    def script(sock, head, body):
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        done.wait(10)
    proxy.origin.script = script
    got, _ = proxy.talk(get())
    done.set()
    assert got.endswith(b"half") or got == b""


# ---- bounds and queues ----

class Gate:
    """A script that holds every request until it is opened."""

    def __init__(self):
        self.open = threading.Event()
        self.lock = threading.Lock()
        self.inside = self.most = 0

    def __call__(self, sock, head, body):
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.open.wait(muster.PATIENCE_S)
        with self.lock:
            self.inside -= 1
        sock.sendall(px.OK)


def test_a_bound_and_a_queue(make_proxy):
    proxy = make_proxy(1, role=["--maxconn", "2", "--queue", "3",
                                "--queue-timeout", "20s"])
    gate = proxy.origin.script = Gate()
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask(proxy)))
               for _ in range(8)]
    for t in threads:
        t.start()
    # Two inside, three wait, three are turned away.
    muster.wait_for(lambda: len(answers) == 3, what="the queue to be full")
    assert all(a[0] == 503 for a in answers)
    assert all(px.field(a[2], b"Retry-After") for a in answers)
    muster.wait_for(lambda: gate.inside == 2, what="two inside")
    gate.open.set()
    for t in threads:
        t.join()
    assert sorted(a[0] for a in answers) == [200] * 5 + [503] * 3
    assert gate.most == 2


def test_waiting_has_an_end(make_proxy):
    proxy = make_proxy(1, role=["--maxconn", "1", "--queue", "10",
                                "--queue-timeout", "300ms"])
    gate = proxy.origin.script = Gate()
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask(proxy)[0]))
               for _ in range(4)]
    for t in threads:
        t.start()
    muster.wait_for(lambda: answers == [503] * 3, what="the time-out")
    gate.open.set()
    for t in threads:
        t.join()
    assert answers == [503] * 3 + [200]


def test_a_client_that_leaves_the_queue(make_proxy):
    proxy = make_proxy(1, role=["--maxconn", "1", "--queue", "10",
                                "--queue-timeout", "20s"])
    gate = proxy.origin.script = Gate()
    first = threading.Thread(target=lambda: ask(proxy))
    first.start()
    muster.wait_for(lambda: gate.inside == 1, what="one inside")
    for _ in range(5):
        with proxy.connect() as s:
            s.sendall(get())
            px.reset(s)
    gate.open.set()
    first.join()
    assert ask(proxy)[0] == 200


def test_one_site_cannot_fill_the_role(make_proxy):
    proxy = make_proxy(1, role=["--maxconn", "1", "--queue", "100",
                                "--queue-timeout", "20s"])
    order = []
    gate = Gate()

    def script(sock, head, body):
        order.append(px.field(head, b"Host")[0])
        gate(sock, head, body)
    proxy.origin.script = script
    threads = [threading.Thread(target=ask, args=(proxy, b"/", b"a"))
               for _ in range(20)]
    for t in threads:
        t.start()

    muster.wait_for(lambda: len(order) == 1, what="the first inside")
    late = [threading.Thread(target=ask, args=(proxy, b"/", b"b"))
            for _ in range(2)]
    for t in late:
        t.start()
    gate.open.set()
    for t in threads + late:
        t.join()
    # Those of site b do not wait behind all twenty of site a.
    assert b"b" in order[:8]


def test_a_sites_own_bound(make_proxy):
    proxy = make_proxy(1, role=["--queue", "100", "--queue-timeout", "20s"],
                       site=["--max-active", "2"])
    gates = {b"a": Gate(), b"b": Gate()}
    proxy.origin.script = lambda sock, head, body: \
        gates[px.field(head, b"Host")[0]](sock, head, body)
    threads = [threading.Thread(target=ask, args=(proxy, b"/", host))
               for host in [b"a"] * 5 + [b"b"] * 3]
    for t in threads:
        t.start()
    muster.wait_for(lambda: gates[b"b"].inside == 3, what="the other site")
    gates[b"b"].open.set()
    gates[b"a"].open.set()
    for t in threads:
        t.join()
    assert gates[b"a"].most == 2 and gates[b"b"].most == 3


# ---- slow and many clients ----

def test_a_slow_body_is_cut_off(make_proxy):
    proxy = make_proxy(1, settings={"proxy.body_timeout": "500ms",
                                    "proxy.body_min_rate": "1000"})
    with proxy.connect() as s:
        s.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000"
                  b"\r\n\r\nx")
        got, _ = px.read_all(s)
    assert px.statuses(got) == [408]


def test_slow_heads_do_not_disturb_others(make_proxy):
    """Ten thousand, or as many as our descriptors allow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    n = min(10000, hard // 2 - 500)
    proxy = make_proxy(1, settings={"proxy.header_timeout": "60s"})
    slow = []
    try:
        for _ in range(n):
            s = proxy.connect()
            s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ")
            slow.append(s)
        start = time.monotonic()
        assert all(ask(proxy)[0] == 200 for _ in range(50))
        assert time.monotonic() - start < muster.PATIENCE_S / 2
        for s in slow[::100]:
            s.sendall(b"1\r\n" + CLOSE + b"\r\n")
            assert px.statuses(px.read_all(s)[0]) == [200]
    finally:
        for s in slow:
            s.close()


def test_out_of_descriptors(make_proxy):
    """What cannot be accepted waits; nothing is lost, nothing spins."""
    proxy = make_proxy(1, prefix=["prlimit", "--nofile=40:40"],
                       settings={"proxy.header_timeout": "60s"})
    held = []
    for _ in range(40):
        held.append(proxy.connect())
    for s in held[:20]:
        s.close()
    answers = []
    for s in held[20:]:
        s.sendall(get())

    def drain():
        for s in list(held[20:]):
            s.setblocking(False)
            try:
                data = s.recv(65536)
            except (BlockingIOError, OSError):
                continue
            if data:
                answers.extend(px.statuses(data))
            s.close()
            held.remove(s)
        return len(held) == 20
    muster.wait_for(drain, what="all to be answered")
    assert set(answers) <= {200, 503} and 200 in answers
    assert ask(proxy)[0] == 200


# ---- what is told ----

def log_lines(proxy, path):
    proxy.daemon.proc.send_signal(signal.SIGUSR1)
    return path.read_text(errors="replace").splitlines() if path.exists() \
        else []


@pytest.mark.parametrize("form", ["common", "combined", "json"])
def test_the_access_log_cannot_be_forged(make_proxy, tmp_path, form):
    path = tmp_path / "access.log"
    proxy = make_proxy(1, settings={"proxy.access_log": str(path),
                                    "proxy.access_log_format": form})
    evil = (b"GET /\"%0a{}\\ HTTP/1.1\r\nHost: a\r\nReferer: \"\\\xff\t]\r\n"
            b"User-Agent: x\" 200 1 \"-\" \"\r\n" + CLOSE + b"\r\n")
    for _ in range(5):
        assert px.statuses(proxy.talk(evil)[0]) == [200]
    lines = muster.wait_for(
        lambda: (x := log_lines(proxy, path)) and len(x) == 5 and x,
        what="five lines")
    for line in lines:
        assert line.isascii() and line.isprintable()
        if form == "json":
            entry = json.loads(line)
            assert entry["status"] == 200
            assert entry["agent"] == "x\" 200 1 \"-\" \""
            assert entry["client"] == "127.0.0.1" and entry["node"] == "n1"
        else:
            assert line.startswith("127.0.0.1 - - [")
            quotes = line.count('"')
            assert quotes == (2 if form == "common" else 6)


def test_why_is_told_to_those_who_may_ask(make_proxy):
    proxy = make_proxy(2, settings={"proxy.trusted": "127.0.0.1"})
    named(proxy)
    proxy.origins[0].stop()
    more = CLOSE + b"X-Muster-Why: 1\r\n"
    told = [px.field(ask(proxy, more=more)[2], b"X-Muster-Why")
            for _ in range(4)]
    assert any(b"attempts=2" in t[0] and b"connect_refused" in t[0]
               for t in told)
    proxy.origins[1].stop()
    status, _, head = ask(proxy, more=more)
    assert status == 502
    assert px.field(head, b"X-Muster-Why") == [b"connect_refused"]
    assert not px.field(ask(proxy)[2], b"X-Muster-Why")


def test_a_disabled_site_gets_its_page_at_once(make_proxy, tmp_path):
    proxy = make_proxy(1)
    page = tmp_path / "page.html"
    page.write_text("<h1>Pay first</h1>")
    proxy.ctl("site", "disable", "b", "--page", str(page))

    def disabled():
        got, _ = proxy.talk(get(host=b"b"))
        return px.statuses(got) == [503] and b"Pay first" in got
    start = time.monotonic()
    muster.wait_for(disabled, what="the page")
    assert time.monotonic() - start < muster.SOON_S
    assert ask(proxy)[0] == 200
    proxy.ctl("site", "enable", "b")
    muster.wait_for(lambda: ask(proxy, host=b"b")[0] == 200, what="the site")


def test_a_sites_own_error_page(make_proxy, tmp_path):
    page = tmp_path / "error.html"
    page.write_text("<h1>Back soon</h1>")
    proxy = make_proxy(1, site=["--error-page", str(page)])
    proxy.origin.stop()
    got, _ = proxy.talk(get())
    assert px.statuses(got) == [502] and got.endswith(b"<h1>Back soon</h1>")
    got, _ = proxy.talk(get(host=b"b"))
    assert px.statuses(got) == [502] and b"Bad Gateway" in got
    # One that cannot be read changes nothing else.
    proxy.daemon.expect_log("the built-in page is shown")
    proxy.ctl("site", "set", "b", "--error-page", "/nonexistent/page")
    muster.wait_for(lambda: "built-in page" in proxy.daemon.text,
                    what="the complaint")
    assert b"Bad Gateway" in proxy.talk(get(host=b"b"))[0]


def test_http10_keep_alive_on_demand(make_proxy):
    proxy = make_proxy(1, settings={"proxy.http10_keepalive": "on"})
    head = b"GET / HTTP/1.0\r\nHost: a\r\n"
    got, _ = proxy.talk(head + b"Connection: keep-alive\r\n\r\n"
                        + head + b"\r\n")
    assert px.statuses(got) == [200, 200]
    assert px.field(got.partition(b"\r\n\r\n")[0], b"Connection") == [
        b"keep-alive"]


# ---- nothing leaks ----

def worker_of(proxy):
    return next(int(pid) for pid, _, argv in
                muster.children(proxy.daemon.pid) if "worker" in argv)


@muster.needs_root
def test_nothing_leaks(make_proxy, rng):
    """Thousands of exchanges, cut at random on both sides: afterwards there
    are as many descriptors as before, and nobody holds a place."""
    proxy = make_proxy(2, role=["--maxconn", "50", "--queue", "100"],
                       settings={"proxy.keepalive": "200ms",
                                 "proxy.pool_idle_timeout": "200ms",
                                 "proxy.header_timeout": "500ms",
                                 "proxy.body_timeout": "500ms",
                                 "proxy.body_min_rate": "10000"})

    def script(sock, head, body):
        dice = rng.random()
        whole = (b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n"
                 + b"x" * 3000)
        if dice < 0.1:
            px.reset(sock)
            return False
        if dice < 0.2:
            sock.sendall(whole[:rng.randrange(len(whole))])
            return False
        sock.sendall(whole)
        return dice < 0.9
    for origin in proxy.origins:
        origin.script = script
    worker = worker_of(proxy)

    def n_fds():
        return len(os.listdir(f"/proc/{worker}/fd"))
    ask(proxy)
    before = muster.wait_for(lambda: n_fds(), what="descriptors")
    requests = [get(more=b""), get(),
                get(method=b"POST", more=b"Content-Length: 3000\r\n")
                + b"y" * 3000,
                b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked"
                b"\r\n\r\nbb8\r\n" + b"y" * 3000 + b"\r\n0\r\n\r\n"]

    def client():
        for _ in range(60):
            try:
                with proxy.connect() as s:
                    sent = rng.choice(requests) * rng.randrange(1, 4)
                    if rng.random() < 0.3:
                        sent = sent[:rng.randrange(len(sent))]
                    s.sendall(sent)
                    if rng.random() < 0.3:
                        s.recv(rng.randrange(1, 4000))
                    if rng.random() < 0.3:
                        px.reset(s)
                        continue
                    s.shutdown(socket.SHUT_WR)
                    px.read_all(s)
            except OSError:
                pass
    in_parallel(20, client)
    for origin in proxy.origins:
        origin.drop()
        origin.script = None
    muster.wait_for(lambda: n_fds() <= before, what="descriptors to close")
    with socket.create_connection((proxy.address, 7480)) as s:
        s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        metrics = px.read_all(s)[0].decode()
    active = [line for line in metrics.splitlines()
              if "active" in line and not line.startswith("#")]
    assert active and all(line.endswith(" 0") for line in active), active
    assert ask(proxy)[0] == 200
