"""Nodes and clients that fail while others are served: what could be served
is served, and nobody is waited for without end."""

import json
import resource
import socket
import threading
import time
import urllib.request

import pytest

import muster
import proxy as px

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
SETTINGS = {"proxy.response_timeout": "2s"}


@pytest.fixture(scope="module")
def shared_pair(tmp_path_factory):
    p = px.Proxy(tmp_path_factory.mktemp("faults"), origins=2,
                 settings=SETTINGS, site=("--request-buffering", "off"))
    yield p
    wrong = p.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.fixture
def pair(shared_pair):
    """A proxy before two origins."""
    shared_pair.reset()
    yield shared_pair
    for origin in shared_pair.origins:
        origin.drop()


@pytest.fixture
def fresh_pair(tmp_path):
    """The same, where no node has a past."""
    p = px.Proxy(tmp_path, origins=2, settings=SETTINGS)
    yield p
    wrong = p.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def n_requests(proxy):
    return sum(len(o.requests) for o in proxy.origins)


def ask(proxy, request=GET):
    s = proxy.connect()
    s.sendall(request)
    return s


def test_all_that_a_dying_node_had_in_hand_is_served(pair):
    die = threading.Event()

    def doomed(sock, head, body):
        die.wait(muster.PATIENCE_S)
        px.reset(sock)
        return False

    pair.origins[0].script = doomed
    clients = [pair.connect() for _ in range(100)]
    for s in clients:
        s.sendall(GET)
    muster.wait_for(lambda: n_requests(pair) == 100, what="the requests")
    assert len(pair.origins[0].requests) > 20
    die.set()
    for s in clients:
        with s:
            assert s.recv(100).startswith(b"HTTP/1.1 200 ")


def test_a_node_that_dies_between_two_requests_fails_none(fresh_pair):
    """The pooled connection is dead, and the node resets fresh ones too: as
    when it is killed with a backlog.  The other node is there."""
    served, dying, deaths = set(), [], []

    def dies_at_the_second(sock, head, body):
        if dying or sock in served:
            dying[:] = [] if dying else [True]
            deaths.append(sock)
            px.reset(sock)
            return False
        served.add(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        return True

    fresh_pair.origins[0].script = dies_at_the_second

    def is_served():
        with ask(fresh_pair) as s:
            assert s.recv(100).startswith(b"HTTP/1.1 200 ")
        return len(deaths) > 1

    muster.wait_for(is_served, what="two deaths")


def test_an_expectation_does_not_wait_for_ever(pair):
    """The client waits for the node's 100, the node for the body."""
    request = (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
               b"Expect: 100-continue\r\n\r\n")
    with ask(pair, request) as s:
        data, _ = px.read_all(s)
    assert px.statuses(data) == [504]


@pytest.mark.parametrize("more", (1, 50000, 200000))
def test_who_has_said_too_much_gets_the_whole_answer(pair, more):
    """Bytes that we have not read must not make a reset of our end."""
    body = b"x" * (4 << 20)
    for origin in pair.origins:
        origin.script = px.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n"
                               b"\r\n" % len(body) + body)
    with ask(pair, LAST + b"x" * more) as s:
        s.shutdown(socket.SHUT_WR)
        muster.wait_for(lambda: n_requests(pair) == 1)
        got, end = px.read_all(s)
    assert (got.partition(b"\r\n\r\n")[2] == body, end) == (True, "fin")


@pytest.mark.parametrize("request_", [
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000000\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n"], ids=str)
def test_who_still_sends_is_not_reset(pair, request_):
    """The answer is on its way while the body comes."""
    with ask(pair, request_) as s:
        head, rest = px.read_head(s)
        assert px.statuses(head)[0] in (400, 413)
        for _ in range(20):
            s.sendall(b"x" * 1000)
        s.shutdown(socket.SHUT_WR)
        assert px.read_all(s)[1] == "fin"


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    b"HTTP/1.1 200 OK\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nContent-Le"], ids=str)
def test_a_reset_right_behind_data_is_seen(pair, answer):
    """Both come in one event, and there is no second one."""
    for origin in pair.origins:
        origin.script = px.say(answer, then="reset")
    for _ in range(20):
        start = time.monotonic()
        with ask(pair, LAST) as s:
            px.read_all(s)
        assert time.monotonic() - start < muster.SOON_S


