#!/usr/bin/env python3
"""In src each function has a unique name and is used; nowhere does a macro have a one-letter name.

1. A function name is defined once. Two definitions in the branches of an #if count as two: such a function has one
   definition, and the #if is inside it.
2. A static function does not shadow a function that a header declares, or a macro.
3. No macro has a name of one letter, in tests and examples too.
4. A function that no public header declares is used somewhere: in the library, the debugger, the explorer or a test.
5. The walks of docs/architecture.md name functions and files as they are: each function is defined in one of the walk's files, and
   each walk says how many of both it names. No walk needs more than a dozen functions of one layer."""

import collections
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tap import Tap

ONCE, SHADOWS, LETTERS, USED, WALKS = ("a function is defined once", "no static function shadows", "no macro has a name of one letter",
                                "every function is used", "the walks are those of the code")
USERS = ("src", "include", "kd", "lab", "tests", "tools", "races")
SOURCES = (*USERS, "bench", "examples", "proof")
WALK = re.compile(r"^\*\*(.+?)\*\* \(.*?; (\d+) in (\d+)\)\n(.*?)(?=^\*\*|^## |\Z)", re.M | re.S)
MOST_OF_A_LAYER = 12
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


def is_called_by_loader(root, tag):
    line = (root / tag.path).read_text(encoding="utf-8").splitlines()[tag.line - 1]
    return re.search(r"__attribute__\(\((?:con|de)structor", line) is not None


def places(found):
    return ", ".join(f"{tag.path}:{tag.line}" for tag in found)


def wrong_walks(text, functions):
    """functions: {name: [Tag, ...]}"""
    for title, count, of_files, walk in WALK.findall(text):
        names = set(re.findall(r"`([A-Z]\w+)`", walk))
        files = set(re.findall(r"\b[a-z0-9]+/\w+\.[ch]\b", walk))
        if (len(names), len(files)) != (int(count), int(of_files)):
            yield f"{title}: it names {len(names)} functions in {len(files)} files"
        layers = collections.Counter(tag.path.split("/")[1] for name in names for tag in functions.get(name, []))
        for layer, number in layers.items():
            if number > MOST_OF_A_LAYER:
                yield f"{title}: it needs {number} functions of {layer}"
        for name in sorted(names):
            if not {tag.path for tag in functions.get(name, [])} & {f"src/{file}" for file in files}:
                yield f"{title}: {name} is in none of its files"
        for file in sorted(files):
            if not any(tag.path == f"src/{file}" for name in names for tag in functions.get(name, [])):
                yield f"{title}: none of its functions is in {file}"


def words_of(root):
    """How often each word is in the sources, outside of comments."""
    words = collections.Counter()
    for folder in USERS:
        for path in sorted((root / folder).rglob("*.[ch]")):
            words.update(re.findall(r"\w+", re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(encoding="utf-8"), flags=re.S)))
    return words


def problems(root):
    functions = collections.defaultdict(list)
    declared = collections.defaultdict(list)
    public, mentions, words = set(), collections.Counter(), words_of(root)
    for tag in tags(root):
        if tag.kind in ("function", "prototype"):
            mentions[tag.name] += 1
        if tag.path.startswith("include/"):
            public.add(tag.name)
        if tag.kind == "function" and tag.path.startswith("src/"):
            functions[tag.name].append(tag)
        if tag.kind == "macro" or (tag.kind == "prototype" and tag.path.endswith(".h")):
            declared[tag.name].append(tag)
    twice = [f"{name}: {places(found)}" for name, found in sorted(functions.items()) if len(found) > 1]
    shadows = [f"{name}: static at {places(found)}, also at {places(declared[name])}"
               for name, found in sorted(functions.items())
               if name in declared and all(tag.static and tag.path.endswith(".c") for tag in found)]
    unused = [f"{name}: {places(found)}" for name, found in sorted(functions.items())
              if name not in public and words[name] <= mentions[name] and not any(is_called_by_loader(root, tag) for tag in found)]
    letters = []
    for path in sorted(path for folder in SOURCES for path in (root / folder).rglob("*.[ch]")):
        text = path.read_text(encoding="utf-8")
        letters += [f"{match[1]}: {path.relative_to(root)}:{text.count(chr(10), 0, match.start(1)) + 1}"
                    for match in ONE_LETTER.finditer(text)]
    page = root / "docs" / "architecture.md"
    walks = list(wrong_walks(page.read_text(encoding="utf-8") if page.exists() else "", functions))
    return {ONCE: twice, SHADOWS: shadows, LETTERS: letters, USED: unused, WALKS: walks}


