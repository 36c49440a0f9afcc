#!/usr/bin/env python3
"""`interlock trace` and `interlock contention` report correctly on programs whose waits are known, however those end;
and the library has its static probes.

usage: trace.py CHECKS INTERLOCK STATIC SHARED TRACED LIBRARY usdt|none"""

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kdtest import INTERLOCK, Program, Tap, differences, number, until, view

TRACED, LIBRARY = map(os.path.abspath, sys.argv[5:7])
PROBES = sys.argv[7]
PATIENCE = 120
ROUNDS = 5
SETTINGS = {"INTERLOCK_PROCESSORS": "4", "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:handle_abort=0",
            "TSAN_OPTIONS": "handle_segv=0:handle_abort=0"}


def run(words, folder, **settings):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    return subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
                          check=False, env={**environment, **SETTINGS, **settings})


def facts_of(output):
    """The first of each name."""
    return {name: int(value, 0) for name, value in (line.split() for line in reversed(output.splitlines()))}


class Trace:
    def __init__(self, path):
        document = json.loads(Path(path).read_text("utf-8"))
        self.events = document["traceEvents"]
        self.other = document["otherData"]
        self.names = {e["tid"]: e["args"]["name"] for e in self.events if e["name"] == "thread_name"}

    def of(self, category, thread=None):
        return sorted((e for e in self.events if e["ph"] == "X" and e["cat"] == category
                       and (thread is None or e["tid"] == thread)), key=lambda e: e["ts"])

    def flows(self, phase):
        return {e["id"]: e for e in self.events if e["ph"] == phase}


def take(folder, *scenario, options=()):
    """The trace of a scenario, its output, and its exit status."""
    result = run([INTERLOCK, "trace", "-o", "out.json", *options, "--", TRACED, *scenario], folder)
    return Trace(Path(folder) / "out.json"), facts_of(result.stdout), result


def inside(event, slices):
    return [s for s in slices if s["ts"] <= event["ts"] <= s["ts"] + s["dur"] + 0.002]


def misnested(trace):
    """Slices of a thread that overlap without one inside the other: viewers refuse those."""
    problems = []
    for thread in {e["tid"] for e in trace.events if e["ph"] == "X"}:
        ends = []
        for event in sorted((e for e in trace.events if e["ph"] == "X" and e["tid"] == thread),
                            key=lambda e: (e["ts"], -e["dur"])):
            end = event["ts"] + event["dur"]
            while ends and ends[-1] <= event["ts"]:
                ends.pop()
            if ends and end > ends[-1] + 0.0005:
                problems.append(f"{event} ends after what it is in")
            ends.append(end)
    return problems


