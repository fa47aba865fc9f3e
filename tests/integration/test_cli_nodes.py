"""Nodes from the command line: joining, changing, leaving."""

import re

import muster

LINE = re.compile(r"nodeagent join muster1\.[A-Za-z0-9_-]+\n\Z")


def names(cluster, *argv):
    return cluster.ctl("nodes", *argv).lines


def test_enroll_prints_the_line_alone(cluster):
    r = cluster.ctl("enroll", "--role", "worker_http")
    assert LINE.match(r.stdout) and r.stderr == ""


def test_enroll_on_a_terminal_says_what_to_do(cluster):
    t = cluster.terminal("enroll", "--role", "worker_http", "--ttl", "2h")
    assert t.status() == 0
    assert re.search("paste this line there within 2h0m; it works once",
                     t.text), t.text


def test_enroll_warns_when_nobody_would_answer(quiet_master):
    r = quiet_master.ctl("enroll", "--role", "worker_http")
    assert LINE.match(r.stdout)
    assert r.stderr == ("clusterctl: nobody answers it yet: start this "
                        "master's agent (nodeagent run)\n")


def test_enroll_json(cluster):
    out = cluster.ctl("enroll", "web1", "--role", "worker_http", "--from",
                      "127.0.0.0/8", "--json").json
    assert out["command"] == "nodeagent join"
    assert out["token"].startswith("muster1.")
    assert (out["name"], out["roles"], out["uses"], out["from"],
            out["approve"]) == ("web1", ["worker_http"], 1, "127.0.0.0/8",
                                False)
    token, = cluster.ctl("token", "list", "--json").json_lines
    assert token["id"] == out["id"] and token["uses"] == 1
    assert "muster1" not in str(token)


def test_a_revoked_token_admits_nobody(cluster):
    token = cluster.token("--role", "worker_http")
    ident, = cluster.ctl("token", "list", "--json").json_lines
    cluster.ctl("token", "revoke", ident["id"])
    assert cluster.ctl("token", "list").stdout == ""
    r = cluster.join(token, "w1", status=[7, 8])
    assert names(cluster) == ["m1"], r


def test_nodes_in_a_pipe_on_a_terminal_and_as_json(cluster):
    cluster.ctl("node", "add", "web10", "10.0.0.10", "--role", "worker_http")
    cluster.ctl("node", "add", "web9", "fd00::9", "--role", "worker_http",
                "--role", "storage")
    assert names(cluster) == ["m1", "web9", "web10"]
    assert names(cluster, "-r", "storage") == ["web9"]
    assert names(cluster, "-r", "worker_mysql") == []
    assert names(cluster, "@worker_http!web9") == ["web10"]
    assert names(cluster, "web*") == ["web9", "web10"]
    assert names(cluster, "10.0.0.10") == ["web10"]
    row = cluster.ctl("nodes", "web9", "--json").json
    assert row == {"name": "web9", "state": "up", "agent": False,
                   "roles": ["storage", "worker_http"], "address": "fd00::9"}
    t = cluster.terminal("nodes")
    assert t.status() == 0
    title = re.sub(r"\x1b\[[0-9]*m", "", t.text.splitlines()[0])
    assert title.split() == ["NODE", "STATE", "ROLES", "ADDRESS", "AGENT"]
    assert "storage,worker_http" in t.text


def test_roles_of_this_node_and_of_another(cluster):
    cluster.add_worker("w1")
    assert cluster.ctl("roles").lines == ["master"]
    assert cluster["w1"].ctl("roles").lines == ["worker_http"]
    assert cluster["w1"].ctl("roles", "m1").lines == ["master"]
    assert cluster.ctl("roles", "--json").json == {"name": "m1",
                                                   "roles": ["master"]}


def test_node_options(cluster):
    ctl = cluster.ctl
    ctl("node", "add", "b1", "10.0.0.1", "--role", "worker_http", "--port",
        "worker_http=8081", "--weight", "3")
    show = ctl("node", "show", "b1", "--json").json
    assert show["roles"] == {"worker_http": 8081}
    assert show["options"] == {"weight": "3", "maxconn": "none"}
    assert show["agent_port"] == 0 and "serial" not in show
    ctl("node", "set", "b1", "--weight", "5", "--maxconn", "20", "--address",
        "10.0.0.2", "--port", "worker_http=role")
    show = ctl("node", "show", "b1", "--json").json
    assert show["roles"] == {"worker_http": None}
    assert show["address"] == "10.0.0.2"
    assert show["options"] == {"weight": "5", "maxconn": "20"}
    ctl("node", "rename", "b1", "b2")
    again = ctl("node", "show", "b2", "--json").json
    assert again["uuid"] == show["uuid"]
    assert "weight       5" in ctl("node", "show", "b2").lines


def test_a_change_of_several_nodes_is_whole(cluster):
    ctl = cluster.ctl
    for i in range(1, 4):
        ctl("node", "add", f"b{i}", f"10.0.0.{i}", "--role", "worker_http")
    before = ctl("registry", "log", "-n", "1", "--json").json["revision"]
    ctl("node", "role", "add", "b[1-3]", "storage")
    assert names(cluster, "@storage") == ["b1", "b2", "b3"]
    after = ctl("registry", "log", "-n", "1", "--json").json["revision"]
    assert after == before + 1
    ctl("node", "role", "del", "b2", "storage")
    # b2 has it no more: nothing happens to b1 and b3 either.
    r = ctl("node", "role", "del", "b[1-3]", "storage", status=3)
    assert r.stderr == "clusterctl: node b2 has no role storage\n"
    assert names(cluster, "@storage") == ["b1", "b3"]


