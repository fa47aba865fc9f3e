"""A site with static files: its home, the proxy before it, a node behind."""

import gzip
import re
import shutil
import tempfile
from pathlib import Path

import muster
import proxy as px
import webservers

NODE, OURS = "node", "static"


class Answer:
    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        self.head = head
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.fields[name.lower()] = value.strip()
        if self.fields.get("transfer-encoding") == "chunked":
            self.body = unchunk(self.body)

    @property
    def by(self):
        return OURS if self.fields.get("x-muster-why") == "static" else NODE

    @property
    def content(self):
        """The body, comparable: uncompressed, its parts without boundary."""
        if self.fields.get("content-encoding") == "gzip":
            return gzip.decompress(self.body)
        kind = self.fields.get("content-type", "")
        if kind.startswith("multipart/byteranges"):
            boundary = kind.partition("boundary=")[2].strip('"').encode()
            parts = self.body.split(b"--" + boundary)[1:-1]
            return [(re.search(rb"(?i)content-range: ([^\r]*)", p)[1],
                     p.partition(b"\r\n\r\n")[2]) for p in parts]
        return self.body


def unchunk(data):
    out = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        n = int(size, 16)
        out, data = out + data[:n], data[n + 2:]
        if n == 0:
            break
    return out


# What Debian's Apache has beyond webservers.py.
APACHE = """
LoadModule access_compat_module /usr/lib/apache2/modules/mod_access_compat.so
LoadModule negotiation_module /usr/lib/apache2/modules/mod_negotiation.so
ServerSignature Off
DirectoryIndex index.html index.cgi index.pl index.php index.xhtml index.htm
<FilesMatch "^\\.ht">
    Require all denied
</FilesMatch>
"""


class Site:
    """The home, and both ways to it."""

    def __init__(self, tmp, real=False, **options):
        """real: the node is an Apache on the same home."""
        self.home = Path(tempfile.mkdtemp(prefix="muster-home-"))
        self.home.chmod(0o755)
        self.proxy = px.Proxy(
            tmp, settings={"proxy.trusted": "127.0.0.0/8"},
            origin=self._apache if real else None, **options)
        self.node = self.proxy.origin
        self.set("--home", self.home, "--static", "on")

    def _apache(self, address):
        return webservers.Apache(address, docs=self.home, workers=8,
                                 more=APACHE)

    def set(self, *options):
        self.proxy.ctl("site", "set", "a", *options)

    def write(self, path, content="", mode=0o644):
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes)
                         else content.encode())
        file.chmod(mode)
        return file

    @staticmethod
    def ask(sock, path, *fields, method="GET"):
        lines = [f"{method} {path} HTTP/1.1", "Host: a", "Connection: close",
                 *fields, "", ""]
        with sock as s:
            s.sendall("\r\n".join(lines).encode())
            return Answer(px.read_all(s)[0])

    def direct(self, path, *fields, **options):
        return self.ask(px.connect(self.node.address, self.node.port), path,
                        *fields, **options)

    def through(self, path, *fields, **options):
        return self.ask(self.proxy.connect(), path, "X-Muster-Why: 1",
                        *fields, **options)

    def serves(self, path, by, status=200, **options):
        muster.wait_for(lambda: (a := self.through(path, **options)).by == by
                        and a.status == status, timeout=5,
                        what=f"{status} by {by} for {path}")

    def close(self):
        wrong = self.proxy.close()
        shutil.rmtree(self.home)
        return wrong
