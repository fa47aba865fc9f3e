"""exec: classes, exit statuses, targets (exec_cases.md, section D)."""

import json
import os
import signal
import time

import pytest

from muster import wait_for


@pytest.mark.parametrize("options, command, status, says", [
    # D1: a command that fails shows in the exit status, without asking.
    ([], "true", 0, ""),
    ([], "exit 1", 1, "w[1-3] (3): exited with status 1"),
    ([], "test $MUSTER_NODE = w1", 1, "w[2-3] (2): exited with status 1"),
    # D5: a signal is told as one, and is 128+N for -S.
    ([], "kill -9 $$", 1, "w[1-3] (3): killed by signal 9 SIGKILL"),
    (["-S"], "kill -9 $$", 137, "w[1-3] (3): killed by signal 9 SIGKILL"),
    (["-S"], "exit ${MUSTER_NODE#w}", 3, "w3: exited with status 3"),
    # D3: a time-out has its own status, also with -S.
    (["-T", "300ms"], "sleep 300", 5,
     "w[1-3] (3): timed out: ended there after 300ms"),
    (["-S", "-T", "300ms", "-n"], "sleep 300", 5, "timed out"),
    (["-l", "nosuchuser"], "true", 1, "failed there: there is no user"),
    (["--cwd", "/nonexistent"], "true", 1, "failed there"),
])
def test_status(shared_cluster, options, command, status, says):
    r = shared_cluster.ctl("exec", "-r", "worker_http", *options, command,
                           status=status)
    assert says in r.stderr
    assert r.stdout == ""
    # E8: the summary is for people; -q has none.
    r = shared_cluster.ctl("exec", "-r", "worker_http", "-q", *options,
                           command, status=status)
    assert r.stderr == ""


def test_argv_is_not_a_shell_line(shared_cluster):
    ctl = shared_cluster.ctl
    assert ctl("exec", "-N", "w1", "echo", "a  b; $HOME", "*").stdout == \
        "a  b; $HOME *\n"
    assert ctl("exec", "-N", "w1", "echo a  b; echo c").stdout == "a b\nc\n"
    # --argv: one word is a program; --shell: more words are $1, $2 ...
    r = ctl("exec", "--argv", "w1", "echo a", status=1)
    assert "exited with status 127" in r.stderr
    assert ctl("exec", "--shell", "-N", "w1", 'echo "$2/$1"', "a b",
               "; id").stdout == "; id/a b\n"
    assert "exclude" in ctl("exec", "--shell", "--argv", "w1", "id",
                            status=2).stderr


def test_environment(shared_cluster):
    out = shared_cluster.ctl("exec", "-N", "-e", "A=b c", "--cwd", "/tmp",
                             "w1", 'echo "$MUSTER_NODE|$MUSTER_ROLES|$A|"'
                             '$(pwd)').stdout
    assert out == "w1|worker_http|b c|/tmp\n"
    assert "NAME=VALUE" in shared_cluster.ctl("exec", "-e", "=x", "w1", "id",
                                              status=2).stderr


@pytest.mark.parametrize("args, status, says", [
    (["w9", "id"], 3, "no such node w9; did you mean w"),
    (["@nosuch", "id"], 3, "nosuch"),
    (["-r", "worker_htp", "id"], 3, "did you mean worker_http?"),
    (["w1", "-x", "w9", "id"], 3, "w9"),
    (["w1!w9", "id"], 3, "w9"),
    (["w1", "-x", "w1", "id"], 3, "no node is left"),
    (["-r", "storage", "id"], 3, "no node to address has the role storage"),
    (["", "id"], 3, "no node"),
    (["w[1-", "id"], 2, ""),
    (["w[3-1]", "id"], 2, ""),
    (["w1"], 2, "what should run there?"),
    ([], 2, "usage: clusterctl exec"),
    (["-r", "worker_http"], 2, ""),
    (["--timout", "3", "w1", "id"], 2, "did you mean --timeout?"),
    (["--fanout", "0", "w1", "id"], 2, "--fanout"),
    (["--batch", "0", "w1", "id"], 2, "--batch"),
    (["--max-fail", "x", "w1", "id"], 2, "--max-fail"),
    (["-l", "x" * 512, "w1", "id"], 2, "--user is too long"),  # F9
    (["-l", b"\xff", "w1", "id"], 2, "--user is not UTF-8"),
    (["-l", "", "w1", "id"], 2, "--user is empty"),
    (["-l", "nosuch", "w1", "id"], 1, "no user nosuch"),
    (["-C", b"/tmp/\xff", "w1", "id"], 2, "--cwd is not UTF-8"),
    (["-C", "tmp", "w1", "id"], 2, "--cwd tmp is not absolute"),
    (["-C", "", "w1", "id"], 2, "--cwd is empty"),
    (["-e", "A B=c", "w1", "id"], 2, "--env takes NAME=VALUE, not 'A B=c'"),
    (["w1", b"echo \xff"], 2, "not UTF-8"),
])
def test_refused(shared_cluster, args, status, says):
    r = shared_cluster.ctl("exec", *args, status=status)
    assert says in r.stderr and r.stdout == ""
    assert r.stderr.startswith("clusterctl: ")


