#!/usr/bin/python3
"""ws: WebSockets through the proxy, beside nginx and HAProxy and without any:
latency of handshake and message, and what an idle tunnel takes in memory.

usage: bench_ws.py [--rounds 3] [--connections 2000,5000,10000] [--at-once 100]
                   [--only plain|tls]

A process of a proxy holds two descriptors for each tunnel.  Where the hard
limit is too low for one, all proxies get as many processes as it takes, on
the same processor.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Table, median, progress, seconds
import muster
from contenders import (
    HAPROXY_TLS,
    HOST,
    LOAD_CPU,
    NGINX_TLS,
    PROXY_CPU,
    TLS_PORT,
    Muster,
    SecureMuster,
    Server,
    make_certificate,
)

WSLOAD = muster.BIN / "tests" / "bench" / "wsload"
WSECHO = muster.BIN / "tests" / "bench" / "wsecho"
SPARE_FDS = 500  # of a process, for all but tunnels
BUDGET_BYTES = 1024

NGINX = """
daemon off; worker_processes {workers}; pid {dir}/nginx.pid;
error_log {dir}/err warn; user root; worker_rlimit_nofile {fds};
events {{ worker_connections {fds}; }}
http {{
  access_log off;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p;
  fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{ listen {address}:{port} {ssl}; location / {{
    proxy_pass http://{origin}:8080; proxy_http_version 1.1;
    proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection "upgrade"; proxy_read_timeout 1h; }} }}
}}
"""

HAPROXY = """
global
  nbthread 1
  maxconn {tunnels}
  no strict-limits
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout tunnel 1h
frontend f
  bind {address}:{port} backlog 4096 {ssl}
  default_backend b
backend b
  option forwardfor
  server o {origin}:8080
