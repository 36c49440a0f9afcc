#!/usr/bin/env python3
"""tests/surface/functions.def has a row for every function that libinterlock.so exports and no other, with the
parameters that the public headers declare.

usage: table.py ROOT LIBRARY OPTION...           compares
       table.py --write ROOT LIBRARY OPTION...   rewrites the table"""

import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "checks"))

from clang import Headers, Types  # noqa: E402
from tap import Tap  # noqa: E402

LAYERS = (("Nt", "service"), ("Zw", "kernel"), ("Rtl", "runtime"), ("Tp", "runtime"),
          ("Ke", "kernel"), ("Kf", "kernel"), ("Ex", "kernel"), ("Ob", "kernel"), ("Ps", "kernel"),
          ("Io", "kernel"), ("Mm", "kernel"))
WORDS = {"u8": "8", "i8": "8", "u16": "16", "i16": "16", "u32": "32", "i32": "32", "u64": "64", "i64": "64"}
NOT_HANDLES = {"UniqueThreadId": "id", "ThreadId": "id", "ProcessId": "id", "hHeap": "heap", "HeapHandle": "heap"}
OBJECTS = (("keyed", "keyedevent"), ("eventpair", "eventpair"), ("event", "event"), ("semaphore", "semaphore"),
           ("mutant", "mutant"), ("mutex", "mutant"), ("waitcompletionpacket", "packet"), ("timer", "timer"),
           ("iocompletion", "port"), ("completionport", "port"), ("directory", "directory"), ("link", "link"),
           ("thread", "thread"), ("process", "process"), ("queue", "timerqueue"))


def layer_of(name, header):
    if header.startswith("win32"):
        return "win32"
    return next((layer for prefix, layer in LAYERS if re.match(prefix + "[A-Zaf]", name)), "runtime")


def handle_of(function, parameter):
    """The kind of object of the handle, as far as the names tell it."""
    if parameter in NOT_HANDLES:
        return NOT_HANDLES[parameter]
    if re.match(r"(Rtl|Tp)?(Deregister|Unregister)Wait", function):
        return "handle" if "Event" in parameter else "poolwait"
    if "TimerQueue" in function or re.match(r"Rtl(Create|Update|Delete)Timer", function):
        return "handle" if "Event" in parameter else \
            "timerqueue" if "Queue" in parameter else "pooltimer"
    for text in (parameter, function):
        for part, kind in OBJECTS:
            if part in text.lower().replace("currentthread", ""):
                return f"handle:{kind}"
        if text == parameter and text not in ("Handle", "hHandle"):
            return "handle"
    return "handle"


def kind_of(function, parameter, spelled, types):
    spelled = spelled.replace("const ", "").replace("volatile ", "").strip()
    if spelled == "HANDLE":
        return handle_of(function, parameter)
    if spelled in ("HMODULE", "HWCT"):
        return spelled.lower()
    if spelled in ("LPCWSTR", "PCWSTR", "PCWCH", "LPCWCH", "LPWSTR", "WCHAR *"):
        return "wide*"
    if spelled in ("LPCSTR", "LPCCH", "LPSTR"):
        return "text*"
    if spelled in ("HLOCAL", "HGLOBAL"):
        return "block"
    canonical = types.canonical(spelled)
    if canonical.startswith("pointer to function") or "ROUTINE" in spelled and "APC_ROUTINE *" in spelled:
        return "routine"
    if canonical.startswith("pointer to"):
        target = canonical[len("pointer to "):]
        if target.startswith("pointer to"):
            return "pointer*"
        return (re.sub(r"^(struct|union) _?", "", target) if target[:1] in "su" and " " in target
                else "bits" + WORDS[target] if target in WORDS else target.split()[-1]) + "*"
    if canonical.startswith("union _LARGE_INTEGER"):
        return "time"
    if re.search(r"milliseconds|timeout", parameter, re.I) and canonical == "u32":
        return "milliseconds"
    return ("signed" if canonical in ("i8", "i16") else "bits") + WORDS.get(canonical, "32")


def prototypes(headers, folder):
    """[(name, header, result, kinds)] of what the headers declare with external linkage."""
    declared, _ = headers.declared(folder)
    _, typedefs = headers.declarations()
    types = Types(typedefs, 64)
    tree = json.loads(headers.run("-fsyntax-only", "-Xclang", "-ast-dump=json").stdout)
    seen = set()
    for node in tree["inner"]:
        name = node.get("name")
        if node["kind"] != "FunctionDecl" or name not in declared or name in seen:
            continue
        seen.add(name)
        result = node["type"]["qualType"].split("(")[0].strip()
        parameters = [p for p in node.get("inner", []) if p["kind"] == "ParmVarDecl"]
        kinds = [kind_of(name, p.get("name", ""), p["type"]["qualType"], types) for p in parameters]
        yield name, str(Path(declared[name]).relative_to(folder)), result, kinds


def rows(headers, folder):
    result_of = {"NTSTATUS": "status", "BOOL": "boolean", "HANDLE": "handle", "void": "nothing"}
    for name, header, result, kinds in prototypes(headers, folder):
        yield f'FUNCTION({name}, {layer_of(name, header)}, {result_of.get(result, "value")}, "{" ".join(kinds)}")'


def exported_functions(library):
    output = subprocess.run(["readelf", "--dyn-syms", "--wide", library], check=True, capture_output=True, text=True)
    names = set()
    for line in output.stdout.splitlines():
        words = line.split()
        if len(words) >= 8 and words[3] == "FUNC" and words[4] in ("GLOBAL", "WEAK") and words[6] != "UND" \
                and words[5] in ("DEFAULT", "PROTECTED"):
            names.add(words[7].split("@")[0])
    return names


def compare(expected, found):
    return [f"missing or changed: {row}" for row in expected if row not in set(found)] + \
           [f"not in the headers: {row}" for row in found if row not in set(expected)]


def main():
    arguments = sys.argv[1:]
    write = arguments[:1] == ["--write"]
    root, library, options = Path(arguments[write]).resolve(), arguments[write + 1], arguments[write + 2:]
    folder = root / "include" / "interlock"
    table = root / "tests" / "surface" / "functions.def"
    text = "".join(f"#include <interlock/{p.relative_to(folder)}>\n" for p in sorted(folder.rglob("*.h")))
    expected = list(rows(Headers(text, [*options, f"-I{folder.parent}"]), folder))
    if write:
        table.write_text("\n".join(expected) + "\n", encoding="utf-8")
        return
    found = table.read_text(encoding="utf-8").splitlines()
    names = {row.split("(")[1].split(",")[0] for row in found}
    tap = Tap()
    tap.note(f"{len(found)} functions")
    planted = compare(["FUNCTION(KeA, kernel, nothing, \"\")"], ["FUNCTION(KeA, kernel, nothing, \"bits32\")"])
    tap.case("self-test: a changed row is reported from both sides", [] if len(planted) == 2 else planted)
    tap.case("the table has what the headers declare (--write makes it anew)", compare(expected, found))
    tap.case("every exported function is in the table", sorted(exported_functions(library) - names))
    tap.done()


main()
