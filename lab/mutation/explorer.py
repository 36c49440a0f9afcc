"""Building the lab's programs with one source file changed, and running their scenarios."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import mutants

PROGRAMS = ("scenarios", "user", "world")
LIBRARY = "lab/libinterlock-lab-instrumented.a.p/"
SECONDS = 10  # of processor time: the limit of a scenario is its number of schedules, this one is for mutants that hang
CASES, MARKS, FUNCTIONS = 512, 65536, 4096  # as in reach.c
DIGITS = bytes.maketrans(b"\0\1", b"01")
COUNT = " extern void mutation_reached(unsigned); mutation_reached({});"


class BuildError(Exception):
    """The compiler refuses the change."""


class LinkError(Exception):
    """This program cannot be made: it defines a function of the library itself, or the build directory is changing."""


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
        self.words = {}
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
        return [output for output in users if not names.isdisjoint(self.words_of(self.source_of(output)))]

    def words_of(self, path):
        if path not in self.words:
            self.words[path] = set(re.findall(r"\w+", path.read_text()))
        return self.words[path]

    def names_for(self, function):
        """function, and the functions and macros of headers that lead to it."""
        if function not in self.leading:
            names, found = {function}, True
            while found:
                found = {name for name, words in self.header_definitions().items() if name not in names
                         and not names.isdisjoint(words)}
                names |= found
            self.leading[function] = names
        return self.leading[function]

    def header_definitions(self):
        """{function or macro: the words in it} of all headers."""
        if not self.definitions:
            for folder in ("src", "include"):
                for header in (self.root / folder).rglob("*.h"):
                    text = header.read_text()
                    for found in mutants.functions(str(header), text):
                        self.definitions.setdefault(found.name, set()).update(re.findall(r"\w+", found.body))
                    for name, body in re.findall(r"^#define (\w+)((?:.*\\\n)*.*)", text, re.M):
                        self.definitions.setdefault(name, set()).update(re.findall(r"\w+", body))
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

    def __init__(self, build, folder, keep=False):
        """keep: uses an existing copy again."""
        self.build = build
        self.folder = Path(folder).resolve()
        self.originals = {}
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
            for name in ("src", "include"):
                shutil.copytree(build.root / name, self.folder / name)

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

    def compiled(self, output, target):
        result = subprocess.run(self.command(output, target), cwd=self.build.directory, capture_output=True, text=True)
        if result.returncode != 0:
            raise BuildError(result.stderr)
        return target

    def original(self, output):
        if output not in self.originals:
            self.originals[output] = self.compiled(output, self.folder / "original.o").read_bytes()
        return self.originals[output]

    def objects(self, changed, outputs):
        """{object of the build: its replacement} for {path: text}; without the objects that do not change."""
        for output in outputs:
            self.original(output)
        made = {output: self.folder / f"{number}.o" for number, output in enumerate(outputs)}
        self.compile_changed(changed, made)
        return {output: target for output, target in made.items() if target.read_bytes() != self.originals[output]}

    def differs(self, changed, outputs):
        """Whether any object changes. Of a header's users, the first usually tells."""
        return any(self.objects(changed, [output]) for output in outputs)

    def compile_changed(self, changed, targets, map_jobs=map):
        """targets: {object of the build: the file to compile}"""
        changed = {path: text for path, text in changed.items() if not set(self.build.users.get(path, ())).isdisjoint(targets)}
        try:
            for path, text in changed.items():
                (self.folder / path).write_text(text)
            list(map_jobs(self.compiled, targets.keys(), targets.values()))
        finally:
            for path in changed:
                shutil.copy(self.build.root / path, self.folder / path)

    def target(self, name, *options):
        return self.folder / "-".join([*name.split("/"), *options])

    def program(self, name, objects, more=(), options=()):
        target = self.target(name, *options)
        words = []
        for word in self.build.link[name]:
            if word == "-Wl,--start-group":
                words += [str(path) for output, path in objects.items() if output.startswith(self.build.library)]
                words += [str(path) for path in more]
            words.append(str(objects[word]) if word in objects else word)
        words[words.index("-o") + 1] = str(target)
        result = subprocess.run([*words, "-Wl,--strip-debug", *options], cwd=self.build.directory, capture_output=True, text=True)
        if result.returncode != 0:
            raise LinkError(result.stderr)
        return target


