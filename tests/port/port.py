#!/usr/bin/env python3
"""`interlock port` on small trees, on hostile ones, and on itself: code that it reports as available compiles."""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, sys.argv[1])

from tap import Tap  # noqa: E402

OTHER_PROCESSORS = {"__yield"} # declared for aarch64 only
COMMAND, ROOT = sys.argv[2], Path(sys.argv[3])


def run(*arguments):
    return subprocess.run([COMMAND, "port", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          timeout=300)


class Trees:
    def __init__(self, directory):
        self.directory = Path(directory)

    def make(self, files):
        folder = Path(tempfile.mkdtemp(dir=self.directory))
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder

    def report(self, files):
        """The report as JSON; it must be valid and status 0."""
        result = run("--json", files if isinstance(files, Path) else self.make(files))
        assert result.returncode == 0 and not result.stderr, (result.returncode, result.stderr)
        return json.loads(result.stdout)


def names(report, standing):
    return {entry["name"]: [(place["file"], place["line"]) for place in entry["places"]] for entry in report[standing]}


def lines(report, kind):
    return [place["line"] for entry in report["look_at"] if entry["kind"] == kind for place in entry["places"]]


# (what, source, lines where Sleep is called)
TOKENS = [
    ("a call", "void f(void) { Sleep(1); }", [1]),
    ("a comment", "/* Sleep(1) */ // Sleep(1)\n", []),
    ("a comment over a continued line", "// Sleep \\\n(1) Sleep(2)\nint x = (Sleep(1), 0);", [3]),
    ("a string", 'const char *s = "Sleep(1) \\" Sleep(1)";', []),
    ("a character", "int c = '\"'; void f(void) { Sleep(1); }", [1]),
    ("a raw string", 'auto s = R"x(Sleep(1) )" Sleep(1))x"; void f() { Sleep(1); }', [1]),
    ("a continued name", "void f(void) { Sle\\\nep(1); }", [1]),
    ("a line behind continued ones", "#define A \\\n 1 \\\n + 2\nvoid f(void) { Sleep(1); }", [4]),
    ("the body of a macro", "#define NAP() \\\n  do { \\\n    Sleep(1); \\\n  } while (0)", [3]),
    ("separators of digits", "int a = 1'000'000; void f() { Sleep(1'0); }", [1]),
    ("a member", "void f(X *x) { x->Sleep(1); x->y.Sleep(2); }", []),
    ("another namespace", "void f() { mine::Sleep(1); }", []),
    ("the global namespace", "void f() { ::Sleep(1); }", [1]),
    ("a method of a class", "class thread { void Sleep(int); };", []),
    ("a function that is passed", "static const F table[] = { Sleep, (F)Sleep };", [1, 1]),
    ("a variable", "void f(int Sleep) { Sleep = 1; }", []),
    ("behind an apostrophe in #error", "#error don't\nvoid f(void) { Sleep(1); }", [2]),
    ("a string that does not end", 'char *s = "abc\nvoid f(void) { Sleep(1); }', [2]),
    ("not for Windows", "#ifndef _WIN32\nvoid f(void) { Sleep(1); }\n#endif", []),
    ("the other branch", "#ifdef _WIN32\n#else\nvoid f(void) { Sleep(1); }\n#endif", []),
    ("#if 0", "#if 0\nvoid f(void) { Sleep(1); }\n#else\nvoid g(void) { Sleep(2); }\n#endif", [4]),
    ("an expression", "#if defined(X) && !defined(_WIN32) /* no */\nvoid f(void) { Sleep(1); }\n#endif", []),
    ("an expression with or", "#if !(defined __APPLE__ || !defined(WIN32))\nvoid f(void) { Sleep(1); }\n#endif", [2]),
    ("#elif", "#if defined(__APPLE__)\n#elif defined(_WIN32)\nvoid f(void) { Sleep(1); }\n#else\nvoid g(void) { Sleep(2); }\n#endif",
     [3]),
    ("what is not known", "#if X > 3\nvoid f(void) { Sleep(1); }\n#else\nvoid g(void) { Sleep(2); }\n#endif", [2, 4]),
    ("its own function", "void Sleep(int x) { }\nvoid g(void) { Sleep(2); }", []),
    ("its own macro", "#define Sleep(x) nap(x)\nvoid g(void) { Sleep(2); }", []),
    ("UTF-16", ("\ufeff" + "void f(void) { }\nvoid g(void) { Sleep(1); }").encode("utf-16-le"), [2]),
    ("a mark of UTF-8", b"\xef\xbb\xbfvoid g(void) { Sleep(1); }", [1]),
    ("DOS lines", "#define A \\\r\n 1\r\nvoid g(void) { Sleep(1); }\r\n", [3]),
]

# (kind, source, lines)
LOOKS = [
    ("long-interlocked", "static volatile long n;\nvoid f(void) { InterlockedIncrement(&n); }", [2]),
    ("long-interlocked", "void f(LONG *p) { InterlockedIncrement((volatile long *)p); }", [1]),
    ("long-interlocked", "static LONG n; static long m;\nvoid f(void) { InterlockedExchange(&n, m); }", []),
    ("long-interlocked", "static long long n;\nvoid f(void) { InterlockedIncrement64(&n); }", []),
    ("long-interlocked", "static unsigned long a[3];\nvoid f(int i) { InterlockedAnd(&a[i], 1); }", [2]),
    ("print-long", 'void f(DWORD d) { printf("%ld %s", d, "");\nprintf("%lld %ls %lf %d", 1);\nprintf("%-08lu%%"); }', [1, 3]),
    ("scan-long", 'void f(DWORD *d) { sscanf(text, "%lu", d); }', [1]),
    ("long-limits", "auto a = std::numeric_limits<unsigned long>::max();\nauto b = std::numeric_limits<long long>::max();\n"
                    "long c = LONG_MAX;", [1, 3]),
    ("size-of-long", "int a = sizeof(unsigned long), b = sizeof(long long);", [1]),
    ("size-of-long", "int b = sizeof(long long);", []),
    ("redeclared", 'extern "C" {\n__declspec(dllimport) void __stdcall Sleep(unsigned long);\n}', [2]),
    ("redeclared", "void f(void)\n{\n    if (x) {\n        Sleep(1);\n    }\n}\nvoid Mine(int);\n", []),
    ("redeclared-type", "typedef unsigned long DWORD, *LPDWORD;\ntypedef unsigned int UINT;", [1]),
    ("posix-name", "int pthread_create(pthread_t *t, void *a)\n{\n    return 0;\n}\nint usleep(int x);", [1]),
    ("dll-main", "BOOL WINAPI DllMain(HINSTANCE h, DWORD r, LPVOID x)\n{\n}\n", [1]),
    ("tls-callback", '#pragma section(".CRT$XLB", read)\nPIMAGE_TLS_CALLBACK p = f;', [1, 2]),
    ("exception", "void f(void) { __try { g(); }\n__except (1) { } }", [1, 2]),
    ("fault", "int f(int c) { return c == EXCEPTION_ACCESS_VIOLATION; }", [1]),
    ("assembly", "void f(void) { __asm { int 3 }\n__asm__ volatile (\"nop\"); __asm volatile(\"\"); }", [1]),
    ("align-struct", "__declspec(align(16)) struct A { int x; };\nstruct __declspec(align(16)) B { int x; };", [1]),
    ("shared-name", 'HANDLE f(void) { return OpenMutexA(1, 0, "x"); }\nHANDLE g = CreateEventA(0, 0, 0, "Global\\\\x");', [1, 2]),
    ("module", 'void f(void) { LoadLibraryW(L"x"); GetProcAddress(a, "b"); }', [1]),
    ("wide-library", "std::wstring s;", [1]),
]


def tokens(tap, trees):
    for what, text, expected in TOKENS:
        report = trees.report({"a.cpp": text})
        found = [line for _, line in names(report, "there").get("Sleep", [])]
        tap.case(f"tokens: {what}", [] if found == expected else [f"{found}, expected {expected}"])


def looks(tap, trees):
    for kind, text, expected in LOOKS:
        found = lines(trees.report({"a.cpp": text}), kind)
        tap.case(f"{kind}: {text.splitlines()[0][:60]}", [] if found == expected else [f"{found}, expected {expected}"])
    report = trees.report({"a.h": "struct s { int a; volatile long count; };", "b.c": "void f(struct s *s) { InterlockedIncrement(&s->count); }"})
    tap.case("long-interlocked: a member that a header declares", [] if lines(report, "long-interlocked") == [1] else [report])


def standings(tap, trees):
    report = trees.report({
        "src/net.c": "#include <mswsock.h>\n#include <windows.h>\nvoid f(void) { SOCKET s = socket(1, 2, 3); closesocket(s); }\n",
        "src/file.c": '#include <Windows.h>\n#include "mem.h"\nHANDLE f(void) { return CreateFileW(L"x", 0, 0, 0, 0, 0, 0); }\n',
        "src/sync.c": "void f(HANDLE h) { WaitForSingleObject(h, 0); SetEvent(h); NtSetEvent(h, 0); ReadProcessMemory(0); }\n",
        "src/mem.h": "int x;\n", "ui.cpp": "void f() { MessageBoxW(0, 0, 0, 0); RegCloseKey(0); }\n", "notes.txt": "SetEvent(x)"})
    areas = {entry["name"]: entry["area"] for standing in ("there", "missing", "out_of_scope") for entry in report[standing]}
    expected = {"socket": "sockets", "closesocket": "sockets", "CreateFileW": "files", "MessageBoxW": "windows", "RegCloseKey": "registry"}
    found = {name: area for name, area in areas.items() if name in names(report, "out_of_scope")}
    tap.case("out of scope: files, windows, registry, sockets", [] if found == expected else [found])
    tap.case("there", [] if set(names(report, "there")) == {"WaitForSingleObject", "SetEvent", "NtSetEvent"} else [report["there"]])
    tap.case("missing", [] if set(names(report, "missing")) == {"ReadProcessMemory"} else [report["missing"]])
    made = trees.report({"a.c": "void f(void) { StringCchCopyW(a, 1, b); StringCbPrintfA(a, 1, b); _vsnprintf_s(a, 1, 1, b, c); "
                                "_scwprintf(a); lstrcpyW(a, b); }"})
    tap.case("functions that macros make for both kinds of characters are there",
             [] if len(names(made, "there")) == 5 and not made["missing"] else [made["there"], made["missing"]])
    headers = {entry["name"]: entry["there"] for entry in report["headers"]}
    tap.case("headers, but not the tree's own", [] if headers == {"mswsock.h": False, "windows.h": True} else [headers])
    summary = report["summary"]
    counts = (summary["files"], summary["windows_files"], summary["lines"], summary["out_of_scope"]["calls"])
    tap.case("the summary counts", [] if counts == (5, 4, 9, 5) else [summary])


def text_form(tap, trees):
    folder = trees.make({"a.c": "void f(void) { Sleep(1); socket(1, 2, 3);\n" + "CreateFileA(0);\n" * 9 + "}\n"})
    brief, full = run(folder).stdout.decode(), run("-v", folder).stdout.decode()
    wanted = ["available         1 function ", "out of scope      2 functions,     10 calls    files 1, sockets 1", "9 % of the calls are available"]
    top = brief.split("\n\n")[0]
    tap.case("the summary is on top", [f"no {line!r} in\n{top}" for line in wanted if line not in top])
    tap.case("a few places, all with -v", [] if "and 5 more" in brief and "more" not in full and "a.c:10" in full else [brief, full])
    tap.case("-v shows what is there", [] if "\nAvailable\n" in full and "\nAvailable\n" not in brief else [full])


def arguments(tap, trees):
    one = trees.make({"a.c": "void f(void) { Sleep(1); }\n"})
    cases = [((), 2, b"usage"), (("--wrong", one), 2, b"usage"), ((one, one), 2, b"usage"), ((one / "none",), 1, b"No such file"),
             (("",), 1, b"No such file")]
    for words, status, message in cases:
        result = run(*words)
        tap.case(f"status {status} for {len(words)} arguments, {message.decode()}",
                 [] if result.returncode == status and message in result.stderr else [result])
    tap.case("--help", [] if run("--help").returncode == 0 else ["not 0"])
    tap.case("one file", [] if "Sleep" in names(trees.report(one / "a.c"), "there") else ["nothing found"])
    (one / "link.c").symlink_to("a.c")
    other = trees.make({})
    (other / "tree").symlink_to(one)
    tap.case("a link to the tree is followed, one in it is not",
             [] if len(names(trees.report(other / "tree"), "there")["Sleep"]) == 1 else ["found more"])


def hostile_files():
    """{name: contents} of files that break simple tokenizers."""
    return {
        "binary": b"\x7fELF\0\0\0Sleep(1)", "comment": b"/* never ends", "string": b'"never ends', "quote": b"'",
        "raw": b'R"(never ends', "rawtag": b'R"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa(x)"', "raw-end": b'R"', "prefix": b"L",
        "backslash": b"a\\", "backslashes": b"\\\n" * 100000, "hash": b"#", "if": b"#if " + b"(" * 100000, "not": b"#if " + b"!" * 100000,
        "ifs": b"#if X\n" * 100000, "endifs": b"#endif\n#else\n#elif X\n" * 1000, "parens": b"Sleep(" * 200000,
        "braces": b"{" * 100000 + b"}" * 200000, "line": b"Sleep(1);" * 200000, "invalid": b"\xff\xc0Sleep(1);\x80\n" * 100,
        "include": b"#include <", "include2": b'#include "' + b"a" * 100000, "define": b"#define", "defined": b"#if defined(",
        "declspec": b"__declspec(align(", "typedef": b"typedef long", "sizeof": b"sizeof(", "limits": b"numeric_limits<",
        "interlocked": b"InterlockedIncrement(&", "percent": b'"%', "percent2": b'"%08"', "escape": b'"\\', "utf16": b"\xff\xfe\x00",
        "utf16b": b"\xff\xfe" + b"\x41\xd8" * 1000, "colon": b"::Sleep(1)", "member": b"->", "nul": b"a" * 9000 + b"\0Sleep(1);",
        "empty": b"", "long": b"long " * 100000, "longs": b"long " + b"a," * 100000,
    }


def hostile(tap, trees):
    for name, contents in hostile_files().items():
        try:
            report = trees.report({f"{name}.c": contents})
            problems = [] if report["summary"]["files"] + report["summary"]["left_out"]["binary"] == 1 else [report["summary"]]
        except (AssertionError, ValueError, subprocess.TimeoutExpired) as error:
            problems = [str(error)[:500]]
        tap.case(f"hostile: {name}", problems)


def hostile_trees(tap, trees):
    folder = trees.make({"a.c": "void f(void) { Sleep(1); }\n", "big.c": b" " * ((16 << 20) + 1)})
    (folder / "loop").symlink_to(folder)
    (folder / "self.c").symlink_to("self.c")
    (folder / "dangling.c").symlink_to("/nonexistent")
    (folder / "passwd.c").symlink_to("/etc/passwd")
    os.mkfifo(folder / "fifo.c")
    (folder / "folder.c").mkdir()
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "b.c").write_text("void f(void) { Sleep(1); }\n")
    (Path(os.fsdecode(os.fsencode(folder) + b"/\xff\x1b[31m.c"))).write_text("void f(void) { SetEvent(1); }\n")
    report = trees.report(folder)
    files = {place for places in names(report, "there").values() for place in places}
    tap.case("links, a fifo and hidden folders are left out", [] if len(files) == 2 and report["summary"]["files"] == 2 else [files])
    tap.case("a large file is counted", [] if report["summary"]["left_out"]["too_large"] == 1 else [report["summary"]])
    text = run("-v", folder).stdout
    tap.case("control characters of names are not printed", [] if b"\x1b" not in text and b"\\x1b" in text else [text])
    deep = trees.make({})
    path = deep
    for _ in range(150):
        path = path / "d"
    path.mkdir(parents=True)
    (path / "a.c").write_text("void f(void) { Sleep(1); }\n")
    tap.case("folders that are too deep are counted", [] if trees.report(deep)["summary"]["left_out"]["too_deep"] == 1 else ["not counted"])


