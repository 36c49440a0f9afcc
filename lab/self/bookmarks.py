#!/usr/bin/env python3
"""A search that returns to bookmarks makes the same schedules as one that makes each from its beginning (--replays): as many, as long,
with the same ends and the same verdict. usage: bookmarks.py PROGRAM SCHEDULES [SCENARIO...]"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

SEARCHES = [(strategy, model) for strategy in ("states", "dpor", "bounded-states", "bounded") for model in ("sc", "c11")]
COMPARED = ("scenario", "search", "schedules", "pruned", "truncated", "steps", "ends", "ends_hash", "verdict", "limits")


def results(program, schedules, strategy, model, scenarios, *options):
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        subprocess.run([program, "--brief", "--ends", "--json", result.name, "--schedules", schedules, "--seconds", "100000", "--model", model,
                        "--strategy", strategy, *options, *scenarios], capture_output=True)
        return [json.loads(line) for line in Path(result.name).read_text().splitlines()]


def main():
    program, schedules, scenarios = sys.argv[1], sys.argv[2], sys.argv[3:]
    for number, (strategy, model) in enumerate(SEARCHES, 1):
        returning, replaying = (results(program, schedules, strategy, model, scenarios, *options) for options in ((), ("--replays",)))
        differences = [f"# {a.get('scenario')}: {name}: {a.get(name)}, with --replays {b.get(name)}"
                       for a, b in zip(returning, replaying) for name in COMPARED if a.get(name) != b.get(name)]
        good = not differences and len(returning) == len(replaying) >= max(1, len(scenarios))
        runs = sum(row["schedules"] for row in returning)
        print(f"{'ok' if good else 'not ok'} {number} - {strategy}, {model}: {len(returning)} scenarios, {runs} schedules", flush=True)
        print(*differences[:20], sep="\n", end="\n" if differences else "")
    print(f"1..{len(SEARCHES)}")


main()
