"""What can be asked of a running proxy: the admin socket, /metrics and
/status.json, show_nodes, show_workers and show_sites from here and from
afar, draining with --wait; and that counters are never lost."""

import contextlib
import json
import os
import signal
import socket
import stat

import pytest

import muster
from live_proxy import LiveProxy, Nginx
from muster import wait_for
from proxy import OK, RawOrigin


@pytest.fixture
def make_proxy(tmp_path, request):
    made = []

    def make(*origins, **options):
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


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A proxy with some traffic behind it, for tests that only ask."""
    p = LiveProxy(tmp_path_factory.mktemp("show"), [Nginx, Nginx])
    for host, n in (("a", 30), ("b", 12)):
        for i in range(n):
            assert p.get(f"/{i}", host=host)[0] == 200
    # A client has its answer a moment before it is counted.
    wait_for(lambda: sum(w["requests"] for w in p.workers()) == 42)
    yield p
    wrong = p.close()
    assert not wrong, wrong


# ---- the doors -------------------------------------------------------------

def test_the_answers(shared):
    status = shared.status()
    assert status["ok"] is True and status["pid"] == shared.pid
    assert status["n_sites"] == 2 and status["version"]
    assert status["revision"] == status["compiled"] > 0
    assert status["settings_trouble"] == status["upgrade_trouble"] == ""
    nodes = shared.nodes()
    assert sum(n["total"] for n in nodes.values()) == 42
    for n in nodes.values():
        assert n["state"] == "up" and n["role"] == "worker_http"
        assert n["active"] == n["queued"] == n["failed"] == 0
        assert n["connects"] >= 1 and n["latency_us"] > 0
        assert n["p99_us"] >= n["latency_us"] / 10
        assert n["bytes_in"] > 0
    workers = shared.workers()
    assert sum(w["requests"] for w in workers) == 42
    for w in workers:
        assert w["rss_kb"] > 500 and w["silent_ms"] < 1000 * muster.PATIENCE_S
        assert w["revision"] == status["revision"]
    sites = shared.ask(ask="sites", top=1)
    assert [s["site"] for s in sites["sites"]] == ["a"]
    assert sites["rest"]["requests"] == 12
    owners = shared.ask(ask="sites", owners=True)["owners"]
    assert [(o["owner"], o["requests"], o["s2xx"]) for o in owners] == [
        ("owner-a", 30, 30), ("owner-b", 12, 12)]


def test_the_socket_refuses_what_it_does_not_know(shared):
    assert shared.ask(ask="walk")["ok"] is False
    assert "walk" in shared.ask(ask="walk")["text"]
    assert shared.ask(x=1)["ok"] is False
    assert shared.ask(ask="sites", top=0)["ok"] is False
    assert shared.ask(ask="sites", top=10 ** 9)["ok"] is False
    for line in (b"not json\n", b"[1]\n", b'{"ask":"nodes","ask":"nodes"}\n'):
        answer = raw_ask(shared, line)
        assert json.loads(answer)["ok"] is False
    # A line without an end is cut off, with an answer.
    answer = raw_ask(shared, b"x" * 5000)
    assert json.loads(answer.splitlines()[0])["ok"] is False


def raw_ask(p, line):
    fd = os.open(p.state / "run", os.O_PATH)
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(muster.PATIENCE_S)
        s.connect(f"/proc/self/fd/{fd}/proxyd.sock")
        os.close(fd)
        s.sendall(line)
        if line.endswith(b"\n"):
            return s.makefile("rb").readline()
        return s.makefile("rb").read()


def test_several_questions_on_one_connection(shared):
    fd = os.open(shared.state / "run", os.O_PATH)
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(muster.PATIENCE_S)
        s.connect(f"/proc/self/fd/{fd}/proxyd.sock")
        os.close(fd)
        s.sendall(b'{"ask":"workers"}\n' * 50 + b'{"ask":"nodes"}\n')
        f = s.makefile("rb")
        for _ in range(50):
            assert "workers" in json.loads(f.readline())
        assert "nodes" in json.loads(f.readline())


def test_the_socket_is_for_its_owner(shared):
    path = shared.state / "run" / "proxyd.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    # Even if its mode was changed.
    fd = os.open(shared.state / "run", os.O_PATH)
    os.chmod(path, 0o666)
    try:
        shared.daemon.expect_log("refused uid 65534")
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.setresuid(65534, 65534, 65534)
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect(f"/proc/self/fd/{fd}/proxyd.sock")
                    s.sendall(b'{"ask":"nodes"}\n')
                    code = 0 if s.recv(100) == b"" else 1
            except OSError:
                code = 0
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        os.chmod(path, 0o600)
        os.close(fd)


def test_metrics(shared):
    m = shared.metrics()
    assert m['muster_site_requests_total{site="a",owner="owner-a"}'] == 30
    assert m['muster_node_up{node="n1",role="worker_http",state="up"}'] == 1
    assert sum(v for k, v in m.items()
               if k.startswith("muster_node_requests_total{")) == 42
    assert sum(v for k, v in m.items()
               if k.startswith("muster_worker_requests_total{")) == 42
    status, body = shared.get("/metrics", port=7480)
    families = {}
    for line in body.decode().splitlines():
        if line.startswith("# TYPE"):
            _, _, name, kind = line.split()
            assert name not in families
            families[name] = kind
        elif not line.startswith("#"):
            name = line.partition("{")[0]
            assert name in families
            assert name.endswith("_total") == (families[name] == "counter")


def test_the_status_listener_is_plain_http(shared):
    status, body = shared.get("/status.json", port=7480)
    assert status == 200 and json.loads(body)["pid"] == shared.pid
    assert shared.get("/", port=7480)[0] == 404
    for request, answer in (
            (b"POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"405"),
            (b"rubbish\r\n\r\n", b"400"),
            (b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 9000, b"431")):
        with shared.connect(7480) as s:
            s.sendall(request)
            assert s.makefile("rb").readline().split()[1] == answer
    with shared.connect(7480) as s:
        s.sendall(b"HEAD /status.json HTTP/1.1\r\nHost: x\r\n\r\n")
        data = s.makefile("rb").read()
        assert data.endswith(b"\r\n\r\n") and b"200 OK" in data


# ---- clusterctl, on the machine itself -------------------------------------

def test_show_workers(shared):
    rows = shared.ctl("--json", "show_workers").json_lines
    assert {r["pid"] for r in rows} == {w["pid"] for w in shared.workers()}
    assert all(r["proxy"] == "m1" and r["state"] == "serving" for r in rows)
    lines = shared.ctl("show_workers").lines
    assert len(lines) == 2 and \
        len({len(x.split("\t")) for x in lines}) == 1
    t = shared.cluster.terminal("show_workers", cols=200)
    assert t.status() == 0
    assert "CLIENTS" in t.text and "serving" in t.text


def test_show_sites(shared):
    rows = shared.ctl("--json", "show_sites").json_lines
    assert [(r["site"], r["requests"], r["proxy"]) for r in rows] == [
        ("a", 30, "m1"), ("b", 12, "m1")]
    rows = shared.ctl("--json", "show_sites", "--top", "1").json_lines
    assert [(r["site"], r["requests"], r.get("others")) for r in rows] == [
        ("a", 30, None), (None, 12, True)]
    rows = shared.ctl("--json", "show_sites", "--owners").json_lines
    assert [(r["owner"], r["s2xx"]) for r in rows] == [("owner-a", 30),
                                                       ("owner-b", 12)]
    lines = shared.ctl("show_sites", "-n", "1").lines
    assert lines[1].startswith("(others)\t-\tm1\t12\t")
    shared.ctl("show_sites", "--top", "0", status=2)


def test_show_nodes_has_rows_of_both_kinds(shared):
    rows = shared.ctl("--json", "show_nodes").json_lines
    agents = {r["node"]: r for r in rows if "proxy" not in r}
    traffic = {r["node"]: r for r in rows if "proxy" in r}
    assert set(agents) == {"m1", "n1", "n2"} and set(traffic) == {"n1", "n2"}
    assert traffic["n1"]["total"] + traffic["n2"]["total"] == 42
    text = shared.ctl("show_nodes").stdout
    above, below = text.split("\n\n")
    assert len(above.splitlines()) == 3 and len(below.splitlines()) == 2
    assert all(len(x.split("\t")) == 15 for x in below.splitlines())
    only = shared.ctl("show_nodes", "--traffic").lines
    assert [x.split("\t")[:4] for x in only] == [
        [n, "worker_http", "m1", "up"] for n in ("n1", "n2")]
    assert "\n\n" not in shared.ctl("show_nodes", "--agents").stdout


def test_watch(shared):
    """Redraws on a terminal, repeats in a pipe, ends with Ctrl-C."""
    p = shared.cluster.ctl_start("show_workers", "--watch", "100ms")
    try:
        lines = [p.stdout.readline() for _ in range(9)]
        assert all(line.startswith(b"m1\t") for line in lines)
        p.send_signal(signal.SIGINT)
        assert p.wait(timeout=muster.PATIENCE_S) in (130, -signal.SIGINT)
    finally:
        p.kill()
        p.communicate()
    t = shared.cluster.terminal("show_nodes", "--traffic", "-w", "200ms",
                                cols=200)
    t.expect(r"(\x1b\[H\x1b\[J[^\x1b]*(\x1b\[\d*m[^\x1b]*)*){3}")
    t.type("\x03")
    assert t.status() in (130, -signal.SIGINT)
    # A reader that has seen enough ends it.
    p = shared.cluster.ctl_start("show_workers", "--watch=100ms")
    p.stdout.readline()
    p.stdout.close()
    assert p.wait(timeout=muster.PATIENCE_S) == -signal.SIGPIPE
    p.stderr.close()
    for wrong in ("10ms", "x"):
        shared.ctl("show_workers", f"--watch={wrong}", status=2)


def test_where_no_proxy_runs(make_proxy):
    p = make_proxy(Nginx, start=False)
    for command in (["show_workers"], ["show_sites"],
                    ["show_nodes", "--traffic"]):
        text = p.ctl(*command, status=4).stderr
        assert "no proxy runs" in text and "proxyd run" in text
    rows = p.ctl("--json", "show_nodes").json_lines
    assert all("proxy" not in r for r in rows)


# ---- and from afar ---------------------------------------------------------

@pytest.fixture(params=["master", "proxy"])
def two_proxies(tmp_path, request):
    """A cluster with a proxy on the master and one on another entry machine,
    and an operator's laptop."""
    tmp_path.chmod(0o700)
    c = muster.Cluster(tmp_path)
    c.init()
    if request.param == "proxy":
        c.ctl("role", "add", "proxy")
    edge = c.add_worker("edge", role=request.param)
    origin = Nginx(c, "n1", c.net.address())
    c.ctl("role", "set", "worker_http", "--port", "9000")
    c.ctl("node", "add", "n1", origin.address, "--role", "worker_http")
    c.ctl("site", "add", "a", "--role", "worker_http", "--connections", "5")
    c.ctl("set", "proxy.workers", "1")
    c.ctl("set", "proxy.status.listen", "off")
    # Every proxy listens on the same addresses, and this is one machine.
    c.ctl("set", "proxy.http.listen", "off")
    revision = c.ctl("--json", "registry", "log").json_lines[0]["revision"]
    wait_for(lambda: f" {revision} ".encode() in
             (edge.state / "roster").read_bytes()[:200], what="the roster")
    proxies = {
        name: c.daemon(f"proxyd-{name}", muster.program("proxyd"),
                       "--state", node.state, "run")
        for name, node in (("m1", c.master), ("edge", edge))}
    line = c.ctl("operator", "add", "eve", "-g", "status").stdout
    laptop = tmp_path / "laptop"
    token = muster.TOKEN.search(line).group()
    muster.run(muster.program("clusterctl"), "--state", laptop, "operator",
               "join", token)
    yield c, proxies, laptop
    wrong = c.close()
    assert not wrong, wrong


