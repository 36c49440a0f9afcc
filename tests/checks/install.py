#!/usr/bin/env python3
"""Programs can use what `meson install` installs: through pkg-config and CMake, from C and C++. With `all` as the last argument, in every
standard of C++, and every example of the explorer is also built through pkg-config."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import hardening
import races
from pages import all_blocks
from tap import Tap

PROGRAMS = {"plain": "interlock", "kernel": "interlock-wdk", "user": "interlock-win32"}
BY_CMAKE = [*PROGRAMS, "wide"]
LANGUAGES = {"c": ["gcc", "-std=c11"], "cpp": ["g++", "-std=c++17"]}
STRICT = ["-Wall", "-Wextra", "-Werror"]
# windows.h before the C++ library: every standard that the compilers know.
STANDARDS = {"g++": ["c++11", "c++14", "c++17", "c++20", "c++23"], "clang++": ["c++11", "c++14", "c++17", "c++20", "c++2b"]}
# Examples of the explorer, and what it must find in them.
EXPLORED = {"account.c": "assertion", "cancel.c": "deadlock", "philosophers.c": "deadlock", "mailbox.c": "assertion", "publish.c": "assertion",
            "cache.cpp": "exit status"}
BY_PKGCONFIG = ("account.c", "publish.c", "cache.cpp")
LAB_OPTIONS = {"publish.c": ["--model", "c11"]}
# The library may need nothing but the C library and its loader.
SOURCE = Path(sys.argv[1]).resolve()
MAY_NEED = {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def run(*command, **options):
    """(output, problems): problems is empty when the command succeeded."""
    result = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, **options)
    failed = result.returncode != 0
    return result.stdout, [f"{shlex.join(map(str, command))}\n{result.stdout}"] if failed else []


def explore(test, target, verdict, pkgconfig):
    """Problems with a test of the explorer that is built as its manual says, in two steps."""
    cxx = test.suffix == ".cpp"
    compiler, problems = run("pkg-config", "--cflags", "interlock-lab", env=pkgconfig)
    linker, more = run("pkg-config", "--libs", "interlock-lab", env=pkgconfig)
    words = ["g++", "-static-libstdc++", "-static-libgcc"] if cxx else ["gcc"]
    problems = problems or more or run(words[0], "-c", test, "-o", f"{target}.o", *shlex.split(compiler))[1]
    problems = problems or run(*words, f"{target}.o", "-o", f"{target}.test", *shlex.split(linker))[1]
    output = "" if problems else run(f"{target}.test", "--seconds", "1", *LAB_OPTIONS.get(test.name, []))[0]
    return problems or ([] if f"FAILED: {verdict}" in output else [output])


def explore_installed(command, test, verdict, environment):
    """Problems with a test that the installed command compiles and runs; verdict None: the explorer finds nothing."""
    options = LAB_OPTIONS.get(test.name, [])
    output, problems = run(command, "lab", "--seconds", "1", *options, test, "--", "-Wall", "-Wextra", "-Werror", env=environment)
    if verdict is None:
        return problems or ([] if "exhaustive" in output else [output])
    return [] if problems and f"FAILED: {verdict}" in output else [output]


def explore_pages(tap, command, source, work, environment):
    """The programs of docs/exploring.md."""
    for block in (block for block in all_blocks(source) if block.page == "docs/exploring.md" and block.language in ("c", "cpp")):
        text = block.text
        if "file" in block.directives or ("LAB_SCENARIO" not in text and "int main" not in text):
            continue
        test = work / f"block{block.line}.{block.language}"
        test.write_text(text)
        tap.case(f"{block} by the installed interlock lab", explore_installed(command, test, None, environment))


def build_block(text, work, root, environment):
    """Problems with a block of the documentation, in a project that has the program which it names."""
    project = Path(tempfile.mkdtemp(dir=work))
    names = re.findall(r"target_link_libraries\(([\w-]+)", text)
    shutil.copy(work / "kernel.c", project)
    (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.16)\nproject(block C)\n" + "".join(
        f"add_executable({name} kernel.c)\n" for name in names) + text)
    problems = [] if names else ["it links no program"]
    problems = problems or run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={root}",
                               f"-DFETCHCONTENT_SOURCE_DIR_INTERLOCK={SOURCE}", env=environment)[1]
    if "FetchContent" in text:  # uses.py builds such a project
        return problems
    return problems or run("cmake", "--build", project / "build")[1]


def build_meson(text, work, meson, pkgconfig):
    """Problems with a block of the documentation that is a part of a meson.build."""
    project = Path(tempfile.mkdtemp(dir=work))
    (project / "test.c").write_text("int main(void)\n{\n    return 0;\n}\n")
    (project / "meson.build").write_text("project('block', 'c')\n" + text)
    problems = run(*meson, "setup", project / "build", project, env=pkgconfig)[1]
    problems = problems or run(*meson, "compile", "-C", project / "build", env=pkgconfig)[1]
    return problems or run(*meson, "test", "-C", project / "build", env=pkgconfig)[1]


def main():
    tap = Tap()
    source, build, meson = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), shlex.split(sys.argv[3])
    prefix, libdir, version, hardened, machine = sys.argv[4:9]
    every = sys.argv[9:] == ["all"]
    with tempfile.TemporaryDirectory() as directory:
        stage = Path(directory) / "stage"
        work = Path(directory) / "consumer"
        shutil.copytree(source / "tests" / "checks" / "install", work)
        for name in BY_CMAKE:
            shutil.copy(work / f"{name}.c", work / f"{name}.cpp")
        shutil.copy(source / "examples" / "lab" / "account.c", work)
        series = ".".join(version.split(".")[:2])
        lists = work / "CMakeLists.txt"
        lists.write_text(lists.read_text().replace("@VERSION@", series))
        environment = {name: value for name, value in os.environ.items() if name != "DESTDIR"}

        _, problems = run(*meson, "install", "-C", build, "--no-rebuild", "--destdir", stage,
                          env=environment)
        tap.case("meson install", problems)
        root = stage / prefix.lstrip("/")
        library = root / libdir / f"libinterlock.so.{version}"
        environment["LD_LIBRARY_PATH"] = str(library.parent)

        output, problems = run("readelf", "-d", library)
        soname = re.findall(r"SONAME.*\[(.*)\]", output)
        needed = set(re.findall(r"NEEDED.*\[(.*)\]", output))
        tap.case("the soname carries the major version",
                 problems or ([] if soname == [f"libinterlock.so.{version.split('.')[0]}"]
                              else [soname]))
        tap.case("the library needs only the C library", problems or needed - MAY_NEED)
        links = {name: (root / libdir / name).resolve() for name in
                 ("libinterlock.so", f"libinterlock.so.{version.split('.')[0]}")}
        tap.case("both links lead to the library",
                 [f"{n} -> {t}" for n, t in links.items() if t != library.resolve()])

        if hardened == "hardened":
            hardening.cases(tap, root, machine)

        pkgconfig = {**environment, "PKG_CONFIG_SYSROOT_DIR": str(stage),
                     "PKG_CONFIG_LIBDIR": str(root / libdir / "pkgconfig")}
        for program, package in PROGRAMS.items():
            output, problems = run("pkg-config", "--modversion", package, env=pkgconfig)
            tap.case(f"pkg-config knows the version of {package}",
                     problems or ([] if output.strip() == version else [output]))
            flags, problems = run("pkg-config", "--cflags", "--libs", package, env=pkgconfig)
            archive, _ = run("pkg-config", "--cflags", "--static", "--libs", package, env=pkgconfig)
            archive = re.sub(r"-linterlock(?![-\w])", "-l:libinterlock.a", archive)
            for language, compiler in LANGUAGES.items():
                for kind, words in (("shared", flags), ("static", archive)):
                    target = work / f"{program}-{language}-{kind}"
                    failed = problems or run(*compiler, *STRICT, work / f"{program}.{language}", "-o",
                                             target, *shlex.split(words))[1]
                    tap.case(f"{program}.{language} by pkg-config {package}, {kind}",
                             failed or run(target, env=environment)[1])

        flags, problems = run("pkg-config", "--static", "--cflags", "--libs", "interlock", env=pkgconfig)
        problems = problems or run("gcc", "-static", work / "plain.c", "-o", work / "plain-without-loader", *shlex.split(flags))[1]
        tap.case("plain.c by pkg-config --static and gcc -static", problems or run(work / "plain-without-loader")[1])

        flags, problems = run("pkg-config", "--cflags", "interlock-win32", env=pkgconfig)
        for compiler, standards in STANDARDS.items():
            widths = {standard: ([], ["-fshort-wchar"]) if standard in (standards[0], standards[-1]) else ([],)
                      for standard in standards}
            if not every:
                widths = {standards[0]: ([],), standards[-1]: (["-fshort-wchar"],)}
            for standard in widths:
                for width in widths[standard]:
                    failed = problems or run(compiler, f"-std={standard}", *width, *STRICT, "-fsyntax-only",
                                             work / "standard.cpp", *shlex.split(flags))[1]
                    tap.case(" ".join(["windows.h before the C++ library:", compiler, standard, *width]), failed)

        if (root / libdir / "pkgconfig" / "interlock-lab.pc").exists():
            for name in EXPLORED if every else BY_PKGCONFIG:
                tap.case(f"{name} by pkg-config interlock-lab",
                         explore(source / "examples" / "lab" / name, work / name, EXPLORED[name], pkgconfig))
            for test in sorted((source / "examples" / "lab").glob("*.c*")):
                tap.case(f"{test.name} by the installed interlock lab",
                         explore_installed(root / "bin" / "interlock", test, EXPLORED.get(test.name), environment))
            explore_pages(tap, root / "bin" / "interlock", source, work, environment)
            for block in (block for block in all_blocks(source) if block.language == "meson" and "interlock-lab" in block.text):
                tap.case(f"{block} builds", build_meson(block.text, work, meson, pkgconfig))

        if (root / libdir / "pkgconfig" / "interlock-tsan.pc").exists():
            races.cases(tap, work / "races.c", work, pkgconfig, environment)

        _, problems = run("cmake", "-S", work, "-B", work / "build", f"-DCMAKE_PREFIX_PATH={root}",
                          env=environment)
        problems = problems or run("cmake", "--build", work / "build")[1]
        tap.case("find_package(Interlock) builds", problems)
        for program in BY_CMAKE:
            for language in LANGUAGES:
                tap.case(f"{program}.{language} by CMake",
                         problems or run(work / "build" / f"{program}-{language}",
                                         env=environment)[1])
        for name in ("plain-shared", "plain-static", "kernel-static", "user-static"):
            tap.case(f"{name} by CMake", problems or run(work / "build" / name, env=environment)[1])
        tap.case("a program that is linked statically does not load the library",
                 problems or ([] if "libinterlock" not in run("ldd", work / "build" / "plain-static")[0] else ["it does"]))
        if (root / libdir / "libinterlock-lab.a").exists():
            said = "" if problems else run(work / "build" / "account-lab", "--seconds", "1")[0]
            tap.case("Interlock::lab explores a test", problems or ([] if "FAILED: assertion" in said else [said]))
        if (root / libdir / "libinterlock-tsan.a").exists():
            said, failed = ("", problems) if problems else run(*races.fixed_addresses(), work / "build" / "races-tsan")
            tap.case("Interlock::tsan: no report of a correct program",
                     failed or ([] if said.count("used ") == races.PRIMITIVES and "WARNING" not in said else [said]))
        for block in (block for block in all_blocks(source) if block.language == "cmake"):
            tap.case(f"{block} builds", build_block(block.text, work, root,
                                                        pkgconfig if "interlock-lab" in block.text else environment))
        major, minor = map(int, version.split(".")[:2])
        for wrong in ("0.0", f"{major}.{minor + 1}", f"{major + 1}.0"):
            text = (work / "CMakeLists.txt").read_text().replace(f"Interlock {series}", f"Interlock {wrong}")
            other = work / f"wrong-{wrong}"
            shutil.copytree(work, other, ignore=shutil.ignore_patterns("build", "wrong-*"))
            (other / "CMakeLists.txt").write_text(text)
            output, failed = run("cmake", "-S", other, "-B", other / "build",
                                 f"-DCMAKE_PREFIX_PATH={root}", env=environment)
            tap.case(f"find_package(Interlock {wrong}) is refused",
                     [] if failed and "version" in output else [output])
    tap.done()


main()
