#!/usr/bin/env python3
"""The reduced searches lose nothing on scenarios of the library: each ends in the same states of memory as a search of all states
without reduction. With :dpor, that search as well. usage: ends.py PROGRAM MODEL SECONDS SCENARIO[:dpor]..."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

WHOLE = ("dpor", "states")


def explore(program, scenario, model, seconds, strategy):
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        subprocess.run([program, "--json", result.name, "--ends", "--schedules", "1000000000", "--seconds", seconds,
                        "--model", model, "--strategy", *strategy, scenario], capture_output=True)
        return json.loads(Path(result.name).read_text().splitlines()[-1])


def main():
    program, model, seconds, scenarios = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    number = 0
    for word in scenarios:
        scenario, *more = word.split(":")
        every = explore(program, scenario, model, seconds, ["states", "--unreduced"])
        for name in ("states", *more):
            number += 1
            row = explore(program, scenario, model, seconds, [name])
            complete = every["search"] in WHOLE and row["search"] in WHOLE
            same = all(row[key] == every[key] for key in ("ends", "ends_hash", "verdict"))
            print(f"{'ok' if complete and same else 'not ok'} {number} - {scenario}, {name}: {row['ends']} ends in {row['schedules']} schedules, "
                  f"of {every['ends']} in {every['schedules']}{'' if complete else f': not complete in {seconds} s'}")
    print(f"1..{number}")


main()
