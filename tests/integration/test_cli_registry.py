"""The registry as a whole: export and apply, backup and restore, kill -9 at
any instant, full and read-only disks, damage."""

import json
import os
import shutil
import stat
import subprocess

import pytest

import muster


@pytest.fixture
def master(empty_cluster):
    empty_cluster.init(start=False)
    return empty_cluster


def fill_in(master):
    ctl = master.ctl
    ctl("node", "add", "b1", "10.0.0.1", "--role", "worker_http", "--port",
        "worker_http=8081")
    ctl("role", "add", "cache", "--port", "6081")
    ctl("site", "add", "a.example", "--alias", "www.a.example", "--owner",
        "anna")
    ctl("operator", "add", "bob", "--grant", "exec")
    ctl("set", "proxy.workers", "3")


def test_export_and_apply(master, tmp_path):
    fill_in(master)
    text = master.ctl("registry", "export").stdout
    assert master.ctl("registry", "export", tmp_path / "f").stdout == ""
    assert (tmp_path / "f").read_text() == text
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o600
    # No secret, no key, no token.
    for word in ("key", "psk", "muster1.", "serial"):
        assert word not in text
    assert master.ctl("registry", "apply", tmp_path / "f").stdout == ""
    all_ = json.loads(text)
    all_["nodes"][0]["weight"] = 2 if all_["nodes"][0]["name"] == "b1" else 1
    all_["nodes"] = [dict(n, weight=2) if n["name"] == "b1" else n
                     for n in all_["nodes"]]
    all_["sites"] = []
    dry = master.ctl("registry", "apply", "--dry-run", "-",
                     stdin=json.dumps(all_)).lines
    assert "remove site a.example" in dry
    assert any("b1" in line and "weight" in line for line in dry)
    assert master.ctl("site", "list").lines == ["a.example"]
    wet = master.ctl("registry", "apply", "-", stdin=json.dumps(all_)).lines
    assert wet == dry
    assert master.ctl("site", "list").lines == []
    assert master.ctl("registry", "apply", "-",
                      stdin=json.dumps(all_)).stdout == ""


@pytest.mark.parametrize("text, status", [
    ("", 2), ("{", 2), ("[]", 2), ('{"format":"other"}', 2),
])
def test_apply_refuses_what_is_no_export(master, text, status):
    r = master.ctl("registry", "apply", "-", stdin=text, status=status)
    assert r.stderr.count("\n") == 1 and r.stdout == ""


def test_apply_keeps_the_last_administrator(master):
    before = master.ctl("registry", "export").stdout
    text = json.dumps({**json.loads(before), "operators": []})
    for dry_run in (["--dry-run"], []):
        r = master.ctl("registry", "apply", *dry_run, "-", stdin=text,
                       status=2)
        assert "no operator would be left who may do everything" in r.stderr
    assert master.ctl("registry", "export").stdout == before


def test_apply_that_revokes_tells_the_nodes(cluster):
    cluster.add_workers(2)
    cluster["w1"].expect_log(".*")
    serial = str(cluster.ctl("node", "show", "w1", "--json").json["serial"])
    text = json.loads(cluster.ctl("registry", "export").stdout)
    text["nodes"] = [n for n in text["nodes"] if n["name"] != "w1"]
    r = cluster.ctl("registry", "apply", "-", stdin=json.dumps(text))
    assert r.lines == ["remove node w1"]
    assert serial in (cluster["w2"].state / "roster").read_text()


def test_backup_and_restore(master, tmp_path):
    fill_in(master)
    before = master.ctl("registry", "export").stdout
    copy = tmp_path / "copy.db"
    master.ctl("registry", "backup", copy)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    master.ctl("site", "del", "a.example")
    for name in ("registry.db", "registry.db-wal", "registry.db-shm"):
        (master.master.state / name).unlink(missing_ok=True)
    shutil.copy(copy, master.master.state / "registry.db")
    assert master.ctl("registry", "export").stdout == before
    master.ctl("registry", "check")


def test_a_lost_master(cluster, tmp_path):
    """A second node with the role master stands by without the registry;
    with a backup and the authority key it takes over, and the others follow
    although they have seen later revisions than the backup's."""
    m1 = cluster.master
    m2 = cluster.add_worker("m2", role="master")
    w1 = cluster.add_worker("w1")
    cluster.ctl("registry", "backup", tmp_path / "copy.db")
    for name in ("authority.key", "authority.pub"):
        shutil.copy(m1.state / name, tmp_path / name)
    for i in range(5):
        cluster.ctl("site", "add", f"later{i}.example")
    muster.wait_for(lambda: len(w1.ctl("site", "list").lines) == 5
                    and len(m2.ctl("site", "list").lines) == 5)
    m1.kill()
    assert w1.ctl("nodes").lines == ["m1", "m2", "w1"]

    m2.stop()
    m2.expect_log(".*m1.*")
    w1.expect_log(".*m1.*")
    shutil.copy(tmp_path / "copy.db", m2.state / "registry.db")
    shutil.copy(tmp_path / "authority.key", m2.state / "authority.key")
    m2.start()
    assert m2.ctl("site", "list").lines == []
    r = m2.ctl("node", "remove", "m1")
    assert r.stderr == ""
    assert w1.ctl("nodes").lines == ["m2", "w1"]
    token = muster.TOKEN.search(
        m2.ctl("enroll", "--role", "worker_http").stdout).group()
    cluster.join(token, "w2")
    muster.wait_for(lambda: w1.ctl("nodes").lines == ["m2", "w1", "w2"])
    # An operator of the new master commands them all.
    token = muster.TOKEN.search(
        m2.ctl("operator", "add", "anna", "--grant", "*").stdout).group()
    m2.ctl("operator", "join", token)
    m2.ctl("exec", "-a", "true")
    m2.ctl("registry", "check")


