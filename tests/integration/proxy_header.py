"""PROXY headers, made and read independently of proxyd's own code, after
HAProxy's specification."""

import ipaddress
import socket
import struct

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
ALPN, AUTHORITY, CRC32C, NOOP, UNIQUE_ID, SSL = 1, 2, 3, 4, 5, 0x20
SSL_VERSION, SSL_CIPHER = 0x21, 0x23


def tlv(kind, value):
    return struct.pack(">BH", kind, len(value)) + value


def ssl(client=1, inside=b""):
    return tlv(SSL, bytes([client, 0, 0, 0, 0]) + inside)


def v1(source="1.2.3.4", port=1, to="5.6.7.8", to_port=80):
    family = "TCP6" if ":" in source else "TCP4"
    return f"PROXY {family} {source} {to} {port} {to_port}\r\n".encode()


def v2(source="1.2.3.4", port=1, to="5.6.7.8", to_port=80, tlvs=b"",
       command=0x21):
    """source None: no addresses."""
    if source is None:
        return v2_raw(command, 0, tlvs)
    a, b = ipaddress.ip_address(source), ipaddress.ip_address(to)
    return v2_raw(command, 0x11 if a.version == 4 else 0x21,
                  a.packed + b.packed + struct.pack(">HH", port, to_port)
                  + tlvs)


def v2_raw(command, family, block, length=None):
    return SIGNATURE + struct.pack(
        ">BBH", command, family, len(block) if length is None else length
    ) + block


class Header:
    """What a header says: version, source and destination (None: not told),
    tlvs by type."""

    def __init__(self, version, source=None, to=None, tlvs=b""):
        self.version, self.source, self.to = version, source, to
        self.tlvs = dict(each_tlv(tlvs))

    @property
    def ssl(self):
        """(client, verify, what is inside), or None."""
        value = self.tlvs.get(SSL)
        return value and (value[0], value[1:5], dict(each_tlv(value[5:])))


def each_tlv(block):
    while block:
        kind, size = struct.unpack(">BH", block[:3])
        assert len(block) >= 3 + size
        yield kind, block[3:3 + size]
        block = block[3 + size:]


def read(data):
    """(Header, what comes behind it); None: it is not whole yet."""
    if data.startswith(SIGNATURE):
        return read_v2(data)
    assert data[:6] == b"PROXY "[:len(data)] or SIGNATURE.startswith(data), \
        data[:60]
    if b"\r\n" not in data or SIGNATURE.startswith(data):
        return None
    line, _, rest = data.partition(b"\r\n")
    words = line.decode().split(" ")
    if words[1] == "UNKNOWN":
        return Header(1), rest
    _, family, source, to, port, to_port = words
    socket.inet_pton(socket.AF_INET if family == "TCP4" else socket.AF_INET6,
                     source)
    return Header(1, (source, int(port)), (to, int(to_port))), rest


def read_v2(data):
    if len(data) < 16 or len(data) < 16 + struct.unpack(">H", data[14:16])[0]:
        return None
    command, family, size = struct.unpack(">BBH", data[12:16])
    block, rest = data[16:16 + size], data[16 + size:]
    if command == 0x20:
        return Header(2), rest
    assert command == 0x21 and family in (0x11, 0x21)
    n = 4 if family == 0x11 else 16
    ports = struct.unpack(">HH", block[2 * n:2 * n + 4])
    source, to = (str(ipaddress.ip_address(block[i:i + n])) for i in (0, n))
    return Header(2, (source, ports[0]), (to, ports[1]),
                  block[2 * n + 4:]), rest
