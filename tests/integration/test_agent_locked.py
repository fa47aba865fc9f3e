"""A master whose authority key is under a passphrase."""

import re

import pytest

import muster
from agent_client import answer, answers, call

PASS = "correct horse battery"


@pytest.fixture
def locked(empty_cluster):
    c = empty_cluster
    node = c.master = c._node("m1")
    muster.run(muster.program("clusterctl"), "--state", node.state, "init",
               "--cluster", "test", "--name", "m1", "--address",
               f"{node.address}:7400", "--passphrase-fd", "0",
               stdin=PASS + "\n")
    node.start()
    return c


def unlock(cluster, passphrase, status=0):
    return cluster.ctl("unlock", "--passphrase-fd", "0", status=status,
                       stdin=passphrase + "\n")


def authority(cluster):
    got = muster.run(muster.program("nodeagent"), "--state",
                     cluster.master.state, "status").stdout
    return re.search(r"^authority +(\w+)$", got, re.M).group(1)


def join(cluster, token, status):
    return muster.run(muster.program("nodeagent"), "--state",
                      cluster.tmp / "n1", "join", token, "--no-start",
                      "--address", cluster.net.address(), status=status)


def test_it_serves_and_asks_to_be_unlocked(locked):
    assert authority(locked) == "locked"
    assert answer(locked, "m1", {"verb": "exec", "shell": "true"})[
        "exit"] == 0
    [(kind, why)] = answers(call(locked, "m1", {"verb": "renew"}))
    assert kind == "error" and why["word"] == "locked"
    assert "clusterctl unlock" in why["text"]


def test_joins_wait_for_it(locked):
    locked.master.expect_log("no new roster: .* is locked")
    token = locked.token("n1", "--role", "storage")
    assert "clusterctl unlock" in join(locked, token, 8).stderr
    unlock(locked, "wrong", status=7)
    assert authority(locked) == "locked"
    unlock(locked, PASS)
    assert authority(locked) == "open"
    assert "joined as n1" in join(locked, token, 0).stdout
    for log in (locked.master.log, locked.master.state / "audit-node.log"):
        assert PASS not in log.read_text()


def test_a_restart_locks_it_again(locked):
    unlock(locked, PASS)
    locked.master.restart()
    assert authority(locked) == "locked"
