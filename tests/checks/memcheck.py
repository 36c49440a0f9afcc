#!/usr/bin/env python3
"""Memcheck finds nothing in the examples: no invalid access, and no memory left at exit, in any of their processes.

usage: memcheck.py SUPPRESSIONS PROGRAM...      a program may have arguments, separated by blanks

Every kind of leak counts, even reachable memory, unless one of these is before the name:

!        it starts the library's own threads, or ends while its threads wait: the tables that these may read are kept
aborts:  it ends in a bugcheck, which frees nothing
hangs:   it never ends, and gets SIGTERM when all of its threads sleep
pidfd:   it starts and ends processes by their descriptors; skipped where valgrind lacks a system call for that, as 3.19 and 3.24 do"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
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

PIDFD = """
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    long descriptor = syscall(SYS_pidfd_open, getpid(), 0);
    return descriptor < 0 || syscall(SYS_pidfd_send_signal, descriptor, 0, NULL, 0) != 0;
}
"""

REPORTED = re.compile(r"^==\d+==    at 0x", re.M)  # the stack of an error


def await_hang(process):
    """Waits until all of its threads sleep and use no processor time for a second, or it has ended."""
    before = None
    while process.poll() is None:
        stats = [path.read_text().rpartition(")")[2].split() for path in Path(f"/proc/{process.pid}/task").glob("*/stat")]
        now = [(state, times) for state, *times in ((stat[0], *stat[11:13]) for stat in stats)]
        if now == before and len(now) > 1 and all(state == "S" for state, _ in now):
            return
        before = now
        time.sleep(1)


def ended(command, settings, how):
    """(what is wrong with its end, its output)"""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", env={**os.environ, **settings})
    if how == "hangs":
        await_hang(process)
        process.terminate()
    output = process.communicate()[0]
    expected = {"hangs": -signal.SIGTERM, "aborts": -signal.SIGABRT}.get(how, 0)
    return [] if process.returncode == expected else [f"it ends with {process.returncode}, not {expected}"], output


def memcheck(program, suppressions):
    """What memcheck reports."""
    how, _, command = program.rpartition(":")
    kinds = "definite,indirect,possible" if command.startswith("!") else "all"
    leaks = ["--leak-check=no"] if how in ("aborts", "hangs") else ["--leak-check=full", f"--show-leak-kinds={kinds}", f"--errors-for-leak-kinds={kinds}"]
    # A session for this run only; a small machine, because each processor may have a thread.
    settings = {"INTERLOCK_SESSION": f"memcheck{os.getpid()}", "INTERLOCK_PROCESSORS": "4"}
    with tempfile.TemporaryDirectory() as logs:
        problems, output = ended(
            ["valgrind", *leaks, f"--suppressions={suppressions}", "--error-exitcode=99", "--fair-sched=yes", "--trace-children=yes",
             f"--log-file={logs}/%p", *command.lstrip("!").split()], settings, how)
        reports = [path.read_text(errors="replace") for path in sorted(Path(logs).iterdir())]
    # A process that was killed has no summary, only what was reported before.
    wrong = [report[-8000:] for report in reports if "ERROR SUMMARY: 0 errors" not in report and
             ("ERROR SUMMARY" in report or REPORTED.search(report))]
    return (problems + [output[-4000:], *wrong] if problems or wrong else []) if reports else ["there is no report"]


def main():
    tap = Tap()
    suppressions, programs = sys.argv[1], sys.argv[2:]
    if not shutil.which("valgrind"):
        print("1..0 # SKIP valgrind is not installed")
        return
    with tempfile.TemporaryDirectory() as directory:
        leaky, pidfd = Path(directory) / "leaky", Path(directory) / "pidfd"
        for path, text in ((leaky, LEAKY), (pidfd, PIDFD)):
            subprocess.run(["gcc", "-x", "c", "-", "-o", path], input=text, text=True, check=True)
        found = "".join(memcheck(str(leaky), suppressions))
        tap.case("self-test: a leak is found", [] if "10 bytes in 1 blocks" in found else ["it is not"])
        found = "".join(memcheck(f"aborts:{leaky}", suppressions))
        tap.case("self-test: another end is found", [] if "it ends with 0" in found else ["it is not"])
        if any(program.startswith("pidfd:") for program in programs) and memcheck(str(pidfd), suppressions):
            tap.note("this valgrind lacks system calls of pidfds: programs that need them are not run")
            programs = [program for program in programs if not program.startswith("pidfd:")]
    with ThreadPoolExecutor(2) as pool:
        for program, problems in zip(programs, pool.map(lambda program: memcheck(program, suppressions), programs)):
            tap.case(Path(re.split(r"[!:]", program)[-1].split()[0]).name, problems)
    tap.done()


main()
