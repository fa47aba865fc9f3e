"""Certificates of sites: what is taken and what is refused, where keys are
and where they are not.  The registry alone; test_cert_live.py serves."""

import itertools
import os
import re
import shutil

import pytest

import muster
from authority import Authority, make_key, openssl, self_signed

number = itertools.count()


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    """An authority below a root, as there are."""
    tmp = tmp_path_factory.mktemp("ca")
    return Authority(tmp, "Issuing CA", Authority(tmp, "Root CA"))


@pytest.fixture
def site(quiet_master):
    """A site of its own for each test."""
    name = f"s{next(number)}.example"
    quiet_master.ctl("site", "add", name, "--alias", f"www.{name}")
    return name


def names(site):
    return [site, f"www.{site}"]


def custody(cluster):
    d = cluster.master.state / "tls"
    return sorted(p.name for p in d.iterdir()) if d.exists() else []


def shown(cluster, site):
    return cluster.ctl("--json", "site", "cert", site).json_lines


# ---- what is taken ----------------------------------------------------------

def test_one_of_each_kind_side_by_side(quiet_master, ca, site):
    ctl = quiet_master.ctl
    ec, rsa = (ca.issue(site, names(site), kind=k) for k in ("ecdsa", "rsa"))
    out = ctl("--json", "site", "cert", site, "--cert", ec.full, "--key",
              ec.key)
    assert re.match(r"Site \S+ has an ECDSA certificate for (89|90) days",
                    out.json["done"])
    ctl("site", "cert", site, "--cert", rsa.full, "--key", rsa.key)
    rows = shown(quiet_master, site)
    assert [(r["site"], r["kind"], r["key"]) for r in rows] == \
        [(site, "rsa", rsa.spki), (site, "ecdsa", ec.spki)]
    assert rows[0]["names"] == names(site)
    assert rows[0]["issuer"] == "Issuing CA"
    assert rows[0]["days_left"] in (89, 90)
    assert rows[0]["key_here"] is True and rows[0]["staple_until"] is None
    # A second of a kind takes the place of the first, and of its files.
    new = ca.issue(site, names(site), days=30)
    ctl("site", "cert", site, "--cert", new.full, "--key", new.key)
    assert [r["key"] for r in shown(quiet_master, site)] == \
        [rsa.spki, new.spki]
    assert f"{new.spki}.key" in custody(quiet_master)
    assert f"{ec.spki}.key" not in custody(quiet_master)
    # In a pipe: plain, one a line.
    first = ctl("site", "cert", site).lines[0].split("\t")
    assert first[:2] == [site, "rsa"] and first[-1] == ",".join(names(site))


def test_the_chain_in_a_file_of_its_own(quiet_master, ca, site):
    made = ca.issue(site, names(site))
    chain = made.cert.with_suffix(".chain")
    chain.write_text(ca.chain)
    quiet_master.ctl("site", "cert", site, "--cert", made.cert, "--chain",
                     chain, "--key", made.key)
    [row] = shown(quiet_master, site)
    whole = [f for f in (quiet_master.master.state / "tls").iterdir()
             if f.suffix == ".chain"
             and b"Issuing CA" in f.read_bytes()]
    assert row["key"] == made.spki and whole


@pytest.mark.parametrize("curve", ["P-384", "P-521"])
def test_other_curves(quiet_master, ca, site, curve):
    made = ca.issue(site, names(site), kind=curve)
    quiet_master.ctl("site", "cert", site, "--cert", made.full, "--key",
                     made.key)


def test_old_forms_of_keys(quiet_master, ca, site):
    """PKCS #1, SEC 1, from a pipe: as people have them."""
    for kind in ("rsa", "ecdsa"):
        made = ca.issue(site, names(site), kind=kind)
        old = openssl("pkey", "-in", made.key, "-traditional").raw_stdout
        assert b"BEGIN RSA" in old or b"BEGIN EC" in old
        quiet_master.ctl("site", "cert", site, "--cert", made.full, "--key",
                         "/dev/stdin", stdin=old)
        assert f"{made.spki}.key" in custody(quiet_master)


