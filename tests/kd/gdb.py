#!/usr/bin/env python3
"""The extension for gdb: its commands and printers, in a program that is deadlocked.

usage: gdb.py CHECKS INTERLOCK STATIC SHARED EXTENSION"""

import shutil
import subprocess
import sys

from kdtest import PATIENCE, SHARED, STATIC, Program, Tap, until, view


def gdb(program, *commands):
    words = ["gdb", "-q", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", str(program.id)]
    for command in (f"source {sys.argv[5]}", *commands):
        words += ["-ex", command]
    result = subprocess.run(words, capture_output=True, text=True, timeout=5 * PATIENCE, check=False)
    return result.stdout, result.stderr


def expect(tap, name, output, *parts):
    tap.case(name, [f"{part!r} is missing in\n{output[0]}{output[1]}" for part in parts if part not in output[0]])


def cases(tap):
    with Program("resources", STATIC) as p:
        until(lambda: view("deadlocks", p.id), lambda found: len(found["deadlocked_threads"]) == 3)
        expect(tap, "threads: one that waits for a resource", gdb(p, "interlock threads"),
               f"thread {p.alice} (alice), WAIT: (WrResource)", "SynchronizationEvent, not signaled, threads wait",
               "not waiting")
        expect(tap, "locks: resources", gdb(p, "interlock locks"),
               f"Resource @ {p.first:#x} (resources): owned exclusively by thread {p.alice} (alice), "
               "waiters 0 exclusive 1 shared, contention 1")
        expect(tap, "printers: a resource", gdb(p, "p resources[1]"), f"owned exclusively by thread {p.bob} (bob)")
    with Program("srw", SHARED) as p:
        until(lambda: view("deadlocks", p.id), lambda found: found["possible_deadlocks"])
        expect(tap, "waits: a critical section and an SRW lock", gdb(p, "interlock waits"),
               f"critical section {p.section:#x} (section): owned 1 times by thread {p.bob}, 1 wait",
               f"address {p.srw:#x} (srw)")
        expect(tap, "printers: a critical section, an SRW lock, a pushlock, an event",
               gdb(p, "p section", "p srw", "p push_lock", "p fast_mutex.Event"),
               f"$1 = owned 1 times by thread {p.bob}, 1 wait", "$2 = held, threads wait", "$3 = free",
               "$4 = NotificationEvent, not signaled")
    with Program("kernel-locks", STATIC) as p:
        until(lambda: view("locks", p.id), lambda found: len(found["locks"]) == 3)
        expect(tap, "locks: those that threads wait for", gdb(p, "interlock locks"),
               f"Fast mutex @ {p.fast:#x} (fast_mutex): owned by thread {p.bob} (bob), contention 1",
               f"Guarded mutex @ {p.guarded:#x} (guarded_mutex): owned by thread {p.carol} (carol), contention 1",
               f"Pushlock @ {p.push:#x} (push_lock): held, threads wait")
    with Program("contended-srw", STATIC) as p:
        until(lambda: view("deadlocks", p.id), lambda found: found["deadlocks"])
        expect(tap, "locks: a critical section without debug information, and an SRW lock that was got after a wait",
               gdb(p, "interlock locks"),
               f"Critical section @ {p.section:#x} (section): owned 1 times by thread {p.bob}, 1 wait",
               f"SRW lock @ {p.srw:#x} (srw): held, threads wait, last acquired by thread {p.alice} (alice)")
    with Program("sleeping-owner", SHARED) as p:
        until(lambda: view("threads", p.id), lambda t: any(w["id"] == p.waiter and w["wait"] and
                                                           w["wait"]["blocks"][0]["object_type"] == "Mutant"
                                                           for w in t["threads"]))
        expect(tap, "waits: a mutant", gdb(p, "interlock waits"),
               f"Mutant, owned 2 times by thread {p.sleeper} (sleeper)")
        expect(tap, "locks: a mutant that is owned", gdb(p, "interlock locks"),
               f": Mutant, owned 2 times by thread {p.sleeper} (sleeper)")
    for program in (STATIC, SHARED):
        with Program("pool", program) as p:
            output = gdb(p, "interlock pool")
            lines = [line.split() for line in output[0].splitlines()]
            rows = [[" ".join(line[:-5]), *line[-5:]] for line in lines if len(line) > 5 and line[-5] in ("Nonp", "Paged")]
            wanted = [["Irp", "Nonp", "1", "0", "1", "5000"], ["Devo", "Paged", "6", "3", "3", "300"],
                      ["Devo", "Nonp", "4", "2", "2", "200"], ["mdf.", "Paged", "1", "1", "0", "0"]]
            mine = [row for row in rows if row[0] in ("Irp", "Devo", "mdf.")]
            tap.case("pool: rows by tag, the most bytes first", [] if mine == wanted else [f"{mine} in\n{output[0]}{output[1]}"])
    expect_none = subprocess.run(["gdb", "-q", "-nx", "-batch", "-ex", f"source {sys.argv[5]}", "-ex",
                                  "interlock threads"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    tap.case("without a program it says so",
             [] if "cannot be read" in expect_none.stderr else [expect_none.stdout + expect_none.stderr])


def main():
    tap = Tap()
    if shutil.which("gdb"):
        cases(tap)
        tap.done()
    print("1..0 # SKIP there is no gdb")


main()
