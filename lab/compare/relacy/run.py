#!/usr/bin/env python3
"""
usage: run.py PROGRAM [--table]

Runs the ten programs under Relacy. As a test: with a few thousand random executions it finds all broken ones but one, and
nothing in a correct one. --table: full searches, at most a minute each, as docs/lab.md has them.
"""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent.parent / "tests" / "checks"))
sys.dont_write_bytecode = True

from tap import Tap  # noqa: E402

PROGRAMS = ("ticket_lock", "peterson_lock", "rw_lock", "seqlock", "treiber_stack", "michael_scott_queue", "chase_lev_deque",
            "rcu", "ring_buffer", "condition_queue")
# Relacy's seq_cst loads always read the newest store, so no execution of this program is wrong there.
NOT_FOUND = {"rcu_broken"}
EXECUTIONS = 5000
SECONDS = 60


def run(program, name, search, executions):
    try:
        return subprocess.run([program, name, search, str(executions)], capture_output=True, text=True, check=True,
                              timeout=SECONDS).stdout.strip()
    except subprocess.TimeoutExpired:
        return f"not complete after {SECONDS} s"


def check(program, name):
    expected = name.endswith("_broken") and name not in NOT_FOUND
    result = run(program, name, "random", EXECUTIONS)
    if result.startswith("nothing found") == expected:
        yield result


def main():
    program, names = sys.argv[1], [name + suffix for name in PROGRAMS for suffix in ("", "_broken")]
    if "--table" in sys.argv:
        for name in names:
            print(f"{name}: {run(program, name, 'full', 10 ** 12)}", flush=True)
        return
    tap = Tap()
    for name in names:
        tap.case(name, check(program, name))
    tap.done()


if __name__ == "__main__":
    main()
