"""exec: what is shown, and what goes into files (exec_cases.md, E)."""

import base64
import json
import re

import pytest

WORKERS = ("-r", "worker_http")


def test_labels(shared_cluster):
    ctl = shared_cluster.ctl
    # E1
    assert ctl("exec", "w1", "echo ok").stdout == "w1: ok\n"
    assert ctl("exec", "-N", "w1", "echo ok").stdout == "ok\n"
    # A last line without newline gets one with labels; bytes are exact
    # without.
    assert ctl("exec", "w1", "printf ok").stdout == "w1: ok\n"
    assert ctl("exec", "-N", "w1", "printf ok").stdout == "ok"
    # E7: standard error stays standard error.
    r = ctl("exec", "w1", "echo out; echo err >&2")
    assert (r.stdout, r.stderr) == ("w1: out\n", "w1: err\n")


def test_gather(shared_cluster):
    ctl = shared_cluster.ctl
    assert ctl("exec", "-g", *WORKERS, "echo same").stdout == (
        "---------------\nw[1-3] (3)\n---------------\nsame\n")
    # Largest set first, then the lowest node.
    assert ctl("exec", "-g", *WORKERS, "echo $MUSTER_NODE | tr 3 2").stdout \
        == ("---------------\nw[2-3] (2)\n---------------\nw2\n"
            "---------------\nw1\n---------------\nw1\n")
    # E4, E5
    assert ctl("exec", "-L", *WORKERS, "echo ok").stdout == "w[1-3]: ok\n"
    assert ctl("exec", "-Ng", *WORKERS, "echo test").stdout == "test\n"
    # E7: standard error is not folded in.
    r = ctl("exec", "-g", "w1", "echo out; echo err >&2")
    assert "out\n" in r.stdout and r.stderr == "w1: err\n"


def test_diff(shared_cluster):
    ctl = shared_cluster.ctl
    # E13
    r = ctl("exec", "--diff", *WORKERS,
            "test $MUSTER_NODE = w2 && echo BAR || echo bar; echo end")
    assert r.stdout == ("--- w[1,3] (2)\n+++ w2\n@@ -1,2 +1,2 @@\n"
                        "-bar\n+BAR\n end\n")
    # E14
    assert ctl("exec", "--diff", *WORKERS, "echo bar").stdout == ""


def test_json(shared_cluster):
    r = shared_cluster.ctl("--json", "exec", *WORKERS,
                           'echo "a\tb"; echo e >&2; '
                           'exit $((${MUSTER_NODE#w} - 1))', status=1)
    got = {o["node"]: o for o in r.json_lines}
    assert sorted(got) == ["w1", "w2", "w3"]
    assert got["w1"]["class"] == "ok" and got["w1"]["exit"] == 0
    assert got["w3"]["class"] == "failed" and got["w3"]["exit"] == 2
    for o in got.values():
        assert o["stdout"] == "a\tb\n" and o["stderr"] == "e\n"
        assert o["bytes"] == 6 and o["signal"] is None
        assert 0 <= o["seconds"] < 30
    o = shared_cluster.ctl("--json", "exec", "w1", "kill -15 $$",
                           status=1).json
    assert (o["class"], o["exit"], o["signal"]) == ("failed", None, 15)
    # E15: bytes that are no text come as base64.
    o = shared_cluster.ctl("--json", "exec", "w1",
                           r"printf 'a\377\000b'").json
    assert base64.b64decode(o["stdout_base64"]) == b"a\xff\0b"
    assert "stdout" not in o and o["stderr"] == ""


def test_large_output_is_exact(shared_cluster):
    """Beyond what is kept in memory: JSON, files and plain output agree."""
    command = "seq 200000"
    want = "".join(f"{i}\n" for i in range(1, 200001))
    ctl = shared_cluster.ctl
    assert ctl("exec", "-N", "w1", command).stdout == want
    assert ctl("--json", "exec", "w1", command).json["stdout"] == want
    out = shared_cluster.tmp / "large"
    ctl("exec", "-o", out, *WORKERS, command)
    for w in ("w1", "w2", "w3"):
        assert (out / w).read_text() == want


