#!/usr/bin/env python3
"""The manual pages of section 3: one per header of docs/api.md, and a link per function.

usage: generate.py VERSION API.md INCLUDE OUTPUT      a relative OUTPUT is below the prefix that Meson installs to"""

import os
import re
import sys
from pathlib import Path

SECTION = re.compile(r"^## `interlock/(\S+)\.h`\n\n(.*?)(?=^## |\Z)", re.M | re.S)
ROW = re.compile(r"^\| `(\w+)` \|([^|]*)\|([^|]*)\|([^|]*)\|$", re.M)
# Where a program finds the header under the name that it has on Windows.
FRONTS = {"win32": "<windows.h>", "nt": "<winternl.h>", "rtl": "<winternl.h>"}


def escape(text):
    """Text as troff has it, with the markup of the documents."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"\\fB\1\\fR", text)
    text = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", text)
    text = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", r"\\fI\1\\fR", text)
    return re.sub(r"^(['.])", r"\\&\1", text, flags=re.M)


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"^#.*(?:\\\n.*)*$", "", text, flags=re.M)


def prototypes(header):
    """{name: declaration} of what the header declares outside of macros."""
    found = {}
    for match in re.finditer(r"(?:^|(?<=[;}]))([^;{}#\"]*?\b(\w+)\s*\(((?:[^(){};]|\([^(){};]*\))*)\))\s*(?=[;{])",
                             without_comments(header), re.S):
        words = re.sub(r"\b(NTKERNELAPI|NTSYSAPI|NTHALAPI|WINBASEAPI|FORCEINLINE|NTSYSCALLAPI|DECLSPEC_\w+|NTAPI|WINAPI|"
                       r"_\w+_(?:\([^()]*\))?|__attribute__\(\(.*?\)\))", "", match.group(1))
        found.setdefault(match.group(2), re.sub(r"\s+", " ", words).replace("( ", "(").strip() + ";")
    return found


def front(header):
    family = header.split("/")[0]
    for prefix, name in FRONTS.items():
        if family == prefix or (prefix != "win32" and family.startswith(prefix)):
            return name
    return "<ntddk.h>"


def page(version, header, body, declarations):
    rows = [tuple(column.strip() for column in row) for row in ROW.findall(body)]
    purpose = escape(" ".join(line for line in body.split("|")[0].split("\n") if line).strip())
    title = page_name(header)
    names = ", ".join(name for name, _, _, _ in rows)
    lines = [f'.TH {title.upper()} 3 "" "Interlock {version}" "Interlock"', ".SH NAME",
             f"{names} \\- {purpose.split('. ')[0].rstrip('.')}", ".SH SYNOPSIS", ".nf",
             f".B #include {front(header)}", f".B #include <interlock/{header}.h>", ".fi"]
    for name, _, _, _ in rows:
        if name in declarations:
            lines += [".PP", ".nf", f".B {escape(declarations[name])}", ".fi"]
    lines += [".SH DESCRIPTION", purpose]
    for name, since, what, differs in rows:
        origin = {"Interlock": "not in Windows", "internal": "for inline functions of the headers"}.get(
            since, f"since Windows {since}")
        lines += [".TP", f".B {name}", escape(what[0].upper() + what[1:]) + f" ({origin})."]
        if differs:
            lines += [".br", f"Differs: {escape(differs)}."]
    lines += [".SH SEE ALSO", ".BR interlock (1)", "", "The documents that are installed with the library."]
    return title, [name for name, _, _, _ in rows], "\n".join(lines) + "\n"


def page_name(header):
    return "interlock-" + header.replace("/", "-")


def main():
    version, api, include, output = sys.argv[1], *map(Path, sys.argv[2:5])
    output = Path(os.environ.get("MESON_INSTALL_DESTDIR_PREFIX", ".")) / output
    output.mkdir(parents=True, exist_ok=True)
    for header, body in SECTION.findall(api.read_text()):
        text = (include / f"{header}.h").read_text()
        title, names, roff = page(version, header, body, prototypes(text))
        (output / f"{title}.3").write_text(roff)
        for name in names:
            (output / f"{name}.3").write_text(f".so man3/{title}.3\n")


main()
