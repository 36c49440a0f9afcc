#!/usr/bin/env python3
"""No process and no file that another user controls harms `interlock`: every view ends within its limits, with the
status that the documentation names, with valid JSON, and without control characters for a terminal.

usage: hostile.py CHECKS INTERLOCK STATIC SHARED HOSTILE VIEWS REPLAY TRACED [sanitized]

The views run in one process for each forgery (VIEWS, fuzz/views.c), which checks their output; the view that must
name the forgery also runs as a command. REPLAY (fuzz/replay.c) reads random damage: a few hundred
inputs here, more with `make fuzz`.

INTERLOCK_HOSTILE_ROUNDS is the number of random changes to memory and files, INTERLOCK_HOSTILE_ONLY names the groups of
cases to run."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bases import fill
from kdtest import DEADLOCKED, INTERLOCK, PATIENCE, SANITIZED, STATIC, Program, Tap, differences, until

HOSTILE, VIEWS_IN_ONE, REPLAY, TRACED = map(os.path.abspath, sys.argv[5:9])
CPU_SECONDS = 300 if SANITIZED else 60
MEMORY = 4 << 30
ROUNDS = int(os.environ.get("INTERLOCK_HOSTILE_ROUNDS", 4))
INPUTS = Path(__file__).resolve().parent / "fuzz/inputs"

LARGE = "many-threads" # the most that a view reads: a view takes seconds, so it has only one

# What is reported as inconsistent, and by which view.
EXPECTED = {
    "slots-used": ("threads", "KiThreadSlotsUsed"),
    "same-chunk": ("threads", "KiThreadChunk"),
    "wild-chunks": ("threads", "KiThreadChunk"),
    "many-threads": ("qlocks", "threads"),
    "wild-blocks": ("threads", "thread"),
    "processors": ("qlocks", "KeNumberProcessors"),
    "wild-processors": ("dpcs", "KiProcessorBlock"),
    "dpc-list": ("dpcs", "DPCs of a processor"),
    "processor-waiters": ("dpcs", "threads that wait for a processor"),
    "queued-lock-cycle": ("qlocks", "queue of a numbered lock"),
    "timer-lists": ("timers", "timers"),
    "timer-tables": ("timers", "timer tables"),
    "same-leaf": ("handles", "handle table"),
    "wild-leaves": ("handles", "handle table"),
    "wild-objects": ("handles", "directory"),
    "resource-list": ("locks", "list of resources"),
    "resource-owners": ("locks", "owners of a resource"),
    "section-list": ("locks", "list of critical sections"),
    "mutant-lists": ("locks", "mutants of a thread"),
    "push-lock-chain": ("locks", "waiters of a pushlock"),
    "waiter-table": ("threads", "table of waiters"),
    "wait-lists": ("graph", "waiters of an object"),
    "wild-roots": ("handles", "handle table"),
    "unreadable": ("handles", "handle table"),
    "cut-off": ("handles", "handle table"),
    "device": ("handles", "handle table"),
    "moving": ("locks", "list of resources"),
}
REFUSED = {"version", "backward-roots", "endless"}


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def run(*words, **options):
    environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1"}
    return subprocess.run([INTERLOCK, *map(str, words)], capture_output=True, timeout=4 * PATIENCE, check=False,
                          preexec_fn=limit, stdin=subprocess.DEVNULL, env=environment, **options)


def unsafe(text):
    """Characters that a terminal would obey, or would show as other text."""
    return sorted({repr(c) for c in text if c != "\n" and (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp"))})


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def check(words, result, statuses=(0,)):
    """Problems of the exit status and the output."""
    name = " ".join(map(str, words))
    shown = (0, DEADLOCKED) if words[0] == "deadlocks" else (0,)
    if result.returncode not in statuses and not (0 in statuses and result.returncode in shown):
        return [f"{name}: status {result.returncode}: {result.stderr[-400:]!r}"]
    problems = []
    for stream, content in (("output", result.stdout), ("errors", result.stderr)):
        try:
            found = unsafe(content.decode("utf-8"))
        except UnicodeDecodeError as problem:
            found = [str(problem)]
        problems += [f"{name}: {stream}: {found}"] if found else []
    if result.returncode == 1 and b"interlock: " not in result.stderr:
        problems.append(f"{name}: it has not said why: {result.stderr[-400:]!r}")
    if re.search(rb"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error", result.stderr):
        problems.append(f"{name}: {result.stderr[-2000:]!r}")
    if "--json" in words and result.returncode in shown:
        try:
            json.loads(result.stdout.decode("utf-8"), parse_constant=refuse_constant)
        except ValueError as problem:
            problems.append(f"{name}: {problem}")
    return problems


def in_one(program, *words):
    """A program that checks the output of views itself: it aborts if that is wrong."""
    environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=0"}
    return subprocess.run([program, *map(str, words)], capture_output=True, timeout=4 * PATIENCE, check=False,
                          preexec_fn=limit, stdin=subprocess.DEVNULL, env=environment)


def look(target, statuses, views=None):
    """All views, or these, as text and as JSON."""
    if views == []:
        return []
    return check(["views of", target, *(views or [])], in_one(VIEWS_IN_ONE, target, *(views or [])), statuses)


def inconsistencies(view, target):
    content = json.loads(run(view, target, "--json").stdout or b"{}")
    return {fault["what"] for fault in content.get("inconsistent", [])}


def says(name, target):
    """Problems of the view's report on a forgery, which it must name, as JSON and as text."""
    view, what = EXPECTED[name]
    found = inconsistencies(view, target)
    problems = [] if what in found else [f"{view} does not say that {what} is inconsistent: {found}"]
    if name != LARGE:
        text = run(view, target).stdout.decode("utf-8", "replace")
        problems += [] if re.search(rf"\*\*\* (inconsistent|moving): {what}", text) else [f"{view}: {text[-300:]}"]
    return problems


