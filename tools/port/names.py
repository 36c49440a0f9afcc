#!/usr/bin/env python3
"""Generates names.c: the table of sdk-names.txt, and which of its names the public headers have.

usage: names.py OUTPUT DEPFILE SDK-NAMES INCLUDE"""

import re
import sys
from pathlib import Path

# Comments, strings, and members of structure types: some have the name of a function.
FORGET = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\}\s*\w+;', re.S)


def pasted(text):
    """Names that macros of the headers make: CreateEvent INTERLOCK_AW(CreateEvent), and the functions of corecrt_strings.h and
    strsafe.h, which are written once for both kinds of characters."""
    names = {f"{name}{letter}" for name in re.findall(r"INTERLOCK_AW\((\w+)\)", text) for letter in "AW"}
    for prefix, macro in (("", "INTERLOCK_CRT_NAME"), ("_", "INTERLOCK_CRT_OWN")):
        names |= {f"{prefix}{kind}{name}" for name in re.findall(macro + r"\((\w+)\)", text) for kind in ("str", "wcs")}
    for before, letters, name in re.findall(r"INTERLOCK_CRT_PRINT\((\w*), (\w*), (\w+)\)", text):
        names |= {before + letters + name, f"{before}{letters}w{name}"}
    return names


def own_names(include):
    """(identifiers of the headers, names of the headers, files that were read)"""
    words, names, files = set(), set(), []
    for path in sorted(path for path in include.rglob("*") if path.is_file() and path.name != "meson.build"):
        files.append(path)
        text = FORGET.sub(" ", path.read_text(encoding="utf-8"))
        words |= set(re.findall(r"[A-Za-z_]\w*", text)) | pasted(text)
        for folder in ("win32", "wdk"):
            if (include / folder) in path.parents:
                names.add(path.relative_to(include / folder).as_posix())
    return words, names, files


def read(path):
    """([(area, in scope)], {kind: {name: number of the area}}), kind: functions or headers"""
    areas, names, kind = {}, {"functions": {}, "headers": {}}, None
    for line in path.read_text(encoding="utf-8").splitlines():
        heading = re.fullmatch(r"\[(headers: )?(.*?)( \+)?\]", line)
        if heading:
            kind, area = "headers" if heading.group(1) else "functions", heading.group(2)
            areas.setdefault(area, bool(heading.group(3)))
        elif not line.startswith("#"):
            for name in line.split():
                names[kind][name] = list(areas).index(area)
    return list(areas.items()), names


def table(kind, names, there):
    rows = [f'    {{"{name}", {area}, {"true" if name in there else "false"}}},'
            for name, area in sorted(names.items(), key=lambda item: item[0].encode())]
    return [f"const sdk_name sdk_{kind}s[] = {{", *rows, "};", f"const size_t sdk_{kind}_count = {len(rows)};"]


def main():
    output, depfile, source, include = map(Path, sys.argv[1:5])
    areas, names = read(source)
    words, headers, files = own_names(include)
    native = [name for name, _ in areas].index("native")
    for name in (word for word in words if re.match(r"(?:Nt|Zw|Rtl|Tp)[A-Z]\w+[a-z]", word)):
        names["functions"].setdefault(name, native) # which the headers of mingw-w64 lack
    lines = ["/* Made by tools/port/names.py. */", '#include "names.h"', "", "const sdk_area sdk_areas[] = {",
             *(f'    {{"{name}", {"true" if scope else "false"}}},' for name, scope in areas), "};",
             f"const size_t sdk_area_count = {len(areas)};",
             *table("function", names["functions"], words), *table("header", names["headers"], headers)]
    output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    depfile.write_text(f"{output}: {' '.join(map(str, files))}\n", encoding="utf-8")


main()
