"""usage: tour.py CHECKS SOURCE BUILD: walks through the tour, and checks that what it shows is correct.

Then again where the debugger and the lab are missing, where the debugger lacks permission, and where a program fails."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from tap import Tap  # noqa: E402

SOURCE, BUILD = map(Path, sys.argv[2:4])
PATIENCE = 240
MOST_EXPLAINED, MOST_SHOWN = 5, 35


class Stop:
    def __init__(self, text):
        title, rest = text.split("\n", 1)
        explanation, rest = re.split(r"^examples/(?:tour/)?", rest, maxsplit=1, flags=re.M)
        self.number, self.total, self.title = re.fullmatch(r"(\d+) of (\d+): (.*)", title).groups()
        self.name, self.output = rest.split(".c:\n\n", 1)
        self.explanation = explanation.splitlines()
        self.lines = self.output.rstrip().splitlines()


class Tour:
    def __init__(self, build):
        result = subprocess.run([SOURCE / "scripts/tour", build], stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, timeout=PATIENCE, check=False)
        self.status, self.errors = result.returncode, result.stderr
        self.text, _, self.end = result.stdout.partition("\nThat was the tour. Where to go next:\n")
        parts = re.split(r"^(?=\d+ of \d+: )", self.text, flags=re.M)
        self.stops = {s.name: s for s in map(Stop, parts[1:])}


def listed():
    """The names and the commands of the stops, in order."""
    lines = (SOURCE / "examples/tour/stops.txt").read_text().splitlines()
    return [line.split("|")[:2] for line in lines if line and not line.startswith("#")]


def expect(what, found, expected):
    return [] if found == expected else [f"{what}: {found!r} instead of {expected!r}"]


def whole(tour):
    problems = expect("status", tour.status, 0) + expect("errors", tour.errors, "")
    problems += expect("stops", list(tour.stops), [name for name, _ in listed()])
    problems += expect("numbers", [(s.number, s.total) for s in tour.stops.values()],
                       [(str(n + 1), str(len(tour.stops))) for n in range(len(tour.stops))])
    problems += expect("escapes", "\x1b" in tour.text, False)
    for stop in tour.stops.values():
        if not 1 <= len(stop.explanation) <= MOST_EXPLAINED or not 1 <= len(stop.lines) <= MOST_SHOWN:
            problems.append(f"{stop.name}: {len(stop.explanation)} lines explain {len(stop.lines)}")
    for place in re.findall(r"^  ([\w./]+)  ", tour.end, flags=re.M):
        if not (SOURCE / place).exists():
            problems.append(f"there is no {place}")
    return problems + expect("an end", bool(tour.end), True)


def lostupdate(output):
    found = [("".join(re.findall(r"\[(.)\]", line)), int(tail))
             for line, tail in re.findall(r"^(.*)tail = (\d)$", output, flags=re.M)]
    return expect("queues", found, [("    ", 0), ("A   ", 0), ("B   ", 0), ("B   ", 1), ("B   ", 2),
                                    ("    ", 0), ("AB  ", 2)])


def qlocks(output):
    rows = {line[:22].strip(): [line[22 + 4 * n:26 + 4 * n].strip() for n in range(4)]
            for line in output.splitlines() if re.match(r"[A-Z]+ +- ", line)}
    problems = expect("owner and line", sorted(rows.pop("IO   - Cancel")), ["", "1", "2", "O"])
    return problems + expect("other locks", {state for row in rows.values() for state in row}, {""})


def waiting(output):
    return [f"not shown: {wanted}" for wanted in (
        r"An event:\n  is set; its state before +0\n  a thread has gone through +not signaled again\n",
        r"  the next wait returns +0x80, STATUS_ABANDONED\n  the one after that +0, STATUS_SUCCESS\n",
        r"  acquired twice, the count is -1\n  released twice +1: free\n",
        r"  the first is set +signaled, not signaled: nothing is taken\n",
        r"  another thread may take it +not signaled, not signaled\n",
        r"  both are set +not signaled, not signaled: both are taken at once\n",
    ) if not re.search(wanted, output)]


def waitblocks(output):
    graph, blocks = output.split("$ interlock object ")
    waits = {}
    for line in graph.splitlines():
        if match := re.match(r"thread (\d+) \((.*?)\) ", line):
            waiter = match.groups()
        elif match := re.match(r"    \[(.*)\] -> event (0x\w+) \(\\BaseNamedObjects\\(\w+)\)$", line):
            waits.setdefault(waiter, []).append(match.groups())
    named = {name: (thread, waits[thread, name]) for thread, name in waits}
    first, (to_b,) = named.pop("thread 1")
    second, (to_a, also_to_b) = named.pop("thread 2")
    problems = expect("others that wait", named, {})
    problems += expect("of thread 1", to_b, ("WaitAny, 1 of 2", to_b[1], "B"))
    problems += expect("of thread 2", [to_a, also_to_b], [("WaitAll", to_a[1], "A"), ("WaitAll, 2 of 2", to_b[1], "B")])
    problems += expect("B", re.search(r"^0x\w+", blocks, flags=re.M).group(), to_b[1])
    found = re.findall(r"wait block \w+  (\w+), WaitBlockActive  thread (\d+) ", blocks)
    return problems + expect("the list of B", found, [("WaitAny", first), ("WaitAll", second)])


def suspend(output):
    found = re.findall(r"(Wait\w+) +wait blocks: first event (\d), second (\d)$", output, flags=re.M)
    problems = expect("states", found, [
        ("WaitCommitted", "1", "1"), ("WaitSuspended", "0", "0"), ("WaitSuspended", "0", "0"),
        ("WaitCommitted", "1", "0"), ("WaitCommitted", "0", "0")])
    problems += expect("events", re.findall(r"^  (?:set, )?resumed .*: (.*)$", output, flags=re.M), ["0, 0", "0"])
    return problems


def pushlock(output):
    bits = {1: "Locked", 2: "Waiting", 4: "Waking", 8: "MultipleShared"}
    found, problems = [], []
    for word, text in re.findall(r" ([0-9a-f]+)  (\S.*)$", output, flags=re.M):
        word = int(word, 16)
        names, _, sharers = text.partition(", ")
        decoded = " ".join(name for bit, name in bits.items() if word & bit) or "free"
        problems += expect(f"bits of {word:x}", names, decoded)
        count = int(sharers.split()[0]) if sharers else 0
        if not word & 2:
            problems += expect(f"sharers in {word:x}", count, word >> 4)
        found.append((word & 15, count))
    return problems + expect("states", found, [
        (0, 0), (1, 0), (1, 1), (1, 2), (11, 2), (11, 1), (11, 1), (6, 0), (7, 0), (6, 0), (3, 0), (1, 0), (0, 0)])


def srw(output):
    broken, library = output.split("$ interlock lab ")[1:]
    problems = expect("verdict", bool(re.search(r"^  FAILED: deadlock after [1-9]\d* schedules ", broken, flags=re.M)),
                      True)
    # The shortest one: b waits, a releases, c takes the lock that only looks free, b finds it taken and sleeps again.
    steps = re.findall(r"(sleeps, (?:word|inside) is \d|(?:cas|rmw)\S* \S+ word: 0x\d -> 0x\d)", broken.split("\n\n")[1])
    problems += expect("steps", [re.sub(r"(cas|rmw) \S+ ", r"\1 ", step) for step in steps],
                       ["cas word: 0x1 -> 0x3", "sleeps, word is 3", "rmw word: 0x3 -> 0x2", "cas word: 0x2 -> 0x3",
                        "sleeps, inside is 0", "sleeps, word is 3"])
    covered = re.search(r"^srw: \n  exhaustive, (\d+) schedules, \d+ pruned, 0 cut off, ", library, flags=re.M)
    return problems + ([] if covered and int(covered.group(1)) > 100 else [f"not exhaustive: {library}"])


def completionport(output):
    return expect("workers", [tuple(map(int, re.findall(r"\d+", line))) for line in output.splitlines() if line],
                  [(2,), (5, 20, 2), (5, 5)])


def deadlock(output):
    cycle = set(re.findall(r"thread (\d+) \((\w+)\) waits for resource \w+ \(tour-deadlock!(\w+)\)\n"
                           r" +held by thread (\d+) ", output))
    problems = expect("cycle", {(name, lock) for _, name, lock, _ in cycle},
                      {("transfer", "journal"), ("report", "accounts")})
    problems += expect("holders", {who for who, *_ in cycle}, {holder for *_, holder in cycle})
    held = re.findall(r"^Resource @ tour-deadlock!(\w+) .*Exclusively owned\n.*\n +Threads: \S+<\*> (\w+) ", output,
                      flags=re.M)
    return problems + expect("owners", dict(held), {"accounts": "transfer", "journal": "report"})


def cancel(output):
    lost, repaired = output.split("$ interlock lab ")[1:]
    problems = expect("verdict", bool(re.search(r"^  FAILED: deadlock after [1-9]\d* schedules ", lost, flags=re.M)), True)
    steps = re.findall(r"EchoReadLost|IoCancelIrp", lost.split("\n\n")[1])
    problems += expect("steps: canceled before the driver looks", steps[:1] + steps[-1:], ["IoCancelIrp", "EchoReadLost"])
    return problems + expect("repaired", bool(re.search(r"^  exhaustive, [1-9]\d+ schedules, ", repaired, flags=re.M)), True)


def port(output):
    return [f"not shown: {wanted}" for wanted in (
        r"  available +8 functions, +9 calls\n", r"  out of scope +2 functions, +2 calls +registry 2\n",
        r"    RegOpenKeyEx +port.c:11\n", r"  %ld and similar: .*\n +port.c:17\n") if not re.search(wanted, output)]


def processes(output):
    return expect("told", re.findall(r"waits that returned WAIT_ABANDONED: (\d+)", output), ["1"]) + expect(
        "name", "the name is gone" in output, True)


CHECKS = {check.__name__: check for check in (lostupdate, qlocks, waiting, waitblocks, suspend, pushlock, srw,
                                              completionport, deadlock, processes, cancel, port)}


def check(tour, name, shown=None):
    """The check of this stop, on its own output or on that of another stop."""
    try:
        return CHECKS[name.split("/")[-1]](tour.stops[shown or name].output)
    except (AttributeError, IndexError, KeyError, ValueError) as error:
        return [f"{error!r} in", tour.stops[name].output if name in tour.stops else tour.text]


def accepts_another(tour):
    return [f"{name} is content with {other}" for name in tour.stops for other in tour.stops
            if name != other and not check(tour, name, shown=other)]


def with_command(folder, script, lab=False):
    """A build directory with this program in place of the command interlock."""
    command = Path(folder) / "tools/interlock/interlock"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    (Path(folder) / "examples").symlink_to(BUILD / "examples")
    if lab:
        (Path(folder) / "lab").symlink_to(BUILD / "lab")
    return folder


def without_tools(tour):
    problems = expect("status", tour.status, 0) + expect("an end", bool(tour.end), True)
    for name, commands in listed():
        needs = "lab" if "interlock lab" in commands else "debugger" if "PID" in commands else None
        said = re.match(r"This needs the (\w+), .*It was not built", tour.stops[name].output)
        problems += expect(f"what {name} lacks", said and said.group(1), needs)
        problems += check(tour, name) if needs is None else []
    return problems


def without_right(tour):
    problems = expect("status", tour.status, 0) + expect("an end", bool(tour.end), True)
    for name, commands in listed():
        problems += expect(f"{name} says so", "may not inspect processes" in tour.stops[name].output,
                           "PID" in commands)
    return problems


def with_programs(folder, script):
    """A build directory whose programs are all this one."""
    for name in (name for name, commands in listed() if not commands or "PID" in commands):
        program = Path(folder) / f"examples/tour/tour-{name}"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    for part in ("tools", "lab"):
        (Path(folder) / part).symlink_to(BUILD / part)
    return folder


def failed(tour, name, how):
    # Before it, bash may complain about the pipe that closed with the program.
    said = re.sub(r" \S*/tour-", " tour-", (tour.errors.splitlines() or [""])[-1])
    return expect("status", tour.status, 1) + expect("end", tour.end, "") + expect(
        "errors", said, f"The tour stops here: tour-{name} {how}.")


def main():
    tap = Tap()
    tour = Tour(BUILD)
    tap.case("the whole tour", whole(tour))
    for name, _ in listed():
        tap.case(name, check(tour, name))
    tap.case("each stop is checked", expect("checks", list(CHECKS), [name.split("/")[-1] for name, _ in listed()]))
    tap.case("each check can fail", accepts_another(tour))
    with tempfile.TemporaryDirectory() as folder:
        limited = f'case $1 in port) exec {BUILD}/tools/interlock/interlock "$@";; *) echo "  lab  ";; esac'
        tap.case("without debugger and lab", without_tools(Tour(with_command(folder, limited))))
    with tempfile.TemporaryDirectory() as folder:
        refused = f'case $1 in --help|lab|port) exec {BUILD}/tools/interlock/interlock "$@";; *) exit 1;; esac'
        tap.case("where nobody may look", without_right(Tour(with_command(folder, refused, lab=True))))
    with tempfile.TemporaryDirectory() as folder:
        tap.case("a program that fails", failed(Tour(with_programs(folder, "exit 3")), "lostupdate",
                                                "ended with status 3"))
    with tempfile.TemporaryDirectory() as folder:
        gone = 'case $0 in *tour-qlocks) exit 3;; esac'
        tap.case("a program that cannot be looked at", failed(Tour(with_programs(folder, gone)), "qlocks",
                                                              "is not ready to be inspected"))
    tap.done()


main()
