#!/usr/bin/env python3
"""`interlock explain`: reports of every bugcheck that the library raises, core files of real crashes, live processes.

usage: explain.py CHECKS INTERLOCK STATIC SHARED STOP SOURCE [sanitized]"""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from kdtest import INTERLOCK, PATIENCE, SANITIZED, STATIC, Program, Tap, differences, interlock, until, view

STOP = os.path.abspath(sys.argv[5])
SOURCE = Path(sys.argv[6])
BY_PROGRAM = "the program called KeBugCheckEx"


def stop(*words, core=None):
    """(the status, the report) of the program that bugchecks."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2 if core else (0, 0))
    result = subprocess.run([STOP, *map(str, words)], capture_output=True, timeout=PATIENCE, check=False, cwd=core,
                            preexec_fn=limit, env={**os.environ, "INTERLOCK_SESSION": "private", "INTERLOCK_PROCESSORS": "2",
                                                   "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:handle_abort=0"})
    return result.returncode, result.stderr


def explain(text, *words):
    return subprocess.run([INTERLOCK, "explain", *words], input=text, capture_output=True, timeout=PATIENCE, check=False)


def known_codes():
    """{name: number} of the header, and the kinds of the codes that have kinds."""
    header = (SOURCE / "include/interlock/bugcodes.h").read_text(encoding="utf-8")
    codes = {name: int(number, 16) for name, number in re.findall(r"#define (\w+)\s+\(\(ULONG\)(0x\w+)\)", header)}
    kinds = {}
    for code, macro in (("DRIVER_VERIFIER_DETECTED_VIOLATION", "INTERLOCK_VERIFIER_LIST"),
                        ("DRIVER_VERIFIER_IOMANAGER_VIOLATION", "INTERLOCK_IO_VERIFIER_LIST"),
                        ("BAD_POOL_CALLER", "INTERLOCK_POOL_CALLER_LIST")):
        part = header.split(f"#define {macro}(X)")[1].split("\n\n")[0]
        kinds[code] = [int(kind, 16) for kind in re.findall(r"X\((0x\w+),", part)]
    return codes, kinds


def raised(codes):
    """The codes in the library's sources, except those that only the tables name."""
    found = set()
    for path in (SOURCE / "src").rglob("*.c"):
        if path.name != "bugtable.c":
            found |= set(re.findall(r"\b[A-Z][A-Z_0-9]{6,}\b", path.read_text(encoding="utf-8"))) & set(codes)
    return found


def check_report(name, code, kind, own):
    parameters = [kind, 2, 0x1111, 0x2222]
    status, report = stop(hex(code), *map(hex, parameters))
    problems = differences(f"{name}: the program", status, -signal.SIGABRT)
    result = explain(report, "--json")
    if result.returncode != 0:
        return problems + [f"{name}: {result.returncode}: {result.stderr[-300:]!r} of {report[-300:]!r}"]
    story = json.loads(result.stdout)
    bug = story["bugcheck"]
    problems += differences(f"{name}: code", (story["cause"], int(bug["code"], 16), bug["name"]), ("bugcheck", code, name))
    problems += differences(f"{name}: values", [int(p["value"], 16) for p in bug["parameters"]], parameters)
    if own and BY_PROGRAM in story["explanation"]:
        problems.append(f"{name} ({kind:#x}) has no advice of its own")
    # the command repeats what the report says about the parameters
    for number, meaning, explanation in re.findall(rb"^    (\d): 0x\w+  ([^:\n]+)(?:: (.*))?$", report, re.MULTILINE):
        shown = bug["parameters"][int(number) - 1]
        problems += differences(f"{name}: parameter {number.decode()}", (shown["meaning"], shown["explanation"] or ""),
                                (meaning.decode(), explanation.decode()))
    first = re.search(r"Thread \S+, id (\d+)", report.decode())
    problems += differences(f"{name}: thread", story["thread"]["id"], int(first.group(1)) if first else story["thread"]["id"])
    problems += [] if any("main" in f["symbol"] for f in story["stack"]) or SANITIZED else [f"{name}: {story['stack']}"]
    for text in (bug["rule"], bug["look_at"]):
        problems += [] if text and text in story["explanation"] else [f"{name}: {text!r} is not in the paragraph"]
    return problems


def reports(tap):
    codes, kinds = known_codes()
    library = raised(codes)
    problems, count = [], 0
    for name, code in codes.items():
        for kind in kinds.get(name, [1]):
            problems += check_report(name, code, kind, name in library)
            count += 1
    problems += [] if len(library) >= 35 else [f"only {sorted(library)} are raised"]
    tap.case(f"{count} bugchecks and kinds of violation, with their parameters, rules and advice", problems)


