#!/usr/bin/env python3
"""Installed files are hardened as docs/packaging.md says, according to readelf."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tap import Tap

# Counts the cache lines of simulated processors, whose addresses must be the same in every run; it reads only its
# arguments.
SIMULATION = {"lab-scale"}


def readelf(*arguments):
    return subprocess.run(["readelf", "--wide", *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def imports(path):
    """Names that the file imports."""
    words = (line.split() for line in readelf("--dyn-syms", path).splitlines())
    return {word[7].split("@")[0] for word in words if len(word) > 7 and word[6] == "UND"}


def is_dynamic_elf(path):
    with open(path, "rb") as file:
        header = file.read(18)
    return header[:4] == b"\x7fELF" and header[16:18] in (b"\x02\0", b"\x03\0")


def layout_problems(path):
    """Problems of the segments and the dynamic section, which every file must pass."""
    segments = readelf("-l", path)
    dynamic = readelf("-d", path)
    loads = re.findall(r"^\s+LOAD\s+(0x\w+) .*? ([R ][W ][E ]) 0x\w+$", segments, re.M)
    stack = re.search(r"GNU_STACK.* ([R ][W ][E ]) 0x\w+$", segments, re.M)
    if path.name not in SIMULATION and not re.search(r"Type:\s+DYN", readelf("-h", path)):
        yield "it is not position-independent"
    if "GNU_RELRO" not in segments:
        yield "nothing becomes read-only after relocation (-z relro)"
    if not re.search(r"BIND_NOW|Flags:.*\bNOW\b", dynamic):
        yield "functions are bound when they are first called (-z now)"
    if stack is None or "E" in stack.group(1):
        yield "the stack is executable"
    if any("W" in flags and "E" in flags for _, flags in loads):
        yield "a segment is writable and executable"
    if any("E" in flags for offset, flags in loads if int(offset, 16) == 0):
        yield "the executable segment holds more than code (-z separate-code)"
    if "TEXTREL" in dynamic:
        yield "code is relocated"
    if re.search(r"\((?:RPATH|RUNPATH)\)", dynamic):
        yield "it looks for libraries in a folder of its own"


def code_problems(path):
    """Problems of the compiler's hardening, which shows in the functions of the C library that the file calls."""
    needed = imports(path)
    if "__stack_chk_fail" not in needed:
        yield "no function guards its stack (-fstack-protector)"
    if not any(re.fullmatch(r"__\w+_chk", name) for name in needed):
        yield "no call of the C library is checked (_FORTIFY_SOURCE)"


def archive_problems(path, machine):
    """Members that are not marked for a shadow stack (x86-64) or for branch protection (aarch64)."""
    wanted = {"x86_64": "SHSTK", "aarch64": "BTI"}.get(machine)
    members = re.split(r"^File: ", readelf("-n", path), flags=re.M)[1:]
    if not members:
        yield "it has no members"
    if wanted:
        yield from (f"{member.splitlines()[0]}: no {wanted}" for member in members if wanted not in member)


def cases(tap, root, machine):
    """Everything that was installed below root."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink()]
    programs = [path for path in files if is_dynamic_elf(path)]
    tap.case("hardening: there are a library and programs",
             [] if {path.suffix == "" for path in programs} == {True, False} else [str(programs)])
    for path in programs:
        tap.case(f"hardening: {path.relative_to(root)}",
                 [*layout_problems(path), *([] if path.name in SIMULATION else code_problems(path))])
    for path in (path for path in files if path.name == "libinterlock.a"):
        tap.case(f"hardening: {path.relative_to(root)}", archive_problems(path, machine))


PROGRAM = "#include <stdio.h>\n#include <string.h>\nint main(int n, char **a) { char t[16]; snprintf(t, n, \"%s\", a[0]); " \
          "return strlen(t); }\n"
HARDENED = ["-O2", "-fPIE", "-pie", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro",
            "-Wl,-z,now", "-Wl,-z,noexecstack", "-Wl,-z,separate-code"]
PLANTED = {
    "a program at a fixed address": ["-no-pie", "-fno-pie"],
    "no relro": ["-Wl,-z,norelro"],
    "lazy binding": ["-Wl,-z,lazy"],
    "an executable stack": ["-Wl,-z,execstack"],
    "code beside data": ["-Wl,-z,noseparate-code"],
    "no stack protector": ["-fno-stack-protector"],
    "no fortification": ["-U_FORTIFY_SOURCE"],
    "a path of its own": ["-Wl,-rpath,/tmp"],
}


def self_test(tap, compiler):
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "program.c"
        source.write_text(PROGRAM, encoding="utf-8")
        for number, (what, flags) in enumerate({"": [], **PLANTED}.items()):
            program = Path(directory) / f"program-{number}"
            subprocess.run([*compiler, source, *HARDENED, *flags, "-o", program], check=True)
            found = [*layout_problems(program), *code_problems(program)]
            tap.case(f"self-test: {what} is caught" if what else "self-test: a hardened program passes",
                     ([] if found else ["nothing was reported"]) if what else found)


def main():
    tap = Tap()
    self_test(tap, sys.argv[1:])
    tap.done()


if __name__ == "__main__":
    main()
