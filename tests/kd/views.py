#!/usr/bin/env python3
"""The views of `interlock` are correct for programs that wait in known ways.

usage: views.py CHECKS INTERLOCK STATIC SHARED [sanitized]

A view is repeated until it shows the expected state, for some minutes: no case depends on how fast the
program gets there."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from kdtest import (INTERLOCK, PATIENCE, SANITIZED, SHARED, STATIC, Program, Tap, differences, interlock, number,
                    until, view)


def thread_of(threads, id):
    return next(t for t in threads["threads"] if t["id"] == id)


def waits_for(threads, id):
    """The kinds and addresses that a thread waits for."""
    wait = thread_of(threads, id)["wait"]
    return [(b["waits_for"]["kind"], number(b["waits_for"]["address"])) for b in wait["blocks"]] if wait else []


def chain(deadlock):
    return [(link["thread"]["id"], link["waits_for"]["kind"], number(link["waits_for"]["address"]), link["held_by"])
            for link in deadlock["chain"]]


def rotated(links, first):
    """A cycle begins anywhere."""
    at = next((i for i, link in enumerate(links) if link[0] == first), 0)
    return links[at:] + links[:at]


def take_deadlocks(program, expected_threads):
    return until(lambda: view("deadlocks", program.id),
                 lambda found: len(found["deadlocked_threads"]) == expected_threads)


def crossed_resources(tap, name, executable, target=None):
    with Program("resources", executable) as p:
        found = take_deadlocks(p, 3)
        if target:
            found = view("deadlocks", target(p))
        expected = [(p.alice, "resource", p.second, p.bob), (p.bob, "resource", p.first, p.alice)]
        problems = differences("deadlocks", len(found["deadlocks"]), 1)
        if found["deadlocks"]:
            problems += differences("chain", rotated(chain(found["deadlocks"][0]), p.alice), expected)
            problems += differences("certain", found["deadlocks"][0]["certain"], True)
        problems += differences("deadlocked", sorted(found["deadlocked_threads"]), sorted([p.alice, p.bob, p.carol]))
        tap.case(f"{name}: two resources, crossed, and a third thread behind them", problems)
        return p


def resources(tap):
    crossed_resources(tap, "static", STATIC)
    crossed_resources(tap, "shared", SHARED)
    with tempfile.TemporaryDirectory() as folder:
        stripped = Path(folder) / "program"
        subprocess.run(["strip", "-o", stripped, STATIC], check=True)
        crossed_resources(tap, "static and stripped", stripped)
    with Program("resources") as p:
        take_deadlocks(p, 3)
        locks = {number(lock["address"]): lock for lock in view("locks", p.id)["locks"]}
        second = locks[p.second]
        problems = differences("owners", [(o["id"], o["count"]) for o in second["owners"]], [(p.bob, 1)])
        problems += differences("held", second["held"], "exclusive")
        problems += differences("contention", second["contention_count"], 2)
        problems += differences("waiters", {(w["id"], w["exclusive"]) for w in second["waiters"]},
                                {(p.alice, True), (p.carol, False)})
        tap.case("locks: owners, waiters and contention of a resource", problems)
        one = view("locks", p.id, hex(p.second))
        tap.case("locks: one by its address", differences("lock", one, second))
        threads = view("threads", p.id)
        alice = thread_of(threads, p.alice)
        problems = differences("name", alice["name"], "alice") + differences("state", alice["state"], "Waiting")
        problems += differences("reason", alice["wait"]["reason"], "WrResource")
        problems += differences("mode", alice["wait"]["mode"], "KernelMode")
        problems += differences("alertable", alice["wait"]["alertable"], False)
        problems += differences("wait state", alice["wait"]["state"], "WaitCommitted")
        problems += differences("block", (alice["wait"]["blocks"][0]["wait_type"],
                                          alice["wait"]["blocks"][0]["object_type"]),
                                ("WaitAny", "SynchronizationEvent"))
        problems += differences("owns", [number(o["address"]) for o in alice["owns"]], [p.first])
        problems += differences("priority", (alice["base_priority"], alice["priority"] >= 8), (8, True))
        tap.case("threads: a thread that waits for a resource", problems)
        stacks = view("threads", p.id, "--stack")
        symbols = [f["symbol"] for f in thread_of(stacks, p.alice)["stack"]]
        tap.case("threads --stack: the way to the wait", [] if any("resource_alice" in s for s in symbols) else symbols)
        text = interlock("threads", p.id, p.alice).stdout
        tap.case("threads: the wait register, the level and the blocks of a wait",
                 [] if "WaitRegister.State WaitCommitted  WaitIrql 0  WaitBlockCount 1\n" in text else [text])
        origin(tap, p)
        text = interlock("threads", p.id).stdout
        tap.case("threads: deadlocks come first", [] if text.startswith("Deadlock: these threads") else [text])
        listed = {q["process_id"]: q for q in view("ps")["processes"]}
        tap.case("ps: lists the process", [] if listed.get(p.id, {}).get("deadlocks") == 1 else [listed])


def origin(tap, p):
    """Times, start and stack of the threads of a lock, as !locks -v has them."""
    # the host has no stack pointer for a running thread, such as a waiter that boosts the owner for a moment
    for _ in range(200):
        alice = view("threads", p.id, p.alice)["threads"][0]
        if number(alice["stack_pointer"]) != 0:
            break
        time.sleep(0.1)
    problems = [] if alice["start_symbol"].endswith("!resource_alice") else [alice["start_symbol"]]
    problems += [] if alice["user_time"] >= 0 and alice["kernel_time"] >= 0 else [alice]
    limits = [number(alice[name]) for name in ("stack_limit", "stack_pointer", "stack_base")]
    problems += [] if limits == sorted(limits) and limits[0] > 0 else [limits]
    for _ in range(200):
        text = interlock("locks", "-v", p.id).stdout
        if "Stack Current" in text:
            break
        time.sleep(0.1)
    for part in (r"UserTime +00:00:0\d\.\d{3}\n", r"KernelTime +00:00:0\d\.\d{3}\n",
                 r"Win32 Start Address \S+!resource_alice \(0x[0-9a-f]{16}\)\n",
                 r"Stack Current [0-9a-f]{16} Base [0-9a-f]{16} Limit [0-9a-f]{16}\n"):
        problems += [] if re.search(part, text) else [f"{part} is not in {text}"]
    text = interlock("locks", p.id).stdout
    problems += [text] if "Win32 Start Address" in text else []
    tap.case("locks -v: times, start address and stack of each thread", problems)


def core_file(tap):
    name = "core file: two resources, crossed, and a third thread behind them"
    if SANITIZED or not shutil.which("gcore"):
        print(f"ok {tap.count + 1} - {name} # SKIP gcore is missing, or this is a sanitizer's build")
        tap.count += 1
        return
    with tempfile.TemporaryDirectory() as folder:
        def dump(p):
            subprocess.run(["gcore", "-o", f"{folder}/core", str(p.id)], check=True, capture_output=True,
                           timeout=2 * PATIENCE)
            return f"{folder}/core.{p.id}"

        p = crossed_resources(tap, "core file", SHARED, dump)
        core = f"{folder}/core.{p.id}"
        threads = view("threads", core, "--stack")
        alice = thread_of(threads, p.alice)
        problems = differences("name", alice["name"], "alice") + differences("seconds", alice["wait"]["seconds"], None)
        problems += differences("owner", waits_for(threads, p.alice), [("resource", p.second)])
        if not any("resource_alice" in f["symbol"] for f in alice["stack"]):
            problems.append(alice["stack"])
        tap.case("core file: threads with their names and stacks", problems)
        types = {h["type"] for h in view("handles", core)["handles"]}
        tap.case("core file: types of objects", [] if {"Event", "Thread"} <= types else [types])


def srw_locks(tap):
    with Program("srw") as p:
        found = until(lambda: view("deadlocks", p.id), lambda d: d["possible_deadlocks"])
        problems = differences("certain ones", found["deadlocks"], [])
        for possible in found["possible_deadlocks"]:
            problems += differences("lock", (possible["lock"]["kind"], number(possible["lock"]["address"])),
                                    ("srw_lock", p.srw))
            problems += differences("waiters", [w["id"] for w in possible["lock"]["waiters"]], [p.bob])
            problems += differences("suspects", [s["id"] for s in possible["suspects"]], [p.alice])
        problems += differences("possible ones", len(found["possible_deadlocks"]), 1)
        tap.case("an SRW lock against a critical section: possible", problems)
        threads = view("threads", p.id)
        tap.case("threads: waits for an SRW lock and a critical section",
                 differences("alice", waits_for(threads, p.alice), [("critical_section", p.section)]) +
                 differences("bob", waits_for(threads, p.bob), [("srw_lock", p.srw)]))
    with Program("contended-srw") as p:
        found = take_deadlocks(p, 2)
        expected = [(p.alice, "critical_section", p.section, p.bob), (p.bob, "srw_lock", p.srw, p.alice)]
        problems = differences("deadlocks", [rotated(chain(d), p.alice) for d in found["deadlocks"]], [expected])
        problems += differences("certain", [d["certain"] for d in found["deadlocks"]], [False])
        tap.case("an SRW lock that was waited for against a critical section: probable", problems)


def names_of_threads(tap):
    """Without a description: the start routine, unless the host knows the thread's own name."""
    with Program("nameless") as p:
        threads = {t["id"]: t["name"] for t in view("threads", p.id)["threads"]}
        tap.case("threads: a thread without a description has the name of its start routine",
                 differences("name", threads[p.nameless], "wait_without_name")
                 + differences("set by the host", threads[p.named_by_host], "by the host")
                 + differences("main", threads[p.id], "kd-program"))