"""


class Twins:
    """Several processes of one server on the same address and port."""

    def __init__(self, servers):
        self.servers = servers
        self.name = servers[0].name
        self.address, self.port = servers[0].address, servers[0].port

    def rss_kb(self):
        return sum(s.rss_kb() for s in self.servers)

    def cpu_s(self):
        return sum(s.cpu_s() for s in self.servers)

    def close(self):
        for s in self.servers:
            s.close()


class Field:
    """The echo server and all that stand before it."""

    def __init__(self, tmp, workers, tls):
        self.net = muster.Net()
        self.servers = []
        self.tls, self.port = tls, TLS_PORT if tls else 8000
        if tls:
            make_certificate(tmp, "ecdsa")
        self.fds = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.tmp, self.workers = tmp, workers
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self):
        origin = self.net.address()
        self.direct = self._keep(Server(
            "direct", [WSECHO, f"{origin}:8080"], origin, 8080, {LOAD_CPU}))
        self.nginx = self._keep(self._nginx(origin))
        self.haproxy = self._keep(self._haproxy(origin))
        self.muster = self._keep((SecureMuster if self.tls else Muster)(
            self.tmp, self.net.address(), origin, self.workers, {PROXY_CPU}))

    def _keep(self, server):
        self.servers.append(server)
        return server

    def _conf(self, name, text, **values):
        place = self.tmp / name
        place.mkdir()
        conf = place / "conf"
        conf.write_text(text.format(dir=place, fds=self.fds,
                                    workers=self.workers,
                                    tunnels=self.fds // 2 - 50,
                                    port=self.port, **values))
        return conf

    def _nginx(self, origin):
        address = self.net.address()
        options = "backlog=4096 reuseport"
        if self.tls:
            options += " ssl; " + NGINX_TLS.format(tls=self.tmp)[:-1]
        conf = self._conf("nginx", NGINX, address=address, origin=origin,
                          ssl=options)
        return Server("nginx", ["nginx", "-c", conf], address, self.port,
                      {PROXY_CPU})

    def _haproxy(self, origin):
        address = self.net.address()
        options = HAPROXY_TLS.format(tls=self.tmp) if self.tls else ""
        conf = self._conf("haproxy", HAPROXY, address=address, origin=origin,
                          ssl=options)
        return Twins([Server("haproxy", ["haproxy", "-f", conf], address,
                             self.port, {PROXY_CPU})
                      for _ in range(self.workers)])

    def close(self):
        for server in reversed(self.servers):
            server.close()
        self.net.close()


def load(field, server, n, at_once, *options):
    """Starts the load generator, from addresses enough for all ports."""
    source = f"{field.net.prefix}.200"
    return subprocess.Popen(
        ["taskset", "-c", str(LOAD_CPU), WSLOAD, "-n", str(n), "-c",
         str(at_once), "--host", HOST, "--source", source, "--sources", "8",
         "--json", *options,
         *(["--tls"] if server.port == TLS_PORT else []),
         f"{server.address}:{server.port}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def result(generator):
    out = generator.communicate()[0]
    taken = json.loads(out.splitlines()[-1])
    if taken["done"] != taken["connections"]:
        raise RuntimeError(f"some connections failed: {taken}")
    return taken


def held(field, server, n, at_once):
    """All open at once: bytes that each idle tunnel takes, and latencies."""
    # What comes with the first ones: pools for those under way.
    result(load(field, server, 2 * at_once, at_once))
    before = server.rss_kb()
    generator = load(field, server, n, at_once, "--hold")
    assert generator.stdout.readline() == "held\n"
    grown = server.rss_kb() - before
    return grown * 1024 / n, result(generator)


def in_turn(field, server, n, at_once):
    """Each after the other; with the CPU time of the proxy."""
    before = server.cpu_s()
    taken = result(load(field, server, n, at_once))
    return {**taken, "cpu": (server.cpu_s() - before) / n}


HEAD = ("connections", "through", "all took", "CPU each", "handshake mean", "p50", "p99",
        "message mean", "p50", "p99", "held: message p50", "memory each")


def us(value):
    return seconds(value / 1e6) if value else "0"


def middle(results, what, which):
    return statistics.median(r[what][which] for r in results)


def row(n, name, results, memory, hold):
    return (str(n), name,
            seconds(median(results, "seconds")),
            seconds(median(results, "cpu")),
            *(us(middle(results, what, which))
              for what in ("handshake_us", "message_us")
              for which in ("mean", "p50", "p99")),
            us(hold["message_us"]["p50"]), f"{memory:.0f} B")


def measure(n, n_rounds, at_once, tmp, tls):
    """{name: (results of each round, bytes a tunnel, result when held)}"""
    fds = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    workers = -(-2 * n // (fds - SPARE_FDS))
    field = Field(tmp, workers, tls)
    try:
        servers = {s.name: s for s in field.servers}
        rounds = {name: [] for name in servers}
        holds = {}
        for name, server in servers.items():
            progress(f"{n} connections, held: {name}")
            holds[name] = held(field, server, n, at_once)
        for i in range(n_rounds):
            for name, server in servers.items():
                progress(f"{n} connections, round {i + 1}: {name}")
                rounds[name].append(in_turn(field, server, n, at_once))
        progress("")
    finally:
        field.close()
    return workers, {name: (rounds[name], *holds[name]) for name in servers}


def show(rows):
    widths = [max(len(r[i]) for r in rows) for i in range(len(HEAD))]
    for r in rows:
        print("  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip())


def judge(table, n, got, tls):
    """Not above either of the peers; memory at most the smaller."""
    peers = ("nginx", "haproxy")
    for what in ("handshake_us", "message_us"):
        best = min(peers, key=lambda p: middle(got[p][0], what, "mean"))
        table.ratio(f"{n}: {what[:-3]}, mean",
                    [r[what]["mean"] for r in got["muster"][0]], best,
                    middle(got[best][0], what, "mean"), 1.0, us)
    best = min(peers, key=lambda p: median(got[p][0], "cpu"))
    table.ratio(f"{n}: CPU of a connection",
                [r["cpu"] for r in got["muster"][0]], best,
                median(got[best][0], "cpu"), 1.0)
    best = min(peers, key=lambda p: got[p][1])
    table.ratio(f"{n}: memory of an idle tunnel", [got["muster"][1]], best,
                got[best][1], 1.0, lambda b: f"{b:.0f} B")
    if not tls:
        table.limit(f"{n}: the same", [got["muster"][1]], BUDGET_BYTES,
                    lambda b: f"{b:.0f} B")


def compare(args, tls):
    how = "over TLS" if tls else "plain"
    rows, notes = [HEAD], []
    table = Table(f"WebSockets, {how}, against the budgets")
    for n in map(int, args.connections.split(",")):
        tmp = Path(tempfile.mkdtemp(prefix="muster-bench."))
        tmp.chmod(0o755)
        try:
            workers, got = measure(n, args.rounds, args.at_once, tmp, tls)
        finally:
            shutil.rmtree(tmp, ignore_errors=True)
        rows += [row(n, name, *got[name]) for name in got]
        judge(table, n, got, tls)
        if workers > 1:
            notes.append(f"{n} tunnels do not fit the descriptors of one "
                         f"process here: every proxy had {workers}.")
    print(f"\nWebSockets, {how} (direct is plain), {args.at_once} at once: "
          "connect, upgrade, a text of 64 bytes and its echo, close; then all "
          "held open")
    show(rows)
    print(*notes, sep="\n")
    return table.show()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--connections", default="2000,5000,10000")
    p.add_argument("--at-once", type=int, default=100)
    p.add_argument("--only", choices=("plain", "tls"))
    args = p.parse_args()
    kept = [compare(args, tls) for tls in (False, True)
            if args.only != ("plain" if tls else "tls")]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
