#!/usr/bin/env python3
"""Gives the library's symbols a prefix: another linkage.h, and another list of exported names for the linker.

usage: scripts/prefix.py header|map PREFIX INTERLOCK.MAP OUTPUT

The header renames for the linker only (#pragma redefine_extname), so sources, structures and other libraries' headers keep
their names. Macros rename only what public headers define inline: compilers do not apply the pragma to a definition.
Names that begin with Interlock and a capital are the library's own and stay: they cannot clash."""

import re
import sys
from pathlib import Path

NAME = re.compile(r"^    (?!Interlock[A-Z])(\w+)(?=;)", re.M)
INCLUDE = Path(__file__).resolve().parent.parent / "include" / "interlock"
NO_PREFIX = '#define INTERLOCK_SYMBOL_PREFIX ""\n'
INLINE = re.compile(r"^\w+API inline [^;(]*?(\w+)\(", re.M)


def check(prefix):
    if not re.fullmatch(r"[A-Za-z_]\w*", prefix):
        raise ValueError(f"a symbol prefix must be the beginning of a name in C; '{prefix}' is not")


def inline_functions():
    """The functions that public headers define and the library exports too."""
    return {name for path in INCLUDE.rglob("*.h") for name in INLINE.findall(path.read_text(encoding="utf-8"))}


def header(prefix, listed):
    check(prefix)
    inline = inline_functions()
    lines = "\n".join(f"#{'define' if name in inline else 'pragma redefine_extname'} {name} {prefix}{name}"
                      for name in NAME.findall(listed))
    text = (INCLUDE / "linkage.h").read_text(encoding="utf-8")
    assert text.count(NO_PREFIX) == 1
    return text.replace(NO_PREFIX, f'#define INTERLOCK_SYMBOL_PREFIX "{prefix}"\n\n{lines}\n')


def linker_map(prefix, listed):
    check(prefix)
    return NAME.sub(rf"    {prefix}\1", listed)


def main():
    kind, prefix, listed, output = sys.argv[1:]
    try:
        text = {"header": header, "map": linker_map}[kind](prefix, Path(listed).read_text())
    except ValueError as error:
        sys.exit(f"prefix.py: {error}")
    Path(output).write_text(text)


if __name__ == "__main__":
    main()