def mutants(tap):
    with Program("wait-all") as p:
        found = take_deadlocks(p, 2)
        handles = {number(h["handle"]): number(h["object"]) for h in view("handles", p.id)["handles"]}
        expected = [(p.alice, "mutant", handles[p.m1], p.bob), (p.bob, "mutant", handles[p.m0], p.alice)]
        tap.case("a WaitAll cycle", differences("deadlocks", [rotated(chain(d), p.alice) for d in found["deadlocks"]],
                                                [expected]))
        threads = view("threads", p.id)
        blocks = thread_of(threads, p.alice)["wait"]["blocks"]
        tap.case("threads: every block of a WaitAll",
                 differences("blocks", [(b["wait_type"], b["block_state"], number(b["object"]), b["wait_key"])
                                        for b in blocks],
                             [("WaitAll", "WaitBlockActive", handles[p.m1], 0),
                              ("WaitAll", "WaitBlockActive", handles[p.m2], 1)]))
    with Program("wait-any") as p:
        threads = until(lambda: view("threads", p.id),
                        lambda t: len(waits_for(t, p.alice)) == 2 and len(waits_for(t, p.bob)) == 1 and
                        waits_for(t, p.bob)[0][0] == "mutant")
        problems = differences("waits", [k for k, _ in waits_for(threads, p.alice)], ["mutant", "event"])
        problems += differences("deadlocks", threads["deadlocks"], [])
        tap.case("a WaitAny that an event may still end is no deadlock", problems)
    with Program("sleeping-owner") as p:
        threads = until(lambda: view("threads", p.id),
                        lambda t: waits_for(t, p.waiter)[0][0] == "mutant" and thread_of(t, p.sleeper)["wait"])
        sleeper, waiter = thread_of(threads, p.sleeper), thread_of(threads, p.waiter)
        problems = differences("reason", sleeper["wait"]["reason"], "DelayExecution")
        problems += differences("owns", [o["name"] for o in sleeper["owns"]], ["\\BaseNamedObjects\\m0"])
        problems += differences("alertable", waiter["wait"]["alertable"], True)
        problems += differences("mode", waiter["wait"]["mode"], "UserMode")
        owners = waiter["wait"]["blocks"][0]["waits_for"]["owners"]
        problems += differences("owner", [(o["id"], o["count"]) for o in owners], [(p.sleeper, 2)])
        if not 0 < waiter["wait"]["timeout_in"] <= 3600:
            problems.append(waiter["wait"])
        problems += differences("deadlocks", threads["deadlocks"], [])
        tap.case("a mutant of a thread that sleeps", problems)


