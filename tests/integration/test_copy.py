"""push and pull (exec_cases.md, section G)."""

import json
import os
import re
import stat
import threading
from pathlib import Path

import pytest

import muster
from muster import wait_for

WORKERS = ("-r", "worker_http")


@pytest.fixture
def there(shared_cluster, tmp_path):
    """A directory "on the nodes", which share this machine's files."""
    tmp_path.chmod(0o755)
    d = tmp_path / "there"
    d.mkdir()
    return d


@pytest.fixture
def here(tmp_path):
    d = tmp_path / "here"
    d.mkdir()
    return d


def tree(top):
    """What a tree holds: path -> (type, mode, content)."""
    found = {}
    for p in sorted(Path(top).rglob("*")):
        st = p.lstat()
        mode = stat.S_IMODE(st.st_mode)
        if p.is_symlink():
            found[str(p.relative_to(top))] = ("link", os.readlink(p))
        elif p.is_dir():
            found[str(p.relative_to(top))] = ("dir", mode)
        else:
            found[str(p.relative_to(top))] = ("file", mode, p.read_bytes())
    return found


@pytest.fixture
def site(here):
    """G1: files of every kind, a read-only one, links, an empty one."""
    top = here / "site"
    (top / "sub" / "deeper").mkdir(parents=True)
    (top / "index.html").write_bytes(b"<html>\xff\x00\r\n")
    (top / "empty").touch()
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o755)
    (top / "sub" / "secret").write_text("s")
    (top / "sub" / "secret").chmod(0o400)
    (top / "sub" / "big").write_bytes(os.urandom(3_000_001))
    (top / "link").symlink_to("sub/big")
    (top / "sub" / "dangling").symlink_to("/nonexistent/\u00fc")
    (top / "sub" / "deeper" / "a name with  blanks").write_text("x")
    (top / "sub" / "deeper").chmod(0o700)
    return top


def push(cluster, *args, status=0):
    return cluster.ctl("push", *args, status=status)


def test_tree(shared_cluster, site, there):
    r = push(shared_cluster, "w1", site, there)
    assert tree(there / "site") == tree(site)
    assert "push: 6 copied" in r.stderr and r.stdout == ""
    # Again: equal content is skipped.
    r = push(shared_cluster, "w1", site, there)
    assert "push: 0 copied (0), 6 the same already" in r.stderr
    # A changed byte, a changed mode: those two files and no other.
    (site / "index.html").write_text("new")
    (site / "empty").chmod(0o600)
    assert "push: 2 copied (3), 4 the same" in \
        push(shared_cluster, "w1", site, there).stderr
    assert tree(there / "site") == tree(site)


def test_tree_as_new_name(shared_cluster, site, there):
    push(shared_cluster, "w1", site, there / "new")
    assert tree(there / "new") == tree(site)
    # The second time it is a directory, and the tree goes into it: as cp.
    push(shared_cluster, "w1", site, there / "new")
    assert tree(there / "new" / "site") == tree(site)
    # "dir/." is the content.
    push(shared_cluster, "w1", f"{site}/.", there / "new")
    assert (there / "new" / "index.html").exists()


@pytest.mark.parametrize("sources, dest, status, made", [
    (["index.html"], "", 0, "index.html"),
    (["index.html"], "page", 0, "page"),
    (["index.html"], "sub/", 1, None),      # no such directory
    (["index.html", "run.sh"], "", 0, "run.sh"),
    (["index.html", "run.sh"], "two", 1, None),
    (["sub"], "file", 1, None),
])
def test_cp_semantics(shared_cluster, site, there, sources, dest, status,
                      made):
    (there / "file").write_text("a file")
    r = push(shared_cluster, "w1", *[site / s for s in sources],
             f"{there}/{dest}" if dest else there, status=status)
    if made is None:
        assert "there" in r.stderr and "failed there" in r.stderr
        assert [p.name for p in there.iterdir()] == ["file"]
    else:
        assert (there / made).exists()