def waits(tap, folder):
    trace, said, result = take(folder, "waits")
    worker, main = said["worker"], said["process"]
    found = [w for w in trace.of("wait", worker) if w["args"]["reason"] != "Suspended"]
    shape = [(w["args"]["type"], number(w["args"]["object"]), w["args"]["status"], w["args"]["reason"],
              w["args"]["objects"], w["args"]["all"]) for w in found]
    expected = [
        ("event", said["first"], "0x00000000", "Executive", 1, False),
        ("event", said["second"], "0x00000001", "UserRequest", 2, False),
        ("event", said["first"], "0x00000000", "Executive", 2, True),
        ("event", said["third"], "0x00000102", "Executive", 1, False),
        ("event", said["third"], "0x00000101", "Executive", 1, False),
        ("delay", 0, "0x00000102", "DelayExecution", 0, False),
        ("mutant", said["mutant"], "0x00000080", "WrMutex", 1, False),
    ]
    tap.case("waits: each with object, type, reason and status, in their order",
             differences("exit", result.returncode, 0) + differences("waits", shape, expected))
    if len(found) != len(expected):
        return
    problems = differences("timeouts", [w["args"]["timeout_ms"] is not None for w in found],
                           [False, False, False, True, False, True, False])
    if not 0 < found[3]["args"]["timeout_ms"] <= 1 or found[3]["dur"] < 500:
        problems.append(f"a timeout of a millisecond: {found[3]}")
    problems += differences("alertable", [w["args"]["alertable"] for w in found], [False] * 4 + [True] + [False] * 2)
    problems += differences("modes", [w["args"]["mode"] for w in found],
                            ["kernel", "user", "kernel", "kernel", "user", "kernel", "kernel"])
    problems += differences("name of the object", found[0]["args"]["name"].split("!")[-1], "first")
    problems += differences("name of the thread", trace.names.get(worker), "worker")
    tap.case("waits: timeouts, modes, names", problems)

    ends, starts = trace.flows("f"), trace.flows("s")
    wakers = {}
    problems = []
    for index, wait in enumerate(found):
        arrows = [e for e in ends.values() if e["tid"] == worker and inside(e, [wait])]
        if [e for e in arrows if e["id"] not in starts or starts[e["id"]]["ts"] > e["ts"]]:
            problems.append(f"an arrow without a beginning before it: {arrows}")
        wakers[index] = [starts[e["id"]]["tid"] for e in arrows if e["id"] in starts]
    problems += differences("who ended the waits", wakers, {
        0: [main], 1: [main], 2: [main], 3: [], 4: [main], 5: [], 6: [said["owner"]]})
    tap.case("waits: an arrow to each from the thread that ended it, and none to a timeout", problems)

    signals = [(s["args"]["type"], number(s["args"]["object"])) for s in trace.of("signal", main)
               if number(s["args"]["object"]) in (said["first"], said["second"], said["third"])]
    problems = differences("signals", signals, [("event", said[n]) for n in ("first", "second", "first", "second")])
    arrow = next(e for e in starts.values() if e["tid"] == main and e["id"] in ends
                 and inside(ends[e["id"]], [found[0]]))
    enclosing = [number(s["args"]["object"]) for s in inside(arrow, trace.of("signal", main))]
    problems += differences("the arrow starts in the signal", enclosing, [said["first"]])
    tap.case("waits: the signals of objects that are waited for", problems)

    counts = [e["args"]["waiting"] for e in sorted((e for e in trace.events if e["ph"] == "C"), key=lambda e: e["ts"])]
    if not counts or counts[-1] != 0 or max(counts) < 1 or min(counts) < 0:
        problems = [f"waiting threads: {counts}"]
    tap.case("waits: how many threads wait", problems)
    problems = [f"{e}" for e in trace.events if e["ph"] not in "MXsfCbe" or (e["ph"] == "X" and e["dur"] <= 0)]
    problems += differences("process", [e["args"]["name"] for e in trace.events if e["name"] == "process_name"],
                            [Path(TRACED).name])
    tap.case("waits: nothing else, and properly nested", problems + misnested(trace))


# name: (kind, in JSON, exclusive, the owner is known)
KINDS = {
    "srw": ("SRW lock", "srw_lock", True, False),
    "srw_shared": ("SRW lock", "srw_lock", False, False),
    "section": ("critical section", "critical_section", True, True),
    "fast_mutex": ("fast mutex", "fast_mutex", True, True),
    "guarded_mutex": ("guarded mutex", "guarded_mutex", True, True),
    "push_lock": ("pushlock", "push_lock", True, False),
    "resource": ("resource", "resource", True, True),
    "rtl_resource": ("RTL resource", "rtl_resource", True, True),
    "mutant": ("mutant", "mutant", True, True),
}


def acquires(tap, folder):
    trace, said, _ = take(folder, "locks")
    main = said["process"]
    found = collections.Counter()
    nested = []
    for event in trace.of("lock"):
        args = event["args"]
        found[args["kind"], number(args["object"]), args["exclusive"], args["owner"]] += 1
        if not [w for w in trace.of("wait", event["tid"]) if inside(w, [event])]:
            nested.append(f"a wait is missing in {event}")
    expected = {(kind, said[name], exclusive, main if owned else None): ROUNDS
                for name, (kind, _, exclusive, owned) in KINDS.items() if name != "mutant"}
    addresses = set(said.values())
    tap.case("locks: each contended acquire, with the kind of the lock and its owner",
             differences("acquires", {k: n for k, n in found.items() if k[1] in addresses}, expected))
    tap.case("locks: each waits inside", nested + misnested(trace))
    found = collections.Counter()
    problems = []
    for begin, end in zip(*([e for e in trace.events if e["ph"] == phase and e["cat"] == "hold"] for phase in "be")):
        args = begin["args"]
        found[args["kind"], number(args["object"]), args["exclusive"], args["thread"]] += 1
        if (begin["id"], begin["name"]) != (end["id"], end["name"]) or end["ts"] < begin["ts"] or args["waiters"] != 1:
            problems.append((begin, end))
    expected = collections.Counter()
    for name, (kind, _, _, _) in KINDS.items():
        expected[kind, said[name], True, main] += ROUNDS
    tap.case("locks: each hold that a thread waited for, on a track of its lock",
             problems + differences("holds", {k: n for k, n in found.items() if k[1] in addresses}, dict(expected)))


