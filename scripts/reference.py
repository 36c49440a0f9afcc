#!/usr/bin/env python3
"""Generates the reference from the comments of the public headers: docs/api.md, and the manual pages of section 3.

usage: reference.py                          writes docs/api.md
       reference.py --man VERSION OUTPUT     writes the pages; a relative OUTPUT is below the prefix that Meson installs to

It reads three kinds of comments in include/interlock:
- the first one of a header introduces it;
- one that an empty line follows opens a section: its first sentence is the heading;
- one right above declarations documents them, up to the next empty line or comment. It ends with "Since X.", the first
  Windows with the function, one for all or one for each; or with "Only in Interlock.". "Differs: ..." may come before that.
  "Internal: ..." documents what only inline functions and macros of the headers use."""

import os
import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ORDER = ["windef.h", "ntdef.h", "interlocked.h", "widestring.h", "exception.h", "winerror.h", "ke.h", "verifier.h", "ex.h", "dbg.h",
         "ob.h", "ps.h", "io.h", "nt.h", "usermode.h", "rtl.h", "win32.h", "win32/extra.h", "win32/crt.h"]
# The header of Windows that declares the same.
DOORS = {"ke": "ntddk.h", "ex": "ntddk.h", "dbg": "ntddk.h", "ob": "ntddk.h", "ps": "ntddk.h", "io": "ntddk.h",
         "nt": "winternl.h", "rtl": "winternl.h"}
HEAD = """\
# Functions

Every function and exported variable of the public headers, lowest layer first. `make reference` generates this page from the
comments in [include/interlock](../include/interlock); edit those.

- Drivers include `<ntddk.h>` (or `<wdm.h>`, `<ntifs.h>`), Win32 programs `<windows.h>`, users of the system services
  `<winternl.h>`; `<interlock/ke.h>` and the other headers below can be included one by one.
- **since** is the first Windows NT with the function, one for all in the row or one for each; for a function that a header
  of the Windows SDK defines inline, the one that the header came with. *Interlock*: Windows has no function of that name.
- **differs** is empty where the function behaves as documented for Windows 10. Some differences apply to all of them:
  security descriptors are ignored, clocks have the resolution of the host, and
  processors are virtual ([differences.md](differences.md)).
- Names that are macros over a function (`KeAcquireSpinLock`, `ObReferenceObject`, `CreateEvent`) are beside that function
  in its header.

Kernel functions state an IRQL where it is below DISPATCH_LEVEL or matters otherwise. "Blocks" means that the thread may
sleep.
"""
NOISE = re.compile(r"\b(?:INTERLOCK_API|NTKERNELAPI|NTSYSAPI|NTHALAPI|NTSYSCALLAPI|WINBASEAPI|FORCEINLINE|inline|extern|NTAPI|WINAPI|"
                   r"DECLSPEC_NORETURN|_[A-Z]\w*_(?:\([^()]*\))?)\s+")


@dataclass
class Entry:
    what: str
    differs: str = ""
    since: list = field(default_factory=list)
    internal: bool = False
    names: list = field(default_factory=list)
    prototypes: list = field(default_factory=list)

    @classmethod
    def of(cls, comment):
        if comment.startswith("Internal: "):
            return cls(comment, internal=True)
        what, _, since = comment.replace(" Only in Interlock.", " Since Interlock.").rpartition(" Since ")
        what, _, differs = what.partition(" Differs: ")
        return cls(what, differs.removesuffix("."), since.removesuffix(".").split(", "))


@dataclass
class Section:
    title: str
    text: list
    entries: list = field(default_factory=list)
    macros: list = field(default_factory=list)  # (name, definition)

    def aliases(self):
        """Macros that stand for a function of the section."""
        names = {name for entry in public(self) for name in entry.names}
        return [name for name, definition in self.macros
                if names & set(re.findall(r"\w+", re.sub(r"INTERLOCK_AW\((\w+)\)", r"\1W", definition)))]


@dataclass
class Header:
    name: str
    text: list
    sections: list = field(default_factory=list)

    def entries(self):
        return [entry for section in self.sections for entry in section.entries]


def paragraphs(comment):
    """The text of a comment, without its stars."""
    lines = [re.sub(r"^ ?\* ?", "", line) for line in comment[2:-2].strip().split("\n")]
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", "\n".join(lines).strip())]


