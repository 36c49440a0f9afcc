#!/usr/bin/env python3
"""Where a test ignores a statistic or forgets a value, the search is smaller than that of its twin, and complete too.
usage: forget.py PROGRAM"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = [
    # the twin, the smaller one, strategy, model
    ("counted_statistic", "ignored_statistic", "dpor", "sc"),
    ("counted_statistic", "ignored_statistic", "states", "sc"),
    ("counted_statistic", "ignored_statistic", "dpor", "c11"),
    ("noted_arrival", "forgotten_arrival", "states", "sc"),
]


def explore(program, scenario, strategy, model):
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        subprocess.run([program, "--json", result.name, "--strategy", strategy, "--model", model, scenario], capture_output=True)
        return json.loads(Path(result.name).read_text().splitlines()[-1])


def main():
    program = sys.argv[1]
    print(f"1..{len(CASES)}")
    for number, (twin, smaller, strategy, model) in enumerate(CASES, 1):
        rows = [explore(program, scenario, strategy, model) for scenario in (twin, smaller)]
        good = all(row["verdict"] == "none" and row["search"] == strategy for row in rows)
        good = good and rows[1]["schedules"] < rows[0]["schedules"]
        good = good and (smaller != "ignored_statistic" or rows[1]["schedules"] == 1)
        print(f"{'ok' if good else 'not ok'} {number} - {smaller}, {strategy}, {model}: {rows[1]['schedules']} schedules instead of "
              f"{rows[0]['schedules']}")


main()
