"""clusterctl nodeset: the command around node sets (their cases are a unit
test), in pipes and against a cluster."""

import pytest

import muster


def nodeset(*argv, **kw):
    return muster.run(muster.program("clusterctl"), "nodeset", *argv, **kw)


@pytest.mark.parametrize("argv, out", [
    (["expand", "web[8-11]"], "web8\nweb9\nweb10\nweb11\n"),
    (["expand", "-S", " ", "a[1-3]!a2"], "a1 a3\n"),
    (["expand", "-S", "\\t", "a[1-2]"], "a1\ta2\n"),
    (["expand", "-S,", "a[1-2]"], "a1,a2\n"),
    (["expand", ""], ""),
    (["fold", "web1", "web3", "web2"], "web[1-3]\n"),
    (["fold", "a[1-2]", "b1"], "a[1-2],b1\n"),
    (["fold", "-S", " ", "a[1-2]", "b1"], "a[1-2] b1\n"),
    (["fold", "a1!a1"], ""),
    (["count", "a[1-100]", "a[50-150]"], "150\n"),
    (["count", " "], "0\n"),
    (["fold", "a[1-4]!a[2-3]", "b"], "a[1,4],b\n"),
])
def test_text(argv, out):
    assert nodeset(*argv).stdout == out


@pytest.mark.parametrize("argv, out", [
    (["fold", "-"], "web[1-3]\n"),
    (["count", "-", "web3", "db1"], "4\n"),
    (["expand", "-S", ",", "-"], "web1,web2,web3\n"),
])
def test_stdin(argv, out):
    assert nodeset(*argv, stdin="web1 web3\n\nweb2\tweb1\n").stdout == out


def test_stdin_that_is_no_text():
    r = nodeset("fold", "-", stdin=b"a\0b", status=2)
    assert r.stderr == ("clusterctl: standard input is no text: it holds a "
                        "NUL byte\n")


def test_json():
    assert nodeset("expand", "a[1-2]", "--json").json == {"nodes": ["a1",
                                                                    "a2"]}
    assert nodeset("fold", "a1", "a2", "--json").json == {"set": "a[1-2]",
                                                          "count": 2}
    assert nodeset("count", "a[1-2]", "--json").json == {"count": 2}


@pytest.mark.parametrize("text", ["a[1-", "a[2-1]", "a[1-2000001]", "a]"])
def test_bad_sets_exit_2(text):
    for verb in ("expand", "fold", "count"):
        r = nodeset(verb, text, status=2)
        assert r.stdout == "" and r.stderr.count("\n") == 1
        assert r.stderr.startswith("clusterctl: ")


def test_roles_and_wildcards_ask_the_cluster(quiet_master):
    ctl = quiet_master.ctl
    for i in (1, 2, 3):
        ctl("node", "add", f"web{i}", f"10.0.0.{i}", "--role", "worker_http")
    assert ctl("nodeset", "fold", "@worker_http").lines == ["web[1-3]"]
    assert ctl("nodeset", "count", "web*").lines == ["3"]
    # A name that no node has is text all the same.
    assert ctl("nodeset", "fold", "@worker_http", "other7").lines == [
        "other7,web[1-3]"]
    r = ctl("nodeset", "fold", "@worker", status=3)
    assert "did you mean" in r.stderr or "no such role" in r.stderr


def test_roles_without_a_cluster(tmp_path):
    tmp_path.chmod(0o700)
    r = muster.run(muster.program("clusterctl"), "--state", tmp_path,
                   "nodeset", "fold", "@x", status=8)
    assert "belongs to no cluster yet" in r.stderr


def test_a_hundred_thousand_names():
    names = "\n".join(f"node{i:06}" for i in range(100000))
    assert nodeset("fold", "-", stdin=names).stdout == \
        "node[000000-099999]\n"