def macros(text):
    """{name: (parameters, declaration)} of the macros that define a function."""
    found = {}
    for match in re.finditer(r"^#define (INTERLOCK_\w+)\(([^)]*)\)((?:.*\\\n)+.*)", text, re.M):
        body = match.group(3).replace("\\\n", " ")
        if "FORCEINLINE" in body and "{" in body:
            found[match.group(1)] = match.group(2).split(", "), body.partition("{")[0]
    return found


def expanded(statement, known):
    """The declaration that a call of such a macro makes; other statements unchanged."""
    match = re.fullmatch(r"(INTERLOCK_\w+)\((.*)\)", statement)
    if not match or match.group(1) not in known:
        return statement
    parameters, body = known[match.group(1)]
    arguments = dict(zip(parameters, match.group(2).split(", ")))
    return re.sub(r"\w+", lambda word: arguments.get(word.group(0), word.group(0)), body)


def declared(statement):
    """(name, prototype) of a function or variable; None for anything else."""
    statement = " ".join(statement.split())
    if re.match(r"typedef|struct|union|enum|C_ASSERT|INTERLOCK_(?!API)|DECLARE_HANDLE|$", statement):
        return None
    match = re.search(r"(\w+)\s*\(", statement) or re.search(r"(\w+)(?:\[\w+\])?$", statement)
    while True:
        shorter = NOISE.sub("", statement)
        if shorter == statement:
            return match.group(1), statement + ";"
        statement = shorter


def statement_at(lines, start):
    """(text of the declaration, number of the line after it), without a body in braces."""
    end, text = start, []
    while True:
        line = re.sub(r"/\*.*?\*/", "", lines[end]).rstrip()
        end += 1
        if line == "{":
            return " ".join(text), lines.index("}", end) + 1
        text.append(line)
        if line.endswith(";") and " ".join(text).count("{") == " ".join(text).count("}"):
            return " ".join(text).rstrip(";"), end
        if re.fullmatch(r"INTERLOCK_\w+(\(.*\))?", line):
            return " ".join(text), end


def read(path, name):
    text = path.read_text(encoding="utf-8")
    known, lines = macros(text), text.split("\n")
    header, entry, number = None, None, 0
    while number < len(lines):
        line = lines[number]
        if line.startswith("/*"):
            end = next(n for n in range(number, len(lines)) if lines[n].rstrip().endswith("*/"))
            parts = paragraphs("\n".join(lines[number:end + 1]).rstrip())
            number, entry = end + 1, None
            if header is None:
                parts[0] = parts[0].removeprefix(f"{name}: ")
                header = Header(name, [parts[0][0].upper() + parts[0][1:], *parts[1:]], [Section("", [])])
            elif lines[number] == "":
                title, _, rest = parts[0].partition(". ")
                header.sections.append(Section(title.removesuffix("."), [*([rest] if rest else []), *parts[1:]]))
            else:
                entry = Entry.of(parts[0])
        elif line == "":
            entry, number = None, number + 1
        elif line.startswith("#"):
            entry = None if re.match(r"#(if|el|endif)", line) else entry
            start = number
            while lines[number].endswith("\\"):
                number += 1
            number += 1
            match = re.match(r"#define ([A-Za-z]\w*[a-z]\w*)(.*)", " ".join(lines[start:number]))
            if match:
                header.sections[-1].macros.append(match.groups())
        elif line.startswith("namespace "):  # declares nothing new
            number = lines.index("}", number) + 1
        else:
            statement, number = statement_at(lines, number)
            found = declared(expanded(statement, known))
            if not found:
                entry = None
            elif entry:
                if not entry.names:
                    header.sections[-1].entries.append(entry)
                entry.names.append(found[0])
                entry.prototypes.append(found[1])
    return header


def headers(root):
    """The headers that declare something, the lowest layer first."""
    folder = root / "include" / "interlock"
    return [read(folder / name, name) for name in ORDER]


def public(section):
    return [entry for entry in section.entries if not entry.internal]


def api(root):
    """The text of docs/api.md."""
    result = [HEAD]
    for header in headers(root):
        if all(entry.internal for entry in header.entries()):
            continue
        result += [f"## `interlock/{header.name}`", "", *filled(header.text)]
        for section in filter(public, header.sections):
            result += [f"### {section.title}", ""] if section.title else []
            result += filled(section.text)
            result += ["| function | since | what it does | differs |", "|---|---|---|---|"]
            result += [row(entry) for entry in public(section)] + [""]
    return "\n".join(result).rstrip("\n") + "\n"