def test_all_in_one_file(quiet_master, ca, site):
    made = ca.issue(site, names(site))
    made.full.write_bytes(made.key.read_bytes() + made.full.read_bytes())
    quiet_master.ctl("site", "cert", site, "--cert", made.full, "--key",
                     made.full)


def test_a_renewal_may_keep_its_key(quiet_master, ca, site):
    first = ca.issue(site, names(site))
    quiet_master.ctl("site", "cert", site, "--cert", first.full, "--key",
                     first.key)
    again = ca.issue(site, names(site), days=200, key=first.key)
    quiet_master.ctl("site", "cert", site, "--cert", again.full)
    [row] = shown(quiet_master, site)
    assert row["days_left"] > 190 and row["key"] == first.spki


def test_a_wildcard_covers_one_label(quiet_master, ca, site):
    made = ca.issue(site, [site, f"*.{site}"])
    ctl = quiet_master.ctl
    ctl("site", "cert", site, "--cert", made.full, "--key", made.key)
    ctl("site", "alias", "add", site, f"*.{site}")
    ctl("site", "cert", site, "--cert", made.full, "--key", made.key)
    ctl("site", "alias", "add", site, f"a.b.{site}")
    out = ctl("site", "cert", site, "--cert", made.full, "--key", made.key,
              status=2)
    assert f"does not cover: a.b.{site}" in out.stderr


# ---- what is taken with a warning -------------------------------------------

def test_self_signed(quiet_master, tmp_path, site):
    made = self_signed(tmp_path, site, names(site))
    out = quiet_master.ctl("site", "cert", site, "--cert", made.full, "--key",
                           made.key)
    assert "self-signed" in out.stderr


def test_doubtful_chains(quiet_master, ca, site):
    made = ca.issue(site, names(site), days=5)
    out = quiet_master.ctl("site", "cert", site, "--cert", made.cert, "--key",
                           made.key)
    assert "give the full chain" in out.stderr
    assert re.search("it ends in [45] day", out.stderr)
    made.full.write_text(made.full.read_text() + ca.parent.cert.read_text())
    out = quiet_master.ctl("site", "cert", site, "--cert", made.full, "--key",
                           made.key)
    assert "the root Root CA need not be sent" in out.stderr


def test_names_that_are_not_covered(quiet_master, ca, site):
    made = ca.issue(site, [site, "more.example"])
    set_it = ["site", "cert", site, "--cert", made.full, "--key", made.key]
    out = quiet_master.ctl(*set_it, status=2)
    assert f"does not cover: www.{site} (it is for {site} more" in out.stderr
    assert "--partial" in out.stderr
    assert shown(quiet_master, site) == []
    out = quiet_master.ctl(*set_it, "--partial")
    assert f"not covered: www.{site}" in out.stderr
    assert len(shown(quiet_master, site)) == 1


# ---- what is refused --------------------------------------------------------

def other_key(ca, m):
    make_key(m.key)


def encrypted(ca, m):
    m.key.write_bytes(openssl("pkey", "-in", m.key, "-aes256", "-passout",
                              "pass:secret").raw_stdout)


def no_key(ca, m):
    m.key.write_text("nothing of the kind")


def no_certificate(ca, m):
    m.full.write_bytes(m.key.read_bytes())


def damaged(ca, m):
    m.full.write_text(m.full.read_text().replace("M", "N", 1))


def reversed_order(ca, m):
    m.full.write_text(ca.chain + m.cert.read_text())


def foreign_chain(ca, m):
    m.full.write_text(m.cert.read_text() + ca.parent.cert.read_text())


def empty(ca, m):
    m.full.write_text("")


