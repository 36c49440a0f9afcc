#!/usr/bin/env python3
"""The model c11 is RC11: for every program of shapes.h the explorer finds the outcomes that the axioms allow, and no others. With
--strategy states, programs that have sequentially consistent fences are left out: it does not search them."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BATCH = 256


def read_outcomes(lines):
    found = {}
    for line in lines:
        number, outcome = line.split()
        found.setdefault(int(number), set()).add(outcome)
    return found


def explore(program, first, options):
    """({number: outcomes}, numbers of the programs that were not explored to the end)"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outcomes"
        path.touch()
        environment = dict(os.environ, LAB_OUTCOMES=str(path), LAB_SEED=str(first))
        text = subprocess.run([program, *options], env=environment, text=True, capture_output=True).stdout
        found = read_outcomes(path.read_text().splitlines())
    done = {first + int(name, 16) for name, verdict in re.findall(r"^shape_(\w+):\s+(.*)$", text, re.M)
            if re.match(r"exhaustive( by states)?(,| up to 200 preemptions,)", verdict)}
    return found, set(range(first, first + BATCH)) - done


def main():
    axioms, program, options = sys.argv[1], sys.argv[2], sys.argv[3:]
    names = dict(line.split() for line in subprocess.check_output([axioms, "names"], text=True).splitlines())
    families = {}
    for first in range(0, len(names), BATCH):
        allowed = read_outcomes(subprocess.check_output([axioms, str(first), str(BATCH)], text=True).splitlines())
        found, unfinished = explore(program, first, options)
        left_out = unfinished if "states" in options else set()
        for number in range(first, min(first + BATCH, len(names))):
            name = names[str(number)]
            if number in left_out:
                continue
            missed, extra = allowed[number] - found.get(number, set()), found.get(number, set()) - allowed[number]
            family = families.setdefault(name.rsplit(".", 1)[0], [0, 0, []])
            family[0] += 1
            family[1] += len(allowed[number])
            if missed or extra or number in unfinished:
                family[2].append(f"{name}: missed {sorted(missed)}, impossible {sorted(extra)}"
                                 f"{', not exhaustive' if number in unfinished else ''}")
    print(f"1..{len(families)}")
    for index, (name, (programs, outcomes, wrong)) in enumerate(families.items(), 1):
        print(f"{'not ok' if wrong else 'ok'} {index} - {name}: {programs} programs, {outcomes} outcomes")
        for text in wrong[:5]:
            print(f"# {text}")


main()
