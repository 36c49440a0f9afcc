#!/usr/bin/env python3
"""Initial inputs for the debugger's readers (fuzz/readers.h): snapshots, recordings, a world, a program.

usage: bases.py CHECKS INTERLOCK STATIC SHARED TRACED FOLDER"""

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from kdtest import PATIENCE, Program, interlock, new_session, until

SCENES = ["zoo", "service", "kernel-locks", "resources", "dpc", "queued-locks", "pool", "condition-cycle"]


def take_snapshot(process, path):
    result = interlock("snapshot", "-o", path, process)
    if result.returncode != 0:
        raise AssertionError(f"snapshot: {result.stderr}")


def record(traced, folder):
    """The recordings of a trace and of contention, as a process leaves them."""
    for setting, name, scene in (("INTERLOCK_TRACE", "trace", "locks"), ("INTERLOCK_CONTENTION", "contention", "locks")):
        path = folder / (name + ".trace" if name == "trace" else name)
        subprocess.run([traced, scene], check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL, cwd=folder,
                       env={**os.environ, setting: str(path), "INTERLOCK_TRACE_LIMIT": "1", "ASAN_OPTIONS": "detect_leaks=0"})
        if path.name != name:
            path.rename(folder / name)


def copy_world(program, folder):
    """Copies the world of two processes that wait for each other's mutexes."""
    session = new_session()
    with ExitStack() as stack:
        programs = [stack.enter_context(Program("shared-lock", program, INTERLOCK_SESSION=session, KD_OWN=f"m{i}",
                                                KD_WANT=f"m{1 - i}")) for i in range(2)]
        for p in programs:
            p.start()
        until(lambda: interlock("session", session).returncode, lambda status: status == 3)
        path = next(line.split(": ")[0] for line in interlock("session", session).stdout.splitlines()
                    if line.startswith("/"))
        shutil.copy(path, folder / "world")
    Path(path).unlink(missing_ok=True)


def fill(folder, program, traced, scenes=None):
    folder = Path(folder)
    copy = folder / "program"
    shutil.copy(program, copy)
    for i, scene in enumerate(scenes or SCENES):
        with Program(scene, copy) as p:
            take_snapshot(p.id, folder / f"core.{i}")
    record(traced, folder)
    copy_world(program, folder)


if __name__ == "__main__":
    fill(sys.argv[6], os.path.abspath(sys.argv[3]), os.path.abspath(sys.argv[5]))