def texts(tap):
    _, report = stop("0x1f", "0x1234", "0", "0", "0")
    text = report.decode()
    lines = text.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if "*** STOP" in line)
    shown = explain(report)
    problems = differences("status", shown.returncode, 0)
    for part in (b"SHARED_RESOURCE_CONV_ERROR", b"0x0000001F", b"holds a resource shared", b"resource", b"main"):
        problems += [] if part in shown.stdout else [f"{part!r} is not in {shown.stdout!r}"]
    tap.case("a report, for people", problems)

    logged = "".join(f"Nov 16 12:00:00 host service[77]: {line}" for line in ["hello\n", *lines])
    result = json.loads(explain(logged.encode(), "--json").stdout)
    tap.case("a report in a log, with the logger's words before each line",
             differences("name", result["bugcheck"]["name"], "SHARED_RESOURCE_CONV_ERROR") +
             ([] if any("main" in f["symbol"] for f in result["stack"]) or SANITIZED else [result["stack"]]))

    windows = b"*** STOP: 0x0000000A (0x0000000000000010,0x0000000000000002,0x0000000000000000,0xFFFFF80000000000)\n"
    for name, given, part in (
            ("nothing", b"", b"*** STOP"), ("a foreign text", b"Segmentation fault\n", b"*** STOP"),
            ("binary", bytes(range(256)) * 64, b"*** STOP"),
            ("a report that ends in its first line", lines[at][:40].encode(), b"truncated or damaged"),
            ("a code that is no number", b"*** STOP: 0xGG (0x1, 0x2, 0x3, 0x4)\n", b"truncated or damaged"),
            ("three parameters", b"*** STOP: 0x1F (0x1, 0x2, 0x3)\n", b"truncated or damaged"),
            ("a report of something else", windows + b"Collecting data for crash dump\nmore\n", b"not a report of Interlock")):
        result = explain(given)
        tap.case(f"refused: {name}", differences("status", result.returncode, 1) + differences("output", result.stdout, b"") +
                 ([] if part in result.stderr else [result.stderr]))
    short = json.loads(explain(lines[at].encode(), "--json").stdout)
    problems = differences("thread", short["thread"], None) + differences("stack", short["stack"], [])
    said = explain(lines[at].encode())
    problems += differences("status", said.returncode, 0) + ([] if b"ends before it" in said.stdout else [said.stdout])
    tap.case("a report that ends after its first line is explained as far as it goes", problems)
    hostile = explain(lines[at].encode() + "SHARED_RESOURCE_CONV_ERROR: \x1b]0;x\x07\u202e\n".encode() + b"\x9b\xff\n").stdout
    tap.case("what a terminal would obey is made visible", [] if b"\\x1b]0;x\\x07\\u202e" in hostile and b"\x1b" not in hostile
             else [hostile])
    problems = []
    for code in ("0", "0xdead"):
        status, report = stop(code, 1, 2, 3, 4)
        story = json.loads(explain(report, "--json").stdout)
        problems += differences("name", (status, story["bugcheck"]["name"]), (-signal.SIGABRT, None))
        problems += [] if "a code of its own" in story["explanation"] else [story["explanation"]]
    tap.case("a code of the program itself", problems)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(report)
        by_file = interlock("explain", path)
        problems = differences("status", by_file.returncode, 0) + ([] if "0x0000DEAD" in by_file.stdout else [by_file.stdout])
        for words, status in ((["--unknown"], 2), (["--help"], 0), ([f"{folder}/none"], 1), ([folder], 1), (["a", "b"], 2)):
            problems += differences(str(words), interlock("explain", *words).returncode, status)
        tap.case("a file; and how it is called", problems)


def makes_cores():
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
    return not SANITIZED and not pattern.startswith(("|", "/"))


def core_in(folder):
    """The only file in the folder."""
    return next(path for path in Path(folder).iterdir() if path.name.startswith("core"))