def test_states(cluster):
    ctl = cluster.ctl
    ctl("node", "add", "b1", "10.0.0.1", "--role", "worker_http")
    ctl("node", "add", "b2", "10.0.0.2", "--role", "worker_http")

    def states():
        return {n["name"]: n["state"] for n in
                ctl("nodes", "b[1-2]", "--json").json_lines}
    ctl("node", "drain", "b[1-2]")
    assert states() == {"b1": "drain", "b2": "drain"}
    ctl("node", "undrain", "b1")
    ctl("node", "maintenance", "on", "b2")
    assert states() == {"b1": "up", "b2": "maintenance"}
    ctl("node", "maintenance", "off", "@worker_http")
    assert states() == {"b1": "up", "b2": "up"}


def test_changes_tell_their_revision_as_json(cluster):
    out = cluster.ctl("node", "add", "b1", "10.0.0.1", "--json").json
    assert out["done"] == "Node b1 is registered."
    assert out["revision"] == \
        cluster.ctl("registry", "log", "-n", "1", "--json").json["revision"]


def test_changes_elsewhere_name_the_master(cluster):
    w1 = cluster.add_worker("w1")
    for argv in (["enroll", "--role", "storage"], ["node", "drain", "w1"],
                 ["set", "proxy.workers", "2"], ["site", "add", "a.example"],
                 ["operator", "revoke", "admin"], ["nodes", "--pending"]):
        r = w1.ctl(*argv, status=8)
        assert r.stdout == ""
        assert r.stderr == ("clusterctl: changes are made on a master: m1 "
                            f"({cluster.master.address})\n")


def test_approval(cluster):
    token = cluster.token("--role", "storage", "--approve")
    node = cluster._node("w1")
    p = muster.subprocess.Popen(
        [muster.program("nodeagent"), "--state", str(node.state), "join",
         token, "--name", "w1", "--address", f"{node.address}:7400",
         "--no-start"], stdout=muster.subprocess.PIPE,
        stderr=muster.subprocess.STDOUT, text=True, env=muster.clean_env())
    pending = muster.wait_for(
        lambda: cluster.ctl("nodes", "--pending", "--json").json_lines)
    assert pending[0]["name"] == "w1"
    assert pending[0]["address"] == node.address
    assert names(cluster) == ["m1"]
    r = cluster.ctl("approve", "w2", status=3)
    assert "w2" in r.stderr
    cluster.ctl("approve", "w1")
    out, _ = p.communicate(timeout=muster.PATIENCE_S)
    assert p.returncode == 0, out
    assert pending[0]["fingerprint"] in out
    assert names(cluster, "-r", "storage") == ["w1"]
    assert cluster.ctl("nodes", "--pending").stdout == ""


def test_rejection(cluster):
    token = cluster.token("--role", "storage", "--approve")
    node = cluster._node("w1")
    p = muster.subprocess.Popen(
        [muster.program("nodeagent"), "--state", str(node.state), "join",
         token, "--name", "w1", "--address", f"{node.address}:7400",
         "--no-start"], stdout=muster.subprocess.PIPE,
        stderr=muster.subprocess.STDOUT, text=True, env=muster.clean_env())
    muster.wait_for(lambda: cluster.ctl("nodes", "--pending").stdout)
    cluster.ctl("reject", "w1")
    out, _ = p.communicate(timeout=muster.PATIENCE_S)
    assert p.returncode != 0, out
    assert names(cluster) == ["m1"]


def test_removal_revokes_now(cluster):
    cluster.add_workers(2)
    w1, w2 = cluster["w1"], cluster["w2"]
    serial = cluster.ctl("node", "show", "w1", "--json").json["serial"]
    r = cluster.ctl("node", "remove", "w1")
    assert r.stderr == ""
    assert names(cluster) == ["m1", "w2"]
    # Not only the master knows: it was told to w2 before the command ended.
    assert str(serial) in (w2.state / "roster").read_text()
    w1.expect_log(".*")
    # Its name is free for another machine, with nothing of the old one.
    assert cluster.join(cluster.token("--role", "storage"), "w1b")
    assert w2.ctl("nodes").lines


def test_removal_says_who_could_not_be_told(cluster):
    cluster.add_workers(3)
    cluster["w2"].kill()
    r = cluster.ctl("node", "remove", "w1", status=4)
    assert re.fullmatch(r"clusterctl: w2 could not be told yet \(.*\); it "
                        r"learns it at the next talk with a master\n",
                        r.stderr), r.stderr
    assert names(cluster) == ["m1", "w2", "w3"]
    cluster["w1"].expect_log(".*")


def test_a_taken_name_is_a_conflict(cluster):
    cluster.add_worker("w1")
    cluster.expect_log("w1")
    other = cluster._node("other")
    r = muster.run(muster.program("nodeagent"), "--state", other.state,
                   "join", cluster.token("--role", "storage"), "--name",
                   "w1", "--address", f"{other.address}:7400", "--no-start",
                   status=None)
    assert r.status != 0
    row = cluster.ctl("node", "conflicts", "--json").json
    assert row["name"] == "w1" and re.match(r"[0-9a-z-]{19}\Z",
                                            row["fingerprint"])
    cluster.ctl("node", "conflicts", "--clear", "w1")
    assert cluster.ctl("node", "conflicts").stdout == ""
