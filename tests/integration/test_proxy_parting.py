"""Processes of a proxy that part: a message on its way to one that has ended
is no fault, whoever sent it.  Each end is told once, by whoever reaps it."""

import contextlib
import os
import signal
import threading

import pytest

import muster
from live_proxy import LiveProxy
from muster import wait_for


@pytest.fixture
def make_proxy(tmp_path, request):
    made = []

    def make(**options):
        made.append(LiveProxy(tmp_path, settings={"proxy.workers": "1"},
                              **options))
        return made[0]
    yield make
    wrong = [w for p in made for w in p.close()]
    report = getattr(request.node, "report_call", None)
    if report is not None and report.failed:
        for p in made:
            print(p.log[-4000:])
    assert not wrong, wrong


class Parting:
    """A proxy whose processes can be made to wait until the one that they
    talk to has ended; see tests/preload/parted.c."""

    def __init__(self, make, tmp):
        self.dir = tmp / "parted"
        self.dir.mkdir()
        library = muster.preload(tmp, "parted")
        self.proxy = make(start=False)
        self.proxy.daemon.start(env={"LD_PRELOAD": str(library),
                                     "MUSTER_PARTED": str(self.dir)})

    def hold(self, job, moment):
        (self.dir / f"{job}-{moment}").touch()

    def release(self):
        for f in [*self.dir.glob("*-start"), *self.dir.glob("*-send")]:
            f.unlink()

    def held(self, job):
        """The pid of one that waits."""
        return int(wait_for(lambda: self._held(job), what=f"a held {job}"))

    def _held(self, job):
        with contextlib.suppress(FileNotFoundError):
            return (self.dir / f"{job}-held").read_text()

    def child(self, word, but=()):
        """The pid of the present master's child of that kind."""
        return wait_for(lambda: next(
            (pid for pid, state, argv in muster.children(self.proxy.pid)
             if f" {word} " in argv and pid not in but and state != "Z"),
            None), what=f"a {word}")

    def kill(self, pid):
        """Returns when it has ended; its parent may not know yet."""
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: job_of(pid) == "", what="a process to end")

    def change(self):
        self.proxy.ctl("site", "disable", "b")

    def loud(self):
        return [line for line in self.proxy.log.splitlines()
                if muster.LOUD.match(line)]


def job_of(pid):
    """The command line; nothing if it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline") as f:
        return f.read()
    return ""


@pytest.fixture
def parting(make_proxy, tmp_path):
    return Parting(make_proxy, tmp_path)


def test_a_snapshot_for_a_master_that_has_left(parting):
    parting.hold("follower", "send")
    parting.change()
    parting.held("follower")
    parting.proxy.daemon.stop()


def test_a_snapshot_in_an_upgrade(parting):
    parting.hold("follower", "send")
    parting.change()
    follower, old = parting.held("follower"), parting.proxy.pid
    os.kill(old, signal.SIGUSR2)
    wait_for(lambda: job_of(follower) == "", what="the follower to end")
    parting.release()
    wait_for(lambda: parting.proxy.pid != old, what="a successor")
    parting.proxy.adopt()
    parting.proxy.await_revision()


def test_a_master_that_is_killed(parting):
    """All its children end by themselves, and none complains."""
    parting.hold("follower", "send")
    parting.change()
    parting.held("follower")
    parting.proxy.daemon.kill()


@pytest.mark.parametrize("job", ("worker", "follower"))
def test_a_master_that_ends_before_its_child_starts(parting, job):
    """The successor of an upgrade that is called off."""
    p = parting.proxy
    parting.hold(job, "start")
    os.kill(p.pid, signal.SIGUSR2)
    parting.held(job)
    p.daemon.stop()


@pytest.mark.parametrize("word", ("worker", "follower"))
def test_a_child_that_ends_before_its_first_message(parting, word):
    p = parting.proxy
    first = parting.child(word)
    parting.hold("master", "send")
    parting.kill(first)
    parting.held("master")
    second = parting.child(word, but=[first])
    parting.kill(second)
    parting.release()
    parting.child(word, but=[first, second])
    parting.change()
    p.await_revision()
    p.daemon.expect_log(f"(the follower|worker ({first}|{second})) was killed")
    assert len(parting.loud()) == 2


@pytest.mark.parametrize("message", ("snapshot", "listeners", "drain"))
def test_a_message_for_a_worker_that_was_killed(parting, message):
    p = parting.proxy
    worker = parting.child("worker")
    parting.hold("master", "send")
    if message == "snapshot":
        parting.change()
    elif message == "listeners":
        p.set({"proxy.http.listen": f"{p.address}:8081"})
    else:
        os.kill(p.pid, signal.SIGTERM)
    parting.held("master")
    parting.kill(worker)
    parting.release()
    if message == "drain":
        assert p.daemon.proc.wait(muster.PATIENCE_S) == 0
    else:
        p.await_revision()
    p.daemon.expect_log(f"worker {worker} was killed by signal 9")
    assert len(parting.loud()) == 1


def test_a_successor_that_is_killed_at_once(parting):
    p = parting.proxy
    parting.hold("master", "send")
    os.kill(p.pid, signal.SIGUSR2)
    parting.held("master")
    parting.kill(parting.child("run"))
    parting.release()
    p.daemon.expect_log("upgrade: the new proxyd was killed by signal 9")
    wait_for(parting.loud, what="a word on the upgrade")
    parting.change()
    p.await_revision()


def test_ctrl_c_reaches_every_process(make_proxy):
    """As from a terminal: the master alone obeys, and ends the others."""
    p = make_proxy()
    for sig in (signal.SIGINT, signal.SIGTERM):
        everybody = [p.pid, *(pid for pid, _, _ in muster.children(p.pid))]
        everybody += [pid for parent in everybody[1:]
                      for pid, _, _ in muster.children(parent)]
        # The master last: the others have time to do something wrong.  A
        # worker may be told by hand to drain.
        for pid in reversed(everybody):
            if sig == signal.SIGINT or "worker" not in job_of(pid):
                os.kill(pid, sig)
        assert p.daemon.proc.wait(muster.PATIENCE_S) == 0
        p.daemon.start()


def test_ends_while_changes_pour_in(make_proxy):
    """And upgrades: by chance what the tests above do on purpose."""
    p = make_proxy()
    ending = threading.Event()

    def churn():
        n = 0
        while not ending.is_set():
            n += 1
            p.ctl("set", "proxy.drain_timeout", f"{n % 50 + 1}s")
    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for i in range(8):
            if i % 2:
                p.upgrade()
            else:
                p.daemon.restart()
    finally:
        ending.set()
        thread.join()
