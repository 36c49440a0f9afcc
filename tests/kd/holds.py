#!/usr/bin/env python3
"""`interlock contention` shows which stacks held locks while others waited, in programs whose holds are known: as a table,
as JSON, as a flame graph; for a command, a process, a snapshot, a core file. No check depends on durations.

usage: holds.py CHECKS INTERLOCK STATIC SHARED HELD [view] [sanitized]"""

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from kdtest import INTERLOCK, SANITIZED, Program, Tap, View, differences, interlock, number, until

HELD = os.path.abspath(sys.argv[5])
WITH_VIEW = "view" in sys.argv[6:]
PATIENCE = 120
SVG = "{http://www.w3.org/2000/svg}"
SETTINGS = {"INTERLOCK_PROCESSORS": "4", "ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "report_thread_leaks=0"}


def run(words, folder, **settings):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    return subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
                          check=False, env={**environment, **SETTINGS, **settings})


def functions(stack):
    return [frame["symbol"].split("!")[-1].split("+")[0] for frame in stack["stack"]]


class Report:
    """The report on a scenario of HELD that the command itself runs."""

    def __init__(self, folder, *scenario, **settings):
        self.result = run([INTERLOCK, "contention", "--json", "-o", "report", "--top", 100, "--flame", "flame.svg",
                           "--folded", "folded", "--", HELD, *scenario], folder, **settings)
        self.said = {name: int(value, 0) for name, value in (line.split() for line in self.result.stdout.splitlines())}
        self.process, = json.loads((Path(folder) / "report").read_text("utf-8"))["processes"]
        self.folder = Path(folder)

    def lock(self, name, kind=None):
        found = [lock for lock in self.process["locks"] if number(lock["address"]) == self.said[name]
                 and (kind is None or lock["kind"] == kind)]
        return found[0] if found else {"holds": {"count": 0}, "holders": [], "stacks": []}

    def holds(self, name, kind=None):
        """(which of our functions released, exclusive, how often), in any order."""
        found = collections.Counter()
        for h in self.lock(name, kind)["holders"]:
            found[next((f for f in functions(h) if f in OPERATIONS), "?"), h["exclusive"]] += h["count"]
        return sorted((*key, count) for key, count in found.items())

    def inconsistencies(self):
        problems = differences("exit", self.result.returncode, 0) + differences("dropped", self.process["dropped"], 0)
        for lock in self.process["locks"]:
            holds = lock["holds"]
            what = f"{lock['kind']} {lock['name']}"
            for parts, key in ((lock["holders"], "holds"), (lock["stacks"], "waits")):
                whole = holds if key == "holds" else lock
                problems += differences(f"{what}: {key}", sum(p["count"] for p in parts), whole["count"])
                for figures in (whole, *parts):
                    order = [0, figures["p50"], figures["p90"], figures["p99"], figures["longest"], figures["seconds"] + 1e-9]
                    if order != sorted(order):
                        problems.append(f"{what}: {order} are in no order")
            # Each moment of a wait counts for at most one hold, and a hold always has at least one waiter.
            if lock["waiting"] == 0 and holds["blocked"] > lock["seconds"] + 1e-6:
                problems.append(f"{what}: others waited {holds['blocked']} s, all waits together {lock['seconds']} s")
            shared = [h for h in lock["holders"] if not h["exclusive"]]
            if not shared and holds["blocked"] < holds["seconds"] - 1e-6:
                problems.append(f"{what}: held for {holds['seconds']} s, while others waited {holds['blocked']} s")
        return problems


OPERATIONS = {"hold_shortly", "hold_long", "leave_section", "disown_srw", "unshare_srw", "convert_srw", "disown_mutant",
              "release_resource", "convert_resource", "release_rtl_resource", "release_for_owner_pointer"}