def cores(tap):
    if not makes_cores():
        print(f"ok {tap.count + 1} - core files # SKIP this host does not leave them beside the program, or this is a "
              "sanitizer's build")
        tap.count += 1
        return
    with tempfile.TemporaryDirectory() as folder:
        stop("segv", core=folder)
        result = interlock("explain", "--json", core_in(folder))
        story = json.loads(result.stdout or "{}")
        problems = differences("status", result.returncode, 0) + differences("cause", story.get("cause"), "signal")
        problems += differences("signal", story["signal"], {"number": 11, "name": "SIGSEGV", "address": "0x10"})
        problems += differences("thread", story["thread"]["name"], "crasher")
        problems += differences("owns", [lock["name"].split("!")[-1] for lock in story["thread"]["owns"]], ["ledger"])
        problems += [] if story["stack"][0]["symbol"].split("!")[1].startswith("crasher") else [story["stack"]]
        text = interlock("explain", core_in(folder)).stdout
        for part in ("SIGSEGV", "(crasher)", "pointer is NULL", "stop!ledger", "1 waits for it"):
            problems += [] if part in re.sub(r"\s+", " ", text) else [f"{part} is not in {text}"]
        tap.case("a core file of a crash: signal, thread, stack, locks", problems)
    with tempfile.TemporaryDirectory() as folder:
        _, report = stop("resource", core=folder)
        story = json.loads(interlock("explain", "--json", core_in(folder)).stdout)
        bug = story["bugcheck"]
        same = json.loads(explain(report, "--json").stdout)["bugcheck"]
        problems = differences("cause", story["cause"], "bugcheck")
        problems += differences("same as its report", [bug[k] for k in ("code", "name", "sentence", "rule")],
                                [same[k] for k in ("code", "name", "sentence", "rule")])
        problems += differences("values", [p["value"] for p in bug["parameters"]], [p["value"] for p in same["parameters"]])
        # the verifier has its own code for it, with other parameters
        said = [parameter["explanation"] or "" for parameter in bug["parameters"]]
        problems += [] if any("table" in one and "(holder)" in one for one in said) else [f"who holds it: {said}"]
        problems += differences("thread", story["thread"]["name"], "releaser")
        problems += [] if any("releaser" in f["symbol"] for f in story["stack"]) else [story["stack"]]
        tap.case("a core file of a bugcheck of the library: the same as its report, and who holds the lock", problems)
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder) # the process inherits it, and leaves its core file there
        with Program("resources", STATIC) as p:
            until(lambda: view("deadlocks", p.id), lambda found: len(found["deadlocks"]) == 1)
            resource.prlimit(p.id, resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
            os.kill(p.id, signal.SIGABRT)
            p.process.wait()
        os.chdir(before)
        result = interlock("explain", "--json", core_in(folder))
        story = json.loads(result.stdout)
        problems = differences("status", result.returncode, 3) + differences("signal", story["signal"]["name"], "SIGABRT")
        problems += differences("deadlocks", len(story["deadlocks"]), 1)
        problems += [] if "was deadlocked" in story["explanation"] else [story["explanation"]]
        tap.case("a core file of a deadlocked process that a watchdog has aborted", problems)


def processes(tap):
    with Program("resources", STATIC) as p:
        until(lambda: view("deadlocks", p.id), lambda found: len(found["deadlocks"]) == 1)
        result = interlock("explain", "--json", p.id)
        story = json.loads(result.stdout)
        text = interlock("explain", p.id)
        problems = differences("status", (result.returncode, text.returncode), (3, 3))
        problems += differences("cause", story["cause"], "deadlock")
        problems += [] if "can never end" in text.stdout and "held by thread" in text.stdout else [text.stdout]
        tap.case("a process that hangs", problems)
        if shutil.which("gcore") and not SANITIZED:
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run(["gcore", "-o", f"{folder}/core", str(p.id)], check=True, capture_output=True, timeout=PATIENCE)
                result = interlock("explain", "--json", f"{folder}/core.{p.id}")
                tap.case("a core file of gcore: no signal has ended it", differences(
                    "cause", (result.returncode, json.loads(result.stdout)["cause"]), (3, "deadlock")))
        with tempfile.TemporaryDirectory() as folder:
            interlock("snapshot", "-o", f"{folder}/snapshot", p.id)
            result = interlock("explain", "--json", f"{folder}/snapshot")
            tap.case("a snapshot", differences("cause", (result.returncode, json.loads(result.stdout)["cause"]), (3, "deadlock")))
    with Program("sleeping-owner", STATIC) as p:
        result = interlock("explain", "--json", p.id)
        story = json.loads(result.stdout)
        tap.case("a process without a fault", differences("cause", (result.returncode, story["cause"]), (0, "none")) +
                 ([] if "Nothing looks wrong" in story["explanation"] else [story["explanation"]]))


def main():
    tap = Tap()
    for cases in (reports, texts, cores, processes):
        try:
            cases(tap)
        except (AssertionError, KeyError, StopIteration, IndexError, TypeError, OSError, ValueError,
                subprocess.SubprocessError) as problem:
            tap.case(cases.__name__, [repr(problem)])
    tap.done()


main()
