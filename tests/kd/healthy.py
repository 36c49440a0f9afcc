#!/usr/bin/env python3
"""A program whose threads never hold two locks, under every view: no view ever reports a deadlock or damage.

usage: healthy.py CHECKS INTERLOCK STATIC SHARED SECONDS [view] [sanitized]"""

import json
import re
import sys
import tempfile
import time

from kdtest import DEADLOCKED, Program, Tap, View, differences, interlock, until, view

SECONDS = float(sys.argv[5])
ROUNDS = 4
ALARMS = ("Deadlock:", "DEADLOCK", "deadlock over", "Probable deadlock", "Possible deadlock", "Orphaned", "orphaned lock",
          "*** inconsistent")


def alarms_of(found):
    """Every deadlock in a JSON answer, at any depth."""
    if isinstance(found, list):
        return [alarm for part in found for alarm in alarms_of(part)]
    if not isinstance(found, dict):
        return []
    damaged = found.get("inconsistent")
    if isinstance(damaged, list):
        damaged = [fault for fault in damaged if not fault["moving"]]
    alarms = [("inconsistent", damaged)] if damaged else []
    alarms += [(name, found[name]) for name in ("deadlocks", "possible_deadlocks", "deadlocked_threads", "deadlocked", "orphaned")
              if found.get(name)]
    return alarms + [alarm for part in found.values() for alarm in alarms_of(part)]


def json_view(name):
    return lambda p: alarms_of(view(name, p.id))


def text_view(*words):
    def take(p):
        text = interlock(*words, p.id).stdout
        return [text] if any(alarm in text for alarm in ALARMS) else []
    return take


def samples(p):
    lines = interlock("top", "--json", "-n", "4", "-d", "0.05", p.id).stdout.splitlines()
    return [alarm for line in lines for alarm in alarms_of(json.loads(line))]


def page(p):
    with View("--interval", "0.1", p.id) as v:
        return [alarm for _ in range(8) for alarm in alarms_of(v.api("graph"))]


def saved(p):
    """A snapshot in a file, and what the views make of that."""
    with tempfile.NamedTemporaryFile() as file:
        interlock("snapshot", "-o", file.name, p.id)
        return [alarm for name in ("deadlocks", "graph") for alarm in alarms_of(view(name, file.name))]


def explained(p):
    found = json.loads(interlock("explain", "--json", p.id).stdout)
    return alarms_of(found) + ([found["explanation"]] if found["cause"] != "none" else [])


def listed(p):
    lines = [line for line in interlock("ps").stdout.splitlines() if line.split()[:1] == [str(p.id)]]
    return [line for line in lines if "deadlock" in line or "inconsistent" in line] if lines else ["it is not listed"]


def names_of_locks(tap, p):
    """Elements of arrays and members by their names, whichever of them are contended at a time."""
    expected = r"kd-program!healthy_(turn|sections\[[012]\]|srw\[[01]\]|pair\.(resource|push))"
    report = interlock("contention", "--json", "--seconds", "0.5", p.id).stderr
    names = {lock["name"] for lock in json.loads(report)["processes"][0]["locks"] if lock["name"]}
    tap.case("contention: locks in arrays and structures have names",
             [n for n in names if not re.fullmatch(expected, n)] + ([] if names else ["none was contended"]))


def counts_of_sections(tap, p):
    """Critical sections count their waits, also without debug information."""
    def take():
        lines = interlock("top", "--json", "-n", "4", "-d", "0.2", p.id).stdout.splitlines()
        return sum(lock["contended"] for line in lines for lock in json.loads(line)["locks"]
                   if lock["kind"] == "critical_section")
    tap.case("top: critical sections count", [] if until(take, lambda count: count > 0) > 0 else ["none"])


def deadlock_among_others(tap):
    """A deadlock is found at once, whatever the other threads do; and of those, none is called deadlocked."""
    def wrong(found, p):
        chains = [sorted(link["thread"]["id"] for link in d["chain"]) for d in found["deadlocks"] if d["certain"]]
        return differences("deadlocks", (chains, len(found["deadlocks"])), ([sorted((p.alice, p.bob))], 1))
    with Program("busy-deadlock") as p:
        until(lambda: view("threads", p.id)["threads"], lambda threads: all(
            t["wait"]["blocks"][0]["waits_for"]["held"] == "exclusive" for t in threads if t["id"] in (p.alice, p.bob)))
        for name in ("deadlocks", "graph", "threads", "locks"):
            tap.case(f"{name}: a deadlock in a busy program is found each time",
                     [problem for _ in range(ROUNDS) for problem in wrong(view(name, p.id), p)][:3])
        tap.case("ps: likewise", [] if "deadlock" in "".join(
            line for line in interlock("ps").stdout.splitlines() if line.split()[:1] == [str(p.id)]) else ["it is not"])
        tap.case("deadlocks: the status is 3", differences("status", interlock("deadlocks", p.id).returncode, DEADLOCKED))


def watch(tap, name, take, p, seconds):
    end, taken, alarms = time.monotonic() + seconds, 0, []
    while not alarms and (taken == 0 or time.monotonic() < end):
        alarms = take(p)
        taken += 1
    tap.case(f"{name}: no alarm", alarms)


def main():
    tap = Tap()
    views = {name: json_view(name) for name in ("deadlocks", "threads", "locks", "graph")}
    views |= {"deadlocks as text": text_view("deadlocks"), "threads as text": text_view("threads"),
              "graph as text": text_view("graph"), "explain": explained, "ps": listed, "snapshot": saved, "top": text_view("top", "-n", "4", "-d", "0.05"), "top as JSON": samples}
    if "view" in sys.argv[6:]:
        views["view"] = page
    with Program("healthy") as p:
        for name, take in views.items():
            watch(tap, name, take, p, SECONDS / len(views))
        names_of_locks(tap, p)
        counts_of_sections(tap, p)
    deadlock_among_others(tap)
    # Two reads find the same, and still it is no deadlock.
    with Program("handed-over") as p:
        until(lambda: view("locks", p.id)["locks"], lambda locks: len(locks[0]["waiters"]) == 2)
        tap.case("a lock was handed to a thread that has not run since: no alarm",
                 [alarm for name in ("deadlocks", "graph") for alarm in json_view(name)(p)])
    tap.done()


main()
