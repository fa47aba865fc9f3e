#!/usr/bin/python3
"""compress: pages of a node, and files, compressed on the way, beside nginx
with gzip at the same level: CPU time for each answer, and how large it is.

usage: bench_compress.py [--rounds 3] [--only SIZE:LEVEL[:file],...]
"""

import argparse
import shutil
import socket
import sys
import tempfile
from pathlib import Path

import measure
import muster
from contenders import HOST, LOAD_CPU, PROXY_CPU, Muster, Server, wrk
from measure import Table, median, rounds

ACCEPT = "Accept-Encoding: gzip"
SIZES = {"2k": 2000, "20k": 20_000, "500k": 500_000}

ORIGIN = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/err warn;
user root;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; keepalive_requests 1000000000;
  types {{ text/html html; }}
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p;
  fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{ listen {address}:8080; root {dir}/www; }}
}}
"""

NGINX = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/err warn;
user root;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000000; proxy_buffers 64 16k;
  gzip on; gzip_comp_level {level}; gzip_min_length 1024; gzip_proxied any;
  gzip_vary on; types {{ text/html html; }}
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p;
  fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  upstream origin {{ server {origin}:8080; keepalive 64;
    keepalive_requests 1000000000; }}
  server {{ listen {address}:8000; location / {{ {location} }} }}
}}
"""


PROXIED = """proxy_pass http://origin; proxy_http_version 1.1;
  proxy_set_header Connection "";"""
FILES = "root {home};"


def page(size):
    """Text that somebody wrote, as much of it as is wanted."""
    docs = b"".join(p.read_bytes() for p in sorted(
        (measure.ROOT / "docs").rglob("*.[m1-9]*")))
    return (docs * (size // len(docs) + 1))[:size]


class Servers:
    """The origin and the two before it, at one level; or before files."""

    def __init__(self, tmp, level, files):
        self.net, self.servers, self.tmp = muster.Net(), [], tmp
        try:
            origin = self._nginx("origin", ORIGIN, 8080, {LOAD_CPU})
            www = tmp / "origin" / "www"
            www.mkdir()
            for name, size in SIZES.items():
                (www / f"{name}.html").write_bytes(page(size))
            self.ours = Muster(tmp, self.net.address(), origin.address, 1,
                               {PROXY_CPU}, [("proxy.gzip_level", level)])
            self.servers.append(self.ours)
            self.ours.ctl("site", "set", HOST, "--compress", "gzip",
                          "--home", www, "--static", "on" if files else "off")
            self.nginx = self._nginx(
                "nginx", NGINX, 8000, {PROXY_CPU}, origin=origin.address,
                level=level,
                location=FILES.format(home=www) if files else PROXIED)
            muster.wait_for(lambda: answer_size(self.ours, "/2k.html") < 2000,
                            10, "the proxy to compress")
        except BaseException:
            self.close()
            raise

    def _nginx(self, name, conf, port, cpus, **more):
        place, address = self.tmp / name, self.net.address()
        place.mkdir()
        (place / "conf").write_text(conf.format(
            dir=place, address=address, **more))
        server = Server(name, ["nginx", "-c", place / "conf"], address, port,
                        cpus)
        self.servers.append(server)
        return server

    def close(self):
        for server in reversed(self.servers):
            server.close()
        self.net.close()


def answer_size(server, path):
    """Bytes of a whole answer, without its head."""
    with socket.create_connection((server.address, server.port)) as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n{ACCEPT}\r\n"
                  "Connection: close\r\n\r\n".encode())
        data = b""
        while more := s.recv(1 << 20):
            data += more
    return len(data.partition(b"\r\n\r\n")[2])


def compare(tmp, n, size, level, files):
    field = Servers(tmp, level, files)
    both, path = (field.ours, field.nginx), f"/{size}.html"
    try:
        got = rounds({s.name: (lambda s=s: wrk(
            s, path, 16, seconds=2, fields=[ACCEPT]))
            for s in both}, n)
        memory = {s.name: s.rss_kb() for s in both}
        sizes = {s.name: answer_size(s, path) for s in both}
    finally:
        field.close()
    table = Table(f"gzip, level {level}, {size} of text{files}: CPU an answer")
    table.figure("nginx", [r["cpu"] for r in got["nginx"]])
    table.ratio("muster", [r["cpu"] for r in got["muster"]], "nginx",
                median(got["nginx"], "cpu"), 1.0)
    table.ratio("muster, size", [sizes["muster"]], "nginx", sizes["nginx"],
                1.02, lambda v: f"{v:.0f} B")
    for who in got:
        table.figure(f"{who}, answers", [r["rate"] for r in got[who]],
                     lambda v: f"{v:.0f}/s")
        table.figure(f"{who}, memory", [memory[who]], measure.megabytes)
    return table.show()


ROWS = ("2k:4", "20k:1", "20k:4", "20k:6", "500k:4", "20k:4:file",
        "500k:4:file")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", default=",".join(ROWS),
                   help=f"such as {', '.join(ROWS)}")
    args = p.parse_args()
    kept = True
    for row in args.only.split(","):
        size, level, *files = row.split(":")
        tmp = Path(tempfile.mkdtemp(prefix="muster-bench."))
        tmp.chmod(0o755)  # workers read there
        try:
            kept = compare(tmp, args.rounds, size, int(level),
                           " in a file" if files else "") and kept
        finally:
            shutil.rmtree(tmp, ignore_errors=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
