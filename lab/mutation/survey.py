"""
The survey: mutants of whole folders, tried by the unit tests and, if these notice nothing, by the explorer's scenarios. All
mutants of the library are compiled into one (schemata.py), so trying one is running tests. The result of each is kept in a file,
so an interrupted survey continues, and a larger sample adds to a smaller one.
"""

import functools
import hashlib
import itertools
import json
import operator
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import explorer
import mutants
import schemata
import unit

ROOMS = ("ke", "ex", "rtl", "nt")
SCHEDULES = 400
RANDOM = 200  # random schedules that show which functions a scenario reaches
SLOW = 12  # seconds: longer cases are left out
LAST = ("surface/calls", "surface/refusals")  # long, and reach nearly everything: tried if nothing else notices the mutant
TESTS_ALONE = "no scenario was tried"
TRIED_BRIEFLY = "tried briefly"
HERE = Path(__file__).resolve().parent


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def find_sources(root):
    return {str(path.relative_to(root)): path.read_text()
            for room in ROOMS for path in sorted((root / "src" / room).glob("*.[ch]"))}


def sample(every, number):
    """Chooses the same mutants each time; a sample contains every smaller one."""
    ordered = sorted(every, key=lambda mutant: digest("|".join(mutant.key)))
    return ordered[:number] if number else ordered


def in_turns(files):
    """One mutant of each file in turn: a survey that is interrupted has seen all of them."""
    return [mutant for turn in itertools.zip_longest(*files) for mutant in turn if mutant is not None]


@dataclass(frozen=True)
class Effort:
    """What is run for a mutant before it counts as a survivor."""
    tests: int  # seconds that the unit tests take without the mutant
    leak_tests: int  # with LeakSanitizer, for a call that is left out
    scenarios: int  # of those that reach the changed place
    seconds: int  # of processor time for a scenario
    last: bool  # the tests LAST too


BRIEF, USUAL, AGAIN = Effort(5, 2, 8, 2, False), Effort(20, 6, 48, 4, True), Effort(100, 6, 48, 4, True)


class Results:
    """A line for each mutant that was tried: JSON with its key, the text of its function, and its result. A result is valid
    until the function changes, in whatever file it is."""

    def __init__(self, path):
        self.path = Path(path)
        self.known = {}
        self.texts = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                entry = json.loads(line)
                self.known[tuple(entry["key"])] = entry

    def text_of(self, mutant, source):
        """The digest of the mutant's function, or of the macro's file."""
        key = mutant.path, id(source)
        if key not in self.texts:
            self.texts[key] = {name: digest(" ".join(text.split()))[:8]
                               for name, text in mutants.bodies(mutant.path, source).items()}
        return self.texts[key].get(mutant.function) or digest(source)[:8]

    def find(self, mutant, source):
        entry = self.known.get(mutant.key)
        return entry if entry is not None and entry["text"] == self.text_of(mutant, source) else None

    def add(self, mutant, source, outcome, by):
        """by: the test or the scenario that noticed it, or why none could."""
        entry = {"key": mutant.key, "text": self.text_of(mutant, source), "outcome": outcome, "by": by}
        self.known[mutant.key] = entry
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def forget(self, chosen, sources, explained, brief):
        """Forgets survivors that are not explained, and returns them. brief: not those that were tried briefly before."""
        open_ones = [mutant for mutant in chosen if (entry := self.find(mutant, sources[mutant.path])) is not None
                     and entry["outcome"] == "survived" and " | ".join(mutant.key) not in explained
                     and not (brief and (entry["by"] or "").endswith(TRIED_BRIEFLY))]
        for mutant in open_ones:
            del self.known[mutant.key]
        return open_ones

    def tidy(self, sources):
        """Leaves only what is valid, sorted, for the repository."""
        valid = [entry for path, source in sources.items() for mutant in mutants.survey(path, source)
                 if (entry := self.find(mutant, source)) is not None]
        self.path.write_text("".join(json.dumps(entry) + "\n" for entry in sorted(valid, key=lambda entry: entry["key"])))