def limit_time(seconds):
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 2, seconds + 2))
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


def helpers(folder, names):
    """The objects of the check's own sources."""
    made = []
    for name in names:
        made.append(folder / f"{name}.o")
        subprocess.run(["cc", "-O2", "-fPIE", "-c", Path(__file__).parent / f"{name}.c", "-o", made[-1]], check=True)
    return made


class Counting:
    """The library with marks in its functions, and the programs that are linked with it."""

    def __init__(self, build, folder, sources, map_jobs, more=("reach",), keep=False):
        """keep: the same sources were compiled there before."""
        self.shop = Workshop(build, folder, keep)
        self.keep = keep
        self.renewed = set()
        self.changed, self.numbers = counted(sources)
        outputs = sorted({output for path, function in self.numbers for output in build.users_of(path, function)})
        self.objects = {output: self.shop.folder / f"{output.replace('/', '-')}" for output in outputs}
        new = {output: path for output, path in self.objects.items() if not (keep and path.exists())}
        self.shop.compile_changed(self.changed, new, map_jobs)
        self.helpers = helpers(self.shop.folder, more)

    def renew(self, target):
        """The objects of a program that is new, while the library is not."""
        own = {output: path for output, path in self.objects.items() if output.startswith(f"{target}.p/")}
        if self.keep and own and target not in self.renewed:
            self.shop.compile_changed(self.changed, own)
        self.renewed.add(target)

    def program(self, name, *options):
        """None: a test that replaces a function cannot link all objects of the library."""
        self.renew(self.shop.build.programs[name])
        try:
            return self.shop.program(name, self.objects, self.helpers, options)
        except LinkError:
            return None


def marks_of(path, call):
    """What call(environment) returns, its duration, and the marks of each case as bits of a number, by case."""
    with path.open("wb") as file:
        file.truncate(CASES * MARKS)
    begin = time.monotonic()
    result = call(dict(os.environ, MUTATION_REACH=str(path)))
    took = time.monotonic() - begin
    marks = {}
    with path.open("rb") as file:
        for number in range(CASES):
            reached = file.read(MARKS)
            if 1 in reached:
                marks[number] = int(reached[::-1].translate(DIGITS), 2)
    path.unlink()
    return result, took, marks


def run(program, options, scenarios, model, schedules, environment=None, seconds=SECONDS):
    """[(scenario, verdict)] up to the first scenario that fails; the verdict of one that passes is None."""
    command = [program, "--tap", "--strict", *options, "--model", model, "--schedules", str(schedules), "--seconds",
               str(seconds), *scenarios]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               preexec_fn=lambda: limit_time(seconds), env=environment)
    results = []
    begin = time.monotonic()
    try:
        for line in process.stdout:
            match = re.match(r"(not )?ok \d+ - (\w+): (?:FAILED: )?(.*)", line)
            if match:
                verdict = match.group(3) if match.group(1) else None
                if (verdict or "").startswith("the explorer itself failed") and time.monotonic() - begin > seconds:
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


def reached(build, counting, folder, scenarios, options, schedules, models, map_jobs):
    """
    [((program, scenario), model, verdict, seconds, marks)], by running every scenario once. A scenario cannot detect a change in a
    place that it does not reach in that many schedules.
    """
    programs = {name: counting.program(name) for name in {name for name, _ in scenarios}}

    def measure(job):
        (name, scenario), model = job
        result, took, marks = marks_of(folder / f"marks-{scenario}-{model}", lambda environment: run(
            programs[name], options, [scenario], model, schedules, environment))
        return job[0], model, result[0][1], took, marks.get(0, 0)

    return list(map_jobs(measure, [(scenario, model) for scenario in scenarios for model in models]))
