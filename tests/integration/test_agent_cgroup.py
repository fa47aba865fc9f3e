"""Orders in control groups of their own, where cgroup v2 is delegated."""

import contextlib
import os
from pathlib import Path

import pytest

import muster
from agent_client import answers, call, first_output, gone, start
from muster import wait_for

# Leaves its group and its session, loses its parent, and is deaf.
ESCAPEE = "setsid sh -c '(trap \"\" TERM; " \
          "exec sh -c \"echo \\$\\$; exec sleep 311\") & " \
          "sleep 0.1' & sleep 0.2; "


def cgroup2_mount():
    for line in Path("/proc/self/mounts").read_text().splitlines():
        fields = line.split()
        if fields[2] == "cgroup2":
            return Path(fields[1])
    pytest.skip("no cgroup v2 is mounted")


@pytest.fixture
def group(request):
    """A group as systemd delegates it."""
    path = cgroup2_mount() / f"muster-test-{os.getpid()}"
    try:
        path.mkdir()
        os.setxattr(path, "user.delegate", b"1")
    except OSError as e:
        pytest.skip(f"no control group can be made: {e}")
    yield path
    for sub in [*path.iterdir(), path]:
        if sub.is_dir():
            with contextlib.suppress(OSError):
                (sub / "cgroup.kill").write_text("1")
            wait_for(lambda: "populated 0" in (sub / "cgroup.events")
                     .read_text(), 5)
            sub.rmdir()


@pytest.fixture
def agent(group, cluster):
    """w1, which runs in that group."""
    node = cluster.add_worker("w1", start=False)
    node.argv = ["sh", "-c", 'echo 0 > "$1"; shift; exec "$@"', "sh",
                 str(group / "cgroup.procs"), *node.argv]
    yield node.start()
    node.stop()


def orders(group):
    return [p.name for p in group.iterdir() if p.name.startswith("order-")]


def test_an_order_has_its_own(cluster, agent, group):
    got = call(cluster, "w1", {"verb": "exec",
                               "shell": "cat /proc/self/cgroup"})
    assert f"/{group.name}/order-" in got[0]["data"]
    assert orders(group) == []


def test_nothing_escapes_a_timeout(cluster, agent, group):
    got = call(cluster, "w1", {"verb": "exec", "timeout_ms": 500,
                               "shell": ESCAPEE + "sleep 310"})
    assert answers(got)[0][1]["timeout"] is True
    assert gone(int(got[0]["data"]))
    assert orders(group) == []


def test_nothing_survives_a_killed_agent(cluster, agent, group):
    client = start(cluster, "w1", {"verb": "exec",
                                   "shell": ESCAPEE + "sleep 310"})
    pid = int(first_output(client))
    agent.kill()
    client.wait()
    assert not gone(pid)
    agent.expect_log("ending what an earlier agent left")
    agent.start()
    wait_for(lambda: gone(pid))


def test_a_daemon_survives_a_restart(cluster, agent, group):
    got = call(cluster, "w1", {"verb": "exec",
                               "shell": "setsid sleep 312 & echo $!"})
    pid = int(got[0]["data"])
    assert (group / "left" / "cgroup.procs").read_text() == f"{pid}\n"
    agent.restart()
    assert not gone(pid)
    os.kill(pid, 9)


def test_keep_survives_a_restart(cluster, agent, group):
    client = start(cluster, "w1", {"verb": "exec", "on_disconnect": "keep",
                                   "shell": "echo $$; exec sleep 313"})
    pid = int(first_output(client))
    agent.restart()
    client.wait()
    assert not gone(pid)
    os.kill(pid, 9)
    muster.wait_for(lambda: gone(pid))
