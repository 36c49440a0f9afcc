"""The log of a run of Meson's tests, by test case."""

import json
import re

LOG_LINES = 200


def count_cases(entry):
    """(passed, failed, skipped) of one test program."""
    good = entry["result"] in ("OK", "EXPECTEDFAIL", "SKIP")
    output = entry.get("stdout", "")
    plan = re.search(r"^1\.\.(\d+)", output, re.M)
    if not plan:
        if entry["result"] == "SKIP":
            return 0, 0, 1
        return (1, 0, 0) if good else (0, 1, 0)
    lines = re.findall(r"^(not ok|ok)\b(.*)$", output, re.M)
    # cmocka writes "not ok" for a skipped case, and Meson believes it.
    skipped = sum(1 for _, rest in lines if re.search(r"# *skip", rest, re.I))
    passed = sum(1 for kind, rest in lines
                 if kind == "ok" and not re.search(r"# *skip", rest, re.I))
    # A planned case without a result was lost in a crash.
    failed = max(int(plan.group(1)), len(lines)) - passed - skipped
    if failed == 0 and not good and not (skipped and entry["returncode"] == 0):
        failed = 1
    return passed, failed, skipped


def show_failure(configuration, directory, entry):
    print(f"--- {configuration}: {entry['name']}: {entry['result']}")
    for stream in ("stdout", "stderr"):
        lines = [line for line in entry.get(stream, "").splitlines()
                 if not re.match(r"ok \d+", line)]
        if len(lines) > LOG_LINES:
            print(f"... {len(lines) - LOG_LINES} more lines in {directory}/meson-logs")
        print("\n".join(lines[-LOG_LINES:]))


class Excuses:
    """Cases that a host cannot pass, from lines "PROGRAM CASE REASON"; CASE * is for programs not to be run."""

    def __init__(self, path):
        words = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
        self.programs = {program for program, case, _ in words if case == "*"}
        self.cases = {(program, case) for program, case, _ in words if case != "*"}
        self.used = set()

    def excuse(self, entry, counts):
        """The counts of a program without excused failures."""
        passed, failed, skipped = counts
        program = entry["name"].split(" / ")[-1]
        names = {(program, name) for name in re.findall(r"^not ok \d+ - (\w+)", entry.get("stdout", ""), re.M)}
        excused = names & self.cases
        self.used |= excused
        return passed, failed - len(excused), skipped + len(excused)

    def unused(self):
        return sorted(self.cases - self.used)


class Results:
    """The results of the tests of one build directory; there are no entries if none ran."""

    def __init__(self, configuration, directory, excuses=None, log="testlog"):
        self.configuration, self.directory = configuration, directory
        path = directory / "meson-logs" / f"{log}.json"
        self.entries = [json.loads(line) for line in path.open()] if path.exists() else []
        self.counts = [count_cases(entry) for entry in self.entries]
        if excuses:
            self.counts = [excuses.excuse(*pair) for pair in zip(self.entries, self.counts)]
        self.passed, self.failed, self.skipped = (sum(column) for column in zip(*self.counts, (0, 0, 0)))

    def show_failures(self):
        for entry, (_, wrong, _) in zip(self.entries, self.counts):
            if wrong:
                show_failure(self.configuration, self.directory, entry)

    def suites(self):
        """{suite: seconds that its programs ran}"""
        suites = {}
        for entry in self.entries:
            suite = entry["name"].split(" / ")[0].split(":")[-1]
            suites[suite] = suites.get(suite, 0) + entry["duration"]
        return suites

    def costs(self):
        """Seconds of each suite, and the slowest programs, as text."""
        slowest = sorted(self.entries, key=lambda entry: -entry["duration"])[:5]
        yield ", ".join(f"{name} {seconds:.0f} s"
                        for name, seconds in sorted(self.suites().items(), key=lambda one: -one[1]))
        yield "longest: " + ", ".join(f"{entry['name'].split(' / ')[-1]} {entry['duration']:.0f} s" for entry in slowest)

    def processor_costs(self, folder):
        """The costs in seconds of processors, from the files of scripts/testcost in folder."""
        spent = {}
        for path in folder.iterdir():
            # A command, the times of the shell, those of the command: each "0m1.25s 0m0.50s".
            for command, _, times in zip(*[iter(path.read_text().splitlines())] * 3):
                spent[command] = spent.get(command, 0) + sum(
                    60 * int(minutes) + float(seconds) for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", times))
        names = {" ".join(entry["command"]).split(f"{folder} ", 1)[-1]: entry["name"] for entry in self.entries}
        suites, tests = {}, {}
        for command, seconds in spent.items():
            suite, name = names.get(command, "unknown / unknown").split(" / ", 1)
            suites[suite.split(":")[-1]] = suites.get(suite.split(":")[-1], 0) + seconds
            tests[name] = tests.get(name, 0) + seconds
        for title, costs in (("processors", suites), ("most expensive", tests)):
            most = sorted(costs.items(), key=lambda one: -one[1])[:12]
            yield f"{title}: " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in most)

    @staticmethod
    def forget(directory, log="testlog"):
        (directory / "meson-logs" / f"{log}.json").unlink(missing_ok=True)
