#!/usr/bin/env python3
"""The binary interface of the library: the exported names with their versions (src/interlock.map, by which the
library is linked), the sizes of exported variables, the sizes and offsets of public structures (abi.txt).

usage: abi.py ROOT SHARED STATIC VERSION [options of the compiler]            compare
       abi.py --write ROOT SHARED STATIC VERSION [options of the compiler]    rewrite both lists
       abi.py --names ROOT SHARED STATIC VERSION                              compare only the names, of any machine

A new name gets the current version of the library; a listed name keeps its version."""

import re
import subprocess
import sys
from pathlib import Path

from clang import Headers
from tap import Tap

HEAD = """\
# What the library exports, by the version in which it came. tests/checks/abi.py compares and writes it.
# A name that a machine follows is exported only there.
"""


class Map:
    """The version script: {name: version}, oldest version first, and the names of single machines."""

    def __init__(self, text):
        self.versions, self.only, self.wrong = {}, {}, []
        version = None
        for number, line in enumerate(text.splitlines(), 1):
            words = line.partition("#")[0].split()
            opens = re.fullmatch(r"INTERLOCK_(\d+\.\d+) \{", " ".join(words))
            name = re.fullmatch(r"(\w+);", " ".join(words))
            if opens:
                version = opens.group(1)
            elif name and version:
                if name.group(1) in self.versions:
                    self.wrong.append(f"line {number}: {name.group(1)} again")
                self.versions[name.group(1)] = version
                if "#" in line:
                    self.only[name.group(1)] = line.partition("#")[2].split()
            elif words and " ".join(words) not in ("global:", "local: *;") and not words[0].startswith("}"):
                self.wrong.append(f"line {number}: {line}")

    def text(self):
        result, before = HEAD, ""
        for version in sorted(set(self.versions.values()), key=numbers):
            result += f"INTERLOCK_{version} {{\nglobal:\n"
            for name in sorted(name for name, own in self.versions.items() if own == version):
                machines = " # " + " ".join(self.only[name]) if name in self.only else ""
                result += f"    {name};{machines}\n"
            result += f"}}{before};\n" if before else "local: *;\n};\n"
            before = f" INTERLOCK_{version}"
        return result


def numbers(version):
    return [int(number) for number in version.split(".")]


def series(version):
    return ".".join(version.split(".")[:2])


