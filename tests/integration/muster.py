"""The harness of the whole-system tests: a cluster on loopback addresses.

A test takes the `cluster` fixture (conftest.py), which is a running master,
adds workers, gives orders with ctl(), and is done.  Taking down ends exactly
what was started, and fails the test on a log line at warn or error that the
test did not announce, on a sanitizer's report, and on a process that outlived
its parent.

Nothing here sleeps but wait_for().  Which binaries run is decided outside:
MUSTER_BIN is their folder, or VARIANT (release, asan) names one below build/.
"""

import contextlib
import ctypes
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VARIANT = os.environ.get("VARIANT", "release")
BIN = Path(os.environ.get("MUSTER_BIN", ROOT / "build" / VARIANT)).absolute()
ASAN = VARIANT == "asan"

AGENT_PORT = 7400
TOKEN = re.compile(r"muster1\.[A-Za-z0-9_-]+")
SANITIZER = re.compile(
    r"(Address|Leak|UndefinedBehavior)Sanitizer|runtime error:")
LOUD = re.compile(r"^\S+Z \S+\[\d+\] (warn|error): ", re.M)
FAKETIME_LIB = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")

# How long anything may take before a test says that it hangs; and what must
# not wait for a time-out of the product, on a machine that has more to do.
PATIENCE_S = 120 if ASAN else 60
SOON_S = 10


def wait_for(condition, timeout=PATIENCE_S, what="the condition"):
    """Returns the first true value of condition(); the only place to wait."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"gave up on {what} after {timeout} s")
        time.sleep(0.01)


def needs_root(test):
    """For a test that looks into processes, which hide themselves (no core
    dumps), or makes files that only root makes."""
    import pytest
    return pytest.mark.skipif(os.geteuid() != 0, reason="needs root")(test)


class Net:
    """A loopback /24 of one's own: 127.X.Y.0.

    Tests run in parallel, so a net is claimed for as long as the test lives
    by listening on a port of its last address; a dead test's claim dies
    with it.
    """

    def __init__(self):
        start = os.getpid() * 7
        for i in range(64 * 250):
            x, y = divmod((start + i) % (64 * 250), 250)
            self.prefix = f"127.{64 + x}.{y}"
            self.claim = socket.socket()
            try:
                self.claim.bind((f"{self.prefix}.254", 7399))
                self.claim.listen(1)
                break
            except OSError:
                self.claim.close()
        else:
            raise AssertionError("no loopback network is free")
        self.last = 0

    def address(self):
        """The next unused address."""
        self.last += 1
        assert self.last < 254, "a test net has 253 addresses"
        return f"{self.prefix}.{self.last}"

    def close(self):
        self.claim.close()


class Result:
    """How a command ended: status (negative: by signal), stdout, stderr."""

    def __init__(self, argv, status, stdout, stderr):
        self.argv, self.status = argv, status
        self.raw_stdout, self.raw_stderr = stdout, stderr
        self.stdout = stdout.decode(errors="replace")
        self.stderr = stderr.decode(errors="replace")

    @property
    def lines(self):
        return self.stdout.splitlines()

    @property
    def json(self):
        """The one JSON object on stdout."""
        return json.loads(self.stdout)

    @property
    def json_lines(self):
        return [json.loads(line) for line in self.lines]

    def __str__(self):
        return (f"$ {' '.join(map(str, self.argv))}\n{self.stdout}"
                f"{self.stderr}[exit status {self.status}]")


def clean_env(extra=None):
    """The environment of a program under test: ours without our settings."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("MUSTER_", "PYTEST_", "FAKETIME"))
           and k not in ("NOTIFY_SOCKET", "JOURNAL_STREAM", "NO_COLOR",
                         "RUNTIME_DIRECTORY", "MAKEFLAGS", "LD_PRELOAD")}
    env["LC_ALL"] = "C.UTF-8"
    env["UBSAN_OPTIONS"] = "print_stacktrace=1"
    env.update(extra or {})
    return env