def contention(tap, folder):
    result = run([INTERLOCK, "contention", "--json", "-o", "report", "--top", 100, "--", TRACED, "locks"], folder)
    said = facts_of(result.stdout)
    process, = json.loads((Path(folder) / "report").read_text("utf-8"))["processes"]
    locks = {(lock["kind"], number(lock["address"])): lock for lock in process["locks"]}
    first = process["locks"][0]
    problems = differences("exit", result.returncode, 0)
    problems += differences("first", (first["kind"], number(first["address"]), first["name"].split("!")[-1]),
                            ("critical_section", said["section"], "section"))
    if not first["seconds"] > first["longest"] >= said["milliseconds"] / 1000:
        problems.append(f"{first['seconds']} s in all, {first['longest']} s at most, {said['milliseconds']} ms held")
    times = [lock["seconds"] for lock in process["locks"]]
    problems += differences("order", times, sorted(times, reverse=True))
    tap.case("contention: the lock that was waited for longest is the first", problems)
    problems = []
    for name, (_, kind, exclusive, owned) in KINDS.items():
        lock = locks.get((kind, said[name]), {"stacks": [], "last_owner": 0, "waiting": 0})
        stacks = [s for s in lock["stacks"] if s["exclusive"] == exclusive]
        problems += differences(f"{name}: count", [s["count"] for s in stacks], [ROUNDS])
        problems += differences(f"{name}: owner", lock["last_owner"], said["process"] if owned else None)
        problems += differences(f"{name}: waiting", lock["waiting"], 0)
        holds = lock.get("holds", {"count": 0, "last_thread": 0})
        releases = [f"release_{name.removesuffix('_shared')}" in
                    [frame["symbol"].split("!")[-1].split("+")[0] for frame in holder["stack"]]
                    for holder in lock.get("holders", [])]
        problems += differences(f"{name}: holds", (holds["count"], holds["last_thread"], set(releases)),
                                (2 * ROUNDS if name.startswith("srw") else ROUNDS, said["process"], {True}))
        for stack in stacks:
            frames = [frame["symbol"].split("!")[-1].split("+")[0] for frame in stack["stack"]]
            if f"contend_{name}" not in frames or "contend" not in frames:
                problems.append(f"{name}: {frames}")
    tap.case("contention: counts, owners and stacks of every kind of lock, and who held it meanwhile", problems)

    result = run([INTERLOCK, "contention", "--top", 1, TRACED, "locks", "exit3"], folder)
    problems = differences("exit", result.returncode, 3)
    lines = result.stderr.splitlines()
    for wanted in (r"Contended locks of .*, process \d+:", r"critical section 0x[0-9a-f]+ \(.*!section\)",
                   r" +waited for: 5 times, .*, at most .*, last held by thread \d+", r" +waited exclusively: 5 times, .*",
                   r" +[0-9a-f]+ .*!contend_section\+0x[0-9a-f]+( \[.* @ \d+\])?", r"and \d+ other locks"):
        if not any(re.fullmatch(wanted, line) for line in lines):
            problems.append(f"no line like {wanted} in {result.stderr}")
    tap.case("contention: for people, with the status of the command", problems)

    result = run([INTERLOCK, "contention", "--json", "-o", "report", "--", TRACED, "deadlock", "kill"], folder)
    process, = json.loads((Path(folder) / "report").read_text("utf-8"))["processes"]
    first = process["locks"][0]
    problems = differences("exit", result.returncode, 128 + signal.SIGKILL)
    problems += differences("lock", (first["kind"], first["count"], first["waiting"], process["finished"]),
                            ("critical_section", 0, 1, False))
    problems += differences("stack", any("contend_section" in f["symbol"] for f in first["stacks"][0]["stack"]), True)
    tap.case("contention: threads still waiting when the process was killed", problems)

    result = run([INTERLOCK, "contention", "--json", "-o", "report", "--", TRACED, "spins"], folder,
                 INTERLOCK_TRACE="spins.json")
    said = facts_of(result.stdout)
    process, = json.loads((Path(folder) / "report").read_text("utf-8"))["processes"]
    lock = next(lock for lock in process["locks"] if number(lock["address"]) == said["spin_lock"])
    events = [e["args"]["kind"] for e in Trace(Path(folder) / "spins.json").of("lock", said["worker"])
              if number(e["args"]["object"]) == said["spin_lock"]]
    tap.case("contention: a spinlock, with a trace beside it",
             differences("lock", (lock["kind"], lock["count"]), ("spin_lock", ROUNDS))
             + differences("stack", [any("contend_spin_lock" in f["symbol"] for f in s["stack"])
                                     for s in lock["stacks"]], [True])
             + differences("events", events, ["spinlock"] * ROUNDS))


