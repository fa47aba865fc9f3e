"""Every refusal of the commands that change the registry: its sentence and
its exit status.  One master, whose agent does not run, has the nodes web1,
web2 and db1; nothing here may change it."""

import pytest

# (exit status, sentence, command line)
REFUSALS = [
    # the command line
    (2, "unknown command 'nodez'; did you mean 'nodes'?", "nodez"),
    (2, "unknown command 'node ad'; did you mean 'node add'?", "node ad x"),
    (2, "nodes: unknown option --rolle; did you mean --role?",
     "nodes --rolle x"),
    (2, "node show: something is missing; usage: clusterctl node show NODE",
     "node show"),
    (2, "node show: 'b' is too much; usage: clusterctl node show NODE",
     "node show a b"),
    # names that are not there
    (3, "no such node web3; did you mean web1?", "nodes web3"),
    (3, "no such role worker_htpp; did you mean worker_http?",
     "nodes -r worker_htpp"),
    (3, "no such node webb1; did you mean web1?", "roles webb1"),
    (3, "no such node 'web11'; did you mean 'web1'?", "node show web11"),
    (3, "no such node 'web11'; did you mean 'web1'?",
     "node set web11 --weight 2"),
    (3, "no such node web11; did you mean web1?", "node remove web11"),
    (3, "no such node 'web11'; did you mean 'web1'?",
     "node rename web11 web12"),
    (3, "no such role 'worker_htp'; did you mean 'worker_http'?",
     "node role add web1 worker_htp"),
    (3, "no such role 'worker_htp'; did you mean 'worker_http'?",
     "role set worker_htp --port 1"),
    (3, "no such role 'worker_htp'; did you mean 'worker_http'?",
     "role show worker_htp"),
    (3, "no such role 'worker_htp'; did you mean 'worker_http'?",
     "enroll --role worker_htp"),
    (3, "no such site 'b.example'; did you mean 'a.example'?",
     "site show b.example"),
    (3, "no such site 'b.example'; did you mean 'a.example'?",
     "site set b.example --owner x"),
    (3, "no such site 'b.example'; did you mean 'a.example'?",
     "site del b.example"),
    (3, "no such site 'b.example'; did you mean 'a.example'?",
     "site disable b.example"),
    (3, "no such operator 'admim'; did you mean 'admin'?",
     "operator set admim --ttl 1d"),
    (3, "no such operator 'admim'; did you mean 'admin'?",
     "operator revoke admim"),
    (3, "no such token 0011223344556677", "token revoke 0011223344556677"),
    (2, "no such setting 'proxy.worker'; did you mean 'proxy.workers'?",
     "set proxy.worker 3"),
    (2, "no such setting 'proxy.worker'; did you mean 'proxy.workers'?",
     "get proxy.worker"),
    # values that break a rule
    (2, "which role shall it have? (--role worker_http; see clusterctl role "
     "list)", "enroll web9"),
    (2, "node name 'Web9' is not valid: lower-case letters, digits, '.', '_' "
     "and '-', a letter or digit first and last, at most 63 bytes",
     "enroll Web9 --role storage"),
    (2, "enroll: --ttl '1y' is not a time like 500ms, 30s, 5m, 1h or 90d",
     "enroll --role storage --ttl 1y"),
    (2, "--ttl must be a second or more",
     "enroll --role storage --ttl 10ms"),
    (2, "enroll: --uses '0' is not a whole number from 1 to 100000",
     "enroll --role storage --uses 0"),
    (2, "only one machine can be web9: leave out the name or --uses",
     "enroll web9 --role storage --uses 2"),
    (2, "node m1 has joined already (clusterctl node remove m1 first, or "
     "choose another name)", "enroll m1 --role storage"),
    (2, "'10.0.0.1/8' has address bits behind its prefix",
     "enroll --role storage --from 10.0.0.1/8"),
    (2, "'host.example' is not an IP address (1.2.3.4, 1.2.3.4:80, ::1 or "
     "[::1]:80)", "node add web9 host.example --role storage"),
    (2, "'0.0.0.0' is no address of one machine", "node add web9 0.0.0.0"),
    (2, "'10.0.0.9:80' has a port: a backend's ports go by role (--port "
     "ROLE=PORT)", "node add web9 10.0.0.9:80 --role storage"),
    (2, "--port 'worker_http' is not ROLE=PORT, like worker_http=8080",
     "node add web9 10.0.0.9 --role worker_http --port worker_http"),
    (2, "port '70000' is not a whole number from 1 to 65535",
     "node add web9 10.0.0.9 --role worker_http --port worker_http=70000"),
    (2, "node web1 exists already",
     "node add web1 10.0.0.9 --role storage"),
    (2, "weight '0' is not 1..256", "node set web1 --weight 0"),
    (2, "node set: what shall be set? (see clusterctl help node set)",
     "node set web1"),
    (2, "node web2 exists already", "node rename web1 web2"),
    (2, "node role: say add or del, not 'give'", "node role give web1 x"),
    (2, "node maintenance: say on or off, not 'web1'",
     "node maintenance web1 on"),
    (2, "m1 is the only master; give another node the role first",
     "node remove m1"),
    (2, "node conflicts: --clear and a name go together",
     "node conflicts --clear"),
    (2, "role name 'My Role' is not valid: lower-case letters, digits, '_' "
     "and '-', a letter or digit first and last, at most 63 bytes",
     ["role", "add", "My Role"]),
    (2, "role set: what shall be set? (see clusterctl help role set)",
     "role set storage"),
    (2, "port '0' is not 1..65535, or none", "role set storage --port 0"),
    (2, "balance: 'best' is not least_conn, round_robin, hash:ip, hash:uri, "
     "hash:cookie=NAME or sticky[=COOKIE]", "role set storage --balance best"),
    (2, "health: 'http POST /' is not 'http GET /PATH [STATUS[-STATUS]]'",
     ["role", "set", "storage", "--health", "http POST /"]),
    (2, "role worker_http is predefined and stays",
     "role remove worker_http"),
    (2, "host name 'A.example' is not valid: lower-case labels of letters, "
     "digits, '-' and '_', each at most 63 bytes", "site add A.example"),
    (2, "site add: give one NAME, or --from-file FILE for many", "site add"),
    (2, "site add: give one NAME, or --from-file FILE for many",
     "site add c.example --from-file x"),
    (2, "site a.example exists already", "site add a.example"),
    (2, "host www.a.example belongs to site a.example already",
     "site add c.example --alias www.a.example"),
    (2, "max_body 'lots' is not 1..1T, or default",
     "site add c.example --max-body lots"),
    (2, "site set: what shall be set? (see clusterctl help site set)",
     "site set a.example"),
    (2, "site alias: say add or del, not 'a.example'",
     "site alias a.example add b.example"),
    (8, "cannot open /nonexistent: No such file or directory",
     "site add --from-file /nonexistent"),
    (2, "set proxy.workers: to which value?  (clusterctl get proxy.workers "
     "shows it)", "set proxy.workers"),
    (2, "set: --reset takes no value", "set proxy.workers 3 --reset"),
    (2, "proxy.workers '0' is not 1..256, or auto", "set proxy.workers 0"),
    (2, "get: say one KEY, or --all to see every setting", "get"),
    (2, "operator add: what may bob do? (--grant VERB[:ROLE])",
     "operator add bob"),
    (2, "there is no verb 'exce' to grant; did you mean exec? (exec, push, "
     "pull, status, sync, or * for all)", "operator add bob --grant exce"),
    (2, None, "operator add bob --grant e:x:ec"),
    (3, "no such role 'worker_htp'; did you mean 'worker_http'?",
     "operator add bob --grant exec:worker_htp"),
    (3, "no such role 'worker_htp'; did you mean 'worker_http'?",
     "operator set admin --grant exec:worker_htp"),
    (2, "operator admin exists already", "operator add admin --grant exec"),
    (2, "--ttl 'soon' is not a time like 500ms, 30s, 5m, 1h or 90d",
     "operator add bob --grant exec --ttl soon"),
    (2, "operator set: say --grant or --ttl", "operator set admin"),
    (2, "operator admin has joined already (for another machine, add another "
     "operator; for a lost key, revoke this one)", "operator token admin"),
    (2, "'xyz' is no token id: 16 hexadecimal digits (clusterctl token list)",
     "token revoke xyz"),
    (2, "completion: for bash or zsh, not for 'fish'", "completion fish"),
    (4, "no agent runs here to unlock the key for (start it with: nodeagent "
     "run)", "unlock --passphrase-fd 0"),
]


