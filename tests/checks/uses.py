#!/usr/bin/env python3
"""The library as a part of other builds, from its sources: CMake, Meson, two files, other compilers, a symbol prefix.

usage: uses.py ROOT BUILD VERSION CPU [all]

BUILD has the unit tests, and the flags that CMakeLists.txt must repeat. By default CMake and Meson only configure, and one unit
test of twelve is run on the amalgamation, which is compiled without optimization. With `all` both build and run their programs,
the amalgamation is also compiled with a prefix, by clang and musl-gcc, and runs every unit test, optimized."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import amalgamated
from tap import Tap

PROGRAMS = ["plain", "kernel", "user"]
# Flags that change the behavior of the library. Warnings, paths and debugging are up to the user.
FLAGS = re.compile(r"-(?:[DU]|f(?!diagnostics|PI[CE])|m|std=)")
NOT_COMPARED = {"-D_FILE_OFFSET_BITS=64", "-DNDEBUG"}  # defaults of Meson and CMake
STEPS = 200  # of a build that has Interlock as a subproject


def run(*command, **options):
    """(output, problems): problems is empty when the command succeeded."""
    result = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            **options)
    return result.stdout, [f"{shlex.join(map(str, command))}\n{result.stdout}"] if result.returncode != 0 else []


def flags_of(build, root, object_folder):
    """{source: its flags} for the objects whose path contains this folder."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        source = Path(os.path.normpath(Path(entry["directory"]) / entry["file"]))
        if root / "src" in source.parents and re.search(object_folder, words[words.index("-o") + 1]):
            found[str(source.relative_to(root))] = sorted(
                {word for word in words if FLAGS.match(word)} - NOT_COMPARED) + [
                [word for word in words if word.startswith("-fstack-protector")][-1:]]
    return found


def compare_flags(ours, theirs):
    return [f"{source}: Meson {ours.get(source)}, CMake {theirs.get(source)}" for source in sorted({*ours, *theirs})
            if ours.get(source) != theirs.get(source)]