def interruptions(tap, folder):
    for number_of_signal, status in ((signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGHUP, 128 + signal.SIGHUP)):
        with subprocess.Popen([INTERLOCK, "contention", "--json", "-o", "report", "--", TRACED, "deadlock", "stay"],
                              cwd=folder, stdout=subprocess.PIPE, text=True, env={**os.environ, **SETTINGS},
                              # the caller of the tests may ignore it: nohup does
                              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)) as command:
            for line in command.stdout:
                if line.startswith("stays"):
                    break
            command.send_signal(number_of_signal)
            found = command.wait(PATIENCE)
        process, = json.loads((Path(folder) / "report").read_text("utf-8"))["processes"]
        tap.case(f"contention: the command is ended by {number_of_signal.name}",
                 differences("exit", found, status)
                 + differences("waiting", [lock["waiting"] for lock in process["locks"]], [1]))


def ends(tap, folder):
    for scenario, status, finished in (
            ("exit3", 3, True), ("ExitProcess", 5, True), ("TerminateProcess", 6, True), ("_exit", 4, False),
            ("abort", 128 + signal.SIGABRT, False), ("kill", 128 + signal.SIGKILL, False),
            ("segv", 128 + signal.SIGSEGV, False), ("bugcheck", 128 + signal.SIGABRT, True)):
        trace, said, result = take(folder, "block", scenario)
        problems = differences("exit", result.returncode, status)
        problems += differences("waits", len(trace.of("wait", said["process"])), 3)
        problems += differences("finished", trace.other["finished"], finished)
        tap.case(f"ends: {scenario}", problems)
    trace, said, _ = take(folder, "hang", "kill")
    last = trace.of("wait", said["worker"])[-1]
    tap.case("ends: a wait that never did",
             differences("wait", (number(last["args"]["object"]), last["args"]["status"],
                                  last["args"].get("unfinished"), trace.names[said["worker"]]),
                         (said["third"], None, True, "hangs")))
    trace, said, result = take(folder, "terminate")
    tap.case("ends: a thread that was terminated",
             differences("exit", result.returncode, 0)
             + differences("its waits", [w["args"]["status"] for w in trace.of("wait", said["worker"])
                                         if w["args"]["reason"] == "UserRequest"], ["0x000000c0"]))
    trace, said, result = take(folder, "late")
    tap.case("ends: a thread that ends while the recording does",
             differences("exit", result.returncode, 0)
             + differences("name", trace.names.get(said["worker"]), "late")
             + differences("waits", [w["args"]["status"] for w in trace.of("wait", said["worker"])
                                     if w["args"]["reason"] != "Suspended"], ["0x00000102"]))


def processes(tap, folder):
    for scenario, expected in (("fork", (3, 6)), ("spawn", (3, 3))):
        trace, said, _ = take(folder, scenario)
        child = Trace(Path(folder) / f"out.{said['child']}.json")
        tap.case(f"{scenario}: a trace each",
                 differences("waits", (len(trace.of("wait", said["process"])), len(child.of("wait", said["child"]))),
                             expected))


def limits(tap, folder):
    trace, said, result = take(folder, "many", options=["--limit", 1])
    kept, dropped = len(trace.of("wait", said["process"])), trace.other["dropped_events"]
    problems = differences("kept and dropped", kept + dropped, 12500)
    if not 10000 < kept < 12500 or f"{dropped} older events" not in result.stderr:
        problems.append(f"kept {kept}, {result.stderr}")
    tap.case("limit: what is older is dropped and counted", problems)
    trace, said, result = take(folder, "threads")
    waited = {w["tid"] for w in trace.of("wait")}
    tap.case("limit: ten thousand threads that live for a moment, one after the other and several at a time",
             differences("kept and dropped", (trace.other["events"], trace.other["dropped_events"]), (10000, 0))
             + differences("threads", trace.other["threads"], 10000)
             + differences("names", {trace.names.get(thread) for thread in waited}, {"short"}))
    trace, _, result = take(folder, "threads", options=["--limit", 1])
    dropped = trace.other["dropped_events"]
    problems = differences("kept and dropped", trace.other["events"] + dropped, 10000)
    if trace.other["events"] < 5000 or f"{dropped} older events" not in result.stderr:
        problems.append(f"{trace.other['events']} were kept: {result.stderr}")
    tap.case("limit: of more than there is room for, the last", problems)
    trace, said, _ = take(folder, "odd")
    tap.case("names: bytes that are no text",
             differences("name", trace.names[said["process"]], '"q\\\x01\ufffdä\ufffd\ufffd\ufffd'))


