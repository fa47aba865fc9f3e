"""Traffic of all kinds at once, over TLS, of which every byte is checked.

Origin answers what the path says and tells an upload's hash; each Actor does
one kind of thing again and again.  What is not what it should be is noted:
`wrong` are lies (other bytes, an end that is told to be one and is none),
`failed` are honest failures (a connection cut, a 5xx), which a test may
expect when it kills something.
"""

import hashlib
import http.client
import os
import threading
import zlib

import live_proxy
import muster
import proxy as px
import secure
import ws

K, MB = 1024, 1 << 20
BLOCK = b"".join(b"%07d\n" % i for i in range(8 * K))  # 64 KiB


def pieces(size):
    """The bytes of any body of that size."""
    while size > 0:
        yield BLOCK[:size]
        size -= min(size, len(BLOCK))


def digest(size):
    h = hashlib.sha256()
    for piece in pieces(size):
        h.update(piece)
    return h.hexdigest()


class Origin(px.RawOrigin):
    """GET /KIND/SIZE; POST: the hash of what came; /ws: an echo."""

    def _serve(self, sock):
        try:
            rest = b""
            while True:
                head, rest = px.read_head(sock, rest)
                if head is None:
                    break
                rest = self._answer(sock, head, rest)
                if rest is None:
                    break
        except (OSError, EOFError):
            pass
        finally:
            with self.lock:
                self.sockets.discard(sock)
            sock.close()

    def _answer(self, sock, head, rest):
        if px.field(head, b"Upgrade"):
            ws.echo_script(sock, head, b"")
            return None
        h, got = hashlib.sha256(), 0
        if px.field(head, b"Transfer-Encoding"):
            body, rest = px.read_body(sock, head, rest)
            if rest is None:
                return None
            body = unchunked(body)
            h.update(body)
            got = len(body)
        else:
            left = int((px.field(head, b"Content-Length") or [b"0"])[0])
            while left > 0:
                data = rest or sock.recv(1 << 20)
                if not data:
                    return None
                h.update(data[:left])
                got += len(data[:left])
                rest = data[left:]
                left -= min(left, len(data))
        if head.startswith(b"POST"):
            body = b"%d %s" % (got, h.hexdigest().encode())
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"
                         % (len(body), body))
            return rest
        return rest if self._give(sock, head) else None

    @staticmethod
    def _give(sock, head):
        _, kind, size = head.split(b" ")[1].split(b"/")
        top = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
        if kind == b"length":
            top += b"Content-Length: %d\r\n" % int(size)
        elif kind == b"chunked":
            top += b"Transfer-Encoding: chunked\r\n"
        else:
            top += b"Connection: close\r\n"
        sock.sendall(top + b"\r\n")
        for piece in pieces(int(size)):
            sock.sendall(b"%x\r\n%s\r\n" % (len(piece), piece)
                         if kind == b"chunked" else piece)
        if kind == b"chunked":
            sock.sendall(b"0\r\n\r\n")
        return kind != b"close"


def unchunked(data):
    out = []
    while True:
        line, _, data = data.partition(b"\r\n")
        size = int(line, 16)
        if size == 0:
            return b"".join(out)
        out.append(data[:size])
        data = data[size + 2:]


class Actor:
    """Does one thing in threads until it is told to stop."""

    def __init__(self, proxy, n=1, **options):
        self.proxy = proxy
        self.options = options
        self.wrong, self.failed, self.done = [], [], 0
        self.lock = threading.Lock()
        self.ending = threading.Event()
        self.context = secure.authority().context()
        self.threads = [threading.Thread(target=self._run, daemon=True)
                        for _ in range(n)]
        for t in self.threads:
            t.start()

    def connect(self, host="a"):
        s = px.connect(self.proxy.address, secure.TLS_PORT)
        try:
            return secure.wrap(s, self.context, host)
        except BaseException:
            s.close()
            raise

    def _run(self):
        conn = None
        while not self.ending.is_set():
            try:
                conn = self.act(conn)
                self.done += 1
            except AssertionError as e:
                self.note(self.wrong, e)
                conn = self.drop(conn)
            except (OSError, http.client.HTTPException, EOFError) as e:
                self.note(self.failed, e)
                conn = self.drop(conn)
        self.drop(conn)

    @staticmethod
    def drop(conn):
        if conn is not None:
            conn.close()

    def note(self, where, e):
        with self.lock:
            where.append(f"{type(self).__name__} {self.options}: "
                         f"{type(e).__name__}: {e}"[:300])

    def more(self, n=1):
        goal = self.done + n
        muster.wait_for(lambda: self.done >= goal,
                        what=f"{n} more of {type(self).__name__}")

    def stop(self):
        self.ending.set()
        for t in self.threads:
            t.join(muster.PATIENCE_S)
            assert not t.is_alive(), f"{type(self).__name__} hangs"


