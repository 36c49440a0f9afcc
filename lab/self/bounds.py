#!/usr/bin/env python3
"""The verdict of an exhaustive search names a limit if, and only if, the limit cut something off."""

import re
import subprocess
import sys

CASES = [
    # scenario, options, what follows "exhaustive"
    ("third_timeout_missed", [], " with at most 2 timeouts"),
    ("third_timeout_missed", ["--timeouts", "1"], " with at most 1 timeouts"),
    ("reuse_none", [], " with no reuse of freed memory"),
    ("reuse_two_poppers", [], ""),
    ("reuse_in_turn", [], ""),
]


def verdict(program, scenario, options):
    text = subprocess.run([program, "--strategy", "dpor", *options, scenario], text=True, capture_output=True).stdout
    found = re.search(r"^\s+(.*?), \d+ pruned", text, re.M)
    return found.group(1) if found else text.strip()


def main():
    program = sys.argv[1]
    print(f"1..{len(CASES)}")
    for number, (scenario, options, limits) in enumerate(CASES, 1):
        text = verdict(program, scenario, options)
        good = re.fullmatch(rf"exhaustive{re.escape(limits)}, \d+ schedules", text)
        print(f"{'ok' if good else 'not ok'} {number} - {' '.join([scenario, *options])}: {text}")


main()
