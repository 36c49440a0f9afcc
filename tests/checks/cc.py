#!/usr/bin/env python3
"""`interlock cc` and `interlock c++`: alone, and as the compilers of make, CMake and Meson, from an installed copy. With `all` as the
last argument, every case with gcc and clang; otherwise clang with fewer options, and below make alone."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tap import Tap

COMPILERS = {"gcc": "g++", "clang": "clang++"}
SOURCES = Path(__file__).resolve().parent / "cc"
QUIET = "int main(void) { return 0; }\n"
USES = "#include <windows.h>\nint main(void) { return GetCurrentThreadId() == 0; }\n"
MACROS = {"_WIN32": "1", "_WIN64": "1", "WIN32": "1", "__SIZEOF_WCHAR_T__": "2", "__cdecl": "", "__stdcall": "",
          "__fastcall": "", "__vectorcall": "", "__int64": "long long", "__int8": "char",
          "__forceinline": "inline __attribute__((always_inline))"}


class Copy:
    """An installed tree, and working folders."""

    def __init__(self, directory, build, prefix, libdir):
        self.directory = Path(directory)
        stage = self.directory / "stage"
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("DESTDIR", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS")}
        self.problems = problems_of(["meson", "install", "-C", build, "--no-rebuild", "--destdir", stage], environment)[1]
        self.root = stage / prefix.lstrip("/")
        self.command = self.root / "bin" / "interlock"
        self.environment = {**environment, "LD_LIBRARY_PATH": str(self.root / libdir),
                            "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
                            "XDG_DATA_DIRS": str(self.root / "share")}
        self.environment.pop("INTERLOCK_CC", None)
        self.environment.pop("INTERLOCK_CXX", None)

    def run(self, *command, folder=None, **variables):
        return problems_of(command, {**self.environment, **variables}, folder)

    def project(self):
        folder = Path(tempfile.mkdtemp(dir=self.directory)) / "a project"
        shutil.copytree(SOURCES, folder)
        return folder

    def all(self, folder, *commands, **variables):
        """Problems of the first command that fails."""
        for command in commands:
            problems = self.run(*command, folder=folder, **variables)[1]
            if problems:
                return problems
        return []


def problems_of(command, environment, folder=None):
    """(output, problems): problems is empty when the command succeeded."""
    result = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            stdin=subprocess.DEVNULL, env=environment, cwd=folder, check=False)
    failed = result.returncode != 0
    return result.stdout, [f"{shlex.join(map(str, command))}: {result.returncode}\n{result.stdout}"] if failed else []


def make(tap, copy, c, cxx):
    tap.case(f"make, {c}: C, C++ and a DLL", copy.all(
        copy.project(), ["make", "CC=interlock cc", "CXX=interlock c++"], ["./program.exe"], ["./classes.exe"],
        INTERLOCK_CC=c, INTERLOCK_CXX=cxx))


def other_build_systems(tap, copy, c, cxx):
    below = {"INTERLOCK_CC": c, "INTERLOCK_CXX": cxx}
    toolchain = copy.root / "share" / "interlock" / "toolchain.cmake"
    tap.case(f"CMake, {c}: C, C++ and a DLL", copy.all(
        copy.project(), ["cmake", "-S", ".", "-B", "build", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}"],
        ["cmake", "--build", "build"], ["ctest", "--test-dir", "build", "--output-on-failure", "--no-tests=error"], **below))
    tap.case(f"Meson, {c}: C, C++ and a DLL", copy.all(
        copy.project(), ["meson", "setup", "--cross-file", "interlock", "build"], ["ninja", "-C", "build"],
        ["meson", "test", "-C", "build", "--print-errorlogs"], ["build/program.exe"], **below))
    work = copy.project()
    shutil.copy(work / "wide.c", work / "wide.cpp")
    (work / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(wide C CXX)\nadd_definitions(-DUNICODE -D_UNICODE)\n"
        "enable_testing()\nforeach(language c cpp)\n  add_executable(wide-${language} wide.${language})\n"
        "  add_test(NAME ${language} COMMAND wide-${language} gr\u00fcn \U0001F600)\nendforeach()\n")
    tap.case(f"CMake, {c}: _tmain with UNICODE", copy.all(
        work, ["cmake", "-S", ".", "-B", "build", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}"], ["cmake", "--build", "build"],
        ["ctest", "--test-dir", "build", "--output-on-failure", "--no-tests=error"], **below))


def one_compiler(tap, copy, c, cxx):
    work = copy.project()
    (work / "quiet.c").write_text(QUIET)
    (work / "uses it.c").write_text(USES)
    (work / "fails.c").write_text("#error this fails\n")
    (work / "code.S").write_text("#ifndef _WIN32\n#error\n#endif\n.section .note.GNU-stack\n")
    cc = ["interlock", "cc", f"--compiler={c}", "-Wall", "-Wextra", "-Werror"]

    output, problems = copy.run(*cc, "-dM", "-E", "quiet.c", folder=work)
    found = dict(line.split(" ", 2)[1:] + [""] if line.count(" ") == 1 else line.split(" ", 2)[1:]
                 for line in output.splitlines() if line.startswith("#define "))
    wrong = [f"{name}: {found.get(name)}" for name, value in MACROS.items() if found.get(name, "-").strip() != value]
    tap.case(f"{c}: what is known before the first header", problems or wrong)
    tap.case(f"{c}: options of the caller win", [] if "#define _WIN32 " not in copy.run(
        *cc, "-U_WIN32", "-dM", "-E", "quiet.c", folder=work)[0] else ["-U_WIN32 has no effect"])
    tap.case(f"{c}: compiles, then links", copy.all(
        work, [*cc, "-c", "uses it.c", "-o", "uses it.o"], [*cc, "uses it.o", "-o", "linked"], ["./linked"]))
    tap.case(f"{c}: warns of nothing that is not used", copy.all(
        work, [*cc, "-c", "code.S"], [*cc, "-fsyntax-only", "uses it.c"], [*cc, "-S", "quiet.c"], [*cc, "-MM", "quiet.c"]))
    tap.case(f"{c}: options and libraries of Windows' linker", copy.all(
        work, [*cc, "-mwindows", "-municode", "-mthreads", "uses it.c", "-o", "windows.exe", "-lkernel32", "-luser32", "-lws2_32",
               "-lntdll", "-lwinmm", "-Wl,--subsystem,windows", "-Wl,--nxcompat", "-Wl,--major-image-version,1"],
        ["./windows.exe"]))
    tap.case(f"{c}: a program with the static library", copy.all(
        work, [*cc, "-static", "uses it.c", "-o", "static"], ["env", "-u", "LD_LIBRARY_PATH", "./static"]))
    (work / "words").write_text('"uses it.c" -o response\n')
    tap.case(f"{c}: a response file", copy.all(work, [*cc, "@words"], ["./response"]))
    _, problems = copy.run(*cc, "-nostdlib", "-c", "quiet.c", folder=work)
    tap.case(f"{c}: the version, without input", problems or copy.run(*cc, "--version")[1] or copy.run(
        "interlock", "cc", f"--compiler={c}", "-v")[1])
    tap.case(f"{c}: the status of the compiler", [] if copy.run(*cc, "fails.c", folder=work)[1] else ["0 for an error"])
    tap.case(f"{cxx}: by the link interlock-c++", copy.all(
        work, ["interlock-c++", "-std=c++17", "-c", "classes.cpp"], ["interlock-cc", "-c", "counter.c", "-DCOUNTER_EXPORTS"],
        ["interlock-c++", "classes.o", "counter.o", "-o", "linked"], ["./linked"], INTERLOCK_CC=c, INTERLOCK_CXX=cxx))


PRINTED = "5000000000 -1 wide\n6\n7 wide\n"


def formats(tap, copy, c, cxx, every):
    """Microsoft's conversions in C and C++, optimised or not, with checked functions of the C library or without."""
    work = copy.project()
    shutil.copy(work / "formats.c", work / "formats.cpp")
    plain = [["-O0"], ["-O2", "-static"]] if every or c == "gcc" else []
    for options in (*plain, ["-O2", "-Wformat=2"], ["-O2", "-D_FORTIFY_SOURCE=2"]):
        for command, below, source in (("cc", c, "formats.c"), ("c++", cxx, "formats.cpp")):
            build = ["interlock", command, f"--compiler={below}", "-Wall", "-Wextra", "-Werror", *options, source, "-o", "formats"]
            problems = copy.run(*build, folder=work)[1]
            output, failed = copy.run("./formats", folder=work) if not problems else ("", problems)
            tap.case(f"{below} {' '.join(options)}: Microsoft's formats", failed or ([] if output == PRINTED else [output]))


