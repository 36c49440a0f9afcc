"""Unit tests of a build, linked with the amalgamation in place of the library."""

import json
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LIBRARY = "src/libinterlock.a"


def is_of_hal_alone(build, program):
    """Whether a test starts the host layer itself, which the library has already done in the amalgamation."""
    if not program.startswith("tests/hal-"):
        return False
    return "KiInitializeSystem" not in subprocess.run(["nm", str(build / program)], capture_output=True, text=True).stdout


def defined(build, files):
    """{file: the names that it defines for the linker}"""
    found = {file: set() for file in files}
    listed = subprocess.run(["nm", "--print-file-name", "--extern-only", "--defined-only", *files], cwd=build, check=True,
                            capture_output=True, text=True).stdout
    for words in map(str.split, listed.splitlines()):
        found[words[0].split(":")[0]].add(words[-1])
    return found


def objects_of(link):
    return [word for word in link.split() if word.endswith(".o")]


def unit_tests(build):
    """(name, program, environment) of the unit tests. A test that replaces functions of the library is left
    out, because the linker cannot redirect calls inside one file; so is a test of the host layer alone."""
    of_library = defined(build, [LIBRARY])[LIBRARY]
    commands = subprocess.run(["ninja", "-C", str(build), "-t", "commands"], check=True, capture_output=True, text=True).stdout
    links = {}
    for line in commands.splitlines():
        found = re.search(r"-o (tests/[\w-]+) ", line)
        if found and LIBRARY in line:
            links[found.group(1)] = line
    listed = json.loads(subprocess.run(["meson", "introspect", "--tests", str(build)], check=True, capture_output=True,
                                       text=True).stdout)
    replaces = {file for file, names in defined(build, sorted({word for link in links.values() for word in objects_of(link)})).items()
                if not of_library.isdisjoint(names)}
    for test in listed:
        program = os.path.relpath(test["cmd"][0], build)
        link = links.get(program, "")
        if any(suite.endswith("unit") for suite in test["suite"]) and link and "--wrap" not in link and \
                replaces.isdisjoint(objects_of(link)) and \
                not is_of_hal_alone(Path(build), program):
            yield test["name"], program, link, test["env"]


def linked(build, folder, replacement, test):
    """What the linker says against the program of a unit test. The program keeps its name, which reports contain."""
    _, program, link, _ = test
    words = [str(folder / Path(program).name) if word == program else str(replacement) if word == LIBRARY else word
             for word in shlex.split(link)]
    result = subprocess.run(words, cwd=build, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return [result.stdout] if result.returncode != 0 else []


def ran(build, folder, test):
    """What is wrong with the run of a unit test."""
    _, program, _, settings = test
    try:
        result = subprocess.run([str(folder / Path(program).name)], cwd=build, env={**os.environ, **settings}, text=True,
                                errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    except subprocess.TimeoutExpired:
        return ["it does not end"]
    return [] if result.returncode == 0 else [result.stdout]


def cases(tap, build, folder, replacement, title, one_of=1):
    """Runs every test; with one_of, one in that many, and each program once, without its other settings."""
    tests = list(unit_tests(build))
    if one_of > 1:
        tests = list({test[1]: test for test in reversed(tests)}.values())[::-1][::one_of]
    tap.case(f"{title}: there are unit tests", [] if tests else ["none was found"])
    failed = 0
    build, folder = Path(build), Path(folder)
    programs = {test[1]: test for test in tests}  # several tests may run one program, with other settings
    with ThreadPoolExecutor(2) as pool:
        unlinked = dict(zip(programs, pool.map(lambda test: linked(build, folder, replacement, test), programs.values())))
        for test, problems in zip(tests, pool.map(lambda test: unlinked[test[1]] or ran(build, folder, test), tests)):
            failed += bool(problems)
            tap.case(f"{title}: {test[0]}", problems)
    tap.note(f"{title}: {len(tests)} tests, {failed} failed")
