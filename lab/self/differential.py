#!/usr/bin/env python3
"""The reduced searches lose nothing: on random programs each finds every outcome that a search without reduction finds, with the
same limits, and no other."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = 12
EXTENT = r"exhaustive( by states)?( up to \d+ preemptions)?( with at most \d+ timeouts?)?, "

# What is compared: a search without reduction, and those that must find the same.
ALL = (["bounded", "--unreduced", "--preemptions", "200"], [["dpor"], ["states"], ["bounded", "--preemptions", "200"]])
TSO = (ALL[0], [["dpor"]])
TWO = (["bounded", "--unreduced", "--preemptions", "2"], [["bounded", "--preemptions", "2"], ["bounded-states", "--preemptions", "2"]])

CASES = [("sc", 0, [], ALL), ("sc", 0, ["--timeouts", "1"], ALL), ("sc", 0, [], TWO), ("tso", 100, [], TSO),
         ("c11", 100, [], ALL), ("c11", 100, [], TWO)]


def outcomes(program, seed, strategy, *options):
    """({seed: outcomes}, names of the searches that were completed, schedules run)"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outcomes"
        path.touch()
        environment = dict(os.environ, LAB_OUTCOMES=str(path), LAB_SEED=str(seed))
        command = [program, "--strategy", *strategy, *options]
        text = subprocess.run(command, env=environment, text=True, capture_output=True).stdout
        found = {}
        for line in path.read_text().splitlines():
            number, outcome = line.split()
            found.setdefault(int(number), set()).add(outcome)
    complete = set()
    schedules = {}
    for name, verdict in re.findall(r"^random_(\d+):\s+(.*)$", text, re.M):
        number = seed + int(name)
        schedules[number] = int(re.search(r"(\d+) schedules", verdict).group(1))
        if re.match(EXTENT, verdict):
            complete.add(number)
    return found, complete, schedules


def main():
    program = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    most = sys.argv[3] if len(sys.argv) > 3 else "40000"
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    results = []
    for model, stale, more, (unreduced, strategies) in CASES:
        for turn in range(first, first + rounds):
            seed = turn * PROGRAMS
            limits = ["--schedules", most, "--seconds", "20", "--model", model, "--stale", str(stale), *more]
            full, all_of, full_runs = outcomes(program, seed, unreduced, *limits)
            for strategy in strategies:
                reduced, done, runs = outcomes(program, seed, strategy, *limits)
                for number in sorted(done & set(full)):
                    missed = full[number] - reduced.get(number, set())
                    extra = reduced.get(number, set()) - full[number] if number in all_of else set()
                    text = (f"program {number}, {' '.join([model, *strategy, *more])}: {len(reduced.get(number, ()))} outcomes,"
                            f" {runs[number]} schedules instead of {full_runs[number]}{'' if number in all_of else ' or more'}")
                    if missed or extra:
                        text += f"; {len(missed)} missed, {len(extra)} impossible"
                    results.append((not missed and not extra, text))
    for number, (good, text) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {text}")
    if not results:
        print("not ok 1 - no search came to an end")
    print(f"1..{max(1, len(results))}")


main()
