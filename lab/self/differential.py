#!/usr/bin/env python3
"""The reduced search loses nothing: on random programs it finds every outcome that the full search finds."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = 12


def outcomes(program, seed, *options):
    """({seed: outcomes}, names of the searches that were completed, schedules run)"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outcomes"
        path.touch()
        environment = dict(os.environ, LAB_OUTCOMES=str(path), LAB_SEED=str(seed))
        text = subprocess.run([program, *options], env=environment, text=True, capture_output=True).stdout
        found = {}
        for line in path.read_text().splitlines():
            number, outcome = line.split()
            found.setdefault(int(number), set()).add(outcome)
    complete = set()
    schedules = {}
    for name, verdict in re.findall(r"^random_(\d+):\s+(.*)$", text, re.M):
        number = seed + int(name)
        schedules[number] = int(re.search(r"(\d+) schedules", verdict).group(1))
        if re.match(r"exhaustive( by states)?( up to 200 preemptions)?( with at most \d timeouts)?, ", verdict):
            complete.add(number)
    return found, complete, schedules


def main():
    program = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    most = sys.argv[3] if len(sys.argv) > 3 else "40000"
    results = []
    for model, stale in (("sc", 0), ("tso", 100), ("c11", 100)):
        for turn in range(rounds):
            seed = turn * PROGRAMS
            limits = ["--schedules", most, "--seconds", "20", "--model", model, "--stale", str(stale)]
            full, all_of, full_runs = outcomes(program, seed, "--strategy", "bounded", "--preemptions", "200", *limits)
            for strategy in ("dpor", "states") if model == "sc" else ("dpor",):
                reduced, done, runs = outcomes(program, seed, "--strategy", strategy, *limits)
                for number in sorted(done & set(full)):
                    missed = full[number] - reduced.get(number, set())
                    extra = reduced.get(number, set()) - full[number] if number in all_of else set()
                    text = (f"program {number}, {model}, {strategy}: {len(reduced.get(number, ()))} outcomes, {runs[number]}"
                            f" schedules instead of {full_runs[number]}{'' if number in all_of else ' or more'}")
                    if missed or extra:
                        text += f"; {len(missed)} missed, {len(extra)} impossible"
                    results.append((not missed and not extra, text))
    for number, (good, text) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {text}")
    if not results:
        print("not ok 1 - no search came to an end")
    print(f"1..{max(1, len(results))}")


main()
