#!/usr/bin/env python3
"""Every code block of the documentation is compiled, and run where its output follows it. Commands, files and functions
that the pages name exist. Blocks of CMake are built by the check of the installation."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pages import Block, blocks, pages, prose
from tap import Tap

COMPILERS = {"c": ["gcc", "-std=gnu11"], "cpp": ["g++", "-std=c++17"]}
STRICT = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
FOLDERS = {"wdk": r"ntddk|wdm|ntifs", "win32": r"windows|winternl|wct"}
PLACE = "@"  # the line of a frame where its block goes
SOURCES = ("include", "src", "lab", "kd", "tests", "bench", "examples", "scripts", "tools", "man")
PATH = r"(?:" + "|".join((*SOURCES, "docs", "cmake", "packaging")) + r")/[\w./*-]*(?::\w+)?"
FILE = r"\w[\w-]*\.(?:c|h|py|txt|md)"
FUNCTION = r"(?:Ke|Ki|Exp?|Obp?|Psp?|Iop?|Ntp?|Zw|Rtlp?|Tpp?|Halp?|Lab|Kd)[A-Z]\w+"
NOT_OURS = ("test.c", "program.c", "service.c", "stdio.h")  # names of a reader's files, headers of the host
ELSEWHERE = ("cmake",)
INTERNAL_SETTING = "INTERLOCK_INHERITED"  # from CreateProcess to the child
TIMEOUT = 120
PATIENCE = 60  # seconds until a program has come to the point that the page shows


def run(command, **options):
    result = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, timeout=TIMEOUT, errors="replace", **options)
    return result.returncode, result.stdout


def matches(expected, actual):
    """Whether the output is as shown: … stands for anything in a line, alone in a line for any lines."""
    pattern = ""
    for line in expected.rstrip("\n").split("\n"):
        pattern += r"(?:.*\n)*?" if line.strip() == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
    actual = "".join(line.rstrip() + "\n" for line in actual.rstrip("\n").split("\n"))
    return re.fullmatch(pattern, actual) is not None


def is_part(shown, text):
    """Whether these are whole lines of the text, in order; a line … stands for lines that are left out."""
    at = 0
    for piece in re.split(r"^…\n", "\n" + shown, flags=re.M):
        piece = "\n" + piece.strip("\n") + "\n"
        at = ("\n" + text).find(piece, at)
        if at < 0:
            return False
        at += len(piece) - 1
    return True


class Checker:
    def __init__(self, root, library, command, has_lab, options, work):
        self.root, self.library, self.command = root, library, command
        self.has_lab, self.options, self.work = has_lab, options, Path(work)
        (self.work / "libinterlock.so").symlink_to(library)
        self.environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
        for name in [name for name in self.environment if name.startswith("INTERLOCK_")]:
            del self.environment[name]
        self.patience = PATIENCE
        self.helps, self.words, self.files = {}, set(), set(NOT_OURS)
        for path in (path for folder in SOURCES for path in (root / folder).rglob("*") if path.is_file()):
            self.files.add(path.name)
            if path.suffix in (".c", ".h") or path.parent.name == "scripts":
                self.words.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
        self.files.update(path.name for path in (*pages(root), *root.iterdir()))
        self.words.update(re.findall(r"\w+", (root / "CMakeLists.txt").read_text(encoding="utf-8")))
        self.options_of_meson = set(re.findall(r"option\('(\w+)'", (root / "meson_options.txt").read_text(encoding="utf-8")))

    def source(self, block):
        """(text, problems): what is compiled for a block, and how the block differs from the file that it shows."""
        if "file" in block.directives:
            path = self.root / block.directives["file"]
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            return text, [] if text == block.text else [f"it is not {block.directives['file']} any more"]
        if "part" in block.directives:
            path = self.root / block.directives["part"]
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            return text, [] if is_part(block.text, text) else [f"it is no part of {block.directives['part']}"]
        if "frame" in block.directives:
            lines = block.directives["frame"].split("\n")
            if lines.count(PLACE) != 1:
                return "", [f"its frame has no line {PLACE}, or several"]
            lines[lines.index(PLACE)] = block.text
            return "\n".join(lines) + "\n", []
        return block.text, []

    def includes(self, text):
        yield f"-I{self.root}/include"
        for folder, headers in FOLDERS.items():
            if re.search(rf"^#include <(?:{headers})\.h>", text, re.M):
                yield f"-I{self.root}/include/{folder}"
        if "interlock/lab.h" in text:
            yield f"-I{self.root}/lab/include"

    def build(self, block):
        """(problems, source, program or None) of a block of C or C++."""
        text, problems = self.source(block)
        if problems:
            return problems, None, None
        stem = Path(block.directives.get("file") or block.directives.get("part") or f"block{block.line}").stem
        folder = Path(tempfile.mkdtemp(dir=self.work))
        source, target = folder / f"{stem}.{block.language}", folder / stem
        source.write_text(text, encoding="utf-8")
        is_program = re.search(r"^int main\(", text, re.M)
        compiler = [*COMPILERS[block.language], *STRICT, *self.options, *self.includes(text), source, "-pthread"]
        if is_program:
            compiler += ["-rdynamic", self.work / "libinterlock.so", f"-Wl,-rpath,{self.library.parent}", "-o", target]
        else:
            compiler += ["-fsyntax-only"]
        status, said = run(compiler)
        return [said] if status != 0 else [], source, target if is_program else None

    def program(self, block, output):
        """Problems of a block of C or C++."""
        problems, source, target = self.build(block)
        if problems:
            return problems
        if "LAB_SCENARIO" in source.read_text(encoding="utf-8"):
            return self.compare(output, self.explore(source)) if self.has_lab else []
        if output is None:
            return []
        if target is None:
            return ["output follows it, and it is no program"]
        return self.compare(output, run([target], env=self.environment))

    def watch(self, program, block):
        """Problems of commands that inspect the program above them, which does not end by itself."""
        problems = self.console(block.text)
        if problems:
            return problems
        problems, _, target = self.build(program) if program else (["no program is above it"], None, None)
        if problems or target is None:
            return problems or ["what is above it is no program"]
        with subprocess.Popen([target], env={**self.environment, "INTERLOCK_LOCK_ORDER": "0"}) as process:
            try:
                for command, expected in re.findall(r"^\$ interlock (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.M):
                    words = [self.command, *(str(process.pid) if word == "PID" else word for word in shlex.split(command))]
                    if self.help_of(shlex.split(command)[0]) == "":
                        continue  # this build has no debugger
                    deadline, said = time.monotonic() + self.patience, None
                    while said is None or (not matches(expected, said) and time.monotonic() < deadline):
                        said = run(words, env=self.environment)[1]
                    if not matches(expected, said):
                        problems.append(f"{command} prints\n{said}")
            finally:
                process.kill()
        return problems

    def explore(self, source):
        return run([self.command, "lab", "--seconds", "60", source], env=self.environment)

    def compare(self, output, result):
        status, said = result
        fails = output is not None and "fails" in output.directives
        if (status != 0) != fails:
            return [f"it ends with {status}\n{said}"]
        if output is not None and not matches(output.text, said):
            return [f"it prints\n{said}"]
        return []

    def shell(self, text):
        status, said = run(["bash", "-n"], input=text)
        return ([said] if status != 0 else []) + self.named(text)

    def console(self, text):
        commands = "".join(line[2:] + "\n" for line in text.split("\n") if line.startswith("$ "))
        return self.shell(commands) if commands else ["no line begins with $: a block without commands is text"]

    def help_of(self, subcommand):
        """What `interlock SUBCOMMAND --help` prints; "" if this build lacks it, None if there is no such subcommand."""
        if subcommand not in self.helps:
            said = run([self.command, subcommand, "--help"], env=self.environment)[1]
            if subcommand in ("cc", "c++"): # --help is that of the compiler below
                said = run([self.command, subcommand, "--interlock-help"], env=self.environment)[1]
            if subcommand == "lab" and self.has_lab:
                test = self.root / "examples" / "lab" / "account.c"
                for options in (["--help", test], ["--scale", "--help"]):
                    said += run([self.command, "lab", *options], env=self.environment)[1]
            table = (self.root / "tools" / "interlock" / "main.c").read_text(encoding="utf-8")
            left_out = "there is no subcommand" in said or (subcommand == "lab" and not self.has_lab)
            self.helps[subcommand] = None if f'{{"{subcommand}", ' not in table else "" if left_out else said
        return self.helps[subcommand]

    def named(self, text):
        """Commands and options of the project that the text names but that do not exist."""
        problems = []
        text = re.sub(r"^\(gdb\).*$", "", text, flags=re.M)
        makefile = (self.root / "Makefile").read_text(encoding="utf-8")
        for target in re.findall(r"^[$ ]*make ([a-z-]+)\b", text, re.M):
            if not re.search(rf"^{target}:", makefile, re.M):
                problems.append(f"there is no make {target}")
        for line in re.findall(r"(?:^|[\s(])(scripts/[\w.-]+[^\n|#;&)]*)", text):
            script, *words = line.split()
            if not (self.root / script).is_file():
                problems.append(f"there is no {script}")
            else:
                content = (self.root / script).read_text(encoding="utf-8")
                problems += [f"{script} has no {word}" for word in words
                             if re.match(r"--[a-z]", word) and word.split("=")[0] not in content
                             and "options of the explorer" not in content]
        for subcommand, rest in re.findall(r"(?:^|[\s(])interlock ([a-z]+(?:\+\+)?)(?![\w+])([^\n|#]*)", text):
            said = self.help_of(subcommand)
            if said is None:
                problems.append(f"there is no interlock {subcommand}")
                continue
            own = rest.split(" -- ")[0]
            problems += [f"interlock {subcommand} has no {word}" for word in re.findall(r"(?<!\S)--[a-z][\w-]*", own)
                         if said and word != "--help" and word not in said]
        return problems

    def spans(self, text):
        """Problems of the text of a page: settings, and in code spans commands, files, functions and options, that do not exist."""
        for setting in sorted(set(re.findall(r"\bINTERLOCK_[A-Z0-9_]*[A-Z0-9]\b", text)) - self.words):
            yield f"there is no setting {setting}"
        for span in re.findall(r"`([^`]+)`", " ".join(text.split())):
            if re.match(r"(?:make|scripts/\S+|interlock) ?", span):
                yield from self.named(span)
            elif re.fullmatch(PATH, span):
                if not any(self.root.glob(re.split("[:#]", span)[0].rstrip("/"))):
                    yield f"there is no {span}"
            elif re.fullmatch(FILE, span):
                if span not in self.files:
                    yield f"there is no file {span}"
            elif (option := re.match(r"-D(?:interlock:)?([a-z_]+)=", span)) and option.group(1) not in self.options_of_meson:
                yield f"there is no option {option.group(1)}"
            elif re.fullmatch(FUNCTION, span) and span not in self.words and not span.endswith("Xxx"):
                yield f"there is no {span}"

    def parse(self, block):
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "python":
            compile(block.text, str(block), "exec")
        else:
            folder = Path(tempfile.mkdtemp(dir=self.work))
            (folder / "meson.build").write_text(f"project('block')\n{block.text}")
            status, said = run(["meson", "introspect", "--ast", folder / "meson.build"])
            return [said] if status != 0 else []
        return []

    def check(self, block, output, before):
        if "watch" in block.directives:
            return self.watch(before, block)
        if block.language in COMPILERS:
            return self.program(block, output)
        if output is not None:
            return ["output follows it, and it is not run"]
        if block.language in ("sh", "console"):
            return self.shell(block.text) if block.language == "sh" else self.console(block.text)
        if block.language == "text":
            return self.named("\n".join(re.findall(r"^(?:make|scripts/|interlock) ?.*", block.text, re.M)))
        if block.language in ("json", "python", "meson"):
            try:
                return self.parse(block)
            except (ValueError, SyntaxError) as error:
                return [error]
        return [] if block.language in ELSEWHERE else ["nobody compiles a block of this kind"]

    def check_page(self, found):
        """(block, problems) of each of the blocks of a page."""
        checks = []
        for before, block, after in zip([None, *found], found, [*found[1:], None]):
            output = after if after is not None and after.language == "output" else None
            if block.language != "output":
                checks.append((block, output, before))
            elif not checks or checks[-1][1] is not block:
                checks.append((Block(block.page, block.line, "output of nothing", ""), None, None))
        with ThreadPoolExecutor(2) as pool:
            yield from zip((block for block, *_ in checks), pool.map(lambda each: self.check(*each), checks))


GOOD = """\
```c
#include <stdio.h>
int main(void)
{
    puts("one");
    return 0;
}
```

