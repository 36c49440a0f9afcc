"""Building the lab's programs with one source file changed, and running their scenarios."""

import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

import mutants

PROGRAMS = ("scenarios", "user", "world")
LIBRARY = "lab/libinterlock-lab-instrumented.a.p/"
SECONDS = 10  # of processor time: the limit of a scenario is its number of schedules, this one is for mutants that hang
REACH_BYTES = 4 * 4096
COUNT = " extern void mutation_reached(unsigned); mutation_reached({});"


class BuildError(Exception):
    pass


class Build:
    """A build directory of Meson: how its objects are compiled, from which files, and how the programs are linked."""

    def __init__(self, root, directory, library=(LIBRARY,), programs=None):
        """library: folders with the objects of the library; programs: {name: target}, by default those of the lab."""
        self.root = Path(root).resolve()
        self.directory = Path(directory).resolve()
        self.library = library
        self.programs = programs or {name: f"lab/lab-{name}" for name in PROGRAMS}
        commands = json.loads((self.directory / "compile_commands.json").read_text())
        folders = (*library, *(f"{target}.p/" for target in self.programs.values()))
        self.compile = {c["output"]: c["command"] for c in commands if c["output"].startswith(folders)}
        self.users = self.read_users()
        self.definitions = {}
        self.leading = {}
        self.link = {name: self.read_link(target) for name, target in self.programs.items()}

    def ninja(self, *arguments):
        return subprocess.run(["ninja", "-C", self.directory, *arguments], check=True, capture_output=True,
                              text=True).stdout

    def read_users(self):
        """{source file: objects compiled from it}"""
        users, current = {}, None
        for line in self.ninja("-t", "deps").splitlines():
            if not line.startswith(" "):
                current = line.split(":")[0]
            elif current in self.compile:
                path = Path(os.path.normpath(self.directory / line.strip()))
                if path.is_relative_to(self.root):
                    users.setdefault(str(path.relative_to(self.root)), []).append(current)
        return users

    def read_link(self, target):
        return self.ninja("-t", "commands", "-s", target).strip().splitlines()[-1].split()

    def users_of(self, path, function):
        """The objects that a change of function can affect: those whose sources name it, directly or through headers."""
        users = self.users.get(path, [])
        if path.endswith(".c"):
            return users
        names = self.names_for(function)
        word = re.compile(rf"\b(?:{'|'.join(sorted(names))})\b")
        return [output for output in users if word.search(self.source_of(output).read_text())]

    def names_for(self, function):
        """function, and the functions and macros of headers that lead to it."""
        if function not in self.leading:
            names, found = {function}, True
            while found:
                found = {name for name, body in self.header_definitions().items() if name not in names
                         and names & set(re.findall(r"\w+", body))}
                names |= found
            self.leading[function] = names
        return self.leading[function]

    def header_definitions(self):
        """{function or macro: its text} of all headers."""
        if not self.definitions:
            for folder in ("src", "include"):
                for header in (self.root / folder).rglob("*.h"):
                    text = header.read_text()
                    for found in mutants.functions(str(header), text):
                        self.definitions[found.name] = found.body
                    for name, body in re.findall(r"^#define (\w+)((?:.*\\\n)*.*)", text, re.M):
                        self.definitions[name] = self.definitions.get(name, "") + body
        return self.definitions

    def source_of(self, output):
        return self.directory / self.compile[output].split()[-1]

    def scenarios(self, pattern):
        """[(program, scenario)] whose names match pattern"""
        found = []
        for name in PROGRAMS:
            text = subprocess.run([self.directory / "lab" / f"lab-{name}", "--list"], check=True, capture_output=True,
                                  text=True).stdout
            found += [(name, scenario) for scenario in text.split() if re.search(pattern, scenario)]
        return found

    def options(self):
        usage = subprocess.run([self.directory / "lab" / "lab-scenarios", "--help"], capture_output=True, text=True)
        return ["--brief"] if "--brief" in usage.stderr else []