def faketime(offset):
    """Environment that shifts the wall clock: faketime("+2h"), ("-1d").

    Monotonic time is left alone.  Not with AddressSanitizer, which must be
    the first library loaded.
    """
    import pytest
    if ASAN or not FAKETIME_LIB.exists():
        pytest.skip("faketime does not go with this build")
    return {"LD_PRELOAD": str(FAKETIME_LIB), "FAKETIME": offset,
            "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def preload(tmp, name):
    """The library that makes a fault of tests/preload/NAME.c happen.

    Not with AddressSanitizer, which must be the first library loaded.
    """
    import pytest
    if ASAN or shutil.which("gcc") is None:
        pytest.skip("the fault is a preloaded library")
    library = Path(tmp) / f"{name}.so"
    run("gcc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-O1", "-o", library,
        ROOT / "tests" / "preload" / f"{name}.c")
    library.chmod(0o755)
    return library


def program(name):
    path = BIN / name
    assert path.exists(), f"{path} is not built"
    return str(path)


def run(*argv, status=0, stdin=None, env=None, cwd=None,
        timeout=PATIENCE_S):
    """Runs a command to its end.

    status: the expected exit status, a collection of allowed ones, or None
    for any.  stdin: bytes or text; nothing (/dev/null) when None.
    """
    argv = [a if isinstance(a, bytes) else str(a) for a in argv]
    if isinstance(stdin, str):
        stdin = stdin.encode()
    feed = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    try:
        done = subprocess.run(argv, capture_output=True, cwd=cwd,
                              env=clean_env(env), timeout=timeout, **feed)
    except subprocess.TimeoutExpired as e:
        shown = Result(argv, "none", e.stdout or b"", e.stderr or b"")
        raise AssertionError(f"hangs for {timeout} s:\n{shown}") from None
    result = Result(argv, done.returncode, done.stdout, done.stderr)
    assert not SANITIZER.search(result.stderr), str(result)
    if status is not None:
        allowed = [status] if isinstance(status, int) else list(status)
        assert result.status in allowed, f"expected {allowed}:\n{result}"
    return result


def run_killed(*argv, after_s, env=None):
    """Runs a command and kills it (SIGKILL) after a while; returns whether
    the kill came before its end."""
    p = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         env=clean_env(env))
    try:
        p.wait(timeout=after_s)
        return False
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
        return True


