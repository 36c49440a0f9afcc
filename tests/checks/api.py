#!/usr/bin/env python3
"""docs/api.md has a line for every function that the public headers offer, exported or inline, under the header that
declares it, and no line for anything else."""

import re
import sys
from pathlib import Path

from clang import Headers
from tap import Tap

SECTION = re.compile(r"^## `interlock/(\S+\.h)`", re.M)
ROW = re.compile(r"^\| `(\w+)` \|([^|]*)\|([^|]*)\|([^|]*)\|$")
SINCE = re.compile(r"NT [34]\.\d+|2000|XP|Server 2003|Vista|7|8|8\.1|10|11|internal|Interlock")


def sections(text):
    parts = SECTION.split(text)
    return list(zip(parts[1::2], parts[2::2]))


def rows(text):
    for line in text.splitlines():
        if line.startswith("| `"):
            yield line, ROW.match(line)


def read(text):
    """({header: {function}}, [what is wrong with the page itself])."""
    listed, problems = {}, []
    for header, body in sections(text):
        names = listed.setdefault(header, set())
        for line, row in rows(body):
            if not row:
                problems.append(f"{header}: not a row of four columns: {line[:100]}")
                continue
            name, since, what, _ = (column.strip() for column in row.groups())
            if name in names:
                problems.append(f"{header}: {name} is there twice")
            if not SINCE.fullmatch(since):
                problems.append(f"{name}: since {since!r}?")
            if len(what) < 8:
                problems.append(f"{name}: what it does is not said")
            names.add(name)
    return listed, problems


def compare(listed, declared):
    where = {name: header for header, names in listed.items() for name in names}
    missing = sorted(f"{name} ({header})" for name, header in declared.items() if name not in where)
    extra = sorted(f"{name} ({header})" for name, header in where.items() if name not in declared)
    elsewhere = sorted(f"{name} is declared in {declared[name]}, not in {header}"
                       for name, header in where.items() if declared.get(name, header) != header)
    return missing, extra, elsewhere


def declared_functions(root, options):
    folder = root / "include" / "interlock"
    text = "".join(f"#include <interlock/{p.relative_to(folder)}>\n" for p in sorted(folder.rglob("*.h")))
    external, inline = Headers(text, [*options, f"-I{folder.parent}"]).declared(folder)
    return {name: str(Path(path).resolve().relative_to(folder))
            for name, path in {**external, **inline}.items()}


def self_test(tap):
    page = ("## `interlock/ke.h`\n\n| `KeOne` | NT 3.1 | does one thing | |\n| `KeTwo` | lately | short | |\n"
            "| `KeBad` | only two |\n")
    listed, problems = read(page)
    tap.case("self-test: bad rows are seen", [] if len(problems) == 3 else problems)
    missing, extra, elsewhere = compare(listed, {"KeOne": "ex.h", "KeThree": "ke.h"})
    good = missing == ["KeThree (ke.h)"] and extra == ["KeTwo (ke.h)"] and len(elsewhere) == 1
    tap.case("self-test: missing, extra and misplaced functions are seen", [] if good else [missing, extra, elsewhere])


def main():
    tap = Tap()
    root, options = Path(sys.argv[1]).resolve(), sys.argv[2:]
    self_test(tap)
    listed, problems = read((root / "docs" / "api.md").read_text(encoding="utf-8"))
    tap.case("every row has its columns", problems)
    declared = declared_functions(root, options)
    tap.note(f"{len(declared)} functions declared, {sum(map(len, listed.values()))} listed")
    missing, extra, elsewhere = compare(listed, declared)
    tap.case("every function is listed", missing)
    tap.case("nothing else is listed", extra)
    tap.case("every function is under its header", elsewhere)
    tap.done()


if __name__ == "__main__":
    main()