def test_lines_never_mix(shared_cluster):
    """E22: a label on every line, and no two nodes inside one."""
    r = shared_cluster.ctl("exec", *WORKERS, "for i in $(seq 300); do printf "
                           "'%s-%s-' $MUSTER_NODE $i; echo $MUSTER_NODE; "
                           "done")
    seen = dict.fromkeys(("w1", "w2", "w3"), 0)
    for line in r.lines:
        m = re.fullmatch(r"(w\d): (w\d)-(\d+)-(w\d)", line)
        assert m and m[1] == m[2] == m[4], line
        seen[m[1]] += 1
        assert int(m[3]) == seen[m[1]]
    assert set(seen.values()) == {300}


def test_outdir(shared_cluster):
    out, err = shared_cluster.tmp / "out", shared_cluster.tmp / "err"
    r = shared_cluster.ctl(
        "exec", "--outdir", out, "--errdir", err, *WORKERS,
        "echo out $MUSTER_NODE; echo err >&2; test $MUSTER_NODE != w2",
        status=1)
    assert r.stdout == "" and "w2: exited with status 1" in r.stderr
    # E19
    for w in ("w1", "w2", "w3"):
        assert (out / w).read_text() == f"out {w}\n"
        assert (err / w).read_text() == "err\n"
    # E20
    assert (out / "hosts.succeeded").read_text() == "w1\nw3\n"
    assert (out / "hosts.failed").read_text() == "w2\n"
    # What was there is replaced, not added to.
    shared_cluster.ctl("exec", "-o", out, "w1", "echo new")
    assert (out / "w1").read_text() == "new\n"


def test_outdir_that_cannot_be(shared_cluster):
    r = shared_cluster.ctl("exec", "-o", "/proc/nowhere", *WORKERS, "echo hi",
                           status=8)
    assert r.stderr.count("\n") == 1 and "/proc/nowhere" in r.stderr


@pytest.mark.parametrize("options", [["--json"], ["-o", "x"]])
def test_forms_exclude_each_other(shared_cluster, options):
    assert "do not go with" in shared_cluster.ctl(
        "exec", "-g", *options, "w1", "id", status=2).stderr


def test_reader_that_goes_away(shared_cluster):
    """D12: quiet, and the command there ends."""
    p = shared_cluster.ctl_start("exec", *WORKERS, "yes")
    assert p.stdout.readline().endswith(b": y\n")
    p.stdout.close()
    err = p.stderr.read()
    assert p.wait(timeout=60) == -13 and err == b""


def test_terminal_is_protected(shared_cluster):
    """Escapes of a node do not reach the terminal; elsewhere bytes are
    exact."""
    command = r"printf '\033]0;title\007\033[2Jx\n'"
    t = shared_cluster.terminal("exec", "w1", command)
    t.expect("w1: ")
    assert t.status() == 0
    assert "\x1b]0;" not in t.text and "\x1b[2J" not in t.text
    assert shared_cluster.ctl("exec", "-N", "w1", command).raw_stdout == \
        b"\x1b]0;title\x07\x1b[2Jx\n"


def test_progress_only_on_a_terminal(shared_cluster):
    # E21
    t = shared_cluster.terminal("exec", "-n", "w[1-3]", "-n", "sleep 1")
    t.expect(r"0 of 3 ended, 3 running")
    assert t.status() == 0
    t = shared_cluster.terminal("exec", "-q", "w[1-3]", "-n", "sleep 0.5")
    assert t.status() == 0 and "of 3" not in t.text
    r = shared_cluster.ctl("exec", "w[1-3]", "sleep 0.5")
    assert r.stderr == ""


def test_full_disk(shared_cluster):
    """Output that cannot be written is a failure of this machine."""
    with open("/dev/full", "w") as full:
        p = shared_cluster.ctl_start("exec", "w1", "seq 100000", stdout=full)
        err = p.communicate(timeout=60)[1].decode()
    assert p.returncode == 8 and "No space left" in err


def test_json_of_skipped_nodes(shared_cluster):
    r = shared_cluster.ctl("--json", "exec", "--serial", "-k", *WORKERS,
                           "false", status=6)
    assert [(o["node"], o["class"]) for o in r.json_lines] == [
        ("w1", "failed"), ("w2", "skipped"), ("w3", "skipped")]
    assert json.loads(r.lines[2])["seconds"] == 0
