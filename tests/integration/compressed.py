"""Answers that may be compressed, decoded by the codings' own libraries."""

import random
import zlib

import brotli

import proxy as px


class Decoder:
    """Of one coding; decodes what there is, piece by piece."""

    def __init__(self, coding):
        self.coding = coding
        self.it = (zlib.decompressobj(wbits=31) if coding == "gzip"
                   else brotli.Decompressor())

    def add(self, data):
        if self.coding == "gzip":
            return self.it.decompress(data)
        return self.it.process(data) if data else b""

    @property
    def ended(self):
        return (self.it.eof if self.coding == "gzip"
                else self.it.is_finished())


class Chunks:
    """A chunked body: payload as far as it came."""

    def __init__(self):
        self.raw, self.ended = b"", False

    def add(self, data):
        self.raw += data
        out = b""
        while b"\r\n" in self.raw and not self.ended:
            size, _, rest = self.raw.partition(b"\r\n")
            n = int(size, 16)
            if len(rest) < n + 2:
                break
            out += rest[:n]
            assert rest[n:n + 2] == b"\r\n"
            self.raw, self.ended = rest[n + 2:], n == 0
        return out


class Answer:
    """The one answer in what a connection brought to its end."""

    def __init__(self, raw, how="fin"):
        head, _, body = raw.partition(b"\r\n\r\n")
        self.head, self.how, self.body = head + b"\r\n\r\n", how, body
        self.status = int(head.split()[1])
        self.whole = True
        if self.field("Transfer-Encoding") == "chunked":
            chunks = Chunks()
            self.body = chunks.add(body)
            self.whole = chunks.ended and chunks.raw == b""

    def field(self, name):
        values = px.field(self.head, name.encode())
        assert len(values) <= 1, f"{name}: {values}"
        return values[0].decode() if values else None

    @property
    def coding(self):
        return self.field("Content-Encoding")

    @property
    def content(self):
        """The body, decoded; it must be whole."""
        assert self.whole
        if self.coding is None:
            return self.body
        d = Decoder(self.coding)
        out = d.add(self.body)
        assert d.ended
        return out


def some_text(size):
    """Of words in no order: compresses to a fifth or so."""
    words = [b"<p>", b"</p>\n", b"proxy ", b"of ", b"the ", b"page "]
    n = min(size, 300_000)
    text = b"".join(random.Random(size).choices(words, k=n // 2))[:n]
    return (text * (size // n + 1))[:size] if n else b""
