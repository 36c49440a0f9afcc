#!/usr/bin/env python3
"""Programs written for Windows compile unchanged, with and without UNICODE and 16-bit wchar_t, and run.

Each Windows header is also compiled alone. Every two of compiler, UNICODE and wchar_t meet; with `all` as the last argument, every
three. The table of errors in the test of RtlNtStatusToDosError has every status."""

import itertools
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tap import Tap

COMPILERS = {
    ".c": (["gcc", "-std=gnu11"], ["clang", "-std=gnu11"]),
    ".cpp": (["g++", "-std=c++17"], ["clang++", "-std=c++17"]),
}
STRICT = ["-Wall", "-Wextra", "-Werror", "-Wno-attributes"]
CHARACTERS = {"": [], " UNICODE": ["-DUNICODE", "-D_UNICODE"]}
WIDTHS = {"": [], " -fshort-wchar": ["-fshort-wchar"]}
HEADERS = ["windows.h", "winternl.h", "tchar.h"]
TIMEOUT = 100


def run(command, **options):
    """What went wrong, or nothing."""
    result = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, timeout=TIMEOUT, **options)
    return [] if result.returncode == 0 else [f"exit code {result.returncode}\n{result.stdout}"]


def statuses_without_an_error(header, test):
    """The names of statuses in the text of ntstatus.h that the table in the test's text does not have."""
    defined = re.findall(r"^#define (\w+)\s+\(\(NTSTATUS\)", header, re.M)
    listed = set(re.findall(r"\{(\w+), \d+u\}", test))
    return [name for name in defined if name not in listed] if defined else ["there are no statuses"]


def main():
    tap = Tap()
    whole = sys.argv[-1] == "all"
    root, library, options = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:len(sys.argv) - whole]
    folder = root / "tests" / "checks" / "win32"
    paths = [f"-I{root}/include", f"-I{root}/include/win32"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    every = [(a + b, CHARACTERS[a] + WIDTHS[b]) for a, b in itertools.product(CHARACTERS, WIDTHS)]
    both_or_neither, one = (every, every) if whole else ([every[0], every[3]], every[1:3])
    settings = {"gcc": both_or_neither, "g++": both_or_neither, "clang": one, "clang++": one}

    found = statuses_without_an_error("#define A ((NTSTATUS)1)\n#define B ((NTSTATUS)2)\n", "{A, 5u},")
    tap.case("self-test: a status without an error is found", [] if found == ["B"] else found)
    tap.case("every status has an error in tests/win32/error.c", statuses_without_an_error(
        (root / "include" / "interlock" / "ntstatus.h").read_text(encoding="utf-8"),
        (root / "tests" / "win32" / "error.c").read_text(encoding="utf-8")))

    with tempfile.TemporaryDirectory() as directory:
        link = Path(directory) / "libinterlock.so"
        link.symlink_to(library)

        def build(case):
            number, source, compiler, (name, flags) = case
            target = Path(directory) / str(number)
            problems = run([*compiler, *STRICT, *flags, *options, *paths, source,
                            library.parent / "libinterlock-wmain.a", link, "-o", target, "-pthread", f"-Wl,-rpath,{library.parent}"])
            return f"{source.name} {compiler[0]}{name}", problems or run(
                [target], env={**environment, "INTERLOCK_SESSION": f"check-{os.getpid()}-{target.name}"})

        def read(case):
            header, language, compiler, (name, flags) = case
            problems = run([*compiler, *STRICT, *flags, *options, *paths, "-fsyntax-only", "-x", language, "-"],
                           input=f"#include <{header}>\n#include <{header}>\n")
            return f"{header} {compiler[0]}{name}", problems

        planted = Path(directory) / "planted.c"
        planted.write_text("#include <windows.h>\nint main(void) { return CloseHandle(NULL) ? 0 : 9; }\n")
        _, problems = build((99, planted, COMPILERS[".c"][0], every[0]))
        tap.case("self-test: a program that fails is caught", [] if problems else ["it was not"])

        sources = [(source, compiler) for source in sorted(folder.iterdir())
                   for compiler in COMPILERS[source.suffix]]
        programs = [(n, source, compiler, setting) for n, (source, compiler, setting) in enumerate(
            (source, compiler, setting) for source, compiler in sources for setting in settings[compiler[0]])]
        headers = [(header, language, compiler, setting) for header in HEADERS
                   for language, suffix in (("c", ".c"), ("c++", ".cpp"))
                   for compiler in COMPILERS[suffix] for setting in settings[compiler[0]]]
        with ThreadPoolExecutor(2) as pool:
            for name, problems in pool.map(build, programs):
                tap.case(name, problems)
            for name, problems in pool.map(read, headers):
                tap.case(name, problems)
        tap.case("there are programs", [] if programs else ["none was found"])
    tap.done()


main()
