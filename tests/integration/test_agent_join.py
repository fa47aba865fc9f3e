"""nodeagent join: its checks, its refusals, and that it can be cut off."""

import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

import muster
from agent_client import answer
from muster import run


def agent(*args, **more):
    return run(muster.program("nodeagent"), *args, **more)


def line(cluster, token, name, *options):
    """The arguments of a join, and the state directory."""
    state = cluster.tmp / name
    return ["--state", state, "join", token, "--no-start", "--address",
            f"{cluster.net.address()}:7400", *options]


@pytest.mark.parametrize("args, status, text", [
    ([], 2, "which command?"),
    (["jion"], 2, "unknown command jion"),
    (["join"], 2, "join needs a token"),
    (["join", "x", "y"], 2, "join takes no more words"),
    (["join", "x", "--listen", "1"], 2, "--listen is an option of run"),
    (["run", "--nonsense"], 2, "unknown option --nonsense"),
    (["run", "--ready-fd"], 2, "--ready-fd needs a value"),
    (["run", "--ready-fd", "x"], 2, "--ready-fd"),
    (["join", "muster1.abc"], 2, "token"),
    (["join", "hello"], 2, "token"),
])
def test_usage(args, status, text, tmp_path):
    got = agent("--state", tmp_path / "s", *args, status=status)
    assert text in got.stderr and got.stderr.startswith("nodeagent: ")


def test_help_and_version():
    assert "join TOKEN|-" in agent("help").stdout
    assert agent("--help").stdout == agent("help").stdout
    assert re.fullmatch(r"nodeagent \d+\.\d+\.\d+\n", agent("version").stdout)


def test_it_says_what_it_checks(cluster):
    token = cluster.token("--role", "storage")
    got = agent(*line(cluster, token, "n1"))
    for word in ("token: good until", "state directory", "name: ",
                 "port 7400 is free", "answers", "clock: "):
        assert f"  ok    {word}" in got.stdout or word in got.stdout
    assert "FAIL" not in got.stdout
    assert "(roles: storage)" in got.stdout
    assert f"next: nodeagent --state {cluster.tmp}/n1 run" in got.stdout


def test_all_that_fails_is_told_at_once(cluster):
    token = cluster.token("--role", "storage")
    taken = socket.create_server((cluster.net.address(), 7400))
    got = agent("--state", cluster.tmp / "n", "join", token, "--name", "Bad!",
                "--address", taken.getsockname()[0], status=2)
    taken.close()
    assert got.stdout.count("FAIL") == 2
    assert "ss -ltnp" in got.stdout and "node name" in got.stdout
    assert "2 checks failed (above); nothing was changed" in got.stderr
    assert not (cluster.tmp / "n" / "node.key").exists()
    agent(*line(cluster, token, "n"))  # the token is unused


def test_no_master_answers(cluster):
    token = cluster.token("--role", "storage")
    cluster.master.stop()
    got = agent(*line(cluster, token, "n"), status=4)
    assert "Connection refused" in got.stdout
    assert "is nodeagent running there" in got.stdout


def test_a_state_directory_of_others(cluster, tmp_path):
    token = cluster.token("--role", "storage")
    bad = tmp_path / "open"
    bad.mkdir()
    bad.chmod(0o777)
    got = agent("--state", bad, "join", token, status=8)
    assert "chmod go-w" in got.stdout


def test_an_operators_token(cluster):
    out = cluster.ctl("operator", "add", "o", "--grant", "exec").stdout
    token = muster.TOKEN.search(out).group()
    got = agent(*line(cluster, token, "n"), status=2)
    assert "clusterctl operator join" in got.stdout


def test_a_clock_that_is_wrong(cluster):
    token = cluster.token("--role", "storage", "--ttl", "30d")
    for shift, side in (("+2h", "2h ahead of"), ("-2h", "2h behind")):
        got = agent(*line(cluster, token, "n"), status=(8,),
                    env=muster.faketime(shift))
        assert re.search(rf"clock is (2h0m|1h59m) {side[3:]}", got.stdout)
        assert "timedatectl" in got.stdout
    agent(*line(cluster, token, "n"))