def test_several_proxies_in_one_table(two_proxies):
    c, proxies, laptop = two_proxies
    for state in (None, laptop):
        rows = c.ctl("--json", "show_workers", state=state).json_lines
        assert [r["proxy"] for r in rows] == ["edge", "m1"]
        rows = c.ctl("--json", "show_nodes", "--traffic",
                     state=state).json_lines
        assert [(r["node"], r["proxy"]) for r in rows] == [
            ("n1", "edge"), ("n1", "m1")]
        cells = [line.split("\t") for line in
                 c.ctl("show_sites", state=state).lines]
        assert sorted(r[:3] for r in cells) == [["a", "-", "edge"],
                                                ["a", "-", "m1"]]
        rows = c.ctl("--json", "show_sites", state=state).json_lines
        assert {(r["site"], r["proxy"]) for r in rows} == {
            ("a", "edge"), ("a", "m1")}
        row, = [r for r in c.ctl("--json", "site", "limit", "a",
                                 state=state).json_lines
                if r["limit"] == "connections"]
        assert (row["value"], row["hits"], row["in_use"]) == ("5", 0, 0)
    r = c.ctl("site", "limit", "a", "--connections", "6", state=laptop,
              status=None)
    assert r.status != 0 and "on a master" in r.stderr
    # Who is no operator sees the proxy of this machine.
    r = c.ctl("--json", "show_nodes", "--traffic", state=c["edge"].state,
              status=4)
    assert [(o["node"], o["proxy"]) for o in r.json_lines] == [("n1", "edge")]
    assert "no operator's identity here" in r.stderr
    r = c.ctl("show_nodes", state=c["edge"].state, status=None)
    assert r.status != 0 and not r.stdout
    # One of them goes: the other is still shown, without a word.
    proxies["edge"].stop()
    rows = c.ctl("--json", "show_workers", state=laptop).json_lines
    assert [r["proxy"] for r in rows] == ["m1"]
    # An agent that does not answer deserves one, and a status.
    c["edge"].stop()
    r = c.ctl("--json", "show_workers", state=laptop, status=4)
    assert [o["proxy"] for o in r.json_lines] == ["m1"]
    assert "the proxy on edge: " in r.stderr
    # Draining waits for what can be asked, and says what cannot.
    r = c.ctl("node", "drain", "n1", "--wait", "--deadline", "500ms",
              status=4)
    assert "not every proxy answers" in r.stderr
    c["edge"].start()
    c.ctl("node", "drain", "n1", "--wait")