def longs(tap, copy, c, cxx):
    work = copy.project()
    shutil.copy(work / "longs.c", work / "longs.cpp")
    for command, below, source in (("cc", c, "longs.c"), ("c++", cxx, "longs.cpp")):
        tap.case(f"{below}: Interlocked functions on long", copy.all(
            work, ["interlock", command, f"--compiler={below}", "-Wall", "-Wextra", "-Werror", "-O2", source, "-o", "longs"],
            ["./longs"]))


def standard_headers(tap, copy, c, cxx, every):
    """Sources without windows.h find Microsoft's C library in the standard headers, and none of windows.h's types."""
    work = copy.project()
    shutil.copy(work / "microsoft.c", work / "microsoft.cpp")
    for options in (["-std=c89"], ["-std=c99"], ["-std=gnu17", "-O2"]):
        tap.case(f"{c} {options[0]}: Microsoft's names in the standard headers", copy.all(
            work, ["interlock", "cc", f"--compiler={c}", "-Wall", "-Wextra", "-Werror", *options, "microsoft.c", "-o", "microsoft"],
            ["./microsoft"]))
    (work / "all.cpp").write_text("".join(f"#include <{name}>\n" for name in (
        "cstring", "cstdlib", "cstdio", "ctime", "cwchar", "string", "algorithm", "random", "regex", "thread", "iostream", "mutex")) +
        '#include "microsoft.cpp"\n')
    for standard in ("c++11", "c++2b") if every else ("c++2b",) if c == "gcc" else ("c++11",):
        tap.case(f"{cxx} {standard}: likewise", copy.all(
            work, ["interlock", "c++", f"--compiler={cxx}", "-Wall", "-Wextra", "-Werror", f"-std={standard}", "all.cpp", "-o", "all"],
            ["./all"]))