def order(tap, folder):
    report = Report(folder, "order")
    lock = report.lock("section")
    tap.case("order: each release that others waited for, by the function that held",
             report.inconsistencies()
             + differences("holds", report.holds("section"), [("hold_long", True, 2), ("hold_shortly", True, 5)]))
    first = lock["holders"][0]
    tap.case("order: the thread that kept others waiting longest comes first",
             differences("first", "hold_long" in functions(first), True)
             + differences("thread", (first["last_thread"], lock["holds"]["last_thread"]), (report.said["process"],) * 2)
             + ([] if lock["holds"]["longest"] == first["longest"] >= first["p50"] >= 0.020 else [lock["holds"], first]))


def several_waiters(tap, folder):
    report = Report(folder, "crowd")
    lock = report.lock("section")
    first = next(h for h in lock["holders"] if report.said["process"] == h["last_thread"])
    tap.case("crowd: what several waiters wait adds up",
             report.inconsistencies() + ([] if first["blocked"] > first["seconds"] >= 0.005 else [first]))


def kinds(tap, folder):
    report = Report(folder, "sharers")
    sharers = 3
    tap.case("sharers: each of an SRW lock, the last of a resource",
             report.inconsistencies()
             + differences("srw", report.holds("srw"), [("unshare_srw", False, sharers)])
             + differences("resource", report.holds("resource"), [("release_resource", False, 1)])
             + differences("rtl resource", report.holds("rtl_resource", "rtl_resource"),
                           [("release_rtl_resource", False, 1)]))
    report = Report(folder, "recursion")
    tap.case("recursion: one hold, which ends with the last release",
             report.inconsistencies()
             + differences("section", report.holds("section"), [("leave_section", True, 1)])
             + differences("mutant", report.holds("mutant"), [("disown_mutant", True, 1)])
             + differences("resource", report.holds("resource"), [("release_resource", True, 1)])
             + differences("rtl resource", report.holds("rtl_resource", "rtl_resource"),
                           [("release_rtl_resource", True, 1)]))
    report = Report(folder, "convert")
    tap.case("convert: to shared, for waiting sharers",
             report.inconsistencies()
             + differences("srw", report.holds("srw"), [("convert_srw", True, 1)])
             + differences("resource", report.holds("resource"), [("convert_resource", True, 1)]))


def owners(tap, folder):
    report = Report(folder, "dead")
    lock = report.lock("mutant")
    tap.case("a holder that ends: its hold, under its id",
             report.inconsistencies()
             + differences("holds", [(h["count"], h["last_thread"]) for h in lock["holders"]], [(1, report.said["holder"])])
             + differences("stack", any("KiAbandonMutants" in functions(h) for h in lock["holders"]), True))
    report = Report(folder, "pointer")
    lock = report.lock("resource")
    tap.case("an owner pointer: the thread that released, and where",
             report.inconsistencies()
             + differences("holds", report.holds("resource"), [("release_for_owner_pointer", True, 1)])
             + differences("thread", lock["holds"]["last_thread"], report.said["releaser"]))
    report = Report(folder, "leave")
    mutant, section = report.lock("mutant"), report.lock("section")
    tap.case("waiters that give up or are terminated wait no longer, and no hold counts for them",
             report.inconsistencies()
             + differences("mutant", (mutant["count"], mutant["waiting"], mutant["holds"]["count"]), (1, 0, 0))
             + differences("section", (section["count"], section["waiting"], section["holds"]["count"]), (1, 0, 0)))


def given_up(tap, folder):
    report = Report(folder, "given-up", INTERLOCK_CRITICAL_SECTION_TIMEOUT="1")
    section = report.lock("section")
    tap.case("a wait for a section that raised: it is over, and nobody held for it",
             report.inconsistencies() + differences("raised", report.said.get("raised"), 0xc0000194)
             + differences("section", (section.get("count"), section.get("waiting"), section["holds"]["count"]), (1, 0, 0)))


def forked(tap, folder):
    result = run([HELD, "forks"], folder, INTERLOCK_CONTENTION="own.contention")
    left = sorted(p.name for p in Path(folder).iterdir())
    report = Report(folder, "forks")
    tap.case("forks: a child that becomes another program leaves nothing, even if threads waited",
             differences("exit", result.returncode, 0) + differences("files", left, ["own.contention"])
             + report.inconsistencies() + differences("holds", report.holds("section"), [("leave_section", True, 1)]))