def test_the_token_by_standard_input(cluster):
    token = cluster.token("--role", "storage")
    args = line(cluster, token, "n")
    args[args.index(token)] = "-"
    assert "joined as" in agent(*args, stdin=token + "\n").stdout


def test_the_same_line_again(cluster):
    token = cluster.token("n1", "--role", "storage")
    args = line(cluster, token, "n1")
    first = agent(*args).stdout
    key = (cluster.tmp / "n1" / "node.key").read_bytes()
    assert "joined as n1" in first
    assert "joined as n1" in agent(*args).stdout
    assert (cluster.tmp / "n1" / "node.key").read_bytes() == key


def test_a_used_token_serves_nobody_else(cluster):
    token = cluster.token("--role", "storage")
    agent(*line(cluster, token, "n1", "--name", "n1"))
    got = agent(*line(cluster, token, "n2", "--name", "n2"), status=7)
    assert "used" in got.stderr
    cluster.ctl("node", "remove", "n1")
    agent(*line(cluster, token, "n3", "--name", "n3"), status=7)


def test_a_known_name_with_another_key(cluster):
    cluster.join(cluster.token("--role", "storage"), "n1", start=False)
    token = cluster.token("--role", "storage")
    got = agent(*line(cluster, token, "other", "--name", "n1"), status=2)
    assert "n1" in got.stderr


def test_a_node_comes_back_with_a_new_token(cluster):
    node = cluster.join(cluster.token("--role", "storage"), "n1",
                        start=False)
    cluster.ctl("node", "remove", "n1")
    args = ["--state", node.state, "join",
            cluster.token("--role", "worker_http"), "--name", "n1",
            "--address", node.address, "--no-start"]
    assert "(roles: worker_http)" in agent(*args).stdout
    node.start()
    assert answer(cluster, "n1", {"verb": "ping"})


def test_approval(cluster):
    token = cluster.token("--role", "storage", "--approve")
    joiner = subprocess.Popen(
        [muster.program("nodeagent"), *map(str, line(
            cluster, token, "n1", "--name", "n1"))],
        stdout=subprocess.PIPE, text=True, env=muster.clean_env())
    try:
        text = ""
        while "clusterctl approve n1" not in text:
            text += joiner.stdout.readline()
        assert token.encode() not in Path(
            f"/proc/{joiner.pid}/cmdline").read_bytes()
        [print_here] = re.findall(r"key (\S{19})", text)
        assert print_here in cluster.ctl("nodes", "--pending").stdout
        cluster.ctl("approve", "n1")
        assert "joined as n1" in joiner.communicate(timeout=muster.PATIENCE_S)[0]
        assert joiner.returncode == 0
    finally:
        joiner.kill()
        joiner.wait()


def test_cut_off_at_any_instant(cluster, rng):
    """kill -9 of the join: the same line finishes the job."""
    for i in range(12):
        token = cluster.token(f"n{i}", "--role", "storage")
        args = line(cluster, token, f"n{i}")
        for _ in range(4):
            muster.run_killed(muster.program("nodeagent"), *args,
                              after_s=rng.random() * 0.06)
        assert f"joined as n{i} " in agent(*args).stdout
    cluster.ctl("registry", "check")
    assert len(cluster.ctl("nodes").lines) == 13


