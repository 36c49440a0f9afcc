#!/usr/bin/env python3
"""The version is written in meson.build and in its heading of CHANGELOG.md; everything else takes it from
there.

usage: version.py ROOT VERSION INTERLOCK      INTERLOCK is the command"""

import re
import subprocess
import sys
from pathlib import Path

from tap import Tap

# What is built or packaged. Documents may show the output of a version.
FOLDERS = ["cmake", "include", "kd", "lab", "man", "packaging", "races", "scripts", "src", "tools", "tests/checks"]


def changelog_version(text):
    """The version in the first heading that has one."""
    match = re.search(r"^## (?!Unreleased$)(\S+)", text, re.M)
    return match.group(1) if match else None


def copies(folder, version):
    """The lines below folder that repeat the version."""
    whole = re.compile(rf"(?<![\d.]){re.escape(version)}(?![\d.]*\d)")
    return [f"{path}:{number}: {line.strip()}" for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix not in (".pyc", ".png")
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
            if whole.search(line)]


def main():
    tap = Tap()
    root, version, command = Path(sys.argv[1]).resolve(), *sys.argv[2:]

    tap.case("self-test: the newest heading counts",
             [] if changelog_version("# Log\n\n## Unreleased\n\n## 1.2.3 (today)\n\n## 1.2.2\n") == "1.2.3" else ["it does not"])
    tap.case("self-test: a copy of the version is found",
             [] if copies(root / "tests" / "checks" / "install", "VERSION") else ["it is not"])

    tap.case("meson.build has it once",
             [] if (root / "meson.build").read_text().count(version) == 1 else ["more than once, or not as it stands"])
    tap.case("CHANGELOG.md is about it",
             [] if changelog_version((root / "CHANGELOG.md").read_text()) == version
             else [f"the first heading is about {changelog_version((root / 'CHANGELOG.md').read_text())}"])
    said = subprocess.run([command, "--version"], capture_output=True, text=True).stdout
    tap.case("the command says so", [] if said.strip() == f"interlock {version}" else [said])
    tap.case("nothing else repeats it", [line for name in FOLDERS for line in copies(root / name, version)])
    tap.done()


main()
