#!/usr/bin/python3
"""http: the proxy beside nginx and HAProxy, in front of the same origin:
CPU time for each request, throughput of big bodies, system calls, memory.

usage: bench_http.py [--rounds 5] [--only NAME,...]
"""

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import measure  # noqa: F401  (finds the harness of the tests)
import muster
from contenders import HOST, LOAD_CPU, PROXY_CPU, Field, family, wrk
from measure import Table, median, rounds

IDLE_CLIENTS = 10000
MANY_SITES = 100000


def rate(per_s):
    return f"{per_s:.0f}/s"


def compare(field, title, path, connections, n_rounds, budget=None, **load):
    """One scenario, all contenders in turn; CPU a request."""
    runs = {name: (lambda s=s: wrk(s, path, connections, **load))
            for name, s in field.contenders.items()}
    got = rounds(runs, n_rounds)
    table = Table(title)
    peers = [name for name in got if name != "muster"]
    for name in peers:
        table.figure(name, [r["cpu"] for r in got[name]])
    best = min(peers, key=lambda name: median(got[name], "cpu"))
    ours = [r["cpu"] for r in got["muster"]]
    if budget is not None:
        table.ratio("muster", ours, best, median(got[best], "cpu"), budget)
    else:
        table.figure("muster", ours)
    for name in got:
        table.figure(f"{name}, requests",
                     [r["rate"] for r in got[name]], rate)
    return table.show()


def keepalive(tmp, n):
    """The budget row, then other sizes and numbers of connections."""
    field = Field(tmp)
    try:
        kept = compare(field, "keep-alive, 5 B, 64 connections: CPU a "
                       "request", "/5", 64, n, 0.90, seconds=2)
        for connections in (1, 8, 512):
            compare(field, f"keep-alive, 5 B, {connections} connections: "
                    "CPU a request", "/5", connections, n)
        for path in ("/1k", "/10k", "/100k", "/chunked"):
            compare(field, f"keep-alive, {path[1:]}, 64 connections: CPU a "
                    "request", path, 64, n)
    finally:
        field.close()
    return kept


def new_connections(tmp, n):
    field = Field(tmp)
    try:
        return compare(field, "a new connection each, 5 B, 64 at a time: CPU "
                       "a request", "/5", 64, n, 0.95, close=True, seconds=2)
    finally:
        field.close()


def big_bodies(tmp, n):
    field = Field(tmp)
    try:
        servers = {**field.contenders,
                   field.haproxy_splice.name: field.haproxy_splice,
                   "direct": field.origin}
        got = rounds({name: (lambda s=s: wrk(s, "/20M", 4, seconds=2))
                      for name, s in servers.items()}, n)
    finally:
        field.close()
    table = Table("20 MB bodies, 4 connections: CPU a body, bodies a second")
    haproxies = ["haproxy", field.haproxy_splice.name]
    best = min(haproxies, key=lambda name: median(got[name], "cpu"))
    for name in ("nginx", *haproxies):
        table.figure(name, [r["cpu"] for r in got[name]])
    table.ratio("muster", [r["cpu"] for r in got["muster"]], best,
                median(got[best], "cpu"), 0.90)
    for name in ("direct", "nginx", *haproxies):
        table.figure(f"{name}, bodies", [r["rate"] for r in got[name]],
                     rate)
    for peer, budget in (("nginx", 2.0), ("direct", 0.92)):
        table.at_least("muster, bodies", [r["rate"] for r in got["muster"]],
                       peer, median(got[peer], "rate"), budget, rate)
    return table.show()


def access_log(tmp, n):
    """Ourselves with and without, busy with nothing but requests."""
    field = Field(tmp)
    log = tmp / "access.log"

    def with_log(value):
        field.muster.ctl("set", "proxy.access_log", value)
        revision = field.muster.ctl("get", "proxy.access_log").strip()
        time_out = time.monotonic() + 5
        size = log.stat().st_size if log.exists() else 0
        while value != "off" and time.monotonic() < time_out:
            wrk(field.muster, "/5", 1)
            if log.exists() and log.stat().st_size > size:
                break
        assert revision == value
        return wrk(field.muster, "/5", 64, seconds=2)

    try:
        got = rounds({"off": lambda: with_log("off"),
                      "on": lambda: with_log(str(log))}, n)
    finally:
        field.close()
    table = Table("access log (combined), 5 B, 64 connections")
    table.figure("without, requests", [r["rate"] for r in got["off"]], rate)
    table.figure("without, CPU", [r["cpu"] for r in got["off"]])
    table.figure("with, CPU", [r["cpu"] for r in got["on"]])
    table.at_least("with, requests", [r["rate"] for r in got["on"]],
                   "without", median(got["off"], "rate"), 0.97, rate)
    return table.show()


def two_workers(tmp, n):
    """Two against two; origin and load share the same processors."""
    field = Field(tmp, workers=2, cpus=(PROXY_CPU, LOAD_CPU))
    try:
        compare(field, "two workers, keep-alive, 5 B, 64 connections: CPU a "
                "request", "/5", 64, n,
                load_cpus=(PROXY_CPU, LOAD_CPU))
    finally:
        field.close()
    return True