class Terminal:
    """A command on a terminal of its own: type(), expect(), status()."""

    def __init__(self, *argv, env=None, rows=24, cols=80):
        self.argv = [str(a) for a in argv]
        self.seen = b""
        self.fd, child = pty.openpty()
        import fcntl
        import struct
        import termios
        fcntl.ioctl(child, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, cols, 0, 0))
        self.before = termios.tcgetattr(self.fd)
        self.proc = subprocess.Popen(
            self.argv, stdin=child, stdout=child, stderr=child,
            env=clean_env({"TERM": "xterm", **(env or {})}),
            preexec_fn=lambda: (os.setsid(),
                                fcntl.ioctl(0, termios.TIOCSCTTY, 0)))
        os.close(child)

    def _pump(self):
        """Takes what is there; False at the end."""
        if not select.select([self.fd], [], [], 0.02)[0]:
            return True
        try:
            chunk = os.read(self.fd, 65536)
        except OSError:  # EIO: the last holder of the terminal is gone
            return False
        self.seen += chunk
        return bool(chunk)

    def type(self, data):
        """Types; "\\x03" is Ctrl-C."""
        os.write(self.fd, data if isinstance(data, bytes) else data.encode())

    def expect(self, pattern, timeout=PATIENCE_S):
        """Waits for a regular expression in the output; returns the match."""
        wanted = re.compile(pattern.encode())

        def found():
            self._pump()
            return wanted.search(self.seen)
        return wait_for(found, timeout,
                        f"{pattern!r} from {self.argv}: {self.seen!r}")

    def status(self, timeout=PATIENCE_S):
        """The exit status; reads the output to its end."""
        end = time.monotonic() + timeout
        while self._pump():
            if self.proc.poll() is not None and \
                    not select.select([self.fd], [], [], 0)[0]:
                break
            assert time.monotonic() < end, f"hangs: {self.seen!r}"
        return self.proc.wait(timeout=timeout)

    @property
    def text(self):
        return self.seen.decode(errors="replace").replace("\r\n", "\n")

    def close(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()
        os.close(self.fd)


class Daemon:
    """A program in the foreground that says on --ready-fd when it serves."""

    alive = {}  # pid -> Daemon, of all clusters of this process

    def __init__(self, log, *argv, env=None):
        self.argv = [str(a) for a in argv]
        self.log = Path(log)
        self.env = env
        self.expected = []  # regular expressions of announced log lines
        self.proc = None

    def start(self, env=None, timeout=PATIENCE_S):
        """Returns when it is ready; its words on failure otherwise."""
        assert not self.running, f"{self.argv} already runs"
        ready, child = os.pipe()
        with open(self.log, "ab") as log:
            self.proc = subprocess.Popen(
                [*self.argv, "--ready-fd", str(child)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                pass_fds=[child],
                env=clean_env({**(self.env or {}), **(env or {})}))
        os.close(child)
        Daemon.alive[self.pid] = self
        try:
            if not select.select([ready], [], [], timeout)[0]:
                self.kill()
                raise AssertionError(f"{self.argv} is not ready after "
                                     f"{timeout} s:\n{self.text}")
            if os.read(ready, 64) != b"ready\n":
                self.proc.wait(timeout=PATIENCE_S)
                raise AssertionError(
                    f"{self.argv} did not start:\n{self.text}"
                    f"[exit status {self.proc.returncode}]")
        finally:
            os.close(ready)
        return self

    @property
    def running(self):
        return self.proc is not None and self.proc.poll() is None

    @property
    def pid(self):
        return self.proc.pid

    @property
    def text(self):
        return self.log.read_text(errors="replace") if self.log.exists() \
            else ""

    def stop(self, timeout=PATIENCE_S):
        """Ends it in good order; its exit status must be 0."""
        if not self.running:
            return
        self.proc.send_signal(signal.SIGCONT)
        self.proc.terminate()
        try:
            status = self.proc.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.argv} ignores TERM for {timeout} s:"
                                 f"\n{self.text}") from None
        assert status == 0, \
            f"{self.argv} ended with {status}:\n{self.text}"

    def kill(self):
        """kill -9, at once."""
        if self.running:
            self.proc.kill()
            self.proc.wait()

    def forget(self):
        if self.proc is not None:
            Daemon.alive.pop(self.pid, None)

    def restart(self):
        self.stop()
        return self.start()

    def rss_kb(self):
        return memory_kb(self.pid)["VmRSS"]

    def n_fds(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def expect_log(self, *patterns):
        """Announces lines at warn or error that belong to the test."""
        self.expected += [re.compile(p) for p in patterns]

    def complaints(self):
        """Log lines that nobody announced."""
        lines = [line for line in self.text.splitlines()
                 if LOUD.match(line) or SANITIZER.search(line)]
        return [line for line in lines
                if not any(p.search(line) for p in self.expected)]


def memory_kb(pid):
    """VmRSS, VmHWM ... of a process in kB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return {k: int(v) for k, v in re.findall(r"^(\w+):\s+(\d+) kB", text,
                                             re.M)}


class Node(Daemon):
    """A node: a state directory, an address, and its agent."""

    def __init__(self, cluster, name, state, address):
        super().__init__(cluster.tmp / f"{name}.log", program("nodeagent"),
                         "--state", state, "run", env=cluster.env)
        self.cluster, self.name = cluster, name
        self.state, self.address = Path(state), address

    def ctl(self, *args, **options):
        """clusterctl on this node."""
        return self.cluster.ctl(*args, state=self.state, **options)


class Cluster:
    """A master and its workers on one loopback net.

    cluster.ctl("exec", "-r", "worker_http", "true") runs clusterctl with the
    first operator's state directory, which is the master's.
    """

    def __init__(self, tmp, env=None):
        self.tmp = Path(tmp)
        self.env = env or {}
        self.net = Net()
        self.nodes = {}
        self.others = []  # daemons beside the agents
        self.terminals = []
        self.master = None

    # ---- making it ----

    def init(self, name="m1", *options, start=True):
        """Makes the first master, and starts its agent."""
        self.master = self._node(name)
        run(program("clusterctl"), "--state", self.master.state, "init",
            "--cluster", "test", "--name", name,
            "--address", f"{self.master.address}:{AGENT_PORT}", *options,
            env=self.env)
        if start:
            self.master.start()
        return self.master

    def token(self, *options):
        """Enrolls; returns the token out of the line to paste."""
        out = self.ctl("enroll", *options).stdout
        match = TOKEN.search(out)
        assert match, f"no token in {out!r}"
        return match.group()

    def join(self, token, name, *options, start=True, status=0, env=None):
        """A new machine joins.  Returns its Node, or the Result when the
        expected status is not 0."""
        node = self._node(name)
        result = run(program("nodeagent"), "--state", node.state, "join",
                     token, "--name", name, "--address",
                     f"{node.address}:{AGENT_PORT}", "--no-start", *options,
                     status=status, env={**self.env, **(env or {})})
        if status != 0:
            del self.nodes[name]
            return result
        if start:
            node.start()
        return node

    def add_worker(self, name, role="worker_http", start=True):
        return self.join(self.token("--role", role), name, start=start)

    def add_workers(self, n, role="worker_http", prefix="w"):
        """w1 to wN, with one token."""
        token = self.token("--role", role, "--uses", str(n))
        return [self.join(token, f"{prefix}{i + 1}") for i in range(n)]

    def daemon(self, name, *argv, start=True, env=None):
        """Another daemon of the test's, looked after as the agents are."""
        d = Daemon(self.tmp / f"{name}.log", *argv,
                   env={**self.env, **(env or {})})
        self.others.append(d)
        return d.start() if start else d

    def _node(self, name):
        node = Node(self, name, self.tmp / name, self.net.address())
        self.nodes[name] = node
        return node

    # ---- using it ----

    def ctl(self, *args, state=None, env=None, **options):
        """clusterctl; see run() for the options."""
        return run(program("clusterctl"), "--state",
                   state or self.master.state, *args,
                   env={**self.env, **(env or {})}, **options)

    def ctl_argv(self, *args, state=None):
        return [program("clusterctl"), "--state",
                str(state or self.master.state), *map(str, args)]

    def ctl_start(self, *args, state=None, env=None, **popen):
        """clusterctl in the background: a Popen with pipes."""
        popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                 "stderr": subprocess.PIPE, **popen}
        return subprocess.Popen(self.ctl_argv(*args, state=state),
                                env=clean_env({**self.env, **(env or {})}),
                                **popen)

    def terminal(self, *args, state=None, env=None, **options):
        """clusterctl on a terminal."""
        t = Terminal(*self.ctl_argv(*args, state=state),
                     env={**self.env, **(env or {})}, **options)
        self.terminals.append(t)
        return t

    def __getitem__(self, name):
        return self.nodes[name]

    def expect_log(self, *patterns):
        """Announces log lines of whichever agent."""
        for node in self.nodes.values():
            node.expect_log(*patterns)

    # ---- taking it down ----

    def close(self):
        """Ends everything; returns what was wrong, as sentences."""
        wrong = []
        for t in self.terminals:
            t.close()
        for d in [*self.others, *reversed(self.nodes.values())]:
            try:
                d.stop()
            except AssertionError as e:
                wrong.append(str(e))
            wrong += [f"{d.log.name}: {line}" for line in d.complaints()]
            d.forget()
        wrong += [f"left running: {p}" for p in reap_orphans()]
        self.net.close()
        return wrong


