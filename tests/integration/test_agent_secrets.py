"""Nothing secret in argv, logs, audit log, environment; modes are tight."""

import os
import stat
from pathlib import Path

import muster
from agent_client import call


def test_modes(cluster3):
    for name in ("m1", "w1"):
        state = cluster3[name].state
        call(cluster3, name, {"verb": "exec", "shell": "true"})
        muster.wait_for((state / "audit-node.log").exists)
        for path in [state, *state.rglob("*")]:
            mode = stat.S_IMODE(path.lstat().st_mode)
            public = path.suffix in (".pub", ".cert")
            assert mode & (0o022 if public else 0o077) == 0, \
                f"{path} is {mode:o}"
        assert stat.S_ISSOCK((state / "run/nodeagent.sock").stat().st_mode)


def test_the_socket_is_ours_alone(cluster):
    sock = cluster.master.state / "run/nodeagent.sock"
    assert sock.exists()
    cluster.master.stop()
    assert not sock.exists()


def test_a_live_socket_is_not_taken_over(cluster):
    """A second agent is refused and leaves the first one's socket."""
    muster.run(muster.program("nodeagent"), "--state", cluster.master.state,
               "run", status=8)
    muster.run(muster.program("nodeagent"), "--state", cluster.master.state,
               "status")


@muster.needs_root
def test_no_secret_is_written_anywhere(cluster):
    token = cluster.token("n1", "--role", "storage")
    node = cluster.join(token, "n1", "-v", start=False)
    node.argv.append("-v")
    node.start()
    call(cluster, "n1", {"verb": "exec", "shell": "true",
                         "env": {"PASSWORD": "hunter2secret"}})
    keys = [p.read_bytes() for n in (cluster.master, node)
            for p in n.state.glob("*.key")]
    hidden = [token.encode(), b"hunter2secret",
              *keys, *(k.hex().encode() for k in keys)]
    shown = [cluster.tmp / "m1.log", cluster.tmp / "n1.log",
             *cluster.tmp.glob("*/audit*"), *cluster.tmp.glob("*/roster")]
    shown += [Path(f"/proc/{n.pid}/{f}") for n in (cluster.master, node)
              for f in ("cmdline", "environ")]
    for path in shown:
        text = path.read_bytes()
        for secret in hidden:
            assert secret not in text, path


def test_no_core_is_dumped(cluster):
    limits = Path(f"/proc/{cluster.master.pid}/limits").read_text()
    [core] = [line for line in limits.splitlines() if "core file" in line]
    assert core.split()[4:6] == ["0", "0"]
    # Not dumpable: the files of the process belong to root.
    assert os.stat(f"/proc/{cluster.master.pid}/maps").st_uid == 0
