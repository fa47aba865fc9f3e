"""The completion scripts, run by the shells they are for."""

import re
import shutil
import subprocess

import pytest

import muster


@pytest.fixture(scope="module")
def master(quiet_master):
    ctl = quiet_master.ctl
    ctl("node", "add", "web1", "10.0.0.1", "--role", "worker_http")
    ctl("node", "add", "web2", "10.0.0.2", "--role", "worker_http")
    ctl("site", "add", "a.example")
    return quiet_master


def complete(master, *words):
    """What bash offers behind these words (the last one is begun)."""
    script = r'''
        source <("$1" completion bash)
        program=$1; shift
        COMP_WORDS=("$program" "$@") COMP_CWORD=$#
        _clusterctl
        printf '%s\n' "${COMPREPLY[@]}"
    '''
    p = subprocess.run(
        ["bash", "-c", script, "bash", muster.program("clusterctl"), *words],
        capture_output=True, text=True, timeout=30,
        env=muster.clean_env({"MUSTER_STATE": str(master.master.state)}))
    assert p.stderr == "", p.stderr
    return p.stdout.split()


@pytest.mark.parametrize("words, offered", [
    (["enr"], ["enroll"]),
    (["node", "dr"], ["drain"]),
    (["node", "show", "we"], ["web1", "web2"]),
    (["role", "set", "worker_http", "--proxy-p"], ["--proxy-protocol"]),
    (["role", "set", "worker_http", "--proxy-protocol", ""],
     ["off", "v1", "v2"]),
    (["role", "set", "worker_http", "--proxy-protocol", "v"], ["v1", "v2"]),
    (["node", "drain", "web1,we"], ["web1,web1", "web1,web2"]),
    (["node", "role", ""], ["add", "del", "m1", "web1", "web2", "master",
                            "storage", "worker_http", "worker_mysql"]),
    (["nodes", "--ro"], ["--role"]),
    (["nodes", "-r", "worker_h"], ["worker_http"]),
    (["nodes", "--role", "st"], ["storage"]),
    (["enroll", "x", "--role", "ma"], ["master"]),
    (["site", "show", ""], ["a.example"]),
    (["role", "set", "storage", "--queue-"], ["--queue-timeout"]),
    (["set", "proxy.work"], ["proxy.workers"]),
    (["help", "compl"], ["completion"]),
    (["completion", ""], ["bash", "zsh"]),
    (["operator", "revoke", "a"], ["admin"]),
    (["--state", "/nonexistent", "nodes", ""], []),
    (["get", "--a"], ["--all"]),
    (["no-such-command", ""], []),
])
def test_bash(master, words, offered):
    assert sorted(complete(master, *words)) == sorted(offered)


def test_every_command_and_option_is_there(master):
    """The script comes from the tables: help and completion agree."""
    script = master.ctl("completion", "bash").stdout
    text = master.ctl("help").stdout
    commands = [line[2:22].strip() for line in text.splitlines()
                if line.startswith("  ") and not line.startswith("   ")]
    assert len(commands) > 40
    for c in commands:
        assert f"\t'{c}')" in script, c


def test_what_commands_say_of_themselves_fits_a_terminal(master):
    for name in re.findall(r"^  (\S+(?: \S+)?)  ", master.ctl("help").stdout,
                           re.M):
        text = master.ctl("help", *name.split()).stdout
        about = text.split("\n\n", 2)[2].partition("\nEverywhere\n")[0]
        assert all(len(line) <= 80 for line in about.split("\n")), about


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_syntax(master, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = master.ctl("completion", shell).stdout
    muster.run(shell, "-n", stdin=script)


def test_zsh(master):
    """The function itself, with the two builtins of the completion system
    replaced by ones that show what they are given."""
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    script = r'''
        compdef() { }
        compadd() { print -r -- "$*" }
        source <("$1" completion zsh)
        words=("$@") CURRENT=$#
        _clusterctl
    '''
    env = muster.clean_env({"MUSTER_STATE": str(master.master.state)})

    def offered(*words):
        p = subprocess.run(
            ["zsh", "-f", "-c", script, "zsh", muster.program("clusterctl"),
             *words], capture_output=True, text=True, timeout=30, env=env)
        assert p.stderr == ""
        return p.stdout.strip()
    assert offered("node", "show", "we") == "-p  -- m1 web1 web2"
    assert offered("node", "drain", "web1,w") == "-p web1, -- m1 web1 web2"
    assert "--queue-timeout" in offered("role", "set", "storage", "--q")
    assert "enroll" in offered("enr").split()