def test_targets(shared_cluster):
    def chosen(*args):
        r = shared_cluster.ctl("--json", "exec", "--dry-run", *args, "id")
        return " ".join(r.json["nodes"])
    assert chosen("w[1-2]") == "w1 w2"
    assert chosen("-n", "w2,w1", "--nodes", "w3") == "w1 w2 w3"
    assert chosen("--nodes", "@worker_http!w2") == "w1 w3"
    assert chosen("-a") == "m1 w1 w2 w3"
    assert chosen("-A") == "m1 w1 w2 w3"
    assert chosen("-a", "-x", "w*") == "m1"
    assert chosen("-r", "master", "-r", "worker_http", "-x", "w1") == \
        "m1 w2 w3"
    assert chosen(shared_cluster["w2"].address) == "w2"


def test_dash_n(shared_cluster):
    """-n takes a set until a target is known, then closes standard input;
    a line where it looks like both is refused."""
    ctl = shared_cluster.ctl
    assert ctl("exec", "-n", "w1", "cat", stdin="x").stdout == "w1: x\n"
    assert ctl("exec", "-n", "w1", "-n", "cat", stdin="x").stdout == ""
    assert ctl("exec", "w1", "-n", "cat", stdin="x").stdout == ""
    assert ctl("exec", "w1", "-nN", "cat", stdin="x").stdout == ""
    assert "say --nodes w2 or --no-stdin" in \
        ctl("exec", "-r", "worker_http", "-n", "w2", "id", status=2).stderr
    assert ctl("exec", "-r", "worker_http", "--no-stdin", "cat",
               stdin="x").stdout == ""


def test_dry_run_contacts_nobody(shared_cluster):
    r = shared_cluster.ctl("exec", "--dry-run", "w[1-3]", "rm", "-rf", "a b")
    assert r.stdout == "would run on w[1-3] (3): rm -rf 'a b'\n"


def test_unreachable_and_the_rest(cluster3):
    cluster3["w2"].stop()
    r = cluster3.ctl("exec", "-r", "worker_http", "echo hi", status=4)
    assert sorted(r.lines) == ["w1: hi", "w3: hi"]
    assert r.stderr == ("clusterctl: w2: not delivered: unreachable: "
                        "cannot connect: Connection refused\n")
    # The worst class counts; a failed command is less than no answer.
    cluster3.ctl("exec", "-r", "worker_http", "false", status=4)
    # -S says the largest remote status, but never 0 when one is missing.
    cluster3.ctl("exec", "-S", "-r", "worker_http", "exit 9", status=9)
    cluster3.ctl("exec", "-S", "-r", "worker_http", "true", status=4)
    r = cluster3.ctl("--json", "exec", "-r", "worker_http", "true", status=4)
    classes = {o["node"]: o["class"] for o in r.json_lines}
    assert classes == {"w1": "ok", "w2": "unreachable", "w3": "ok"}