def system_calls(tmp, n):
    """By strace -c, for the information of the reader."""
    field = Field(tmp)
    table = Table("system calls a request (keep-alive, 5 B, 8 connections)")
    try:
        for name, server in field.contenders.items():
            counts = strace(server, lambda s=server: wrk(s, "/5", 8))
            total = sum(counts.values())
            table.figure(name, [total], lambda v: f"{v:.2f}")
            for call, count in sorted(counts.items(), key=lambda c: -c[1]):
                if count >= 0.02:
                    table.figure(f"    {call}", [count],
                                 lambda v: f"{v:.2f}")
    finally:
        field.close()
    return table.show()


def strace(server, load):
    """{system call: times a request}"""
    pids = server.workers()
    tracer = subprocess.Popen(
        ["strace", "-c", "-f", *(a for p in pids for a in ("-p", str(p)))],
        stderr=subprocess.PIPE, text=True)
    muster.wait_for(lambda: all(
        re.search(r"^TracerPid:\s+[1-9]", Path(f"/proc/{p}/status")
                  .read_text(), re.M) for p in pids), 10)
    taken = load()
    tracer.send_signal(2)
    report = tracer.communicate()[1]
    n = taken["rate"] * 1
    return {m.group(2): int(m.group(1)) / n for m in re.finditer(
        r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)(?:\s+\d+)?\s+(\w+)$", report,
        re.M) if m.group(2) != "total"}


def idle_clients(tmp, n):
    """Memory of the workers for clients that asked once and keep alive."""
    field = Field(tmp)
    table = Table(f"memory for {IDLE_CLIENTS} idle keep-alive clients, each")
    try:
        for name, server in field.contenders.items():
            before = server.rss_kb()
            clients = [ask_once(server, i) for i in range(IDLE_CLIENTS)]
            grown = (server.rss_kb() - before) / IDLE_CLIENTS
            table.figure(name, [grown], lambda kb: f"{kb * 1024:.0f} B")
            for c in clients:
                c.close()
    finally:
        field.close()
    return table.show()


def ask_once(server, i):
    # Several source addresses: there are ports enough for all.
    s = socket.socket()
    s.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
    s.bind((f"127.0.{1 + i // 5000}.1", 0))
    s.connect((server.address, server.port))
    s.sendall(f"GET /5 HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
    got = b""
    while b"xxxxx" not in got:
        got += s.recv(4096)
    return s


def reload_sites(tmp, n):
    """100,000 sites: how long until a change is in force, and what requests
    meanwhile notice of it."""
    field = Field(tmp)
    sites = tmp / "sites"
    sites.write_text("".join(f"s{i}.example\n" for i in range(MANY_SITES)))
    try:
        # The follower compiles; as on a machine with another core free.
        for pid in family(field.muster.proc.pid):
            if pid not in field.muster.workers():
                os.sched_setaffinity(pid, {LOAD_CPU})
        took = timed(lambda: field.muster.ctl("site", "add", "--from-file",
                                              str(sites)))
        served = timed(lambda: muster.wait_for(
            lambda: status(field.muster, "s99999.example") == 200, 30))
        quiet = slowest(field.muster, lambda: None, 3)
        in_force, busy = [], []

        def change():
            for i in range(n):
                name = f"new{i}-{len(in_force)}.example"
                field.muster.ctl("site", "add", name)
                in_force.append(timed(lambda: muster.wait_for(
                    lambda: status(field.muster, name) == 200, 30)))

        busy = slowest(field.muster, change, 0)
    finally:
        field.close()
    table = Table(f"{MANY_SITES} sites, changed while requests run")
    table.figure("adding them all", [took])
    table.figure("then served after", [served])
    table.limit("a further site is served after", in_force, 1.0)
    table.figure("slowest request, no change (99.9 %)", [quiet[0]])
    table.figure("slowest request, no change (all)", [quiet[1]])
    table.figure("slowest request, changes (all)", [busy[1]])
    table.limit("delay by changes (99.9 %)",
                [max(busy[0] - quiet[0], 0)], 0.005)
    return table.show()


def timed(run):
    start = time.monotonic()
    run()
    return time.monotonic() - start


def status(server, host):
    with socket.create_connection((server.address, server.port)) as s:
        s.sendall(f"GET /5 HTTP/1.1\r\nHost: {host}\r\n"
                  "Connection: close\r\n\r\n".encode())
        return int(s.recv(4096).split()[1])


def slowest(server, meanwhile, at_least_s):
    """Asks over one connection while something runs; the time that 99.9 % of
    the requests kept, and the longest."""
    worker = threading.Thread(target=meanwhile)
    s = socket.create_connection((server.address, server.port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request = f"GET /5 HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    taken, start = [], time.monotonic()
    worker.start()
    while worker.is_alive() or time.monotonic() - start < at_least_s:
        begin = time.monotonic()
        s.sendall(request)
        s.recv(4096)
        taken.append(time.monotonic() - begin)
    worker.join()
    s.close()
    taken.sort()
    return taken[int(len(taken) * 0.999)], taken[-1]


ROWS = {"keepalive": keepalive, "new": new_connections, "big": big_bodies,
        "log": access_log, "two": two_workers, "calls": system_calls,
        "idle": idle_clients, "reload": reload_sites}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--only", default=",".join(ROWS),
                   help=f"of {', '.join(ROWS)}")
    args = p.parse_args()
    kept = True
    for name in args.only.split(","):
        tmp = Path(tempfile.mkdtemp(prefix="muster-bench."))
        tmp.chmod(0o755)  # the origin's workers read there
        try:
            kept = ROWS[name](tmp, args.rounds) and kept
        finally:
            shutil.rmtree(tmp, ignore_errors=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
