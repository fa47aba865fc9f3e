#!/usr/bin/python3
"""slow: Apache prefork of ten processes and three hundred clients that read
or write a kilobyte a second: how long quick clients wait meanwhile, directly
and behind each proxy.

usage: bench_slow.py [--seconds 5] [--rounds 1]
"""

import argparse
import http.client
import os
import re
import shutil
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import measure
import muster
from contenders import HAPROXY, HOST, NGINX, Muster, Server
from measure import Table, rounds
from slow import Slow, SlowCrowd
from webservers import Apache

N_SLOW = 300
N_QUICK = 4
PATIENCE_S = 2  # of a quick client; then it has failed
OVER_DIRECT_S = 0.05
STATUS = """
ExtendedStatus On
<Location /server-status>
    SetHandler server-status
</Location>
"""


class Direct:
    """No proxy at all."""

    name = "direct"

    def __init__(self, apache):
        self.address, self.port = apache.address, apache.port

    def rss_kb(self):
        return 0

    def close(self):
        pass


class Servers:
    """Apache, and all who stand before it."""

    def __init__(self, tmp):
        self.net, self.tmp, self.servers = muster.Net(), tmp, []
        cpus = set(range(os.cpu_count()))
        self.apache = Apache(self.net.address(), 8080, workers=10,
                             more=STATUS)
        (self.apache.docs / "small").write_bytes(b"small")
        (self.apache.docs / "large").write_bytes(b"x" * (1 << 20))
        origin = self.apache.address
        try:
            ours = Muster(tmp, self.net.address(), origin, 2, cpus)
            self.servers.append(ours)
            ours.ctl("role", "set", "worker_http", "--maxconn", "10",
                     "--health", "none")
            # Connections that it keeps would each keep a process of Apache.
            self._start("nginx", ["nginx", "-c"], NGINX.replace(
                'Connection ""', "Connection close").replace(
                "keepalive 512;", ""), cpus)
            # It holds one buffer of a request, and of a response.
            self._start("haproxy", ["haproxy", "-f"], HAPROXY.replace(
                ":8080\n", ":8080 maxconn 10\n").replace(
                "mode http\n", "mode http\n  timeout queue 60s\n"
                "  option http-buffer-request\n"), cpus)
            self.servers.append(Direct(self.apache))
        except BaseException:
            self.close()
            raise

    def _start(self, name, argv, conf, cpus):
        place, address = self.tmp / name, self.net.address()
        place.mkdir()
        (place / "conf").write_text(conf.format(
            dir=place, address=address, origin=self.apache.address,
            workers=2, splice="", splice_global=""))
        self.servers.append(Server(name, [*argv, place / "conf"], address,
                                   8000, cpus))

    def close(self):
        for server in reversed(self.servers):
            server.close()
        self.apache.close()
        self.net.close()


def ask(server, method="GET", path="/small", body=None, patience=PATIENCE_S):
    c = http.client.HTTPConnection(server.address, server.port,
                                   timeout=patience)
    try:
        c.request(method, path, body, {"Host": HOST, "Connection": "close"})
        answer = c.getresponse()
        data = answer.read()
        if answer.status != 200:
            raise http.client.HTTPException(str(answer.status))
        return data
    finally:
        c.close()


def quick(server, until, times, failures):
    for i in range(1 << 30):
        start = time.monotonic()
        if start > until:
            return
        try:
            if i % 4 == 3:
                ask(server, "POST", "/cgi/echo", b"hello")
            else:
                ask(server)
            times.append(time.monotonic() - start)
        except (OSError, http.client.HTTPException):
            failures.append(time.monotonic() - start)


def quick_ones(server, seconds):
    """Times and failures of quick clients."""
    times, failures = [], []
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=quick,
                                args=(server, until, times, failures))
               for _ in range(N_QUICK)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return times, failures


def busy(server):
    """Apache's processes at work beside the one that says so; all ten where
    nobody is left to say it."""
    try:
        page = ask(server, path="/server-status?auto")
    except (OSError, http.client.HTTPException):
        return 10
    board = re.search(rb"Scoreboard: (\S+)", page)[1]
    return sum(board.count(c) for c in (b"R", b"W", b"C", b"L", b"G")) - 1


def taken(times, failures, n_busy=0, rss_kb=0):
    ordered = sorted(times) or [PATIENCE_S]
    return {"p50": statistics.median(ordered),
            "p99": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
            "done": len(times), "failed": len(failures), "busy": n_busy,
            "rss_kb": rss_kb}


def besieged(server, seconds):
    crowd = SlowCrowd(
        [Slow(server.address, server.port, HOST, "/large") if i % 2 else
         Slow(server.address, server.port, HOST, "/cgi/echo", size=400000)
         for i in range(N_SLOW)])
    try:
        muster.wait_for(lambda: crowd.rounds >= 10, what="slow clients")
        times, failures = quick_ones(server, seconds)
        return taken(times, failures, busy(server), server.rss_kb())
    finally:
        crowd.end()


def show(table, name, got):
    for key in ("p50", "p99"):
        table.figure(f"{name}, {key}", [r[key] for r in got])
    for key, what in (("done", "served"), ("failed", "failed"),
                      ("busy", "busy processes")):
        table.figure(f"{name}, {what}", [r[key] for r in got],
                     lambda v: f"{v:g}")
    table.figure(f"{name}, memory", [r["rss_kb"] for r in got],
                 measure.megabytes)


def compare(tmp, n, seconds):
    field = Servers(tmp)
    try:
        direct = field.servers[-1]
        free = taken(*quick_ones(direct, seconds))
        got = rounds({s.name: (lambda s=s: besieged(s, seconds))
                      for s in field.servers}, n)
    finally:
        field.close()
    table = Table(f"slow: {N_SLOW} slow clients before 10 Apache processes; "
                  "quick ones meanwhile")
    show(table, "direct, nobody slow", [free])
    for name in got:
        if name != "muster":
            show(table, name, got[name])
    ours = got["muster"]
    table.figure("muster, p50", [r["p50"] for r in ours])
    table.limit("muster, p99", [r["p99"] for r in ours],
                free["p99"] + OVER_DIRECT_S)
    table.figure("muster, served", [r["done"] for r in ours],
                 lambda v: f"{v:g}")
    table.limit("muster, failed", [r["failed"] for r in ours], 0,
                lambda v: f"{v:g}")
    table.limit("muster, busy processes", [r["busy"] for r in ours], 1,
                lambda v: f"{v:g}")
    table.figure("muster, memory", [r["rss_kb"] for r in ours],
                 measure.megabytes)
    return table.show()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--seconds", type=float, default=5)
    args = p.parse_args()
    tmp = Path(tempfile.mkdtemp(prefix="muster-bench."))
    tmp.chmod(0o755)
    try:
        return 0 if compare(tmp, args.rounds, args.seconds) else 1
    finally:
        shutil.rmtree(tmp, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