def wide_main(tap, copy, c, cxx):
    work = copy.project()
    shutil.copy(work / "wide.c", work / "wide.cpp")
    unicode = ["-DUNICODE", "-D_UNICODE", "-Wall", "-Wextra", "-Werror"]
    for options in ([], ["-static"], ["-municode"], ["--private-library"]):
        for command, below, source in (("cc", c, "wide.c"), ("c++", cxx, "wide.cpp")):
            tap.case(f"{below} {' '.join(options)}: _tmain with UNICODE", copy.all(
                work, ["interlock", command, f"--compiler={below}", *options, *unicode, source, "-o", "wide"],
                ["./wide", "gr\u00fcn", "\U0001F600"]))


def arguments(tap, copy):
    output, problems = copy.run("interlock", "cc", "--compiler=no-such-compiler", "x.c")
    tap.case("a compiler that does not exist", [] if problems and "cannot run no-such-compiler" in output else [output])
    output, problems = copy.run("interlock", "cc", "--compiler=", "x.c")
    tap.case("an empty name of the compiler", [] if problems and "usage" in output else [output])
    output, problems = copy.run("interlock", "cc", "--interlock-help")
    tap.case("its own help", problems or ([] if "usage: interlock cc" in output else [output]))
    tap.case("an empty variable means the default", copy.run("interlock", "cc", "--version", INTERLOCK_CC=" ")[1])
    output, problems = copy.run("interlock", "cc", "--version", INTERLOCK_CC="env LC_ALL=C gcc")
    tap.case("a compiler of several words", problems or ([] if "gcc" in output else [output]))
    work = copy.project()
    many = [f"-DM{number}" for number in range(3000)]
    tap.case("thousands of options", copy.run("interlock", "cc", *many, "-fsyntax-only", "program.c", folder=work)[1])
    (work / "here").mkdir()
    output, problems = copy.run("interlock", "cc", "-shared", "counter.c", "-o", "counter.dll",
                                "-Wl,--out-implib,missing/libcounter.dll.a", folder=work)
    tap.case("an import library that cannot be written", [] if problems and "cannot write" in output else [output])