```output
o…
```

<!-- code: frame
#include <ntddk.h>
NTSTATUS frame(PKEVENT Event)
{
@
}
-->

```c
return KeWaitForSingleObject(Event, Executive, KernelMode, FALSE, NULL);
```

- a list

    with a paragraph

```sh
make test       # `interlock ps --json`
```

```console
$ interlock ps --json
```

```json
{}
```

```python
x = 1
```

```meson
a = {'b': {}}
```
"""
# What must be found: name -> (page, what the problem says)
BAD = {
    "C that does not compile": ("```c\nint f(void) { return g(); }\n```\n", "implicit declaration"),
    "a name that a header does not have": ("```c\n#include <ntddk.h>\nPVOID p = KeSetEvents;\n```\n", "undeclared"),
    "a program that does not link": ("```c\nint g(void);\nint main(void)\n{\n    return g();\n}\n```\n", "undefined"),
    "other output": ("```c\n#include <stdio.h>\nint main(void)\n{\n    return puts(\"two\") < 0;\n}\n```\n\n"
                     "```output\none\n```\n", "it prints\ntwo"),
    "another exit status": ("```c\nint main(void)\n{\n    return 1;\n}\n```\n\n```output\n…\n```\n", "ends with 1"),
    "a success that should be a failure": ("```c\nint main(void)\n{\n    return 0;\n}\n```\n\n<!-- code: fails -->\n"
                                           "```output\n…\n```\n", "ends with 0"),
    "a file that has changed": ("<!-- code: file Makefile -->\n\n```c\nint x;\n```\n", "not Makefile any more"),
    "a part that has changed": ("<!-- code: part examples/win32/jobs.c -->\n```c\nint main(void)\n{\n…\nint x;\n```\n",
                                "no part of examples/win32/jobs.c"),
    "parts in another order": ("<!-- code: part examples/win32/jobs.c -->\n```c\nint main(void)\n…\n#include <windows.h>\n"
                               "```\n", "no part of"),
    "a frame without a place": ("<!-- code: frame\nint x;\n-->\n```c\nint y;\n```\n", "its frame has no line"),
    "a frame that the block does not fit": ("<!-- code: frame\nint f(void) {\n@\n}\n-->\n```c\nreturn x;\n```\n", "undeclared"),
    "output of nothing": ("```output\none\n```\n", "nobody compiles"),
    "a block without a language": ("```\nint x;\n```\n", "nobody compiles"),
    "a block without a fence": ("text\n\n    int x;\n", "nobody compiles"),
    "a language that nobody compiles": ("```rust\nfn main() {}\n```\n", "nobody compiles"),
    "shell": ("```sh\nfor x in; do\n```\n", "syntax error"),
    "a target of make": ("```sh\nmake nothing\n```\n", "no make nothing"),
    "a script": ("```sh\nscripts/nothing\n```\n", "no scripts/nothing"),
    "an option of a script": ("```sh\nscripts/conformance --nothing\n```\n", "has no --nothing"),
    "a subcommand": ("```console\n$ interlock nothing 1\n```\n", "no interlock nothing"),
    "an option of a subcommand": ("```console\n$ interlock ps --nothing\n```\n", "has no --nothing"),
    "commands that inspect nothing": ("<!-- code: watch -->\n```console\n$ interlock threads PID\n```\n", "no program is above"),
    "what a command prints": ("```c\n#include <unistd.h>\nint main(void)\n{\n    return pause();\n}\n```\n\n<!-- code: watch -->\n"
                              "```console\n$ interlock deadlocks PID\nfour\n```\n", "deadlocks PID prints"),
    "JSON": ("```json\n{,}\n```\n", "Expecting"),
    "Python": ("```python\nif\n```\n", "invalid syntax"),
    "Meson": ("```meson\na = {\n```\n", "ERROR"),
    "a command in the text": ("`make nothing`\n", "no make nothing"),
    "a path in the text": ("`src/ke/nothing.c`\n", "no src/ke/nothing.c"),
    "a file in the text": ("`nothing.c`\n", "no file nothing.c"),
    "a setting in the text": ("`INTERLOCK_NOTHING=1`\n", "no setting INTERLOCK_NOTHING"),
    "a setting without code marks": ("set INTERLOCK_NOTHING to 1\n", "no setting INTERLOCK_NOTHING"),
    "an option of Meson": ("`-Dnothing=enabled`\n", "no option nothing"),
    "a function in the text": ("`KeSetEvents`\n", "no KeSetEvents"),
}


def problems_of(checker, folder, text):
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return [f"{block}: {problem}" for block, found in checker.check_page(list(blocks(page, "page.md")))
            for problem in found] + list(checker.spans(prose(page)))


def main():
    tap = Tap()
    root, library, command = (Path(word).resolve() for word in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as directory:
        checker = Checker(root, library, command, sys.argv[4] == "lab", sys.argv[5:], directory)
        tap.case("self-test: nothing is found in a good page", problems_of(checker, Path(directory), GOOD))
        checker.patience = 0
        for name, (text, said) in BAD.items():
            found = problems_of(checker, Path(directory), text)
            tap.case(f"self-test: {name} is caught",
                     [] if any(said in problem for problem in found) else ["it was not", *found])
        checker.patience = PATIENCE
        count = 0
        for path in pages(root):
            page = str(path.relative_to(root))
            for block, problems in checker.check_page(list(blocks(path, page))):
                tap.case(str(block), problems)
                count += 1
            tap.case(f"{page}: the commands, files and functions that it names exist", checker.spans(prose(path)))
        read = {name for path in (root / "src").rglob("*.c")
                for name in re.findall(r'"(INTERLOCK_[A-Z_]+)"', path.read_text(encoding="utf-8"))} - {INTERNAL_SETTING}
        settings = (root / "docs/settings.md").read_text(encoding="utf-8")
        tap.case("docs/settings.md has every setting that the library reads",
                 [name for name in sorted(read) if f"`{name}`" not in settings] if read else ["none was found"])
        tap.case("there are code blocks", [] if count else ["none was found"])
        listed = re.findall(r"^  ([a-z]+) ", run([command, "--help"])[1], re.M)
        tap.case("each subcommand has --help", [name for name in listed if run([command, name, "--help"])[0] != 0]
                 if listed else ["none is listed"])
    tap.done()


main()