def test_the_grant_status_is_enough_and_needed(two_proxies, tmp_path):
    c, proxies, laptop = two_proxies
    line = c.ctl("operator", "add", "bob", "-g", "push").stdout
    other = tmp_path / "bob"
    muster.run(muster.program("clusterctl"), "--state", other, "operator",
               "join", muster.TOKEN.search(line).group())
    r = c.ctl("show_workers", state=other, status=4)
    assert "denied" in r.stderr and "status" in r.stderr


def test_the_verb_relays_only_questions(two_proxies):
    """By hand: what clusterctl would never send."""
    c, proxies, laptop = two_proxies

    def call(question):
        out = muster.run(muster.BIN / "tests" / "integration" / "agent_call",
                         laptop, "m1", json.dumps(
                             {"verb": "proxy", "question": question}),
                         status=None).stdout
        return [json.loads(line) for line in out.splitlines()]
    records = call({"ask": "workers"})
    assert [r.get("record") for r in records[:2]] == ["file", "reply"]
    assert json.loads(records[0]["data"])["workers"]
    for question, code in ((
            {"ask": "stop"}, "denied"), ({}, "protocol"),
            ({"ask": 7}, "protocol"), ("nodes", "protocol"),
            ({"ask": "nodes", "x": "y" * 5000}, "protocol")):
        record = call(question)[0]
        assert record["record"] == "error", record
        assert record["json"]["word"] == code, record
    proxies["m1"].stop()
    record = call({"ask": "nodes"})[0]
    assert record["json"]["word"] == "unreachable"
    assert "no proxy runs on m1" in record["json"]["text"]


