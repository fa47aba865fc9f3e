"""The roster on its way: told, pulled, handed on, never replaced by worse."""

import os
import signal

import muster
from agent_client import answer, answers, call
from muster import wait_for

WORKERS = ("w1", "w2", "w3")


def revision(cluster, node):
    return answer(cluster, node, {"verb": "status"})["roster_revision"]


def test_a_change_reaches_everybody_soon(cluster3):
    for i in range(10):
        cluster3.ctl("node", "add", f"b{i}", f"10.1.1.{i + 1}", "--role",
                     "storage")
    newest = answer(cluster3, "m1", {"verb": "sync"})["revision"]
    for name in WORKERS:
        wait_for(lambda: revision(cluster3, name) >= newest,
                 what=f"revision {newest} on {name}")
        assert "b9" in cluster3[name].ctl("nodes").lines


def test_it_is_handed_on_as_it_stands(cluster3):
    newest = answer(cluster3, "m1", {"verb": "sync"})["revision"]
    answer(cluster3, "w1", {"verb": "sync", "revision": newest})
    got = call(cluster3, "w1", {"verb": "roster"})
    text = "".join(r["data"] for r in got if r["record"] == "file")
    assert text == (cluster3["w1"].state / "roster").read_text()
    assert answers(got)[-1][1] == {"revision": newest}
    assert answer(cluster3, "w1", {"verb": "roster", "have": newest}) == {
        "revision": newest, "same": True}


def test_a_revision_that_does_not_exist(cluster3):
    [(kind, why)] = answers(call(cluster3, "w1",
                                 {"verb": "sync", "revision": 10 ** 6}))
    assert kind == "error" and "have roster revision" in why["text"]


def test_without_a_master_service_goes_on(cluster3):
    newest = answer(cluster3, "m1", {"verb": "sync"})["revision"]
    answer(cluster3, "w1", {"verb": "sync", "revision": newest})
    cluster3.master.stop()
    cluster3.expect_log("roster from master")
    assert answer(cluster3, "w1", {"verb": "exec", "shell": "true"})[
        "exit"] == 0
    assert len(cluster3["w1"].ctl("nodes").lines) == 4
    cluster3["w1"].restart()
    assert answer(cluster3, "w1", {"verb": "ping"})
    [(kind, why)] = answers(call(cluster3, "w1", {"verb": "sync"}))
    assert kind == "error" and "master m1" in why["text"]
    cluster3.master.start()
    assert answer(cluster3, "w1", {"verb": "sync"})["revision"] > 0


def test_a_worse_one_is_not_adopted(cluster3):
    """A master that was set back to an older registry."""
    old = muster.copy_state(cluster3.master.state, cluster3.tmp / "old")
    for i in range(5):
        cluster3.ctl("node", "add", f"b{i}", f"10.1.1.{i + 1}", "--role",
                     "storage")
    newest = answer(cluster3, "m1", {"verb": "sync"})["revision"]
    answer(cluster3, "w1", {"verb": "sync", "revision": newest})
    before = (cluster3["w1"].state / "roster").read_bytes()
    cluster3.master.stop()
    cluster3.expect_log(".*")
    cluster3.master.argv[2] = str(old)
    cluster3.master.start()
    call(cluster3, "w1", {"verb": "sync", "revision": newest + 1})
    assert (cluster3["w1"].state / "roster").read_bytes() == before


def test_a_node_that_slept_catches_up(cluster3):
    cluster3["w2"].stop()
    cluster3.ctl("node", "add", "b1", "10.1.1.1", "--role", "storage")
    newest = answer(cluster3, "m1", {"verb": "sync"})["revision"]
    cluster3["w2"].start()
    wait_for(lambda: revision(cluster3, "w2") >= newest)


def test_a_copied_key_is_noticed(cluster):
    """A clone of a machine: two agents take turns with one certificate."""
    w1 = cluster.add_worker("w1")
    state = muster.copy_state(w1.state, cluster.tmp / "clone")
    elsewhere = cluster.net.address()

    def n_seen():
        return sum("two machines have the key of w1" in line
                   for line in cluster.master.text.splitlines())
    # An agent that is started anew is no other machine.
    for _ in range(2):
        w1.restart()
        answer(cluster, "w1", {"verb": "sync"})
    assert n_seen() == 0
    cluster.master.expect_log("two machines have the key of w1, at 127.* and "
                              "127.*clusterctl node remove w1, then enroll")
    clone = cluster.daemon("clone", muster.program("nodeagent"), "--state",
                           state, "run", "--listen", f"{elsewhere}:7400")

    def both_called():
        for agent in (clone, w1):
            os.kill(agent.pid, signal.SIGHUP)
        return n_seen()
    wait_for(both_called, what="a word on the copy")
    row = cluster.ctl("--json", "node", "conflicts").json
    assert row["name"] == "w1" and row["why"] == "copied key"
    row, = [r for r in cluster.ctl("--json", "show_nodes").json_lines
            if r["state"] == "conflict"]
    assert row["node"] == "w1" and "another machine has this" in row["why"]
    assert any(e["event"] == "copied" and e["name"] == "w1" for e in
               cluster.ctl("--json", "audit", "--node").json_lines)
    assert n_seen() == 1  # not each minute
    # Both are out at once; what was said of them is done with.
    for agent in (clone, w1):
        agent.expect_log("w1 was removed from the cluster")
    cluster.ctl("node", "remove", "w1")
    assert cluster.ctl("node", "conflicts").stdout == ""
