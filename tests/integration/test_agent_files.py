"""push, pull and have: exact bytes, whole or not at all."""

import os
import stat
import subprocess

import pytest

import muster
from agent_client import answer, answers, argv, call, gone, records
from muster import wait_for


def hash_of(data):
    import hashlib
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def push(cluster, path, data=b"", **more):
    request = {"verb": "push", "path": str(path), "size": len(data),
               "mode": 0o644, "hash": hash_of(data), **more}
    [(_, got)] = answers(call(cluster, "w1", request, options=["-i"],
                              stdin=data))
    return got


@pytest.fixture
def place(tmp_path):
    d = tmp_path / "place"
    d.mkdir()
    return d


@pytest.mark.parametrize("size", [0, 1, 65518, 65519, 3000001])
def test_bytes_are_exact(shared_cluster, place, size):
    data = os.urandom(size)
    got = push(shared_cluster, place / "f", data, mode=0o750, mtime=12345)
    assert got == {"hash": hash_of(data)}
    st = (place / "f").stat()
    assert (place / "f").read_bytes() == data
    assert stat.S_IMODE(st.st_mode) == 0o750 and st.st_mtime == 12345
    assert os.listdir(place) == ["f"]
    have = {"verb": "have", "path": str(place / "f")}
    assert answer(shared_cluster, "w1", {**have, "hash": hash_of(data)}) == {
        "type": "file", "size": size, "mode": 0o750, "same": True}
    assert not answer(shared_cluster, "w1",
                      {**have, "hash": hash_of(b"x")})["same"]


def test_pull_gives_them_back(shared_cluster, place):
    data = os.urandom(200000).hex()
    (place / "f").write_text(data)
    (place / "f").chmod(0o604)
    got = call(shared_cluster, "w1", {"verb": "pull",
                                      "path": str(place / "f")})
    assert "".join(r["data"] for r in got if r["record"] == "file") == data
    [(_, end)] = answers(got)
    assert end["size"] == len(data) and end["mode"] == 0o604
    assert end["hash"] == hash_of(data.encode())


@pytest.mark.parametrize("what, word", [
    ("/etc", "is a directory"), ("/nosuch", "cannot open /nosuch"),
    ("/dev/zero", "not a plain file")])
def test_pull_of_what_is_no_file(shared_cluster, what, word):
    assert word in answer(shared_cluster, "w1",
                          {"verb": "pull", "path": what})["text"]


def test_a_fifo_does_not_hang_it(shared_cluster, place):
    os.mkfifo(place / "fifo")
    path = str(place / "fifo")
    assert "not a plain file" in answer(
        shared_cluster, "w1", {"verb": "pull", "path": path})["text"]
    assert answer(shared_cluster, "w1", {"verb": "have", "path": path,
                                         "hash": hash_of(b"")}) == {
        "type": "other", "size": 0, "mode": 0o644, "same": False}


def test_a_link_is_replaced_not_followed(shared_cluster, place):
    (place / "precious").write_bytes(b"precious")
    (place / "link").symlink_to("precious")
    push(shared_cluster, place / "link", b"new")
    assert (place / "precious").read_bytes() == b"precious"
    assert not (place / "link").is_symlink()
    assert (place / "link").read_bytes() == b"new"


def test_links_and_directories(shared_cluster, place):
    push(shared_cluster, place / "d", type="dir", mode=0o711)
    push(shared_cluster, place / "d", type="dir", mode=0o700)
    assert stat.S_IMODE((place / "d").stat().st_mode) == 0o711
    push(shared_cluster, place / "l", type="link", target="d/x y")
    push(shared_cluster, place / "l", type="link", target="other")
    assert os.readlink(place / "l") == "other"
    assert sorted(os.listdir(place)) == ["d", "l"]


def test_the_owner_stays(shared_cluster, place):
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    (place / "f").write_bytes(b"old")
    os.chown(place / "f", 65534, 65533)
    push(shared_cluster, place / "f", b"new", mode=0o600)
    st = (place / "f").stat()
    assert (st.st_uid, st.st_gid) == (65534, 65533)
    assert stat.S_IMODE(st.st_mode) == 0o600


def test_a_wrong_hash_or_size_changes_nothing(shared_cluster, place):
    (place / "f").write_bytes(b"old")
    assert "another hash" in push(shared_cluster, place / "f", b"new",
                                  hash=hash_of(b"x"))["text"]
    assert "of 4 bytes" in push(shared_cluster, place / "f", b"new",
                                size=4)["text"]
    assert "is a directory" in push(shared_cluster, place, b"new")["text"]
    assert "directory of" in push(shared_cluster, place / "no/f",
                                  b"new")["text"]
    assert (place / "f").read_bytes() == b"old"
    assert os.listdir(place) == ["f"]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_no_file_stays(shared_cluster, place, kind):
    os.mkfifo(place / "fifo")
    got = push(shared_cluster, place / "fifo", type=kind, target="/x")
    assert "is a device, pipe or socket, which stays" in got["text"]
    assert stat.S_ISFIFO((place / "fifo").lstat().st_mode)
    assert os.listdir(place) == ["fifo"]


def broken_off(cluster, place, end):
    """A push that ends in the middle; nothing is left of it."""
    (place / "f").write_bytes(b"old")
    request = {"verb": "push", "path": str(place / "f"), "size": 1 << 30}
    p = subprocess.Popen(argv(cluster, "w1", [request], ["-i"]),
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         env=muster.clean_env())
    p.stdin.write(b"x" * 1000000)
    p.stdin.flush()
    worker = wait_for(lambda: children_of(cluster["w1"].pid))
    end(p)
    wait_for(lambda: all(gone(w) for w in worker))
    p.kill()
    p.communicate()
    assert (place / "f").read_bytes() == b"old"
    assert os.listdir(place) == ["f"]


def children_of(pid):
    return [c for c, state, _ in muster.children(pid) if state != "Z"]


def test_a_push_whose_client_dies(shared_cluster, place):
    broken_off(shared_cluster, place, lambda p: p.kill())


def test_a_push_whose_agent_stops(cluster3, place):
    broken_off(cluster3, place, lambda p: cluster3["w1"].stop())


def test_a_push_whose_agent_is_killed(cluster3, place):
    broken_off(cluster3, place, lambda p: cluster3["w1"].kill())


def test_a_full_disk(shared_cluster, tmp_path):
    with muster.tmpfs(tmp_path / "small", "256k") as small:
        (small / "f").write_bytes(b"old")
        got = push(shared_cluster, small / "f", b"x" * 400000)
        assert "No space left" in got["text"]
        assert (small / "f").read_bytes() == b"old"
        assert os.listdir(small) == ["f"]
        push(shared_cluster, small / "f", b"small enough")


def test_a_slow_pull_holds_up_nobody(shared_cluster, place):
    (place / "f").write_bytes(b"x" * 8000000)
    p = subprocess.Popen(
        argv(shared_cluster, "w1",
             [{"verb": "pull", "path": str(place / "f")}], ["-t"]),
        stdout=subprocess.PIPE, env=muster.clean_env())
    p.stdout.readline()
    assert answer(shared_cluster, "w1", {"verb": "ping"})
    assert shared_cluster["w1"].rss_kb() < 40000
    p.kill()
    p.communicate()
    wait_for(lambda: not children_of(shared_cluster["w1"].pid))
    assert records("") == []
