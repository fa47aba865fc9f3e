"""clusterctl init: what it makes, what it refuses, and that it can be killed
at any instant."""

import os
import shutil
import stat
import subprocess

import pytest

import muster

SECRETS = ["authority.key", "node.key", "operator.key", "registry.db",
           "roster"]
PUBLIC = ["authority.pub", "node.cert", "operator.cert"]


def init(state, *options, **kw):
    return muster.run(muster.program("clusterctl"), "--state", state, "init",
                      *options, **kw)


def ctl(state, *argv, **kw):
    return muster.run(muster.program("clusterctl"), "--state", state, *argv,
                      **kw)


@pytest.fixture
def place(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path / "state"


def test_makes_a_cluster_and_says_what_comes_next(place):
    out = init(place, "--cluster", "hosting", "--name", "m1",
               "--address", "127.0.6.1").stdout
    assert "Cluster hosting" in out and "m1 at 127.0.6.1:7400" in out
    assert f"nodeagent --state {place} run" in out
    assert f"clusterctl --state {place} enroll --role worker_http" in out
    assert ctl(place, "nodes").lines == ["m1"]
    assert ctl(place, "roles").lines == ["master"]
    assert ctl(place, "registry", "check").stdout == ""
    admin = ctl(place, "operator", "list", "--json").json
    assert admin["name"] == "admin" and admin["grants"] == ["*"]
    assert admin["joined"] is True and admin["until"] == "never"


def test_json(place):
    out = init(place, "--cluster", "c", "--name", "m1", "--address",
               "[::1]:7401", "--json").json
    assert out == {"cluster": "c", "node": "m1", "address": "[::1]:7401",
                   "operator": "admin", "sealed": False, "state": str(place)}


def test_the_next_command_needs_no_state_where_the_environment_says_it(place):
    out = muster.run(muster.program("clusterctl"), "init", "--name", "m1",
                     "--address", "127.0.6.1",
                     env={"MUSTER_STATE": str(place)}).stdout
    assert "\n  nodeagent run\n" in out


def test_every_secret_is_private(place):
    before = os.umask(0)
    try:
        init(place, "--name", "m1", "--address", "127.0.6.1")
    finally:
        os.umask(before)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    for name in SECRETS:
        assert stat.S_IMODE((place / name).stat().st_mode) == 0o600, name
    for name in PUBLIC:
        assert stat.S_IMODE((place / name).stat().st_mode) & 0o022 == 0, name
    assert sorted(p.name for p in place.iterdir()) == sorted(SECRETS + PUBLIC)


def test_never_overwrites(place):
    init(place, "--name", "m1", "--address", "127.0.6.1")
    before = {p.name: p.read_bytes() for p in place.iterdir()}
    r = init(place, "--name", "m2", "--address", "127.0.6.2", status=2)
    assert r.stderr == (
        f"clusterctl: {place} already holds a cluster (go on with clusterctl "
        "enroll, or choose another place with --state)\n")
    assert before == {p.name: p.read_bytes() for p in place.iterdir()}


def test_never_overwrites_a_member(place):
    place.mkdir(mode=0o700)
    (place / "node.key").write_bytes(b"k" * 32)
    r = init(place, "--name", "m1", "--address", "127.0.6.1", status=2)
    assert r.stderr == (
        f"clusterctl: {place} already belongs to a member of a cluster "
        "(choose another place with --state)\n")
    assert (place / "node.key").read_bytes() == b"k" * 32
    assert [p.name for p in place.iterdir()] == ["node.key"]


@pytest.mark.parametrize("options, text", [
    (["--name", "Web1"], "node name 'Web1' is not valid: lower-case letters,"
     " digits, '.', '_' and '-', a letter or digit first and last, at most 63"
     " bytes"),
    (["--cluster", "a b", "--name", "m"], "cluster name 'a b' is not valid: "
     "lower-case letters, digits, '.', '_' and '-', a letter or digit first "
     "and last, at most 63 bytes"),
    (["--name", "m", "--address", "host.example"], None),
    (["--name", "m", "--address", "127.0.0.1:99999"], None),
    (["--name", "m", "--address", "127.0.0.1", "--passphrase-fd", "x"],
     "--passphrase-fd 'x' is not a whole number from 0 to 2147483647"),
    (["--name", "m", "--address", "127.0.0.1", "extra"], None),
])
def test_refused_values(place, options, text):
    r = init(place, *options, status=2)
    assert r.stdout == "" and r.stderr.count("\n") == 1
    if text is not None:
        assert r.stderr == f"clusterctl: {text}\n"
    assert not (place / "registry.db").exists()


def test_a_place_that_others_could_change(tmp_path):
    tmp_path.chmod(0o777)
    r = init(tmp_path / "s", "--name", "m1", "--address", "127.0.6.1",
             status=8)
    assert r.stderr == (f"clusterctl: {tmp_path} is writable by others (mode "
                        "0777); chmod go-w it\n")


def test_passphrase_seals_the_authority(place):
    r, w = os.pipe()
    os.write(w, b"correct horse\n")
    os.close(w)
    p = subprocess.run(
        [muster.program("clusterctl"), "--state", str(place), "init",
         "--name", "m1", "--address", "127.0.6.1", "--passphrase-fd", str(r)],
        pass_fds=[r], capture_output=True, env=muster.clean_env())
    os.close(r)
    assert p.returncode == 0, p.stderr
    assert b"sealed" in p.stdout and b"clusterctl" in p.stdout
    key = (place / "authority.key").read_bytes()
    assert key.startswith(b"muster-sealed-1\n") and len(key) == 136
    for f in place.iterdir():
        assert b"correct horse" not in f.read_bytes(), f


def test_an_empty_passphrase_protects_nothing(place):
    r = init(place, "--name", "m1", "--address", "127.0.6.1",
             "--passphrase-fd", "0", stdin="\n", status=2)
    assert r.stderr == "clusterctl: an empty passphrase protects nothing\n"


def test_passphrases_typed_differently(place):
    t = muster.Terminal(muster.program("clusterctl"), "--state", place,
                        "init", "--name", "m1", "--address", "127.0.6.1",
                        "--passphrase")
    t.expect("New passphrase")
    t.type("one\n")
    t.expect("Once more")
    t.type("two\n")
    assert t.status() == 2
    assert "the two passphrases differ" in t.text
    assert "one" not in t.text.split("Once")[0].split(":")[-1]
    t.close()
    assert not (place / "authority.key").exists()


def test_killed_at_any_instant_it_can_be_run_again(place, rng):
    """Every try dies somewhere; what it leaves is never taken for a cluster,
    and the next one clears it."""
    argv = [muster.program("clusterctl"), "--state", place, "init", "--name",
            "m1", "--address", "127.0.6.1"]
    killed = 0
    for _ in range(40):
        killed += muster.run_killed(*argv, after_s=rng.uniform(0, 0.06))
        if not (place / "registry.db").exists():
            continue
        assert ctl(place, "nodes").lines == ["m1"]
        ctl(place, "registry", "check")
        assert sorted(p.name for p in place.iterdir()
                      if not p.name.startswith("registry.db-")) == \
            sorted(SECRETS + PUBLIC)
        shutil.rmtree(place)
    assert killed > 0, "no kill came in time"
    if not (place / "registry.db").exists():
        muster.run(*argv)
    assert ctl(place, "nodes").lines == ["m1"]


def test_two_at_once(place):
    argv = [muster.program("clusterctl"), "--state", str(place), "init",
            "--name", "m1", "--address", "127.0.6.1"]
    tries = [subprocess.Popen(argv, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True,
                              env=muster.clean_env()) for _ in range(4)]
    ends = [(p.communicate(timeout=muster.PATIENCE_S)[1], p.returncode) for p in tries]
    assert sorted(status for _, status in ends).count(0) == 1, ends
    for text, status in ends:
        assert status in (0, 2, 8)
        assert status == 0 or "already holds a cluster" in text \
            or "another init is under way" in text
    ctl(place, "registry", "check")


def test_full_disk(tmp_path):
    with muster.tmpfs(tmp_path / "full", "64k") as full:
        r = init(full / "state", "--name", "m1", "--address", "127.0.6.1",
                 status=8)
        assert "No space left on device" in r.stderr \
            or "disk is full" in r.stderr, r.stderr
        assert r.stderr.count("\n") == 1
        left = [p.name for p in (full / "state").iterdir()]
        assert left == [], left
        subprocess.run(["mount", "-o", "remount,size=4m", str(full)],
                              check=True)
        init(full / "state", "--name", "m1", "--address", "127.0.6.1")


def test_read_only(tmp_path):
    with muster.tmpfs(tmp_path / "ro") as ro:
        muster.remount(ro, "ro")
        r = init(ro / "state", "--name", "m1", "--address", "127.0.6.1",
                 status=8)
        assert "Read-only file system" in r.stderr
        muster.remount(ro, "rw")


def alone(*argv, status):
    """On a machine without a network but loopback."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root, for a network namespace")
    return muster.run("unshare", "--net", *argv, status=status)


def test_a_machine_with_loopback_only_must_be_told(place):
    argv = [muster.program("clusterctl"), "--state", place, "init", "--name",
            "m1"]
    r = alone(*argv, status=2)
    assert r.stderr == (
        "clusterctl: this machine has no address but loopback; say how "
        "others reach it with --address IP[:PORT]\n")
    assert not place.exists()
    alone(*argv, "--address", "127.0.0.1", status=0)


def test_a_guessed_address_is_remarked(place):
    r = init(place, "--name", "m1", status=(0, 2))
    if r.status == 2:
        assert "this machine has no address but loopback" in r.stderr
        pytest.skip("this machine has only loopback")
    assert r.stderr == (
        "clusterctl: the address was guessed; another one: clusterctl node "
        "set m1 --address IP\n")
    address = ctl(place, "node", "show", "m1", "--json").json["address"]
    assert not address.startswith("127.") and address != "::1"