def test_a_large_answer_comes_whole(two_proxies, tmp_path):
    c, proxies, laptop = two_proxies
    lines = tmp_path / "sites"
    lines.write_text("".join(f"s{i}.example\n" for i in range(10_000)))
    c.ctl("site", "add", "--from-file", str(lines), "--role", "worker_http",
          timeout=120)

    def rows():
        return c.ctl("--json", "show_sites", "--top", "10000",
                     state=laptop).json_lines
    wait_for(lambda: len([r for r in rows() if r["proxy"] == "edge"]) ==
             10_000, what="10,000 rows from afar")


# ---- drain, undrain, maintenance -------------------------------------------

def test_drain_waits_for_what_is_under_way(make_proxy):
    p = make_proxy(RawOrigin, RawOrigin)
    go = []

    def script(sock, head, body):
        if b"GET /slow" in head:
            wait_for(lambda: go, what="the word to go on")
        sock.sendall(OK)
        return True
    for origin in p.raw:
        origin.script = script
    slow = []
    while not any(n["active"] for k, n in p.nodes().items() if k == "n1"):
        s = p.connect()
        s.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                  b"\r\n")
        slow.append(s)
        n = len(slow)
        wait_for(lambda: sum(r["active"] for r in p.nodes().values()) == n)
    active = p.nodes()["n1"]["active"]
    text = p.ctl("node", "drain", "n1", "--wait", "--deadline", "300ms",
                 status=5).stderr
    assert f"n1: still active: {active} request(s)" in text
    assert "at n1 as worker_http by m1" in text
    row = p.nodes()["n1"]
    assert row["state"] == row["why"] == "drain" and \
        row["since_ms"] < 1000 * muster.PATIENCE_S
    # Nothing new goes there.
    total = p.nodes()["n1"]["total"]
    for _ in range(20):
        assert p.get("/")[0] == 200
    assert p.nodes()["n1"]["total"] == total
    waiting = p.cluster.ctl_start("node", "drain", "n1", "--wait")
    wait_for(lambda: waiting.poll() is None)
    go.append(True)
    for s in slow:
        assert s.makefile("rb").read().endswith(b"ok")
        s.close()
    assert waiting.wait(timeout=muster.PATIENCE_S) == 0
    waiting.communicate()
    p.ctl("node", "undrain", "n1")
    p.await_state("n1", "up", 1.5)
    p.ctl("node", "maintenance", "on", "n1")
    p.await_state("n1", "maintenance", 1.5)
    p.ctl("node", "maintenance", "off", "n1")
    p.await_state("n1", "up", 1.5)


