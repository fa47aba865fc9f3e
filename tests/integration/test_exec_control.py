"""exec: standard input, Ctrl-C, terminals (exec_cases.md, section F)."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from muster import run, wait_for

WORKERS = ("-r", "worker_http")


def sleepers(tag):
    """Processes whose command line has the tag in it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"sleep" and words[1] == str(tag).encode():
            found.append(int(pid))
    return found


@pytest.fixture
def tag():
    """A number of seconds that no other test sleeps."""
    tag.n = getattr(tag, "n", 0) + 1
    return f"{90000 + os.getpid() % 1000}.{tag.n:03}{time.time_ns() % 1000}"


def start(cluster, tag, command="sleep {}", n=3, options=(), **popen):
    p = cluster.ctl_start("exec", *WORKERS, *options, command.format(tag),
                          **popen)
    wait_for(lambda: len(sleepers(tag)) >= n, what="the commands")
    return p


def gone(tag):
    wait_for(lambda: not sleepers(tag), what="the end of all commands")


def test_stdin_goes_to_every_node(shared_cluster):
    # F1
    r = shared_cluster.ctl("exec", "-g", *WORKERS, "cat", stdin="foo\n")
    assert r.stdout.endswith("w[1-3] (3)\n---------------\nfoo\n")
    many = "".join(f"line {i}\n" for i in range(400000))  # several windows
    r = shared_cluster.ctl("exec", "-g", *WORKERS, "md5sum", stdin=many)
    assert "w[1-3] (3)" in r.stdout
    r = shared_cluster.ctl("exec", "-N", "w1", "cat", stdin=many)
    assert r.stdout == many


def test_stdin_that_nobody_reads(shared_cluster):
    r = shared_cluster.ctl("exec", *WORKERS, "true", stdin="x" * 3000000)
    assert r.stderr == ""


def test_closed_stdin_is_left_alone(shared_cluster):
    """F3: with -n the node sees the end at once, and nothing is read."""
    argv = shared_cluster.ctl_argv("exec", *WORKERS, "-n", "cat")
    r = run("/bin/sh", "-c", '"$@"; cat', "sh", *argv, stdin="mine\n")
    assert r.stdout == "mine\n"


def test_stdin_of_a_loop(shared_cluster):
    """Never read by surprise: a loop over a file sees each of its lines,
    and a command that reads takes what it reads."""
    lines = shared_cluster.tmp / "lines"
    lines.write_text("one\ntwo\nthree\n")
    script = 'while read l; do echo "$l"; "$@"; done'

    def loop(*command):
        argv = shared_cluster.ctl_argv("exec", "-N", "w1", *command)
        with open(lines, "rb") as f:
            return subprocess.run(["/bin/sh", "-c", script, "sh", *argv],
                                  stdin=f, capture_output=True, text=True,
                                  timeout=60).stdout.split()
    assert loop("true") == ["one", "two", "three"]
    assert loop("read x; echo got-$x") == ["one", "got-two", "three", "got-"]


def test_stdin_lines_arrive_at_once(shared_cluster):
    """F5: what was written first is there first, before the rest is known."""
    p = shared_cluster.ctl_start("exec", "-N", "w1", "read a; echo $a; cat",
                                 stdin=subprocess.PIPE)
    p.stdin.write(b"password\n")
    p.stdin.flush()
    assert p.stdout.readline() == b"password\n"
    out, _ = p.communicate(b"the rest\n", timeout=60)
    assert out == b"the rest\n" and p.returncode == 0


def test_open_stdin_does_not_hold(shared_cluster):
    """A pipe that never ends does not outlive the command."""
    p = shared_cluster.ctl_start("exec", *WORKERS, "true",
                                 stdin=subprocess.PIPE)
    assert p.wait(timeout=60) == 0
    p.communicate()


# ---- ends (D11, F10) ------------------------------------------------------

def test_ctrl_c_once_shows_twice_ends(shared_cluster, tag):
    p = start(shared_cluster, tag)
    p.send_signal(signal.SIGINT)
    line = p.stderr.readline().decode()
    assert line.startswith("clusterctl: still running: w[1-3] (3)")
    assert len(sleepers(tag)) == 3 and p.poll() is None
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=60)
    assert p.returncode == 130
    assert b"w[1-3] (3): interrupted" in err
    gone(tag)