def test_lost_is_not_unreachable(cluster3):
    """An agent that dies under a command: delivered, result unknown."""
    p = cluster3.ctl_start("--json", "exec", "-r", "worker_http",
                           "echo up; test $MUSTER_NODE != w2 || exec sleep 300")
    children = f"/proc/{cluster3['w2'].pid}/task/{cluster3['w2'].pid}/children"
    wait_for(lambda: open(children).read().strip(), what="the command on w2")
    cluster3["w2"].kill()
    out, err = p.communicate(timeout=60)
    assert p.returncode == 4
    by_node = {o["node"]: o for o in map(json.loads, out.splitlines())}
    assert by_node["w2"]["class"] == "lost"
    assert by_node["w2"]["exit"] is None
    assert by_node["w1"]["class"] == "ok"
    assert b"w2: delivered, result unknown" in err


def test_nodes_without_orders(cluster3):
    ctl = cluster3.ctl
    ctl("node", "maintenance", "on", "w2")
    ctl("node", "add", "db1", "10.9.9.9", "--role", "worker_http")
    r = ctl("exec", "-r", "worker_http", "echo hi")
    assert sorted(r.lines) == ["w1: hi", "w3: hi"]
    assert "left out: w2 (1): in maintenance" in r.stderr
    assert "left out: db1 (1): no agent there" in r.stderr
    # -A takes those in maintenance too; who is named is meant.
    assert len(ctl("exec", "-A", "-r", "worker_http", "echo hi").lines) == 3
    assert ctl("exec", "w2", "echo hi").stdout == "w2: hi\n"
    assert "it has no agent" in ctl("exec", "db1", "id", status=4).stderr


def test_budget(cluster3):
    ctl = cluster3.ctl
    # D4: fail fast.
    r = ctl("exec", "--serial", "-k", "-r", "worker_http", "echo $MUSTER_NODE;"
            "false", status=6)
    assert r.lines == ["w1: w1"]
    assert "w[2-3] (2): not started" in r.stderr
    ctl("exec", "--serial", "--max-fail", "1", "-r", "worker_http", "false",
        status=6)
    r = ctl("exec", "--batch", "1", "--max-fail", "2", "-r", "worker_http",
            "echo $MUSTER_NODE; test $MUSTER_NODE = w1", status=1)
    assert len(r.lines) == 3
    # More than a third has failed once two of three have.
    r = ctl("exec", "--serial", "--max-fail", "34%", "-r", "worker_http",
            "false", status=6)
    assert "w3: not started" in r.stderr
    # Unreachable ones count.
    cluster3["w1"].stop()
    r = ctl("exec", "--serial", "--max-fail", "0", "-r", "worker_http",
            "true", status=6)
    assert "w1: not delivered" in r.stderr
    assert "w[2-3] (2): not started" in r.stderr


def test_serial_keeps_order_and_batch_bounds(shared_cluster):
    command = ("echo start $MUSTER_NODE >> {0}; sleep 0.05; "
               "echo end $MUSTER_NODE >> {0}")
    log = shared_cluster.tmp / "order"
    shared_cluster.ctl("exec", "--serial", "-r", "worker_http",
                       command.format(log))
    assert log.read_text().split("\n")[:-1] == [
        f"{what} w{i}" for i in (1, 2, 3) for what in ("start", "end")]
    log.unlink()
    shared_cluster.ctl("exec", "--batch", "34%", "-r", "worker_http",
                       command.format(log))
    running = 0
    for line in log.read_text().splitlines():
        running += 1 if line.startswith("start") else -1
        assert running <= 2


def test_fanout_beyond_the_limit_of_files(shared_cluster):
    """F7: a clear error that names the limit, and nothing begun."""
    r = shared_cluster.ctl("exec", "-a", "true")
    argv = shared_cluster.ctl_argv("exec", "-a", "-o",
                                   shared_cluster.tmp / "many", "true")
    from muster import run
    r = run("/bin/sh", "-c", 'ulimit -n 34; exec "$@"', "sh", *argv, status=8)
    assert "the limit here is 34" in r.stderr and "--fanout" in r.stderr
    run("/bin/sh", "-c", 'ulimit -n 40; exec "$@" --fanout 2 -a true', "sh",
        *shared_cluster.ctl_argv("exec"))