def mutations(tap, trees):
    """Random damage to real sources; the seed is fixed."""
    chance = random.Random(1)
    sources = [path.read_bytes() for path in sorted((ROOT / "src" / "win32").glob("*.c"))[:12]]
    files = {}
    for number in range(60):
        text = bytearray(chance.choice(sources)[:20000])
        for _ in range(chance.randrange(1, 60)):
            place = chance.randrange(len(text))
            text[place:place + chance.randrange(3)] = chance.choice(
                [b"\\\n", b'"', b"'", b"/*", b"#if ", b"#endif\n", b"(", b"{", b"R\"(", b"\xff", b"\n#", b"->", b"long "])
        files[f"{number}.c"] = bytes(text)
    try:
        problems = [] if trees.report(files)["summary"]["files"] == len(files) else ["files are missing"]
    except (AssertionError, ValueError) as error:
        problems = [str(error)[:500]]
    tap.case("60 damaged sources", problems)


def listed_functions():
    found, area = {}, None
    for line in (ROOT / "tools" / "port" / "sdk-names.txt").read_text().splitlines():
        heading = re.fullmatch(r"\[(.*?)( \+)?\]", line)
        if heading:
            area = heading.group(1)
        elif area and not area.startswith("headers") and not line.startswith("#"):
            found.update(dict.fromkeys(line.split(), area))
    return found


