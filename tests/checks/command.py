#!/usr/bin/env python3
"""Every subcommand of `interlock` has help and a version, and names what it does not understand.

usage: command.py ROOT INTERLOCK      INTERLOCK is the command"""

import re
import subprocess
import sys
from pathlib import Path

from tap import Tap

WRONG = "--no-such-option"


def run(*words):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return result.returncode, result.stdout, result.stderr


def problems_of(name, result, status, text, where):
    """The status, and a text that standard output (1) or standard error (2) must contain."""
    right = result[0] == status if status is not None else result[0] != 0
    return [] if right and text in result[where] else [f"{name}: {result}"]


def main():
    tap = Tap()
    root, command = Path(sys.argv[1]).resolve(), sys.argv[2]
    table = re.findall(r'^    \{"([^"]+)", ".*", (.*)\},$', (root / "tools/interlock/main.c").read_text(), re.M)
    help_text = run(command, "--help")[1]
    version = run(command, "--version")[1]

    tap.case("self-test: a text that is missing is noticed", [] if problems_of("x", (0, "a", ""), 0, "b", 1) else ["it is not"])
    tap.case("the table is found", [] if len(table) > 20 else [table])
    tap.case("without a subcommand: the list", problems_of("", run(command), 2, "usage: interlock SUBCOMMAND", 2))
    tap.case("help lists all", [name for name, _ in table if f"  {name} " not in help_text] +
             problems_of("help", run(command, "help"), 0, help_text, 1))
    tap.case("an unknown subcommand is named", problems_of("", run(command, "deadlok"), 2, "deadlok", 2) +
             problems_of("help", run(command, "help", "deadlok"), 2, "deadlok", 2))
    left_out = {name for name, _ in table if re.search(rf"^  {re.escape(name)} .*\(not in this build\)$", help_text, re.M)}
    tap.case("what is left out of this build says so", [problem for name in sorted(left_out) for problem in
             problems_of(name, run(command, name, "1"), 2, f"{name} is not in this build", 2)])
    for name, _ in table:
        if name in left_out:
            continue
        compiles = name in ("cc", "c++")
        problems = problems_of("help", run(command, "help", name), 0, f"usage: interlock {'cc|c++' if compiles else name}", 1)
        problems += problems_of("--help", run(command, name, "--help"), 0, "" if compiles else f"usage: interlock {name}", 1)
        problems += problems_of("--version", run(command, name, "--version"), 0, "" if compiles else version, 1)
        problems += problems_of(WRONG, run(command, name, WRONG), None if compiles else 2, WRONG, 2)
        tap.case(f"{name}: help, version, an option that does not exist", problems)
    tap.done()


main()