def test_silent_peer_times_out(cluster3):
    """An address where nobody answers is given up after --connect-timeout."""
    cluster3["w1"].proc.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    r = cluster3.ctl("exec", "--connect-timeout", "300ms", "w1", "true",
                     status=4)
    assert time.monotonic() - began < 10
    assert "w1: not delivered: unreachable" in r.stderr
    os.kill(cluster3["w1"].pid, signal.SIGCONT)


def test_audit(cluster3):
    cluster3.ctl("exec", "-e", "TOKEN=topsecret", "w[1-2]",
                 "exit ${MUSTER_NODE#w}", status=1)
    lines = [json.loads(line) for line in
             (cluster3.master.state / "audit-operator.log").open()]
    order = [o for o in lines if o.get("event") == "order"][-1]
    result = [o for o in lines if o.get("event") == "result"][-1]
    assert order["verb"] == "exec" and order["nodes"] == "w[1-2]"
    assert order["operator"] == "admin" and "host" in order["from"]
    assert "TOKEN=***" in order["typed"]
    assert result["id"] == order["id"] and result["exit"] == 1
    assert result["classes"] == {"failed": "w[1-2]"}
    for log in cluster3.tmp.glob("*/audit-*.log"):
        assert "topsecret" not in log.read_text()


def test_denied(cluster3, tmp_path):
    """A grant for one role holds there only; a right that is lost ends what
    runs, and is not mistaken for an order that never arrived."""
    import muster
    mine = tmp_path / "mine"
    line = cluster3.ctl("operator", "add", "bob", "--grant",
                        "exec:worker_http").stdout
    cluster3.ctl("operator", "join", muster.TOKEN.search(line).group(),
                 state=mine)
    r = cluster3.ctl("exec", "-a", "echo hi", state=mine, status=7)
    assert sorted(r.lines) == ["w1: hi", "w2: hi", "w3: hi"]
    assert "m1: not delivered: denied: bob has no grant for exec" in r.stderr
    assert "not delivered: denied" in cluster3.ctl(
        "push", "w1", "/etc/hostname", tmp_path / "x", state=mine,
        status=7).stderr
    p = cluster3.ctl_start("exec", "w[1-3]", "echo up; exec sleep 300",
                           state=mine)
    for _ in range(3):
        assert p.stdout.readline().endswith(b": up\n")
    cluster3.ctl("operator", "revoke", "bob")
    _, err = p.communicate(timeout=60)
    assert p.returncode == 7
    assert (b"w[1-3] (3): delivered, then ended: denied: the certificate of "
            b"bob is revoked") in err
    r = cluster3.ctl("exec", "w1", "id", state=mine, status=7)
    assert "not delivered: denied: the certificate of bob is revoked" in \
        r.stderr


def test_timeout_of_the_settings(cluster3):
    cluster3.ctl("set", "exec.timeout", "1s")
    r = cluster3.ctl("exec", "w1", "sleep 300", status=5)
    assert "w1: timed out: ended there after 1" in r.stderr
    cluster3.ctl("exec", "-T", "0", "w1", "sleep 1.2")


def test_an_order_that_cannot_be_noted_is_not_given(cluster3, tmp_path):
    """A full or read-only disk: one clear error, nobody contacted."""
    import muster
    line = cluster3.ctl("operator", "add", "bob", "--grant", "*").stdout
    with muster.tmpfs(tmp_path / "small") as small:
        mine = small / "mine"
        cluster3.ctl("operator", "join", muster.TOKEN.search(line).group(),
                     state=mine)
        cluster3.ctl("exec", "w1", "true", state=mine)
        mark = tmp_path / "mark"
        muster.remount(small, "ro")
        r = cluster3.ctl("exec", "w1", f"touch {mark}", state=mine, status=8)
        assert "the order was not given: " in r.stderr
        assert "audit-operator.log" in r.stderr
        muster.remount(small, "rw")
        muster.fill(small)
        r = cluster3.ctl("exec", "w1", f"touch {mark}", state=mine,
                         status=(0, 8))
        if r.status == 8:
            assert "the order was not given: " in r.stderr
            assert not mark.exists()
