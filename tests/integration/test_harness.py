"""The harness notices what it promises to notice."""

import sys

import pytest

import muster


def test_orphans_are_found_and_ended():
    muster.run("/bin/sh", "-c", "sleep 300 >/dev/null 2>&1 &")
    left = muster.reap_orphans(grace_s=0.1)
    assert len(left) == 1 and "sleep 300" in left[0]
    assert muster.reap_orphans(grace_s=0) == []


def test_run_insists_on_the_status():
    assert muster.run("/bin/sh", "-c", "cat; exit 3", stdin="x",
                      status=3).stdout == "x"
    with pytest.raises(AssertionError, match="exit status 3"):
        muster.run("/bin/sh", "-c", "exit 3")


def test_run_insists_on_an_end():
    with pytest.raises(AssertionError, match="hangs for"):
        muster.run("sleep", "300", timeout=0.1)


def test_a_daemon_that_fails_to_start_tells_why(tmp_path):
    d = muster.Daemon(tmp_path / "log", "/bin/sh", "-c",
                      "echo cannot listen >&2; exit 8")
    with pytest.raises(AssertionError, match="(?s)cannot listen.*status 8"):
        d.start()
    d.forget()


def test_loud_log_lines_are_found(tmp_path):
    d = muster.Daemon(tmp_path / "log")
    d.log.write_text(
        "2026-11-30T10:00:00.000Z nodeagent[1] info: a warn: b\n"
        "2026-11-30T10:00:00.000Z nodeagent[1] warn: disk is full\n"
        "2026-11-30T10:00:00.000Z nodeagent[1] error: gone\n")
    assert len(d.complaints()) == 2
    d.expect_log("disk is full")
    assert len(d.complaints()) == 1


def test_terminal():
    t = muster.Terminal(sys.executable, "-c",
                        "print(input('name? ')[::-1]); raise SystemExit(4)")
    t.expect("name\\?")
    t.type("abc\n")
    assert t.status() == 4
    assert "cba" in t.text
    t.close()


def test_nets_differ():
    a, b = muster.Net(), muster.Net()
    assert a.prefix != b.prefix
    a.close()
    b.close()