def test_drain_errors(make_proxy):
    p = make_proxy(Nginx, start=False)
    assert "goes with --wait" in p.ctl("node", "drain", "n1", "--deadline",
                                       "1s", status=2).stderr
    r = p.ctl("node", "drain", "n1", "--wait")
    assert "no proxy runs: nothing to wait for" in r.stderr
    p.ctl("node", "drain", "n9", "--wait", status=3)


# ---- accounting ------------------------------------------------------------

def counted(p, n):
    """What is counted, once it is n requests: a client has its answer a
    moment before."""
    with contextlib.suppress(AssertionError):
        wait_for(lambda: counts(p)[0] == n)
    return counts(p)


def counts(p):
    sites = {s["site"]: s for s in p.ask(ask="sites")["sites"]}
    owners = {o["owner"]: o for o in p.ask(ask="sites", owners=True)[
        "owners"]}
    return (sites["a"]["requests"], sites["a"]["s2xx"],
            sites["a"]["bytes_out"], owners["owner-a"]["requests"])


def test_counters_survive_everything(make_proxy):
    p = make_proxy(Nginx)
    p.daemon.expect_log("was killed by signal 9")

    def some_traffic():
        for i in range(25):
            assert p.get(f"/{i}")[0] == 200
    some_traffic()
    first = counted(p, 25)
    assert first[0] == first[1] == first[3] == 25 and first[2] > 25
    p.ctl("site", "set", "a", "--max-body", "10M")  # a reload
    p.await_revision()
    assert counts(p) == first
    os.kill(p.workers()[0]["pid"], signal.SIGKILL)  # a crash
    wait_for(lambda: len(p.workers()) == 2)
    assert counts(p) == first
    some_traffic()
    second = counted(p, 50)
    assert second[0] == 50
    p.upgrade()
    assert counts(p) == second
    p.daemon.restart()
    assert counts(p) == second
    accounts = p.state / "proxy-accounts"
    assert stat.S_IMODE(accounts.stat().st_mode) == 0o600
    some_traffic()
    assert counted(p, 75)[0] == 75


def test_what_is_counted_while_draining_is_kept(make_proxy):
    p = make_proxy(RawOrigin)
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
        wait_for(lambda: "draining" in p.log)
        go.append(True)
        s.makefile("rb").read()
    assert p.daemon.proc.wait(timeout=muster.PATIENCE_S) == 0
    p.daemon.start()
    assert counts(p)[0] == 1


def test_a_damaged_file_of_counters_is_no_hindrance(make_proxy):
    p = make_proxy(Nginx)
    assert p.get("/")[0] == 200
    p.daemon.stop()
    for damage in (b"", b"muster-accounts 9\n", b"muster-accounts 1\n1 x\n",
                   b"\0" * 4096):
        (p.state / "proxy-accounts").write_bytes(damage)
        p.daemon.expect_log("the counters of sites begin anew")
        p.daemon.start()
        assert counts(p)[0] == 0
        p.daemon.stop()
    p.daemon.start()


def test_a_site_that_comes_back_is_another_one(make_proxy):
    p = make_proxy(Nginx)
    for _ in range(5):
        p.get("/")
    assert counted(p, 5)[0] == 5
    p.ctl("site", "del", "a")
    p.await_revision()
    p.ctl("site", "add", "a", "--role", "worker_http", "--owner", "owner-a")
    p.await_revision()
    assert counts(p)[0] == 0
