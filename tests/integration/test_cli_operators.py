"""Operators from the command line, and the sealed authority key."""

import os
import re
import subprocess

import pytest

import muster

TOKEN = muster.TOKEN


def add(cluster, name, *options):
    out = cluster.ctl("operator", "add", name, *options).stdout
    assert re.fullmatch(r"clusterctl operator join muster1\.\S+\n", out)
    return TOKEN.search(out).group()


def join(cluster, token, place, **kw):
    return cluster.ctl("operator", "join", token,
                       state=cluster.tmp / place, **kw)


def test_an_operator_from_afar(cluster):
    cluster.add_worker("w1")
    token = add(cluster, "bob", "--grant", "status", "--grant",
                "exec:worker_http", "--ttl", "7d")
    out = join(cluster, token, "bob").stdout
    assert out.startswith(
        "You are operator bob; you may status, exec:worker_http.\n")
    bob = cluster.tmp / "bob"
    assert (bob / "operator.key").stat().st_mode & 0o777 == 0o600
    assert cluster.ctl("nodes", state=bob).lines == ["m1", "w1"]
    assert cluster.ctl("ping", "w1", state=bob)
    row = [o for o in cluster.ctl("operator", "list", "--json").json_lines
           if o["name"] == "bob"][0]
    assert row["grants"] == ["status", "exec:worker_http"]
    assert row["joined"] is True
    # Its certificate never outlives its grants.
    assert row["certificate_until"] <= row["until"]
    # The same from the roster, on a machine that has no registry.
    muster.wait_for(lambda: [
        o["name"] for o in cluster["w1"].ctl(
            "operator", "list", "--json").json_lines] == ["admin", "bob"])


def test_the_token_from_stdin(cluster):
    token = add(cluster, "bob", "--grant", "status")
    r = cluster.ctl("operator", "join", "-", state=cluster.tmp / "bob",
                    stdin=token + "\n")
    assert r.stdout.startswith("You are operator bob")


def test_a_token_admits_once(cluster):
    token = add(cluster, "bob", "--grant", "status")
    join(cluster, token, "bob")
    r = join(cluster, token, "eve", status=7)
    assert "bob" not in r.stderr or "used" in r.stderr
    assert not (cluster.tmp / "eve" / "operator.cert").exists()
    r = join(cluster, token, "bob", status=2)
    assert r.stderr == (
        f"clusterctl: {cluster.tmp}/bob has an operator's identity already "
        "(choose another place with --state, or give that one up with "
        "--replace)\n")


def test_an_identity_is_replaced(cluster):
    join(cluster, add(cluster, "bob", "--grant", "status"), "bob")
    key = (cluster.tmp / "bob" / "operator.key").read_bytes()
    cluster.ctl("operator", "revoke", "bob")
    token = add(cluster, "bob", "--grant", "status")
    r = cluster.ctl("operator", "join", token, "--replace",
                    state=cluster.tmp / "bob")
    assert r.stdout.startswith("You are operator bob")
    assert (cluster.tmp / "bob" / "operator.key").read_bytes() != key
    cluster.ctl("ping", "m1", state=cluster.tmp / "bob")


@pytest.mark.parametrize("change", [
    ["revoke", "admin"], ["set", "admin", "--grant", "exec"]])
def test_somebody_may_do_everything(cluster, change):
    add(cluster, "bob", "--grant", "exec")
    r = cluster.ctl("operator", *change, status=2)
    assert r.stderr == (
        "clusterctl: admin is the only operator who may do everything; add "
        "another one first, with --grant '*'\n")
    cluster.ctl("operator", "revoke", "bob")
    add(cluster, "eve", "--grant", "*")
    cluster.ctl("operator", *change)


def test_a_join_that_broke_off_is_finished_by_the_same_token(cluster):
    token = add(cluster, "bob", "--grant", "status")
    join(cluster, token, "bob")
    # As if the answer had been lost: the key is there, no more.
    (cluster.tmp / "bob" / "operator.cert").unlink()
    (cluster.tmp / "bob" / "roster").unlink()
    join(cluster, token, "bob")
    assert cluster.ctl("nodes", state=cluster.tmp / "bob").lines == ["m1"]


def test_a_token_runs_out(cluster):
    token = add(cluster, "bob", "--grant", "status", "--join-within", "1s")
    muster.wait_for(lambda: not cluster.ctl("token", "list").stdout)
    r = join(cluster, token, "bob", status=7)
    assert "expired" in r.stderr
    assert not (cluster.tmp / "bob" / "operator.cert").exists()


@pytest.mark.parametrize("token, text", [
    ("muster1.AAAA", None),
    ("x" * 5000, "that is no token: it is too long"),
    ("hello", None),
], ids=["cut", "long", "other"])
def test_bad_tokens(cluster, token, text):
    r = join(cluster, token, "bob", status=2)
    assert r.stderr.count("\n") == 1 and token not in r.stderr
    if text:
        assert r.stderr == f"clusterctl: {text}\n"
    assert not (cluster.tmp / "bob").exists()


