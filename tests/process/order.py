#!/usr/bin/env python3
"""usage: order.py ARCHIVE SOURCE COMPILER...: the library's files, linked in their order and in reverse."""

import subprocess
import sys
import tempfile
from pathlib import Path

archive, source, compiler = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:]
members = subprocess.run(["ar", "t", archive], capture_output=True, text=True, check=True).stdout.split()
with tempfile.TemporaryDirectory() as directory:
    subprocess.run(["ar", "x", archive], cwd=directory, check=True)
    for name, order in (("forward", members), ("reverse", members[::-1])):
        program = Path(directory) / f"early-{name}"
        subprocess.run([*compiler, source, *order, "-pthread", "-ldl", "-o", program], cwd=directory, check=True)
        result = subprocess.run([program], stdout=subprocess.PIPE, text=True, timeout=60)
        print(name, result.stdout, sep="\n")
        if result.returncode != 0 or result.stdout.count("used ") != 4:
            sys.exit(f"{name}: {result.returncode}")