class Workshop:
    """A copy of the sources to change, and the programs built from it."""

    def __init__(self, build, folder):
        self.build = build
        self.folder = Path(folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("src", "include"):
            shutil.copytree(build.root / name, self.folder / name)
        self.originals = {}

    def command(self, output, target):
        """The build's command for an object, for this copy of the sources."""
        words, skip = [], False
        for word in self.build.compile[output].split():
            if skip or word in ("-MD",):
                skip = False
                continue
            if word in ("-MQ", "-MF", "-o"):
                skip = True
                continue
            words.append(self.moved(word.replace("'", "").replace('\\"', '"')))
        return [*words, "-g0", "-w", "-o", str(target)]

    def moved(self, word):
        option, path = re.fullmatch(r"(-I)?(.*)", word).groups()
        if not option and not word.endswith(".c"):
            return word
        resolved = Path(os.path.normpath(self.build.directory / path))
        for name in ("src", "include"):
            if resolved.is_relative_to(self.build.root / name):
                resolved = self.folder / resolved.relative_to(self.build.root)
        return (option or "") + str(resolved)

    def compiled(self, output, number):
        target = self.folder / f"{number}.o"
        result = subprocess.run(self.command(output, target), cwd=self.build.directory, capture_output=True, text=True)
        if result.returncode != 0:
            raise BuildError(result.stderr)
        return target

    def original(self, output):
        if output not in self.originals:
            self.originals[output] = self.compiled(output, "original").read_bytes()
        return self.originals[output]

    def objects(self, changed, outputs):
        """{object of the build: its replacement} for {path: text}; without the objects that do not change."""
        for output in outputs:
            self.original(output)
        made = self.compile_changed(changed, outputs)
        return {output: target for output, target in made.items() if target.read_bytes() != self.originals[output]}

    def compile_changed(self, changed, outputs, map_jobs=map):
        try:
            for path, text in changed.items():
                (self.folder / path).write_text(text)
            return dict(zip(outputs, map_jobs(self.compiled, outputs, range(len(outputs)))))
        finally:
            for path in changed:
                shutil.copy(self.build.root / path, self.folder / path)

    def program(self, name, objects, more=()):
        target = self.folder / name.replace("/", "-")
        words = []
        for word in self.build.link[name]:
            if word == "-Wl,--start-group":
                words += [str(path) for output, path in objects.items() if output.startswith(self.build.library)]
                words += [str(path) for path in more]
            words.append(str(objects[word]) if word in objects else word)
        words[words.index("-o") + 1] = str(target)
        result = subprocess.run([*words, "-Wl,--strip-debug"], cwd=self.build.directory, capture_output=True, text=True)
        if result.returncode != 0:
            raise BuildError(result.stderr)
        return target


def limit_time():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + 2, SECONDS + 2))
    os.setpgid(0, 0)


def counted(sources):
    """The sources with a counter at the beginning of each function, and {(path, function): its number}."""
    numbers, changed = {}, {}
    for path, source in sources.items():
        edits = []
        for function in mutants.functions(path, source):
            numbers[path, function.name] = len(numbers)
            edits.append((function.start + 1, COUNT.format(numbers[path, function.name])))
        for offset, text in reversed(edits):
            source = source[:offset] + text + source[offset:]
        changed[path] = source
    return changed, numbers


def counting_programs(build, folder, sources, names, map_jobs):
    """{name: program that counts the functions of sources that it reaches}, and the numbers of the functions"""
    shop = Workshop(build, folder)
    changed, numbers = counted(sources)
    outputs = sorted({output for path, function in numbers for output in build.users_of(path, function)})
    objects = shop.compile_changed(changed, outputs, map_jobs)
    counter = shop.folder / "reach.o"
    subprocess.run(["cc", "-O2", "-fPIE", "-c", Path(__file__).parent / "reach.c", "-o", counter], check=True)

    def link(name):  # a test that replaces a function cannot link all objects of the library
        try:
            return name, shop.program(name, objects, [counter])
        except BuildError:
            return name, None

    return {name: program for name, program in map_jobs(link, names) if program is not None}, numbers


def counts_of(path, call):
    """What call(environment) returns, its duration, and how often it reached each function."""
    path.write_bytes(bytes(REACH_BYTES))
    begin = time.monotonic()
    result = call(dict(os.environ, MUTATION_REACH=str(path)))
    took = time.monotonic() - begin
    counts = struct.unpack(f"{REACH_BYTES // 4}I", path.read_bytes())
    path.unlink()
    return result, took, counts


def run(program, options, scenarios, model, schedules, environment=None):
    """[(scenario, verdict)] up to the first scenario that fails; the verdict of one that passes is None."""
    command = [program, "--tap", "--strict", *options, "--model", model, "--schedules", str(schedules), "--seconds",
               str(SECONDS), *scenarios]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               preexec_fn=limit_time, env=environment)
    results = []
    begin = time.monotonic()
    try:
        for line in process.stdout:
            match = re.match(r"(not )?ok \d+ - (\w+): (?:FAILED: )?(.*)", line)
            if match:
                verdict = match.group(3) if match.group(1) else None
                if (verdict or "").startswith("the explorer itself failed") and time.monotonic() - begin > SECONDS:
                    verdict = "hangs between two steps"
                results.append((match.group(2), verdict))
                begin = time.monotonic()
                if match.group(1):
                    break
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        process.stdout.close()
    if not results and scenarios:
        results.append((scenarios[0], "the program does not start"))
    return results


def reached(build, folder, sources, pattern, options, schedules, models, map_jobs):
    """
    {(path, function): {model: [(program, scenario)], quickest first}}, by running every scenario once. A scenario
    cannot detect a change in a function that it does not reach in that many schedules.
    """
    programs, numbers = counting_programs(build, folder / "reach", sources, PROGRAMS, map_jobs)

    def measure(job):
        (name, scenario), model = job
        result, took, counts = counts_of(folder / f"counts-{scenario}-{model}", lambda environment: run(
            programs[name], options, [scenario], model, schedules, environment))
        return job, result[0][1], took, counts

    by_function = {key: {model: [] for model in models} for key in numbers}
    bad = []
    jobs = [(scenario, model) for scenario in build.scenarios(pattern) for model in models]
    for (scenario, model), verdict, took, counts in sorted(map_jobs(measure, jobs), key=lambda r: r[2]):
        if verdict is not None:
            bad.append((scenario[1], model, verdict))
        for key, number in numbers.items():
            if counts[number] and verdict is None:
                by_function[key][model].append(scenario)
    return by_function, bad
