#!/usr/bin/env python3
"""Compares the table of scenarios in docs/lab.md with the programs. usage: documented.py docs/lab.md PROGRAM..."""
import fnmatch
import re
import subprocess
import sys


def patterns_of(text):
    section = text.split("\n## Scenarios\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ")]
    return [pattern for row in rows for pattern in re.findall(r"`([\w*]+)`", row)]


def listed_by(program):
    return subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout.split()


def main():
    with open(sys.argv[1], encoding="utf-8") as page:
        patterns = patterns_of(page.read())
    names = [name for program in sys.argv[2:] for name in listed_by(program)]
    missing = [name for name in names if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
    empty = [pattern for pattern in patterns if not fnmatch.filter(names, pattern)]
    good = bool(names) and bool(patterns) and not missing and not empty
    for name in missing:
        print(f"# {name} is in no row of the table")
    for pattern in empty:
        print(f"# no scenario is called {pattern}")
    print(f"{'ok' if good else 'not ok'} 1 - {len(names)} scenarios are in the table\n1..1")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
