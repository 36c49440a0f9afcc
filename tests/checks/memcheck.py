#!/usr/bin/env python3
"""Memcheck finds nothing in the examples: no invalid access, and no memory left at exit.

usage: memcheck.py SUPPRESSIONS PROGRAM...      those with ! before the name start the library's own threads

Without such threads every kind of leak counts, even reachable memory. With them, the tables that they read are
kept."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tap import Tap

LEAKY = """
#include <stdlib.h>
int main(void)
{
    void *volatile block = malloc(10);
    block = NULL;
    return 0;
}
"""


def memcheck(program, kinds, suppressions):
    """What memcheck reports."""
    # A session for this run only; a small machine, because each processor may have a thread.
    settings = {"INTERLOCK_SESSION": f"memcheck{os.getpid()}", "INTERLOCK_PROCESSORS": "4"}
    with tempfile.NamedTemporaryFile("r") as log:
        result = subprocess.run(
            ["valgrind", "--leak-check=full", f"--show-leak-kinds={kinds}", f"--errors-for-leak-kinds={kinds}",
             f"--suppressions={suppressions}", "--error-exitcode=99", "--fair-sched=yes", f"--log-file={log.name}", program],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env={**os.environ, **settings})
        report = log.read()
    if result.returncode == 0 and "ERROR SUMMARY: 0 errors" in report:
        return []
    return [f"it ends with {result.returncode}\n{result.stdout[-2000:]}{result.stderr[-2000:]}{report[-8000:]}"]


def main():
    tap = Tap()
    suppressions, programs = sys.argv[1], sys.argv[2:]
    if not shutil.which("valgrind"):
        print("1..0 # SKIP valgrind is not installed")
        return
    with tempfile.TemporaryDirectory() as directory:
        leaky = Path(directory) / "leaky"
        subprocess.run(["gcc", "-x", "c", "-", "-o", leaky], input=LEAKY, text=True, check=True)
        found = memcheck(str(leaky), "all", suppressions)
        tap.case("self-test: a leak is found", [] if found and re.search(r"10 bytes in 1 blocks", found[0]) else ["it is not"])

    def run(program):
        kinds = "definite,indirect,possible" if program.startswith("!") else "all"
        return memcheck(program.lstrip("!"), kinds, suppressions)

    with ThreadPoolExecutor(2) as pool:
        for program, problems in zip(programs, pool.map(run, programs)):
            tap.case(Path(program.lstrip("!")).name, problems)
    tap.done()


main()
