#!/usr/bin/python3
"""exec: `true` on 128 nodes beside clush and pdsh over ssh, and on many
agents that all run here, each a process with its own state and address.

usage: bench_exec.py [--nodes 128] [--agents 1000] [--rounds 5]
"""

import argparse
import concurrent.futures
import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

from measure import (Table, median, megabytes, muster, progress, rounds,
                     timed)
from sshd import Sshd


class WideNet(muster.Net):
    """127.X.0.0/16 instead of a /24."""

    def address(self):
        self.last += 1
        a, b, _ = self.prefix.split(".")
        return f"{a}.{b}.{self.last // 250}.{self.last % 250 + 1}"


@contextlib.contextmanager
def running_cluster(tmp, n):
    """A master and n agents, for as long as the block lasts."""
    tmp.mkdir(mode=0o700)
    cluster = muster.Cluster(tmp)
    cluster.net.close()
    cluster.net = WideNet()

    def joined(name):
        """From one address a master takes so many handshakes a second: what
        it hangs up on is asked again."""
        try:
            cluster.join(token, name)
            return True
        except AssertionError as e:
            if "[exit status 4]" not in str(e):  # unreachable
                raise
            del cluster.nodes[name]
            return False

    def add(i):
        muster.wait_for(lambda: joined(f"n{i:04d}"), 60, "a join")
        if i % 50 == 0:
            progress(f"{i} agents")

    try:
        cluster.init()
        token = cluster.token("--role", "worker_http", "--uses", str(n))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(add, range(1, n + 1)))
        muster.wait_for(lambda: settled(cluster), 300, "the last roster")
        yield cluster
    finally:
        finish(cluster)


def exec_on(cluster, nodes, agents):
    argv = cluster.ctl_argv("exec", "--fanout", str(agents), "-n", nodes,
                            "true")
    return lambda: timed(*argv)


def peers(sshd, nodes):
    """The other tools, as their manuals have it, for the same addresses."""
    def clush(config, fanout):
        return lambda: timed("clush", "-f", fanout, "-O",
                             f"ssh_options=-F {config}", "-w", nodes, "true")

    def pdsh(fanout):
        return lambda: timed(
            "pdsh", "-R", "ssh", "-f", fanout, "-w", nodes, "true",
            env={"PDSH_SSH_ARGS_APPEND": f"-F {sshd.client_config}"})

    return {"clush, ssh, fanout 64": clush(sshd.client_config, 64),
            "clush, ssh, fanout 128": clush(sshd.client_config, 128),
            "pdsh, ssh, fanout 128": pdsh(128)}, \
           {"clush, persistent ssh": clush(sshd.masters(), 128)}


def bench_peers(tmp, n, n_rounds):
    """Row 1 of the budgets."""
    net = muster.Net()
    addresses = [net.address() for _ in range(n)]
    with running_cluster(tmp / "cluster", n) as cluster, \
            contextlib.closing(Sshd(tmp, addresses)) as sshd:
        cold, warm = peers(sshd, f"{net.prefix}.[1-{n}]")
        ours = {"muster": exec_on(cluster, f"n[0001-{n:04d}]", n)}
        for run in (*ours.values(), *warm.values()):
            run()  # connections of the persistent masters; page cache
        results = rounds({**ours, **cold}, max(2, n_rounds // 2))
        results_warm = rounds({**ours, **warm}, n_rounds)
    net.close()

    table = Table(f"exec true on {n} nodes (wall)")
    for name in (*cold, *warm):
        table.figure(name, [r["wall"] for r in
                            {**results, **results_warm}[name]])
    best = min(cold, key=lambda name: median(results[name]))
    table.ratio("muster, cold", [r["wall"] for r in results["muster"]],
                best, median(results[best]), 1 / 20)
    warm_name = next(iter(warm))
    table.ratio("muster", [r["wall"] for r in results_warm["muster"]],
                warm_name, median(results_warm[warm_name]), 1 / 2)
    return table.show()


def bench_agents(tmp, n, n_rounds):
    """Rows 2 and 3: many agents on one machine, memory, start of nodes."""
    with running_cluster(tmp / "many", n) as cluster:
        workers = [node for node in cluster.nodes.values()
                   if node is not cluster.master]
        rss = [node.rss_kb() for node in workers]
        run = exec_on(cluster, f"n[0001-{n:04d}]", n)
        run()
        orders = rounds({"exec": run}, n_rounds)["exec"]
        nodes = rounds({"nodes": lambda: timed(*cluster.ctl_argv("nodes"))},
                       n_rounds)["nodes"]
        rss_after = [node.rss_kb() for node in workers]
        master_rss = cluster.master.rss_kb()

    table = Table(f"{n} agents on this machine")
    table.limit("exec true (wall)", [r["wall"] for r in orders], 2.0)
    table.limit("clusterctl, peak memory", [r["peak_kb"] for r in orders],
                64 * 1024, megabytes)
    table.limit("nodeagent, idle", rss, 3 * 1024, megabytes)
    table.figure("nodeagent, after the orders", rss_after, megabytes)
    table.figure("nodeagent of the master", [master_rss], megabytes)
    table.limit("clusterctl nodes, CPU to its end",
                [r["cpu"] for r in nodes], 0.005)
    return table.show()


def settled(cluster):
    """Whether every node has the roster that the last join made."""
    def revision(node):
        with open(node.state / "roster", "rb") as roster:
            return roster.readline().split()[3]
    last = revision(cluster.master)
    return all(revision(n) == last for n in cluster.nodes.values())


def finish(cluster):
    """All at once: a thousand one after another takes a while."""
    started = [n.proc for n in cluster.nodes.values() if n.proc is not None]
    for proc in started:
        proc.terminate()
    for proc in started:
        proc.wait()
    for line in cluster.close():
        print(line, file=sys.stderr)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--nodes", type=int, default=128)
    p.add_argument("--agents", type=int, default=1000)
    p.add_argument("--rounds", type=int, default=5)
    args = p.parse_args()
    tmp = Path(tempfile.mkdtemp(prefix="muster-bench."))
    tmp.chmod(0o700)
    try:
        kept = bench_peers(tmp, args.nodes, args.rounds)
        kept = bench_agents(tmp, args.agents, args.rounds) and kept
    finally:
        shutil.rmtree(tmp)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