def settings(tap, folder):
    folder = Path(folder)
    result = run([TRACED, "waits"], folder, INTERLOCK_TRACE="own.json")
    trace, said = Trace(folder / "own.json"), facts_of(result.stdout)
    found = [w["args"]["status"] for w in trace.of("wait", said["worker"]) if w["args"]["reason"] != "Suspended"]
    problems = differences("waits", found, ["0x00000000", "0x00000001", "0x00000000", "0x00000102", "0x00000101",
                                            "0x00000102", "0x00000080"])
    problems += differences("files", sorted(p.name for p in folder.glob("own*")), ["own.json"])
    problems += differences("said", result.stderr, "")
    tap.case("INTERLOCK_TRACE: the process writes the trace itself", problems)
    result = run([TRACED, "block"], folder, INTERLOCK_TRACE="1")
    process = facts_of(result.stdout)["process"]
    tap.case("INTERLOCK_TRACE=1: a name with the id of the process",
             differences("waits", len(Trace(folder / f"interlock-{process}.json").of("wait")), 3))
    result = run([TRACED, "fork"], folder, INTERLOCK_TRACE="sub.d/f", TMPDIR=str(folder))
    tap.case("INTERLOCK_TRACE: a folder that is not there: says so, and the program runs",
             differences("exit", result.returncode, 0)
             + differences("said", "cannot write" in result.stderr and "No such file" in result.stderr, True))
    result = run([TRACED, "fork"], folder, INTERLOCK_TRACE="f%pk.json")
    said = facts_of(result.stdout)
    tap.case("INTERLOCK_TRACE: %p",
             differences("waits", [len(Trace(folder / f"f{said[n]}k.json").of("wait")) for n in ("process", "child")],
                         [3, 6]))
    result = run([TRACED, "fork"], folder, INTERLOCK_TRACE="g.h.json")
    said = facts_of(result.stdout)
    names = ("g.h.json", f"g.h.{said['child']}.json")
    tap.case("INTERLOCK_TRACE: a child has another name",
             differences("waits", [len(Trace(folder / name).of("wait")) for name in names], [3, 6]))
    result = run([TRACED, "spawn"], folder, INTERLOCK_TRACE="inherited.json")
    said = facts_of(result.stdout)
    names = ("inherited.json", f"inherited.{said['child']}.json")
    tap.case("INTERLOCK_TRACE: a program that inherits it does not write into the same file",
             differences("processes", [Trace(folder / name).other["process_id"] for name in names],
                         [said["process"], said["child"]]))
    run([TRACED, "replaced"], folder, INTERLOCK_TRACE="alone.json", INTERLOCK_CONTENTION="alone.contention")
    tap.case("INTERLOCK_TRACE: a child that becomes another program leaves nothing",
             differences("files", sorted(p.name for p in folder.glob("alone*")), ["alone.contention", "alone.json"]))
    result = run([TRACED, "block", "chdir"], folder, INTERLOCK_TRACE="moved.json")
    tap.case("INTERLOCK_TRACE: the program goes to another folder",
             differences("waits", len(Trace(folder / "moved.json").of("wait")), 3))
    run([TRACED, "block", "kill"], folder, INTERLOCK_TRACE="killed.json")
    left = sorted(p.name for p in folder.glob("killed*"))
    result = run([INTERLOCK, "trace", "-o", "killed.json", "--convert", "killed.json.trace"], folder)
    tap.case("INTERLOCK_TRACE: a process that was killed leaves its recording",
             differences("left", left, ["killed.json.trace"]) + differences("convert", result.returncode, 0)
             + differences("waits", len(Trace(folder / "killed.json").of("wait")), 3))
    result = run([TRACED, "block"], folder, INTERLOCK_TRACE="0", INTERLOCK_CONTENTION="", INTERLOCK_TRACE_LIMIT="x")
    tap.case("INTERLOCK_TRACE=0: nothing", differences("exit", result.returncode, 0))


