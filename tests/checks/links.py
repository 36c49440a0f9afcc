#!/usr/bin/env python3
"""Every relative link in the documentation leads somewhere."""

import re
import sys
import tempfile
from pathlib import Path

from tap import Tap

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def broken(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    for target in LINK.findall(text):
        target = target.split("#")[0]
        if target and not re.match(r"\w+:", target) and not (path.parent / target).exists():
            yield f"there is no {target}"


def main():
    tap = Tap()
    root = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as directory:
        page = Path(directory) / "page.md"
        page.write_text("[a](page.md) [b](page.md#x) [c](https://example.org/) [d](gone.md)\n")
        found = list(broken(page))
        tap.case("self-test: a broken link is caught, others are not",
                 [] if found == ["there is no gone.md"] else found)
    for path in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        tap.case(str(path.relative_to(root)), broken(path))
    tap.done()


main()
