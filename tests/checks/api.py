#!/usr/bin/env python3
"""Every function that the public headers declare, exported or inline, is documented there; docs/api.md is generated from it."""

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import reference
from clang import Headers
from tap import Tap

LEAST_WORDS = 6
SINCE = re.compile(r"NT [34]\.\d+|2000|XP|Server 2003|Vista|7|8|8\.1|10|11|Interlock")


def problems_of(entry):
    """What is wrong with a documentation comment."""
    name = entry.names[0]
    if not re.search(r"\w{3}.*\.$", entry.what):
        yield f"{name}: no sentence says what it does"
    if entry.internal:
        return
    if len(entry.what.split()) < LEAST_WORDS:
        yield f"{name}: {entry.what!r} says too little"
    if len(entry.since) not in (1, len(entry.names)):
        yield f"{name}: {len(entry.since)} versions for {len(entry.names)} names"
    yield from (f"{name}: since {since!r}?" for since in entry.since if not SINCE.fullmatch(since))


def compare(headers, declared):
    """(not documented, documented twice or not declared there)."""
    documented = [(name, header.name) for header in headers for entry in header.entries() for name in entry.names]
    known = dict(documented)
    missing = sorted(f"{name} ({header})" for name, header in declared.items() if name not in known)
    wrong = sorted({f"{name} ({header})" for name, header in documented
                    if declared.get(name) != header or known[name] != header or documented.count((name, header)) > 1})
    return missing, wrong


def declared_functions(root, options):
    folder = root / "include" / "interlock"
    text = "".join(f"#include <interlock/{p.relative_to(folder)}>\n" for p in sorted(folder.rglob("*.h")))
    external, inline = Headers(text, [*options, f"-I{folder.parent}"]).declared(folder)
    return {name: str(Path(path).resolve().relative_to(folder)) for name, path in {**external, **inline}.items()}


SAMPLE = """\
/* ke.h: the kernel. */
#define INTERLOCK_PAIR(Name, Type)                \\
    FORCEINLINE Type Name(Type *Target)           \\
    {                                             \\
        return *Target;                           \\
    }

/* Locks. They lock. */

/* Does one thing with its first parameter. Differs: slower. Since NT 3.1, 7. */
NTKERNELAPI VOID KeOne(PVOID First,
                       PVOID Second); /* a remark */
NTKERNELAPI VOID KeOneEx(VOID);
#define KeMacro KeOne

/* Returns the value that Target points to. Since lately. */
INTERLOCK_PAIR(KeTwo, LONG)

/* Reads. Since 10. */
INTERLOCK_PAIR(KeFive, LONG)

/* Internal: a helper. */
FORCEINLINE VOID KepThree(VOID)
{
}

/* A type. */
typedef VOID (*PKE_ROUTINE)(VOID);
NTKERNELAPI VOID KeFour(VOID);
"""


def self_test(tap):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "ke.h"
        path.write_text(SAMPLE, encoding="utf-8")
        header = reference.read(path, "ke.h")
    entries = header.entries()
    found = [(entry.names, entry.since, entry.differs, entry.internal) for entry in entries]
    expected = [(["KeOne", "KeOneEx"], ["NT 3.1", "7"], "slower", False), (["KeTwo"], ["lately"], "", False),
                (["KeFive"], ["10"], "", False), (["KepThree"], [], "", True)]
    tap.case("self-test: groups, macros and internal functions are read", [] if found == expected else [found])
    tap.case("self-test: prototypes are read", [] if entries[0].prototypes[0] == "VOID KeOne(PVOID First, PVOID Second);"
             and entries[1].prototypes == ["LONG KeTwo(LONG *Target);"] else [entries])
    sections = [(section.title, section.text) for section in header.sections]
    tap.case("self-test: sections are read", [] if sections == [("", []), ("Locks", ["They lock."])] else [sections])
    bad = [problem for entry in entries for problem in problems_of(entry)]
    tap.case("self-test: a bad version and a short sentence are seen",
             [] if bad == ["KeTwo: since 'lately'?", "KeFive: 'Reads.' says too little"] else bad)
    missing, wrong = compare([header], {"KeOne": "ke.h", "KeOneEx": "ex.h", "KeTwo": "ke.h", "KeFour": "ke.h"})
    tap.case("self-test: missing and misplaced functions are seen",
             [] if missing == ["KeFour (ke.h)"] and wrong == ["KeFive (ke.h)", "KeOneEx (ke.h)", "KepThree (ke.h)"] else [missing, wrong])


def main():
    tap = Tap()
    root, options = Path(sys.argv[1]).resolve(), sys.argv[2:]
    self_test(tap)
    headers = reference.headers(root)
    declared = declared_functions(root, options)
    entries = [entry for header in headers for entry in header.entries()]
    tap.note(f"{len(declared)} functions and variables declared, {sum(len(entry.names) for entry in entries)} documented")
    missing, wrong = compare(headers, declared)
    tap.case("every function is documented", missing)
    tap.case("nothing else is documented, and nothing twice", wrong)
    tap.case("every comment says what, and since when", [problem for entry in entries for problem in problems_of(entry)])
    tap.case("every header is in the reference",
             [name for name in sorted(set(declared.values())) if name not in reference.ORDER])
    named = [(path, name) for path in sorted((root / "include").rglob("*.h"))
             for name in re.findall(r"\b(?:src|docs)/[\w./-]+\.\w+", path.read_text(encoding="utf-8"))]
    tap.case("files that the headers name exist",
             [f"{path.relative_to(root)}: {name}" for path, name in named if not (root / name).exists()])
    page = (root / "docs" / "api.md").read_text(encoding="utf-8")
    tap.case("docs/api.md is up to date", [] if page == reference.api(root) else ["run `make reference`"])
    tap.done()


if __name__ == "__main__":
    main()