def other_deadlocks(tap):
    with Program("orphan") as p:
        found = take_deadlocks(p, 1)
        problems = differences("chains", [chain(d) for d in found["deadlocks"]],
                               [[(p.waiter, "critical_section", p.section, p.dead)]])
        problems += differences("orphaned", [d["orphaned"] for d in found["deadlocks"]], [True])
        tap.case("a critical section of a thread that has ended", problems)
    with Program("orphan-behind") as p:
        found = take_deadlocks(p, 2)
        problems = differences("orphaned", [d["orphaned"] for d in found["deadlocks"]], [True])
        states = {t["id"]: (t["deadlocked"], t["orphaned"]) for t in view("threads", p.id)["threads"]}
        problems += differences("threads", [states[t] for t in (p.waiter, p.behind)], [(True, True)] * 2)
        for name, wanted in (("deadlocks", "Orphaned lock: its owner has ended"), ("threads", " *** ORPHANED LOCK"),
                             ("graph", "*** behind an orphaned lock")):
            text = interlock(name, p.id).stdout
            problems += [text] if wanted not in text or "deadlock" in text.lower() else []
        listed = [line for line in interlock("ps").stdout.splitlines() if line.split()[:1] == [str(p.id)]]
        problems += [] if len(listed) == 1 and listed[0].endswith("orphaned lock") else [listed]
        tap.case("waits behind a lock whose owner has ended are no deadlock", problems)
    with Program("orphan", INTERLOCK_FORCE_CS_EVENTS="1") as p:
        found = take_deadlocks(p, 1)
        problems = differences("chains", [chain(d) for d in found["deadlocks"]],
                               [[(p.waiter, "critical_section", p.section, p.dead)]])
        block = thread_of(view("threads", p.id), p.waiter)["wait"]["blocks"][0]
        problems += differences("object", block["object_type"], "SynchronizationEvent")
        tap.case("a critical section whose waiters wait for an event", problems)
    with Program("without-main") as p:
        found = take_deadlocks(p, 1)
        problems = differences("orphaned", [d["orphaned"] for d in found["deadlocks"]], [True])
        alice = thread_of(view("threads", p.id, "--stack"), p.alice)
        problems += [] if any("!enter" in f["symbol"] for f in alice["stack"]) else [alice]
        tap.case("a process whose main thread has ended", problems)
    with Program("rtl-resource") as p:
        found = take_deadlocks(p, 2)
        expected = [(p.alice, "rtl_resource", p.resource, p.bob), (p.bob, "critical_section", p.section, p.alice)]
        tap.case("a resource of user mode against a critical section",
                 differences("chains", [rotated(chain(d), p.alice) for d in found["deadlocks"]], [expected]))
    with Program("join") as p:
        found = take_deadlocks(p, 2)
        cycles = [rotated(chain(d), p.parent) for d in found["deadlocks"]]
        expected = [(p.parent, "thread", p.child), (p.child, "critical_section", p.parent)]
        tap.case("the end of a thread against a critical section",
                 differences("chain", [[(a, b, d) for a, b, _, d in c] for c in cycles], [expected]))
    with Program("kernel-locks") as p:
        locks = until(lambda: view("locks", p.id), lambda found: len(found["locks"]) == 3)
        by_kind = {lock["kind"]: lock for lock in locks["locks"]}
        problems = []
        for kind, address, owner, waiter, exclusive in [("push_lock", p.push, None, p.carol, False),
                                                        ("fast_mutex", p.fast, p.bob, p.alice, True),
                                                        ("guarded_mutex", p.guarded, p.carol, p.bob, True)]:
            lock = by_kind.get(kind)
            if lock is None:
                problems.append(f"no {kind}")
                continue
            problems += differences(f"{kind}", (number(lock["address"]), [o["id"] for o in lock["owners"]],
                                                [(w["id"], w["exclusive"]) for w in lock["waiters"]]),
                                    (address, [owner] if owner else [], [(waiter, exclusive)]))
        problems += differences("suspects", [sorted(s["id"] for s in d["suspects"])
                                             for d in locks["possible_deadlocks"]], [sorted([p.alice, p.bob])])
        tap.case("a pushlock, a fast mutex and a guarded mutex", problems)