def test_tokens_of_the_other_kind(cluster):
    node = cluster.token("--role", "storage")
    r = join(cluster, node, "bob", status=2)
    assert r.stderr == ("clusterctl: this token is for a node: nodeagent "
                        "join takes it\n")
    operator = add(cluster, "bob", "--grant", "status")
    assert cluster.join(operator, "w1", status=[2, 7]).stderr


def test_another_token_before_the_join(cluster):
    first = add(cluster, "bob", "--grant", "status")
    out = cluster.ctl("operator", "token", "bob").stdout
    second = TOKEN.search(out).group()
    assert first != second
    join(cluster, second, "bob")
    r = cluster.ctl("operator", "token", "bob", status=2)
    assert "operator bob has joined already" in r.stderr


def test_nobody_answers(cluster):
    token = add(cluster, "bob", "--grant", "status")
    cluster.master.stop()
    r = join(cluster, token, "bob", status=4)
    assert r.stderr.startswith(
        f"clusterctl: master {cluster.master.address}:7400: ")


def test_revocation_holds_at_once_everywhere(cluster):
    cluster.add_worker("w1")
    bob = cluster.tmp / "bob"
    join(cluster, add(cluster, "bob", "--grant", "*"), "bob")
    cluster.ctl("ping", "-a", state=bob)
    r = cluster.ctl("operator", "revoke", "bob")
    assert r.stderr == ""
    for node in ("m1", "w1"):
        r = cluster.ctl("ping", node, state=bob, status=7)
        assert "revoked" in r.stdout + r.stderr
    assert [o["name"] for o in
            cluster.ctl("operator", "list", "--json").json_lines] == ["admin"]


def test_grants_can_be_changed(cluster):
    add(cluster, "bob", "--grant", "status")
    cluster.ctl("operator", "set", "bob", "--grant", "exec", "--ttl",
                "never")
    bob = cluster.ctl("operator", "list", "--json").json_lines[1]
    assert bob["grants"] == ["exec"] and bob["until"] == "never"
    cluster.ctl("operator", "set", "bob", "--ttl", "1d")
    bob = cluster.ctl("operator", "list", "--json").json_lines[1]
    assert bob["grants"] == ["exec"] and bob["until"] != "never"


# ---- the sealed authority key ---------------------------------------------

def with_passphrase(argv, passphrase, status):
    r, w = os.pipe()
    os.write(w, passphrase.encode() + b"\n")
    os.close(w)
    try:
        p = subprocess.run([*map(str, argv), "--passphrase-fd", str(r)],
                           pass_fds=[r], capture_output=True, text=True,
                           timeout=60, env=muster.clean_env())
    finally:
        os.close(r)
    assert p.returncode == status, p.stdout + p.stderr
    return p


def test_a_sealed_master(empty_cluster):
    c = empty_cluster
    m = c.master = c._node("m1")
    with_passphrase([muster.program("clusterctl"), "--state", m.state,
                     "init", "--name", "m1", "--address",
                     f"{m.address}:7400"], "correct horse", 0)
    m.start()
    m.expect_log("lock")
    token = c.token("--role", "storage")
    r = c.join(token, "w1", status=None)
    assert r.status != 0 and "clusterctl unlock" in r.stdout + r.stderr
    unlock = c.ctl_argv("unlock")
    p = with_passphrase(unlock, "wrong", 7)
    assert p.stderr == "clusterctl: wrong passphrase for the authority key\n"
    p = with_passphrase(unlock, "correct horse", 0)
    assert p.stderr == ""
    c.join(token, "w1")
    assert c.ctl("nodes").lines == ["m1", "w1"]
    assert "correct horse" not in m.text


def test_unlock_where_nothing_is_sealed(cluster):
    p = with_passphrase(cluster.ctl_argv("unlock"), "x", 0)
    assert p.stderr == ""


def test_the_token_does_not_stay_in_the_process_list(cluster):
    token = add(cluster, "bob", "--grant", "status")
    # A master that is stopped takes the connection and says nothing.
    os.kill(cluster.master.pid, muster.signal.SIGSTOP)
    p = cluster.ctl_start("operator", "join", token,
                          state=cluster.tmp / "bob")
    try:
        def seen():
            with open(f"/proc/{p.pid}/cmdline", "rb") as f:
                return f.read()
        muster.wait_for(lambda: (cluster.tmp / "bob" /
                                 "operator.key").exists())
        assert token.encode() not in seen()
        assert b"muster1" not in seen()
    finally:
        os.kill(cluster.master.pid, muster.signal.SIGCONT)
        p.communicate(timeout=muster.PATIENCE_S)
