"""Who may call what, on the wire: every verb against every kind of peer."""

import os
import signal

import pytest

import muster
from agent_client import (EVERY_VERB, answers, call, first_output, gone,
                          records, start)


def requests():
    return [{"verb": v, **a} for v, a in EVERY_VERB.items()]


def words(cluster, *options):
    """The word of each verb's refusal, or "ok"; or the one word with which
    the handshake was refused."""
    got = call(cluster, "w1", *requests(), options=options)
    if got[0]["record"] == "closed":
        return got[0]["json"]["word"]
    return {v: o.get("word", "ok") for v, (_, o)
            in zip(EVERY_VERB, answers(got))}


def test_a_stranger_gets_no_session(shared_cluster):
    assert words(shared_cluster, "-s", "-m", "operator,*,60") == "stranger"
    assert words(shared_cluster, "-s", "-m", "node,*,60") == "stranger"


def test_an_expired_certificate_is_told_apart(shared_cluster):
    assert words(shared_cluster, "-m", "operator,*,-120") == "expired"
    assert words(shared_cluster, "-m", "node,*,-120") == "expired"


def test_one_from_the_future_is_told_apart(shared_cluster):
    assert words(shared_cluster, "-m", "operator,*,90000") == "not-yet"


def test_an_operator_without_grants(shared_cluster):
    assert words(shared_cluster, "-m", "operator,nothing,60") == {
        v: "ok" if v in ("ping", "roster") else "denied" for v in EVERY_VERB}


def test_a_node(shared_cluster):
    assert words(shared_cluster, "-a", "node") == {
        v: "ok" if v in ("ping", "roster", "sync") else "denied"
        for v in EVERY_VERB}


@pytest.mark.parametrize("verb", ["exec", "pull", "status"])
def test_a_grant_opens_its_own_verb(shared_cluster, verb):
    got = words(shared_cluster, "-m", f"operator,{verb},60")
    assert got.pop(verb) == "ok"
    for other in ("ping", "roster", "have" if verb == "pull" else "ping"):
        got.pop(other, None)
    if verb == "status":
        assert got.pop("seen") == "denied"  # not a master
    assert set(got.values()) == {"denied"}


def test_a_grant_for_a_role_is_for_nodes_with_it(shared_cluster):
    run = {"verb": "exec", "shell": "true"}
    here = ["-m", "operator,exec:worker_http,60"]
    for node, kind in (("w1", "exit"), ("m1", "error")):
        [(got, _)] = answers(call(shared_cluster, node, run, options=here))
        assert got == kind


@pytest.fixture
def eve(cluster3):
    """The state directory of an operator who may run commands."""
    out = cluster3.ctl("operator", "add", "eve", "--grant", "exec").stdout
    state = cluster3.tmp / "eve"
    cluster3.ctl("operator", "join", muster.TOKEN.search(out).group(),
                 state=state)
    return state


def word(cluster, state, node):
    """How this operator's command ends: "ok", or the word of a refusal."""
    got = call(cluster, node, {"verb": "exec", "shell": "true"}, state=state)
    if got[0]["record"] == "closed":
        return got[0]["json"]["word"]
    return answers(got)[0][1].get("word", "ok")


def test_a_revoked_operator_is_refused(cluster3, eve):
    assert word(cluster3, eve, "w1") == "ok"
    cluster3.ctl("operator", "revoke", "eve")
    for node in ("m1", "w1", "w2", "w3"):
        muster.wait_for(lambda: word(cluster3, eve, node) == "revoked",
                        what=f"{node} to hear of it")


def test_revoking_ends_what_runs(cluster3, eve):
    run = {"verb": "exec", "shell": "echo $$; sleep 300"}
    process = start(cluster3, "w1", run, state=eve)
    pid = int(first_output(process))
    cluster3.ctl("operator", "revoke", "eve")
    out, _ = process.communicate(timeout=muster.PATIENCE_S)
    assert answers(records(out))[0][1]["word"] == "revoked"
    muster.wait_for(lambda: gone(pid))


def test_a_removed_node_is_refused(cluster3):
    node = cluster3["w2"]
    ask = {"verb": "ping"}
    as_w2 = {"options": ["-a", "node"], "state": node.state}
    assert answers(call(cluster3, "m1", ask, **as_w2))[0][0] == "reply"
    node.expect_log("removed from the cluster", "revoked", "roster from")
    cluster3.ctl("node", "remove", "w2")

    def refused():
        [*_, last] = call(cluster3, "m1", ask, **as_w2)
        return last["json"] and last["json"]["word"] == "revoked"
    muster.wait_for(refused)


def test_a_removed_node_ends_and_refuses_orders(cluster, tmp_path):
    """It says once what has happened and how to come back; an operator who
    has not heard of it finds it closed."""
    w1 = cluster.add_worker("w1")
    # Of an operator whose roster is older than the removal.
    old = muster.copy_state(cluster.master.state, tmp_path / "old")
    process = start(cluster, "w1", {"verb": "exec",
                                    "shell": "echo $$; sleep 300"}, state=old)
    pid = int(first_output(process))
    cluster.ctl("node", "remove", "w1")
    w1.expect_log("w1 was removed from the cluster and takes no more orders "
                  r"\(to bring it back: clusterctl enroll")
    os.kill(w1.pid, signal.SIGHUP)  # asks the master now
    out, _ = process.communicate(timeout=muster.PATIENCE_S)
    assert answers(records(out))[0][1]["word"] == "revoked"
    muster.wait_for(lambda: gone(pid))
    [refusal] = call(cluster, "w1", *requests(), state=old)
    assert refusal["json"]["word"] == "revoked"
    assert "w1 was removed from the cluster" in refusal["json"]["text"]
    said = muster.run(muster.program("nodeagent"), "--state", w1.state,
                      "status").stdout
    assert "enrolled" in said
    # Asked again and again it says nothing new.
    for _ in range(3):
        os.kill(w1.pid, signal.SIGHUP)
        call(cluster, "w1", {"verb": "ping"}, state=old)
    assert w1.text.count(" warn: ") == 1
    # Started anew it finds out anew; with a new token it is back.
    w1.restart()
    muster.wait_for(lambda: w1.text.count(" warn: ") == 2)
    muster.run(muster.program("nodeagent"), "--state", w1.state, "join",
               cluster.token("--role", "worker_http"), "--name", "w1",
               "--address", f"{w1.address}:{muster.AGENT_PORT}")
    w1.restart()
    assert cluster.ctl("exec", "w1", "echo back").lines == ["w1: back"]


def test_expiry_ends_what_runs(shared_cluster):
    """A certificate is good for the minute by which clocks may differ, and
    no longer, also in the middle of a command."""
    run = {"verb": "exec", "shell": "echo $$; exec sleep 300"}
    process = start(shared_cluster, "w1", run,
                    options=["-m", "operator,exec,-57"])
    pid = int(first_output(process))
    out, _ = process.communicate(timeout=muster.PATIENCE_S)
    assert answers(records(out))[0][1]["word"] == "expired"
    muster.wait_for(lambda: gone(pid))
