"""Slow clients, and what can go wrong with what is put away for them."""

import os
import signal
import tempfile
import threading
from pathlib import Path

import pytest

import muster
import proxy as px
from test_bodies import pattern, worker
from test_slow_clients import (KINDS, LONG, MB, answer, empty, finish,
                               hurry, make, payload, quick, slow)  # noqa: F401


def test_a_worker_that_dies_takes_its_file_along(make):
    proxy = make({"proxy.workers": "2"}, role=())
    old = {w["pid"] for w in proxy.workers()}
    socks = [slow(proxy, f"/length/{LONG}") for _ in range(16)]
    muster.wait_for(lambda: sum(w["delivering"] for w in proxy.workers())
                    == 16, what="all responses")
    assert len(list((proxy.state / "spool").iterdir())) == 0
    victim = max(proxy.workers(), key=lambda w: w["delivering"])
    proxy.daemon.expect_log("killed by signal|SIGKILL|replacing it")
    os.kill(victim["pid"], signal.SIGKILL)
    muster.wait_for(lambda: len(proxy.workers()) == 2 and
                    {w["pid"] for w in proxy.workers()} != old,
                    what="its successor")
    cut = 0
    for s in socks:
        with s:
            got, how = hurry(s)
        cut += payload(got) != pattern(LONG)
    assert cut == victim["delivering"]
    again = [slow(proxy, f"/length/{LONG}") for _ in range(8)]
    muster.wait_for(lambda: sum(w["delivering"] for w in proxy.workers())
                    == 8, what="the new one to put away, too")
    for s in again:
        finish(s, pattern(LONG))


def test_a_drain_waits_for_them(make):
    """A worker that ends gives its slow clients what it holds."""
    proxy = make()
    s = slow(proxy, f"/length/{LONG}")
    muster.wait_for(lambda: worker(proxy)["delivering"] == 1,
                    what="all of the response")
    muster.run(muster.program("proxyd"), "--state", proxy.state, "upgrade")
    assert px.statuses(quick(proxy)) == [200]
    finish(s, pattern(LONG))
    proxy.adopt()


@pytest.fixture
def sign():
    """A file whose presence makes the disk full, where workers see it."""
    with tempfile.TemporaryDirectory(prefix="muster-") as path:
        os.chmod(path, 0o755)
        yield Path(path) / "full"


@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_that_fails_costs_no_byte(make, tmp_path, sign, kind):
    proxy = make({"proxy.response_buffer": "64M"}, role=(), start=False)
    proxy.daemon.expect_log("cannot be written")
    proxy.daemon.start(env={
        "LD_PRELOAD": str(muster.preload(tmp_path, "full_disk")),
        "FULL_DISK": str(sign)})
    size = 8 * MB
    first = slow(proxy, f"/{kind}/{size}")
    muster.wait_for(lambda: worker(proxy)["spool_bytes"] > MB,
                    what="a part on disk")
    sign.write_text("")
    second = slow(proxy, f"/{kind}/{size}")
    muster.wait_for(lambda: worker(proxy)["spool_errors"] > 0,
                    what="a failed write")
    third = threading.Thread(target=finish, args=(second, pattern(size)))
    third.start()
    finish(first, pattern(size))
    third.join(muster.PATIENCE_S)
    assert not third.is_alive()
    sign.unlink()
    fourth = slow(proxy, f"/{kind}/{size}")
    muster.wait_for(lambda: worker(proxy)["delivering"] == 1,
                    what="a disk that is used again")
    finish(fourth, pattern(size))
    empty(proxy)


def test_without_a_directory_it_serves_all_the_same(make, tmp_path):
    proxy = make(start=False)
    (proxy.state / "spool").write_text("in the way")
    proxy.daemon.expect_log("slow clients hold their nodes")
    proxy.daemon.start()
    finish(slow(proxy, f"/length/{LONG}"), pattern(LONG))
    assert proxy.log.count("slow clients hold their nodes") == 1