def filled(parts):
    return [line for part in parts for line in
            [*textwrap.wrap(linked(part), 120, break_long_words=False, break_on_hyphens=False), ""]]


def linked(text):
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", escaped(text))


def escaped(text):
    return re.sub(r"(?<!\w)[_*](?=\w)|\|", r"\\\g<0>", text)


def row(entry):
    names = ", ".join(f"`{name}`" for name in entry.names)
    differs = f"{linked(entry.differs)} " if entry.differs else ""
    return f"| {names} | {', '.join(entry.since)} | {linked(entry.what)} | {differs}|"


def roff(text):
    return re.sub(r"^(['.])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"), flags=re.M)


def slug(text):
    return "-".join(re.findall(r"[a-z0-9]+", text.lower()))


def page_name(header, section=None):
    name = "interlock-" + header.name.removesuffix(".h").replace("/", "-")
    return f"{name}-{slug(section.title)}" if section and section.title else name


def uncapped(text):
    return text[0].lower() + text[1:] if text[1:2].islower() else text


def top(title, version, names, what):
    return [f'.TH {title.upper()} 3 "" "Interlock {version}" "Interlock"', ".SH NAME", f"{names} \\- {roff(what)}"]


def page(version, header, section):
    """The manual page of a section."""
    entries = public(section)
    door = DOORS.get(header.name.removesuffix(".h"), "windows.h")
    lines = top(page_name(header, section), version, ", ".join(name for entry in entries for name in entry.names),
                uncapped(section.title or header.text[0].partition(". ")[0]))
    lines += [".SH SYNOPSIS", ".nf", f".B #include <{door}>", f".B #include <interlock/{header.name}>"]
    for entry in entries:
        lines += [".PP", *(f".B {roff(line)}" for prototype in entry.prototypes
                           for line in textwrap.wrap(prototype, 100, subsequent_indent="    "))]
    lines += [".fi", ".SH DESCRIPTION"]
    for part in section.text:
        lines += [".PP", roff(part)]
    for entry in entries:
        since = ", ".join(entry.since)
        lines += [".TP", f".B {', '.join(entry.names)}", roff(entry.what),
                  "Not in Windows." if since == "Interlock" else f"Since Windows {since}."]
        lines += [".br", f"Differs: {roff(entry.differs)}."] if entry.differs else []
    return "\n".join([*lines, ".SH SEE ALSO", f".BR {page_name(header)} (3),", ".BR interlock (1)"]) + "\n"


def index(version, header):
    """The manual page of a header: its introduction and its sections."""
    lines = top(page_name(header), version, page_name(header), uncapped(header.text[0].partition(". ")[0]))
    lines += [".SH SYNOPSIS", f".B #include <interlock/{header.name}>", ".SH DESCRIPTION"]
    for part in header.text:
        lines += [".PP", roff(part)]
    for section in filter(public, header.sections):
        lines += [".TP", f".BR {page_name(header, section)} (3)",
                  ", ".join(name for entry in public(section) for name in entry.names)]
    return "\n".join([*lines, ".SH SEE ALSO", ".BR interlock (1)"]) + "\n"


def man(root, version, output):
    output.mkdir(parents=True, exist_ok=True)
    for header in headers(root):
        pages = list(filter(public, header.sections))
        if pages and all(section.title for section in pages):
            (output / f"{page_name(header)}.3").write_text(index(version, header), encoding="utf-8")
        for section in pages:
            (output / f"{page_name(header, section)}.3").write_text(page(version, header, section), encoding="utf-8")
            for name in [*(name for entry in public(section) for name in entry.names), *section.aliases()]:
                (output / f"{name}.3").write_text(f".so man3/{page_name(header, section)}.3\n", encoding="utf-8")


def main():
    if sys.argv[1:2] == ["--man"]:
        man(ROOT, sys.argv[2], Path(os.environ.get("MESON_INSTALL_DESTDIR_PREFIX", ".")) / sys.argv[3])
    else:
        (ROOT / "docs" / "api.md").write_text(api(ROOT), encoding="utf-8")


if __name__ == "__main__":
    main()