class Http(Actor):
    """Whole exchanges on kept connections."""

    def act(self, conn):
        if conn is None:
            conn = http.client.HTTPConnection(self.proxy.address,
                                              secure.TLS_PORT,
                                              timeout=muster.PATIENCE_S)
            conn.sock = self.connect(self.options.get("host", "a"))
        self.ask(conn, self.options.get("host", "a"))
        r = conn.getresponse()
        self.check(r)
        if r.will_close:
            conn.close()
            return None
        return conn

    def fail_on(self, r, body):
        if r.status >= 500:
            raise http.client.HTTPException(f"{r.status} {body[:60]!r}")
        assert r.status == 200, (r.status, body[:100])


class Get(Http):
    """kind, size; gzip: the answer may be compressed; pace: bytes before a
    pause, as a slow client."""

    def ask(self, conn, host):
        o = self.options
        more = {"Accept-Encoding": "gzip"} if o.get("gzip") else {}
        conn.request("GET", f"/{o.get('kind', 'length')}/{o['size']}",
                     headers={"Host": host, **more})

    def check(self, r):
        h, n = hashlib.sha256(), 0
        z = zlib.decompressobj(31) if r.headers["Content-Encoding"] else None
        while data := r.read(self.options.get("pace", 1 << 20)):
            if r.status != 200:
                self.fail_on(r, data)
            data = z.decompress(data) if z else data
            h.update(data)
            n += len(data)
            if self.options.get("pace"):
                self.ending.wait(0.01)
        assert n == self.options["size"], f"{n} bytes and an honest end"
        assert h.hexdigest() == digest(n), "other bytes"
        assert z is None or z.eof


class Post(Http):
    """size; chunked."""

    def ask(self, conn, host):
        o = self.options
        if o.get("chunked"):
            conn.request("POST", "/", body=pieces(o["size"]),
                         headers={"Host": host}, encode_chunked=True)
        else:
            conn.request("POST", "/", body=pieces(o["size"]), headers={
                "Host": host, "Content-Length": str(o["size"])})

    def check(self, r):
        body = r.read()
        self.fail_on(r, body)
        size = self.options["size"]
        assert body.decode() == f"{size} {digest(size)}", body


class Tunnel(Actor):
    """A WebSocket that is kept, with echoes of all sizes."""

    def act(self, conn):
        if conn is None:
            conn = Held(ws.open_client(self))
        conn.n += 1
        conn.peer.echo(os.urandom(conn.n * 977 % 100000), ws.BINARY)
        self.ending.wait(0.005)
        return conn


class Held:
    def __init__(self, peer):
        self.peer, self.n = peer, 0

    def close(self):
        self.peer.sock.close()


def start(tmp, settings=None, **options):
    """A proxy with two origins, and TLS for sites a and b: a's requests are
    collected, b's go through."""
    p = live_proxy.LiveProxy(tmp, settings={
        "proxy.pool_idle_timeout": "1s", **(settings or {})}, **options)
    for i in range(2):
        origin = Origin(p.cluster.net.address(), live_proxy.PORT)
        p.raw.append(origin)
        p.ctl("node", "add", f"n{i + 1}", origin.address, "--role",
              "worker_http")
    for site in ("a", "b"):
        secure.give(p.ctl, site, *secure.issued(site))
    p.ctl("site", "set", "a", "--compress", "gzip")
    p.ctl("site", "set", "b", "--request-buffering", "off")
    p.set({"proxy.https.listen": f"{p.address}:{secure.TLS_PORT}"})
    p.await_revision()
    return p


def settled(p):
    """Nothing is held for anybody."""
    return all(w[k] == 0 for w in p.workers() for k in (
        "clients", "tunnels", "spool_bytes", "collecting", "delivering",
        "queued", "handshaking", "node_connections")) and all(
        n["active"] == 0 for n in p.nodes().values())