@pytest.fixture(scope="module")
def master(quiet_master):
    ctl = quiet_master.ctl
    ctl("node", "add", "web1", "10.0.0.1", "--role", "worker_http")
    ctl("node", "add", "web2", "10.0.0.2", "--role", "worker_http")
    ctl("node", "add", "db1", "10.0.0.3", "--role", "worker_mysql")
    ctl("site", "add", "a.example", "--alias", "www.a.example")
    return quiet_master


@pytest.mark.parametrize(
    "status, text, line", [r for r in REFUSALS if r[2] is not None],
    ids=lambda v: v if isinstance(v, str) and " " in v else None)
def test_refusal(master, status, text, line):
    argv = line.split() if isinstance(line, str) else line
    before = master.ctl("registry", "log", "-n", "1").stdout
    r = master.ctl(*argv, status=status, stdin="x\n")
    assert r.stdout == ""
    assert r.stderr.startswith("clusterctl: ") and r.stderr.count("\n") == 1
    if text is not None:
        assert r.stderr == f"clusterctl: {text}\n"
    assert master.ctl("registry", "log", "-n", "1").stdout == before


def test_no_cluster_here(tmp_path, master):
    tmp_path.chmod(0o700)
    r = master.ctl("nodes", state=tmp_path / "none", status=8)
    assert r.stderr == (
        f"clusterctl: state directory {tmp_path}/none (choose another with "
        "--state): No such file or directory\n")
    (tmp_path / "empty").mkdir(0o700)
    r = master.ctl("nodes", state=tmp_path / "empty", status=8)
    assert r.stderr == (
        f"clusterctl: {tmp_path}/empty belongs to no cluster yet (clusterctl "
        "init makes one; nodeagent join and clusterctl operator join enter "
        "one)\n")


def test_terminal_escapes_in_arguments_are_shown_harmless(master):
    r = master.ctl("node", "show", "w\x1b[2Jeb", status=3)
    assert "\x1b" not in r.stderr
