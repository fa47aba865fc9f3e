#!/usr/bin/python3
"""Node sets: parse and fold many names, beside ClusterShell's nodeset.

usage: bench_nodeset.py [--names 100000] [--rounds 5]
"""

import argparse
import random
import subprocess
import sys
import tempfile

from measure import Table, median, muster, rounds, timed


def shapes(n):
    """Names as clusters have them."""
    rng = random.Random(7400)
    return {
        "one range": [f"node{i:06d}" for i in range(n)],
        "every third missing": [f"node{i:06d}" for i in range(n * 3 // 2)
                                if i % 3][:n],
        "shuffled": rng.sample([f"web{i}" for i in range(n)], n),
        "two numbers": [f"rack{i // 100}-n{i % 100:02d}" for i in range(n)],
    }


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--names", type=int, default=100000)
    p.add_argument("--rounds", type=int, default=5)
    args = p.parse_args()
    theirs = ("nodeset", "-f")
    ours = (muster.program("clusterctl"), "nodeset", "fold", "-")
    table = Table(f"parse and fold {args.names:,} node names (CPU)")
    for shape, names in shapes(args.names).items():
        with tempfile.TemporaryFile(buffering=0) as f:
            f.write("".join(f"{n}\n" for n in names).encode())

            def run(call, *argv, **how):
                f.seek(0)
                return call(*argv, stdin=f, **how)

            if run(subprocess.check_output, ours) != \
                    run(subprocess.check_output, theirs):
                sys.exit(f"{shape}: the two fold differently")
            results = rounds({"nodeset": lambda: run(timed, *theirs),
                              "muster": lambda: run(timed, *ours)},
                             args.rounds)
        table.ratio(shape, [r["cpu"] for r in results["muster"]], "nodeset",
                    median(results["nodeset"], "cpu"), 1 / 10)
    return 0 if table.show() else 1


if __name__ == "__main__":
    sys.exit(main())