def test_the_change_log_says_who(master):
    fill_in(master)
    row = master.ctl("registry", "log", "-n", "1", "--json").json
    assert row["who"] == "operator admin"
    assert row["what"] == "set proxy.workers 3"
    rows = master.ctl("registry", "log", "--json").json_lines
    revisions = [r["revision"] for r in rows]
    assert revisions == list(range(revisions[0], revisions[0] - len(rows),
                                   -1))


def test_check_finds_damage(master):
    fill_in(master)
    db = master.master.state / "registry.db"
    master.ctl("registry", "check")
    raw = bytearray(db.read_bytes())
    for i in range(8192, len(raw), 4096):
        raw[i:i + 64] = b"\xff" * 64
    db.write_bytes(raw)
    r = master.ctl("registry", "check", status=8)
    assert r.stderr.count("\n") == 1


def test_a_registry_that_is_none(master):
    db = master.master.state / "registry.db"
    db.write_bytes(b"not a database at all" * 1000)
    r = master.ctl("site", "add", "a.example", status=8)
    assert r.stderr.count("\n") == 1 and str(db) in r.stderr
    # The roster still answers.
    r = master.ctl("nodes")
    assert r.lines == ["m1"]
    assert str(db) in r.stderr and "going by the roster" in r.stderr


CHANGES = [
    ["node", "add", "k{i}", "10.9.{j}.{k}", "--role", "worker_http"],
    ["node", "role", "add", "k{i}", "storage"],
    ["site", "add", "s{i}.example", "--alias", "www.s{i}.example"],
    ["site", "set", "s{i}.example", "--owner", "u{i}"],
    ["operator", "add", "o{i}", "--grant", "exec"],
    ["enroll", "--role", "worker_http"],
    ["set", "proxy.workers", "{k}"],
    ["role", "set", "worker_http", "--port", "{p}"],
    ["operator", "set", "o{i}", "--ttl", "3d"],
    ["node", "drain", "k{i}"],
    ["site", "del", "s{i}.example"],
    ["node", "rename", "k{i}", "r{i}"],
    ["node", "remove", "r{i}"],
]


