#!/usr/bin/env python3
"""The context switch on each machine that has code for it and can run here. usage: fiber.py SOURCE"""

import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KINDS = {"its own": [], "ucontext": ["-DLAB_PORTABLE_FIBERS"]}


def machines():
    """(name, compiler, words that run a program)"""
    yield platform.machine(), "cc", []
    tools = all(map(shutil.which, ("aarch64-linux-gnu-gcc", "qemu-aarch64")))
    if platform.machine() != "aarch64" and tools and Path("/usr/aarch64-linux-gnu/include/stdio.h").exists():
        yield "aarch64", "aarch64-linux-gnu-gcc", ["qemu-aarch64"]


def main():
    root = Path(sys.argv[1])
    sources = [root / "lab" / "self" / "fiber.c", root / "lab" / "engine" / "fiber.c"]
    includes = [f"-I{root / folder}" for folder in ("lab/include", "include", "src")]
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        for machine, compiler, runner in machines():
            for kind, options in KINDS.items():
                program = Path(folder) / f"{machine}-{len(options)}"
                number += 1
                built = subprocess.run([compiler, "-std=gnu11", "-O2", "-fno-omit-frame-pointer", "-static",
                                        "-D_GNU_SOURCE", *options, *includes, *sources, "-o", program], capture_output=True, text=True)
                good = built.returncode == 0 and subprocess.run([*runner, program], capture_output=True).returncode == 0
                print(built.stderr.replace("\n", "\n# "), end="")
                print(f"{'ok' if good else 'not ok'} {number} - {machine}, {kind} switch")
    print(f"1..{number}")


main()
