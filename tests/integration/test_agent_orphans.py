"""A child survives nothing: cancel, timeout, lost client, agent stop."""

import os
import re
import signal

import pytest

import muster
from agent_client import answer, answers, call, first_output, gone, output, \
    records, start

# Each prints the pids of all that it leaves, and then waits.
FAMILIES = {
    "a group": "sleep 301 & echo $$ $!; wait",
    "another process group": "set -m; sleep 302 & echo $$ $!; wait",
    "another session": "setsid sh -c 'echo $$ $PPID; sleep 303; true' & wait",
    "an orphan in another session":
        "orphan=$(setsid sh -c 'trap \"\" TERM; sleep 310 >&2 & echo $!');"
        "echo $$ $orphan; sleep 310; true",
    "deaf to TERM": "trap '' TERM; sleep 304 & echo $$ $!; "
                    "while :; do sleep 1; done",
    "stopped": "sleep 305 & echo $$ $!; kill -STOP $! $$",
}
family = pytest.mark.parametrize("line", FAMILIES.values(), ids=FAMILIES)


def begin(cluster, line, **request):
    """Starts it on w1; returns the client and the pids."""
    client = start(cluster, "w1", {"verb": "exec", "shell": line, **request})
    return client, [int(p) for p in first_output(client).split()]


def all_gone(pids, timeout=muster.PATIENCE_S):
    muster.wait_for(lambda: all(gone(p) for p in pids), timeout,
                    f"the end of {pids}")


@family
def test_a_client_killed(shared_cluster, line):
    client, pids = begin(shared_cluster, line)
    client.kill()
    client.wait()
    all_gone(pids)


@family
def test_a_timeout(shared_cluster, line):
    got = call(shared_cluster, "w1",
               {"verb": "exec", "shell": line, "timeout_ms": 300})
    [(kind, how)] = answers(got)
    assert kind == "exit" and how["timeout"] is True
    all_gone([int(p) for p in output(got).split()])


@family
def test_the_agent_stopped(cluster3, line):
    client, pids = begin(cluster3, line)
    cluster3["w1"].stop()
    assert all(gone(p) for p in pids)
    out, _ = client.communicate(timeout=muster.PATIENCE_S)
    assert "is being stopped" in answers(records(out))[0][1]["text"]


def test_the_agent_killed(cluster3):
    client, pids = begin(cluster3, "echo $$; exec sleep 306")
    cluster3["w1"].kill()
    all_gone(pids)
    client.wait()


def test_a_signal_reaches_the_group(shared_cluster):
    line = "trap 'echo caught; exit 9' INT; echo up; " \
           "while :; do sleep 0.1; done"
    got = call(shared_cluster, "w1", {"verb": "exec", "shell": line},
               options=["-g", str(int(signal.SIGINT))])
    assert answers(got)[0][1]["exit"] == 9


def test_a_client_killed_while_it_feeds(shared_cluster):
    """The command reads nothing: its input is full, and the agent reads
    nothing more from the client; it must hear of its end all the same."""
    client = start(shared_cluster, "w1",
                   {"verb": "exec", "shell": "echo $$; exec sleep 307",
                    "stdin": True}, options=["-f", str(1 << 40)])
    pid = int(first_output(client))
    muster.wait_for(rests(client.pid), what="a full connection")
    client.kill()
    client.wait()
    all_gone([pid])


def rests(pid):
    """A condition: the process has not run for a quarter of a second."""
    seen = []

    def same():
        with open(f"/proc/{pid}/status") as f:
            seen.append(re.findall(r"ctxt_switches:\s+(\d+)", f.read()))
        return len(seen) > 25 and all(s == seen[-1] for s in seen[-25:])
    return same


def test_a_client_killed_while_it_takes_nothing(shared_cluster):
    client = start(shared_cluster, "w1",
                   {"verb": "exec", "shell": "echo $$; exec yes"},
                   options=["-t"])
    pid = int(first_output(client).split()[0])
    client.kill()
    client.wait()
    all_gone([pid])


def test_keep_outlives_its_client(shared_cluster):
    mark = shared_cluster.tmp / "kept"
    client, pids = begin(
        shared_cluster, f"echo $$; while ! test -e {mark}.go; do "
        f"sleep 0.05; done; echo done; touch {mark}", on_disconnect="keep")
    client.kill()
    client.wait()
    assert answer(shared_cluster, "w1", {"verb": "ping"})
    assert not gone(pids[0])
    open(f"{mark}.go", "w").close()
    muster.wait_for(mark.exists)
    all_gone(pids)


def test_keep_outlives_the_agent(cluster3):
    _, pids = begin(cluster3, "echo $$; exec sleep 308",
                    on_disconnect="keep")
    cluster3["w1"].stop()
    assert not gone(pids[0])
    os.kill(pids[0], signal.SIGKILL)


def test_a_daemon_may_stay(shared_cluster):
    got = call(shared_cluster, "w1",
               {"verb": "exec", "shell": "sleep 309 & echo $!"})
    pid = int(got[0]["data"])
    assert answers(got)[0][1]["exit"] == 0
    assert not gone(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_second_term_does_not_wait(cluster3):
    """Somebody is in a hurry: KILL at once, and no grace."""
    client, pids = begin(cluster3, FAMILIES["deaf to TERM"])
    agent = cluster3["w1"]
    agent.proc.terminate()
    client.wait()
    agent.proc.terminate()
    agent.proc.wait(timeout=4)  # the grace is longer
    assert agent.proc.returncode == 0
    all_gone(pids, 1)