def text(tap, folder):
    result = run([INTERLOCK, "contention", "--", HELD, "order"], folder)
    problems = differences("exit", result.returncode, 0)
    time = r"\d+(\.\d+)? (s|ms|us|ns)"
    for wanted in (r" +TIMES +TOTAL +P50 +P90 +P99 +LONGEST", rf" +waited +7( +{time}){{5}}", rf" +held +7( +{time}){{5}}",
                   rf" +held exclusively: 2 times, {time}, p50 {time}, p99 {time}, at most {time}, last by thread \d+; "
                   rf"others waited {time}", r" +[0-9a-f]+ .*!hold_long\+0x[0-9a-f]+( \[.* @ \d+\])?"):
        if not any(re.fullmatch(wanted, line) for line in result.stderr.splitlines()):
            problems.append(f"no line like {wanted} in {result.stderr}")
    tap.case("table: for people", problems)


def flame(tap, folder):
    report = Report(folder, "order", "recursion")
    root = ElementTree.parse(report.folder / "flame.svg").getroot()
    titles = {group.get("class"): [t.text for t in group.iter(SVG + "title")] for group in root.iter(SVG + "g")
              if group.get("class")}
    problems = differences("root", root.tag, SVG + "svg")
    for part, function in (("held", "hold_long"), ("held", "hold_shortly"), ("waited", "enter_section")):
        if not any(re.fullmatch(rf"\S*!{function}\n\d+\.\d+ s, \d+\.\d %, \d+ times", t) for t in titles[part]):
            problems.append(f"no {function} among {titles[part]}")
    outside = [e.tag for e in root.iter() if any(name.endswith("href") for name in e.attrib) or e.tag == SVG + "script"]
    right = max(float(r.get("x", 0)) + float(r.get("width")) for r in root.iter(SVG + "rect") if "%" not in r.get("width"))
    tap.case("flame graph: well-formed, with a title for every box, and nothing from elsewhere",
             problems + differences("references", outside, []) + ([] if right <= 1220 else [f"a box ends at {right}"]))
    lines = [re.fullmatch(r"(held|waited);([^;]+, process \d+);([^;]+);(.*) (\d+)", line)
             for line in (report.folder / "folded").read_text("utf-8").splitlines()]
    problems = [] if lines and all(lines) else [(report.folder / "folded").read_text("utf-8")]
    for part, whole in (("held", sum(l["holds"]["blocked"] for l in report.process["locks"])),
                        ("waited", sum(l["seconds"] for l in report.process["locks"]))):
        total = sum(int(line[5]) for line in lines if line[1] == part) / 1e9
        if abs(total - whole) > 1e-4:
            problems.append(f"{part}: {total} s in all lines, {whole} s in JSON")
    if not any(line[1] == "held" and re.search(r"main;.*hold_long", line[4]) for line in lines):
        problems.append("hold_long is not below main")
    tap.case("folded stacks: outermost first, and their sums", problems)
    for option in ("--flame", "--folded"):
        result = run([INTERLOCK, "contention", option, "no/folder", "--", HELD, "crowd"], folder)
        tap.case(f"{option}: a file that cannot be written",
                 differences("exit", result.returncode, 1)
                 + ([] if "cannot write no/folder" in result.stderr else [result.stderr]))


def rubbish(tap, folder):
    """Whatever the table says, the output is well-formed."""
    folder = Path(folder)
    run([HELD, "order", "sharers"], folder, INTERLOCK_CONTENTION="whole")
    whole = (folder / "whole").read_bytes()
    for step in (3, 7, 61, 1021):
        scrambled = bytearray(whole)
        for i in range(260 * 1024, len(scrambled), step):
            scrambled[i] ^= 0xa5 if scrambled[i] else 0
        for i in range(260 * 1024 + step % 50, len(scrambled), step * 11):
            scrambled[i] ^= 0x5a
        for i in range(260 * 1024, len(scrambled), 768): # ready, whatever the other bytes are
            scrambled[i:i + 4] = b"\2\0\0\0"
            scrambled[i + 4] %= 9
            scrambled[i + 5] &= 1
            scrambled[i + 6] %= 25
            scrambled[i + 7] &= 1
        (folder / "scrambled").write_bytes(scrambled)
        result = run([INTERLOCK, "contention", "--json", "-o", "report", "--flame", "flame.svg", "--folded", "folded",
                      "--read", "scrambled"], folder)
        json.loads((folder / "report").read_text("utf-8"))
        ElementTree.parse(folder / "flame.svg")
        (folder / "folded").read_text("utf-8")
        tap.case(f"rubbish in every {step}th byte", differences("exit", result.returncode, 0))