def symbols(path, *options):
    """(kind, size, name) of the linkable definitions in the file."""
    output = subprocess.run(["readelf", "--wide", *options, path], check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        words = line.split()
        if (len(words) >= 8 and words[4] in ("GLOBAL", "WEAK") and words[5] in ("DEFAULT", "PROTECTED")
                and words[6] not in ("UND", "ABS")):
            yield words[3], int(words[2], 0), words[7]


class Library:
    def __init__(self, shared, static):
        self.versions = {}
        for _, _, name in symbols(shared, "--dyn-syms"):
            name, _, version = name.partition("@")
            self.versions[name] = version.lstrip("@").replace("INTERLOCK_", "") or "none"
        # What the linker would export without the map.
        public = list(symbols(static, "--syms"))
        self.visible = {name for _, _, name in public}
        self.objects = {name: size for kind, size, name in public if kind == "OBJECT"}
        header = subprocess.run(["readelf", "--file-header", shared], check=True, capture_output=True, text=True).stdout
        self.machine = re.search(r"Machine:.*?(X86-64|AArch64|RISC-V)", header).group(1).lower().replace(
            "x86-64", "x86_64").replace("risc-v", "riscv64")

    def compare_names(self, listed):
        wanted = {name: version for name, version in listed.versions.items()
                  if self.machine in listed.only.get(name, [self.machine])}
        return ([f"{name} of version {wanted[name]} is not exported any more"
                 for name in sorted(wanted.keys() - self.versions.keys())]
                + [f"{name} is exported, and not listed" for name in sorted(self.versions.keys() - wanted.keys())]
                + [f"{name} is public, and not listed" for name in sorted(self.visible - wanted.keys())]
                + [f"{name} has version {self.versions[name]}, listed is {wanted[name]}"
                   for name in sorted(self.versions.keys() & wanted.keys()) if self.versions[name] != wanted[name]])


def structures(root, options):
    """{tag: (size, {member: bit})} of those that the public headers define themselves."""
    folder = root / "include" / "interlock"
    files = sorted(folder.rglob("*.h"))
    text = "".join(f"#include <interlock/{path.relative_to(folder)}>\n" for path in files)
    words = {word for path in files
             for word in re.findall(r"\b(?:struct|union)\s+(\w+)\s*\{", path.read_text(encoding="utf-8"))}
    layouts = Headers(text, [*options, f"-I{folder.parent}"]).layouts()
    return {tag: layout for tag, layout in layouts.items() if tag in words}


def layout_lines(objects, records):
    lines = [f"variable {name} {size}" for name, size in sorted(objects.items())]
    for tag, (size, members) in sorted(records.items()):
        lines.append(f"structure {tag} {size}")
        lines += [f"member {tag}.{name} {bit // 8}{f':{bit % 8}' if bit % 8 else ''}"
                  for name, bit in sorted(members.items(), key=lambda item: (item[1], item[0]))]
    return lines


def compare_lines(wanted, found):
    """Every listed name must exist as listed, and every existing name must be listed."""
    wanted, found = (dict(line.rsplit(" ", 1) for line in lines) for lines in (wanted, found))
    return ([f"{what} is {found.get(what, 'gone')}, listed is {value}" for what, value in sorted(wanted.items())
             if found.get(what) != value]
            + [f"{what} is not listed" for what in sorted(found.keys() - wanted.keys())])


def self_test(tap, library, listed):
    def without(name):
        other = Library.__new__(Library)
        other.__dict__.update(library.__dict__, versions=dict(library.versions))
        return other, other.versions.pop(name)

    some = next(name for name in sorted(library.versions) if name not in listed.only)
    removed, version = without(some)
    tap.case("self-test: a function that is gone is noticed",
             [] if any(some in line for line in removed.compare_names(listed)) else [some])
    removed.versions[some] = "9.9" if version != "9.9" else "9.8"
    tap.case("self-test: a function with another version is noticed",
             [] if any("9.9" in line for line in removed.compare_names(listed)) else [some])
    fewer = Map(listed.text())
    del fewer.versions[some]
    tap.case("self-test: a function that is not listed is noticed, whether the linker lets it out or not",
             [] if any(some in line for line in library.compare_names(fewer))
             and any(some in line for line in removed.compare_names(fewer)) else [some])
    lines = ["variable V 8", "structure S 16", "member S.a 0", "member S.b 8"]
    others = (["variable V 4", *lines[1:]], [*lines[:3], "member S.b 12"], lines[:3], [*lines, "member S.c 12"],
              [lines[0], "structure S 24", *lines[2:]])
    tap.case("self-test: every change of a layout is noticed",
             [str(other) for other in others if len(compare_lines(lines, other)) != 1] + compare_lines(lines, lines))
    newer = Map("INTERLOCK_0.1 {\nglobal:\n    A;\n    B; # riscv64\nlocal: *;\n};\nINTERLOCK_0.10 {\nglobal:\n    C;\n} "
                "INTERLOCK_0.1;\n")
    tap.case("self-test: the map is read as it is written",
             [] if newer.versions == {"A": "0.1", "B": "0.1", "C": "0.10"} and newer.only == {"B": ["riscv64"]}
             and Map(newer.text()).versions == newer.versions and not newer.wrong else [newer.text(), newer.wrong])


def write(map_path, list_path, library, listed, lines, version):
    names = library.visible | {name for name in listed.only if library.machine not in listed.only[name]}
    for name in sorted(listed.versions.keys() - names):
        print(f"- {name}: programs that use it need another soname")
        del listed.versions[name]
    for name in sorted(names - listed.versions.keys()):
        print(f"+ {name} {series(version)}")
        listed.versions[name] = series(version)
    map_path.write_text(listed.text())
    list_path.write_text("\n".join(lines) + "\n")


def main():
    arguments = [word for word in sys.argv[1:] if word not in ("--write", "--names")]
    root, shared, static, version, options = Path(arguments[0]).resolve(), *arguments[1:4], arguments[4:]
    map_path, list_path = root / "src" / "interlock.map", root / "tests" / "checks" / "abi.txt"
    listed = Map(map_path.read_text() if map_path.exists() else "")
    library = Library(shared, static)
    if "--names" in sys.argv:
        sys.exit("\n".join(library.compare_names(listed)) or None)
    lines = layout_lines(library.objects, structures(root, options))
    if "--write" in sys.argv:
        write(map_path, list_path, library, listed, lines, version)
        return
    tap = Tap()
    self_test(tap, library, listed)
    tap.case("the map can be read, and is written as it stands",
             listed.wrong or ([] if listed.text() == map_path.read_text() else ["abi.py --write gives another one"]))
    tap.case("no version is newer than the library",
             [own for own in sorted(set(listed.versions.values())) if numbers(own) > numbers(series(version))])
    tap.note(f"{len(library.versions)} names, {len(lines)} sizes and offsets")
    tap.case("the exported names and their versions are those listed", library.compare_names(listed))
    tap.case("sizes of variables, structures and their members are those listed",
             compare_lines(list_path.read_text().splitlines(), lines))
    tap.done()


if __name__ == "__main__":
    main()
