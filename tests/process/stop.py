#!/usr/bin/env python3
"""The report of a bugcheck names static functions, however the program is linked, and the address if it is stripped.

usage: stop.py CHECKS LIBRARY SOURCE COMPILER OPTION..."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from tap import Tap  # noqa: E402

LIBRARY, SOURCE, *COMPILER = sys.argv[2:]
KINDS = {"PIE": ["-fPIE", "-pie"], "not PIE": ["-fno-pie", "-no-pie"], "static": ["-fno-pie", "-static"],
         "static PIE": ["-fPIE", "-static-pie"], "stripped": ["-fPIE", "-pie", "-s"]}


def frames(options, folder):
    """The names of the first frames; None: this host does not link such programs."""
    program = Path(folder) / "program"
    if subprocess.run([*COMPILER, "-O1", SOURCE, "-o", program, *options, LIBRARY, "-pthread"], capture_output=True,
                      check=False).returncode != 0:
        return None
    report = subprocess.run([program], capture_output=True, text=True, check=False, cwd=folder).stderr
    return re.findall(r"^ +\d+  0x[0-9a-f]+  (\S+)", report, re.M)[:3] or [report]


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        for kind, options in KINDS.items():
            found = frames(options, folder)
            if found is None and "static" in kind:
                tap.case(f"{kind}: not on this host", [])
                continue
            expected = [r"program\+0x[0-9a-f]+"] * 3 if kind == "stripped" else \
                [rf"program!{name}\+0x[0-9a-f]+" for name in ("inner", "outer", "main")]
            whole = found is not None and len(found) == 3 and all(map(re.fullmatch, expected, found))
            tap.case(kind, [] if whole else [found])
    tap.done()


main()