@pytest.mark.parametrize("args, says", [
    (["w1", "{here}/none", "/tmp"], "cannot read"),
    (["w1", "{site}", "relative"], "begins with '/'"),
    (["w1", "{site}"], "what goes where?"),
    (["{site}"], "usage"),
    (["w1", "/dev/null", "/tmp/x"], "nothing to push"),
    (["w1", "", "/tmp/"], "cannot read ''"),
    (["w1", "{site}", "/tmp/\udce9"], "DEST $'/tmp/\\351' is not UTF-8"),
])
def test_push_refused(shared_cluster, site, here, args, says):
    r = push(shared_cluster, *[a.format(here=here, site=site) for a in args],
             status=2)
    assert says in r.stderr


def test_names_that_are_not_utf8(shared_cluster, here, there):
    """The first one is named, as a shell would take it, before anything is
    copied; what is above the source does not matter."""
    odd = os.path.join(bytes(here), b"caf\xe9 'x'")
    os.mkdir(odd)
    with open(odd + b"/plain", "wb") as f:
        f.write(b"x")
    push(shared_cluster, "w1", odd + b"/plain", there / "plain")
    (here / "zzz").touch()
    for source in (odd, here):
        r = push(shared_cluster, "w1", source, there, status=2)
        assert r"caf\351 \047x\047': its name is not UTF-8" in r.stderr
        shown = re.search(r"\$'.*'(?=: its name)", r.stderr).group()
        assert muster.run("bash", "-c", f"printf %s {shown}").raw_stdout == odd
    os.symlink(b"\xff", here / "link")
    r = push(shared_cluster, "w1", here / "link", here / "zzz", there,
             status=2)
    assert "link" in r.stderr
    os.mkdir(here / "d")
    os.symlink(b"\xff", here / "d" / "link")
    r = push(shared_cluster, "w1", here / "d", there, status=2)
    assert "d/link': its target is not UTF-8" in r.stderr
    assert [p.name for p in there.iterdir()] == ["plain"]


def test_an_old_file_is_replaced_in_one_step(shared_cluster, here, there):
    """A reader sees the old file or the new one, never less."""
    for name, size in (("a", 4_000_000), ("b", 5_000_000)):
        (here / name).write_bytes(name.encode() * size)
    target = there / "file"
    push(shared_cluster, "w1", here / "a", target)
    sizes, over = set(), threading.Event()

    def watch():
        while not over.is_set():
            sizes.add(target.stat().st_size)
    t = threading.Thread(target=watch)
    t.start()
    try:
        for _ in range(3):
            push(shared_cluster, "w1", here / "b", target)
            push(shared_cluster, "w1", here / "a", target)
    finally:
        over.set()
        t.join()
    assert sizes <= {4_000_000, 5_000_000}
    assert [p.name for p in there.iterdir()] == ["file"]


def test_push_failure_leaves_the_old_file(shared_cluster, here):
    (here / "f").write_text("x")
    r = push(shared_cluster, *WORKERS, here / "f", "/proc/version", status=1)
    assert "w[1-3] (3): failed there" in r.stderr
    assert Path("/proc/version").read_text() != "x"


def test_push_to_many_as_json(shared_cluster, here, there):
    (here / "f").write_text("12345")
    r = shared_cluster.ctl("--json", "push", "-q", "--serial", *WORKERS,
                           here / "f", there)
    assert [o["node"] for o in r.json_lines] == ["w1", "w2", "w3"]
    assert [(o["copied"], o["same"]) for o in r.json_lines] == [
        (1, 0), (0, 1), (0, 1)]  # they share one disk
    assert r.json_lines[0]["bytes"] == 5 and r.stderr == ""


