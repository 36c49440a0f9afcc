#!/usr/bin/env python3
"""libinterlock.so exports exactly what the public headers declare, and calls none of it by name."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from clang import Headers
from tap import Tap


# Exported for debuggers, which find it by name; src/ke/debugdata.h declares it.
FOR_DEBUGGERS = {"KdDebuggerDataBlock"}


def exported(line):
    """The name in a line of readelf if others can link with it. Some linkers list hidden names too; versions are absolute."""
    words = line.split()
    if len(words) < 8 or words[4] not in ("GLOBAL", "WEAK") or words[5] not in ("DEFAULT", "PROTECTED"):
        return None
    return words[7].split("@")[0] if words[6] not in ("UND", "ABS") else None


def exports(library):
    output = subprocess.run(["readelf", "--dyn-syms", "--wide", library], check=True,
                            capture_output=True, text=True).stdout
    return {name for name in map(exported, output.splitlines()) if name}


def exported_functions(symbols):
    """Names in the output of readelf --dyn-syms."""
    return {exported(line) for line in symbols.splitlines() if " FUNC " in line} - {None}


def interposable(symbols, relocations):
    """Functions that the library calls through the loader, so that a definition in the program would replace them."""
    functions = exported_functions(symbols)
    referred = {words[4].split("@")[0] for words in map(str.split, relocations.splitlines())
                if len(words) > 4 and words[2].startswith("R_")}
    return sorted(functions & referred)


def lazy_thread_storage(relocations):
    """Relocations of thread-local variables that the loader may allocate on first use, on any path."""
    return [line for line in relocations.splitlines() if re.search(r"\bR_\w+_(DTPMOD\w*|DTPOFF\w*|TLSDESC\w*|TLS_DTP\w+)\b", line)]


def compare(declared, exported):
    return (sorted(f"{name} (declared in {Path(declared[name]).name})"
                   for name in declared.keys() - exported),
            sorted(exported - declared.keys()))


def main():
    tap = Tap()
    root, library, options = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:]
    folder = root / "include" / "interlock"
    text = "".join(f"#include <interlock/{p.relative_to(folder)}>\n" for p in sorted(folder.rglob("*.h")))
    headers = Headers(text, [*options, f"-I{folder.parent}"])
    declared, _ = headers.declared(folder)
    found = exports(library)
    problems = FOR_DEBUGGERS - found
    found -= FOR_DEBUGGERS
    tap.note(f"{len(declared)} names declared, {len(found)} exported")

    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "planted.h").write_text(
            "#include <interlock/ke.h>\nvoid KePlanted(void);\nextern int KePlantedData;\n"
            "static inline void KeInline(void) {}\ninline void KeInlineToo(void) {}\n", encoding="utf-8")
        planted = Headers("#include <planted.h>\n", [*headers.options, f"-I{directory}"])
        external, inline = planted.declared(directory)
    tap.case("self-test: declarations are seen, static functions and other headers are not",
             [] if external.keys() == {"KePlanted", "KePlantedData", "KeInlineToo"} and inline.keys() == {"KeInline"}
             else [sorted(external), sorted(inline)])
    line = "  140: 0000000000070ec0     0 NOTYPE  GLOBAL {}    25 Name"
    tap.case("self-test: hidden names are not exported",
             [] if exported(line.format("DEFAULT")) == "Name" and exported(line.format("HIDDEN")) is None else [line])
    missing, extra = compare({"KeSetEvent": "ke.h"}, {"KiInternal"})
    tap.case("self-test: differences are reported", [] if missing and extra else ["none was"])

    symbols = "   7: 0000000000001130    11 FUNC    GLOBAL DEFAULT   13 KeSetEvent@@INTERLOCK_0.2\n" \
              "   8: 0000000000001140    11 FUNC    GLOBAL DEFAULT  UND malloc@GLIBC_2.2.5 (2)\n" \
              "   9: 0000000000004140     8 OBJECT  GLOBAL DEFAULT   25 PsThreadType@@INTERLOCK_0.2\n"
    entry = "0000000000004018  0000000600000007 R_X86_64_{}  0000000000000000 {}@@INTERLOCK_0.2 + 0\n"
    quiet = entry.format("JUMP_SLOT", "malloc") + entry.format("GLOB_DAT", "PsThreadType")
    tap.case("self-test: calls through the loader are seen, variables and other libraries' functions are not",
             [] if interposable(symbols, quiet) == [] and
             interposable(symbols, quiet + entry.format("JUMP_SLOT", "KeSetEvent")) == ["KeSetEvent"] and
             interposable(symbols, entry.format("64", "KeSetEvent")) == ["KeSetEvent"] else ["they are not"])

    tap.case("self-test: thread-local variables that are allocated late are seen",
             [] if lazy_thread_storage(entry.format("DTPMOD64", "x")) and not lazy_thread_storage(entry.format("TPOFF64", "x"))
             else ["they are not"])

    missing, extra = compare(declared, found)
    tap.case("what debuggers look for is exported", problems)
    tap.case("every declared name is exported", missing)
    tap.case("every exported name is declared", extra)
    symbols, relocations = (subprocess.run(["readelf", option, "--wide", library], check=True, capture_output=True,
                                           text=True).stdout for option in ("--dyn-syms", "--relocs"))
    tap.case("the library calls its own functions, not what a program puts in their place", interposable(symbols, relocations))
    tap.case("thread-local variables are there from a thread's start", lazy_thread_storage(relocations))
    tap.done()


main()
