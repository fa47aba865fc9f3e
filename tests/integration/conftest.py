"""Fixtures of the whole-system tests; see muster.py."""

import os
import random
from pathlib import Path

import pytest

import muster


def pytest_configure():
    muster.adopt_orphans()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Lets a fixture know how its test went."""
    report = (yield).get_result()
    setattr(item, f"report_{report.when}", report)


def pytest_sessionfinish(session, exitstatus):
    """Leaves "passed failed skipped" where run_integration.sh adds up."""
    tally = os.environ.get("MUSTER_TALLY")
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if tally is None or reporter is None:
        return
    n = {k: len(v) for k, v in reporter.stats.items()}
    failed = n.get("failed", 0) + n.get("error", 0)
    if exitstatus not in (0, 1, 5):  # 5: no tests in the file
        failed = max(failed, 1)
    Path(tally).write_text(
        f"{n.get('passed', 0)} {failed} {n.get('skipped', 0)}\n")


def _close(cluster):
    wrong = cluster.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def _show_logs(request, cluster):
    """Logs of a failed test go into its report."""
    report = getattr(request.node, "report_call", None)
    if report is None or not report.failed:
        return
    for node in [*cluster.nodes.values(), *cluster.others]:
        text = node.text
        if text:
            print(f"---- {node.log.name}\n{text[-4000:]}")


@pytest.fixture
def empty_cluster(tmp_path, request):
    """A cluster that nobody has initialised yet."""
    tmp_path.chmod(0o700)
    c = muster.Cluster(tmp_path)
    yield c
    _show_logs(request, c)
    _close(c)


@pytest.fixture
def cluster(empty_cluster):
    """A running master, m1."""
    empty_cluster.init()
    return empty_cluster


@pytest.fixture
def cluster3(cluster):
    """A master and three workers, w1 to w3, of role worker_http."""
    cluster.add_workers(3)
    return cluster


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory):
    """As cluster3, once for all tests of a file: for those that only ask."""
    tmp = tmp_path_factory.mktemp("shared")
    tmp.chmod(0o700)
    c = muster.Cluster(tmp)
    c.init()
    c.add_workers(3)
    yield c
    _close(c)


@pytest.fixture(scope="module")
def quiet_master(tmp_path_factory):
    """A master without a running agent, once for all tests of a file: for
    commands that work on the registry alone."""
    tmp = tmp_path_factory.mktemp("quiet")
    tmp.chmod(0o700)
    c = muster.Cluster(tmp)
    c.init(start=False)
    yield c
    _close(c)


@pytest.fixture
def rng():
    """Random numbers; the seed is shown when the test fails, and
    MUSTER_SEED repeats it."""
    seed = int(os.environ.get("MUSTER_SEED", random.SystemRandom()
                              .randrange(2 ** 32)))
    print(f"MUSTER_SEED={seed}")
    return random.Random(seed)