def of_section(found, p):
    return [lock for process in found["processes"] for lock in process["locks"]
            if number(lock["address"]) == p.section and lock["holds"]["count"] > 0]


def attached(tap, folder):
    """A running process, and what a snapshot, a core file and the page find in it meanwhile."""
    with Program("busy", HELD) as p:
        for round_ in (1, 2):
            found = until(lambda: json.loads(interlock("contention", "--json", "--seconds", "0.5", p.id).stderr),
                          lambda f: of_section(f, p))
            tap.case(f"attached: holds, time {round_}",
                     [] if of_section(found, p) and all("leave_section" in functions(h) for l in of_section(found, p)
                                                        for h in l["holders"]) else [found])
        with View(p.id) if WITH_VIEW else tempfile.TemporaryDirectory() as page, \
                subprocess.Popen([INTERLOCK, "contention", "--json", "-o", f"{folder}/report", str(p.id)],
                                 stderr=subprocess.PIPE, text=True) as command:
            command.stderr.readline() # prints that it records
            taken = Path(folder) / "snapshot"
            core = Path(folder) / "core"

            def of_snapshot():
                interlock("snapshot", "-o", taken, p.id)
                result = interlock("contention", "--json", taken)
                return json.loads(result.stderr) if result.returncode == 0 else {"processes": [], "said": result.stderr}
            found = until(of_snapshot, lambda f: of_section(f, p))
            tap.case("a snapshot has what was recorded until then",
                     [] if of_section(found, p) and "leave_section" in functions(of_section(found, p)[0]["holders"][0])
                     else [found])
            if WITH_VIEW:
                found = until(lambda: page.api("contention"), lambda f: of_section(f, p))
                tap.case("the page has what was recorded until now",
                         [] if found["recording"] and of_section(found, p) else [found])
            if shutil.which("gdb") and not SANITIZED:
                subprocess.run(["gdb", "-q", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", str(p.id),
                                "-ex", f"gcore {core}"], capture_output=True, timeout=PATIENCE, check=False)
                result = interlock("contention", "--json", core)
                found = json.loads(result.stderr) if result.returncode == 0 else {"processes": [], "said": result.stderr}
                tap.case("a core file has it too", [] if of_section(found, p) else [found])
            command.send_signal(signal.SIGINT)
            command.stderr.read()
    with Program("healthy") as p:
        interlock("snapshot", "-o", Path(folder) / "unrecorded", p.id)
        result = interlock("contention", Path(folder) / "unrecorded")
        tap.case("a snapshot of a process that was not recorded",
                 differences("exit", result.returncode, 1)
                 + ([] if "no recording of contention" in result.stderr else [result.stderr]))
        if WITH_VIEW:
            with View(p.id) as page:
                found = page.api("contention")
            tap.case("the page, of a process that is not recorded",
                     differences("answer", (found["recording"], found["processes"]), (False, [])))


def main():
    tap = Tap()
    for cases in (order, several_waiters, kinds, owners, given_up, forked, text, flame, rubbish, attached):
        with tempfile.TemporaryDirectory() as folder:
            try:
                cases(tap, folder)
            except (AssertionError, AttributeError, KeyError, StopIteration, IndexError, TypeError, ValueError, OSError,
                    ElementTree.ParseError, subprocess.SubprocessError) as problem:
                tap.case(cases.__name__, [repr(problem)])
    tap.done()


main()