def processors(tap):
    with Program("dpc") as p:
        found = until(lambda: view("dpcs", p.id), lambda d: d["processors"][1]["normal"]["depth"] == 1)
        first = found["processors"][1]
        problems = differences("active", number(first["normal"]["active"]["address"]), p.active)
        problems += differences("queued", [(number(d["address"]), d["importance"]) for d in first["normal"]["queued"]],
                                [(p.queued, "Low")])
        problems += differences("routine active", first["dpc_routine_active"], True)
        if not first["normal"]["active"]["symbol"].endswith("!spin"):
            problems.append(first["normal"]["active"])
        if not first["owner"]:
            problems.append("nobody owns the processor")
        problems += differences("idle", found["processors"][3]["normal"]["active"], None)
        tap.case("dpcs: a DPC that blocks its processor, and the one behind it", problems)
    with Program("queued-locks") as p:
        found = until(lambda: view("qlocks", p.id), lambda q: len(q["locks"][4]["queue"]) == 2 and
                      {e["state"] for e in q["locks"][4]["queue"]} == {"O", "1"})
        tap.case("qlocks: owner and waiter of a numbered lock",
                 differences("queue", {e["state"]: e["id"] for e in found["locks"][4]["queue"]},
                             {"O": p.owner, "1": p.waiter}) +
                 differences("others", [n["queue"] for n in found["locks"] if n["number"] != 4], [[]] * 16))


