#!/usr/bin/env python3
"""`interlock snapshot`: a file in which every view finds what it found in the process, and what moved between two.

usage: snapshot.py CHECKS INTERLOCK STATIC SHARED [sanitized]"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from kdtest import DEADLOCKED, INTERLOCK, SHARED, STATIC, Program, Tap, View, differences, interlock, until, view

VIEWS = ("threads", "deadlocks", "graph", "locks", "handles", "qlocks", "dpcs", "timers")
# What only the host knows of a thread, what changes, and what the two views read at different times.
OF_A_MOMENT = {"host_state", "user_time", "kernel_time", "seconds", "timeout_in", "due_in", "name", "ticks", "interrupt_count"}


def lasting(found):
    if isinstance(found, list):
        return [lasting(part) for part in found]
    if isinstance(found, dict):
        return {key: lasting(value) for key, value in found.items() if key not in OF_A_MOMENT}
    return found


def take(process, path):
    return interlock("snapshot", "-o", path, process)


def settled():
    """A service whose threads all wait."""
    p = Program("service")
    until(lambda: view("deadlocks", p.id), lambda d: len(d["deadlocked_threads"]) == 3)
    until(lambda: view("locks", p.id), lambda d: len(d["locks"]) == 3)
    return p


def views(tap, folder):
    path = Path(folder) / "service.snapshot"
    with settled() as p:
        result = take(p.id, path)
        tap.case("snapshot: taken", differences("result", (result.returncode, result.stderr), (0, "")))
        tap.case("snapshot: the process goes on",
                 differences("state", Path(f"/proc/{p.id}/stat").read_text("utf-8").rsplit(")", 1)[1].split()[0] in "SR", True))
        live = {name: lasting(view(name, p.id)) for name in VIEWS}
        for name in VIEWS:
            tap.case(f"snapshot: {name} finds what it finds in the process",
                     differences(name, lasting(view(name, path)), live[name]))
        waits = [t["wait"]["seconds"] for t in view("threads", path)["threads"] if t.get("wait")]
        tap.case("snapshot: how long threads have waited", [] if waits and all(s >= 0 for s in waits) else [waits])
    stacks = interlock("deadlocks", "--stack", path)
    tap.case("snapshot: stacks, after the process has ended",
             differences("status", stacks.returncode, DEADLOCKED) + ([] if "kd-program!writer" in stacks.stdout else [stacks.stdout]))
    tap.case("snapshot: it is small", [] if path.stat().st_size < 8 << 20 else [path.stat().st_size])
    try:
        with View(path) as v:
            found = v.api("graph")
        tap.case("snapshot: the page shows it", [] if len(found["threads"]) >= 14 else [found])
    except (ValueError, ConnectionError, TypeError):
        tap.note("no page in this build")


def waits_of_listener(p):
    """None: it has ended."""
    return next((t["context_switches"] for t in view("threads", p.id)["threads"] if t["name"] == "listener"), None)


def comparisons(tap, folder):
    before, after = Path(folder) / "before", Path(folder) / "after"
    with settled() as p:
        take(p.id, before)
        take(p.id, after)
        same = json.loads(interlock("snapshot", "--json", "--compare", before, after).stdout)
        waiting = {t["id"] for t in view("threads", before)["threads"] if t.get("wait")}
        tap.case("compare: nothing moved", differences("still", {t["thread"]["id"] for t in same["threads"] if t["movement"] == "still"},
                                                       waiting))
        held = [lock for lock in same["locks"] if lock["same_owner"]]
        tap.case("compare: who holds a lock both times", [] if any(o["lock"]["name"] == "kd-program!cache" for o in held) else [held])
        switches = waits_of_listener(p)
        p.start()
        until(lambda: waits_of_listener(p), lambda now: now != switches)
        take(p.id, after)
        result = interlock("snapshot", "--json", "--compare", before, after)
        moved = json.loads(result.stdout)
        how = {t["thread"]["name"]: t["movement"] for t in moved["threads"]}
        tap.case("compare: one thread moved, the deadlocked did not",
                 differences("listener", how.get("listener") in ("moved", "ended"), True)
                 + differences("writer", how.get("writer"), "still") + differences("status", result.returncode, DEADLOCKED))
        text = interlock("snapshot", "--compare", before, p.id).stdout
        tap.case("compare: with the process itself, as text",
                 [] if "s between the two" in text and "In the same wait" in text and "(writer)" in text else [text])
    with Program("busy") as p:
        result = interlock("snapshot", "--compare", before, p.id)
        tap.case("compare: two processes are refused", [] if result.returncode == 1 and "of process" in result.stderr else [result])


def moving(tap, folder):
    path = Path(folder) / "busy"
    problems = []
    with Program("busy", program=SHARED) as p:
        for _ in range(10):
            result = take(p.id, path)
            found = view("threads", path)
            problems += [result] if result.returncode != 0 else []
            problems += [found["inconsistent"]] if found["inconsistent"] else []
            problems += ["moving"] if any(t["moving"] for t in found["threads"]) else []
        tap.case("snapshot: of a process that does not hold still", problems)
        problems = differences("process", p.process.poll(), None)
        samples = interlock("top", "--json", "-n", "3", "-d", "0.2", p.id).stdout.splitlines()
        problems += [] if sum(json.loads(s)["waits"] for s in samples) > 0 else ["it stands still"]
        tap.case("snapshot: it goes on afterwards", problems)


def refusals(tap, folder):
    file = Path(folder) / "text"
    file.write_text("no core file", encoding="utf-8")
    for name, words, status, part in [
            ("no process", [], 2, "usage"), ("an unknown option", ["--fast", "1"], 2, "--fast"),
            ("too many words", ["1", "2", "3"], 2, "3"), ("a file", ["-o", f"{folder}/x", file], 1, "not a core file"),
            ("no such process", ["-o", f"{folder}/x", 2 ** 30], 1, "there is no process"),
            ("JSON of one", ["--json", "1"], 2, "usage")]:
        result = interlock("snapshot", *words)
        tap.case(f"snapshot: {name} is refused", [] if result.returncode == status and part in result.stderr else [result])
    with Program("orphan", program=STATIC) as p:
        result = interlock("snapshot", "-o", f"{folder}/no/such/folder", p.id)
        tap.case("snapshot: a file that cannot be written", [] if result.returncode == 1 and "cannot write" in result.stderr else [result])
        if os.path.exists("/dev/full"):
            result = interlock("snapshot", "-o", "/dev/full", p.id)
            tap.case("snapshot: a full disk", [] if result.returncode == 1 and "cannot write" in result.stderr else [result])
        with subprocess.Popen([INTERLOCK, "snapshot", str(p.id)], stdout=subprocess.PIPE) as command:
            written = command.stdout.read()
        tap.case("snapshot: to the standard output", [] if written[:4] == b"\x7fELF" and command.returncode == 0 else [written[:80]])


def main():
    tap = Tap()
    for cases in (views, comparisons, moving, refusals):
        with tempfile.TemporaryDirectory() as folder:
            try:
                cases(tap, folder)
            except (AssertionError, KeyError, StopIteration, IndexError, TypeError, ValueError, OSError,
                    subprocess.SubprocessError) as problem:
                tap.case(cases.__name__, [repr(problem)])
    tap.done()


main()
