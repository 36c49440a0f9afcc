#!/usr/bin/env python3
"""Every public header compiles alone, once and twice, as C11 and as C++17, with gcc and clang, and not for 32 bits."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tap import Tap

STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-Wundef", "-Wshadow", "-Wcast-qual", "-Wconversion",
          "-fsyntax-only"]
LANGUAGES = {
    "C11": ["-x", "c", "-std=c11", "-Wstrict-prototypes"],
    "C++17": ["-x", "c++", "-std=c++17"],
}
# As C, every warning of clang except those about the names and structures of Windows.
EVERYTHING = ["-Weverything", "-Wno-reserved-identifier", "-Wno-reserved-macro-identifier", "-Wno-padded",
              "-Wno-declaration-after-statement", "-Wno-disabled-macro-expansion", "-Wno-atomic-implicit-seq-cst", "-Wno-unknown-warning-option"]
MORE = {("C11", "clang"): EVERYTHING}
COMPILERS = {"C11": ["gcc", "clang"], "C++17": ["g++", "clang++"]}
FRONT_DOORS = ["interlock/ke.h", "ntddk.h", "windows.h"]
FOLDERS = {"interlock": "interlock/", "interlock/win32": "interlock/win32/", "wdk": "", "win32": ""}
# Comments, and the lines that keep a header from being read twice.
NOTHING = re.compile(r"/\*.*?\*/|//[^\n]*|^#pragma once$|^#ifndef (\w+)\n#define \1$|^#endif$", re.S | re.M)


def forwards(text):
    """Whether a header is only another name of one that is compiled by all: then one compiler is enough."""
    return re.fullmatch(r"\s*#include [<\"][\w/.]+[>\"]\s*", NOTHING.sub("", text)) is not None


def compile_text(text, language, compiler, include, *options):
    """What the compiler complains about."""
    command = [compiler, *LANGUAGES[language], *STRICT, *MORE.get((language, compiler), []), *options]
    command += [f"-I{include}", f"-I{include}/wdk", f"-I{include}/win32", "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    return [result.stderr] if result.returncode != 0 else []


def main():
    tap = Tap()
    include = Path(sys.argv[1]).resolve() / "include"

    for language, compilers in COMPILERS.items():
        for compiler in compilers:
            caught = compile_text("static int unused(int x) { return 0; }\n", language, compiler, include)
            tap.case(f"self-test: {compiler} refuses a warning",
                     [] if caught else ["it compiled"])

    guard = "/* A. */\n#ifndef A_H\n#define A_H\n#include <windows.h>\n%s#endif\n"
    tap.case("self-test: a header that only includes another is recognised",
             [] if forwards(guard % "") and forwards("#pragma once\n#include <windows.h>\n")
             and not any(forwards(guard % more) for more in ("#define X 1\n", "#include <sal.h>\n", "int x;\n")) else ["it is not"])

    cases, names = [], 0
    for folder, prefix in FOLDERS.items():
        for path in sorted((include / folder).glob("*.h")):
            line = f"#include <{prefix}{path.name}>\nextern int declared;\n" # a header with only macros declares nothing
            if forwards(path.read_text(encoding="utf-8")):
                cases.append((f"{folder}/{path.name} includes another", line, "C11", "gcc"))
                names += 1
                continue
            for language, compilers in COMPILERS.items():
                for compiler in compilers:
                    name = f"{folder}/{path.name} {language} {compiler}"
                    cases.append((name, line, language, compiler))

    # A header that compiles twice compiles once: after a failure, once tells which of the two failed.
    def run(case):
        name, line, language, compiler = case
        twice = compile_text(line + line, language, compiler, include)
        once = compile_text(line, language, compiler, include) if twice else []
        return name, once or [f"included twice:\n{p}" for p in twice]

    for header in FRONT_DOORS:
        for compiler in COMPILERS["C11"]:
            said = compile_text(f"#include <{header}>\n", "C11", compiler, include, "-m32")
            first = re.search(r"error: (.*)", said[0] if said else "error: none")
            tap.case(f"{compiler} -m32 {header} is refused with a sentence",
                     [] if "Interlock needs a 64-bit" in first.group(1) else said or ["it compiled"])

    with ThreadPoolExecutor(2) as pool:
        for name, problems in pool.map(run, cases):
            tap.case(name, problems)
    tap.case("there are public headers", [] if len(cases) > names > 0 else ["none was found"])
    tap.done()


main()
