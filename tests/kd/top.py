#!/usr/bin/env python3
"""`interlock top`: frames one after the other, their counters as JSON, and on a terminal.

usage: top.py CHECKS INTERLOCK STATIC SHARED [sanitized]"""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from kdtest import INTERLOCK, PATIENCE, Program, Tap, differences, interlock, until, view


def batch(tap):
    with Program("service") as p:
        until(lambda: view("deadlocks", p.id), lambda d: len(d["deadlocked_threads"]) == 3)
        until(lambda: view("locks", p.id), lambda d: len(d["locks"]) == 3)
        frames = interlock("top", "-n", "2", "-d", "0.1", p.id).stdout
        problems = differences("frames", frames.count("interlock top"), 2)
        problems += [part for part in (
            "DEADLOCK\n", f"thread {p.writer} (writer) waits for mutant", f"held by {p.checkpoint}",
            "Threads: 15 ", "deadlocked 3") if part not in frames]
        problems += differences("escapes", "\033" in frames, False)
        locks = re.findall(r"^ +(\d+) +([\d-]+) +[\d.-]+ +(\S+(?: threads)?)  (\S.*?)  +(\S+)$", frames, re.M)
        problems += differences("locks", locks[:3], [
            ("2", "2", f"{p.writer}", "critical section", "kd-program!cache"),
            ("1", "1", "2 threads", "resource", "kd-program!table"),
            ("1", "-", f"{p.checkpoint}", "mutant", "\\BaseNamedObjects\\journal")])
        tap.case("top: frames one after the other", problems)
        lines = interlock("top", "--json", "-n", "3", "-d", "0.1", p.id).stdout.splitlines()
        samples = [json.loads(line) for line in lines]
        problems = differences("numbers", [s["number"] for s in samples], [1, 2, 3])
        problems += differences("threads", {(s["threads"], s["deadlocked"]) for s in samples}, {(15, 3)})
        problems += [] if samples[0]["interval"] == 0 and samples[2]["interval"] > 0 else [samples]
        waiters = {(lock["kind"], lock["waiters"]) for lock in samples[2]["locks"]}
        problems += differences("waiters", waiters, {("critical_section", 2), ("resource", 1), ("mutant", 1)})
        tap.case("top: the counters as JSON", problems)


def rates(tap):
    with Program("busy") as p:
        samples = [json.loads(line) for line in interlock("top", "--json", "-n", "5", "-d", "0.3", p.id)
                   .stdout.splitlines()]
        problems = [] if sum(s["waits"] for s in samples) > 0 else [samples]
        problems += [] if any(lock["kind"] == "srw_lock" for s in samples for lock in s["locks"]) else [samples]
        problems += differences("deadlocked", sum(s["deadlocked"] for s in samples), 0)
        tap.case("top: waits are counted from one sample to the next", problems)


def read_until(descriptor, part):
    seen, end = b"", time.monotonic() + PATIENCE
    while part not in seen and time.monotonic() < end:
        if select.select([descriptor], [], [], 1)[0]:
            try:
                seen += os.read(descriptor, 65536)
            except OSError:
                break
    return seen


def terminal(tap):
    with Program("orphan") as p:
        until(lambda: view("deadlocks", p.id), lambda d: d["deadlocks"])
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 60, 0, 0))
        before = termios.tcgetattr(theirs)
        with subprocess.Popen([INTERLOCK, "top", "-d", "0.2", str(p.id)], stdin=theirs, stdout=theirs) as top:
            first = read_until(ours, b"\033[J")
            os.write(ours, b"ph")
            paused = read_until(ours, b"Keys:")
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
            os.write(ours, b"pq")
            read_until(ours, b"\033[?1049l")
            try:
                status = top.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                top.kill()
                status = None
        after = termios.tcgetattr(theirs)
        os.close(ours)
        os.close(theirs)
        frame = first.split(b"\033[H")[1]
        widest = max(len(re.sub(rb"\033\[[0-9;?]*[A-Za-z]", b"", line).rstrip(b"\r")) for line in frame.split(b"\n"))
        problems = [] if b"\033[1;31mORPHANED LOCK: its owner has ended" in first else [first]
        problems += [] if widest <= 60 else [f"a line has {widest} columns", frame]
        problems += [] if b"(paused)" in paused and b"Keys:" in paused else [paused]
        problems += differences("status", status, 0) + differences("terminal", after, before)
        tap.case("top: on a terminal, with keys, cut to its width", problems)


def refusals(tap):
    for name, words in [("no target", []), ("no frames", ["-n", "0", "1"]), ("no interval", ["-d", "0", "1"]),
                        ("a word too much", ["1", "2"])]:
        result = interlock("top", *words)
        tap.case(f"top: {name} is refused", [] if result.returncode == 2 and "usage" in result.stderr else [result])
    result = interlock("top", 2 ** 30)
    tap.case("top: no such process",
             [] if result.returncode == 1 and "there is no process" in result.stderr else [result])


def main():
    tap = Tap()
    for cases in (batch, rates, terminal, refusals):
        try:
            cases(tap)
        except (AssertionError, KeyError, StopIteration, IndexError, TypeError, OSError, ValueError,
                subprocess.SubprocessError) as problem:
            tap.case(cases.__name__, [repr(problem)])
    tap.done()


main()
