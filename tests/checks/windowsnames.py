#!/usr/bin/env python3
"""windows.h declares nothing that the SDK keeps out of it.

Every name that our windows.h defines must be in mingw-w64's windows.h, an independent source, or in the host's
headers, or be listed in windowsnames.txt with its reason. An entry of the list that matches nothing is an error."""

import fnmatch
import re
import sys
from pathlib import Path

from clang import Headers
from mingw import MINGW_OPTIONS
from tap import Tap

# The host's headers that windows.h includes, and the compiler's builtins.
HOST = "".join(f"#include <{name}>\n" for name in (
    "errno.h", "malloc.h", "setjmp.h", "stdarg.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "strings.h",
    "time.h", "wchar.h"))
# Names that windows.h must not have: they belong to winternl.h and ntstatus.h.
NATIVE = ["UNICODE_STRING", "OBJECT_ATTRIBUTES", "CLIENT_ID", "RtlInitUnicodeString", "RtlNtStatusToDosError", "NtClose",
          "RtlWaitOnAddress", "RtlEnterCriticalSection", "STATUS_SUCCESS", "STATUS_UNSUCCESSFUL", "NT_SUCCESS"]


def names(headers):
    """Functions, types, tags, enumerators and macros of any kind."""
    output = headers.run("-E", "-dM").stdout
    functions, typedefs = headers.declarations()
    return (set(functions) | set(typedefs) | set(headers.layouts()) | headers.enumerators() |
            set(re.findall(r"^#define ([A-Za-z]\w*)", output, re.M)))


def read_list(text):
    """({pattern: reason}, lines that are wrong)."""
    allowed, wrong = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            match = re.fullmatch(r"([\w*]+): (\S.*)", line)
            if match:
                allowed[match.group(1)] = match.group(2)
            else:
                wrong.append(f"line {number}: expected \"name or pattern: reason\"")
    return allowed, wrong


def judge(extra, allowed):
    """(names without a reason, patterns without a name)."""
    matched = {pattern: {name for name in extra if fnmatch.fnmatchcase(name, pattern)} for pattern in allowed}
    covered = set().union(*matched.values()) if matched else set()
    return sorted(extra - covered), sorted(pattern for pattern, found in matched.items() if not found)


def main():
    tap = Tap()
    root, options = Path(sys.argv[1]).resolve(), sys.argv[2:]
    found = judge({"KeOne", "KeTwo", "RtlThree"}, {"Ke*": "kernel", "Nt*": "none"})
    tap.case("self-test: names without a reason and reasons without a name are found",
             [] if found == (["RtlThree"], ["Nt*"]) else [found])
    planted = names(Headers("#define CALL(x) x\n#define VALUE 1\ntypedef int T; enum { E }; void f(T);\n", []))
    tap.case("self-test: names of every kind are seen", {"CALL", "VALUE", "T", "E", "f"} - planted)

    ours = names(Headers("#include <windows.h>\n", [*options, f"-I{root}/include", f"-I{root}/include/win32"]))
    host = names(Headers(HOST, options))
    theirs = names(Headers("#include <windows.h>\n", MINGW_OPTIONS))
    tap.note(f"{len(ours - host)} names, {len(ours & theirs)} of them in mingw-w64's windows.h")
    allowed, wrong = read_list((root / "tests" / "checks" / "windowsnames.txt").read_text(encoding="utf-8"))
    tap.case("windowsnames.txt can be read", wrong)
    tap.case("enough names were compared", [] if len(ours & theirs) > 1000 else [len(ours & theirs)])
    unknown, unused = judge({name for name in ours - host - theirs if not name.startswith("__")}, allowed)
    tap.case("every name is one of Windows' own windows.h, or has a reason", unknown)
    tap.case("every reason has a name", unused)
    tap.case("the native interface is not in windows.h", [name for name in NATIVE if name in ours])
    native = names(Headers("#include <windows.h>\n#include <winternl.h>\n",
                           [*options, f"-I{root}/include", f"-I{root}/include/win32"]))
    tap.case("it is in winternl.h", [name for name in NATIVE if name not in native])
    tap.done()


if __name__ == "__main__":
    main()