def forgeries(tap):
    names = subprocess.run([HOSTILE, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        if name == "endless":
            continue
        with Program(name, HOSTILE) as p:
            if p.facts.get("impossible"):
                print(f"ok {tap.count + 1} - {name} # SKIP the host does not allow it")
                tap.count += 1
                continue
            problems = look(p.child, (1,) if name in REFUSED else (0,), [] if name == LARGE else None)
            if name in EXPECTED:
                problems += says(name, p.child)
            elif name == "nothing":
                problems += differences("inconsistent", inconsistencies("locks", p.child), set())
            tap.case(f"forged: {name}", problems)


class Endless:
    """A read that the process delays is abandoned after a while: the other cases run meanwhile."""

    def __init__(self):
        self.program = Program("endless", HOSTILE)
        self.possible = not self.program.facts.get("impossible")
        self.pool = ThreadPoolExecutor()
        self.runs = [self.pool.submit(run, *words) for words in (["handles", self.program.child], ["ps", "--json"])] \
            if self.possible else []

    def __call__(self, tap):
        with self.program as p:
            if not self.possible:
                print(f"ok {tap.count + 1} - a read that never ends # SKIP this user may not use userfaultfd")
                tap.count += 1
                return
            handles, result = (one.result() for one in self.runs)
            self.pool.shutdown()
            problems = check(["handles"], handles, (1,))
            problems += [] if b"given up" in handles.stderr else [handles]
            tap.case("a read that never ends is given up", problems)
            tap.case("ps goes on without it", check(["ps", "--json"], result) +
                     ([] if str(p.child).encode() in result.stderr else [result.stderr]))


def names(tap):
    with Program("nothing", HOSTILE) as p:
        handles = json.loads(run("handles", p.child, "--json").stdout)["handles"]
        odd = [h["name"] for h in handles if h["name"] and "\\x1b" in h["name"]]
        parts = ("\\x07", "\\x7f", "\\u009b", "\\u202e", "\\u2066")
        problems = [] if odd and all(part in odd[0] for part in parts) else [odd]
        threads = json.loads(run("threads", p.child, "--json").stdout)["threads"]
        problems += [] if any("\\x1b" in t["name"] for t in threads) else [[t["name"] for t in threads]]
        problems += check(["ps"], run("ps"))
        listed = next((l for l in run("ps").stdout.decode().splitlines() if l.split()[:1] == [str(p.child)]), "")
        problems += [] if "\\x1b]0;a\\x07\\x9b\\x0a\\u202e" in listed else [listed]
        tap.case("names are shown, with what a terminal would obey made visible", problems)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(os.fsencode(folder), b"\x1b[31m\x9b\xe2\x80\xae")
        Path(os.fsdecode(path)).write_bytes(b"\x7fELF")
        problems = check(["threads", "a file"], run("threads", os.fsdecode(path)), (1,))
        os.rename(path, path + b"\xff")
        copy = os.path.join(os.fsencode(folder), b"p\x1b]0;x\x07\x9b")
        os.link(STATIC, copy) if os.stat(STATIC).st_dev == os.stat(folder).st_dev else \
            subprocess.run(["cp", STATIC, copy], check=True)
        with Program("resources", copy) as p:
            problems += look(p.id, (0,), ["threads", "locks"])
        tap.case("names of files and modules", problems)


def targets(tap):
    """Processes that do not use Interlock, and files that are not core files."""
    with tempfile.TemporaryDirectory() as folder:
        fifo, listening = f"{folder}/fifo", socket.socket(socket.AF_UNIX)
        os.mkfifo(fifo)
        listening.bind(f"{folder}/socket")
        sparse = f"{folder}/sparse"
        with open(sparse, "wb") as file:
            file.truncate(1 << 42)
        empty = f"{folder}/empty"
        Path(empty).write_bytes(b"")
        cases = [(fifo, b"FIFO"), (folder, b"directory"), ("/dev/zero", b"device"), ("/dev/null", b"device"),
                 ("/dev/tty", b""), (f"{folder}/socket", b""), (sparse, b"not a core file"),
                 (empty, b"not a core file"), ("1", b""), ("2", b""), ("-1", b""), ("", b""),
                 ("99999999999999999999", b"")]
        for what, part in cases:
            result = run("threads", what)
            statuses = (2,) if what.startswith("-") else (1,)
            tap.case(f"as a target: {what.replace(folder, 'folder') or 'nothing'}",
                     check(["threads", what], result, statuses) + ([] if part in result.stderr else [result.stderr]))
        for name, words in (("trace", ["trace", "-o", f"{folder}/out", "--convert"]),):
            for what in (fifo, folder, "/dev/zero", sparse, empty):
                tap.case(f"as a recording for {name}: {what.replace(folder, 'folder')}",
                         check([name, what], run(*words, what), (1,)))
        listening.close()
    with subprocess.Popen(["sleep", "0"]) as zombie:
        # not waited for yet
        signal.sigtimedwait([signal.SIGCHLD], PATIENCE)
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        result = run("threads", zombie.pid)
        tap.case("as a target: a process that has ended, and is not waited for",
                 check(["threads"], result, (1,)) + ([] if b"has ended" in result.stderr else [result.stderr]))
    with Program("resources") as p:
        target = p.id
        threading.Timer(0.05, p.process.kill).start()
        problems = []
        while p.process.poll() is None:
            problems += check(["threads"], run("threads", target, "--json"), (0, 1))
        problems += check(["threads"], run("threads", target, "--json"), (1,))
        tap.case("as a target: a process that ends while it is looked at", problems)


def namespace(tap):
    name = "a process in a namespace of its own"
    allowed = shutil.which("unshare") and subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True,
                                                         check=False).returncode == 0
    if not allowed:
        print(f"ok {tap.count + 1} - {name} # SKIP this user may not create one")
        tap.count += 1
        return
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script"
        script.write_text(f"#!/bin/sh\nexec unshare --pid --fork --kill-child {STATIC} $1\n", encoding="utf-8")
        script.chmod(0o755)
        with Program("resources", script) as p:
            inside = int(Path(f"/proc/{p.id}/task/{p.id}/children").read_text(encoding="ascii").split()[0])

            def take():
                threads = json.loads(run("threads", inside, "--stack", "--json").stdout)["threads"]
                return next(t for t in threads if t["id"] == p.alice)

            # sometimes a waiter of a resource runs for a moment
            alice = until(take, lambda t: t["host_state"] == "S")
            tap.case(name, differences("state", alice["host_state"], "S") +
                     ([] if any("resource_alice" in f["symbol"] for f in alice["stack"]) else [alice]))


class Patched:
    """A file with some bytes replaced, temporarily."""

    def __init__(self, path):
        self.file = open(path, "r+b", buffering=0)
        self.size = os.fstat(self.file.fileno()).st_size
        self.before = []

    def put(self, offset, content):
        self.before.append((offset, os.pread(self.file.fileno(), len(content), offset)))
        os.pwrite(self.file.fileno(), content, offset)

    def restore(self):
        while self.before:
            offset, content = self.before.pop()
            os.pwrite(self.file.fileno(), content, offset)


def elf_patches(content):
    """(what, [(offset, bytes)]): invalid headers."""
    phoff, shoff = struct.unpack_from("<QQ", content, 32)
    phnum, shnum = struct.unpack_from("<H", content, 56)[0], struct.unpack_from("<H", content, 60)[0]
    most, huge = b"\xff" * 8, struct.pack("<Q", 1 << 62)
    yield "phnum", [(56, b"\xff\xff")]
    yield "phnum elsewhere", [(56, b"\xff\xff"), (40, struct.pack("<Q", 64)), (60, b"\1\0")]
    yield "phoff", [(32, most)]
    yield "phentsize", [(54, b"\1\0")]
    yield "shnum", [(60, b"\xff\xff"), (40, struct.pack("<Q", 64))]
    yield "shoff", [(40, huge)]
    yield "class", [(4, b"\1")]
    yield "order", [(5, b"\2")]
    yield "machine", [(18, b"\xff\xff")]
    for i in range(min(phnum, 6)):
        at = phoff + 56 * i
        for name, member in (("offset", 8), ("address", 16), ("file size", 32), ("size", 40), ("alignment", 48)):
            yield f"{name} of segment {i}", [(at + member, most)]
            yield f"large {name} of segment {i}", [(at + member, huge)]
    if shnum:
        for member, name in ((4, "type"), (24, "offset"), (32, "size"), (56, "entry size"), (40, "link")):
            for value in (most, huge, struct.pack("<Q", 1), struct.pack("<Q", 1 << 38)):
                yield f"{name} of every section", [(shoff + 64 * i + member, value[:4] if member in (4, 40) else value)
                                                   for i in range(1, shnum)]


def programs(tap):
    """The other user also controls the program's file, whose headers and symbols the debugger reads."""
    problems, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        content = Path(STATIC).read_bytes()
        for what, patches in elf_patches(content):
            if "section" not in what and what not in ("shnum", "shoff"):
                continue
            program = Path(folder) / f"program{count}"
            program.write_bytes(content)
            program.chmod(0o755)
            patched = Patched(program)
            for offset, changed in patches:
                patched.put(offset, changed)
            patched.file.close()
            os.truncate(program, 1 << 40) # so that every offset of a header is inside the file
            with Program("resources", program) as p:
                found = look(p.id, (0, 1), ["threads", "locks"])
                problems += [f"{what}: {problem}" for problem in found]
            program.unlink()
            count += 1
    tap.case(f"{count} programs with absurd section headers", problems)


def cores(tap):
    name = "mutated core files"
    if SANITIZED or not shutil.which("gcore"):
        print(f"ok {tap.count + 1} - {name} # SKIP gcore is missing, or this is a sanitizer's build")
        tap.count += 1
        return
    problems, count = [], 0
    views = ["threads", "locks", "handles", "graph", "deadlocks", "timers", "dpcs", "explain"]
    with tempfile.TemporaryDirectory() as folder:
        with Program("resources") as p:
            subprocess.run(["gcore", "-o", f"{folder}/core", str(p.id)], check=True, capture_output=True,
                           timeout=2 * PATIENCE)
            core = f"{folder}/core.{p.id}"
        patched = Patched(core)
        for what, patches in elf_patches(os.pread(patched.file.fileno(), 1 << 16, 0)):
            for offset, content in patches:
                patched.put(offset, content)
            found = look(core, (0, 1), [views[count % len(views)]])
            problems += [f"{what}: {problem}" for problem in found]
            patched.restore()
            count += 1
        # a sparse file is as large as its headers claim
        phoff = struct.unpack("<Q", os.pread(patched.file.fileno(), 8, 32))[0]
        begin = next(at for at in range(phoff, 1 << 16, 56) if os.pread(patched.file.fileno(), 4, at) == b"\4\0\0\0")
        patched.put(begin + 32, struct.pack("<Q", 1 << 38))
        os.truncate(core, 1 << 42)
        result = run("threads", core)
        problems += check(["threads", "large notes"], result, (1,)) + ([] if b"its notes" in result.stderr else [result.stderr])
        patched.restore()
        for size in (1 << 42, patched.size // 2, 1 << 16, 4096, 65, 63, 1):
            os.truncate(core, size)
            problems += [f"cut to {size}: {problem}" for problem in look(core, (0, 1), ["threads", "handles"])]
            count += 1
    tap.case(f"{count} {name}", problems)


def random_changes(tap):
    """Damage to a process: it changes its own memory."""
    views = ["threads", "graph", "locks", "handles", "dpcs", "timers"]
    problems = []
    with Program("nothing", HOSTILE) as p:
        for seed in range(ROUNDS):
            p.process.stdin.write(f"{seed}\n")
            p.process.stdin.flush()
            p.process.stdout.readline()
            found = look(p.child, (0, 1), views)
            problems += [f"seed {seed}: {problem}" for problem in found]
            if len(problems) > 5:
                break
    tap.case(f"{ROUNDS} times memory that was changed at random", problems)


def random_files(tap):
    """Memory, core files, recordings, programs and worlds with damage: the stored inputs, and random ones."""
    rounds = 50 * ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        fill(folder, STATIC, TRACED)
        kept = sorted(INPUTS.iterdir())
        result = in_one(REPLAY, folder, 0, rounds, *kept)
        current = (Path(folder) / "current").read_text(encoding="utf-8")
        found = [f"{current}: {problem}" for problem in check(["replay"], result)]
    tap.case(f"{len(kept)} inputs that are kept and {rounds} random ones, over files of every kind", found)


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    tap = Tap()
    only = os.environ.get("INTERLOCK_HOSTILE_ONLY")
    groups = {cases.__name__: cases for cases in (names, targets, namespace, programs, cores, random_changes, random_files,
                                                  forgeries)}
    chosen = only.split(",") if only else [*groups, "endless"]
    endless = None
    for name in chosen:
        # not before the names: `ps` waits for it too
        if "endless" in chosen and name != "names" and endless is None:
            endless = Endless()
        try:
            (endless if name == "endless" else groups[name])(tap)
        except (AssertionError, KeyError, StopIteration, IndexError, TypeError, OSError, ValueError,
                subprocess.SubprocessError) as problem:
            tap.case(name, [repr(problem)])
    tap.done()


main()
