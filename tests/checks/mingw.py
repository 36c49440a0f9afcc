#!/usr/bin/env python3
"""Sizes, member offsets, prototypes and constants against the headers of mingw-w64.

What both our public headers and theirs define must agree. mingw-differences.txt lists the intended
differences; an entry that is no longer needed is an error."""

import re
import sys
from pathlib import Path

from clang import Headers, Types
from tap import Tap

MINGW = Path("/usr/share/mingw-w64/include")
VERSION = ["-D_WIN32_WINNT=0x0A00", "-DNTDDI_VERSION=0x0A000008"]
MINGW_OPTIONS = ["-target", "x86_64-w64-mingw32", "-isystem", str(MINGW), "-isystem", str(MINGW / "ddk"), *VERSION]
WORLDS = {
    "kernel": "#include <ntifs.h>\n#include <ntstrsafe.h>\n",
    "user": "#define WIN32_NO_STATUS\n#include <windows.h>\n#undef WIN32_NO_STATUS\n"
            "#include <ntstatus.h>\n#include <winternl.h>\n#include <process.h>\n#include <conio.h>\n"
            "#include <intrin.h>\n#include <sys/timeb.h>\n#include <strsafe.h>\n#include <winapifamily.h>\n"
            "#include <mmsystem.h>\n#include <time.h>\n#include <intsafe.h>\n",
}
# Our headers outside include/interlock.
C_LIBRARY = ["corecrt.h", "intrin.h", "intsafe.h", "ntstrsafe.h", "strsafe.h", "winapifamily.h"]
# Fewer comparisons than these mean that the comparison itself is broken.
AT_LEAST = {"structure": 20, "member": 90, "function": 120, "constant": 450}


class Side:
    """The headers of one side, read once. With a folder, only the functions and constants of its
    files, not those of the C library headers that they include."""

    def __init__(self, headers, long_bits, folder=None):
        self.headers = headers
        self.functions, self.typedefs = headers.declarations()
        self.types = Types(self.typedefs, long_bits)
        self.layouts = headers.layouts()
        self.constants = headers.enumerators() | headers.macros()
        if folder:
            external, inline = headers.declared(folder)
            own = external.keys() | inline.keys()
            self.functions = {n: t for n, t in self.functions.items() if n in own}
            words = {w for p in folder.rglob("*.h")
                     for w in re.findall(r"\w+", p.read_text(encoding="utf-8"))}
            self.constants &= words
            self.layouts = {tag: layout for tag, layout in self.layouts.items() if tag in words}

    def record_of(self, name):
        """The tag of the structure that a typedef names, None if it names something else."""
        match = re.fullmatch(r"(?:struct|union) (\w+)", self.types.canonical(name))
        return match.group(1) if match and match.group(1) in self.layouts else None


class Comparison:
    """What two sides share, and where they differ: {kind: {name: difference or None}}."""

    def __init__(self, ours, theirs):
        self.ours, self.theirs = ours, theirs
        self.results = {kind: {} for kind in AT_LEAST}
        self.same_tag = {}
        self.compare_layouts()
        self.compare_functions()
        self.compare_constants()

    def compare_layouts(self):
        pairs = {tag: (tag, tag) for tag in self.ours.layouts.keys() & self.theirs.layouts.keys()}
        for name in self.ours.typedefs.keys() & self.theirs.typedefs.keys():
            ours, theirs = self.ours.record_of(name), self.theirs.record_of(name)
            if ours and theirs and ours != theirs:
                pairs[name] = (ours, theirs)
                self.same_tag[theirs] = ours
        for name, (our_tag, their_tag) in pairs.items():
            our_size, our_members = self.ours.layouts[our_tag]
            their_size, their_members = self.theirs.layouts[their_tag]
            self.results["structure"][name] = (
                None if our_size == their_size else f"size {our_size}, theirs {their_size}")
            for member in our_members.keys() & their_members.keys():
                our_bit, their_bit = our_members[member], their_members[member]
                self.results["member"][f"{name}.{member}"] = (
                    None if our_bit == their_bit
                    else f"offset {our_bit / 8:g}, theirs {their_bit / 8:g}")

    def compare_functions(self):
        for name in self.ours.functions.keys() & self.theirs.functions.keys():
            # a va_list is the host's
            ours = self.ours.types.canonical(self.ours.functions[name]).replace("struct __va_list_tag", "i8")
            theirs = self.theirs.types.canonical(self.theirs.functions[name])
            renamed = re.sub(r"(?<=struct )\w+|(?<=union )\w+",
                             lambda m: self.same_tag.get(m.group(0), m.group(0)), theirs)
            self.results["function"][name] = (
                None if ours == renamed
                else f"{self.ours.functions[name]}, theirs {self.theirs.functions[name]}"
                     f"\n  = {ours}\n  / {renamed}")

    def compare_constants(self):
        names = self.ours.constants & self.theirs.constants
        ours, theirs = self.ours.headers.values(names), self.theirs.headers.values(names)
        for name in ours.keys() & theirs.keys():
            self.results["constant"][name] = (
                None if ours[name] == theirs[name] else f"{ours[name]:#x}, theirs {theirs[name]:#x}")