def test_a_master_cut_off_while_joins_run(cluster, rng):
    """kill -9 of the master: the registry is sound, joins finish later."""
    master = cluster.master
    for i in range(6):
        token = cluster.token(f"n{i}", "--role", "storage")
        args = line(cluster, token, f"n{i}")
        joiner = subprocess.Popen(
            [muster.program("nodeagent"), *map(str, args)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=muster.clean_env())
        with pytest.raises(subprocess.TimeoutExpired):
            joiner.wait(timeout=rng.random() * 0.05)
            raise subprocess.TimeoutExpired("join", 0)
        master.kill()
        joiner.wait()
        master.start()
        cluster.ctl("registry", "check")
        assert f"joined as n{i} " in agent(*args).stdout


def test_run_refuses_what_is_open_to_others(cluster):
    node = cluster.join(cluster.token("--role", "storage"), "n1",
                        start=False)
    key = node.state / "node.key"
    for path, mode, remedy in ((key, 0o640, "chmod 600"),
                               (node.state, 0o770, "chmod go-w")):
        before = path.stat().st_mode
        path.chmod(mode)
        got = agent("--state", node.state, "run", status=8)
        assert remedy in got.stderr
        path.chmod(before & 0o7777)
    node.start()


def test_run_says_why_it_cannot(cluster, tmp_path):
    got = agent("--state", tmp_path / "none", "run", status=8)
    assert "--state" in got.stderr
    (tmp_path / "empty").mkdir(mode=0o700)
    got = agent("--state", tmp_path / "empty", "run", status=8)
    assert "join" in got.stderr
    got = agent("--state", cluster.master.state, "run", status=8)
    assert f"already running as pid {cluster.master.pid}" in got.stderr
    node = cluster.join(cluster.token("--role", "storage"), "n1",
                        start=False)
    with socket.create_server((node.address, 7400)):
        got = agent("--state", node.state, "run", status=8)
        assert "is taken by another program" in got.stderr


def test_status(cluster):
    got = agent("--state", cluster.master.state, "status").stdout
    assert re.search(r"^node +m1$", got, re.M)
    assert re.search(r"^authority +open$", got, re.M)
    cluster.master.stop()
    got = agent("--state", cluster.master.state, "status", status=4)
    assert "no agent runs" in got.stderr


def test_ctrl_c_stops_it(cluster):
    cluster.master.proc.send_signal(signal.SIGINT)
    assert cluster.master.proc.wait(timeout=muster.PATIENCE_S) == 0
    assert "stopping (SIGINT)" in cluster.master.text


def test_listen_elsewhere(cluster):
    node = cluster.join(cluster.token("--role", "storage"), "n1",
                        start=False)
    other = cluster.net.address()
    for listen, at in ((f"{other}:7411", f"{other}:7411"),
                       ("7412", f"{node.address}:7412"),
                       ("0", node.address)):
        node.argv[4:] = ["--listen", listen]
        node.start()
        ip, port = re.findall(r"serving on (\S+):(\d+)", node.text)[-1]
        assert f"{ip}:{port}".startswith(at)
        socket.create_connection((ip, int(port))).close()
        node.stop()


def test_an_address_that_no_interface_has(cluster):
    """Behind a NAT, or the network is not up yet: every address then."""
    with socket.create_server(("", 0)) as s:
        port = s.getsockname()[1]
    token = cluster.token("n1", "--role", "storage")
    node = cluster.daemon("n1", muster.program("nodeagent"), "--state",
                          cluster.tmp / "n1", "run", start=False)
    agent("--state", cluster.tmp / "n1", "join", token, "--no-start",
          "--address", f"192.0.2.1:{port}")
    node.expect_log("no interface has the address 192.0.2.1")
    node.start()
    socket.create_connection((cluster.net.address(), port)).close()


def test_it_follows_its_registered_address(cluster):
    node = cluster.join(cluster.token("--role", "storage"), "n1")
    for at in (f"{node.address}:7433", f"{cluster.net.address()}:7400"):
        cluster.ctl("node", "set", "n1", "--address", at)
        # Nobody can tell it where it is not yet; it asks within a minute.
        node.proc.send_signal(signal.SIGHUP)
        muster.wait_for(lambda: f"serving on {at} from now on" in node.text)
        assert answer(cluster, "n1", {"verb": "ping"})


def test_a_master_does_not_join(cluster):
    token = cluster.token("--role", "storage")
    before = (cluster.master.state / "node.cert").read_bytes()
    got = agent("--state", cluster.master.state, "join", token, status=2)
    assert "holds the registry" in got.stdout
    assert (cluster.master.state / "node.cert").read_bytes() == before


def test_a_node_of_another_cluster(cluster, tmp_path):
    (tmp_path / "other").mkdir(mode=0o700)
    other = muster.Cluster(tmp_path / "other")
    try:
        other.init()
        node = other.join(other.token("--role", "storage"), "n1",
                          start=False)
        token = cluster.token("--role", "storage")
        got = agent("--state", node.state, "join", token, "--address",
                    node.address, status=2)
        assert "belongs to a node of the cluster test" in got.stdout
    finally:
        assert other.close() == []
