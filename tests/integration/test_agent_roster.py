"""The roster on its way: told, pulled, handed on, never replaced by worse."""

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
        wait_for(lambda: revision(cluster3, name) >= newest, 10,
                 f"revision {newest} on {name}")
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
    wait_for(lambda: revision(cluster3, "w2") >= newest, 5)
