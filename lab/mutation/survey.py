"""
The survey: mutants of whole folders, tried by the unit tests and by the explorer's scenarios. The result of each is kept
in a file, so an interrupted survey continues, and a larger sample adds to a smaller one.
"""

import hashlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import explorer
import mutants
import unit

ROOMS = ("ke", "ex", "rtl", "nt")
SCHEDULES = 400
RANDOM = 200  # random schedules that show which functions a scenario reaches
SCENARIOS = 16  # that are tried for a mutant, of those that reach the changed function
TESTS = 8
SLOW = 5  # seconds: longer tests are left out


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def find_sources(root):
    return {str(path.relative_to(root)): path.read_text()
            for room in ROOMS for path in sorted((root / "src" / room).glob("*.[ch]"))}


def sample(every, number):
    """The same mutants each time, and among them those of every smaller sample."""
    ordered = sorted(every, key=lambda mutant: digest("|".join(mutant.key)))
    return ordered[:number] if number else ordered


class Results:
    """A line for each mutant that was tried: JSON with its key, the text of its file, and its result."""

    def __init__(self, path):
        self.path = Path(path)
        self.known = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                entry = json.loads(line)
                self.known[tuple(entry["key"])] = entry

    def find(self, mutant, source):
        entry = self.known.get(mutant.key)
        return entry if entry is not None and entry["source"] == digest(source) else None

    def add(self, mutant, source, outcome, lab, tests):
        entry = {"key": mutant.key, "source": digest(source), "outcome": outcome, "lab": lab, "unit": tests}
        self.known[mutant.key] = entry
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")


class Survey:
    def __init__(self, root, directory, folder, jobs):
        self.root = root
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.sources = find_sources(root)
        self.lab = explorer.Build(root, directory)
        self.options = self.lab.options()
        self.tests = unit.Tests(root, directory)
        self.jobs = jobs
        self.pool = ThreadPoolExecutor(jobs)
        self.local = threading.local()
        self.lock = threading.Lock()
        self.shops = 0
        self.killers = {}
        self.failing = {}  # {(scenario, model): does it fail without any change?}

    def find_reached(self):
        """What reaches each function: measured once, and kept until a source or a test changes."""
        def measure_scenarios():
            found, _ = explorer.reached(self.lab, self.folder, self.sources, "", [*self.options, "--strategy", "random"],
                                        RANDOM, ("sc",), self.pool.map)
            return [[*key, models["sc"]] for key, models in found.items()]

        def measure_tests():
            found, seconds = self.tests.reached(self.folder, self.sources, self.pool.map)
            return {"seconds": seconds, "tests": [[*key, names] for key, names in found.items()]}

        tests = self.keep("tests", self.tests.build, measure_tests)
        scenarios = self.keep("scenarios", self.lab, measure_scenarios)
        self.seconds = tests["seconds"]
        self.by_test = {(path, function): names for path, function, names in tests["tests"]}
        self.by_scenario = {(path, function): [tuple(scenario) for scenario in names]
                            for path, function, names in scenarios}

    def keep(self, name, build, measure):
        programs = [build.directory / target for target in build.programs.values()]
        stamp = digest("".join(self.sources.values()) + "".join(str(p.stat().st_mtime_ns) for p in programs))
        path = self.folder / f"{name}.json"
        if path.exists():
            kept = json.loads(path.read_text())
            if kept["stamp"] == stamp:
                return kept["found"]
        path.write_text(json.dumps({"stamp": stamp, "found": measure()}))
        return json.loads(path.read_text())["found"]

    def shop(self, build, name):
        if not hasattr(self.local, name):
            with self.lock:
                number, self.shops = self.shops, self.shops + 1
            setattr(self.local, name, explorer.Workshop(build, self.folder / f"survey-{number}"))
        return getattr(self.local, name)

    def remember(self, path, killer):
        with self.lock:
            killers = self.killers.setdefault(path, [])
            if killer in killers:
                killers.remove(killer)
            killers.insert(0, killer)

    def ordered(self, path, candidates, limit):
        """Puts those first that have killed a mutant of this file."""
        with self.lock:
            killers = [killer for killer in self.killers.get(path, []) if killer in candidates]
        return (killers + [candidate for candidate in candidates if candidate not in killers])[:limit]

    def attack_with_tests(self, mutant, objects):
        """None, or the test that fails twice, and its failure."""
        names = [name for name in self.by_test.get((mutant.path, mutant.function), []) if self.seconds[name] < SLOW]
        for name in self.ordered(mutant.path, names, TESTS):
            try:
                program = self.shop(self.tests.build, "unit").program(name, objects)
            except explorer.BuildError:
                continue  # a test that replaces a function, see counting_programs
            seconds = max(unit.SECONDS, 10 * self.seconds[name])
            if self.tests.run(program, name, seconds) is not None:
                failure = self.tests.run(program, name, seconds)
                if failure is not None:
                    self.remember(mutant.path, name)
                    return f"{name}: {failure}"
        return None

    def fails_anyway(self, name, scenario, model):
        """Whether the scenario also fails without the change, because of its limits."""
        key = scenario, model
        if key not in self.failing:
            program = self.lab.directory / self.lab.programs[name]
            self.failing[key] = explorer.run(program, self.options, [scenario], model, SCHEDULES)[-1][1] is not None
        return self.failing[key]

    def run_scenarios(self, program, name, scenarios, model):
        """(scenario, verdict) of the first that fails because of the change, or None."""
        while scenarios:
            scenario, verdict = explorer.run(program, self.options, scenarios, model, SCHEDULES)[-1]
            if verdict is None:
                return None
            if not self.fails_anyway(name, scenario, model):
                return scenario, verdict
            scenarios = scenarios[scenarios.index(scenario) + 1:]
        return None

    def attack_with_scenarios(self, mutant, objects):
        """None, or the scenario that fails, its verdict and the model."""
        candidates = self.by_scenario.get((mutant.path, mutant.function), [])
        weaker = " -> " in mutant.change and "boundary" not in mutant.change
        model = "c11" if weaker else "sc"
        chosen = self.ordered(mutant.path, candidates, SCENARIOS)
        for name in explorer.PROGRAMS:
            scenarios = [scenario for program, scenario in chosen if program == name]
            if scenarios:
                program = self.shop(self.lab, "lab").program(name, objects)
                killer = self.run_scenarios(program, name, scenarios, model)
                if killer is not None:
                    self.remember(mutant.path, (name, killer[0]))
                    return f"{killer[0]}: {killer[1]}, {model}"
        return None

    def judge(self, mutant):
        """(outcome, result of the lab, result of the tests)"""
        changed = {mutant.path: mutant.apply(self.sources[mutant.path])}
        try:
            for_tests = self.shop(self.tests.build, "unit").objects(
                changed, self.tests.build.users_of(mutant.path, mutant.function))
            for_lab = self.shop(self.lab, "lab").objects(changed, self.lab.users_of(mutant.path, mutant.function))
        except explorer.BuildError as error:
            return "refused", None, (str(error).strip().splitlines() or [""])[0]
        if not for_tests and not for_lab:
            return "same", None, None
        try:
            tests = self.attack_with_tests(mutant, for_tests) if for_tests else None
            lab = self.attack_with_scenarios(mutant, for_lab) if for_lab else None
        except explorer.BuildError as error:
            return "refused", None, (str(error).strip().splitlines() or [""])[0]
        return "killed" if tests or lab else "survived", lab, tests

    def run(self, chosen, results, seconds):
        """Tries the mutants that have no result yet. Returns their number."""
        begin = time.monotonic()
        todo = [mutant for mutant in chosen if results.find(mutant, self.sources[mutant.path]) is None]

        def judge(mutant):
            """Saves each result at once: the survey may be interrupted."""
            if seconds and time.monotonic() - begin > seconds:
                return 0
            outcome, lab, tests = self.judge(mutant)
            with self.lock:
                results.add(mutant, self.sources[mutant.path], outcome, lab, tests)
                print(f"{outcome:9} {mutant.path}:{mutant.line} {mutant.function}: {mutant.text}: {mutant.change}\n"
                      f"          lab: {lab or '-'}; tests: {tests or '-'}", flush=True)
            return 1

        return sum(self.pool.map(judge, todo))


