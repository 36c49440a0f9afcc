#!/usr/bin/env python3
"""libinterlock.so exports what the public headers declare, nothing less and nothing more."""

import subprocess
import sys
import tempfile
from pathlib import Path

from clang import Headers
from tap import Tap


def exports(library):
    output = subprocess.run(["nm", "-D", "--defined-only", "-P", library], check=True,
                            capture_output=True, text=True).stdout
    return {line.split()[0].split("@")[0] for line in output.splitlines()}


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
    exported = exports(library)
    tap.note(f"{len(declared)} names declared, {len(exported)} exported")

    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "planted.h").write_text(
            "#include <interlock/ke.h>\nvoid KePlanted(void);\nextern int KePlantedData;\n"
            "static inline void KeInline(void) {}\ninline void KeInlineToo(void) {}\n", encoding="utf-8")
        planted = Headers("#include <planted.h>\n", [*headers.options, f"-I{directory}"])
        external, inline = planted.declared(directory)
    tap.case("self-test: declarations are seen, static functions and other headers are not",
             [] if external.keys() == {"KePlanted", "KePlantedData", "KeInlineToo"} and inline.keys() == {"KeInline"}
             else [sorted(external), sorted(inline)])
    missing, extra = compare({"KeSetEvent": "ke.h"}, {"KiInternal"})
    tap.case("self-test: differences are reported", [] if missing and extra else ["none was"])

    missing, extra = compare(declared, exported)
    tap.case("every declared name is exported", missing)
    tap.case("every exported name is declared", extra)
    tap.done()


main()