def read_differences(path):
    """{(kind, name): reason}, and the lines that are wrong."""
    wanted, wrong = {}, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"(\w+) ([\w.]+): (\S.*)", line)
        if match and match.group(1) in AT_LEAST:
            wanted[match.group(1), match.group(2)] = match.group(3)
        else:
            wrong.append(f"line {number}: expected \"kind name: reason\"")
    return wanted, wrong


def self_test(tap):
    ours = Side(Headers(
        "typedef int LONG; typedef LONG *PLONG; typedef void *PVOID;\n"
        "typedef struct _A { int x; struct { char a; LONG b; }; union { LONG c; char d; } u; } A;\n"
        "typedef struct _OURS { int x; } C;\n"
        "typedef void (*CALLBACK)(A *, const LONG *);\n"
        "#define SAME 3\n#define OTHER 4\nenum { FIRST, SECOND };\n"
        "LONG f(PLONG, A *); void g(CALLBACK); void h(C *); LONG i(LONG); void j(LONG volatile *);\n",
        []), 64)
    theirs = Side(Headers(
        "typedef long LONG; typedef LONG *PLONG;\n"
        "typedef struct _A { int x; struct { char a, pad[7]; LONG b; }; union { LONG c; char d; } u; } A;\n"
        "typedef struct _THEIRS { int x; } C;\n"
        "#define SAME (1 + 2)\n#define OTHER 5\nenum { SECOND, FIRST };\n"
        "LONG __stdcall f(LONG *, struct _A *); void g(void (*)(A *, LONG *)); void h(C *);\n"
        "LONG i(unsigned long); void j(PLONG);\n",
        ["-target", "x86_64-w64-mingw32"]), 32)
    results = Comparison(ours, theirs).results
    differing = {(kind, name) for kind, entries in results.items()
                 for name, difference in entries.items() if difference}
    equal = {(kind, name) for kind, entries in results.items()
             for name, difference in entries.items() if not difference}
    expected = {("structure", "_A"), ("member", "_A.b"), ("member", "_A.u"), ("member", "_A.u.c"),
                ("member", "_A.u.d"), ("function", "i"), ("constant", "OTHER"),
                ("constant", "FIRST"), ("constant", "SECOND")}
    tap.case("self-test: differences are found, and only they",
             [] if differing == expected else [sorted(differing ^ expected)])
    expected = {("structure", "C"), ("member", "_A.x"), ("member", "_A.a"), ("member", "C.x"),
                ("function", "f"), ("function", "g"), ("function", "h"), ("function", "j"),
                ("constant", "SAME")}
    tap.case("self-test: equal things are compared",
             [] if expected <= equal else [sorted(expected - equal)])


def main():
    tap = Tap()
    root, options = Path(sys.argv[1]).resolve(), sys.argv[2:]
    self_test(tap)

    folder = root / "include"
    text = "".join(f"#include <{p.relative_to(folder)}>\n" for p in sorted((folder / "interlock").rglob("*.h")))
    text += "".join(f"#include <{name}>\n" for name in C_LIBRARY)
    ours = Side(Headers(text, [*options, f"-I{folder}", f"-I{folder / 'win32'}",
                                f"-I{folder / 'wdk'}", *VERSION]), 64, folder)
    wanted, wrong = read_differences(root / "tests" / "checks" / "mingw-differences.txt")
    tap.case("mingw-differences.txt can be read", wrong)

    unused = dict(wanted)
    compared = {kind: set() for kind in AT_LEAST}
    for world, header in WORLDS.items():
        results = Comparison(ours, Side(Headers(header, MINGW_OPTIONS), 32)).results
        for kind, entries in results.items():
            compared[kind] |= entries.keys()
            problems = []
            for name, difference in sorted(entries.items()):
                if difference and (kind, name) in wanted:
                    unused.pop((kind, name), None)
                elif difference:
                    problems.append(f"{name}: {difference}")
            tap.case(f"{kind}s agree with the {world} headers ({len(entries)} compared)", problems)

    tap.note(", ".join(f"{len(names)} {kind}s" for kind, names in compared.items()) + " compared")
    tap.note(f"{len(ours.functions.keys() - compared['function'])} of our functions are not in them")
    for kind, names in compared.items():
        tap.case(f"enough {kind}s were compared",
                 [] if len(names) >= AT_LEAST[kind] else [f"only {len(names)}"])
    tap.case("every listed difference is there",
             [f"{kind} {name} agrees, or is gone" for kind, name in sorted(unused)])
    tap.done()


if __name__ == "__main__":
    main()