def wrong_use(tap, folder):
    folder = Path(folder)
    (folder / "text").write_text("no trace")
    cut = folder / "cut.trace"
    run([TRACED, "waits"], folder, INTERLOCK_TRACE="whole.trace", INTERLOCK_TRACE_LIMIT="1")
    cut.write_bytes((folder / "whole.trace").read_bytes()[:300 * 1024])
    scrambled = bytearray((folder / "whole.trace").read_bytes())
    for i in range(260 * 1024 + 4096, len(scrambled), 7):
        scrambled[i] ^= 0xa5
    (folder / "scrambled.trace").write_bytes(scrambled)
    for words, status, said in (
            (["trace"], 2, "usage"), (["trace", "--limit", "0", "true"], 2, "megabytes"),
            (["trace", "--unknown"], 2, "usage"), (["contention"], 2, "usage"),
            (["contention", "--top", "0", "true"], 2, "--top"),
            (["trace", "--", "/no/such/program"], 127, "cannot run /no/such/program: No such file"),
            (["trace", "--", "false"], 1, "nothing was recorded"),
            (["contention", "--", "false"], 1, "nothing was recorded"),
            (["trace", "--convert", "text"], 1, "text is not a recording"),
            (["trace", "--convert", "cut.trace"], 1, "cut.trace is not a recording"),
            (["contention", "--read", "whole.trace"], 1, "is not a recording of contention"),
            (["trace", "--convert", "nothing"], 1, "cannot read nothing: No such file"),
            (["trace", "-o", "no/folder", "--convert", "whole.trace"], 1, "cannot write no/folder"),
            (["contention", "-o", "no/folder", "true"], 1, "cannot write no/folder")):
        result = run([INTERLOCK, *words], folder)
        problems = differences("exit", result.returncode, status)
        if said not in result.stderr:
            problems.append(result.stderr)
        tap.case(f"wrong use: {' '.join(words)}", problems)
    result = run([INTERLOCK, "trace", "-o", "scrambled.json", "--convert", "scrambled.trace"], folder)
    Trace(folder / "scrambled.json")
    tap.case("a recording that was scrambled is still JSON", differences("exit", result.returncode, 0))


# How many arguments each has.
ARGUMENTS = {"wait_begin": 4, "wait_end": 4, "signal": 2, "wake": 2, "contention_begin": 3, "contention_end": 3,
             "contended_release": 3}


def probes(tap, folder):
    if PROBES != "usdt":
        tap.case("probes # SKIP without sys/sdt.h", [])
        return
    notes = subprocess.run(["readelf", "-n", LIBRARY], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"Provider: (\w+)\s+Name: (\w+)\s+Location: (0x[0-9a-f]+).*?\s+Arguments: (.*)", notes)
    shapes = {(provider, name, len(arguments.split())) for provider, name, _, arguments in found}
    problems = differences("probes", shapes, {("interlock", name, count) for name, count in ARGUMENTS.items()})
    for _, name, place, _ in found:
        code = subprocess.run(["objdump", "-d", f"--start-address={place}", f"--stop-address={int(place, 16) + 1}",
                               LIBRARY], capture_output=True, text=True, check=True).stdout
        if not re.search(r"\tnop\s*$", code.strip()):
            problems.append(f"{name} at {place}: {code}")
    tap.case("probes: in the library, with their arguments, a nop each", problems)
    if shutil.which("gdb") is None:
        return
    result = run(["gdb", "-q", "-batch", "-nx", "-ex", "info probes stap interlock", "-ex",
                  "break -probe-stap interlock:wait_begin", "-ex", "run", "-ex", "print $_probe_argc", "-ex",
                  "print ((KTHREAD *)$_probe_arg0)->ThreadId", "--args", TRACED,
                  "block"], folder, DEBUGINFOD_URLS="")
    problems = [f"{name} is not listed" for name in ARGUMENTS
                if not re.search(rf"\binterlock\s+{name}\b", result.stdout)]
    process = re.search(r"^process (\d+)", result.stdout, re.M)
    if "$1 = 4" not in result.stdout:
        problems.append(f"not hit: {result.stdout}{result.stderr}")
    if process and f"$2 = {process.group(1)}" not in result.stdout:
        problems.append(f"another thread: {result.stdout}")
    tap.case("probes: gdb stops at one", problems)


