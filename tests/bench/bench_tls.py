#!/usr/bin/python3
"""tls: handshakes and bodies over TLS, beside nginx and HAProxy with the same
certificate and ciphers, before the same origin: CPU time of each.

usage: bench_tls.py [--rounds 5] [--handshakes 1000] [--only NAME,...]
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import measure
import muster
import contenders
from contenders import (
    HAPROXY_TLS,
    HOST,
    LOAD_CPU,
    NGINX_TLS,
    PROXY_CPU,
    TLS_PORT,
    SecureMuster,
    Server,
    make_certificate,
    wrk,
)
from measure import Table, median, rounds

TLSLOAD = muster.BIN / "tests" / "bench" / "tlsload"

NGINX = contenders.NGINX.replace(
    "listen {address}:8000 backlog=4096;",
    f"listen {{address}}:{TLS_PORT} ssl backlog=4096; {NGINX_TLS}")

HAPROXY = contenders.HAPROXY.replace(
    "bind {address}:8000 backlog 4096",
    f"bind {{address}}:{TLS_PORT} backlog 4096 {HAPROXY_TLS}")


class Servers:
    """The origin, and who stands before it, with one certificate."""

    def __init__(self, tmp, kind):
        self.net, self.all, self.tmp = muster.Net(), [], tmp
        make_certificate(tmp, kind)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self):
        origin = self.net.address()
        place = self.tmp / "origin"
        (place / "www").mkdir(parents=True)
        for name, size in contenders.FILES.items():
            (place / "www" / name).write_bytes(b"x" * size)
        self._serve("origin", "nginx -c", contenders.ORIGIN, 8080, LOAD_CPU,
                    address=origin)
        self.all.append(SecureMuster(self.tmp, self.net.address(), origin,
                                     1, {PROXY_CPU}))
        for name, argv, conf in (("nginx", "nginx -c", NGINX),
                                 ("haproxy", "haproxy -f", HAPROXY)):
            self._serve(name, argv, conf, TLS_PORT, PROXY_CPU, origin=origin,
                        address=self.net.address())

    def _serve(self, name, argv, conf, port, cpu, address, **values):
        place = self.tmp / name
        place.mkdir(exist_ok=True)
        (place / "conf").write_text(conf.format(
            dir=place, address=address, workers=1, tls=self.tmp, splice="",
            splice_global="", **values))
        self.all.append(Server(name, [*argv.split(), place / "conf"], address,
                               port, {cpu}))

    @property
    def contenders(self):
        return self.all[1:]

    def close(self):
        for server in reversed(self.all):
            server.close()
        self.net.close()


def shake(server, n, *options):
    before = server.cpu_s()
    out = subprocess.run(
        ["taskset", "-c", str(LOAD_CPU), TLSLOAD, "-n", str(n), *options,
         HOST, f"{server.address}:{server.port}"],
        check=True, stdout=subprocess.PIPE).stdout
    taken = json.loads(out)
    if taken["resumed"] != (n if "--resume" in options else 0):
        raise RuntimeError(f"{server.name}: {taken}")
    cpu = (server.cpu_s() - before) / n
    return {"cpu": cpu, "rate": 1 / cpu}


def load(server, path, connections):
    return wrk(server, path, connections, seconds=2, scheme="https")


# what: (key, how it is measured, what one is called)
ROWS = {
    "new-rsa": ("rsa", lambda s, n: shake(s, n), "handshake"),
    "new-ecdsa": ("ecdsa", lambda s, n: shake(s, n), "handshake"),
    "new-tls12": ("ecdsa", lambda s, n: shake(s, n, "--tls12"), "handshake"),
    "resumed": ("ecdsa", lambda s, n: shake(s, n, "--resume"), "handshake"),
    "5": ("ecdsa", lambda s, n: load(s, "/5", 64), "request"),
    "10k": ("ecdsa", lambda s, n: load(s, "/10k", 64), "request"),
    "20M": ("ecdsa", lambda s, n: load(s, "/20M", 4), "body"),
}


def compare(tmp, name, n_rounds, n):
    kind, run, one = ROWS[name]
    field = Servers(tmp, kind)
    try:
        got = rounds({s.name: (lambda s=s: run(s, n))
                      for s in field.contenders}, n_rounds)
        memory = {s.name: s.rss_kb() for s in field.contenders}
    finally:
        field.close()
    table = Table(f"TLS, {name} ({kind}): CPU a {one}")
    peers = [p for p in got if p != "muster"]
    for peer in peers:
        table.figure(peer, [r["cpu"] for r in got[peer]])
    best = min(peers, key=lambda p: median(got[p], "cpu"))
    table.ratio("muster", [r["cpu"] for r in got["muster"]], best,
                median(got[best], "cpu"), 1.0)
    for who in got:
        table.figure(f"{who}, rate", [r["rate"] for r in got[who]],
                     lambda v: f"{v:.0f}/s")
    for who, kb in memory.items():
        table.figure(f"{who}, memory", [kb], measure.megabytes)
    return table.show()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--handshakes", type=int, default=1000)
    p.add_argument("--only", default=",".join(ROWS),
                   help=f"of {', '.join(ROWS)}")
    args = p.parse_args()
    kept = True
    for name in args.only.split(","):
        tmp = Path(tempfile.mkdtemp(prefix="muster-bench."))
        tmp.chmod(0o755)
        try:
            kept = compare(tmp, name, args.rounds, args.handshakes) and kept
        finally:
            shutil.rmtree(tmp, ignore_errors=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