def zoo(tap):
    with Program("zoo") as p:
        expected = {
            "condition-waiter": ("WrAlertByThreadId", "condition_variable", p.condition),
            "address-waiter": ("WrAlertByThreadId", "address", p.address),
            "queue-waiter": ("WrQueue", "queue", p.queue),
            "keyed-waiter": ("WrKeyedEvent", "keyed_event", p.address),
        }
        threads = until(lambda: view("threads", p.id),
                        lambda t: all(waits_for(t, p.facts[n]) for n in [*expected, "semaphore-waiter", "suspended"]))
        for name, (reason, kind, address) in expected.items():
            wait = thread_of(threads, p.facts[name])["wait"]
            found = (wait["reason"], *waits_for(threads, p.facts[name]))
            tap.case(f"threads: {name}", differences("wait", found, (reason, (kind, address))))
        thread = thread_of(threads, p.suspended)
        found = (thread["suspend_count"], thread["wait"]["reason"])
        tap.case("threads: a suspended one", differences("suspension", found, (1, "Suspended")))
        timers = view("timers", p.id)
        timer = next((t for t in timers["timers"] if number(t["address"]) == p.timer), None)
        problems = [timers] if timer is None else differences(
            "timer", (timer["type"], timer["period"], timer["absolute"]), ("SynchronizationTimer", 1.0, False))
        if timer and not (3000 < timer["due_in"] <= 3600 and timer["dpc_routine"].endswith("!never_runs")):
            problems.append(timer)
        tap.case("timers: one that is set", problems)
        objects(tap, p)


def shared_bucket(tap):
    with Program("shared-bucket") as p:
        expected = {f"{name}-{i}": [(kind, p.condition)]
                    for name, kind in (("sleeper", "condition_variable"), ("watcher", "address")) for i in range(3)}

        def found(threads):
            return {name: waits_for(threads, p.facts[name]) for name in expected}

        threads = until(lambda: view("threads", p.id), lambda t: found(t) == expected)
        tap.case("threads: three waiters for a condition variable and three on its address, in one bucket of the hash",
                 differences("waits", found(threads), expected) +
                 differences("inconsistent", threads.get("inconsistent", []), []))


