#!/usr/bin/env python3
"""docs/proof.md is generated from docs/proof.json, has rows for every primitive, and names existing scenarios only.
usage: proof.py ROOT [PROGRAM...]: the explorer's programs, if it is built"""

import re
import subprocess
import sys
from pathlib import Path

from tap import Tap

ROOT = Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "scripts"))
import prooftable  # noqa: E402


def scenarios_of(programs):
    return {name for program in programs
            for name in subprocess.run([program, "--list"], check=True, text=True, capture_output=True).stdout.split()}


def missing_rows(rows):
    """Each row of the grid: two shapes of two and three threads, one of four, under both models."""
    there = {(row["scenario"], row["model"]) for row in rows}
    for title, (_, names, _) in prooftable.PRIMITIVES.items():
        for name in names:
            for model in ("sc", "c11"):
                for shape in ("2x3", "3x2"):
                    if (f"grid_{name}_{shape}", model) not in there:
                        yield f"{title}: grid_{name}_{shape} was not run under {model}"
                if not {(f"grid_{name}_4x1", model), (f"grid_{name}_4x2", model)} & there:
                    yield f"{title}: no four threads of {name} under {model}"


def main():
    tap = Tap()
    data = prooftable.load(ROOT)
    rows = data["rows"]
    page = (ROOT / "docs" / "proof.md").read_text(encoding="utf-8")
    tap.case("docs/proof.md is made from docs/proof.json", [] if page == prooftable.render(data) else ["run scripts/proof"])
    tap.case("no failure is in the table", [row["scenario"] for row in rows if row["verdict"] != "none"])
    tap.case("every primitive has its rows", missing_rows(rows))
    tap.case("a row of the wait engine is explored with its own code, and a row of a lock too",
             [row["scenario"] for row in rows
              if set(prooftable.abstraction_of(row)) - set(prooftable.abstraction_for(row["scenario"]))])
    covered = {prooftable.primitive_of(row["scenario"]) for row in rows}
    tap.case("every primitive has a scenario", [title for title in prooftable.PRIMITIVES if title not in covered])
    tap.case("every scenario belongs to a primitive",
             [row["scenario"] for row in rows if prooftable.primitive_of(row["scenario"]) is None])
    sections = prooftable.sections_of((ROOT / "docs" / "api.md").read_text(encoding="utf-8"))
    tap.case("the primitives are those of docs/api.md",
             [f"{header}: {name}" for listed, _, _ in prooftable.PRIMITIVES.values() for header, name in listed
              if (header, name) not in sections])
    exist = scenarios_of(sys.argv[2:])
    if exist:
        tap.case("every scenario of the table exists", sorted({row["scenario"] for row in rows} - exist))
        grid = {name for _, names, _ in prooftable.PRIMITIVES.values() for name in names}
        shapes = "|".join(prooftable.SHAPES)
        found = {match.group(1) for name in exist if (match := re.fullmatch(rf"grid_(\w+)_({shapes})", name))}
        tap.case("the grid has the rows of the table, and no other", sorted(grid ^ found))
    tap.done()


main()
