"""TLS for tests: an authority of one's own, clients that check everything,
and proxies that are spoken to by them.

A TlsSocket ends with "fin" (proxy.py) only when the other side has said so
with close_notify: what was cut off raises ConnectionResetError, as with a
plain socket that was reset.
"""

import atexit
import functools
import http.client
import select
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
from pathlib import Path

import muster
import proxy as px

TLS_PORT = 8443
OP_IGNORE_UNEXPECTED_EOF = 1 << 7  # OpenSSL's; Python sets it, without a name
NEW_KEY = {
    "ecdsa": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "rsa": ["-newkey", "rsa:2048"],
}


def openssl(*argv, text=None, timeout=muster.PATIENCE_S):
    """(exit status, all it wrote)"""
    done = subprocess.run(["openssl", *map(str, argv)], input=text or "",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=timeout, check=False,
                          errors="replace")
    return done.returncode, done.stdout


def must(*argv):
    status, out = openssl(*argv)
    assert status == 0, out
    return out


class Authority:
    """A root, and an intermediate that signs certificates and says that they
    are not revoked."""

    def __init__(self, dir):
        dir.mkdir(parents=True)
        self.dir, self.n = dir, 0
        self.cert, root_key = dir / "root.crt", dir / "root.key"
        self.signer, self.key = dir / "ca.crt", dir / "ca.key"
        must("req", "-x509", *NEW_KEY["ecdsa"], "-nodes", "-keyout", root_key,
             "-out", self.cert, "-days", "100", "-subj", "/CN=Test Root")
        self._sign("CN=Test CA", self.key, self.signer, self.cert, root_key,
                   "basicConstraints=critical,CA:TRUE", "ecdsa", 90)

    def _sign(self, subject, key, cert, ca, ca_key, extension, kind, days):
        self.n += 1
        csr, ext = key.with_suffix(".csr"), key.with_suffix(".ext")
        ext.write_text(extension)
        must("req", *NEW_KEY[kind], "-nodes", "-keyout", key, "-out", csr,
             "-subj", f"/{subject}")
        must("x509", "-req", "-in", csr, "-CA", ca, "-CAkey", ca_key,
             "-set_serial", str(1000 + self.n), "-days", str(days), "-out",
             cert, "-extfile", ext)

    def issue(self, *names, kind="ecdsa", days=30):
        """(certificate with its chain, key): two files."""
        base = self.dir / str(self.n)
        cert, key = base.with_suffix(".crt"), base.with_suffix(".key")
        self._sign("CN=test", key, cert, self.signer, self.key,
                   "subjectAltName=" + ",".join(f"DNS:{n}" for n in names),
                   kind, days)
        with open(cert, "a") as chain:
            chain.write(self.signer.read_text())
        return cert, key

    def staple(self, cert):
        """An OCSP response for one that it has issued."""
        index, request = cert.with_suffix(".idx"), cert.with_suffix(".req")
        response = cert.with_suffix(".ocsp")
        serial = must("x509", "-in", cert, "-noout", "-serial")
        index.write_text("V\t401231235959Z\t\t"
                         f"{serial.strip().partition('=')[2]}\tunknown"
                         "\t/CN=test\n")
        must("ocsp", "-issuer", self.signer, "-cert", cert, "-reqout",
             request, "-no_nonce")
        must("ocsp", "-index", index, "-CA", self.signer, "-rsigner",
             self.signer, "-rkey", self.key, "-reqin", request, "-respout",
             response, "-ndays", "2")
        return response

    def context(self, version=None, ciphers=None, alpn=None):
        """A client's, which trusts nobody else."""
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        c.load_verify_locations(self.cert)
        c.sslsocket_class = TlsSocket
        c.options &= ~OP_IGNORE_UNEXPECTED_EOF
        if version:
            c.minimum_version = c.maximum_version = version
        if ciphers:
            c.set_ciphers(ciphers)
        if alpn:
            c.set_alpn_protocols(alpn)
        return c


@functools.cache
def authority():
    """The one of all tests of a process: keys take time to make."""
    dir = Path(tempfile.mkdtemp(prefix="muster-ca-"))
    atexit.register(shutil.rmtree, dir)
    return Authority(dir / "ca")


@functools.cache
def issued(*names, kind="ecdsa"):
    """(certificate, key) of that authority, the same for all who ask."""
    return authority().issue(*names, kind=kind)


def says_no_close_notify(e):
    return (isinstance(e, ssl.SSLEOFError)
            or e.reason == "UNEXPECTED_EOF_WHILE_READING")


class TlsSocket(ssl.SSLSocket):
    """One that two threads may use, one for each direction: OpenSSL is in one
    call at a time, and none of them waits in it."""

    def begin(self):
        """After the handshake."""
        self.lock = threading.Lock()
        self.patience = self.gettimeout()
        socket.socket.setblocking(self, False)

    def settimeout(self, timeout):
        self.patience = timeout

    def setblocking(self, flag):
        self.patience = None if flag else 0

    def _try(self, call, *args):
        while True:
            try:
                with self.lock:
                    return call(*args)
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN)
            except ssl.SSLWantWriteError:
                self._wait(select.POLLOUT)

    def _wait(self, what):
        if self.patience == 0:
            raise BlockingIOError
        poll = select.poll()
        poll.register(self.fileno(), what)
        if not poll.poll(self.patience and self.patience * 1000):
            raise TimeoutError("timed out")

    def recv(self, size=1024, flags=0):
        try:
            return self._try(super().recv, size, flags)
        except ssl.SSLError as e:
            if not says_no_close_notify(e):
                raise
            raise ConnectionResetError(str(e)) from e

    def recv_into(self, buffer, size=None, flags=0):
        data = self.recv(size or len(buffer), flags)
        buffer[:len(data)] = data
        return len(data)

    def sendall(self, data, flags=0):
        view = memoryview(data).cast("B")
        while view:
            view = view[self._try(super().send, view, flags):]

    def shutdown(self, how):
        """As a client that says nothing more and still reads."""
        socket.socket.shutdown(self, how)


def wrap(sock, context, name="a", session=None):
    s = context.wrap_socket(sock, server_hostname=name, session=session,
                            suppress_ragged_eofs=False)
    s.begin()
    return s


def connection(context, name="a"):
    """A class for live_proxy.Load."""
    class Connection(http.client.HTTPConnection):
        def connect(self):
            super().connect()
            self.sock = wrap(self.sock, context, name)
    return Connection


def give(ctl, site, cert, key, *options):
    ctl("site", "cert", site, "--cert", cert, "--key", key, *options)


class SecureProxy(px.Proxy):
    """One whose clients speak TLS; sites a and b have certificates."""

    SCHEME = b"https"
    CLIENT_PORT = TLS_PORT
    TUNNEL_BYTES = 18 << 10  # nearly all of it OpenSSL's

    def __init__(self, tmp, *args, settings=None, **options):
        self.ca = authority()
        self.context = self.ca.context()
        super().__init__(tmp, *args, settings=settings, **options)
        for site in ("a", "b"):
            give(self.ctl, site, *issued(site))
        self.ctl("set", "proxy.https.default_cert", "a")
        self.ctl("set", "proxy.https.listen", f"{self.address}:{TLS_PORT}")
        muster.wait_for(self._answers, what="HTTPS")

    def _answers(self):
        try:
            self.connect().close()
        except OSError:
            return False
        return True

    def plain(self, port=TLS_PORT):
        return px.connect(self.address, port)

    def connect(self, name="a", context=None, session=None):
        sock = self.plain()
        try:
            return wrap(sock, context or self.context, name, session)
        except BaseException:
            sock.close()
            raise
