"""Race detectors on a program that uses the installed library: silent where it is correct, and only there."""

import re
import shlex
import shutil
import subprocess

# One for each function use_... of install/races.c.
PRIMITIVES = 12
# The races of the program are between two threads at DISPATCH_LEVEL.
SETTINGS = {"INTERLOCK_PROCESSORS": "2"}


def fixed_addresses():
    """A prefix that turns off address randomisation, which older sanitizers cannot always handle."""
    prefix = ["setarch", "-R"]
    works = shutil.which("setarch") and subprocess.run([*prefix, "true"], capture_output=True).returncode == 0
    return prefix if works else []


# How to run a program under each, and the text that marks a report.
DETECTORS = {
    "interlock-tsan": (fixed_addresses(), r"WARNING: ThreadSanitizer"),
    "interlock-helgrind": (["valgrind", "--tool=helgrind"], r"Possible data race"),
}


def build(package, source, target, environment):
    """Problems with compiling it as a user does, in two steps."""
    for command in (["gcc", "-c", source, "-o", f"{target}.o"], ["gcc", f"{target}.o", "-o", target]):
        flags = subprocess.run(["pkg-config", "--cflags" if "-c" in command else "--libs", package], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
        if flags.returncode != 0:
            return [flags.stdout]
        result = subprocess.run([*map(str, command), *shlex.split(flags.stdout)], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
        if result.returncode != 0:
            return [result.stdout]
    return []


class Run:
    """What the detector printed for one run of the program."""

    def __init__(self, package, target, environment, *arguments):
        prefix, report = DETECTORS[package]
        self.said = subprocess.run([*prefix, target, *arguments], text=True, errors="replace", stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, env={**environment, **SETTINGS}).stdout
        self.complete = len(re.findall(r"^used ", self.said, re.M)) == PRIMITIVES
        self.reports = len(re.findall(report, self.said))
        # The functions that accessed the memory of a report.
        self.functions = set(re.findall(r"^(?:==\d+==)?\s+(?:#0|at 0x\w+:) (use_\w+) ", self.said, re.M))


def cases(tap, source, folder, pkgconfig, environment):
    for package in DETECTORS:
        if package == "interlock-helgrind" and not shutil.which("valgrind"):
            tap.note("valgrind is not installed: interlock-helgrind is not tested")
            continue
        target = folder / package
        problems = build(package, source, target, pkgconfig)
        tap.case(f"a program is built by pkg-config {package}", problems)
        if problems:
            continue
        right, wrong = Run(package, target, environment), Run(package, target, environment, "race")
        tap.case(f"{package}: no report of a correct program",
                 [] if right.complete and not right.reports else [right.said])
        tap.case(f"{package}: a race under each primitive is reported",
                 [] if wrong.complete and len(wrong.functions) == PRIMITIVES else [wrong.said])
