#!/usr/bin/env python3
"""Waits that are single steps (--abstract) hide nothing of the code built on them: each scenario ends in the same states of memory as
with the wait engine's own code. usage: abstract.py PROGRAM SECONDS SCENARIO:MODEL..."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

WHOLE = ("dpor", "states")


def explore(program, scenario, model, seconds, *options):
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        subprocess.run([program, "--json", result.name, "--ends", "--schedules", "1000000000", "--seconds", seconds,
                        "--model", model, "--strategy", "states", *options, scenario], capture_output=True)
        return json.loads(Path(result.name).read_text().splitlines()[-1])


def main():
    program, seconds, scenarios = sys.argv[1], sys.argv[2], sys.argv[3:]
    for number, word in enumerate(scenarios, 1):
        scenario, model = word.split(":")
        whole, single = (explore(program, scenario, model, seconds, *options) for options in ((), ("--abstract",)))
        complete = all(row["search"] in WHOLE and row["verdict"] == "none" for row in (whole, single))
        same = whole["ends"] == single["ends"] and whole["ends_hash"] == single["ends_hash"] and single.get("abstract")
        print(f"{'ok' if complete and same else 'not ok'} {number} - {scenario}, {model}: {single['ends']} ends in {single['schedules']} schedules over "
              f"proven {single.get('abstract', 'nothing')}, {whole['ends']} in {whole['schedules']} without"
              f"{'' if complete else f': not complete in {seconds} s'}", flush=True)
    print(f"1..{len(scenarios)}")


main()
