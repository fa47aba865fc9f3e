"""Everything at once over TLS - kept connections, tunnels, large uploads and
downloads, compressed answers, slow readers - while processes, nodes and the
registry do what they must not.  Every byte is checked at the ends, and
afterwards nothing is held for anybody."""

import os
import signal

import pytest

import edge_load as el
import muster
import secure

MB = el.MB


@pytest.fixture
def proxy(tmp_path):
    p = el.start(tmp_path, settings={
        "proxy.spool_size": "64M", "proxy.drain_timeout": "10m"})
    yield p
    wrong = p.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


class Traffic:
    """All kinds of it; b's bodies are not collected."""

    def __init__(self, p):
        self.p = p
        self.gone = []
        self.tunnels = el.Tunnel(p, 2)
        self.actors = [
            self.tunnels,
            el.Get(p, 2, size=1000),
            el.Get(p, size=300000, kind="chunked", gzip=True),
            el.Get(p, size=MB, kind="close", host="b"),
            el.Get(p, size=8 * MB, host="b"),
            el.Get(p, size=2 * MB, kind="chunked", pace=60000),
            el.Post(p, size=500000),
            el.Post(p, size=30 * MB),
            el.Post(p, size=2 * MB, chunked=True),
            el.Post(p, size=5 * MB, host="b"),
            el.Post(p, size=MB, host="b", chunked=True),
        ]
        self.flows()

    def flows(self, n=1):
        """So many more of each kind come to a good end."""
        for goal, actor in [(a.done + n, a) for a in self.actors]:
            muster.wait_for(lambda g=goal, a=actor: a.done >= g,
                            what=f"{actor.options} to go on")

    def leave(self, kind):
        """No more of this kind; what it has noted stays."""
        for actor in [a for a in self.actors if a.options.get("kind") == kind]:
            actor.ending.set()
            actor.stop()
            self.actors.remove(actor)
            self.gone.append(actor)

    def end(self):
        """(lies, honest failures), and nothing is left behind."""
        for actor in self.actors:
            actor.ending.set()
        for actor in self.actors:
            actor.stop()
        muster.wait_for(lambda: el.settled(self.p),
                        what="nothing to be held")
        return ([w for a in self.actors + self.gone for w in a.wrong],
                [f for a in self.actors + self.gone for f in a.failed])


def test_changes_and_upgrades_fail_nothing(proxy):
    """Not one request, and no tunnel before the deadline."""
    traffic = Traffic(proxy)
    for i in range(2):
        for n in range(5):
            proxy.ctl("site", "set", "b", "--share", str(i * 5 + n + 1))
        secure.give(proxy.ctl, "a", *secure.authority().issue(
            "a", kind=("rsa", "ecdsa")[i]))
        proxy.ctl("site", "limit", "a", "--connections", "1000",
                  "--client-bandwidth", ("500M/s", "off")[i])
        proxy.set({"proxy.workers": str(3 - i)})
        traffic.flows()
    muster.run(muster.program("proxyd"), "--state", proxy.state, "upgrade")
    traffic.flows()
    assert traffic.end() == ([], [])
    proxy.adopt()  # the old one has left with its last tunnel


@muster.needs_root
def test_whatever_dies_nobody_is_lied_to(proxy):
    """What a killed process had in hand is cut, and is seen to be cut."""
    for word in ("worker", "follower"):
        proxy.daemon.expect_log(word)
    traffic = Traffic(proxy)
    for pid, _, argv in muster.children(proxy.pid):
        if " follower" in argv:
            os.kill(pid, signal.SIGKILL)
    for worker in proxy.workers():
        os.kill(worker["pid"], signal.SIGKILL)
        traffic.flows()
    # The end of such a body is the end of its connection: when its node is cut
    # nobody can know that there should have been more.
    traffic.leave("close")
    for origin in proxy.raw:
        origin.drop()
        traffic.flows()
        origin.stop()
        traffic.flows()
        origin.start()
    wrong, failed = traffic.end()
    assert wrong == [] and failed