def test_killed_at_any_instant(master, rng):
    """kill -9 in the midst of changes: sound, and each is there or not."""
    killed = 0
    for i in range(1, 21):
        for line in CHANGES:
            argv = [w.format(i=i, j=i // 200, k=i % 200 + 1, p=8000 + i)
                    for w in line]
            if rng.random() < 0.4:
                killed += muster.run_killed(*master.ctl_argv(*argv),
                                            after_s=rng.uniform(0, 0.012))
            else:
                master.ctl(*argv, status=None)
        if i % 4 == 0:
            r = master.ctl("registry", "check")
            assert r.stdout == ""
    assert killed > 10, "hardly a kill came in time"
    assert "m1" in master.ctl("nodes").lines


def test_killed_while_many_sites_come_in(master, rng, tmp_path):
    many = tmp_path / "many"
    many.write_text("".join(f"s{i}.example\n" for i in range(5000)))
    for _ in range(6):
        muster.run_killed(*master.ctl_argv("site", "add", "--from-file",
                                           many),
                          after_s=rng.uniform(0.01, 0.08))
        n = len(master.ctl("site", "list").lines)
        assert n in (0, 5000), "a part of them is there"
        master.ctl("registry", "check")
        if n:
            break


def test_many_writers_at_once(master):
    """Sixteen at a time: each change is made, none is lost."""
    tries = [master.ctl_start("site", "add", f"s{i}.example")
             for i in range(16)]
    for p in tries:
        _, err = p.communicate(timeout=60)
        assert p.returncode == 0, err
    assert len(master.ctl("site", "list").lines) == 16
    master.ctl("registry", "check")


def test_full_disk(tmp_path):
    tmp_path.chmod(0o700)
    ctl = [muster.program("clusterctl"), "--state", tmp_path / "d" / "state"]
    with muster.tmpfs(tmp_path / "d", "2m") as disk:
        muster.run(*ctl, "init", "--name", "m1", "--address", "127.0.6.1")
        ballast = muster.fill(disk)
        failed = 0
        for i in range(200):
            r = muster.run(*ctl, "site", "add", f"s{i}.example",
                           status=(0, 8))
            if r.status == 8:
                failed += 1
                assert "full" in r.stderr or "No space" in r.stderr, r
                assert r.stderr.count("\n") == 1
        assert failed > 0
        # It still answers questions, and goes on when there is room.
        assert muster.run(*ctl, "nodes").lines == ["m1"]
        ballast.unlink()
        muster.run(*ctl, "site", "add", "later.example")
        muster.run(*ctl, "registry", "check")


def test_read_only_disk(tmp_path):
    tmp_path.chmod(0o700)
    ctl = [muster.program("clusterctl"), "--state", tmp_path / "d" / "state"]
    with muster.tmpfs(tmp_path / "d", "4m") as disk:
        muster.run(*ctl, "init", "--name", "m1", "--address", "127.0.6.1")
        muster.remount(disk, "ro")
        r = muster.run(*ctl, "site", "add", "a.example", status=8)
        assert "read" in r.stderr.lower() and r.stderr.count("\n") == 1, r
        assert muster.run(*ctl, "nodes").lines == ["m1"]
        assert muster.run(*ctl, "role", "list").lines
        muster.remount(disk, "rw")


def test_output_that_cannot_be_written(master):
    with open("/dev/full", "wb") as full:
        p = subprocess.run(master.ctl_argv("nodes"), stdout=full,
                           stderr=subprocess.PIPE, env=muster.clean_env())
    assert p.returncode == 8
    assert b"No space left on device" in p.stderr


def test_a_reader_that_goes_away(master):
    p = subprocess.Popen(master.ctl_argv("nodeset", "expand",
                                         "n[1-200000]"),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=muster.clean_env())
    p.stdout.readline()
    p.stdout.close()
    assert p.wait(timeout=muster.PATIENCE_S) in (0, -13, 141)
    assert p.stderr.read() == b""
    p.stderr.close()


# ---- the audit log ---------------------------------------------------------

def test_changes_are_in_the_audit_log(master):
    log = master.master.state / "audit-operator.log"
    master.ctl("nodes")
    master.ctl("registry", "export")
    master.ctl("site", "add", "A.example", status=2)
    assert not log.exists()
    master.ctl("site", "add", "a.example", "--owner", "anna")
    row, = master.ctl("audit", "--json").json_lines
    assert row["event"] == "change" and row["who"] == "operator admin"
    assert row["typed"].endswith("site add a.example --owner anna")
    assert row["revision"] == master.ctl("registry", "log", "-n", "1",
                                         "--json").json["revision"]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    master.ctl("audit", "--verify")


def test_audit(cluster):
    cluster.add_worker("w1")
    cluster.ctl("exec", "w1", "true")
    rows = cluster.ctl("audit", "--operator", "--json").json_lines
    assert any(row.get("typed", "").startswith("exec w1")
               or "true" in json.dumps(row) for row in rows)
    assert cluster["w1"].ctl("audit", "--node", "--json").json_lines
    r = cluster.ctl("audit", "--verify")
    assert "operator: " in r.stdout and "sound" in r.stdout
    assert len(cluster.ctl("audit", "-n", "1", "--operator").lines) == 1
    log = cluster.master.state / "audit-operator.log"
    text = log.read_text()
    log.write_text(text.replace("true", "fals", 1))
    r = cluster.ctl("audit", "--verify", status=8)
    assert "breaks the chain" in r.stderr
    log.write_text(text)
    os.chmod(log, 0o600)
    cluster.ctl("audit", "--verify")


def test_audit_for_people(cluster):
    """A table on a terminal, the same columns as plain lines in a pipe."""
    w1 = cluster.add_worker("w1")
    cluster.ctl("exec", "w1", "exit 3", status=1)
    cluster.ctl("exec", "w1", "--timeout", "100ms", "sleep 9", status=5)
    cluster.ctl("site", "add", "a", "--role", "worker_http")
    rows = [line.split("\t") for line in
            cluster.ctl("audit", "--operator").lines]
    assert all(len(r) == 6 and r[1] == "operator" for r in rows)
    order, = [r for r in rows if r[5].endswith("exec w1 'exit 3', on w1")]
    result, = [r for r in rows if r[5] == "exit 1, failed w1"]
    assert order[2:4] == ["order", "admin"] and order[4] == result[4]
    change = rows[-1]
    assert change[2:5] == ["change", "operator admin", "-"]
    assert "site add a --role worker_http, revision" in change[5]
    rows = [line.split("\t") for line in w1.ctl("audit", "--node").lines]
    assert [r[2] for r in rows] == ["start", "end"] * 2
    assert [r[5] for r in rows][1::2] == ["exit 3", "signal 15, timed out"]
    t = cluster.terminal("audit", cols=200)
    assert t.status() == 0
    assert "{" not in t.text and order[4] not in t.text
    assert order[4][:8] in t.text
    for title in ("TIME", "LOG", "EVENT", "WHO", "ORDER", "WHAT"):
        assert t.text.count(title) == 1
