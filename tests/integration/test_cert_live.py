"""Certificates of sites as clients and other machines get them: by name, hot,
after a crash and an upgrade, without a key; and the keys' way to another
proxy machine."""

import json
import os
import re
import signal
import socket
import ssl

import pytest

import muster
from agent_client import answers, call
from authority import Authority
from live_proxy import LiveProxy
from muster import wait_for
from proxy import RawOrigin

HTTPS = 8443


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    tmp = tmp_path_factory.mktemp("ca")
    return Authority(tmp, "Issuing CA", Authority(tmp, "Root CA"))


@pytest.fixture
def proxy(tmp_path, request):
    p = LiveProxy(tmp_path, [RawOrigin], start=False)
    p.set({"proxy.https.listen": f"{p.address}:{HTTPS}"})
    yield p
    wrong = p.close()
    report = getattr(request.node, "report_call", None)
    if report is not None and report.failed:
        print(p.log[-4000:])
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def client(kind=None):
    """A client's context; kind: RSA or ECDSA, with TLS 1.2 suites."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if kind is not None:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(f"ECDHE+a{kind}+AESGCM")
    return context


def connect(address, name, kind=None, port=HTTPS):
    raw = socket.create_connection((address, port),
                                   timeout=muster.PATIENCE_S)
    return client(kind).wrap_socket(raw, server_hostname=name)


def served(address, name, kind=None):
    """The certificate (DER) that a client gets, or why it gets none."""
    try:
        with connect(address, name, kind) as s:
            return s.getpeercert(binary_form=True)
    except ssl.SSLError as e:
        return e.reason
    except OSError:
        return None


def der(made):
    return ssl.PEM_cert_to_DER_cert(made.cert.read_text())


def await_served(address, name, made, **how):
    wait_for(lambda: served(address, name, **how) == der(made),
             what=f"the certificate of {name}")


def give(ctl, site, made, *options):
    ctl("site", "cert", site, "--cert", made.full, "--key", made.key,
        *options)


def ask(s, host):
    """One request on a connection; the status line."""
    s.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    got = b""
    while b"\r\n\r\nok" not in got:
        more = s.recv(4096)
        if not more:
            break
        got += more
    return got.split(b"\r\n")[0]


NO_NAME = "TLSV1_UNRECOGNIZED_NAME"


def test_each_name_gets_its_own(proxy, ca):
    ctl = proxy.ctl
    for site, aliases in (("a.example", ["www.a.example"]),
                          ("b.example", []), ("xn--bcher-kva.example", [])):
        ctl("site", "add", site, *(x for a in aliases
                                   for x in ("--alias", a)))
    rsa = ca.issue("a.example", ["a.example", "www.a.example"], kind="rsa")
    ec = ca.issue("a.example", ["a.example", "www.a.example"])
    wild = ca.issue("b.example", ["b.example", "*.example", "a.example"],
                    days=900)
    idn = ca.issue("xn--bcher-kva.example")
    for site, made in (("a.example", rsa), ("a.example", ec),
                       ("b.example", wild), ("xn--bcher-kva.example", idn)):
        give(ctl, site, made)
    proxy.daemon.start()
    at = proxy.address
    for name, made in (
            ("a.example", ec), ("www.a.example", ec), ("b.example", wild),
            ("WWW.A.Example", ec), ("other.example", wild),
            ("bücher.example", idn), ("XN--bcher-KVA.example", idn)):
        assert served(at, name) == der(made), name
    for kind, made in (("RSA", rsa), ("ECDSA", ec)):
        assert served(at, "a.example", kind) == der(made)
    for name in ("x.other.example", "a.example.org", None):
        assert served(at, name) == NO_NAME, name
    ctl("set", "proxy.https.default_cert", "b.example")
    await_served(at, "x.other.example", wild)
    await_served(at, None, wild)
    proxy.daemon.expect_log("default_cert: site a has no certificate")
    ctl("set", "proxy.https.default_cert", "a")
    wait_for(lambda: served(at, "nobody.org") == NO_NAME,
             what="unknown names to be refused again")
    assert proxy.log.count("site a has no certificate") == 1


def test_a_change_is_hot(proxy, ca):
    """Renewal and removal cut no connection."""
    ctl, at = proxy.ctl, proxy.address
    old, new = ca.issue("a"), ca.issue("a")
    give(ctl, "a", old)
    proxy.daemon.start()
    kept = connect(at, "a")
    assert kept.getpeercert(binary_form=True) == der(old)
    assert b"200" in ask(kept, "a")
    give(ctl, "a", new)
    await_served(at, "a", new)
    assert b"200" in ask(kept, "a")
    ctl("site", "cert", "a", "--remove")
    wait_for(lambda: served(at, "a") == NO_NAME, what="the removal")
    assert b"200" in ask(kept, "a")
    kept.close()
    # An alias that comes later is a name that the wildcard covers.
    wild = ca.issue("b", ["b", "*.b.example"])
    give(ctl, "b", wild)
    ctl("site", "alias", "add", "b", "x.b.example")
    await_served(at, "x.b.example", wild)


def test_it_outlives_a_worker_and_an_upgrade(proxy, ca):
    ctl, at = proxy.ctl, proxy.address
    made = ca.issue("a")
    give(ctl, "a", made)
    proxy.daemon.start()
    proxy.daemon.expect_log("was killed by signal 9")
    for w in proxy.workers():
        os.kill(w["pid"], signal.SIGKILL)
    await_served(at, "a", made)
    proxy.upgrade()
    for _ in range(8):  # whichever worker takes it
        assert served(at, "a") == der(made)
    new = ca.issue("a")
    give(ctl, "a", new)
    await_served(at, "a", new)


@muster.needs_root
def test_only_workers_and_who_made_it_have_the_image(proxy, ca):
    give(proxy.ctl, "a", ca.issue("a"))
    proxy.daemon.start()
    proxy.await_revision()
    seen = {}
    todo = [(proxy.pid, "master")]
    while todo:
        pid, word = todo.pop()
        for child, _, argv in muster.children(pid):
            todo.append((child, argv.split()[-1]))
        with open(f"/proc/{pid}/maps") as f:
            mapped = "muster-certs" in f.read()
        fds = [os.readlink(f"/proc/{pid}/fd/{n}")
               for n in os.listdir(f"/proc/{pid}/fd")]
        seen.setdefault(word, set()).add(
            (mapped, any("muster-certs" in fd for fd in fds)))
    # The master keeps the descriptor for workers to come; no worker does.
    assert seen.pop("master") == {(True, True)}
    assert seen.pop("worker") == {(True, False)}
    assert seen.pop("follower") == {(True, False)}
    assert seen.pop("opener") == {(False, False)}
    assert not seen


def test_one_without_its_key_is_left_out(proxy, ca):
    """The others are served; the log says what to do, once."""
    ctl, at, tls = proxy.ctl, proxy.address, proxy.state / "tls"
    faults = {"gone": "the key is not here", "damaged": "it is damaged",
              "loose": "is open to others (mode 0644); chmod 600 it"}
    made = {}
    for site in (*faults, "good"):
        ctl("site", "add", site)
        made[site] = ca.issue(site)
        give(ctl, site, made[site])
    key = {site: tls / f"{made[site].spki}.key" for site in faults}
    key["gone"].unlink()
    key["damaged"].write_bytes(b"\0" + key["damaged"].read_bytes()[1:])
    key["loose"].chmod(0o644)
    proxy.daemon.expect_log("certificate of site .* is left out")
    proxy.daemon.start()
    assert served(at, "good") == der(made["good"])
    for site in faults:
        assert served(at, site) == NO_NAME
    wait_for(lambda: proxy.log.count("is left out") == 3, what="the lines")
    for site, text in faults.items():
        [line] = [x for x in proxy.log.splitlines()
                  if f"of site {site} is left out" in x]
        assert text in line
        assert "give it again (clusterctl site cert)" in line
    for site in faults:
        give(ctl, site, made[site])
        await_served(at, site, made[site])
    assert served(at, "good") == der(made["good"])
    assert proxy.log.count("is left out") == 3


def test_what_is_said_of_one_that_ends_soon(proxy, ca):
    ctl = proxy.ctl
    give(ctl, "a", ca.issue("a", days=10.5))
    give(ctl, "b", ca.issue("b", days=50))
    proxy.daemon.expect_log("end within 14 days")
    proxy.daemon.start()
    wait_for(lambda: "1 certificate(s) end within 14 days, that of site a in "
             "10 day(s)" in proxy.log, what="the reminder")
    rows = {r["site"]: r for r in proxy.ask(ask="sites")["sites"]}
    assert rows["a"]["cert_days"] == 10
    assert rows["b"]["cert_days"] in (49, 50)
    sites = proxy.metrics()
    assert sites["muster_certificates{}"] == 2
    end = sites['muster_certificate_not_after_seconds{site="a",kind="ecdsa"}']
    assert end == sites["muster_certificates_first_not_after_seconds{}"]
    assert not [k for k in sites if "not_after" in k and 'site="b"' in k]
    assert proxy.status()["tls"]["certificates"] == 2
    assert proxy.log.count("end within 14 days") == 1


# ---- other machines ---------------------------------------------------------

@pytest.fixture
def pair(cluster):
    """A master without a proxy, and p1, which has the role proxy and one."""
    ctl = cluster.ctl
    ctl("role", "add", "proxy")
    ctl("site", "add", "a.example")
    p1 = cluster.add_worker("p1", role="proxy")
    ctl("set", "proxy.http.listen", f"{p1.address}:8080")
    ctl("set", "proxy.https.listen", f"{p1.address}:{HTTPS}")
    ctl("set", "proxy.status.listen", f"{p1.address}:7480")
    ctl("set", "proxy.workers", "1")
    p1.proxyd = cluster.daemon("p1-proxyd", muster.program("proxyd"),
                               "--state", p1.state, "run")
    return cluster


def custody(node):
    d = node.state / "tls"
    return {p.name for p in d.iterdir()} if d.exists() else set()


def test_keys_reach_another_proxy_machine(pair, ca):
    p1 = pair["p1"]
    w1 = pair.add_worker("w1", role="storage")
    old = ca.issue("a.example")
    give(pair.ctl, "a.example", old)
    await_served(p1.address, "a.example", old)
    assert custody(p1) == custody(pair.master)
    assert (p1.state / "tls").stat().st_mode & 0o7777 == 0o700
    for f in (p1.state / "tls").iterdir():
        assert f.stat().st_mode & 0o7777 == 0o600
    key = (p1.state / "tls" / f"{old.spki}.key").read_bytes()
    for node in (pair.master, p1, w1):
        for f in (node.state / "roster", node.log):
            assert key[36:60] not in f.read_bytes(), f
    assert b"site_cert" in (p1.state / "roster").read_bytes()
    # A renewal: the new key comes, the old one goes.
    new = ca.issue("a.example")
    give(pair.ctl, "a.example", new, "--ocsp", ca.staple(new))
    await_served(p1.address, "a.example", new)
    wait_for(lambda: custody(p1) == custody(pair.master),
             what="the old key to go")
    assert f"{new.spki}.key" in custody(p1)
    assert f"{old.spki}.key" not in custody(p1)
    # Each time it is written down who got what.
    orders = [json.loads(line) for line in
              (pair.master.state / "audit-node.log").read_text().splitlines()]
    given = [o for o in orders if o.get("verb") == "custody"
             and o.get("event") == "start"]
    assert any(f"{new.spki}.key" in o.get("files", []) for o in given)
    assert {(o["kind"], o["who"]) for o in given} == {("node", "p1")}
    told = pair.ctl("audit", "--node").stdout
    assert re.search(rf"\tp1\t\S+\tcustody, .*{new.spki}\.key", told)
    # And no worker has any.
    assert custody(w1) == set()
    pair.ctl("site", "cert", "a.example", "--remove")
    wait_for(lambda: custody(p1) == set(), what="the key to go")


def test_a_damaged_file_keeps_no_other_back(pair, ca):
    master, p1 = pair.master, pair["p1"]
    p1.expect_log("the master lacks 1 file")
    p1.proxyd.expect_log("is left out")
    master.expect_log("keys of certificates: .* it is damaged")
    pair.ctl("site", "add", "b.example")
    p1.stop()
    names = ("a.example", "b.example")
    both = [ca.issue(n) for n in names]
    for n, cert in zip(names, both):
        give(pair.ctl, n, cert)
    key = master.state / "tls" / f"{both[0].spki}.key"
    whole = key.read_bytes()
    key.write_bytes(whole[:-3] + b"xyz")
    p1.start()
    wait_for(lambda: custody(p1) == custody(master) - {key.name},
             what="all the others")
    await_served(p1.address, "b.example", both[1])
    key.write_bytes(whole)
    p1.restart()  # which does not wait for its next try
    await_served(p1.address, "a.example", both[0])


def test_nobody_else_gets_a_key(pair, ca):
    w1 = pair.add_worker("w1", role="storage")
    made = ca.issue("a.example")
    give(pair.ctl, "a.example", made)
    wait_for(lambda: custody(pair["p1"]), what="the key on p1")
    want = {"verb": "custody", "files": [f"{made.spki}.key"]}

    def asked(*options, node="m1", request=want, **more):
        got = call(pair, node, request, options=options, **more)
        assert [r for r in got if r["record"] == "file"] == []
        [(_, answer)] = answers(got)
        return answer["word"], answer["text"]

    as_node = {"state": w1.state}
    assert asked("-a", "node", **as_node)[0] == "denied"
    assert asked()[0] == "denied"  # the operator who may do everything
    assert asked("-m", "operator,*,60")[0] == "denied"
    assert asked("-m", "operator,custody,60")[0] == "denied"
    # A certificate that says so, of a node that is none (any more).
    word, text = asked("-m", "node,custody,60")
    assert word in ("denied", "no-target")
    # p1 may, but not elsewhere, and not whatever it likes.
    p1 = {"state": pair["p1"].state}
    assert asked("-a", "node", node="w1", **p1)[0] == "denied"
    for bad in ("../node.key", "node.key", f"{made.spki}.key/../x", ""):
        assert asked("-a", "node", request={**want, "files": [bad]},
                     **p1)[0] in ("usage", "protocol")
    got = call(pair, "m1", want, options=("-a", "node"), **p1)
    [(kind, answer)] = answers(got)
    assert kind == "reply" and answer["sizes"][0] > 100
    # One whose role was taken is asked for it, not its certificate.
    pair["p1"].proxyd.expect_log("is left out", "is not the new one")
    pair.ctl("node", "role", "del", "p1", "proxy")
    wait_for(lambda: not custody(pair["p1"]), what="p1 to drop the keys")
    assert asked("-a", "node", **p1)[0] == "denied"
    denied = [json.loads(line) for line in
              (pair.master.state / "audit-node.log").read_text().splitlines()]
    assert any(o.get("verb") == "custody" and o.get("event") == "denied"
               for o in denied)


def test_a_machine_that_becomes_a_proxy(cluster, ca):
    """Its certificate is renewed for the new role, then the keys come."""
    cluster.ctl("role", "add", "proxy")
    cluster.ctl("site", "add", "a.example")
    give(cluster.ctl, "a.example", ca.issue("a.example"))
    w1 = cluster.add_worker("w1")
    w1.expect_log("keys of certificates: .* no grant for custody")
    cluster.ctl("node", "role", "add", "w1", "proxy")
    wait_for(lambda: custody(w1) == custody(cluster.master),
             what="the keys on w1")