class Uses:
    def __init__(self, tap, root, build, version, cpu, work):
        self.tap, self.root, self.build, self.version, self.cpu, self.work = tap, root, build, version, cpu, work
        self.programs = root / "tests" / "checks" / "install"
        self.files = root / "tests" / "checks" / "uses"
        self.user_flags = ["-mcx16"] if cpu == "x86_64" else ["-fsigned-char"]

    def project(self, name, build_file):
        """A folder with the programs and one of the build files."""
        folder = self.work / name
        folder.mkdir()
        for path in [*self.programs.glob("*.c"), *self.files.glob("*.[ch]")]:
            shutil.copy(path, folder)
        (folder / build_file).write_text((self.files / build_file).read_text().replace("@ROOT@", str(self.root)))
        return folder

    def cmake_flags(self):
        if not (self.build / "compile_commands.json").exists():
            return ["this build has no compile_commands.json"]
        target = self.work / "flags"
        _, problems = run("cmake", "-S", self.root, "-B", target, "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                          "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_C_COMPILER=gcc")
        if problems:
            return problems
        ours, theirs = flags_of(self.build, self.root, r"^src/"), flags_of(target, self.root, r"/interlock-objects\.dir/")
        changed = {**theirs, "src/ke/wait.c": theirs["src/ke/wait.c"][1:]}
        self.tap.case("self-test: a flag that is missing is noticed", [] if compare_flags(ours, changed) else ["it is not"])
        ours.pop("src/win32/wmain.c", None)
        return (["no flags were found"] if len(ours) < 100 else []) + compare_flags(ours, theirs)

    def cmake(self, builds):
        """FetchContent, with a prefix."""
        folder = self.project("cmake", "CMakeLists.txt")
        target = folder / "build"
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        _, problems = run("cmake", "-S", folder, "-B", target, *generator, "-DCMAKE_BUILD_TYPE=None")
        if not builds:
            self.tap.case("CMake: FetchContent configures", problems)
            return
        problems = problems or [line[-5000:] for line in run("cmake", "--build", target, "--parallel", "2")[1]]
        self.tap.case("CMake: FetchContent builds", problems)
        for name in ["clash", "clash-shared", *PROGRAMS, "wide"]:
            self.tap.case(f"CMake: {name} runs", ["it was not built"] if problems else run(target / name)[1])
        self.shared_library(next(target.rglob(f"libinterlock.so.{self.version}"), None))

    def shared_library(self, library):
        if library is None:
            self.tap.case("CMake: the shared library", ["it is not there"])
            return
        dynamic = run("readelf", "-d", library)[0]
        soname = re.findall(r"SONAME.*\[(.*)\]", dynamic)
        self.tap.case("CMake: the soname carries the major version",
                      [] if soname == [f"libinterlock.so.{self.version.split('.')[0]}"] else [soname])
        self.tap.case("CMake: it stays loaded, as Meson's does", [] if "NODELETE" in dynamic else [dynamic])
        listed = (self.root / "src" / "interlock.map").read_text()
        own = set(re.findall(r"^    (Interlock[A-Z]\w*);$", listed, re.M))
        wanted = {name if name in own else f"il_{name}" for name in re.findall(r"^    (\w+);$", listed, re.M)}
        symbols = run("readelf", "--wide", "--dyn-syms", library)[0]
        exported = {name.split("@")[0] for name, where in re.findall(
            r" (?:FUNC|OBJECT) +(?:GLOBAL|WEAK) +\w+ +(?!UND)(?=\d)\d+ (\S+)()", symbols)}
        self.tap.case("CMake: what it exports is the list, with the prefix",
                      sorted(f"{name} is missing" for name in wanted - exported) +
                      sorted(f"{name} is not listed" for name in exported - wanted))
        node = f"@@INTERLOCK_{'.'.join(self.version.split('.')[:2])}"
        self.tap.case("CMake: the names are versioned", [] if node in symbols else ["they are not"])

    def meson(self, builds):
        """A subproject: the library alone."""
        folder = self.project("meson", "meson.build")
        (folder / "subprojects").mkdir()
        (folder / "subprojects" / "interlock").symlink_to(self.root)
        target = folder / "build"
        said, problems = run("meson", "setup", "--buildtype=plain", target, folder, env={**os.environ, "CC": "gcc"})
        steps = re.search(r"\[\d+/(\d+)\]", run("ninja", "-C", target, "-n")[0])
        self.tap.case(f"Meson: a subproject has fewer than {STEPS} steps",
                      problems or ([] if steps and int(steps.group(1)) < STEPS else [said, steps]))
        if not builds:
            return
        problems = problems or run("ninja", "-C", target, "-j2")[1]
        self.tap.case("Meson: it builds", problems)
        for kind in ("shared", "static"):
            for name in [*PROGRAMS, "wide"]:
                self.tap.case(f"Meson: {name}, {kind}, runs",
                              ["it was not built"] if problems else run(target / f"{name}-{kind}")[1])

    def amalgamation(self, name, compiler, options, prefix=None):
        """The object of the two files, or None."""
        folder = self.project(name, "meson.build")
        _, problems = run(self.root / "scripts" / "amalgamation", *(["--prefix", prefix] if prefix else []), folder)
        output, failed = ("", problems) if problems else run(
            *compiler, *options, *self.user_flags, "-fno-strict-aliasing", "-fPIC", "-pthread", "-c", "interlock.c", "-o",
            "interlock.o", cwd=folder)
        self.tap.case(f"{name}: one call of the compiler", problems or failed)
        if problems or failed:
            return None
        # One header now replaces the headers in the programs' folders.
        for path in folder.glob("*.c"):
            if path.name != "interlock.c":
                text = re.sub(r"#include <windows\.h>", '#define INTERLOCK_WINDOWS\n#include "interlock.h"', path.read_text())
                text = re.sub(r"#include <ntddk\.h>", '#define INTERLOCK_WDK\n#include "interlock.h"', text)
                text = re.sub(r"#include <interlock/\w+\.h>", '#include "interlock.h"', text)
                path.write_text(re.sub(r"#include <process\.h>\n", "", text))
        for program in ["clash", "other"] if prefix else PROGRAMS:
            if program == "other":
                continue
            more = ["other.c", "-DAMALGAMATION"] if program == "clash" else []
            failed = run(*compiler, *self.user_flags, program + ".c", *more, "interlock.o", "-pthread", "-o", program, cwd=folder)[1]
            self.tap.case(f"{name}: {program} runs", failed or run(folder / program)[1])
        return folder / "interlock.o"

    def unit_tests(self, name, compiler, options, one_of):
        made = self.amalgamation(name, compiler, options)
        if made:
            amalgamated.cases(self.tap, self.build, made.parent, made, name, one_of)

    def header(self, folder):
        """interlock.h is self-contained, in both languages."""
        for compiler in (["gcc", "-xc", "-std=c11"], ["clang", "-xc", "-std=c11"], ["g++", "-xc++", "-std=c++17"],
                         ["clang++", "-xc++", "-std=c++17"]):
            for macros in ([], ["-DINTERLOCK_WINDOWS"], ["-DINTERLOCK_WDK"]):
                failed = run(*compiler, "-Wall", "-Wextra", "-pedantic", "-Werror", *self.user_flags, *macros, f"-I{folder}",
                             "-fsyntax-only", "-", input='#include "interlock.h"\n#include "interlock.h"\n')[1]
                self.tap.case(" ".join(["interlock.h:", *compiler, *macros]), failed)


def static_variables(tap, archive):
    """Two files may not have a static variable of the same name: in one file they would be one variable."""
    places = {}
    member = ""
    for line in run("nm", archive)[0].splitlines():
        if line.endswith(":"):
            member = line
        words = line.split()
        if len(words) == 3 and words[1] in "bd" and "." not in words[2]:
            places.setdefault(words[2], set()).add(member)
    tap.case("no two files have a static variable of the same name",
             [f"{name}: {sorted(found)}" for name, found in sorted(places.items()) if len(found) > 1]
             if places else ["no variables were found"])


def main():
    tap = Tap()
    root, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    every = sys.argv[5:] == ["all"]
    with tempfile.TemporaryDirectory() as directory:
        uses = Uses(tap, root, build, sys.argv[3], sys.argv[4], Path(directory))
        tap.case("CMakeLists.txt and meson.build agree on sources and flags", uses.cmake_flags())
        uses.cmake(every)
        uses.meson(every)
        static_variables(tap, build / "src" / "libinterlock.a")
        uses.unit_tests("amalgamation, gcc", ["gcc"], ["-O2"] if every else ["-O0"], 1 if every else 12)
        uses.header(Path(directory) / "amalgamation, gcc")
        if every:
            uses.amalgamation("amalgamation with a prefix, clang", ["clang"], ["-O0"], "il_")
            uses.unit_tests("amalgamation, clang", ["clang"], ["-O2"], 1)
            if shutil.which("musl-gcc"):
                uses.amalgamation("amalgamation, musl-gcc", ["musl-gcc"], ["-O0"])
            else:
                tap.note("there is no musl-gcc: the amalgamation is not tried with it")
    tap.done()


main()
