"""WebSockets for tests: frames over raw sockets, both ends of a tunnel."""

import base64
import hashlib
import os
import queue
import struct
import threading

import muster
import proxy as px

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def accept_of(key):
    return base64.b64encode(hashlib.sha1(key + GUID).digest())


def request(key, path="/ws", host="a", more=""):
    return (f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key.decode()}\r\n"
            f"Sec-WebSocket-Version: 13\r\n{more}\r\n").encode()


def switch(head):
    """The 101 for a request's head."""
    key = px.field(head, b"Sec-WebSocket-Key")[0]
    return (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Accept: "
            + accept_of(key) + b"\r\n\r\n")


class Peer:
    """One end of a WebSocket; the client's end masks."""

    def __init__(self, sock, rest=b"", masks=False):
        self.sock, self.data, self.masks = sock, rest, masks

    def send(self, data, opcode=TEXT, fin=True):
        size = len(data)
        head = bytes([fin << 7 | opcode])
        wide = (struct.pack("!B", size) if size < 126 else
                struct.pack("!BH", 126, size) if size < 65536 else
                struct.pack("!BQ", 127, size))
        if self.masks:
            wide = bytes([wide[0] | 0x80]) + wide[1:]
            key = os.urandom(4)
            wide += key
            data = xor(data, key)
        self.sock.sendall(head + wide + data)

    def _take(self, size):
        while len(self.data) < size:
            more = self.sock.recv(1 << 20)
            if not more:
                raise EOFError
            self.data += more
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def recv(self):
        """(opcode, fin, payload) of the next frame."""
        first, second = self._take(2)
        size = second & 0x7f
        if size >= 126:
            wide = self._take(2 if size == 126 else 8)
            size = int.from_bytes(wide, "big")
        key = self._take(4) if second & 0x80 else None
        data = self._take(size)
        return first & 15, bool(first >> 7), xor(data, key) if key else data

    def echo(self, data, opcode=TEXT):
        """Sends, and asserts that the same comes back."""
        self.send(data, opcode)
        assert self.recv() == (opcode, True, data)

    def goodbye(self):
        """The closing handshake; the server is the first to end."""
        self.send(b"\x03\xe8", CLOSE)
        assert self.recv() == (CLOSE, True, b"\x03\xe8")
        assert px.read_all(self.sock) == (b"", "fin")
        self.sock.close()


def xor(data, key):
    n = len(data)
    pad = (key * (n // 4 + 1))[:n]
    return (int.from_bytes(data, "big")
            ^ int.from_bytes(pad, "big")).to_bytes(n, "big")


def open_client(proxy, path="/ws", host="a", more=""):
    """A client whose handshake went well."""
    sock = proxy.connect()
    key = base64.b64encode(os.urandom(16))
    sock.sendall(request(key, path, host, more))
    head, rest = px.read_head(sock)
    assert head.startswith(b"HTTP/1.1 101 "), head
    assert px.field(head, b"Sec-WebSocket-Accept") == [accept_of(key)]
    assert px.field(head, b"Connection") == [b"Upgrade"]
    return Peer(sock, rest, masks=True)


def echo_script(sock, head, body):
    """For RawOrigin: a server that sends back what comes, and before a text
    that begins with "ping" sends a ping of its own."""
    sock.sendall(switch(head))
    peer = Peer(sock)
    while True:
        try:
            opcode, fin, data = peer.recv()
        except EOFError:
            return False
        if opcode == CLOSE:
            peer.send(data, CLOSE)
            return False
        if data.startswith(b"ping") and opcode == TEXT:
            peer.send(b"from the node", PING)
        if opcode != PONG:
            peer.send(data, PONG if opcode == PING else opcode, fin)


class Tunnels:
    """Tunnels of which the test holds both ends, as raw sockets."""

    def __init__(self, proxy):
        self.proxy = proxy
        self.ends, self.over = queue.Queue(), threading.Event()
        self.sockets = []
        for origin in proxy.origins:
            origin.script = self._script

    def _script(self, sock, head, body):
        sock.sendall(switch(head))
        self.ends.put(sock)
        self.over.wait()
        return False

    def open(self):
        """(client's end, node's end)"""
        client = open_client(self.proxy).sock
        node = self.ends.get(timeout=muster.PATIENCE_S)
        node.settimeout(muster.PATIENCE_S)
        self.sockets.append(client)
        return client, node

    def close(self):
        self.over.set()
        for s in self.sockets:
            s.close()
