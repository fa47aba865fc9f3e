"""proxyd before Apache (prefork, two of them) and nginx, asked by curl, wrk
and siege: what people put behind it and before it."""

import hashlib
import re
import shutil
import signal
import subprocess
import threading

import pytest

import muster
import proxy as px
from webservers import Apache, Nginx

SIZES = [0, 5, 1000, 10000, 100000, 3000000]


def tool(name):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    return name


def content(n):
    return (b"0123456789abcdef" * (n // 16 + 1))[:n]


@pytest.fixture(scope="module", params=[Apache, Nginx],
                ids=["apache", "nginx"])
def web(request, tmp_path_factory):
    p = px.Proxy(tmp_path_factory.mktemp("real"), 2, origin=request.param)
    for origin in p.origins:
        for n in SIZES:
            (origin.docs / f"{n}.txt").write_bytes(content(n))
    p.url = f"http://{p.address}:{p.PORT}"
    yield p
    wrong = p.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def curl(proxy, *args, status=0):
    return muster.run(tool("curl"), "-sS", "--max-time", "20",
                      "-H", "Host: a", *args, status=status)


def is_apache(proxy):
    return isinstance(proxy.origins[0], Apache)


@pytest.mark.parametrize("http", ["--http1.1", "--http1.0"])
def test_files_of_all_sizes(web, http):
    for n in SIZES:
        got = curl(web, http, f"{web.url}/{n}.txt").raw_stdout
        assert got == content(n), n


def test_many_requests_on_one_connection(web):
    urls = [f"{web.url}/{SIZES[i % 4]}.txt" for i in range(100)]
    result = curl(web, "-v", *urls)
    assert result.raw_stdout == b"".join(content(SIZES[i % 4])
                                         for i in range(100))
    assert result.stderr.count("Connected to") == 1


def test_head_range_and_conditions(web):
    head = curl(web, "-I", f"{web.url}/1000.txt").stdout
    assert head.startswith("HTTP/1.1 200") and "Content-Length: 1000" in head
    etag = re.search(r"ETag: (\S+)", head).group(1)
    part = curl(web, "-i", "-r", "10-19", f"{web.url}/1000.txt").stdout
    assert part.startswith("HTTP/1.1 206") and part.endswith("abcdef0123")
    same = curl(web, "-i", "-H", f"If-None-Match: {etag}",
                f"{web.url}/1000.txt").stdout
    assert same.startswith("HTTP/1.1 304")
    assert curl(web, "-o", "/dev/null", "-w", "%{http_code}",
                f"{web.url}/none").stdout == "404"


def test_uploads(web, tmp_path):
    """With a length (curl sends Expect: 100-continue), and chunked."""
    if not is_apache(web):
        pytest.skip("nginx has no CGI")
    body = content(3000000)
    (tmp_path / "up").write_bytes(body)
    for args in (["--data-binary", f"@{tmp_path}/up"],
                 ["-T", f"{tmp_path}/up"],
                 ["-H", "Transfer-Encoding: chunked", "--data-binary",
                  f"@{tmp_path}/up"],
                 ["-H", "Expect: 100-continue", "--data-binary", "short"]):
        got = curl(web, *args, f"{web.url}/cgi/echo").stdout
        want = b"short" if args[-1] == "short" else body
        assert got.endswith(f"body {hashlib.md5(want).hexdigest()}  -\n")


def test_what_a_cgi_program_sees(web):
    if not is_apache(web):
        pytest.skip("nginx has no CGI")
    got = curl(web, "-H", "X-Forwarded-For: 6.6.6.6", "-H", "Proxy: evil",
               "-H", "Content_Length: 7", "-H", "X-Fine: yes",
               f"{web.url}/cgi/echo?a=b").stdout.splitlines()
    assert got[0] == "GET /cgi/echo?a=b"
    seen = dict(line.partition("=")[::2] for line in got[1:-1])
    assert seen["HTTP_HOST"] == "a" and seen["HTTP_X_FINE"] == "yes"
    assert seen["HTTP_X_FORWARDED_FOR"] == "127.0.0.1"
    assert seen["HTTP_X_REAL_IP"] == "127.0.0.1"
    assert "HTTP_PROXY" not in seen and "CONTENT_LENGTH" not in seen


def metrics(proxy):
    return curl(proxy, f"http://{proxy.address}:7480/metrics").stdout


def n_requests(proxy):
    """Given to nodes, so far."""
    return sum(map(int, re.findall(r"^muster_node_requests_total.* (\d+)$",
                                   metrics(proxy), re.M)))


def load(proxy, seconds, connections=16, path="/1000.txt"):
    """wrk in the background; returns a function that waits for its figures:
    (requests, failed)."""
    p = subprocess.Popen(
        [tool("wrk"), "-t1", f"-c{connections}", f"-d{seconds}",
         "--timeout", "30s", "-H", "Host: a", f"{proxy.url}{path}"],
        stdout=subprocess.PIPE, text=True)

    def end():
        out = p.communicate(timeout=seconds + muster.PATIENCE_S)[0]
        assert p.returncode == 0, out
        bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
        errors = re.search(r"connect (\d+), read (\d+), write (\d+), "
                           r"timeout (\d+)", out)
        return (int(re.search(r"(\d+) requests in", out).group(1)),
                (int(bad.group(1)) if bad else 0)
                + (sum(map(int, errors.groups())) if errors else 0))
    return end


def test_wrk(web):
    n, failed = load(web, 2, 64)()
    assert n > 100 and failed == 0


def test_siege(web, tmp_path):
    urls = tmp_path / "urls"
    urls.write_text("".join(f"{web.url}/{n}.txt\n" for n in SIZES[1:5]))
    out = muster.run(tool("siege"), "-b", "-c", "10", "-r", "20", "-i",
                     "-H", "Host: a", "-f", urls,
                     env={"HOME": str(tmp_path)}, timeout=60)
    text = out.stdout + out.stderr
    assert re.search(r'failed_transactions"?:\s+0\b', text, re.I), text


def test_pipelining(web):
    """As some browsers and many scripts do."""
    head = b"GET /5.txt HTTP/1.1\r\nHost: a\r\n"
    got, _ = web.talk((head + b"\r\n") * 30
                      + head + b"Connection: close\r\n\r\n")
    assert px.statuses(got) == [200] * 31
    assert got.count(b"\r\n\r\n01234") == 31


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_node_fails_under_load(web, how):
    """No request fails: the other node serves them."""
    web.ctl("role", "set", "worker_http", "--health", "tcp",
            "--interval", "200ms", "--check-timeout", "1s",
            "--rise", "1", "--fall", "2")
    web.daemon.expect_log(r"node n\d as worker_http is (down|up): ")
    victim = web.origins[0]
    try:
        before = n_requests(web)
        end = load(web, 6)
        muster.wait_for(lambda: n_requests(web) > before + 200,
                        what="some load")
        if how == "kill":
            victim.kill()
        else:
            victim.signal_all(signal.SIGSTOP)
        n, failed = end()
        assert n > 100 and failed == 0
    finally:
        if how == "kill":
            victim.kill()
            victim.start()
        else:
            victim.signal_all(signal.SIGCONT)

    def both_up():
        up = re.findall(r"^muster_node_up.* (\d)$", metrics(web), re.M)
        return up == ["1", "1"]
    muster.wait_for(both_up, what="the node to come back")


def test_nothing_of_a_slow_site_hurts_another(web):
    """A node that answers nothing holds its own requests, nobody else's."""
    hole = px.RawOrigin(web.cluster.net.address(), 9100)
    gate = threading.Event()
    hole.script = lambda sock, head, body: gate.wait(muster.PATIENCE_S)
    web.ctl("role", "add", "slow", "--port", "9100")
    web.ctl("node", "add", "hole", hole.address, "--role", "slow")
    web.ctl("site", "add", "slow.a", "--role", "slow")
    held = []
    try:
        def held_there():
            s = web.connect()
            s.sendall(b"GET / HTTP/1.1\r\nHost: slow.a\r\n\r\n")
            held.append(s)
            return len(hole.requests) >= 20
        muster.wait_for(held_there, what="twenty that wait")
        n, failed = load(web, 1)()
        assert n > 100 and failed == 0
    finally:
        gate.set()
        for s in held:
            s.close()
        hole.stop()
