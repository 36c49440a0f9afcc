#!/usr/bin/env python3
"""Gives the library's symbols a prefix: another prefix.h, and another list of exported names for the linker.

usage: scripts/prefix.py header|map PREFIX INTERLOCK.MAP OUTPUT

The header renames for the linker only (#pragma redefine_extname), so sources, structures and other libraries' headers keep
their names. Names that begin with Interlock and a capital are the library's own and stay: they cannot clash."""

import re
import sys
from pathlib import Path

NAME = re.compile(r"^    (?!Interlock[A-Z])(\w+)(?=;)", re.M)


def header(prefix, listed):
    lines = "\n".join(f"#pragma redefine_extname {name} {prefix}{name}" for name in NAME.findall(listed))
    return f"""/* prefix.h: the symbols of this library begin with {prefix}. */
#ifndef INTERLOCK_PREFIX_H
#define INTERLOCK_PREFIX_H

#define INTERLOCK_SYMBOL_PREFIX "{prefix}"

{lines}

#endif
"""


def linker_map(prefix, listed):
    return NAME.sub(rf"    {prefix}\1", listed)


def main():
    kind, prefix, listed, output = sys.argv[1:]
    if not re.fullmatch(r"[A-Za-z_]\w*", prefix):
        sys.exit(f"a symbol prefix must be the beginning of a name in C; '{prefix}' is not")
    text = {"header": header, "map": linker_map}[kind](prefix, Path(listed).read_text())
    Path(output).write_text(text)


if __name__ == "__main__":
    main()
