"""TLS as clients meet it: what is spoken and what is not, which certificate,
sessions, changes under way, clients that mean no good.

What a handshake chooses is tested here with real clients (Python's ssl,
openssl s_client, curl); that all of HTTP and WebSocket works over it is
tested by their own files once more: test_tls_cases.py and its like.
"""

import contextlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
import urllib.request

import pytest

import live_proxy
import muster
import proxy as px
import secure

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3

# Mozilla's guidelines 5.7, intermediate.
CIPHERS = {
    "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
    "DHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES256-GCM-SHA384",
    "DHE-RSA-CHACHA20-POLY1305"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    p = secure.SecureProxy(tmp_path_factory.mktemp("tls"), settings={
        "proxy.header_timeout": "2s"})
    secure.give(p.ctl, "a", *secure.issued("a", kind="rsa"))
    p.ctl("site", "add", "c", "--alias", "*.c.example", "--role",
          "worker_http")
    secure.give(p.ctl, "c", *secure.issued("*.c.example", "c"))
    p.ctl("set", "proxy.https.default_cert", "none")
    muster.wait_for(lambda: "112" in s_client(p, name="nobody"),
                    what="all of it to be known")
    yield p
    wrong = p.close()
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.fixture
def proxy(shared):
    shared.reset()
    return shared


@pytest.fixture
def make_live(tmp_path):
    made = []

    def make(*args, **options):
        made.append(live_proxy.LiveProxy(tmp_path, *args, **options))
        p = made[-1]
        for site in ("a", "b"):
            secure.give(p.ctl, site, *secure.issued(site))
        p.set({"proxy.https.listen": f"{p.address}:{secure.TLS_PORT}"})
        muster.wait_for(lambda: live_proxy.answers_at(
            p.address, secure.TLS_PORT), what="HTTPS")
        return p
    yield make
    wrong = [w for p in made for w in p.close()]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def s_client(proxy, *options, name="a", text="", timeout=muster.PATIENCE_S):
    return secure.openssl(
        "s_client", "-connect", f"{proxy.address}:{secure.TLS_PORT}",
        "-CAfile", secure.authority().cert,
        *(["-servername", name] if name else ["-noservername"]), *options,
        text=text, timeout=timeout)[1]


def worker(proxy):
    url = f"http://{proxy.address}:7480/status.json"
    with urllib.request.urlopen(url) as status:
        return json.load(status)["workers"][0]


def failures(proxy):
    """{"tls_gone": 3, ...}"""
    url = f"http://{proxy.address}:7480/metrics"
    with urllib.request.urlopen(url) as metrics:
        return {reason: int(n) for reason, n in re.findall(
            r'muster_reasons_total\{reason="(tls_\w+)"\} (\d+)',
            metrics.read().decode())}


@contextlib.contextmanager
def one_more(proxy, reason, n=1):
    before = failures(proxy).get(reason, 0)
    yield
    muster.wait_for(lambda: failures(proxy).get(reason, 0) >= before + n,
                    what=f"{reason} to be counted")


def ask(sock, request=GET):
    sock.sendall(request)
    head, rest = px.read_head(sock)
    return head, px.read_body(sock, head, rest)[0]


# ---- what is spoken ----

@pytest.mark.parametrize("option, spoken", [
    ("-tls1", False), ("-tls1_1", False), ("-tls1_2", True),
    ("-tls1_3", True)])
def test_versions(proxy, option, spoken):
    out = s_client(proxy, option, "-cipher", "ALL:@SECLEVEL=0")
    assert ("Cipher is (NONE)" not in out) == spoken, out
    assert spoken or "alert number 70" in out  # protocol_version


def test_ciphers_are_those_of_the_list(proxy):
    """testssl's way: each cipher of OpenSSL alone."""
    offered = set()
    all_of_them = secure.must("ciphers", "-s", "-tls1_2",
                              "ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    for cipher in all_of_them.strip().split(":"):
        if cipher.startswith("TLS_"):
            continue
        context = proxy.ca.context(V12)
        try:
            context.set_ciphers(cipher + ":@SECLEVEL=0")
        except ssl.SSLError:
            continue
        with contextlib.suppress(ssl.SSLError, ConnectionResetError), \
                proxy.connect(context=context) as s:
            offered.add(s.cipher()[0])
    assert offered == CIPHERS


def test_the_server_has_no_compression_and_no_renegotiation(proxy):
    out = s_client(proxy, "-tls1_2")
    assert "Compression: NONE" in out
    assert "Secure Renegotiation IS supported" in out  # RFC 5746: the sign
    # "R" asks for one; the connection is good for a request afterwards.
    client = subprocess.Popen(
        ["openssl", "s_client", "-connect",
         f"{proxy.address}:{secure.TLS_PORT}", "-servername", "a", "-tls1_2"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    client.stdin.write(b"R\n")
    client.stdin.flush()
    out, _ = client.communicate(timeout=muster.PATIENCE_S)
    assert b"no renegotiation" in out


def test_the_curves(proxy):
    for curve, wanted in (("X25519", True), ("P-256", True), ("P-384", True),
                          ("P-521", False), ("X448", False)):
        out = s_client(proxy, "-groups", curve)
        assert ("Cipher is (NONE)" not in out) == wanted, (curve, out)


def test_the_modern_profile(make_live):
    p = make_live([live_proxy.RawOrigin])
    p.set({"proxy.tls.profile": "modern"})
    p.await_revision()
    old = s_client(p, "-tls1_2")
    assert "alert number 70" in old
    assert "Verification: OK" in s_client(p, "-tls1_3")


def test_the_protocol(proxy):
    with proxy.connect(context=proxy.ca.context(
            alpn=["h2", "http/1.1"])) as s:
        assert s.selected_alpn_protocol() == "http/1.1"
        assert ask(s)[1] == b"ok"
    with one_more(proxy, "tls_alpn"):
        assert "alert number 120" in s_client(proxy, "-alpn", "h2,h3")
    with proxy.connect() as s:  # says nothing
        assert s.selected_alpn_protocol() is None


# ---- which certificate ----

def subject_names(sock):
    return {v for _, v in sock.getpeercert()["subjectAltName"]}


def test_the_name_decides(proxy):
    for name, wanted in (("a", {"a"}), ("b", {"b"}), ("A", {"a"}),
                         ("x.c.example", {"*.c.example", "c"}),
                         ("c", {"*.c.example", "c"})):
        with proxy.connect(name) as s:
            assert subject_names(s) == wanted


@pytest.mark.parametrize("name", ["nobody", None, "x.y.c.example"])
def test_a_name_that_nobody_has(proxy, name):
    with one_more(proxy, "tls_name"):
        out = s_client(proxy, name=name)
        assert "alert number 112" in out, out  # unrecognized_name


def test_the_kind_the_client_can_verify(proxy):
    rsa = proxy.ca.context(V12, "ECDHE-RSA-AES128-GCM-SHA256")
    ecdsa = proxy.ca.context(V12, "ECDHE-ECDSA-AES128-GCM-SHA256")
    for context, kind in ((rsa, "RSA"), (ecdsa, "ECDSA")):
        with proxy.connect(context=context) as s:
            assert kind in s.cipher()[0]
            assert ask(s)[1] == b"ok"
    # Site b has but one.
    with one_more(proxy, "tls_cipher"), pytest.raises(ssl.SSLError):
        proxy.connect("b", rsa)
    out = s_client(proxy, "-tls1_3", "-sigalgs", "RSA-PSS+SHA256")
    assert "Peer signature type: RSA-PSS" in out
    out = s_client(proxy, "-tls1_3", "-sigalgs", "ECDSA+SHA256")
    assert "Peer signature type: ECDSA" in out


def test_a_staple_for_who_asks(make_live):
    p = make_live([live_proxy.RawOrigin])
    cert, key = secure.issued("a")
    secure.give(p.ctl, "a", cert, key, "--ocsp",
                secure.authority().staple(cert))
    p.await_revision()
    out = muster.wait_for(
        lambda: (text := s_client(p, "-status")) and "Cert Status" in text
        and text, what="the staple")
    assert "Cert Status: good" in out
    assert "no response sent" in s_client(p, "-status", name="b")


def test_curl(proxy):
    out = muster.run(
        "curl", "-sS", "--cacert", proxy.ca.cert, "-w",
        "%{http_code} %{ssl_verify_result} %{http_version}", "--resolve",
        f"a:{secure.TLS_PORT}:{proxy.address}",
        f"https://a:{secure.TLS_PORT}/").stdout
    assert out == "ok200 0 1.1"


# ---- sessions ----

def resumed(p, context, session, name="a"):
    """(whether it was, the session to come back with)"""
    s = secure.wrap(px.connect(p.address, secure.TLS_PORT), context, name,
                    session)
    with s:
        ask(s)
        return s.session_reused, s.session


@pytest.mark.parametrize("version", [V12, V13], ids=["1.2", "1.3"])
def test_sessions_resume_at_every_worker_and_after_an_upgrade(
        make_live, version):
    p = make_live([live_proxy.RawOrigin])
    context = secure.authority().context(version)
    was, session = resumed(p, context, None)
    assert not was
    for _ in range(12):
        was, session = resumed(p, context, session)
        assert was
    workers = p.workers()
    assert len(workers) == 2
    assert all(w["handshakes"] > 0 for w in workers), workers
    assert sum(w["resumed"] for w in workers) == 12
    p.upgrade()
    for _ in range(6):
        was, session = resumed(p, context, session)
        assert was
    # Not by another site's name, though the ticket is a good one.
    other, _ = resumed(p, context, session, "b")
    assert not other


# ---- what a request knows of it ----

def test_nodes_and_logs_are_told(make_live, tmp_path):
    p = make_live([live_proxy.RawOrigin], settings={
        "proxy.access_log": tmp_path / "access",
        "proxy.access_log_format": "json"})
    secure_conn = secure.connection(secure.authority().context(V13))(
        p.address, secure.TLS_PORT, timeout=muster.PATIENCE_S)
    secure_conn.request("GET", "/s", headers={"Host": "a"})
    assert secure_conn.getresponse().read() == b"ok"
    p.get("/p")
    (said, _), (plain, _) = p.raw[0].requests
    assert px.field(said, b"X-Forwarded-Proto") == [b"https"]
    assert px.field(plain, b"X-Forwarded-Proto") == [b"http"]

    def lines():
        text = (tmp_path / "access").read_text()
        return {o["target"]: o for o in map(json.loads, text.splitlines())}
    log = muster.wait_for(lambda: len(lines()) == 2 and lines(),
                          what="the log's lines")
    assert log["/s"]["tls"] == "TLSv1.3"
    assert log["/s"]["cipher"].startswith("TLS_")
    assert "tls" not in log["/p"] and "cipher" not in log["/p"]


HSTS = b"max-age=31536000; includeSubDomains"


def test_a_site_for_https_only(make_live):
    p = make_live([live_proxy.RawOrigin])
    p.raw[0].script = px.say(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
        b"Strict-Transport-Security: max-age=1\r\n\r\nok")
    p.ctl("site", "set", "a", "--https-redirect", "on", "--hsts",
          "365d,includeSubDomains")
    p.await_revision()

    def plain(request, then=b""):
        with p.connect() as s:
            s.sendall(request)
            return px.read_all(s)[0]

    end = b" HTTP/1.1\r\nHost: A:8080\r\nConnection: close\r\n"
    where = b"https://a:%d" % secure.TLS_PORT
    for request, status, target in (
            (b"GET /x?y=1" + end + b"\r\n", 301, b"/x?y=1"),
            (b"HEAD //evil" + end + b"\r\n", 301, b"//evil"),
            (b"POST /f" + end + b"Content-Length: 2\r\n\r\nok", 308, b"/f"),
            (b"GET http://a?q" + end + b"\r\n", 301, b"/?q")):
        answer = plain(request)
        assert px.statuses(answer) == [status], answer
        assert px.field(answer, b"Location") == [where + target]
        assert b"Strict-Transport" not in answer
    # What an authority asks for must be found without.
    challenge = plain(b"GET /.well-known/acme-challenge/t" + end + b"\r\n")
    assert px.statuses(challenge) == [200]
    context = secure.authority().context()
    for target, status in ((b"/", 200), (b"/\xff", 400)):
        s = secure.wrap(px.connect(p.address, secure.TLS_PORT), context)
        with s:
            s.sendall(b"GET " + target + end + b"\r\n")
            answer = px.read_all(s)[0]
        assert px.statuses(answer) == [status]
        if status == 200:
            assert px.field(answer, b"Strict-Transport-Security") == [HSTS]
    # The other site's node speaks for itself.
    s = secure.wrap(px.connect(p.address, secure.TLS_PORT), context, "b")
    with s:
        s.sendall(LAST.replace(b"a", b"b"))
        assert px.field(px.read_all(s)[0], b"Strict-Transport-Security") == [
            b"max-age=1"]


@pytest.mark.parametrize("value, rule", [
    ("forever", "hsts: age 'forever' is not a time"),
    ("1h,everything", "hsts: behind the time come 'includeSubDomains'"),
    ("365d,preload", "hsts: preload needs"),
    ("30d,includeSubDomains,preload", "hsts: preload needs")])
def test_hsts_is_checked(proxy, value, rule):
    result = proxy.ctl("site", "set", "a", "--hsts", value, status=2)
    assert f"clusterctl: {rule}" in result.stderr


# ---- data ----

def test_big_bodies_both_ways(proxy):
    body = os.urandom(3_000_000)

    def script(sock, head, got):
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
                     % len(got) + got)
        return True
    proxy.origin.script = script
    for version in (V12, V13):
        with proxy.connect(context=proxy.ca.context(version)) as s:
            for _ in range(2):
                request = (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: "
                           b"%d\r\n\r\n" % len(body)) + body
                assert ask(s, request)[1] == body


def test_a_slow_reader_gets_every_byte(proxy):
    body = os.urandom(80_000)
    proxy.origin.script = px.say(
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    raw = proxy.plain()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with secure.wrap(raw, proxy.context) as s:
        s.sendall(GET)
        head, rest = px.read_head(s)
        got = bytearray(rest)
        while len(got) < len(body):
            got += s.recv(700)
        assert got == body


def test_what_is_cut_is_not_said_to_be_whole(proxy):
    """An HTTP/1.0 body ends with the connection: by close_notify."""
    old = b"GET / HTTP/1.0\r\nHost: a\r\n\r\n"
    proxy.origin.script = px.say(b"HTTP/1.1 200 OK\r\n\r\nall of it",
                                 then=False)
    got, end = proxy.talk(old)
    assert got.endswith(b"all of it") and end == "fin"
    proxy.origin.script = px.say(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello",
        then=False)
    got, end = proxy.talk(old)
    assert not got.endswith(b"\r\n0\r\n\r\n") and end == "reset"


def test_a_client_that_closes_without_a_word_is_served(proxy):
    got, end = proxy.talk(GET, fin=True)
    assert px.statuses(got) == [200] and end == "fin"


# ---- changes ----

def test_a_certificate_changes_under_a_connection(make_live):
    p = make_live([live_proxy.RawOrigin])
    context = secure.authority().context()
    load = p.load(port=secure.TLS_PORT, path="/",
                  check=lambda path, status, body: status == 200,
                  kind=secure.connection(context))
    old = secure.wrap(px.connect(p.address, secure.TLS_PORT), context)
    serial = old.getpeercert()["serialNumber"]
    secure.give(p.ctl, "a", *secure.authority().issue("a"))

    def presented():
        with secure.wrap(px.connect(p.address, secure.TLS_PORT),
                         context) as s:
            return s.getpeercert()["serialNumber"]
    muster.wait_for(lambda: presented() != serial, what="the new one")
    assert ask(old)[1] == b"ok"
    p.ctl("site", "cert", "a", "--remove")
    muster.wait_for(lambda: "112" in s_client(p), what="none")
    assert ask(old)[1] == b"ok"
    old.close()
    load.await_more()
    secure.give(p.ctl, "a", *secure.issued("a"))
    muster.wait_for(lambda: "Verification: OK" in s_client(p))
    assert load.connections == 4  # not one was cut
    assert load.stop() == []


def test_reload_upgrade_and_a_killed_worker(make_live):
    p = make_live([live_proxy.RawOrigin])
    load = p.load(port=secure.TLS_PORT, path="/",
                  check=lambda path, status, body: status == 200,
                  kind=secure.connection(secure.authority().context()))
    for i in range(5):
        p.ctl("site", "set", "b", "--share", str(i + 2))
        p.await_revision()
    load.await_more()
    p.set({"proxy.workers": "1"})
    load.await_more()
    p.set({"proxy.workers": "3"})
    load.await_more()
    p.upgrade()
    load.await_more()
    assert load.stop() == []
    p.daemon.expect_log("worker")
    victim = p.workers()[0]["pid"]
    os.kill(victim, signal.SIGKILL)
    muster.wait_for(lambda: victim not in [w["pid"] for w in p.workers()] and
                    len(p.workers()) == 3, what="another worker")
    was, _ = resumed(p, secure.authority().context(), None)
    assert not was


def test_https_comes_and_goes(make_live):
    p = make_live([live_proxy.RawOrigin])
    assert "Verification: OK" in s_client(p)
    p.set({"proxy.https.listen": "off"})
    muster.wait_for(lambda: not live_proxy.answers_at(
        p.address, secure.TLS_PORT), what="the port to close")
    assert p.get("/")[0] == 200


# ---- clients that mean no good, and some that err ----

def hello():
    """A ClientHello's bytes."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = secure.authority().context().wrap_bio(
        incoming, outgoing, server_hostname="a")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_plain_http_is_told(proxy):
    with one_more(proxy, "tls_plain_http"), proxy.plain() as s:
        s.sendall(GET)
        got, end = px.read_all(s)
    assert px.statuses(got) == [400] and end == "fin"
    assert b"speaks HTTPS" in got and b"Connection: close" in got


@pytest.mark.parametrize("noise, reason", [
    (b"SSH-2.0-OpenSSH_9.2p1\r\n", "tls_garbage"),
    (b"\x80\x2e\x01\x00\x02" + b"\x00" * 40, None),  # SSL 2
    (b"\x00" * 500, "tls_garbage"),
    (b"\xff" * 50000, "tls_garbage"),
    (b"\x16\x03\x01\xff\xff" + b"\x01" * 3000, "tls_garbage"),
    (b"\x15\x03\x01\x00\x02\x02\x28", "tls_garbage"),
    (b"\x17\x03\x03\x00\x10" + b"x" * 16, None)],
    ids=["ssh", "ssl2", "zeros", "ones", "length", "alert", "data"])
def test_noise(proxy, noise, reason):
    before = worker(proxy)["handshakes_failed"]
    with one_more(proxy, reason) if reason else contextlib.nullcontext():
        with proxy.plain() as s:
            with contextlib.suppress(OSError):
                s.sendall(noise)
            px.read_all(s)
        muster.wait_for(
            lambda: worker(proxy)["handshakes_failed"] > before)
    assert proxy.talk(LAST)[1] == "fin"


def test_a_client_that_does_not_trust_us(proxy):
    with one_more(proxy, "tls_alert"), pytest.raises(
            ssl.SSLCertVerificationError):
        secure.wrap(proxy.plain(), ssl.create_default_context())


def test_noise_within_a_handshake(proxy):
    good = hello()
    for at in (6, 43, len(good) // 2, len(good) - 1):
        bad = bytearray(good)
        bad[at:at + 4] = b"\xff\xff\xff\xff"
        with proxy.plain() as s:
            with contextlib.suppress(OSError):
                s.sendall(bad)
                s.shutdown(socket.SHUT_WR)
            px.read_all(s)
    # Where the client's Finished should be.
    with proxy.plain() as s:
        s.sendall(good)
        assert s.recv(5)[:1] == b"\x16"
        s.sendall(b"\x17\x03\x03\x00\x20" + b"y" * 32)
        px.read_all(s)
    assert proxy.talk(LAST)[1] == "fin"


def test_closing_at_each_step(proxy):
    """After each part of each flight, by FIN and by RST."""
    good = hello()
    before = worker(proxy)["handshakes_failed"]
    n = 0
    for cut in (1, 5, 60, len(good) - 1, len(good)):
        for end in (socket.socket.close, px.reset):
            s = proxy.plain()
            s.sendall(good[:cut])
            if cut == len(good):
                s.recv(100)  # the server's flight is on its way
            end(s)
            n += 1
    muster.wait_for(
        lambda: worker(proxy)["handshakes_failed"] >= before + n,
        what="all to be counted")
    muster.wait_for(lambda: worker(proxy)["handshaking"] == 0)
    # And right behind the handshake.
    for end in (socket.socket.close, px.reset):
        end(proxy.connect())
    assert proxy.talk(LAST)[1] == "fin"


def test_a_handshake_has_a_deadline_however_it_drips(proxy):
    good = hello()
    start = time.monotonic()
    with one_more(proxy, "tls_timeout"), proxy.plain() as s:
        with contextlib.suppress(OSError):
            for byte in good:
                s.sendall(bytes([byte]))
                s.settimeout(0.05)
                with contextlib.suppress(TimeoutError):
                    if not s.recv(1):
                        break
    assert 1.5 < time.monotonic() - start < muster.SOON_S


def test_a_flood_of_handshakes(proxy):
    """Thousands of them half open: their number is bounded, what is
    established goes on, and who means well gets in."""
    begun = hello()[:200]
    with contextlib.ExitStack() as crowd, proxy.connect() as established, \
            one_more(proxy, "tls_crowded", 100):
        for n in range(2300):
            crowd.enter_context(proxy.plain()).sendall(begun)
            if n % 500 == 0:
                assert ask(established)[1] == b"ok"
                assert proxy.talk(LAST)[1] == "fin"
        assert ask(established)[1] == b"ok"
        muster.wait_for(lambda: worker(proxy)["handshaking"] <= 2048)
    muster.wait_for(lambda: worker(proxy)["handshaking"] == 0,
                    what="them to go")


def test_failures_leave_few_lines_in_the_log(proxy):
    log = proxy.daemon.log.read_text
    n = log().count(" tls: ")
    for _ in range(200):
        with proxy.plain() as s:
            s.sendall(b"\x00" * 100)
            px.read_all(s)
    assert log().count(" tls: ") - n <= 45


def behind_an_answer(proxy, flights):
    """A request comes together with many handshakes: how many of those are
    not through yet when it is answered."""
    with contextlib.ExitStack() as stack:
        established = stack.enter_context(proxy.connect())
        ask(established)
        crowd = [stack.enter_context(proxy.plain()) for _ in flights]
        pid = worker(proxy)["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:  # all of it is there when it wakes
            for s, flight in zip(crowd, flights):
                s.sendall(flight)
            established.sendall(GET)
        finally:
            os.kill(pid, signal.SIGCONT)
        px.read_head(established)
        waiting = 0
        for s in crowd:
            s.setblocking(False)
            try:
                s.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                waiting += 1
        return waiting


def test_handshakes_leave_others_their_turn(proxy):
    flights = []
    context = proxy.ca.context(V12, "ECDHE-RSA-AES128-GCM-SHA256")
    for _ in range(200):
        outgoing = ssl.MemoryBIO()
        client = context.wrap_bio(ssl.MemoryBIO(), outgoing,
                                  server_hostname="a")
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        flights.append(outgoing.read())
    # We may be the ones who come late, on a busy machine.
    assert any(behind_an_answer(proxy, flights) for _ in range(10))
