"""Clients that read or write a kilobyte a second, any number of them."""

import errno
import socket
import threading
import time

BITE = 1000  # bytes a second


class Slow:
    """One client: asks for `path`, or posts `size` bytes to it."""

    def __init__(self, address, port, host, path, size=None):
        self.sent = self.got = 0
        self.head = b""
        self.failed = None
        if size is None:
            self.out = (f"GET {path} HTTP/1.1\r\nHost: {host}\r\n"
                        "Connection: close\r\n\r\n").encode()
            self.at_once = len(self.out)
        else:
            head = (f"POST {path} HTTP/1.1\r\nHost: {host}\r\n"
                    f"Content-Length: {size}\r\nConnection: close\r\n\r\n")
            self.out = head.encode() + b"x" * size
            self.at_once = len(head)
        self.sock = socket.socket()
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        # As from afar: the loopback's segments of 64 KB would let kernels
        # take up megabytes by themselves.
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
        code = self.sock.connect_ex((address, port))
        if code not in (0, errno.EINPROGRESS):
            self.fail(OSError(code, "connect"))

    def fail(self, why):
        self.failed = str(why) or type(why).__name__
        self.close()

    def close(self):
        if self.sock is not None:
            self.sock.close()
        self.sock = None

    @property
    def done(self):
        return self.sock is None

    @property
    def status(self):
        return int(self.head[9:12]) if len(self.head) >= 12 else None

    def bite(self):
        """A second has passed."""
        try:
            if self.sent < len(self.out):
                end = max(self.at_once, self.sent + BITE)
                self.sent += self.sock.send(self.out[self.sent:end])
                return
            data = self.sock.recv(BITE)
            self.head += data[:max(0, 12 - len(self.head))]
            self.got += len(data)
            if not data:
                self.close()
                if self.got == 0:
                    self.failed = "closed without an answer"
        except BlockingIOError:
            pass
        except OSError as e:
            self.fail(e)


class SlowCrowd(threading.Thread):
    """Many, looked after by one thread until end() is called."""

    def __init__(self, clients):
        super().__init__(daemon=True)
        self.clients = clients
        self.ending = threading.Event()
        self.rounds = 0
        self.start()

    def run(self):
        """A fifth of them in each fifth of a second."""
        while not self.ending.wait(max(0, 0.2 - time.monotonic() % 0.2)):
            for client in self.clients[self.rounds % 5::5]:
                if not client.done:
                    client.bite()
            self.rounds += 1

    @property
    def failures(self):
        return [c.failed for c in self.clients if c.failed]

    @property
    def refused(self):
        """Those that got an answer that is none of a node's."""
        return [c.status for c in self.clients
                if c.status is not None and c.status >= 400]

    def end(self):
        self.ending.set()
        self.join(10)
        for client in self.clients:
            client.close()
