#!/usr/bin/env python3
"""Files and functions that comments and pages name exist. (codeblocks.py checks commands, settings and code blocks.)"""

import re
import sys
import tempfile
from pathlib import Path

from tap import Tap
from tree import code, comments, tree_files

FILE = re.compile(r"(?<![\w/.<$@}%*…~-])((?:[\w-]+/)*[\w-]+\.(?:c|h|cpp|py|md|mjs|js|map|supp|txt))\b(?![\w(/-]|\.\w)")
FOLDER = re.compile(r"(?<![\w/.<$@}%*-])((?:src|tests|lab|kd|tools|examples|docs|scripts|bench|proof|packaging)(?:/[\w-]+)+)(?![\w./*<-])")
FUNCTION = re.compile(r"\b(?:Ke|Ki|Exp?|Obp?|Psp?|Iop?|Ntp?|Zw|Rtlp?|Tpp?|Halp?|Wop?|Vf|Lab)[A-Z][a-z]\w+\b(?!…|\.\.\.)")
PLACEHOLDER = re.compile(r"(?:.*/)?[A-Z]+\.\w+|.*Xxx\w*")
# Of the host, of other projects and of Windows; made by a build or a program; an example in a comment.
KNOWN_FILES = {
    "cmocka.h", "errno.h", "pthread.h", "stdio.h", "stdlib.h", "string.h", "threads.h", "time.h", "wchar.h", "sys/sdt.h",
    "sys/timeb.h", "ck_ec.h", "rwlock.c", "os_win.c", "mutex_w32.c", "threads.c", "interlock.c", "interlock.h",
    "interlock-faults.txt",
}
KNOWN_FUNCTIONS = {
    "NtCreateUserProcess", "NtCreatePrivateNamespace", "KiIsFinished", "IoCsq", "RtlSizeTMult",  # the last one: from a macro
}


class Tree:
    def __init__(self, root):
        self.texts, self.words, self.names = {}, set(), set()
        for path in tree_files(root):
            parts = path.relative_to(root).parts
            for first in range(len(parts)):
                self.names.update("/".join(parts[first:last]) for last in range(first + 1, len(parts) + 1))
            try:
                self.texts[path.relative_to(root)] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
        for path, text in self.texts.items():
            if path.suffix not in (".md", ".txt"):
                self.words.update(re.findall(r"\w+", code(path, text)))

    def missing(self, text):
        """What the text names that is nowhere."""
        for name in FILE.findall(text):
            if name not in self.names and name not in KNOWN_FILES and not PLACEHOLDER.fullmatch(name):
                yield f"there is no {name}"
        for name in FOLDER.findall(text):
            if name not in self.names:
                yield f"there is no {name}"
        for name in FUNCTION.findall(text):
            if name not in self.words and name not in KNOWN_FUNCTIONS and not PLACEHOLDER.fullmatch(name):
                yield f"there is no {name}"

    def problems(self):
        for path, text in self.texts.items():
            for line, comment in comments(path, text):
                for problem in self.missing(comment):
                    yield f"{path}:{line}: {problem}"


PLANTED = {
    "src/a.c": "/* KeThere in src/a.c and a.c; not b.c,\n   KeGone or src/gone */\nvoid KeThere(void) { puts(\"c.c\"); } // see d/a.c\n",
    "e.py": '"""See f.py."""\nx = "g.py"  # see e.py and h.py\n',
    "i.md": "`src/a.c`\n```sh\ncc j.c\n```\nkf.c\n",
    "meson.build": "x = 'l.c' # see m.c, a.c, NAME.c\n",
    "src/README.md": "```text\na.c n.c    both\n```\np.c\n```sh\ncc o.c\n```\n",
}
FOUND = [
    "e.py:1: there is no f.py", "e.py:2: there is no h.py", "i.md:5: there is no kf.c", "meson.build:1: there is no m.c",
    "src/README.md:2: there is no n.c", "src/README.md:4: there is no p.c", "src/a.c:1: there is no KeGone",
    "src/a.c:1: there is no b.c", "src/a.c:1: there is no src/gone", "src/a.c:3: there is no d/a.c"]


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as directory:
        for name, text in PLANTED.items():
            path = Path(directory) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        found = sorted(Tree(Path(directory)).problems())
        tap.case("self-test: names that lead nowhere are found, others are not", [] if found == FOUND else found)
    tap.case("what comments and pages name exists", Tree(Path(sys.argv[1]).resolve()).problems())
    tap.done()


main()