CLEAN = {
    "include/a.h": "int KeOpen(int x);\n#define KE_MOST 3\n",
    "src/a.h": "int KiRead(int x);\nstatic inline int KiTwice(int x) { return 2 * x; }\n",
    "src/a.c": "#define LIST(Do) Do(1)\nstatic int KiHelp(void);\nint KiRead(int x) { return x + KiHelp(); }\n"
               "static int KiHelp(void) { return 1; }\n",
    "docs/architecture.md": "**Walking** (9 in 3; 2 in 1)\n1. `KiWalk` (ke/a.c) calls `KiRun`.\n\n## Next\n`KiNone`\n",
    "src/ke/a.c": "int KiWalk(void) { return KiRun(); }\nint KiRun(void) { return KiWalk(); }\n",
    "src/ke/many.c": "".join(f"int KiMany{step}(void) {{ return KiMany{(step + 1) % 13}(); }}\n" for step in range(13)),
    "src/b.c": "int KeOpen(int x)\n{\n#ifdef A\n    return KiRead(x);\n#else\n    return KiTwice(0);\n#endif\n}\n",
}
PLANTED = {
    "a function in two files": (ONCE, "src/c.c", "static int KiHelp(void) { return 2; }\n"),
    "a function in both branches of an #if":
        (ONCE, "src/c.c", "#ifdef A\nint KiC(void) { return 1; }\n#else\nint KiC(void) { return 2; }\n#endif\n"),
    "a function in a header and in a file": (ONCE, "src/c.c", "static int KiTwice(int x) { return x; }\n"),
    "a static function with the name of a public one": (SHADOWS, "src/b.c", "static int KeOpen(int x) { return x; }\n"),
    "a static function with the name of a macro":
        (SHADOWS, "src/c.c", "#define KiMost 3\n#undef KiMost\nstatic int KiMost(void) { return 3; }\n"),
    "a macro of one letter": (LETTERS, "src/c.c", "# define X(Name) Name\n"),
    "a constant of one letter": (LETTERS, "src/c.h", "#define n 3\n"),
    "a macro of one letter in an example": (LETTERS, "examples/c.c", "#define L 1\n"),
    "a function that only a comment calls": (USED, "src/c.c", "/* KiLost() */\nint KiLost(void);\nint KiLost(void) { return 1; }\n"),
    "a walk that names a function of another file": (WALKS, "docs/architecture.md", "**Walking** (9 in 3; 1 in 1)\n1. `KiHelp` (ke/a.c).\n"),
    "a walk that counts wrong": (WALKS, "docs/architecture.md", "**Walking** (9 in 3; 2 in 1)\n1. `KiWalk` (ke/a.c).\n"),
    "a walk through too many functions of a layer":
        (WALKS, "docs/architecture.md", "**Walking** (9 in 3; 13 in 1)\n1. " + ", ".join(f"`KiMany{step}`" for step in range(13)) +
         " (ke/many.c).\n"),
    "a walk through a file of no function": (WALKS, "docs/architecture.md", "**Walking** (9 in 3; 1 in 2)\n1. `KiWalk` (ke/a.c, ke/none.c).\n"),
}


def self_test(tap):
    with tempfile.TemporaryDirectory() as directory:
        for number, (what, planted) in enumerate([("a clean tree", None), *PLANTED.items()]):
            root = Path(directory) / str(number)
            for name, text in ({**CLEAN, planted[1]: planted[2]} if planted else CLEAN).items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            found = problems(root)
            if planted:
                tap.case(f"self-test: {what} is caught", [] if found[planted[0]] else ["nothing was reported"])
            else:
                tap.case("self-test: a clean tree passes", [problem for each in found.values() for problem in each])


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
