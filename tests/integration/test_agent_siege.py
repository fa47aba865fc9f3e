"""Strangers: floods, slow bytes, garbage.  Others are served on."""

import contextlib
import json
import resource
import select
import socket
import struct
import time

import pytest

import muster
from agent_client import answer, answers, call, start
from muster import wait_for

PING = {"verb": "ping"}


def dial(cluster, node, source=None):
    return socket.create_connection((cluster[node].address, 7400),
                                    source_address=source and (source, 0))


def first_bytes():
    """The pattern byte of a handshake, and noise for a first message."""
    body = b"\0" + b"A" * 200
    return struct.pack(">H", len(body)) + body


def closed_within(s, seconds):
    s.settimeout(seconds)
    try:
        while s.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


@muster.needs_root
def test_ten_thousand_half_open(cluster3):
    """They push each other out; a client in time gets in; memory and
    descriptors stay bounded."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 11000:
        pytest.skip(f"no more than {hard} descriptors may be had")
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 12000), hard))
    agent, before = cluster3["w1"], cluster3["w1"].rss_kb()
    held = []
    try:
        for i in range(10000):
            # A hundred sources: one alone has too small a bucket.
            source = f"127.201.{i % 100}.1"
            try:
                held.append(dial(cluster3, "w1", source))
            except OSError:
                break
            if i % 1000 == 0:
                assert answer(cluster3, "w1", PING)
        assert answer(cluster3, "w1", PING)
        assert agent.n_fds() < 400
        if not muster.ASAN:  # which hoards what is freed
            assert agent.rss_kb() < before + 4096
    finally:
        for s in held:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    wait_for(lambda: agent.n_fds() < 40)
    assert answer(cluster3, "w1", PING)


def test_one_address_pays_for_itself_alone(shared_cluster):
    for _ in range(700):
        dial(shared_cluster, "w1", "127.202.0.1").close()
    s = dial(shared_cluster, "w1", "127.202.0.1")
    assert closed_within(s, 1)
    assert answer(shared_cluster, "w1", PING)


@pytest.mark.parametrize("data", [
    b"\xff\xff" + b"x" * 3000,          # longer than any handshake
    b"\x00\x00", b"\x00\x01\x00",       # empty, and only a pattern
    b"\x00\x05\x07abcd",                # no such pattern
    b"GET / HTTP/1.1\r\n\r\n" * 10,
    first_bytes(),
    b"\0" * 5000,
], ids=["long", "empty", "bare", "pattern", "http", "noise", "zeros"])
def test_garbage_is_hung_up_on(shared_cluster, data):
    s = dial(shared_cluster, "w1")
    try:
        s.sendall(data)
    except ConnectionError:
        pass
    assert closed_within(s, 8)
    assert answer(shared_cluster, "w1", PING)


def test_a_byte_a_second(shared_cluster):
    """The whole of a handshake has five seconds."""
    began = time.monotonic()
    s = dial(shared_cluster, "w1")
    s.settimeout(1)
    for byte in first_bytes():
        try:
            s.send(bytes([byte]))
            if s.recv(100) == b"":
                break
        except TimeoutError:
            continue
        except ConnectionError:
            break
    assert 3 < time.monotonic() - began < muster.PATIENCE_S / 2


def test_silence_has_five_seconds(shared_cluster):
    began = time.monotonic()
    assert closed_within(dial(shared_cluster, "w1"), muster.PATIENCE_S)
    assert 3 < time.monotonic() - began < muster.PATIENCE_S / 2


def test_a_replay_does_nothing(shared_cluster):
    """Somebody on the line sends all that a client sent once more."""
    mark = shared_cluster.tmp / "replayed"
    append = {"verb": "exec", "shell": f"echo once >> {mark}"}
    with socket.create_server((shared_cluster.net.address(), 0)) as trap:
        ip, port = trap.getsockname()
        client = start(shared_cluster, f"w1@{ip}:{port}", append)
        taken = relay(trap, dial(shared_cluster, "w1"))
        client.communicate(timeout=muster.PATIENCE_S)
    assert client.returncode == 0 and mark.read_text() == "once\n"
    for part in (taken, taken[:300]):
        s = dial(shared_cluster, "w1")
        s.sendall(part)
        assert closed_within(s, 8)
    assert answer(shared_cluster, "w1", PING)
    assert mark.read_text() == "once\n"


def relay(trap, server):
    """Carries one connection to its end; returns what the client sent."""
    client, _ = trap.accept()
    taken = b""
    ends = {client: server, server: client}
    while ends:
        for end in select.select(list(ends), [], [], 10)[0]:
            data = end.recv(65536)
            if end is client:
                taken += data
            if data:
                ends[end].sendall(data)
            else:
                client.close()
                server.close()
                return taken


def carry(client, server, late):
    """From a client to a node and back; all that the client sends (offer), or
    all behind its first message (proof), comes when the node has said its
    last."""
    held = b""
    if late == "proof":
        server.sendall(client.recv(65536))
    while True:
        for end in select.select([client, server], [], [])[0]:
            data = end.recv(65536)
            if end is client and data:
                held += data
            elif end is server and data:
                client.sendall(data)
            elif end is server:
                with contextlib.suppress(OSError):
                    server.sendall(held)
                client.close()
                server.close()
                return


@pytest.mark.parametrize("late, says", [
    ("offer", "gave up the handshake: one of the two machines, or the "),
    ("proof", "the handshake was not finished in time; nothing was begun"),
])
def test_a_late_order_is_not_taken_for_delivered(cluster, late, says):
    """On an overloaded machine a client may be slower than the node waits:
    its order is on the way, but the node never took it."""
    w1 = cluster.add_worker("w1", start=False)
    real = cluster.net.address()
    w1.argv += ["--listen", f"{real}:7400"]
    w1.start()
    mark = cluster.tmp / "mark"
    with socket.create_server((w1.address, 7400)) as trap:
        p = cluster.ctl_start("--json", "exec", "--connect-timeout", "20s",
                              "w1", f"touch {mark}")
        client, _ = trap.accept()
        carry(client, socket.create_connection((real, 7400)), late)
        out, err = p.communicate(timeout=muster.PATIENCE_S)
    assert p.returncode == 4
    assert json.loads(out)["class"] == "unreachable"
    assert "w1: not delivered: unreachable: " in err.decode()
    assert says in err.decode() and not mark.exists()


@pytest.mark.parametrize("request_", [
    "{}", '{"verb":1}', '{"verb":null}', '{"verb":"' + "x" * 100 + '"}',
    '{"verb":"exec"}', '{"verb":"exec","argv":[]}',
    '{"verb":"exec","argv":[""]}', '{"verb":"exec","argv":[1]}',
    '{"verb":"exec","argv":["a"],"shell":"b"}',
    '{"verb":"exec","shell":"true","timeout_ms":-1}',
    '{"verb":"exec","shell":"true","timeout_ms":"1"}',
    '{"verb":"exec","shell":"true","cwd":"relative"}',
    '{"verb":"exec","shell":"true","env":{"A=B":"c"}}',
    '{"verb":"exec","shell":"true","env":{"A":1}}',
    '{"verb":"exec","shell":"true","env":["A"]}',
    '{"verb":"exec","shell":"true","pty":true}',
    '{"verb":"exec","shell":"true","pty":{"rows":70000}}',
    '{"verb":"exec","shell":"true","on_disconnect":"maybe"}',
    '{"verb":"exec","shell":"true","user":"' + "u" * 512 + '"}',
    '{"verb":"push","path":"relative"}', '{"verb":"push","path":"/"}',
    '{"verb":"push","path":"/tmp/x","type":"fifo"}',
    '{"verb":"push","path":"/tmp/x","mode":99999}',
    '{"verb":"push","path":"/tmp/x","hash":"zz"}',
    '{"verb":"have","path":"/tmp","hash":"00"}',
    '{"verb":"pull"}', '{"verb":"sync","revision":-1}',
    '{"verb":"roster","have":"x"}',
])
def test_a_bad_request_gets_a_sentence(shared_cluster, request_):
    got = call(shared_cluster, "w1", request_, '{"verb":"ping"}')
    (kind, why), second = answers(got)
    assert kind == "error" and len(why["text"]) > 10
    assert second[0] == "reply"