def compile_problems(functions, includes, options):
    """The functions that these headers do not declare."""
    body = "".join(f"#ifndef {name}\nstatic const __typeof__(&{name}) uses_{name};\n#endif\n" for name in sorted(functions))
    result = subprocess.run(["gcc", "-fsyntax-only", "-w", "-fmax-errors=0", "-xc", "-", *options], input=includes + body,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    missing = set(re.findall(r"[‘']([A-Za-z_]\w*)[’'] undeclared", result.stdout))
    return missing if missing or result.returncode == 0 else {result.stdout[:2000]}


def claims(tap, trees):
    """Names that the report calls available exist."""
    listed = listed_functions()
    calls = "".join(f"void f{number}(void) {{ (0, {name}(0)); }}\n" for number, name in enumerate(sorted(listed)))
    report = trees.report({"all.c": calls})
    there = set(names(report, "there"))
    seen = there | set(names(report, "missing")) | set(names(report, "out_of_scope"))
    tap.case("every listed function is found", sorted(set(listed) - seen)[:20])
    options = [f"-I{ROOT}/include", f"-I{ROOT}/include/win32", f"-I{ROOT}/include/wdk", "-mcx16", "-fshort-wchar", "-D_WIN32", "-D__INTERLOCK_CC__"]
    headers = sorted(path.name for path in (ROOT / "include" / "win32").glob("*.h")
                     if path.name != "windows.h" and re.search(r"^#ifndef INTERLOCK_", path.read_text(), re.M))
    user = "#include <windows.h>\n" + "".join(f"#include <{name}>\n" for name in headers)
    lacking = compile_problems(there, user, options)
    lacking = compile_problems(lacking, "#include <ntifs.h>\n", options) if lacking else lacking
    tap.case(f"{len(there)} functions that are called there are declared", sorted(lacking - OTHER_PROCESSORS))
    tap.case("enough functions are there", [] if len(there) > 400 else [len(there)])
    headers = {entry["name"] for entry in trees.report({"a.c": "".join(f"#include <{name}>\n" for name in (
        "windows.h", "synchapi.h", "ntddk.h", "mswsock.h", "shlobj.h"))})["headers"] if entry["there"]}
    tap.case("headers that are there", [] if headers == {"windows.h", "synchapi.h", "ntddk.h"} else [headers])


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as directory:
        trees = Trees(directory)
        for group in (tokens, looks, standings, text_form, arguments, hostile, hostile_trees, mutations, claims):
            group(tap, trees)
    tap.done()


main()