class Survey:
    def __init__(self, root, directory, folder, jobs, sources, tests="", scenarios=""):
        """Surveys the mutants of sources; tests, scenarios: only those whose names match the expressions."""
        self.root = root
        self.folder = Path(folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.sources = sources
        self.scenarios = scenarios
        self.effort = USUAL
        self.is_part = bool(tests or scenarios)  # then functions that only others reach are left to them
        self.lab = explorer.Build(root, directory)
        self.options = self.lab.options()
        self.tests = unit.Tests(root, directory, tests)
        self.pool = ThreadPoolExecutor(jobs)
        self.local = threading.local()
        self.lock = threading.Lock()
        self.shops = 0
        self.killers = {}
        self.special_marks = {}
        self.leak_programs = {}
        self.failing = {}  # {(scenario, model) or (test, case): does it fail without any change?}
        numbers = itertools.count(1)
        self.combined, self.numbers, self.needs = {}, {}, {}
        for path, source in self.sources.items():
            text, chosen, needed = schemata.combine(path, source, numbers)
            self.combined[path] = schemata.DECLARATION.strip() + " " + text
            self.numbers.update({mutant.key: number for number, mutant in chosen.items()})
            self.needs.update(needed)

    def build_all(self):
        """The programs with all mutants, and what reaches each place: made once, and kept until something changes."""
        path = self.folder / "reached.json"
        library = digest("".join([*self.combined.values(), *(str(path) + path.read_text() for folder in ("src", "include")
                                                             for path in sorted((self.root / folder).rglob("*.h")))]))
        kept = json.loads(path.read_text()) if path.exists() else {}
        keep = kept.get("library") == library
        for_tests = explorer.Counting(self.tests.build, self.folder / "unit-reach", self.combined, self.pool.map,
                                      unit.HELPERS, keep)
        for_lab = explorer.Counting(self.lab, self.folder / "reach", self.combined, self.pool.map, keep=keep)
        self.functions = for_tests.numbers
        self.counting = for_tests
        kept = {"library": library, "tests": self.measure_tests(for_tests, kept["tests"] if keep else {}),
                "scenarios": self.measure_scenarios(for_lab, kept["scenarios"] if keep else {})}
        path.write_text(json.dumps(kept))
        self.cases = {name: [(text, seconds, int(marks, 16)) for text, seconds, marks in test["cases"]]
                      for name, test in kept["tests"].items() if test["cases"] and name in self.tests.targets}
        measured = [((name, scenario), seconds, int(marks, 16)) for name, program in kept["scenarios"].items()
                    for scenario, seconds, marks in program["scenarios"] if re.search(self.scenarios, scenario)]
        self.scenario_marks = [(scenario, marks) for scenario, _, marks in sorted(measured, key=lambda result: result[1])]
        self.every_scenario = [marks for _, marks in self.scenario_marks]
        self.test_marks = [functools.reduce(operator.or_, (marks for *_, marks in cases)) for cases in self.cases.values()]
        self.programs = {**{name: for_tests.shop.target(name) for name in self.tests.targets},
                         **{name: for_lab.shop.target(name) for name in explorer.PROGRAMS}}

    def stamp(self, build, name):
        return hashlib.sha256((build.directory / build.programs[name]).read_bytes()).hexdigest()[:16]

    def measure_tests(self, counting, kept):
        begin = time.monotonic()
        stamps = {name: self.stamp(self.tests.build, name) for name in self.tests.targets}
        # One that failed may pass at the second attempt: the machine may be less busy.
        attempts = {name: kept[name]["attempts"] for name in stamps if kept.get(name, {}).get("stamp") == stamps[name]}
        new = [name for name in sorted(stamps) if name not in attempts or not kept[name]["cases"] and attempts[name] < 2]
        found = self.tests.reached(counting, self.folder, new, self.pool.map)
        if new:
            print(f"mutate: {len(new)} test programs in {time.monotonic() - begin:.0f} s", flush=True)
        return {**kept, **{name: {"stamp": stamps[name], "attempts": attempts.get(name, 0) + 1,
                                  "cases": [(text, seconds, f"{marks:x}") for text, seconds, marks in found[name] or []]}
                           for name in new}}

    def measure_scenarios(self, counting, kept):
        begin = time.monotonic()
        wanted = self.lab.scenarios(self.scenarios)
        stamps = {name: [self.stamp(self.lab, name), self.scenarios] for name in {name for name, _ in wanted}}
        new = {name for name in stamps if kept.get(name, {}).get("stamp") != stamps[name]}
        found = explorer.reached(self.lab, counting, self.folder, [scenario for scenario in wanted if scenario[0] in new],
                                 [*self.options, "--strategy", "random"], RANDOM, ("sc",), self.pool.map)
        if found:
            print(f"mutate: {len(found)} scenarios in {time.monotonic() - begin:.0f} s", flush=True)
        return {**kept, **{name: {"stamp": stamps[name], "scenarios": [
            (scenario, seconds, f"{marks:x}") for (program, scenario), _, verdict, seconds, marks in found
            if program == name and verdict is None]} for name in new}}

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

    def wanted(self, mutant):
        """The marks of which a test must have one to notice the mutant."""
        number = self.numbers.get(mutant.key)
        if number is not None:
            return sum(1 << explorer.FUNCTIONS + 2 * place + outcome for place, outcome in self.needs[number])
        return self.function_mark(mutant)

    def function_mark(self, mutant):
        function = self.functions.get((mutant.path, mutant.function))
        return 1 << function if function is not None else 0

    def special(self, path, reached):
        """The marks of a file's functions that few tests or scenarios reach: those are about the file. reached: marks of each."""
        key = path, id(reached)
        if key not in self.special_marks:
            marks = [1 << number for (of, _), number in self.functions.items() if of == path]
            self.special_marks[key] = sum(mark for mark in marks if 2 * sum(1 for of in reached if of & mark) < len(reached))
        return self.special_marks[key]

    def choose_tests(self, mutant, last=False):
        """[(test, [(case, limit in seconds)])] that reach the mutant, for self.effort.tests seconds: first the tests that are named like the file
        or have noticed a mutant of it, then those that reach much of the file in a short time."""
        wanted, special = self.wanted(mutant), self.special(mutant.path, self.test_marks)
        name = re.sub(r"^src/(.*)\.[ch]$", r"\1", mutant.path)
        with self.lock:
            killers = list(self.killers.get(mutant.path, []))
        found = []
        for test, cases in self.cases.items():
            reaching = [(case, seconds) for case, (_, seconds, marks) in enumerate(cases)
                        if marks & wanted and (last or seconds < SLOW) and not self.failing.get((test, case))]
            if reaching and (test in LAST) == last:
                rank = killers.index(test) if test in killers else len(killers)
                seconds = sum(seconds for _, seconds in reaching)
                about = sum((cases[case][2] & special).bit_count() for case, _ in reaching)
                found.append((test != name, rank, (seconds + 0.1) / (about + 0.1), test, seconds, reaching))
        chosen, left = [], self.effort.tests
        for *_, test, seconds, reaching in sorted(found):
            if chosen and seconds > left:
                continue
            left -= seconds
            chosen.append((test, [(case, unit.LEAST + unit.TIMES * seconds) for case, seconds in reaching]))
        return chosen

    def leak_program(self, test):
        """The program with all mutants, linked with LeakSanitizer; None: it does not work with that."""
        with self.lock:
            if test not in self.leak_programs:
                program = self.counting.program(test, "-fsanitize=leak")
                works = program is not None and self.tests.run(program, test, []) is None
                self.leak_programs[test] = program if works else None
        return self.leak_programs[test]

    def attack_with_tests(self, mutant, find_program, environment=None, most=None, last=False):
        """None, or the test that fails twice, and its failure. most: of the tests."""
        for test, limits in self.choose_tests(mutant, last)[:most]:
            program = find_program(test)
            if program is None:
                continue
            while limits and (failure := self.tests.run(program, test, limits, environment)) is not None:
                again = self.tests.run(program, test, [(case, 3 * limit) for case, limit in limits if case <= failure[0]],
                                       environment)
                if again is None:
                    limits = [(case, limit) for case, limit in limits if case > failure[0]]
                    continue
                if not self.case_fails_anyway(test, again[0]):
                    self.remember(mutant.path, test)
                    return f"{test}: {again[1]}"
                limits = [(case, limit) for case, limit in limits if case != again[0]]
        return None

    def case_fails_anyway(self, test, case):
        """Whether the case also fails without a change if it runs alone. Then it is not used any more."""
        key = test, case
        if key not in self.failing:
            self.failing[key] = self.tests.run(self.programs[test], test, [(case, 3 * unit.TIMES * SLOW)]) is not None
        return self.failing[key]

    def fails_anyway(self, name, scenario, model):
        """Whether the scenario also fails without the change, because of its limits."""
        key = scenario, model
        if key not in self.failing:
            program = self.lab.directory / self.lab.programs[name]
            self.failing[key] = explorer.run(program, self.options, [scenario], model, SCHEDULES)[-1][1] is not None
        return self.failing[key]

    def run_scenarios(self, program, name, scenarios, model, environment):
        """(scenario, verdict) of the first that fails because of the change, or None."""
        while scenarios:
            scenario, verdict = explorer.run(program, self.options, scenarios, model, SCHEDULES, environment, self.effort.seconds)[-1]
            if verdict is None:
                return None
            if not self.fails_anyway(name, scenario, model):
                return scenario, verdict
            scenarios = scenarios[scenarios.index(scenario) + 1:]
        return None

    def choose_scenarios(self, mutant):
        """[(program, scenario)] that reach the mutant, or at least its function: other schedules may reach it. First those that have
        noticed a mutant of the file, then those that are about the file, then the quickest. If there are more than enough, half of
        them are from all over the rest: the quickest resemble each other."""
        wanted, function = self.wanted(mutant), self.function_mark(mutant)
        special = self.special(mutant.path, self.every_scenario)
        with self.lock:
            killers = list(self.killers.get(mutant.path, []))
        found = [(not marks & wanted, killers.index(scenario) if scenario in killers else len(killers), not marks & special, scenario)
                 for scenario, marks in self.scenario_marks if marks & (wanted | function)]
        ordered = [scenario for *_, scenario in sorted(found, key=lambda entry: entry[:3])]
        if len(ordered) <= self.effort.scenarios:
            return ordered
        first = self.effort.scenarios - self.effort.scenarios // 2
        rest = ordered[first:]
        return ordered[:first] + [rest[number * len(rest) // (self.effort.scenarios - first)]
                                  for number in range(self.effort.scenarios - first)]

    def attack_with_scenarios(self, mutant, model, find_program, environment=None):
        """None, or the scenario that fails, its verdict and the model."""
        chosen = self.choose_scenarios(mutant)
        for name in explorer.PROGRAMS:
            scenarios = [scenario for program, scenario in chosen if program == name]
            killer = self.run_scenarios(find_program(name), name, scenarios, model, environment) if scenarios else None
            if killer is not None:
                self.remember(mutant.path, (name, killer[0]))
                return f"{killer[0]}: {killer[1]}, {model}"
        return None

    def compiled(self, mutant, build, name):
        """The objects that are different with this change alone."""
        changed = {mutant.path: mutant.apply(self.sources[mutant.path])}
        return self.shop(build, name).objects(changed, build.users_of(mutant.path, mutant.function))

    def judge_alone(self, mutant):
        """A mutant that cannot be chosen at run time. Only the explorer can notice a memory order."""
        only_lab = mutants.order_only(mutant)
        by = None
        try:
            if not only_lab:
                for_tests = self.compiled(mutant, self.tests.build, "unit")
                by = for_tests and self.attack_with_tests(
                    mutant, lambda name: self.shop(self.tests.build, "unit").program(
                        name, for_tests, self.counting.helpers))
            objects = self.compiled(mutant, self.lab, "lab") if not by else {}
            if not by and not objects:
                return "same", None
            by = by or self.attack_with_scenarios(mutant, "c11" if only_lab else "sc",
                                                  lambda name: self.shop(self.lab, "lab").program(name, objects))
        except explorer.BuildError as error:
            return "refused", (str(error).strip().splitlines() or [""])[0]
        return ("killed", by) if by else ("survived", self.reachable(mutant))

    def judge(self, mutant):
        """(outcome, what noticed it)"""
        number = self.numbers.get(mutant.key)
        if number is None:
            return self.judge_alone(mutant)
        environment = dict(os.environ, MUTATION_CHOSEN=str(number))
        by = (self.attack_with_tests(mutant, self.programs.get, environment)
              or mutant.change.startswith("deleted") and self.attack_with_tests(mutant, self.leak_program, environment, self.effort.leak_tests)
              or self.effort.last and self.attack_with_tests(mutant, self.programs.get, environment, last=True)
              or self.attack_with_scenarios(mutant, "sc", self.programs.get, environment))
        if by:
            return "killed", by
        try:
            build = self.tests.build
            if not self.shop(build, "unit").differs({mutant.path: mutant.apply(self.sources[mutant.path])},
                                                    build.users_of(mutant.path, mutant.function)):
                return "same", None
        except explorer.BuildError as error:
            return "refused", (str(error).strip().splitlines() or [""])[0]
        return "survived", self.reachable(mutant)

    def is_reached(self, mutant):
        return bool(self.choose_tests(mutant) or self.choose_scenarios(mutant))

    def reachable(self, mutant):
        wanted = self.wanted(mutant)
        tests = f"{sum(any(marks & wanted for *_, marks in cases) for cases in self.cases.values())} tests"
        if not self.scenario_marks:
            return f"{tests} come here, {TESTS_ALONE}"
        text = f"{tests} and {sum(1 for _, marks in self.scenario_marks if marks & wanted)} scenarios come here"
        return f"{text}, {TRIED_BRIEFLY}" if self.effort == BRIEF else text

    def run(self, chosen, results, seconds):
        """Tries the mutants that have no result yet. Returns their number."""
        begin = time.monotonic()
        todo = [mutant for mutant in chosen if results.find(mutant, self.sources[mutant.path]) is None
                and (self.scenario_marks or not mutants.order_only(mutant)) and (not self.is_part or self.is_reached(mutant))]

        def judge(mutant):
            """Saves each result at once: the survey may be interrupted."""
            if seconds and time.monotonic() - begin > seconds:
                return 0
            try:
                outcome, by = self.judge(mutant)
            except explorer.LinkError as error:
                print(f"mutate: left out: {mutant.path}:{mutant.line} {mutant.text}: {error}", flush=True)
                return 0
            with self.lock:
                results.add(mutant, self.sources[mutant.path], outcome, by)
                print(f"{time.monotonic() - begin:6.0f} {outcome:9} {mutant.path}:{mutant.line} {mutant.function}: {mutant.text}: {mutant.change}\n"
                      f"          {by or '-'}", flush=True)
            return 1

        return sum(self.pool.map(judge, todo))


def is_scenario(by):
    return by.rsplit(", ", 1)[-1] in ("sc", "c11")


def count(paths, sources, results, explained):
    """{path: {heading: number}}"""
    table = {}
    for path in paths:
        row = dict.fromkeys(("mutants", "tried", "tests", "lab", "killed", "same", "explained", "survived", "alone"), 0)
        for mutant in mutants.survey(path, sources[path]):
            row["mutants"] += 1
            entry = results.find(mutant, sources[path])
            if entry is None or entry["outcome"] == "refused":
                row["mutants"] -= entry is not None
                continue
            row["tried"] += 1
            outcome = entry["outcome"]
            if outcome == "killed":
                row["lab" if is_scenario(entry["by"]) else "tests"] += 1
            if outcome == "survived" and " | ".join(mutant.key) in explained:
                outcome = "explained"
            row[outcome] += 1
            row["alone"] += outcome == "survived" and (entry["by"] or "").endswith((TESTS_ALONE, TRIED_BRIEFLY))
        table[path] = row
    return table


HEAD = """\
# What the tests notice

Generated by `scripts/mutate --table` from `lab/mutation/results.jsonl`, which `make mutate` fills. A mutant is the library with
one change: a condition that is always or never true, a bound that is off by one, a call that is left out, a weaker memory order
([lab.md](lab.md#mutation-check) has the rules). **This is a sample**: *tried* is how many of the file's mutants were run, chosen by
a hash of their text, and all numbers after it are about those. A score of a few mutants says little about its file; the sum of a
folder says more. *Tests*: a unit test fails (of the cases that reach the place: those of the file's test, then the quickest, {budget}
seconds in all; {again} for survivors that were tried again). *Lab*: no test does, but a scenario of the explorer ({scenarios} that reach it, {schedules} schedules each; the only ones
for memory orders). *Same*:
identical machine code. *Explained*: nothing notices the change, because nothing depends on it (`lab/mutation/survivors.txt` and
`equivalent.txt`). *Open*: survivors that were not judged yet; {alone} of them were tried with a quarter of that. *Score*: killed, of those that are neither the same nor explained.
"""


def show_row(name, row):
    rest = row["tried"] - row["same"] - row["explained"]
    score = f"{100 * row['killed'] / rest:.0f} %" if rest else ""
    return (f"| {name} | {row['mutants']} | {row['tried']} | {row['tests']} | {row['lab']} | {row['killed']} | {row['same']} | "
            f"{row['explained']} | {row['survived']} | {score} |")


def write_table(path, table):
    titles = "| | mutants | tried | tests | lab | killed | same | explained | open | score |\n|---|" + "---|" * 9
    lines = [HEAD.format(budget=USUAL.tests, again=AGAIN.tests, scenarios=USUAL.scenarios, schedules=SCHEDULES,
                         alone=sum(row["alone"] for row in table.values()))]

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