REFUSALS = [
    # how it is issued, what happens to it, exit status, what is said
    ({}, other_key, 2, "does not belong to the certificate in"),
    ({}, encrypted, 2, r"is encrypted; give it plain.*openssl pkey -in"),
    ({}, no_key, 2, "there is no private key in"),
    ({}, no_certificate, 2, "there is no certificate in"),
    ({}, empty, 2, "there is no certificate in"),
    ({}, damaged, 2, "certificate 1 in .* is damaged"),
    ({}, reversed_order, 2, "the key belongs to certificate 2; the order is"),
    ({}, foreign_chain, 2,
     r"certificate 2 \(Root CA\) did not sign certificate 1, which Issuing "
     "CA did"),
    ({"days": -1, "since": -9}, None, 7, "certificate 1 in .* has expired"),
    ({"since": 3}, None, 7, "is not valid yet, but from .* on"),
    ({"kind": "rsa1024"}, None, 2, "has 1024 bits; 2048 to 8192 are taken"),
    ({"kind": "ed25519"}, None, 2, "a key of type ED25519; browsers take"),
    ({"kind": "secp256k1"}, None, 2, "type secp256k1; browsers take RSA"),
    ({"digest": "sha1"}, None, 2, "signed with SHA-1 or weaker"),
    ({"names": ()}, None, 2, "names no host"),
    ({"names": ["a_b.c*.example"]}, None, 2, "names no host"),
    ({"extra": "extendedKeyUsage=clientAuth\n"}, None, 2,
     "is not for servers"),
]


@pytest.mark.parametrize("how, fault, status, text", REFUSALS, ids=[
    (f.__name__ if f else "-".join(map(str, h.values())).replace("\n", ""))
    for h, f, _, _ in REFUSALS])
def test_refusals(quiet_master, ca, site, how, fault, status, text):
    made = ca.issue(site, **{"names": names(site), **how})
    if fault is not None:
        fault(ca, made)
    before = custody(quiet_master)
    out = quiet_master.ctl("site", "cert", site, "--cert", made.full, "--key",
                           made.key, status=status)
    assert re.fullmatch(r"clusterctl: .*" + text + r".*\n", out.stderr)
    assert shown(quiet_master, site) == []
    assert custody(quiet_master) == before  # nothing is left


def test_mistakes_of_the_command_line(quiet_master, ca, site):
    ctl = quiet_master.ctl
    made = ca.issue(site, names(site))
    for args, status, text in (
            (["--key", made.key], 2, "which certificate? (--cert FILE)"),
            (["--cert", made.full], 2, "give it with --key FILE"),
            (["--cert", "/nowhere", "--key", made.key], 8, "/nowhere"),
            (["--cert", "/tmp", "--key", made.key], 8, "/tmp"),
            (["--remove"], 3, "has no certificate"),
            (["rsa", "--remove"], 3, "has no rsa certificate"),
            (["dsa", "--remove"], 2, "rsa or ecdsa"),
            (["rsa"], 2, "a kind stands with --remove only"),
            (["--remove", "--cert", made.full], 2, "goes with no file"),
            (["--ocsp", made.full], 3, "no certificate to staple for")):
        out = ctl("site", "cert", site, *args, status=status)
        assert text in out.stderr
    for name, text in ((f"www.{site}", f"is an alias of site {site}"),
                       ("none.example", "no such site")):
        out = ctl("site", "cert", name, "--cert", made.full, "--key",
                  made.key, status=3)
        assert text in out.stderr


def test_without_proxyd_here(quiet_master, ca, site, tmp_path):
    """clusterctl alone on a machine says what it lacks."""
    alone = tmp_path / "clusterctl"
    shutil.copy(muster.program("clusterctl"), alone)
    made = ca.issue(site, names(site))
    out = muster.run(alone, "--state", quiet_master.master.state, "site",
                     "cert", site, "--cert", made.full, "--key", made.key,
                     status=8)
    assert "proxyd, which is not installed beside clusterctl" in out.stderr


# ---- OCSP -------------------------------------------------------------------

def test_a_staple_and_a_fresh_one(quiet_master, ca, site):
    ctl = quiet_master.ctl
    rsa, made = (ca.issue(site, names(site), kind=k)
                 for k in ("rsa", "ecdsa"))
    ctl("site", "cert", site, "--cert", rsa.full, "--key", rsa.key)
    ctl("site", "cert", site, "--cert", made.full, "--key", made.key,
        "--ocsp", ca.staple(made))
    first = shown(quiet_master, site)[1]["staple_until"]
    assert first is not None
    before = [f for f in custody(quiet_master) if f.endswith(".ocsp")]
    # Alone: for whichever certificate it is about.
    ctl("site", "cert", site, "--ocsp", ca.staple(made, days=9))
    rows = shown(quiet_master, site)
    assert rows[0]["staple_until"] is None and rows[1]["staple_until"] > first
    after = [f for f in custody(quiet_master) if f.endswith(".ocsp")]
    assert len(after) == len(before) and after != before
    # A new certificate does not keep the old one's.
    new = ca.issue(site, names(site))
    ctl("site", "cert", site, "--cert", new.full, "--key", new.key)
    assert shown(quiet_master, site)[1]["staple_until"] is None


