#!/usr/bin/env python3
"""`interlock faults` finds the failures that a refused allocation causes, and continues after an interruption.

usage: faults.py CHECKS INTERLOCK PROGRAM..."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from tap import Tap  # noqa: E402

INTERLOCK = str(Path(sys.argv[2]).resolve())
PROGRAMS = [str(Path(program).resolve()) for program in sys.argv[3:]]
STACKS = 2  # of the program


def faults(folder, *arguments):
    return subprocess.run([INTERLOCK, "faults", *arguments], cwd=folder, capture_output=True, text=True, check=False,
                          timeout=300)


def summary(result):
    found = re.search(r"^(\d+) stacks have failed(, which is all of them)?: (\d+) made the test crash, (\d+) hang, (\d+) leak$",
                      result.stdout, re.M)
    return (int(found[1]), bool(found[2]), int(found[3]), int(found[4]), int(found[5])) if found else None


def check(tap, name, result, status, expected, parts=()):
    problems = [] if result.returncode == status and summary(result) == expected else \
        [f"status {result.returncode} instead of {status}, {summary(result)} instead of {expected}", result.stdout, result.stderr]
    problems += [f"no {part!r} in {result.stdout}" for part in parts if part not in result.stdout]
    tap.case(name, problems)


def findings(tap, kind, program):
    with tempfile.TemporaryDirectory() as folder:
        check(tap, f"{kind}: nothing is found", faults(folder, program), 0, (STACKS, True, 0, 0, 0))
        check(tap, f"{kind}: nothing more is run", faults(folder, program), 0, (STACKS, True, 0, 0, 0))
        left = sorted(path.name for path in Path(folder).iterdir())
        tap.case(f"{kind}: the state is left", [] if left == ["interlock-faults.txt"] else left)
        result = faults(folder, program, "leak")
        tap.case(f"{kind}: another command is refused",
                 [] if result.returncode == 1 and "belongs to another command" in result.stderr else [result])
        check(tap, f"{kind}: a leak", faults(folder, "--fresh", program, "leak"), 1, (STACKS, True, 0, 0, 1),
              ("leaked 1 block of pool memory", "!add_device+0x", "100 bytes, tag 'Driv'"))
        check(tap, f"{kind}: a crash", faults(folder, "--fresh", "--", program, "crash"), 1, (STACKS, True, 1, 0, 0),
              ("the test crashed:", "!add_device+0x"))
        check(tap, f"{kind}: a hang", faults(folder, "--fresh", "--timeout", "3", program, "hang"), 1, (STACKS, True, 0, 1, 0),
              ("the test hung for 3 s",))


def resumed(tap, program):
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        command = ("--state", str(state), "--most", "1", program, "crash")
        check(tap, "one run at a time: the first", faults(folder, *command), 0, (1, False, 0, 0, 0))
        check(tap, "one run at a time: the second", faults(folder, *command), 1, (2, False, 1, 0, 0))
        check(tap, "one run at a time: the last", faults(folder, *command), 1, (2, True, 1, 0, 0))
        whole = state.read_text()
        # killed in the second run: its stack was tried, and the result is missing
        state.write_text("".join(line for line in whole.splitlines(True) if not line.startswith(("result 2", "complete"))))
        check(tap, "a run that was interrupted is repeated", faults(folder, "--state", str(state), program, "crash"), 1,
              (2, True, 1, 0, 0))
        stack = next(line.split()[2] for line in whole.splitlines() if line.startswith("fault 2 "))
        result = faults(folder, "--only", stack, program, "leak")
        tap.case("one failure again", [] if result.returncode == 1 and "AddDevice: 0xc000009a" in result.stdout and
                 "100 bytes, tag 'Driv'" in result.stderr else [result])


def refused(tap, program):
    with tempfile.TemporaryDirectory() as folder:
        result = faults(folder, program, "failing")
        tap.case("a test that fails by itself",
                 [] if result.returncode == 1 and "without any fault the test ended with status 1" in result.stderr else [result])
        for arguments, culprit in (((), ""), (("--state",), "--state"), (("--timeout", "soon", program), "soon"),
                                   (("--loud", program), "--loud")):
            result = faults(folder, *arguments)
            named = f"interlock: unrecognized argument: {culprit}\n" if culprit else ""
            tap.case(f"refused: {' '.join(arguments)[:20]}",
                     [] if result.returncode == 2 and result.stderr.startswith(named + "usage: ") else [result])
        result = faults(folder, "--state", "/nonexistent/state", program)
        tap.case("a state that cannot be written", [] if result.returncode == 1 and "/nonexistent" in result.stderr else [result])
        result = faults(folder, "./nonexistent")
        tap.case("a program that is not there", [] if result.returncode == 1 else [result])


def main():
    tap = Tap()
    for program in PROGRAMS:
        findings(tap, Path(program).name, program)
    resumed(tap, PROGRAMS[0])
    refused(tap, PROGRAMS[0])
    tap.done()


main()