# ---- processes that outlive their parents --------------------------------

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """From now on, whatever loses its parent becomes our child."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(pid=None):
    """(pid, state, command line) of each child."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        # Any of them may end meanwhile.
        with contextlib.suppress(OSError):
            proc = Path("/proc", name)
            fields = (proc / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == (pid or os.getpid()):
                argv = (proc / "cmdline").read_bytes()
                yield (int(name), fields[0],
                       argv.replace(b"\0", b" ").decode(errors="replace"))


def reap_orphans(grace_s=PATIENCE_S):
    """Ends the children that are no daemon of a live cluster; returns those
    that were still alive after a moment's grace."""
    def alive():
        left = []
        for pid, state, argv in list(children()):
            if pid in Daemon.alive:
                continue
            if state == "Z":
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
            else:
                left.append((pid, argv))
        return left

    with contextlib.suppress(AssertionError):
        wait_for(lambda: not alive(), grace_s)
    left = alive()
    for pid, _ in left:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return [f"{pid} {argv}" for pid, argv in left]


# ---- file systems that are full or read-only ------------------------------

@contextlib.contextmanager
def tmpfs(path, size="1m"):
    """A small file system on path, for as long as the block lasts.  Skips
    the test unless root may mount.  remount(path, "ro") changes it."""
    import pytest
    path = Path(path)
    path.mkdir(exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs",
         str(path)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("cannot mount a tmpfs: "
                    + mounted.stderr.decode().strip())
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def remount(path, option):
    subprocess.run(["mount", "-o", f"remount,{option}", str(path)],
                   check=True)


def fill(path):
    """Fills the file system with one file, and returns the file."""
    ballast = Path(path) / "ballast"
    with contextlib.suppress(OSError), open(ballast, "wb", 0) as f:
        while True:
            f.write(b"\0" * 4096)
    return ballast


def copy_state(source, target):
    """A state directory as a backup would have it (no sockets)."""
    shutil.copytree(source, target, symlinks=True,
                    ignore=shutil.ignore_patterns("run"))
    return Path(target)