def test_push_and_a_dead_node(cluster3, tmp_path):
    (tmp_path / "f").write_text("x")
    cluster3["w2"].stop()
    r = cluster3.ctl("push", *WORKERS, tmp_path / "f", tmp_path / "g",
                     status=4)
    assert "w2: not delivered: unreachable" in r.stderr
    assert (tmp_path / "g").read_text() == "x"


def test_pull(shared_cluster, site, here):
    # G2: NAME.NODE in a directory that is there.
    r = shared_cluster.ctl("pull", *WORKERS, site / "run.sh",
                           site / "sub" / "big", here)
    assert "pull: 6 copied" in r.stderr
    for w in ("w1", "w2", "w3"):
        assert (here / f"big.{w}").read_bytes() == \
            (site / "sub" / "big").read_bytes()
        assert stat.S_IMODE((here / f"run.sh.{w}").stat().st_mode) == 0o755
    r = shared_cluster.ctl("pull", *WORKERS, site / "run.sh", here)
    assert "pull: 0 copied (0), 3 the same already" in r.stderr
    (here / "run.sh.w2").write_text("other")
    r = shared_cluster.ctl("pull", *WORKERS, site / "run.sh", here)
    assert "pull: 1 copied" in r.stderr
    assert (here / "run.sh.w2").read_text() == "#!/bin/sh\n"


def test_pull_never_brings_set_user_id(shared_cluster, here):
    (here / "su").write_text("x")
    (here / "su").chmod(0o4755)
    shared_cluster.ctl("pull", "w1", here / "su", here)
    assert stat.S_IMODE((here / "su.w1").stat().st_mode) == 0o755


@pytest.mark.parametrize("args, status, says", [
    (["{site}/none", "{here}"], 1, "No such file"),
    (["{site}/sub", "{here}"], 1, "is a directory"),
    (["relative", "{here}"], 2, "begins with '/'"),
    (["", "{here}"], 2, "begins with '/'"),
    (["/tmp/\udce9", "{here}"], 2, "FILE $'/tmp/\\351' is not UTF-8"),
    (["{site}/run.sh", "{here}/none"], 2, "cannot pull to"),
    (["{site}/run.sh", "{site}/run.sh"], 2, "is no directory"),
    (["{site}/run.sh"], 2, ""),
])
def test_pull_refused(shared_cluster, site, here, args, status, says):
    before = set(os.listdir(here))
    r = shared_cluster.ctl("pull", "w1",
                           *[a.format(here=here, site=site) for a in args],
                           status=status)
    assert says in r.stderr and set(os.listdir(here)) == before


def test_killed_push_leaves_nothing(cluster3, tmp_path):
    """The client dies in the middle: the old file stands, nothing beside."""
    source, dest = tmp_path / "source", tmp_path / "dest"
    dest.mkdir()
    (dest / "f").write_text("old")
    with open(source, "wb") as f:
        f.truncate(300_000_000)
    p = cluster3.ctl_start("push", "w1", source, dest / "f")
    pid = cluster3["w1"].pid
    wait_for(lambda: Path(f"/proc/{pid}/task/{pid}/children").read_text()
             .strip() or p.poll() is not None, what="the transfer")
    p.kill()
    p.communicate()
    wait_for(lambda: not Path(f"/proc/{pid}/task/{pid}/children").read_text()
             .strip(), what="its end there")
    assert sorted(x.name for x in dest.iterdir()) == ["f"]
    assert (dest / "f").read_text() == "old" or \
        (dest / "f").stat().st_size == 300_000_000


def test_copies_are_audited(cluster3, tmp_path):
    (tmp_path / "f").write_text("x")
    cluster3.ctl("push", "w1", tmp_path / "f", tmp_path / "g")
    cluster3.ctl("pull", "w1", tmp_path / "g", tmp_path)
    log = (cluster3.master.state / "audit-operator.log").read_text()
    orders = [o for o in map(json.loads, log.splitlines())
              if o.get("event") == "order"]
    assert [o["verb"] for o in orders] == ["push", "pull"]
