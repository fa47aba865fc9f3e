"""What tests of proxyd stand on: a proxy before scripted raw origins.

RawOrigin speaks bytes, not HTTP: it notes exactly what reached it and
answers exactly what the test says, however wrong.  talk() is its counterpart
on the client's side.
"""

import re
import socket
import struct
import threading

import muster

LAST_CHUNK = re.compile(rb"(?:^|\r\n)0\r\n\r\n")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def read_head(sock, data=b""):
    """The bytes up to the empty line, and what came behind it."""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            return None, data
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", rest


def field(head, name):
    """All values of a field in a head."""
    return [v.strip() for n, _, v in
            (line.partition(b":") for line in head.split(b"\r\n")[1:])
            if n.lower() == name.lower()]


def read_body(sock, head, data):
    """The raw body that belongs to the head, and what came behind it."""
    need = None
    if field(head, b"Transfer-Encoding"):
        data, need = bytearray(data), 0
        while not (found := LAST_CHUNK.search(data, max(0, need - 8))):
            need = len(data)
            more = sock.recv(1 << 20)
            if not more:
                return bytes(data), None
            data += more
        data, need = bytes(data), found.end()
    elif field(head, b"Content-Length"):
        need = int(field(head, b"Content-Length")[0])
        while len(data) < need:
            more = sock.recv(65536)
            if not more:
                return data, None
            data += more
    return data[:need or 0], data[need or 0:]


def reset(sock):
    """Closes with a RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                    struct.pack("ii", 1, 0))
    sock.close()


class RawOrigin:
    """A server that notes every byte and answers by script.

    origin.script is called as script(sock, head, body) for each request and
    sends what it likes; returning False ends the connection.  Requests are
    in origin.requests as (head, raw body).  One whose body was cut is in
    origin.cut by its head alone: nobody waits for its answer, so it may get
    here when the next test is under way, which must not count it.
    """

    def __init__(self, address, port=9000):
        self.address, self.port = address, port
        self.lock = threading.Lock()
        self.sockets = set()
        self.listener = None
        self.reset()
        self.start()

    def reset(self):
        with self.lock:
            self.script = None
            self.requests, self.cut = [], []
            self.raw = b""
            self.connections = 0

    def start(self):
        self.listener = self.listen()
        threading.Thread(target=self._accept, daemon=True,
                         args=(self.listener,)).start()

    def listen(self):
        return socket.create_server((self.address, self.port), backlog=512)

    def greet(self, sock):
        """What comes before the first request; returns what it read on."""
        return b""

    def stop(self):
        """Refuses connections from now on, and cuts those there are."""
        if self.listener is not None:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
        self.listener = None
        self.drop()

    def close(self):
        self.stop()

    def drop(self):
        """Cuts every connection."""
        with self.lock:
            sockets, self.sockets = self.sockets, set()
        for s in sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.sockets.add(sock)
                self.connections += 1
            threading.Thread(target=self._serve, daemon=True,
                             args=(sock,)).start()

    def _serve(self, sock):
        try:
            rest = self.greet(sock)
            while rest is not None:
                head, rest = read_head(sock, rest)
                if head is None:
                    break
                requests, cut = self.requests, self.cut
                body, rest = read_body(sock, head, rest)
                if rest is None:
                    cut.append(head)
                    break
                with self.lock:
                    requests.append((head, body))
                    script = self.script
                if script is None:
                    sock.sendall(OK)
                elif script(sock, head, body) is False:
                    break
        except OSError:
            pass
        finally:
            with self.lock:
                self.sockets.discard(sock)
            sock.close()


def say(data, then=True):
    """A script that answers every request with the same bytes."""
    def script(sock, head, body):
        sock.sendall(data)
        if then == "reset":
            reset(sock)
        return then is True
    return script


def connect(address, port, timeout=muster.PATIENCE_S):
    s = socket.create_connection((address, port), timeout=timeout)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def read_all(sock):
    """Everything up to the end; (bytes, "fin" or "reset")."""
    data = b""
    try:
        while True:
            more = sock.recv(1 << 20)
            if not more:
                return data, "fin"
            data += more
    except ConnectionResetError:
        return data, "reset"


def statuses(data):
    """The status codes of a stream of responses."""
    return [int(m) for m in re.findall(rb"HTTP/1\.1 (\d{3}) ", data)]


class Proxy:
    """A proxyd of one worker before raw origins, on a net of its own, or
    before what `origin` makes for an address (webservers.py)."""

    SCHEME = b"http"  # as its clients speak
    CLIENT_PORT = 8080
    TUNNEL_BYTES = 1024  # that an idle one may take

    PORT = 8080

    def __init__(self, tmp, origins=1, settings=None, role=(), prefix=(),
                 site=(), origin=None):
        tmp.chmod(0o700)
        self.cluster = muster.Cluster(tmp)
        self.cluster.init(start=False)
        self.address = self.cluster.net.address()
        self.origins = [(origin or RawOrigin)(self.cluster.net.address())
                        for _ in range(origins)]
        self.ctl = self.cluster.ctl
        for i, origin in enumerate(self.origins):
            self.ctl("node", "add", f"n{i + 1}", origin.address,
                     "--role", "worker_http")
        self.ctl("role", "set", "worker_http", "--port", "9000",
                 "--health", "none", *role)
        self.ctl("site", "add", "a", "--role", "worker_http", *site)
        self.ctl("site", "add", "b", "--role", "worker_http")
        for key, value in {
                "proxy.http.listen": f"{self.address}:{self.PORT}",
                "proxy.status.listen": f"{self.address}:7480",
                "proxy.workers": "1", **(settings or {})}.items():
            self.ctl("set", key, *str(value).split())
        self.daemon = self.cluster.daemon(
            "proxyd", *prefix, muster.program("proxyd"), "--state",
            self.cluster.master.state, "run")

    @property
    def origin(self):
        return self.origins[0]

    def connect(self):
        return connect(self.address, self.PORT)

    def talk(self, *pieces, fin=False):
        """Sends the pieces and reads to the end: (bytes, how it ended)."""
        with self.connect() as s:
            for piece in pieces:
                s.sendall(piece)
            if fin:
                s.shutdown(socket.SHUT_WR)
            return read_all(s)

    def reset(self):
        for origin in self.origins:
            origin.reset()

    def close(self):
        for origin in self.origins:
            origin.close()
        return self.cluster.close()