def test_term_is_followed_by_kill(shared_cluster, tag):
    """A command that ignores TERM, and its children, end all the same."""
    p = start(shared_cluster, tag,
              "trap '' TERM; sleep {0} & sleep {0}; sleep {0}", n=6)
    p.send_signal(signal.SIGTERM)
    assert p.wait(timeout=60) == 130
    p.communicate()
    gone(tag)


def test_ctrl_c_skips_who_has_not_begun(shared_cluster, tag):
    p = start(shared_cluster, tag, n=1, options=["--serial"])
    p.send_signal(signal.SIGINT)
    assert b"not started: 2" in p.stderr.readline()
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=60)
    assert p.returncode == 130
    assert b"w1: interrupted" in err and b"w[2-3] (2): not started" in err
    gone(tag)


@pytest.mark.parametrize("fill", [False, True])
def test_killed_client(shared_cluster, tag, fill):
    """The client vanishes, also with its input stuck: no orphan."""
    feed = subprocess.Popen(["yes"], stdout=subprocess.PIPE) if fill else None
    p = start(shared_cluster, tag,
              stdin=feed.stdout if fill else subprocess.DEVNULL)
    p.kill()
    p.communicate()
    gone(tag)
    if fill:
        feed.stdout.close()
        feed.wait()


def test_stuck_input_does_not_hold_ctrl_c(shared_cluster, tag):
    """TERM gets through to commands that read none of a full stream."""
    feed = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
    p = start(shared_cluster, tag, stdin=feed.stdout,
              command="trap 'echo got TERM; exit' TERM; sleep {} & wait")
    feed.stdout.close()
    p.send_signal(signal.SIGTERM)
    out, _ = p.communicate(timeout=60)
    assert p.returncode == 130
    assert sorted(out.splitlines()) == [
        b"w1: got TERM", b"w2: got TERM", b"w3: got TERM"]
    feed.wait()
    gone(tag)


def test_timeout_ends_the_whole_group(shared_cluster, tag):
    shared_cluster.ctl("exec", *WORKERS, "-T", "500ms",
                       f"sleep {tag} & sleep {tag}", status=5)
    gone(tag)


def test_keep(shared_cluster, tag):
    """--on-disconnect keep: the one way to leave something running."""
    p = start(shared_cluster, tag, options=["--on-disconnect", "keep"])
    p.kill()
    p.communicate()
    shared_cluster.ctl("ping", "-a")
    assert len(sleepers(tag)) == 3
    for pid in sleepers(tag):
        os.kill(pid, signal.SIGKILL)
    gone(tag)


# ---- --pty ----------------------------------------------------------------

def test_pty(shared_cluster):
    t = shared_cluster.terminal("exec", "-t", "w1", "stty size; tty -s && "
                                "read a && echo got=$a; exit 3",
                                rows=33, cols=101)
    t.expect("33 101")
    t.type("hello\r")
    t.expect("got=hello")
    assert t.status() == 1
    assert "exited with status 3" in t.text


def test_pty_follows_the_size_and_the_keys(shared_cluster):
    import fcntl
    import struct
    import termios
    t = shared_cluster.terminal(
        "exec", "-t", "w1",
        "trap 'stty size; echo resized' WINCH; trap 'echo INT; exit 0' INT; "
        "echo ready; while :; do sleep 0.1; done")
    t.expect("ready")
    fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    t.expect("40 120")
    t.type("\x03")  # a key of the command's, not ours
    t.expect("INT")
    assert t.status() == 0


def test_pty_gives_the_terminal_back(shared_cluster):
    import termios
    t = shared_cluster.terminal("exec", "-t", "w1", "echo ready; read x")
    t.expect("ready")
    wait_for(lambda: not termios.tcgetattr(t.fd)[3] & termios.ECHO,
             what="raw keys")
    t.proc.send_signal(signal.SIGTERM)
    assert t.status() == 130
    assert termios.tcgetattr(t.fd) == t.before


def test_pty_is_for_one(shared_cluster):
    assert "--pty is for one node" in shared_cluster.ctl(
        "exec", "-t", *WORKERS, "top", status=2).stderr
    assert "needs a terminal" in shared_cluster.ctl(
        "exec", "-t", "w1", "top", status=2).stderr
