#!/usr/bin/env python3
"""Every relative link in the documentation leads to an existing file, and to an existing heading if it names one."""

import re
import sys
import tempfile
from pathlib import Path

from pages import pages
from tap import Tap

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
IMAGE = re.compile(r"\bsrc(?:set)?=\"([^\"]+)\"")  # of HTML, for which there is no Markdown: a picture for a dark page


def text_of(path):
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)


def headings(path):
    """The anchors of the headings of a page."""
    for heading in re.findall(r"^#+ (.+)$", text_of(path), re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def broken(path):
    for link in LINK.findall(text_of(path)) + IMAGE.findall(text_of(path)):
        target, _, heading = link.partition("#")
        page = path.parent / target if target else path
        if re.match(r"\w+:", link):
            continue
        if not page.exists():
            yield f"there is no {target}"
        elif heading and page.suffix == ".md" and heading not in headings(page):
            yield f"{page.name} has no heading {heading}"


def main():
    tap = Tap()
    root = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as directory:
        page = Path(directory) / "page.md"
        page.write_text("# X: `y`, z\n\n[a](page.md) [b](page.md#x-y-z) [c](#x-y-z) [d](https://example.org/)\n"
                        "[e](gone.md) [f](page.md#x)\n<img src=\"page.md\"> <source srcset=\"gone.png\">\n")
        found = list(broken(page))
        tap.case("self-test: broken links are caught, others are not",
                 [] if found == ["there is no gone.md", "page.md has no heading x", "there is no gone.png"] else found)
    for path in pages(root):
        tap.case(str(path.relative_to(root)), broken(path))
    index = {(root / "docs" / link.split("#")[0]).resolve() for link in LINK.findall(text_of(root / "docs" / "README.md"))}
    tap.case("docs/README.md lists every page of docs", [page for page in root.glob("docs/*.md")
                                                         if page.name != "README.md" and page not in index])
    tap.done()


main()
