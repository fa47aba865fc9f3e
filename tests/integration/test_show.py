"""ping and show_nodes: who answers, and what is wrong with the rest."""

import os
import subprocess

import pytest

from muster import TOKEN, faketime, program, run, wait_for


def test_ping(cluster3):
    r = cluster3.ctl("ping")
    assert sorted(line.split("\t")[:2] for line in r.lines) == [
        [n, "ok"] for n in ("m1", "w1", "w2", "w3")]
    cluster3["w2"].stop()
    r = cluster3.ctl("--json", "ping", "w[1-2]", status=4)
    got = {o["node"]: o for o in r.json_lines}
    assert got["w1"]["class"] == "ok" and got["w1"]["ms"] < 60000
    assert got["w2"]["class"] == "unreachable" and got["w2"]["ms"] is None
    assert "Connection refused" in got["w2"]["error"]
    cluster3.ctl("ping", "w9", status=3)


def test_show_nodes(cluster3):
    ctl = cluster3.ctl
    ctl("node", "drain", "w1")
    ctl("node", "add", "db1", "10.9.9.9", "--role", "worker_mysql")
    cluster3["w3"].stop()
    rows = {o["node"]: o for o in ctl("--json", "show_nodes").json_lines}
    assert list(rows) == ["db1", "m1", "w1", "w2", "w3"]
    assert rows["m1"]["roles"] == ["master"]
    assert (rows["w1"]["state"], rows["w1"]["agent"]) == ("drain", "up")
    assert rows["db1"]["agent"] == "none" and rows["db1"]["why"] is None
    assert rows["w3"]["agent"] == "down"
    assert "Connection refused" in rows["w3"]["why"]
    assert rows["w2"]["version"] and rows["w2"]["why"] is None
    assert abs(rows["w2"]["skew_ms"]) < 20000
    assert 80 <= rows["w2"]["cert_days"] <= 90
    # A pipe has no titles and a cell a tab; a terminal has a table.
    assert all(len(line.split("\t")) == 11
               for line in ctl("show_nodes").lines)
    t = cluster3.terminal("show_nodes")
    assert t.status() == 0
    assert "NODE" in t.text and "CERT DAYS" in t.text


@pytest.mark.parametrize("options, env, colour", [
    ([], {}, True),
    (["--no-color"], {}, False),
    ([], {"NO_COLOR": "1"}, False),
    ([], {"TERM": "dumb"}, False),
])
def test_colours(shared_cluster, options, env, colour):
    t = shared_cluster.terminal("ping", "m1", *options, env=env)
    assert t.status() == 0
    assert ("\x1b[32m" in t.text) == colour


def test_show_nodes_tells_who_waits_and_who_was_refused(cluster):
    cluster.add_worker("w1")
    run(program("nodeagent"), "--state", cluster.tmp / "other", "join",
        cluster.token("--role", "worker_http"), "--name", "w1", "--address",
        f"{cluster.net.address()}:7400", "--no-start", status=2)
    rows = [o for o in cluster.ctl("--json", "show_nodes").json_lines
            if o["state"] == "conflict"]
    assert [o["node"] for o in rows] == ["w1"]
    assert "another key" in rows[0]["why"]


def test_show_nodes_tells_who_waits(cluster):
    token = cluster.token("--role", "worker_http", "--approve")
    p = subprocess.Popen(
        [program("nodeagent"), "--state", cluster.tmp / "w9", "join", token,
         "--name", "w9", "--address", f"{cluster.net.address()}:7400",
         "--no-start"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        def waits():
            rows = cluster.ctl("--json", "show_nodes").json_lines
            return [o for o in rows if o["state"] == "pending"]
        row = wait_for(waits, what="the request")[0]
        assert row["node"] == "w9" and row["agent"] is None
        assert "clusterctl approve" in row["why"]
        cluster.ctl("approve", "w9")
        assert p.wait(timeout=60) == 0
    finally:
        p.kill()
        p.stdout.close()


def test_clock_skew_shows(cluster):
    w1 = cluster.add_worker("w1", start=False)
    w1.start(env=faketime("+30s"))
    row = [o for o in cluster.ctl("--json", "show_nodes").json_lines
           if o["node"] == "w1"][0]
    assert 25_000 <= row["skew_ms"] <= 35_000


def test_from_an_operators_machine(cluster, tmp_path):
    """No registry, no agent: the roster is fetched, and kept fresh."""
    cluster.add_worker("w1")
    line = cluster.ctl("operator", "add", "bob", "--grant", "*").stdout
    token = TOKEN.search(line).group()
    mine = tmp_path / "mine"
    cluster.ctl("operator", "join", token, state=mine)
    assert cluster.ctl("exec", "w1", "echo hi", state=mine).stdout == \
        "w1: hi\n"
    cluster.add_worker("w2")
    # The copy at hand is young: it is not looked up again for each command.
    cluster.ctl("exec", "w2", "true", state=mine, status=3)
    old = os.stat(mine / "roster").st_mtime - 120
    os.utime(mine / "roster", (old, old))
    assert cluster.ctl("exec", "w2", "echo hi", state=mine).stdout == \
        "w2: hi\n"
    assert os.stat(mine / "roster").st_mtime > old + 60
    # Changes are made elsewhere, and it says where.
    r = cluster.ctl("node", "drain", "w1", state=mine, status=8)
    assert "changes are made on a master: m1 (" in r.stderr
    # Without a master the copy serves on, with a remark.
    cluster.expect_log("roster from master m1")
    cluster.master.stop()
    os.utime(mine / "roster", (old, old))
    r = cluster.ctl("exec", "w1", "echo hi", state=mine)
    assert r.stdout == "w1: hi\n" and "going on with the copy" in r.stderr


@pytest.mark.parametrize("status, says", [(8, "belongs to no cluster yet")])
def test_no_cluster_here(tmp_path, status, says):
    tmp_path.chmod(0o700)
    r = run(program("clusterctl"), "--state", tmp_path, "exec",
                   "w1", "id", status=status)
    assert says in r.stderr


def test_operator_certificate_renews_itself(cluster):
    """At two thirds of its life, by the way of any command."""
    cert = cluster.master.state / "operator.cert"
    before = cert.read_bytes()
    cluster.ctl("exec", "m1", "true")
    assert cert.read_bytes() == before
    # 21 of 30 days later.
    late = faketime("+21d")
    cluster.master.stop()
    cluster.master.expect_log(".*")
    cluster.master.start(env=late)
    cluster.ctl("exec", "m1", "true", env=late)
    wait_for(lambda: cert.read_bytes() != before, what="a new certificate")
    cluster.ctl("exec", "m1", "true", env=late)
