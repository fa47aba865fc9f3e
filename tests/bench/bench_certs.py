#!/usr/bin/python3
"""certs: many certificates: how long a start takes with them and how much
memory they cost, beside nginx and HAProxy with the same ones; and how soon a
renewed one is in force.

usage: bench_certs.py [--number 10000] [--rounds 3]
"""

import argparse
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measure
import muster
from contenders import children
from measure import Table, median, megabytes, rounds

MANY = muster.BIN / "tests" / "bench" / "manycerts"
PORT = 8443

NGINX = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/err error;
events {{ worker_connections 1024; }}
http {{
  access_log off; server_names_hash_max_size 131072;
  server_names_hash_bucket_size 128;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p;
  fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  {servers}
}}
"""
NGINX_SITE = """server {{ listen {address}:{port} ssl;
  server_name {site} www.{site};
  ssl_certificate {pem}; ssl_certificate_key {pem}; return 200 "ok"; }}
"""
HAPROXY = """
global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend f
  bind {address}:{port} ssl crt {dir}/pem
  http-request return status 200
"""


def served(address, site):
    """The certificate (DER) of a site, or None."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((address, PORT), timeout=5) as raw, \
                context.wrap_socket(raw, server_hostname=site) as s:
            return s.getpeercert(binary_form=True)
    except OSError:
        return None


def family(pid):
    return [pid, *(p for c in children(pid) for p in family(c))]


def together_kb(pids):
    """What they take together: what is shared counts once, memory files
    whole, whether somebody has looked at them yet or not."""
    pss = {"Pss_Anon": 0, "Pss_File": 0, "Pss_Shmem": 0}
    files = {}
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n"):
            name, _, value = line.partition(":")
            if name in pss:
                pss[name] += int(value.split()[0])
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            if os.readlink(fd).startswith("/memfd:"):
                st = fd.stat()
                files[st.st_ino] = st.st_blocks // 2
    shared = sum(files.values()) if files else pss["Pss_Shmem"]
    return pss["Pss_Anon"] + pss["Pss_File"] + shared


def cpu_s(pids):
    tick = os.sysconf("SC_CLK_TCK")
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
              for pid in pids]
    return sum(int(f[11]) + int(f[12]) for f in fields) / tick


class Bench:
    def __init__(self, tmp, n):
        self.tmp, self.n, self.net = tmp, n, muster.Net()
        self.address = self.net.address()
        self.last = f"s{n - 1}.example"
        self.state = tmp / "state"
        self.ctl("init", "--cluster", "bench", "--name", "m1", "--address",
                 f"{self.address}:7400")
        measure.progress(f"making {n} certificates")
        export = tmp / "export.json"
        with open(export, "wb") as out:
            subprocess.run([MANY, tmp, str(n)], stdout=out, check=True)
        shutil.move(tmp / "tls", self.state / "tls")
        self.ctl("registry", "apply", export)
        for key, value in (("proxy.https.listen", f"{self.address}:{PORT}"),
                           ("proxy.http.listen", f"{self.address}:8000"),
                           ("proxy.status.listen", f"{self.address}:7480"),
                           ("proxy.workers", "1")):
            self.ctl("set", key, value)
        self._configure()

    def ctl(self, *args):
        subprocess.run([muster.program("clusterctl"), "--state", self.state,
                        *map(str, args)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                       env=muster.clean_env())

    def _configure(self):
        pem = self.tmp / "pem"
        servers = "".join(NGINX_SITE.format(
            address=self.address, port=PORT, site=f"s{i}.example",
            pem=pem / f"s{i}.example.pem") for i in range(self.n))
        (self.tmp / "nginx.conf").write_text(NGINX.format(dir=self.tmp,
                                                          servers=servers))
        (self.tmp / "haproxy.cfg").write_text(HAPROXY.format(
            address=self.address, port=PORT, dir=self.tmp))
        self.argvs = {
            "muster": [muster.program("proxyd"), "--state", str(self.state),
                       "run"],
            "nginx": ["/usr/sbin/nginx", "-p", str(self.tmp), "-c",
                      "nginx.conf"],
            "haproxy": ["/usr/sbin/haproxy", "-f",
                        str(self.tmp / "haproxy.cfg")],
        }

    def start(self, name):
        """Starts it; {wall, cpu, kb} once the last site is served."""
        begin = time.monotonic()
        proc = subprocess.Popen(self.argvs[name], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL,
                                env=muster.clean_env())
        try:
            muster.wait_for(lambda: served(self.address, self.last), 600,
                            f"{name} to serve")
            taken = {"wall": time.monotonic() - begin}
            pids = family(proc.pid)
            taken.update(cpu=cpu_s(pids), kb=together_kb(pids))
            if name == "muster":
                taken["renewed"] = self._renew()
        finally:
            proc.terminate()
            proc.wait(60)
        return taken

    def _renew(self):
        """Seconds from the command's end until clients get the new one."""
        other = self.tmp / "pem" / "s0.example.pem"
        mine = self.tmp / "pem" / f"{self.last}.pem"
        want = [ssl.PEM_cert_to_DER_cert(p.read_text().partition(
            "-----END CERTIFICATE-----\n")[0] + "-----END CERTIFICATE-----\n")
            for p in (mine, other)]
        for pem, der in ((other, want[1]), (mine, want[0])):
            self.ctl("site", "cert", self.last, "--cert", pem, "--key", pem,
                     "--partial")  # s0's names
            begin = time.monotonic()
            muster.wait_for(lambda: served(self.address, self.last) == der,
                            60, "the renewed certificate")
        return time.monotonic() - begin

    def close(self):
        self.net.close()


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--number", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    tmp = Path(tempfile.mkdtemp(prefix="muster-bench-"))
    try:
        bench = Bench(tmp, args.number)
        names = [n for n, argv in bench.argvs.items()
                 if Path(argv[0]).exists()]
        got = rounds({n: lambda n=n: bench.start(n) for n in names},
                     args.rounds)
        bench.close()
    finally:
        shutil.rmtree(tmp)
    table = Table(f"{args.number} certificates, RSA 2048, one intermediate")
    for what, key, show in (("start until served", "wall", measure.seconds),
                            ("CPU of a start", "cpu", measure.seconds),
                            ("memory", "kb", megabytes)):
        for name in names[1:]:
            table.figure(f"{name}: {what}", [r[key] for r in got[name]],
                         show)
        best = min(names[1:], key=lambda n: median(got[n], key))
        table.ratio(f"muster: {what}", [r[key] for r in got["muster"]], best,
                    median(got[best], key), 1, show)
    table.limit("muster: renewed, in force after",
                [r["renewed"] for r in got["muster"]], 2.0)
    return 0 if table.show() else 1


if __name__ == "__main__":
    sys.exit(main())