def objects(tap, p):
    handles = {number(h["handle"]): h for h in view("handles", p.id)["handles"]}
    problems = differences("semaphore", (handles[p.semaphore]["type"], handles[p.semaphore]["name"]),
                           ("Semaphore", "\\BaseNamedObjects\\limited"))
    problems += differences("thread", sum(h["type"] == "Thread" for h in handles.values()), 6)
    tap.case("handles: types and names", problems)
    by_name = view("object", p.id, "limited")
    tap.case("object: by name, by handle and by address are the same",
             differences("handle", view("object", p.id, hex(p.semaphore)), by_name) +
             differences("address", view("object", p.id, by_name["address"]), by_name))
    tap.case("object: a semaphore with its waiter",
             differences("object", (by_name["type"], by_name["signal_state"], by_name["members"],
                                    [(w["id"], w["wait_type"]) for w in by_name["waiters"]]),
                         ("Semaphore", 0, {"Limit": 7}, [(p.facts["semaphore-waiter"], "WaitAny")])))
    text = interlock("object", p.id, "limited").stdout
    lines = dict(re.findall(r"^    (\w+) +: (\S+)", text, re.MULTILINE))
    tap.case("object: the type is that of Windows, the bit of the waiters is apart",
             differences("lines", (lines.get("Type"), lines.get("WaitersBit"), by_name["waiters_bit"]),
                         ("0x5", "0x1", True)))
    event = view("object", p.id, "set")
    found = (event["type"], event["signal_state"], event["flags"])
    tap.case("object: an event that is set",
             differences("event", found, ("NotificationEvent", 1, {"Signalling": 0, "Size": 6})))
    timer = view("object", p.id, hex(p.timer))
    problems = differences("flags", sorted(timer["flags"]), sorted(["Absolute", "Wake", "EncodedTolerableDelay", "Hand",
                                                                    "Index", "Inserted", "Expired"]))
    problems += differences("inserted", timer["flags"]["Inserted"], 1)
    problems += differences("period", timer["members"]["Period"], 1000)
    tap.case("object: the flags of a timer are those of table 8-29", problems)
    thread = view("object", p.id, hex(next(handle for handle, h in handles.items() if h["type"] == "Thread")))
    tap.case("object: the flags of a thread are those of table 8-29, and nobody has set one",
             differences("flags", thread["flags"], dict.fromkeys(
                 ["CycleProfiling", "CounterProfiling", "GroupScheduling", "AffinitySet", "Tagged", "EnergyProfiling",
                  "SchedulerAssist", "ActiveDR7", "Instrumented", "Minimal", "AltSyscall", "UmsScheduled",
                  "UmsPrimary"], 0)))
    for name, what in [("a name that nobody has", "nothing"), ("memory that is not there", "0x7ffff000"),
                       ("an odd address", hex(p.section + 1)), ("a lock", hex(p.section))]:
        result = interlock("object", p.id, what)
        tap.case(f"object: {name} is refused",
                 [] if result.returncode == 1 and result.stderr.startswith("interlock: ") else [result])


def moving(tap):
    with Program("busy") as p:
        problems = []
        for _ in range(20):
            for name in ("threads", "locks", "handles", "timers", "deadlocks"):
                found = view(name, p.id)
                if found.get("deadlocks"):
                    problems.append(found["deadlocks"])
        tap.case("a process that goes on: every view is whole, and there is no deadlock", problems)
        tap.case("it still runs", [] if p.process.poll() is None else ["it has ended"])


def innocent(tap):
    """A thread that waits behind a waiter of an SRW lock has never touched the lock, and is not reported as its holder."""
    with Program("innocent") as p:
        found = until(lambda: view("deadlocks", p.id), lambda d: d["possible_deadlocks"])
        threads = view("threads", p.id)
        possible = found["possible_deadlocks"]
        problems = differences("certain", (found["deadlocks"], found["deadlocked_threads"]), ([], []))
        problems += differences("possible", [(number(d["lock"]["address"]), d["lock"]["owners"], [w["id"] for w in d["lock"]["waiters"]],
                                              [s["id"] for s in d["suspects"]]) for d in possible], [(p.srw, [], [p.bob], [p.carol])])
        problems += differences("deadlocked", [t["id"] for t in threads["threads"] if t["deadlocked"] or t["orphaned"]], [])
        problems += differences("owns", thread_of(threads, p.carol)["owns"], [])
        result = interlock("deadlocks", p.id)
        text = result.stdout
        problems += differences("status", result.returncode, 0)
        if not re.search(rf"only if one of the threads that wait for these holds it, which is not known: thread {p.carol} \(carol\)\n", text) \
                or "held by" in text or re.search(r"^(Deadlock|Probable)", text, re.M):
            problems.append(text)
        edges = [e for e in view("graph", p.id)["edges"] if e["cycle"] is not None and e["cycle"] >= 0]
        problems += differences("cycles in the graph", edges, [])
        tap.case("a thread that never touched an SRW lock: possible at most, and no thread is deadlocked", problems)
        p.start()
        after = until(lambda: view("deadlocks", p.id), lambda d: not d["possible_deadlocks"])
        tap.case("and nothing is possible any more when the owner has released it",
                 differences("possible", after["possible_deadlocks"], []))


