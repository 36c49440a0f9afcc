#!/usr/bin/env python3
"""The views follow shared objects into other processes, and find deadlocks between them.

usage: session.py CHECKS INTERLOCK STATIC SHARED WORLDS [sanitized]"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kdtest import (PATIENCE, SANITIZED, SHARED, STATIC, Program, Tap, differences, interlock, new_session, number, until, view)

WORLDS = os.path.abspath(sys.argv[5])


@contextlib.contextmanager
def ring(scenes, program=STATIC, **settings):
    """A chain of processes: each owns its mutex, and waits for that of the next."""
    session = new_session()
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(Program(scene, program, INTERLOCK_SESSION=session, KD_OWN=f"m{i}",
                                                KD_WANT=f"m{(i + 1) % len(scenes)}", **settings))
                    for i, scene in enumerate(scenes)]
        yield session, programs
    remove(session)


def remove(session):
    """Its processes were killed, and the world waits for the next one."""
    for folder in {os.environ.get("XDG_RUNTIME_DIR"), "/dev/shm"}:
        for path in Path(folder).glob(f"interlock*-{session}") if folder else []:
            path.unlink(missing_ok=True)


def session_view(session):
    result = interlock("session", "--json", session)
    return result.returncode, json.loads(result.stdout)["worlds"]


def chain(deadlock, of=None):
    """(process, thread, what it waits for, held by process, thread), seen from the process `of`."""
    return [(link["thread"]["process_id"] or of, link["thread"]["id"], link["waits_for"]["kind"],
             (link["waits_for"]["name"] or "").rsplit("\\", 1)[-1], link["held_by_process"] or of, link["held_by"])
            for link in deadlock["chain"]]


def rotated(links, first):
    at = next((i for i, link in enumerate(links) if link[:2] == first), 0)
    return links[at:] + links[:at]


def check_cycle(what, deadlocks, expected, of=None):
    problems = differences(f"{what}: deadlocks", len(deadlocks), 1)
    if deadlocks:
        problems += differences(what, rotated(chain(deadlocks[0], of), expected[0][:2]), expected)
        problems += differences(f"{what}: certain", deadlocks[0]["certain"], True)
    return problems


def pure_cycle(tap, count, program=STATIC):
    with ring(["shared-lock"] * count, program) as (session, programs):
        problems = []
        for p in programs:
            problems += differences("too early", view("deadlocks", p.id)["deadlocks"], [])
        for p in programs:
            p.start()
        following = programs[1:] + programs[:1]
        expected = [(p.id, p.owner, "mutant", f"m{(i + 1) % count}", n.id, n.owner)
                    for i, (p, n) in enumerate(zip(programs, following))]
        status, worlds = until(lambda: session_view(session), lambda found: found[0] == 3)
        problems += differences("status", status, 3)
        problems += check_cycle("session", worlds[0]["deadlocks"], expected)
        for i, p in enumerate(programs):
            found = view("deadlocks", p.id)
            problems += check_cycle(f"deadlocks of {i}", found["deadlocks"], expected[i:] + expected[:i], p.id)
            problems += differences("own threads", found["deadlocked_threads"], [p.owner])
        tap.case(f"{count} processes, each waits for the next{' (shared library)' if program == SHARED else ''}", problems)
        return problems


def mixed_cycle(tap):
    with ring(["shared-lock", "shared-mixed"]) as (session, (p, q)):
        p.start()
        q.start()
        expected = [(p.id, p.owner, "mutant", "m1", q.id, q.owner), (q.id, q.owner, "critical_section", None, q.id, q.inner),
                    (q.id, q.inner, "mutant", "m0", p.id, p.owner)]

        def same(deadlocks, of=None):
            problems = differences("deadlocks", len(deadlocks), 1)
            if deadlocks:
                links = [link[:3] + (None if link[2] == "critical_section" else link[3],) + link[4:]
                         for link in rotated(chain(deadlocks[0], of), expected[0][:2])]
                problems += differences("links", links, expected)
                problems += differences("certain", deadlocks[0]["certain"], True)
            return problems

        status, worlds = until(lambda: session_view(session), lambda found: found[0] == 3)
        problems = differences("status", status, 3) + same(worlds[0]["deadlocks"])
        for program in (p, q):
            found = view("deadlocks", program.id)
            problems += same(found["deadlocks"], program.id)
        section = [number(link["waits_for"]["address"]) for link in view("deadlocks", p.id)["deadlocks"][0]["chain"]
                   if link["waits_for"]["kind"] == "critical_section"]
        problems += differences("section", section, [q.section])
        text = interlock("deadlocks", p.id).stdout
        for part in (f"thread {q.owner} of process {q.id} (kd-program)", f"of process {q.id}\n"):
            problems += [] if part in text else [f"{part!r} is not in {text}"]
        tap.case("a cycle through a critical section of another process", problems)


def views_of_pair(tap):
    with ring(["shared-lock", "shared-lock"]) as (session, (p, q)):
        p.start()

        def taken():
            return view("locks", p.id)

        def lock_named(found, name):
            return next(lock for lock in found["locks"] if (lock["name"] or "").endswith("\\" + name))

        found = until(taken, lambda f: lock_named(f, "m1")["waiters"])
        m0, m1 = lock_named(found, "m0"), lock_named(found, "m1")
        problems = differences("no deadlock", found["deadlocks"], [])
        problems += differences("name", m1["name"], "\\BaseNamedObjects\\m1")
        problems += differences("owner", [(o["id"], o["process_id"]) for o in m1["owners"]], [(q.owner, q.id)])
        problems += differences("waiters", [(w["id"], w["process_id"]) for w in m1["waiters"]], [(p.owner, None)])
        problems += differences("own", [(o["id"], o["process_id"]) for o in m0["owners"]], [(p.owner, None)])
        problems += differences("held", (m0["held"], m1["held"]), ("exclusive", "exclusive"))
        other = view("locks", q.id)
        problems += differences("waiter from outside", [(w["id"], w["process_id"]) for w in lock_named(other, "m1")["waiters"]],
                                [(p.owner, p.id)])
        problems += differences("owners there", [o["id"] for o in lock_named(other, "m1")["owners"]], [q.owner])
        tap.case("locks: owner and waiters of a shared mutex in other processes", problems)

        threads = view("threads", p.id)
        thread = next(t for t in threads["threads"] if t["id"] == p.owner)
        problems = differences("threads", q.owner in [t["id"] for t in threads["threads"]], False)
        problems += differences("owns", [o["name"].rsplit("\\", 1)[-1] for o in thread["owns"]], ["m0"])
        problems += differences("waits", thread["wait"]["blocks"][0]["waits_for"]["owners"][0]["process_id"], q.id)
        text = interlock("threads", p.id, p.owner).stdout
        problems += [] if f"owned by {q.owner} of process {q.id} (kd-program)" in text else [text]
        tap.case("threads: what a thread waits for in another process", problems)

        shown = view("object", p.id, "m1")
        problems = differences("state", shown["signal_state"], 0)
        problems += differences("owners", [o["process_id"] for o in shown["shared"]["owners"]], [q.id])
        text = interlock("object", p.id, "m1").stdout
        problems += [] if f"of process {q.id} (kd-program)" in text else [text]
        handles = {(h["name"] or "").rsplit("\\", 1)[-1]: h for h in view("handles", p.id)["handles"]}
        problems += differences("handles", (handles["m1"]["shared"]["handles"],
                                            sorted(handles["m1"]["shared"]["processes"])), (2, sorted([p.id, q.id])))
        problems += differences("local", [h["shared"] for h in handles.values() if h["type"] == "Thread"][:1], [None])
        tap.case("object, handles: a shared object", problems)

        graph = view("graph", p.id)
        node = [t for t in graph["threads"] if t["process_id"] == q.id]
        problems = differences("foreign thread", [(t["thread"], t["process_name"]) for t in node], [(q.owner, "kd-program")])
        ids = {n["id"] for kind in ("threads", "blocks", "objects", "processors") for n in graph[kind]}
        problems += [e for e in graph["edges"] if e["from"] not in ids or e["to"] not in ids]
        problems += differences("edge", [e["to"] for e in graph["edges"] if e["kind"] == "owner" and
                                         e["to"].startswith(f"t{q.id}_")], [f"t{q.id}_{q.owner}"])
        problems += differences("consistent", graph["inconsistent"], [])
        dot = interlock("graph", "--dot", p.id).stdout
        problems += [] if f'"t{q.id}_{q.owner}"' in dot and f"{q.id}/{q.owner}" in dot else [dot]
        tap.case("graph: a node for a thread of another process", problems)

        status, worlds = session_view(session)
        problems = differences("status", status, 0) + differences("session", worlds[0]["session"], session)
        problems += differences("processes", sorted(x["process_id"] for x in worlds[0]["processes"]), sorted([p.id, q.id]))
        m1 = next(o for o in worlds[0]["objects"] if o["name"] == "m1")
        problems += differences("owner", (m1["owner"]["process_id"], m1["owner"]["thread_id"]), (q.id, q.owner))
        problems += differences("waiters", [(w["process_id"], w["thread_id"]) for w in m1["waiters"]], [(p.id, p.owner)])
        problems += differences("holders", sorted(m1["processes"]), sorted([p.id, q.id]))
        text = interlock("session", session).stdout
        for part in (f"Session {session}\n", f"owner: thread {q.owner} of process {q.id} (kd-program)",
                     f"waits: thread {p.owner} of process {p.id} (kd-program)", f"process {p.id} (kd-program): 2 handles"):
            problems += [] if part in text else [f"{part!r} is not in {text}"]
        listed = [w["session"] for w in json.loads(interlock("session", "--json").stdout)["worlds"]]
        problems += [] if session in listed else [listed]
        tap.case("session: processes, names, handles, owners and waiters", problems)

        path = worlds[0]["path"]
        by_path = interlock("session", "--json", path)
        problems = differences("by path", json.loads(by_path.stdout)["worlds"][0]["session"], session)
        missing = interlock("session", "no-such-session")
        problems += differences("missing", (missing.returncode, "no session" in missing.stderr), (1, True))
        problems += differences("usage", interlock("session", "-x").returncode, 2)
        problems += differences("help", interlock("session", "--help").returncode, 0)
        problems += differences("no world", interlock("session", "/etc/passwd").returncode, 1)
        problems += differences("a directory", interlock("session", "/tmp").returncode, 1)
        tap.case("session: by name and by file", problems)


def killed_owner(tap):
    with ring(["shared-lock", "shared-lock"]) as (session, (p, q)):
        p.start()
        q.start()
        until(lambda: session_view(session), lambda found: found[0] == 3)
        q.process.kill()
        q.process.wait()
        status, worlds = until(lambda: session_view(session), lambda found: found[0] == 0 and
                               [x["process_id"] for x in found[1][0]["processes"]] == [p.id])
        problems = differences("status", status, 0)
        problems += differences("deadlocks", view("deadlocks", p.id)["deadlocks"], [])
        problems += differences("processes", [x["process_id"] for x in worlds[0]["processes"]], [p.id])
        tap.case("a killed owner ends the deadlock", problems)


def stopped_process(tap):
    """The views can read a stopped process."""
    with ring(["shared-lock", "shared-lock"]) as (session, (p, q)):
        p.start()
        q.start()
        until(lambda: session_view(session), lambda found: found[0] == 3)
        os.kill(q.id, signal.SIGSTOP)
        found = view("deadlocks", p.id)["deadlocks"]
        problems = differences("deadlocks", [d["certain"] for d in found], [True])
        _, worlds = until(lambda: session_view(session),
                          lambda seen: {o["process_id"] for o in seen[1][0]["processes"] if o["stopped"]} == {q.id})
        problems += differences("lock", worlds[0]["locked_by"], None)
        if f"process {q.id} (" not in interlock("session", session).stdout or "is stopped" not in interlock("session", session).stdout:
            problems.append("the text does not say which process is stopped")
        tap.case("a process that is stopped", problems)


def granted_while_stopped(tap):
    """A thread that owns what it seems to wait for, because its process is stopped, is not deadlocked with itself."""
    with ring(["shared-lock", "shared-lock"]) as (session, (p, q)):
        p.start()

        def waits():
            return next(o for o in session_view(session)[1][0]["objects"] if o["name"] == "m1")["waiters"]

        until(waits, lambda found: len(found) == 1)
        os.kill(p.id, signal.SIGSTOP)
        q.process.kill()
        q.process.wait()
        # no process is left to clean up: the next one does
        with Program("shared-busy", INTERLOCK_SESSION=session, KD_OWN="m2", KD_WANT="m3"):
            def owner():
                found = next(o for o in session_view(session)[1][0]["objects"] if o["name"] == "m1")["owner"]
                return found and found["process_id"]

            problems = differences("granted", until(owner, lambda found: found == p.id), p.id)
            problems += differences("deadlocks", view("deadlocks", p.id)["deadlocks"], [])
            problems += differences("session", session_view(session)[1][0]["deadlocks"], [])
            tap.case("a wait that is granted, but whose thread is stopped", problems)


def choice(tap):
    """The world alone sees a cycle here: one thread also waits for an event of its own process."""
    with ring(["shared-lock", "shared-choice"]) as (session, (p, q)):
        p.start()
        q.start()

        def both_wait():
            return [o["name"] for o in session_view(session)[1][0]["objects"] if o["waiters"]]

        until(both_wait, lambda found: len(found) == 2)
        problems = []
        for _ in range(5):
            status, worlds = session_view(session)
            problems += differences("session", (status, worlds[0]["deadlocks"]), (0, []))
            problems += differences("deadlocks", view("deadlocks", p.id)["deadlocks"], [])
        tap.case("a wait for a shared mutex or a local event is no deadlock", problems)


def healthy(tap):
    session = new_session()
    settings = {"INTERLOCK_SESSION": session, "KD_OWN": "m0", "KD_WANT": "m1"}
    with Program("shared-busy", **settings) as p, Program("shared-busy", **settings) as q:
        problems, looks, seen = [], 0, 0
        end = time.monotonic() + 6
        while not problems and time.monotonic() < end:
            status, worlds = session_view(session)
            problems += differences("session", (status, worlds[0]["deadlocks"] if worlds else []), (0, []))
            found = view("locks", (p, q)[looks % 2].id)
            problems += differences("deadlocks", found["deadlocks"], [])
            seen += any(w["process_id"] for lock in found["locks"] for w in lock["waiters"])
            looks += 1
        problems += [] if seen else [f"in {looks} looks no thread of another process waited"]
        tap.case("busy processes: never a deadlock", problems)
    remove(session)


def damaged_files(tap):
    """Every copy with damage is shown or refused; nothing hangs or crashes, and nothing escapes to the terminal."""
    with ring(["shared-lock", "shared-lock"]) as (session, (p, q)):
        p.start()
        q.start()
        _, worlds = until(lambda: session_view(session), lambda found: found[0] == 3)
        original = Path(worlds[0]["path"]).read_bytes()
    source = random.Random(1)
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "interlock1-0-0-damaged"
        for turn in range(10 if SANITIZED else 40):
            damaged = bytearray(original[:source.choice([len(original), len(original), source.randrange(len(original))])])
            first = 0 if turn % 4 == 0 else min(274432, len(damaged) - 1)
            for _ in range(source.choice([1, 10, 1000])):
                at = source.randrange(first, len(damaged))
                damaged[at] = source.choice([0, 1, 27, 255, source.randrange(256)])
            path.write_bytes(damaged)
            for words in (["session", path], ["session", "--json", path]):
                result = interlock(*words)
                if result.returncode not in (0, 1, 3) or "\x1b" in result.stdout + result.stderr:
                    problems.append(f"turn {turn}: {result.returncode}: {result.stderr[-500:]}")
        path.write_bytes(original)
        copies = subprocess.run([WORLDS, path, "300" if SANITIZED else "3000", str(os.getpid())], capture_output=True,
                                text=True, timeout=PATIENCE, check=False)
        if copies.returncode != 0 or copies.stdout.startswith("0 "):
            problems.append(f"kd-worlds {os.getpid()}: {copies.returncode}: {copies.stdout}{copies.stderr[-2000:]}")
        path.write_bytes(b"")
        problems += differences("empty", interlock("session", path).returncode, 1)
    tap.case("session: damaged files", problems)


def main():
    tap = Tap()
    for cases in (lambda tap: pure_cycle(tap, 2), lambda tap: pure_cycle(tap, 3),
                  lambda tap: pure_cycle(tap, 2, SHARED), mixed_cycle, views_of_pair, killed_owner, stopped_process,
                  granted_while_stopped, choice, healthy, damaged_files):
        try:
            cases(tap)
        except (AssertionError, KeyError, StopIteration, IndexError, TypeError, OSError, ValueError,
                subprocess.SubprocessError) as problem:
            tap.case(cases.__name__, [repr(problem)])
    tap.done()


main()
