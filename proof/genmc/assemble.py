#!/usr/bin/env python3
"""usage: assemble.py DRIVER OUTPUT
Writes the driver with parts of the library in place of its lines `//! take NAME...`: those functions or types, and the
functions, macros and types that they use, as they are in src and include, in whatever file. A name that shim.h or the driver
mentions before that line is not taken. `//! fault N FUNCTION: OLD => NEW` makes that change in the function for -DFAULT=N."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDERS = ("src/hal", "src/ke", "src/ex", "src/ob", "src/nt", "src/rtl", "include/interlock")
WORD = re.compile(r"\b[A-Za-z_]\w*\b")


@dataclass(frozen=True)
class Piece:
    kind: str  # function, macro or type
    path: str
    text: str
    head: str  # of a function

    @property
    def words(self):
        return WORD.findall(blank(self.text))


def blank(source):
    """Comments and literals as spaces: all offsets stay the same."""
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'",
                  lambda match: re.sub(r"[^\n]", " ", match.group()), source, flags=re.S)


def closing(text, start):
    depth = 0
    for offset in range(start, len(text)):
        depth += (text[offset] in "({") - (text[offset] in ")}")
        if depth == 0:
            return offset + 1
    raise ValueError("a bracket is not closed")


def functions(path, source, text):
    for match in re.finditer(r"^\{\n", text, re.M):
        start = max(text.rfind("\n\n", 0, match.start()), text.rfind(";\n", 0, match.start()),
                    text.rfind("\n#", 0, match.start()))
        start = text.find("\n", start + 1) + 1 if text[start + 1:start + 2] in "#;\n" else start + 1
        head = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", " ".join(text[start:match.start()].split()))
        name = re.search(r"(\w+)\s*\(", head)
        if name is not None:
            yield name.group(1), Piece("function", path, source[start:closing(text, match.start())], head)


def types(path, source, text):
    for match in re.finditer(r"^(?:typedef )?(struct|union|enum)\b[^;{}()=]*\{", text, re.M):
        end = closing(text, match.end() - 1)
        tail = text.index(";", end)
        piece = Piece("type", path, source[match.start():tail + 1], "")
        names = set(WORD.findall(text[end:tail])) | set(WORD.findall(match.group())) - {"typedef", "struct", "union", "enum"}
        if match.group(1) == "enum":
            names |= {item.split("=")[0].strip() for item in text[match.end():end - 1].split(",")} - {""}
        for name in names:
            yield name, piece
    for match in re.finditer(r"^typedef [^{};]*;", text, re.M):
        declarators = re.sub(r"\((?:[^()]|\([^()]*\))*\)\s*;$", ";", match.group())  # without the parameters of a function
        for name in re.findall(r"(\w+)\s*(?=[,;)])", declarators):
            yield name, Piece("type", path, source[match.start():match.end()], "")


def macros(path, source, text):
    for match in re.finditer(r"^#define (\w+)(?:.*\\\n)*.*$", source, re.M):
        yield match.group(1), Piece("macro", path, re.sub(r"\s*/\*[^*]*\*/", "", match.group()), "")


def read_library():
    """{name: [Piece]}"""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).glob("*.[ch]")):
            source = path.read_text()
            text = blank(source)
            for collect in (functions, types, macros):
                for name, piece in collect(str(path.relative_to(ROOT)), source, text):
                    found.setdefault(name, []).append(piece)
    return found


def choose(pieces, path):
    """The one that a file sees: its own, else that of a header, else a function that is not static."""
    own = [piece for piece in pieces if piece.path == path]
    headers = [piece for piece in pieces if piece.path.endswith(".h")]
    others = [piece for piece in pieces if piece.kind == "function" and not piece.head.startswith("static")]
    return (own or headers or others or [None])[0]


class Core:
    def __init__(self, library, faults):
        self.library = library
        self.faults = faults
        self.known = set()
        self.seen = set()
        self.functions = set()

    def collect(self, name, user, taken):
        """Adds it to taken, a type after those that it uses."""
        pieces = self.library.get(name, [])
        piece = choose(pieces, user.path) if user is not None else pieces[0]
        if piece is None or piece in self.seen:
            return
        self.seen.add(piece)
        for word in piece.words:
            if word != name and word not in self.known:
                self.collect(word, piece, taken)
        taken.append((name, piece))

    def take(self, names, known):
        """The text of these names and of what they use."""
        self.known = known
        taken = []
        for name in names:
            if name not in self.library:
                sys.exit(f"{name} is not in the library")
            self.collect(name, None, taken)
        parts = [piece.text for kind in ("macro", "type") for _, piece in taken if piece.kind == kind]
        functions = [(name, piece) for name, piece in taken if piece.kind == "function"]
        parts += [piece.head + ";" for _, piece in functions]
        for name, piece in functions:
            parts += ["", *self.with_faults(name, piece)]
        self.functions |= {name for name, _ in functions}
        return "\n".join(parts) + "\n"

    def with_faults(self, name, piece):
        changes = self.faults.get(name, {})
        parts = [f"/* {piece.path} */"]
        for number, edits in changes.items():
            text = piece.text
            for old, new in edits:
                if old not in text:
                    sys.exit(f"{name} in {piece.path} does not contain {old!r}, which fault {number} changes")
                text = text.replace(old, new)
            parts += [f"#if FAULT == {number}", text, "#else"]
        return [*parts, piece.text, *["#endif"] * len(changes)]


def read_faults(driver):
    """{function: {number: [(old text, new text)]}}"""
    faults = {}
    for number, function, old, new in re.findall(r"^//! fault (\d+) (\w+): (.*?) => ?(.*)$", driver, re.M):
        faults.setdefault(function, {}).setdefault(int(number), []).append((old, new))
    return faults


def numbers_of_faults(path):
    return sorted({number for changes in read_faults(Path(path).read_text()).values() for number in changes})


def assemble(path, library=None):
    driver = Path(path).read_text()
    core = Core(library or read_library(), read_faults(driver))
    shim = set(WORD.findall(blank((HERE / "shim.h").read_text())))
    name = Path(path).name

    def take(match):
        known = shim | set(WORD.findall(blank(driver[:match.start()])))
        line = driver.count("\n", 0, match.end()) + 2
        return f'{core.take(match.group(1).split(), known)}#line {line - 1} "{name}"'

    text = re.sub(r"^//! take (.*)$", take, driver, flags=re.M)
    missing = set(core.faults) - core.functions
    if missing:
        sys.exit(f"{path}: a fault is in {', '.join(sorted(missing))}, which is not used")
    return text


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    Path(sys.argv[2]).write_text(assemble(sys.argv[1]))