def many_objects(tap):
    """Waits for 100 and 1,000 objects: threads, deadlocks, the graph, and a snapshot of them."""
    with Program("many") as p, tempfile.TemporaryDirectory() as folder:
        expected = {p.alice: (100, "WaitAny", False), p.dave: (1000, "WaitAny", False), p.bob: (1000, "WaitAll", True),
                    p.carol: (1, "WaitAny", True), p.erin: (1000, "WaitAny", False)}

        def shape(target):
            return {t["id"]: (len(t["wait"]["blocks"]), t["wait"]["blocks"][0]["wait_type"], t["deadlocked"])
                    for t in view("threads", target)["threads"] if t.get("wait") and t["wait"]["blocks"]}
        until(lambda: shape(p.id), lambda found: found == expected)
        taken = f"{folder}/snapshot"
        interlock("snapshot", "-o", taken, p.id)
        for what, target in (("the process", p.id), ("a snapshot", taken)):
            problems = differences("waits", shape(target), expected)
            threads = view("threads", target)
            counts = {t["id"]: t["wait"]["block_count"] for t in threads["threads"] if t["id"] in expected}
            problems += differences("counts", counts, {i: n for i, (n, _, _) in expected.items()})
            dave = thread_of(threads, p.dave)["wait"]["blocks"]
            problems += differences("objects", [number(b["object"]) for b in dave], [p.bare + 24 * i for i in range(1000)])
            problems += differences("names", dave[999]["waits_for"]["name"].split("!")[-1], "bare_events[999]")
            bob = thread_of(threads, p.bob)["wait"]["blocks"]
            problems += differences("the mutant among them", [(i, [o["id"] for o in b["waits_for"]["owners"]]) for i, b in enumerate(bob)
                                                              if b["waits_for"]["owners"]], [(500, [p.carol])])
            problems += differences("inconsistent", threads["inconsistent"], [])
            tap.case(f"many objects: threads of {what}", problems)
            found = view("deadlocks", target)
            cycle = [{(link["thread"]["id"], link["held_by"]) for link in d["chain"]} for d in found["deadlocks"] if d["certain"]]
            tap.case(f"many objects: a deadlock through one of a thousand, in {what}",
                     differences("cycle", cycle, [{(p.bob, p.carol), (p.carol, p.bob)}])
                     + differences("stuck", sorted(found["deadlocked_threads"]), sorted([p.bob, p.carol]))
                     + differences("possible", found["possible_deadlocks"], []))
            graph = view("graph", target)
            tap.case(f"many objects: the graph of {what}",
                     differences("blocks", len(graph["blocks"]), 3101)
                     + differences("red", sorted(t["thread"] for t in graph["threads"] if t["cycle"] is not None and t["cycle"] >= 0),
                                   sorted([p.bob, p.carol])))
            text = interlock("threads", target).stdout
            problems = [] if text.count("\n") < 150 else [f"{text.count(chr(10))} lines"]
            problems += differences("left out", sorted(map(int, re.findall(r"and (\d+) objects without an owner", text))),
                                    [92, 991, 991, 992])
            problems += [] if re.search(rf"mutant \S+ \(.*of-carol\), owned by {p.carol}", text) else [text]
            whole = interlock("threads", target, p.dave).stdout
            problems += differences("all of one thread", whole.count("NotificationEvent"), 1000)
            text = interlock("graph", target).stdout
            problems += [] if text.count("\n") < 150 and "without an owner" in text else [text[:1000]]
            tap.case(f"many objects: text of {what} has what matters", problems)


def pool_rows(target):
    found = view("pool", target)
    return {(t["tag"], t["paged"]): (t["allocations"], t["frees"], t["blocks"], t["bytes"]) for t in found["tags"]}


POOL = {("Devo", False): (4, 2, 2, 200), ("Devo", True): (6, 3, 3, 300), ("Irp ", False): (1, 0, 1, 5000),
        ("mdf.", True): (1, 1, 0, 0)}