def private_library(tap, copy):
    """Another library that has names of Windows and its own handles, in one process."""
    work = copy.project()
    (work / "other.c").write_text(
        "static int count;\nvoid *CreateEventA(void *a, int b, int c, const char *d) { return &count; }\n"
        "int SetEvent(void *event) { return event == &count ? ++*(int *)event : -1; }\n"
        "int other_works(void) { void *event = CreateEventA(0, 0, 0, 0); return SetEvent(event) == 1; }\n")
    (work / "both.c").write_text(
        "#include <windows.h>\nint other_works(void);\nint main(void)\n{\n"
        "    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL);\n"
        "    return SetEvent(event) == TRUE && WaitForSingleObject(event, 0) == 0 && other_works() ? 0 : 1;\n}\n")
    build = [["gcc", "-shared", "-fPIC", "-w", "other.c", "-o", "libother.so"],
             ["interlock", "cc", "--private-library", "both.c", "-L.", "-lother", "-o", "both"]]
    tap.case("--private-library: beside a library that has the same names",
             copy.all(work, *build, ["env", f"LD_LIBRARY_PATH={work}", "./both"]))


def main():
    tap = Tap()
    _, build, command, prefix, libdir, lab = sys.argv[1:7]
    every = sys.argv[7:] == ["all"]
    command = Path(command).resolve()
    with tempfile.TemporaryDirectory() as directory:
        copy = Copy(directory, build, prefix, libdir)
        tap.case("meson install", copy.problems)
        arguments(tap, copy)
        for c, cxx in COMPILERS.items():
            one_compiler(tap, copy, c, cxx)
            formats(tap, copy, c, cxx, every)
            standard_headers(tap, copy, c, cxx, every)
            wide_main(tap, copy, c, cxx)
            longs(tap, copy, c, cxx)
            make(tap, copy, c, cxx)
            if every or c == "gcc":
                other_build_systems(tap, copy, c, cxx)
        private_library(tap, copy)
        work = copy.project()
        (work / "uses.c").write_text(USES)
        tap.case("from the build directory, without LD_LIBRARY_PATH", copy.all(
            work, [command, "cc", "uses.c", "-o", "uses"], ["env", "-u", "LD_LIBRARY_PATH", "./uses"]))
        if lab == "lab":
            (work / "test.c").write_text(
                "#include <interlock/lab.h>\n#include <windows.h>\nstatic LONG Count;\n"
                "static void Add(void) { InterlockedIncrement(&Count); }\n"
                "static void Check(void) { LabAssert(Count == 2); }\n"
                "LAB_SCENARIO(add, .Threads = {Add, Add}, .Finish = Check);\n")
            tap.case("interlock lab finds windows.h where it is installed", copy.run("interlock", "lab", "test.c", folder=work)[1])
    tap.done()


main()