def count(paths, sources, results, explained):
    """{path: {heading: number}}"""
    table = {}
    for path in paths:
        row = dict.fromkeys(("mutants", "tried", "tests", "lab", "killed", "same", "explained", "survived"), 0)
        for mutant in mutants.survey(path, sources[path]):
            row["mutants"] += 1
            entry = results.find(mutant, sources[path])
            if entry is None or entry["outcome"] == "refused":
                row["mutants"] -= entry is not None
                continue
            row["tried"] += 1
            row["tests"] += entry["unit"] is not None
            row["lab"] += entry["lab"] is not None
            outcome = entry["outcome"]
            if outcome == "survived" and " | ".join(mutant.key) in explained:
                outcome = "explained"
            row[outcome] += 1
        table[path] = row
    return table


HEAD = """\
# What the tests notice

Generated by `scripts/mutate --table` from the results of `make mutate`. A mutant is the library with one change: a condition
that is always or never true, a bound that is off by one, a call that is left out, a weaker memory order
([lab.md](lab.md#mutation-check) has the rules). *Tried*: how many of the file's mutants were run; they are chosen by a hash of
their text, so it is a fair sample. *Tests*, *lab*: how many of those a unit test fails with ({tests} that reach the function, the
quickest), and how many a scenario of the explorer ({scenarios} that reach it, {schedules} schedules each). *Same*: identical machine code. *Explained*:
nothing notices the change, because nothing depends on it (`lab/mutation/survivors.txt`). *Open*: survivors that were not judged
yet. *Score*: killed, of those that are neither the same nor explained.
"""


def show_row(name, row):
    rest = row["tried"] - row["same"] - row["explained"]
    score = f"{100 * row['killed'] / rest:.0f} %" if rest else ""
    return (f"| {name} | {row['mutants']} | {row['tried']} | {row['tests']} | {row['lab']} | {row['killed']} | {row['same']} | "
            f"{row['explained']} | {row['survived']} | {score} |")


def write_table(path, table):
    titles = "| | mutants | tried | tests | lab | killed | same | explained | open | score |\n|---|" + "---|" * 9
    lines = [HEAD.format(tests=TESTS, scenarios=SCENARIOS, schedules=SCHEDULES)]

    def total(rows):
        return {key: sum(row[key] for row in rows) for key in next(iter(rows))}

    rooms = {room: [row for name, row in table.items() if name.startswith(f"src/{room}/")] for room in ROOMS}
    lines += [titles, *(show_row(f"src/{room}", total(rows)) for room, rows in rooms.items() if rows),
              show_row("all", total(list(table.values())))]
    for room, rows in rooms.items():
        lines += ["", f"## src/{room}", "", titles]
        lines += [show_row(f"`{Path(name).name}`", row) for name, row in table.items()
                  if name.startswith(f"src/{room}/") and row["mutants"]]
    path.write_text("\n".join(lines) + "\n")
