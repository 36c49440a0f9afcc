#!/usr/bin/env python3
"""In src each function has a unique name, and no macro has a one-letter name.

1. A function name is defined once. Two definitions in the branches of an #if count as two: such a function has one
   definition, and the #if is inside it.
2. A static function does not shadow a function that a header declares, or a macro.
3. No macro has a name of one letter."""

import collections
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tap import Tap

ONE_LETTER = re.compile(r"^\s*#\s*define\s+([A-Za-z])\b", re.M)
Tag = collections.namedtuple("Tag", "name path line kind static")


def tags(root):
    """Functions and macros of src, and what the headers of include declare."""
    files = [str(path.relative_to(root)) for folder in ("src", "include") for path in sorted((root / folder).rglob("*.[ch]"))]
    output = subprocess.run(["ctags", "-L", "-", "-f", "-", "--language-force=C", "--c-kinds=fpd", "--fields=+nKS-f",
                             "--fields-C=+{properties}"],
                            input="\n".join(files), cwd=root, check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        name, path, rest = line.split("\t", 2)
        fields = rest.rsplit(';"\t', 1)[-1].split("\t")
        values = dict(field.split(":", 1) for field in fields if ":" in field)
        static = "static" in values.get("properties", "").split(",") or "fileScope" in values.get("properties", "")
        if not name.isupper():  # in Type (Name)(...) ctags takes the type for the name
            yield Tag(name, path, int(values["line"]), fields[0], static)


def places(found):
    return ", ".join(f"{tag.path}:{tag.line}" for tag in found)


def problems(root):
    functions = collections.defaultdict(list)
    declared = collections.defaultdict(list)
    for tag in tags(root):
        if tag.kind == "function" and tag.path.startswith("src/"):
            functions[tag.name].append(tag)
        if tag.kind == "macro" or (tag.kind == "prototype" and tag.path.endswith(".h")):
            declared[tag.name].append(tag)
    twice = [f"{name}: {places(found)}" for name, found in sorted(functions.items()) if len(found) > 1]
    shadows = [f"{name}: static at {places(found)}, also at {places(declared[name])}"
               for name, found in sorted(functions.items())
               if name in declared and all(tag.static and tag.path.endswith(".c") for tag in found)]
    letters = []
    for path in sorted((root / "src").rglob("*.[ch]")):
        text = path.read_text(encoding="utf-8")
        letters += [f"{match[1]}: {path.relative_to(root)}:{text.count(chr(10), 0, match.start(1)) + 1}"
                    for match in ONE_LETTER.finditer(text)]
    return {"a function is defined once": twice, "no static function shadows": shadows,
            "no macro has a name of one letter": letters}


CLEAN = {
    "include/a.h": "int KeOpen(int x);\n#define KE_MOST 3\n",
    "src/a.h": "int KiRead(int x);\nstatic inline int KiTwice(int x) { return 2 * x; }\n",
    "src/a.c": "#define LIST(Do) Do(1)\nint KiRead(int x) { return x; }\nstatic int KiHelp(void);\n"
               "static int KiHelp(void) { return 1; }\n",
    "src/b.c": "int KeOpen(int x)\n{\n#ifdef A\n    return x;\n#else\n    return 0;\n#endif\n}\n",
}
PLANTED = {
    "a function in two files": ("src/c.c", "static int KiHelp(void) { return 2; }\n"),
    "a function in both branches of an #if":
        ("src/c.c", "#ifdef A\nint KiC(void) { return 1; }\n#else\nint KiC(void) { return 2; }\n#endif\n"),
    "a function in a header and in a file": ("src/c.c", "static int KiTwice(int x) { return x; }\n"),
    "a static function with the name of a public one": ("src/b.c", "static int KeOpen(int x) { return x; }\n"),
    "a static function with the name of a macro": ("src/c.c", "#define KiMost 3\n#undef KiMost\nstatic int KiMost(void) { return 3; }\n"),
    "a macro of one letter": ("src/c.c", "# define X(Name) Name\n"),
    "a constant of one letter": ("src/c.h", "#define n 3\n"),
}


def self_test(tap):
    with tempfile.TemporaryDirectory() as directory:
        for number, (what, planted) in enumerate([("a clean tree", None), *PLANTED.items()]):
            root = Path(directory) / str(number)
            for name, text in ({**CLEAN, planted[0]: planted[1]} if planted else CLEAN).items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            found = [problem for each in problems(root).values() for problem in each]
            if planted:
                tap.case(f"self-test: {what} is caught", [] if found else ["nothing was reported"])
            else:
                tap.case("self-test: a clean tree passes", found)


def main():
    tap = Tap()
    if not shutil.which("ctags") or "Universal" not in subprocess.run(["ctags", "--version"], capture_output=True,
                                                                       text=True).stdout:
        print("1..0 # SKIP universal-ctags is not installed")
        return
    self_test(tap)
    for name, found in problems(Path(sys.argv[1]).resolve()).items():
        tap.case(name, found)
    tap.done()


if __name__ == "__main__":
    main()
