"""What the benchmarks share: alternating rounds, medians, and the table that
sets a figure beside its peer's and its budget."""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))

import muster  # noqa: E402  (the harness of the whole-system tests)

TIMED = muster.BIN / "tests" / "bench" / "timed"


def timed(*argv, env=None, stdin=None, status=(0,)):
    """Runs a command; returns {wall, cpu, peak_kb, bytes}.  Its
    exit status must be one of those given."""
    with tempfile.NamedTemporaryFile("r") as out:
        done = subprocess.run(
            [TIMED, out.name, *map(str, argv)], env=muster.clean_env(env),
            stdin=stdin or subprocess.DEVNULL, stderr=subprocess.PIPE,
            timeout=600)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode())
        taken = json.load(out)
    if taken["status"] not in status:
        raise RuntimeError(f"{argv[0]} ended with {taken['status']}: "
                           f"{done.stderr.decode()[-2000:]}")
    return taken


def rounds(contenders, n):
    """Runs {name: function} in turn, n times over; returns {name: [taken]}.
    Turns, so that a slow minute of the machine hits all alike."""
    results = {name: [] for name in contenders}
    for i in range(n):
        for name, run in contenders.items():
            progress(f"round {i + 1} of {n}: {name}")
            results[name].append(run())
    progress("")
    return results


def progress(text):
    """One line that changes, for whoever watches."""
    if sys.stderr.isatty():
        print(f"  {text:70}", end="\r", file=sys.stderr, flush=True)


def median(results, key="wall"):
    return statistics.median(r[key] for r in results)


def seconds(s):
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if s >= size:
            return f"{s / size:.3g} {unit}"
    return f"{s / 1e-9:.3g} ns"


class Table:
    """Rows: what, measured, and, for those with a budget, against what,
    ratio, budget and verdict."""

    HEAD = ("what", "measured", "spread", "against", "ratio", "budget", "")

    def __init__(self, title):
        self.title, self.rows, self.missed = title, [], 0

    def figure(self, what, values, show=seconds):
        """A row without a budget: a peer's, or for information."""
        middle = statistics.median(values)
        self.rows.append((what, show(middle), self._spread(values, show),
                          "", "", "", ""))
        return middle

    def ratio(self, what, values, peer_name, peer, budget, show=seconds):
        """A row whose median may be at most budget times the peer's."""
        middle = statistics.median(values)
        got = middle / peer
        self.rows.append((what, show(middle), self._spread(values, show),
                          f"{peer_name} {show(peer)}", f"{got:.3f}",
                          f"<= {budget:.3g}", self._verdict(got <= budget)))

    def at_least(self, what, values, peer_name, peer, budget, show=seconds):
        """A row whose median must be at least budget times the peer's."""
        middle = statistics.median(values)
        got = middle / peer
        self.rows.append((what, show(middle), self._spread(values, show),
                          f"{peer_name} {show(peer)}", f"{got:.3f}",
                          f">= {budget:.3g}", self._verdict(got >= budget)))

    def limit(self, what, values, budget, show=seconds):
        """A row whose median may be at most the budget."""
        middle = statistics.median(values)
        self.rows.append((what, show(middle), self._spread(values, show), "",
                          "", f"<= {show(budget)}",
                          self._verdict(middle <= budget)))

    def show(self):
        """Prints the table; returns whether every budget was kept."""
        table = [self.HEAD, *self.rows]
        widths = [max(len(row[i]) for row in table)
                  for i in range(len(self.HEAD))]
        print(f"\n{self.title}")
        for row in table:
            print("  ".join(cell.ljust(w) for cell, w in
                            zip(row, widths)).rstrip())
        return self.missed == 0

    def _verdict(self, kept):
        self.missed += not kept
        return "ok" if kept else "MISSED"

    @staticmethod
    def _spread(values, show):
        if len(values) < 2:
            return ""
        return f"{show(min(values))}..{show(max(values))}"


def megabytes(kb):
    return f"{kb / 1024:.3g} MB"
