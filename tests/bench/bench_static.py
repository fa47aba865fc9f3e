#!/usr/bin/python3
"""static: plain files served by the proxy itself, beside nginx on the same
directory: CPU time for each request.

usage: bench_static.py [--rounds 5] [--only NAME,...]
"""

import argparse
import shutil
import socket
import sys
import tempfile
from pathlib import Path

import measure  # noqa: F401  (finds the harness of the tests)
import muster
from contenders import HOST, PROXY_CPU, Muster, Server, wrk
from measure import Table, median, rounds

FILES = {"5": 5, "10k": 10000, "20M": 20 << 20}

# As an expert sets it up; what it knows of a file is good for a second.
NGINX = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/err warn;
user root;
events {{ worker_connections 16384; }}
http {{
  include /etc/nginx/mime.types;
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;
  {cache}
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p;
  fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{ listen {address}:8000 backlog=4096; root {home}; }}
}}
"""
CACHE = "open_file_cache max=1000 inactive=20s; open_file_cache_valid 1s;"


class Servers:
    """The home and who serves it, one processor for all of them."""

    def __init__(self, tmp):
        self.net, self.servers, self.tmp = muster.Net(), [], tmp
        self.home = tmp / "home"
        self.home.mkdir(mode=0o755)
        for name, size in FILES.items():
            (self.home / f"{name}.txt").write_bytes(b"x" * size)
        try:
            ours = Muster(tmp, self.net.address(), self.net.address(), 1,
                          {PROXY_CPU})
            self.servers.append(ours)
            ours.ctl("site", "set", HOST, "--home", str(self.home),
                     "--static", "on")
            self._nginx("nginx", "")
            self._nginx("nginx, cache", CACHE)
            muster.wait_for(lambda: self._served(ours), 10, "static files")
        except BaseException:
            self.close()
            raise

    def _served(self, server):
        with socket.create_connection((server.address, server.port)) as s:
            s.sendall(f"HEAD /5.txt HTTP/1.0\r\nHost: {HOST}\r\n\r\n".encode())
            return b" 200 OK" in s.recv(4096)

    def _nginx(self, name, cache):
        place, address = self.tmp / name.replace(", ", "-"), \
            self.net.address()
        place.mkdir()
        (place / "conf").write_text(NGINX.format(
            dir=place, address=address, home=self.home, cache=cache))
        self.servers.append(Server(
            name, ["nginx", "-c", place / "conf"], address, 8000,
            {PROXY_CPU}))

    def close(self):
        for server in reversed(self.servers):
            server.close()
        self.net.close()


def compare(tmp, n, name, connections, budget):
    field = Servers(tmp)
    try:
        got = rounds({s.name: (lambda s=s: wrk(s, f"/{name}.txt", connections,
                                               seconds=2))
                      for s in field.servers}, n)
        memory = {s.name: s.rss_kb() for s in field.servers}
    finally:
        field.close()
    table = Table(f"static, {name}, {connections} connections: CPU a request")
    peers = [p for p in got if p != "muster"]
    for peer in peers:
        table.figure(peer, [r["cpu"] for r in got[peer]])
    best = min(peers, key=lambda p: median(got[p], "cpu"))
    table.ratio("muster", [r["cpu"] for r in got["muster"]], best,
                median(got[best], "cpu"), budget)
    for who in got:
        table.figure(f"{who}, requests", [r["rate"] for r in got[who]],
                     lambda v: f"{v:.0f}/s")
    for who, kb in memory.items():
        table.figure(f"{who}, memory", [kb], measure.megabytes)
    return table.show()


ROWS = {"5": (64, 0.95), "10k": (64, 0.95), "20M": (4, 1.0)}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--only", default=",".join(ROWS),
                   help=f"of {', '.join(ROWS)}")
    args = p.parse_args()
    kept = True
    for name in args.only.split(","):
        tmp = Path(tempfile.mkdtemp(prefix="muster-bench."))
        tmp.chmod(0o755)  # the workers read there
        try:
            kept = compare(tmp, args.rounds, name, *ROWS[name]) and kept
        finally:
            shutil.rmtree(tmp, ignore_errors=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