def test_a_reset_right_behind_data_ends_a_tunnel(pair):
    ended = []

    def tunnel(sock, head, body):
        sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\n"
                     b"Connection: Upgrade\r\nUpgrade: x\r\n\r\n")
        px.read_all(sock)
        ended.append(sock)
        return False

    for origin in pair.origins:
        origin.script = tunnel
    for _ in range(20):
        s = ask(pair, b"GET / HTTP/1.1\r\nHost: a\r\n"
                b"Connection: Upgrade\r\nUpgrade: x\r\n\r\n")
        assert s.recv(100).startswith(b"HTTP/1.1 101 ")
        s.sendall(b"x" * 1000)
        px.reset(s)
    muster.wait_for(lambda: len(ended) == 20)


def test_what_is_no_http_is_not_waited_for(pair):
    """220 of a mail server, or noise: it has no end of line perhaps."""
    for origin in pair.origins:
        origin.script = px.say(b"220")
    start = time.monotonic()
    with ask(pair) as s:
        assert s.recv(100).startswith(b"HTTP/1.1 502 ")
    assert time.monotonic() - start < muster.SOON_S


def test_a_client_that_is_gone_does_not_wait_in_the_queue(tmp_path):
    proxy = px.Proxy(tmp_path, role=("--maxconn", "1"))
    go = threading.Event()

    def later(sock, head, body):
        go.wait(muster.PATIENCE_S)
        sock.sendall(px.OK)

    def queued():
        url = f"http://{proxy.address}:7480/status.json"
        with urllib.request.urlopen(url) as status:
            return json.load(status)["workers"][0]["queued"]

    try:
        proxy.origin.script = later
        with ask(proxy) as first:
            muster.wait_for(lambda: n_requests(proxy) == 1)
            gone = ask(proxy)
            muster.wait_for(lambda: queued() == 1)
            px.reset(gone)
            muster.wait_for(lambda: queued() == 0)
            go.set()
            assert first.recv(100).startswith(b"HTTP/1.1 200 ")
        assert n_requests(proxy) == 1
    finally:
        go.set()
        assert not proxy.close()


def test_few_descriptors_delay_and_fail_nothing(tmp_path):
    """Clients do not take those that nodes need; the rest waits."""
    proxy = px.Proxy(tmp_path, prefix=("prlimit", "--nofile=64"))
    served = []

    def client():
        with proxy.connect() as s:
            for _ in range(5):
                s.sendall(GET)
                served.append(s.recv(1000)[:13])
            s.sendall(LAST)
            served.append(px.read_all(s)[0][:13])

    try:
        threads = [threading.Thread(target=client) for _ in range(100)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert served == [b"HTTP/1.1 200 "] * 600
    finally:
        assert not proxy.close()


def test_a_long_pipeline_of_local_answers(pair):
    """Longer than one client's turn."""
    n = 1000
    request = b"OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n"
    with pair.connect() as s:
        threading.Thread(target=s.sendall, args=(
            request * n + LAST,), daemon=True).start()
        data, end = px.read_all(s)
    assert px.statuses(data) == [200] * (n + 1)
    assert (n_requests(pair), end) == (1, "fin")


def test_strangers_at_the_status_page_keep_no_operator_out(pair):
    crowd = [px.connect(pair.address, 7480) for _ in range(200)]
    for s in crowd:
        s.sendall(b"GET")
    assert px.read_all(crowd[-1])[0] == b""  # one too many
    rows = pair.ctl("show_workers", "--json").json_lines
    assert rows
    for s in crowd:
        s.close()


@pytest.mark.skipif(muster.ASAN, reason="it keeps freed memory for itself")
@muster.needs_root
def test_a_crowd_leaves_its_memory(fresh_pair):
    """Clients and requests are kept for the next ones, but not for ever."""
    worker, = (pid for pid, _, argv in
               muster.children(fresh_pair.daemon.pid) if " worker" in argv)

    def memory():
        return muster.memory_kb(worker)["RssAnon"]
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    n = min(1500, hard // 2 - 100)
    if n < 1000:
        pytest.skip("too few descriptors for a crowd: few are kept for the "
                    "next ones")
    before = memory()
    crowd = [fresh_pair.connect() for _ in range(n)]
    for s in crowd:
        s.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx")
    muster.wait_for(lambda: memory() > before + 4 * n, what="the crowd")
    most = memory()
    for s in crowd:
        s.close()
    muster.wait_for(lambda: memory() < before + (most - before) / 2,
                    what="its memory")
