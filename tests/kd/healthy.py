#!/usr/bin/env python3
"""A program whose threads never hold two locks, under every view: no view ever reports a deadlock or damage.

usage: healthy.py CHECKS INTERLOCK STATIC SHARED SECONDS [view] [sanitized]"""

import json
import re
import sys
import time

from kdtest import Program, Tap, View, interlock, until, view

SECONDS = float(sys.argv[5])
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


def names_of_locks(tap, p):
    """Elements of arrays and members have names, whichever of them are contended."""
    expected = r"kd-program!healthy_(sections\[[012]\]|srw\[[01]\]|pair\.(resource|push))"
    report = interlock("contention", "--json", "--seconds", "0.5", p.id).stderr
    names = {lock["name"] for lock in json.loads(report)["processes"][0]["locks"] if lock["name"]}
    tap.case("contention: locks in arrays and structures have names",
             [n for n in names if not re.fullmatch(expected, n)] + ([] if names else ["none was contended"]))


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
              "graph as text": text_view("graph"), "top": text_view("top", "-n", "4", "-d", "0.05"), "top as JSON": samples}
    if "view" in sys.argv[6:]:
        views["view"] = page
    with Program("healthy") as p:
        for name, take in views.items():
            watch(tap, name, take, p, SECONDS / len(views))
        names_of_locks(tap, p)
    # Two reads find the same waits, and still it is not a deadlock.
    with Program("handed-over") as p:
        until(lambda: view("locks", p.id)["locks"], lambda locks: len(locks[0]["waiters"]) == 2)
        tap.case("a lock was handed to a thread that has not run since: no alarm",
                 [alarm for name in ("deadlocks", "graph") for alarm in json_view(name)(p)])
    tap.done()


main()