def attach_trace(folder, p, *words):
    path = Path(folder) / "attached.json"
    result = run([INTERLOCK, "trace", "-o", path, *words, p.id], folder)
    return (Trace(path) if path.exists() else None), result


def attached(tap, folder):
    """A running process: tracing starts and stops repeatedly, and the process is killed meanwhile."""
    with Program("busy") as p:
        lengths = []
        for _ in range(3):
            trace, result = attach_trace(folder, p, "--seconds", "0.3")
            times = [e["ts"] for e in trace.of("wait")]
            lengths.append((result.returncode, len(times) > 0, max(times) - min(times) < 60e6, misnested(trace)))
        tap.case("attached: each recording has its own events only", differences("recordings", lengths, [(0, True, True, [])] * 3))
        counts = []
        for _ in range(2):
            result = run([INTERLOCK, "contention", "--json", "--seconds", "0.3", p.id], folder)
            counts.append(sum(lock["count"] for lock in json.loads(result.stderr)["processes"][0]["locks"]))
        tap.case("attached: contention, twice", [] if all(counts) else [counts])
        result = run([INTERLOCK, "contention", p.id, "--json", "--seconds", "0.3"], folder)
        extra = run([INTERLOCK, "contention", p.id, "--json", "extra"], folder)
        tap.case("attached: options may follow the process", differences("status", (result.returncode, extra.returncode), (0, 2))
                 + ([] if '"locks"' in result.stderr and "too many: extra" in extra.stderr else [result.stderr, extra.stderr]))
        with subprocess.Popen([INTERLOCK, "trace", "-o", f"{folder}/killed.json", str(p.id)], stderr=subprocess.PIPE,
                              text=True) as command:
            command.stderr.readline() # prints that it records
            busy = run([INTERLOCK, "trace", "-o", "second.json", "--seconds", "0.1", p.id], folder)
            time.sleep(0.3)
            p.process.kill()
            command.stderr.read()
        tap.case("attached: one at a time", [] if busy.returncode == 1 and "already being recorded" in busy.stderr else [busy])
        tap.case("attached: a process that is killed leaves what was recorded",
                 differences("status", command.returncode, 0)
                 + ([] if Trace(Path(folder) / "killed.json").of("wait") else ["no wait"]))
    with Program("busy") as p:
        with subprocess.Popen([INTERLOCK, "trace", "-o", f"{folder}/interrupted.json", str(p.id)], stderr=subprocess.PIPE,
                              text=True) as command:
            command.stderr.readline()
            time.sleep(0.3)
            command.send_signal(signal.SIGINT)
            command.stderr.read()
        seen = Trace(Path(folder) / "interrupted.json").of("wait")
        tap.case("attached: an interrupt stops it, and the process goes on",
                 differences("status", command.returncode, 0) + ([] if seen else ["no wait"])
                 + differences("process", p.process.poll(), None))
    with Program("orphan") as p:
        until(lambda: view("deadlocks", p.id), lambda d: d["deadlocks"])
        _, result = attach_trace(folder, p, "--seconds", "0.1")
        tap.case("attached: a process in which nothing happens",
                 [] if result.returncode == 0 and "nothing was recorded" in result.stderr else [result])
    with Program("busy", INTERLOCK_TRACE=f"{folder}/own.json") as p:
        _, result = attach_trace(folder, p, "--seconds", "0.1")
        tap.case("attached: not over a recording of the process's own",
                 [] if result.returncode == 1 and "already being recorded" in result.stderr else [result])
    for words in (["--seconds", "0", "1"], ["--seconds", "1", "true"], ["--seconds", "x", "1"]):
        result = run([INTERLOCK, "trace", *words], folder)
        tap.case(f"attached: {' '.join(words)} is refused", differences("status", result.returncode, 2))


def main():
    tap = Tap()
    for cases in (attached, waits, acquires, contention, interruptions, ends, processes, limits, settings, wrong_use, probes):
        with tempfile.TemporaryDirectory() as folder:
            try:
                cases(tap, folder)
            except (AssertionError, KeyError, StopIteration, IndexError, TypeError, ValueError, OSError,
                    subprocess.SubprocessError) as problem:
                tap.case(cases.__name__, [repr(problem)])
    tap.done()


main()
