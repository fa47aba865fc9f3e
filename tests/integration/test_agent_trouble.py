"""kill -9, a full disk, a read-only state directory, a wrong clock."""

import json
import subprocess

import pytest

import muster
from agent_client import answer, answers, argv, call
from muster import wait_for

PING = {"verb": "ping"}


def test_agents_killed_at_any_instant(cluster3, rng):
    """They come back with state that is whole, and the log's chain holds."""
    agent = cluster3["w1"]
    for _ in range(15):
        clients = [subprocess.Popen(
            argv(cluster3, "w1", [{"verb": "exec", "shell": "echo x"}] * 5),
            stdout=subprocess.DEVNULL, env=muster.clean_env())
            for _ in range(3)]
        try:
            clients[0].wait(timeout=rng.random() * 0.03)
        except subprocess.TimeoutExpired:
            pass
        agent.kill()
        for c in clients:
            c.wait()
        agent.start()
        assert answer(cluster3, "w1", {"verb": "exec", "shell": "true"})[
            "exit"] == 0


def test_a_master_killed_while_the_registry_changes(cluster3, rng):
    for i in range(10):
        change = cluster3.ctl_start("node", "add", f"b{i}", f"10.9.8.{i + 1}",
                                    "--role", "storage")
        try:
            change.wait(timeout=rng.random() * 0.02)
        except subprocess.TimeoutExpired:
            pass
        cluster3.master.kill()
        change.communicate()
        cluster3.master.start()
        cluster3.ctl("registry", "check")
    revision = answer(cluster3, "m1", {"verb": "status"})["roster_revision"]
    cluster3.expect_log("roster from")
    assert answer(cluster3, "w1", {"verb": "sync", "revision": revision})[
        "revision"] == revision


def test_a_full_disk(cluster):
    """Orders go on: the one that makes room comes this way too."""
    with muster.tmpfs(cluster.tmp / "n1", "512k"):
        node = cluster.join(cluster.token("n1", "--role", "storage"), "n1")
        ballast = muster.fill(node.state)
        node.expect_log("audit log: ", "roster from")
        call(cluster, "n1", {"verb": "exec", "shell": "true"})
        for i in range(40):
            cluster.ctl("node", "add", f"filler{i}", f"10.0.0.{i + 1}",
                        "--role", "storage")
        wanted = answer(cluster, "m1", {"verb": "sync"})["revision"]
        [(kind, why)] = answers(call(cluster, "n1",
                                     {"verb": "sync", "revision": wanted}))
        assert kind == "error" and "No space left" in why["text"]
        assert answer(cluster, "n1", {"verb": "exec", "shell": f"rm "
                                      f"{ballast}"})["exit"] == 0
        assert answer(cluster, "n1", {"verb": "sync", "revision": wanted})[
            "revision"] >= wanted
        node.stop()


def test_a_read_only_state_directory(cluster):
    with muster.tmpfs(cluster.tmp / "n1", "2m"):
        node = cluster.join(cluster.token("n1", "--role", "storage"), "n1")
        node.stop()
        muster.remount(node.state, "ro")
        got = muster.run(muster.program("nodeagent"), "--state", node.state,
                         "run", status=8)
        assert "Read-only file system" in got.stderr
        muster.remount(node.state, "rw")
        node.start()
        node.stop()


@pytest.mark.parametrize("shift, word", [
    ("+100d", "expired"), ("-100d", "not-yet"), ("+40s", None),
    ("-40s", None)])
def test_a_node_whose_clock_is_wrong(cluster3, shift, word):
    """It runs on, says so, and its clients are told which it is."""
    node = cluster3["w1"]
    node.stop()
    node.expect_log("expired", "not valid", "not yet", "roster from",
                    "renewal", "clock")
    node.start(env=muster.faketime(shift))
    got = call(cluster3, "w1", PING)
    if word is None:
        assert answers(got)[0][0] == "reply"
    else:
        assert got[-1]["json"]["word"] == word, got
        assert "the node's clock is" in got[-1]["json"]["text"]
    assert answer(cluster3, "w2", PING)
    node.stop()
    node.start()
    assert answer(cluster3, "w1", PING)


def test_an_audit_log_that_cannot_be_written(cluster):
    """Orders go on, and the agent says it once."""
    log = cluster.master.state / "audit-node.log"
    log.mkdir()
    cluster.master.expect_log("audit log: ")
    for _ in range(3):
        assert answer(cluster, "m1", {"verb": "exec", "shell": "true"})[
            "exit"] == 0
    assert cluster.master.text.count("audit log: ") == 1


def serials(node):
    text = (node.state / "node.cert").read_bytes()[64:]
    return json.loads(text)["serial"]


def test_certificates_renew_themselves(cluster3):
    nodes = [cluster3["m1"], cluster3["w1"]]
    before = [serials(n) for n in nodes]
    cluster3.expect_log("roster from")
    for n in nodes:
        n.stop()
    later = muster.faketime("+61d")  # of 90
    for n in nodes:
        n.start(env=later)
    wait_for(lambda: all(serials(n) > b for n, b in zip(nodes, before)),
             what="new certificates")
    got = muster.run(*argv(cluster3, "w1", [PING], ["-a", "node"]),
                     env=later)
    assert '"reply"' in got.stdout
    for n in nodes:
        n.stop()


def test_a_damaged_roster_is_told(cluster3):
    node = cluster3["w1"]
    node.stop()
    roster = node.state / "roster"
    good = roster.read_bytes()
    roster.write_bytes(good[:-1] + b"!\n")
    got = muster.run(muster.program("nodeagent"), "--state", node.state,
                     "run", status=(7, 8))
    assert "roster" in got.stderr
    assert "put another node's file in its place" in got.stderr
    roster.write_bytes((cluster3["w2"].state / "roster").read_bytes())
    node.start()
