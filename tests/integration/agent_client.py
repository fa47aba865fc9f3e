"""Raw requests to an agent, by agent_call (its source says how)."""

import json
import subprocess

import muster

EVERY_VERB = {
    "join": {}, "ping": {}, "status": {}, "exec": {"shell": "true"},
    "have": {"path": "/etc"}, "push": {"path": "/nowhere/x"},
    "pull": {"path": "/etc/passwd"}, "roster": {}, "sync": {"revision": 1},
    "renew": {}, "seen": {}, "custody": {"files": []},
}


def argv(cluster, node, requests, options=(), state=None):
    lines = [r if isinstance(r, str) else json.dumps(r) for r in requests]
    return [muster.program("tests/integration/agent_call"), *options,
            str(state or cluster.master.state), node, *lines]


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def call(cluster, node, *requests, options=(), state=None, stdin=None):
    """The records that came, the last of them "closed".  state: of another
    operator than the first."""
    done = muster.run(*argv(cluster, node, requests, options, state),
                      stdin=stdin, status=(0, 1))
    return records(done.stdout)


def answers(got):
    """What ended each request: [("reply"|"error"|"exit", object)]."""
    return [(r["record"], r["json"]) for r in got
            if r["record"] in ("reply", "error", "exit")]


def answer(cluster, node, request, **more):
    """The one answer's object."""
    [(_, value)] = answers(call(cluster, node, request, **more))
    return value


def output(got, stream="stdout"):
    return "".join(r["data"] for r in got if r["record"] == stream)


def start(cluster, node, *requests, options=(), state=None, **popen):
    """agent_call in the background: a Popen with a pipe from its stdout."""
    return subprocess.Popen(argv(cluster, node, requests, options, state),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            env=muster.clean_env(), text=True, **popen)


def first_output(process):
    """Waits for the first line of a started command's output."""
    while True:
        record = json.loads(process.stdout.readline())
        if record["record"] == "stdout":
            return record["data"]


def gone(pid):
    """Whether a process has ended (a zombie has)."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
