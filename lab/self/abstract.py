#!/usr/bin/env python3
"""Waits (--abstract) and locks (--abstract-locks) that are single steps hide nothing of the code built on them: each scenario ends in the
same states of memory as with their own code. Over locks a search without reduction must end there too, where it is asked for.
usage: abstract.py PROGRAM OPTION SECONDS SCENARIO:MODEL[:unreduced]..."""

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
    program, option, seconds, scenarios = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    for number, word in enumerate(scenarios, 1):
        scenario, model, *more = word.split(":")
        rows = [explore(program, scenario, model, seconds, *options)
                for options in ((), (option,), *((option, "--unreduced") for _ in more))]
        whole, single = rows[:2]
        complete = all(row["search"] in WHOLE and row["verdict"] == "none" for row in rows)
        same = len({(row["ends"], row["ends_hash"]) for row in rows}) == 1 and all(row.get("abstract") for row in rows[1:])
        print(f"{'ok' if complete and same else 'not ok'} {number} - {scenario}, {model}: {single['ends']} ends in {single['schedules']} schedules over "
              f"proven {single.get('abstract', 'nothing')}, {whole['ends']} in {whole['schedules']} without"
              f"{'' if complete else f': not complete in {seconds} s'}", flush=True)
    print(f"1..{len(scenarios)}")


main()