def test_staples_that_are_refused(quiet_master, ca, site):
    made, other = (ca.issue(site, names(site)) for _ in range(2))
    for file, status, text in (
            (ca.staple(other), 2, "is about another certificate"),
            (made.cert, 2, "there is no OCSP response in"),
            (ca.parent.staple(made), 2, "about another certificate")):
        out = quiet_master.ctl("site", "cert", site, "--cert", made.full,
                               "--key", made.key, "--ocsp", file,
                               status=status)
        assert text in out.stderr
    good = ca.staple(made)
    out = quiet_master.ctl("site", "cert", site, "--cert", made.cert, "--key",
                           made.key, "--ocsp", good, status=2)
    assert "give the full chain" in out.stderr
    out = quiet_master.ctl("site", "cert", site, "--cert", made.full, "--key",
                           made.key, "--ocsp", good, status=7,
                           env=muster.faketime("+10d"))
    assert "has expired" in out.stderr


# ---- where keys are ---------------------------------------------------------

def private_part(made):
    """Bytes that only the private key has, as the files hold them."""
    der = openssl("pkcs8", "-topk8", "-nocrypt", "-in", made.key, "-outform",
                  "DER").raw_stdout
    return der[36:60]  # of a P-256 key: in the middle of its number


def test_keys_are_in_custody_and_nowhere_else(quiet_master, ca, site,
                                              tmp_path):
    ctl = quiet_master.ctl
    made = ca.issue(site, names(site))
    made.key.chmod(0o644)
    old = os.umask(0)
    try:
        out = ctl("-v", "site", "cert", site, "--cert", made.full, "--key",
                  made.key)
    finally:
        os.umask(old)
    assert f"others can read {made.key} (mode 0644)" in out.stderr
    state = quiet_master.master.state
    tls = state / "tls"
    assert tls.stat().st_mode & 0o7777 == 0o700
    for f in tls.iterdir():
        assert f.stat().st_mode & 0o7777 == 0o600, f
    kept = tls / f"{made.spki}.key"
    secret = private_part(made)
    assert secret in kept.read_bytes()
    ctl("registry", "backup", tmp_path / "copy.db")
    export = ctl("registry", "export").stdout
    assert made.spki in export and '"site_certs"' in export
    for f in [*state.rglob("*"), tmp_path / "copy.db"]:
        if f.is_file() and f != kept:
            assert secret not in f.read_bytes(), f
    shown_text = export + out.stdout + out.stderr + ctl(
        "certs", "--json").stdout + ctl("registry", "log").stdout
    assert "PRIVATE" not in shown_text
    ctl("registry", "check")


def test_what_nobody_uses_is_removed(quiet_master, ca, site):
    ctl = quiet_master.ctl
    before = custody(quiet_master)
    made = ca.issue(site, names(site))
    other = f"other.{site}"
    ctl("site", "add", other)
    both = ca.issue(site, [*names(site), other], key=made.key)
    for s in (site, other):
        ctl("site", "cert", s, "--cert", both.full, "--key", both.key)
    assert len(custody(quiet_master)) == len(before) + 2
    # Another site has the same key and chain: they stay.
    ctl("site", "cert", site, "--remove", "ecdsa")
    assert len(custody(quiet_master)) == len(before) + 2
    ctl("site", "del", other)
    assert custody(quiet_master) == before
    # A killed writer's file goes, too.
    left = quiet_master.master.state / "tls" / ".muster-new.abcdef"
    left.write_text("x")
    ctl("site", "cert", site, "--cert", made.full, "--key", made.key)
    ctl("site", "cert", site, "--remove")
    assert custody(quiet_master) in (before, sorted([*before, left.name]))