def pool_of_file(tap):
    """A snapshot and a core file show the rows of the process."""
    with Program("pool", SHARED) as p, tempfile.TemporaryDirectory() as folder:
        live = pool_rows(p.id)
        interlock("snapshot", "-o", f"{folder}/snapshot", p.id)
        targets = [f"{folder}/snapshot"]
        if not SANITIZED and shutil.which("gcore"):
            subprocess.run(["gcore", "-o", f"{folder}/core", str(p.id)], check=True, capture_output=True, timeout=2 * PATIENCE)
            targets.append(f"{folder}/core.{p.id}")
        for target in targets:
            rows = pool_rows(target)
            tap.case(f"pool memory by tag, of {os.path.basename(target).split('.')[0]}",
                     differences("mine", {key: value for key, value in rows.items() if key in POOL}, POOL)
                     + differences("all", rows, live))


def pool(tap):
    for executable in (STATIC, SHARED):
        with Program("pool", executable) as p:
            found = view("pool", p.id)
            rows = pool_rows(p.id)
            expected = POOL
            problems = differences("rows", {key: value for key, value in rows.items() if key in expected}, expected)
            mine = [(t["tag"], t["paged"]) for t in found["tags"] if (t["tag"], t["paged"]) in expected]
            problems += differences("by bytes", mine, [("Irp ", False), ("Devo", True), ("Devo", False), ("mdf.", True)])
            by_tag = [t["tag"] for t in view("pool", p.id, "tag")["tags"]]
            problems += differences("by tag", by_tag, sorted(by_tag))
            allocations = [t["allocations"] for t in view("pool", p.id, "allocs")["tags"]]
            problems += differences("by allocations", allocations, sorted(allocations, reverse=True))
            text = interlock("pool", p.id).stdout
            problems += [] if re.search(r"^ Irp  Nonp +1 +0 +1 +5000 +5000", text, re.M) else [text]
            tap.case("pool memory by tag", problems)
            refused = interlock("pool", p.id, "size")
            tap.case("pool memory by something else", [] if refused.returncode == 2 and "sorted by" in refused.stderr else [refused])


def refusals(tap):
    def refused(name, result, part, status=1):
        said = result.stderr.startswith(("interlock: ", "usage: ")) and part in result.stderr
        tap.case(f"refused: {name}", [] if result.returncode == status and said and not result.stdout else [result])

    with subprocess.Popen(["sleep", "1000"]) as other:
        refused("a process without Interlock", interlock("threads", other.pid), "does not use Interlock")
        other.kill()
    refused("no such process", interlock("threads", 2 ** 30), "there is no process")
    refused("no such file", interlock("locks", "/nonexistent"), "neither a process id nor a file")
    refused("not a core file", interlock("locks", STATIC), "is not a core file")
    refused("no target", interlock("threads"), "usage: ", 2)
    refused("an unknown option", interlock("threads", "--loud", "1"), "usage: ", 2)
    refused("too many words", interlock("threads", "1", "2", "3"), "usage: ", 2)
    for scenario, part in [("other-version", "uses Interlock 9.9.9"), ("other-layout", "another build"),
                           ("not-ready", "has not started")]:
        with Program(scenario) as p:
            refused(scenario, interlock("threads", p.id), part)
    with Program("zoo") as p:
        refused("not a lock", interlock("locks", p.id, hex(p.queue)), "is not a lock")
        refused("not an address", interlock("locks", p.id, "lock"), "is not an address")
        if os.geteuid() == 0:
            with tempfile.TemporaryDirectory() as folder:
                os.chmod(folder, 0o755)
                copy = shutil.copy(INTERLOCK, folder)
                result = subprocess.run([copy, "threads", str(p.id)], user=65534, group=65534, capture_output=True,
                                        text=True, check=False)
            refused("somebody else's process", result, "as root")
        if p.process.poll() is not None:
            tap.case("the program has not suffered", ["it has ended"])


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    tap = Tap()
    for cases in (resources, core_file, srw_locks, mutants, names_of_threads, other_deadlocks, processors, zoo, shared_bucket, pool, pool_of_file, innocent,
                  many_objects, moving, refusals):
        try:
            cases(tap)
        except (AssertionError, KeyError, StopIteration, IndexError, TypeError, OSError,
                subprocess.SubprocessError) as problem:
            tap.case(cases.__name__, [repr(problem)])
    tap.done()


main()
