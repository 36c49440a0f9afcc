"""The unit tests, built with changed source files of the library, and run, case by case."""

import json
import os
import re
import resource
import select
import signal
import subprocess
import time
from pathlib import Path

import explorer

ROOMS = ("ke", "ex", "wo", "ob", "ps", "io", "nt", "rtl", "win32", "stress", "surface")
LIBRARY = ("src/libinterlock-fast.a.p/", "src/libinterlock.so.")
LEAST, TIMES = 2, 5  # a case hangs if it takes longer than LEAST seconds and TIMES what it takes without a change
MEMORY = 4 << 30
ROUNDS = "2%"  # of the rounds of stress tests
HELPERS = ("reach", "cases")


def find(directory, pattern=""):
    """{test: (target, environment)} of a build directory, for tests whose names match pattern"""
    listing = subprocess.run(["meson", "introspect", "--tests", directory], check=True, capture_output=True, text=True).stdout
    found = {}
    for test in json.loads(listing):
        match = re.fullmatch(r"(?:.*/)?(tests/(?:\w+/)?[\w-]+)", test["cmd"][0])
        room = test["name"].split("/")[0]
        # A program may be run with several settings. Stress tests do not need that here.
        again = room == "stress" and match and match.group(1) in {target for target, _ in found.values()}
        if match and len(test["cmd"]) == 1 and room in ROOMS and re.search(pattern, test["name"]) and not again:
            found[test["name"]] = match.group(1), test["env"]
    return found


class Clock:
    """Time that passes for a process group while the check runs: not while its threads wait for a processor, and not while the
    machine sleeps, or something has stopped all of it."""

    STEP = 0.1

    def __init__(self, group):
        self.group = group
        self.last = time.monotonic()
        self.seen = {}

    def usage(self):
        """Yields (thread, nanoseconds on a processor, nanoseconds that it waited for one)."""
        for process in filter(str.isdecimal, os.listdir("/proc")):
            try:
                if os.getpgid(int(process)) == self.group:
                    for thread in Path(f"/proc/{process}/task").iterdir():
                        ran, waited, _ = (thread / "schedstat").read_text().split()
                        yield thread.name, int(ran), int(waited)
            except OSError:  # it has ended
                continue

    def passed(self):
        now = time.monotonic()
        took, self.last = min(now - self.last, 2 * self.STEP), now
        ran = waited = 0
        for thread, *usage in self.usage():
            before = self.seen.get(thread, (0, 0))
            self.seen[thread] = usage
            ran = max(ran, (usage[0] - before[0]) / 1e9)
            waited = max(waited, (usage[1] - before[1]) / 1e9)
        return max(took - waited, min(ran, took))


class Tests:
    """The test programs of a build directory, and what each case of them reaches."""

    def __init__(self, root, directory, pattern=""):
        found = find(directory, pattern)
        self.environments = {name: environment for name, (_, environment) in found.items()}
        self.targets = {name: target for name, (target, _) in found.items()}
        self.build = explorer.Build(root, directory, LIBRARY, self.targets)

    def run(self, program, name, limits, environment=None, seen=None):
        """
        None, or (case, why it failed). limits: [(case, seconds)] of the cases to run, or [] for all of them. Stops at the first
        failure. seen: gets (duration, result of cmocka) of each case.
        """
        variables = {**(environment or os.environ), **self.environments[name], "INTERLOCK_STRESS_ROUNDS": ROUNDS}
        if limits:
            variables["MUTATION_CASES"] = "".join(f",{case}," for case, _ in limits)
        process = subprocess.Popen([program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                   preexec_fn=limit, env=variables)
        try:
            return self.follow(process, limits or [(case, 60) for case in range(explorer.CASES)], [] if seen is None else seen,
                               len(limits))
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            process.stdout.close()

    def follow(self, process, limits, seen, expected):
        """expected: the number of results of a program that plans its cases. One that ends the process early has failed."""
        clock, took, rest, status, planned = Clock(process.pid), 0, b"", None, False
        os.set_blocking(process.stdout.fileno(), False)
        while True:
            select.select([process.stdout], [], [], Clock.STEP)
            ended = process.poll() is not None
            text = process.stdout.read() or b""
            *lines, rest = (rest + text).split(b"\n")
            took += clock.passed()
            for line in lines:
                planned |= re.match(rb"1\.\.\d+", line) is not None
                result = re.match(rb"(not )?ok \d+ -? ?(# SKIP )?(\w*)", line)
                if result:
                    if result.group(1):
                        return limits[min(len(seen), len(limits) - 1)][0], f"{result.group(3).decode()} fails"
                    seen.append((took, result.group(3).decode()))
                    took = 0
            case, seconds = limits[min(len(seen), len(limits) - 1)]
            if ended:
                status = process.returncode
                if status == 0 and planned and len(seen) < expected:
                    return case, "ends the process"
                return None if status in (0, 77) else (case, f"status {status}")
            if took > seconds:
                return case, "hangs"

    def reached(self, counting, folder, names, map_jobs):
        """{test: [(name of the case, seconds, marks)]}. A program that is not of cmocka is one case."""

        def measure(name):
            program, seen = counting.program(name), []
            if program is None:
                return name, None
            failure, took, marks = explorer.marks_of(
                folder / f"marks-{name.replace('/', '-')}", lambda environment: self.run(program, name, [], environment, seen))
            outside = marks.pop(0, 0)
            if failure is not None:
                print(f"mutate: {name} fails without any change: {failure[1]}; it is left out", flush=True)
                return name, None
            return name, ([(text, seconds, marks.get(number, 0) | outside) for number, (seconds, text) in enumerate(seen, 1)]
                          if marks else [("", took, outside)])

        return dict(map_jobs(measure, names))


def limit():
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
