#!/usr/bin/env python3
"""Compares what a Win32 program prints when built with Interlock with what it prints under Wine, line by line.

usage: compare.py NAME PROGRAM WINE-OUTPUT DIFFERENCES

WINE-OUTPUT is a file with the output of the same program, built with mingw-w64 and run by Wine. A line that differs
must be explained by an entry of DIFFERENCES, and every entry must be needed."""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "checks"))
from tap import Tap  # noqa: E402

FIELDS = ("program", "interlock", "wine", "reason")


class Difference:
    def __init__(self, fields, where):
        missing = [name for name in FIELDS if not fields.get(name)]
        if missing:
            raise SystemExit(f"{where}: the entry has no {' and no '.join(missing)}")
        self.program = fields["program"]
        self.interlock = fields["interlock"]
        self.wine = fields["wine"]
        self.sometimes = "sometimes" in fields
        self.used = False


def read_differences(path):
    """Entries are separated by blank lines; a field is "name: value", # begins a comment."""
    entries, fields = [], {}
    lines = Path(path).read_text().splitlines() + [""]
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            continue
        if not line.strip():
            if fields:
                entries.append(Difference(fields, f"{path}:{number}"))
                fields = {}
            continue
        if line.startswith(" "):
            fields["reason"] += " " + line.strip()
            continue
        name, _, value = line.partition(":")
        if name not in FIELDS + ("sometimes",) or name in fields:
            raise SystemExit(f"{path}:{number}: what is {name!r}?")
        fields[name] = value.strip()
    return entries


def explained(differences, ours, theirs):
    for difference in differences:
        if difference.interlock == ours and difference.wine == theirs:
            difference.used = True
            return True
    return False


def compare(ours, theirs, differences, tap):
    for mine, other in zip(ours, theirs):
        same = mine == other or explained(differences, mine, other)
        tap.case(mine, [] if same else [f"interlock: {mine}", f"wine:      {other}"])
    if len(ours) != len(theirs):
        longer, who = (ours, "interlock") if len(ours) > len(theirs) else (theirs, "wine")
        tap.case("the same number of lines",
                 [f"only {who}: {line}" for line in longer[min(len(ours), len(theirs)):]])
    for difference in differences:
        if not difference.used and not difference.sometimes:
            tap.case(f"an explained difference exists: {difference.interlock}",
                     ["it does not, or no longer"])


def main():
    name, program, recorded, differences = sys.argv[1:]
    tap = Tap()
    run = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240)
    if run.stderr:
        tap.note(run.stderr)
    tap.case("the program ends well", [f"exit code {run.returncode}"] if run.returncode else [])
    compare(run.stdout.splitlines(), Path(recorded).read_text().splitlines(),
            [entry for entry in read_differences(differences) if entry.program == name], tap)
    tap.done()


if __name__ == "__main__":
    main()
