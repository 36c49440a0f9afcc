#!/usr/bin/env python3
"""The tree has no paths of one machine and no leftovers of editing."""

import re
import sys
from pathlib import Path

from tap import Tap
from tree import tree_files

# Written in pieces, so that this file does not match itself.
FORBIDDEN = {
    "a path of one machine": re.compile(r"/(?:wor" + r"k|roo" + r"t|home/\w+)/"),
    "an unfinished place": re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b"),
    "a merge conflict": re.compile(r"^(?:<{7}|={7}|>{7})(?: |$)", re.M),
    "a carriage return": re.compile(r"\r"),
    "white space at the end of a line": re.compile(r"[ \t]+$", re.M),
}
SAMPLES = {
    "a path of one machine": ["cd /wor" + "k/main", "/roo" + "t/x", "/home/" + "somebody/x"],
    "an unfinished place": ["/* TO" + "DO: */", "FIX" + "ME", "// XX" + "X"],
    "a merge conflict": ["<" * 7 + " HEAD", "a\n" + "=" * 7 + "\nb"],
    "a carriage return": ["a\r\n"],
    "white space at the end of a line": ["a \nb"],
}


def main():
    tap = Tap()
    root = Path(sys.argv[1]).resolve()
    for what, samples in SAMPLES.items():
        missed = [s for s in samples if not FORBIDDEN[what].search(s)]
        tap.case(f"self-test: {what} is caught", [f"not caught: {s!r}" for s in missed])

    problems = {what: [] for what in FORBIDDEN}
    count = 0
    for path in tree_files(root):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        count += 1
        for what, pattern in FORBIDDEN.items():
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                problems[what].append(f"{path.relative_to(root)}:{line}: {match.group(0)!r}")
    tap.note(f"{count} files read")
    for what, found in problems.items():
        tap.case(f"no {what.split(' ', 1)[1]}", found)
    tap.done()


main()