def test_apply_takes_one_away(quiet_master, ca, site, tmp_path):
    ctl = quiet_master.ctl
    before = custody(quiet_master)
    ctl("registry", "export", tmp_path / "before.json")
    made = ca.issue(site, names(site))
    ctl("site", "cert", site, "--cert", made.full, "--key", made.key)
    ctl("registry", "export", tmp_path / "after.json")
    out = ctl("registry", "apply", tmp_path / "before.json")
    assert out.lines == [f"remove the ecdsa certificate of site {site}"]
    assert custody(quiet_master) == before
    # And back: the row comes, its files do not.
    ctl("registry", "apply", tmp_path / "after.json")
    [row] = shown(quiet_master, site)
    assert row["key"] == made.spki and row["key_here"] is False
    ctl("site", "cert", site, "--remove")


def test_what_others_could_read_is_refused(quiet_master, ca, site):
    tls = quiet_master.master.state / "tls"
    made = ca.issue(site, names(site))
    set_it = ["site", "cert", site, "--cert", made.full, "--key", made.key]
    quiet_master.ctl(*set_it)
    tls.chmod(0o750)
    try:
        out = quiet_master.ctl(*set_it, status=8)
        assert f"{tls} is open to others (mode 0750); chmod 700" in out.stderr
    finally:
        tls.chmod(0o700)


def test_a_key_is_not_in_argv(quiet_master, ca, site, tmp_path):
    """What proxyd is started with: paths."""
    fifo = tmp_path / "key"
    os.mkfifo(fifo, 0o600)
    made = ca.issue(site, names(site))
    p = quiet_master.ctl_start("site", "cert", site, "--cert", made.full,
                               "--key", fifo)

    def waits():
        return [argv for pid, _, argv in muster.children(p.pid)
                if "cert-check" in argv]
    [argv] = muster.wait_for(waits, what="proxyd to read the key")
    assert str(fifo) in argv and "PRIVATE" not in argv
    fifo.write_bytes(made.key.read_bytes())
    out, err = p.communicate(timeout=muster.PATIENCE_S)
    assert p.returncode == 0, err


# ---- all of them ------------------------------------------------------------

def test_certs_lists_all_with_the_days_left(quiet_master, ca, site):
    ctl = quiet_master.ctl
    soon = ca.issue(site, names(site), days=12, kind="rsa")
    late = ca.issue(site, names(site), days=300)
    for made in (soon, late):
        ctl("site", "cert", site, "--cert", made.full, "--key", made.key)

    def listed(*options):
        return [(r["kind"], r["days_left"])
                for r in ctl("--json", "certs", *options).json_lines
                if r["site"] == site]
    assert [k for k, _ in listed()] == ["rsa", "ecdsa"]
    [(kind, days)] = listed("--expiring", "30d")
    assert kind == "rsa" and days in (11, 12)
    assert listed("--expiring", "1d") == []
    env = muster.faketime("+20d")
    [late_row] = [r for r in ctl("--json", "certs", "--expiring", "1d",
                                 env=env).json_lines
                  if r["site"] == site]
    assert late_row["days_left"] < 0
    table = quiet_master.terminal("certs", "--no-color")
    table.expect(r"SITE\s+KIND\s+DAYS\s+UNTIL\s+ISSUER")
    assert table.status() == 0


def test_the_default_certificate_is_a_setting(quiet_master, site):
    ctl = quiet_master.ctl
    ctl("set", "proxy.https.default_cert", site)
    out = ctl("get", "proxy.https.default_cert").stdout
    assert site in out
    ctl("set", "proxy.https.default_cert", "none")
    out = ctl("set", "proxy.https.default_cert", "not a host", status=2)
    assert "not valid" in out.stderr


def test_cert_check_by_hand(ca, tmp_path):
    """Whoever has only proxyd can ask it."""
    made = ca.issue("a.example", ["A.Example", "*.b.example"])
    out = muster.run(muster.program("proxyd"), "cert-check", "--cert",
                     made.full, "--key", made.key)
    assert out.json["names"] == ["a.example", "*.b.example"]
    assert out.json["key"] == made.spki
    assert out.raw_stdout.count(b"\n") == 1  # and nothing of the key
    out = muster.run(muster.program("proxyd"), "cert-check", status=2)
    assert "which certificate? (--cert FILE)" in out.stderr
