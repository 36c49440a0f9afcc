#!/usr/bin/env python3
"""`interlock lab` with programs that were not written for it: main, functions, several files, C++, GoogleTest, cmocka."""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

program, root = sys.argv[1], Path(sys.argv[2])
here, examples = root / "lab" / "self" / "programs", root / "examples" / "lab"
results = []


def lab(*words, **options):
    result = subprocess.run([program, "lab", *map(str, words)], capture_output=True, text=True, timeout=120, **options)
    return result.returncode, result.stdout + result.stderr


def check(good, text, said=""):
    results.append((good, text))
    if not good:
        print("\n".join(f"# {line}" for line in said.splitlines()))


def compiles(header):
    """Whether the C++ compiler finds a header."""
    return subprocess.run([os.environ.get("CXX", "g++").split()[-1], "-fsyntax-only", "-x", "c++", "-"], text=True,
                          input=f"#include <{header}>\n", capture_output=True).returncode == 0


def mains(folder):
    page = folder / "trace.html"
    code, said = lab("--html", page, examples / "mailbox.c")
    check(code == 1 and re.search(r"assertion in thread a: mailbox.count != 0 \(mailbox.c:\d+\)\n +at mailbox.c:\d+ receive"
                                  r"\n +mailbox.c:\d+ main", said) is not None, "main: an assertion with its stack", said)
    check("pthread_cond_wait(mailbox.arrived)" in said and "spurious wakeup" in said, "calls by name, variables by member", said)
    numbers = [int(n) for n in re.findall(r"^ +(\d+)  ", said, re.M)]
    check(numbers == list(range(1, len(numbers) + 1)) and numbers, "steps are numbered without gaps", said)
    token = re.search(r"replay: (\S+)", said)
    code, again = lab("--replay", token.group(1) if token else "none", examples / "mailbox.c")
    check(code == 1 and re.findall(r"^ +\d+  .*$", again, re.M) == re.findall(r"^ +\d+  .*$", said, re.M),
          "a token replays main", again)
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    check(text.startswith("<!DOCTYPE html>") and "prefers-color-scheme" in text and text.count("<tr") > len(numbers)
          and "http" not in text and "mailbox.arrived" in text, "--html writes a page without anything from elsewhere", text[:300])
    code, said = lab(examples / "mailbox.c", "--", "-DLOOP")
    check(code == 0 and "exhaustive" in said and "received" not in said, "options of the compiler; the program prints nothing", said)


def races():
    code, said = lab(here / "heap.c")
    frames = r"heap.c:\d+ link_to_itself\n +heap.c:\d+ (first|second)\n"
    found = re.search(rf" +at {frames} +thread [bc] before, at {frames}", said)
    check(code == 1 and found is not None and found.group(1) != found.group(2), "a race has both stacks", said)
    check(re.search(r"on heap block \d+\+0x8 \(of the 24 bytes that heap.c:\d+ make_node allocated\)", said) is not None,
          "a variable on the heap has the place of its allocation", said)


def killed_compilation(folder):
    """The compiler hangs; the command is killed, then the compiler."""
    compiler = folder / "slow-compiler"
    compiler.write_text("#!/bin/sh\necho $$ > \"$STARTED\"\nexec sleep 60\n")
    compiler.chmod(0o755)
    started = folder / "started"
    before = set(Path("/tmp").glob("interlock-lab-*"))
    running = subprocess.Popen([program, "lab", examples / "mailbox.c"], env={**os.environ, "CC": str(compiler),
                                                                              "STARTED": str(started)})
    while not started.exists() or not started.read_text().strip():
        time.sleep(0.01)
    during = set(Path("/tmp").glob("interlock-lab-*")) - before
    running.send_signal(signal.SIGKILL)
    running.wait()
    os.kill(int(started.read_text()), signal.SIGKILL)
    for _ in range(1000):
        if not [path for path in during if path.exists()]:
            break
        time.sleep(0.01)
    check(during and not [path for path in during if path.exists()], "a compilation that is killed leaves nothing in /tmp",
          str(during))


def several_files():
    files = (here / "first.c", here / "second.c")
    code, said = lab(*files, "--", "-O2")
    check(code == 0 and "exhaustive" in said, "two files", said)
    code, said = lab("--argument", "crossed", *files)
    check(code == 1 and re.search(r"b waits for the mutex bank.accounts\[1\].lock, owned by c, at first.c:\d+ transfer\n"
                                  r" +c waits for the mutex bank.accounts\[0\].lock, owned by b", said) is not None,
          "an argument of main; a deadlock names the owners", said)
    code, said = lab("--function", "one_way", *files)
    check(code == 0 and "one_way" in said and "exhaustive" in said, "--function", said)
    code, said = lab("--function", "another_way", *files)
    check(code == 2 and "another_way" in said, "a missing function is named", said)
    code, said = lab("--calls", "--seconds", "1", examples / "philosophers.c")
    part = said.split("replay:")[0]
    check("KeWaitForSingleObject" in part and " cas " not in part and " load " not in part, "--calls folds what a call does", said)


def cxx():
    code, said = lab(examples / "cache.cpp", "--", "-std=c++17")
    check(code == 1 and "exit status in thread a: the program ends with status 1" in said and "_Z" not in said,
          "C++: the exit status is the verdict, names are demangled", said)
    if compiles("gtest/gtest.h"):
        code, said = lab(here / "tests.cpp", "--", "-std=c++17", "-lgtest", "-lgtest_main")
        check(code == 1 and re.search(r"Counter.Locked:\s+exhaustive", said) and re.search(r"Counter.Racing:\s+race", said)
              and re.search(r"Torn.Update:\s+exit status", said) is not None, "GoogleTest: each case is a scenario", said)
        code, said = lab("--list", here / "tests.cpp", "--", "-std=c++17", "-lgtest", "-lgtest_main")
        check(code == 0 and said.split() == ["Counter.Locked", "Counter.Racing", "Torn.Update"], "GoogleTest: --list", said)


def cmocka():
    code, said = lab(here / "cases.c", "--", "-lcmocka")
    check(code == 1 and re.search(r"whole_update:\s+exhaustive", said) and re.search(r"torn_update:\s+crash", said)
          and "0x1 != 0x2" in said, "cmocka: each case is a scenario, with its message", said)
    code, said = lab("whole*", here / "cases.c", "--", "-lcmocka")
    check(code == 0 and "torn_update" not in said, "cmocka: one case is chosen", said)


def system_calls():
    """System calls inside the C library are watched, too. Without the kernel's dispatch only the functions of lab/posix are watched."""
    names = {1: r"popen \(clone3?\)", 2: r"(\w*system \()?clone3?\)?", 3: r"eventfd_read \(read of something that is not a regular file\)",
             4: r"write \(write to something that is not a regular file\)", 5: "pause"}
    for part, name in names.items():
        code, said = lab(here / "syscalls.c", "--", f"-DPART={part}")
        check(code == 1 and re.search(rf"unsupported in thread [ab]: {name}: the explorer has no model of it\n +at syscalls.c:\d+ work",
                                      said) is not None, f"a system call without a model is named, with its place ({part})", said)
    for part in (6, 7):
        code, said = lab(here / "syscalls.c", "--", f"-DPART={part}")
        check(code == 0 and "exhaustive" in said, f"system calls that cannot block ({part})", said)


def openmp(folder):
    """Its runtime is a shared library that makes its threads and waits for them outside of the explorer."""
    source = folder / "openmp.c"
    source.write_text("int main(void)\n{\n    int sum = 0;\n#pragma omp parallel for num_threads(2) reduction(+ : sum)\n"
                      "    for (int i = 0; i < 4; i++)\n        sum += i;\n    return sum != 6;\n}\n")
    code, said = lab(source, "--", "-fopenmp")
    check(code == 1 and re.search(r"unsupported in thread a: GOMP_parallel \(\w+\): the explorer has no model of it", said)
          is not None, "OpenMP is named as unsupported", said)


def every_name(folder):
    """What links with the library links with the explorer; a call that needs the host ends the run."""
    names = re.findall(r"^    (\w+);$", (root / "src" / "interlock.map").read_text(encoding="utf-8"), re.M)
    source = folder / "everyname.c"
    source.write_text("".join(f"extern char {name}[];\n" for name in names) + "const void *const all[] = {"
                      + ", ".join(names) + "};\nint main(void)\n{\n    return 0;\n}\n")
    code, said = lab(source)
    check(code == 0 and len(names) > 1000, "every exported name can be linked", said)
    source = folder / "hostonly.c"
    source.write_text("#include <ntddk.h>\n#include <interlock/verifier.h>\nint main(void)\n{\n    VfMarkPool(0);\n    return 0;\n}\n")
    code, said = lab(source)
    check(code == 1 and "unsupported in thread a: VfMarkPool: the explorer has no model of it" in said,
          "a function that needs the host is named as unsupported", said)


def has_dispatch():
    """Linux 5.11, x86-64: prctl PR_SET_SYSCALL_USER_DISPATCH, which is off already, is turned off."""
    return ctypes.CDLL(None).prctl(59, 0, 0, 0, 0) == 0


def mistakes(folder):
    (folder / "nothing.c").write_text("int nothing;\n")
    for words, culprit in ((("--sconds", "1"), "--sconds"), (("--seconds", "x"), "x"), (("no_such",), "no_such"),
                           (("--model", "c12"), "c12"), (("--strategy", "luck"), "luck"), (("--jobs",), "--jobs")):
        code, said = lab(*words, examples / "account.c")
        check(code == 2 and culprit in said and len(said.splitlines()) == 1, f"{' '.join(words)} is named", said)
    code, said = lab(folder / "nothing.c")
    check(code == 2 and "LAB_SCENARIO(" in said, "a file without a scenario says how to write one", said)
    (folder / "undefined.c").write_text("int not_here(void);\nint main(void) { return not_here(); }\n")
    code, said = lab(folder / "undefined.c")
    check(code != 0 and "not_here" in said and "FAILED" not in said, "an undefined function is the linker's error, not a crash", said)
    code, said = lab("absent.c")
    check(code == 2 and "absent.c" in said, "a missing file is named", said)
    order = [line.rstrip() for line in lab("--list", root / "lab" / "self" / "graphs.c")[1].splitlines()]
    text = (root / "lab" / "self" / "graphs.c").read_text(encoding="utf-8")
    places = [text.index(name) for name in order if name in text]
    check(len(order) > 5 and order[0] == "word", "scenarios are in the order of the file", " ".join(order) + str(places))


def end(process):
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has noticed that its parent is gone


def long_searches(folder):
    source = folder / "long.c"
    source.write_text("#include <pthread.h>\n#include <stdatomic.h>\nstatic atomic_int a, b;\n"
                      "static void *run(void *u) { for (int i = 0; i < 2; i++) { a++; b++; } return u; }\n"
                      "int main(void) { pthread_t t[3]; for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, run, 0);\n"
                      "for (int i = 0; i < 3; i++) pthread_join(t[i], 0); return 0; }\n")
    whole = re.search(r"exhaustive, (\d+) schedules", lab("--strategy", "dpor", "--seconds", "60", source)[1])
    said, parts = "", 0
    while parts < 50 and "exhaustive, " not in said.replace("NOT exhaustive", ""):
        said, parts = lab("--checkpoint", folder / "tree", "--schedules", str(1000 * (parts + 1)), source)[1], parts + 1
    in_parts = re.search(r"exhaustive, (\d+) schedules", said)
    check(whole and in_parts and whole.group(1) == in_parts.group(1) and parts > 1,
          "a search in parts has as many schedules as one in one go", said)
    check(not list(folder.glob("tree*")), "and leaves no file when it is complete")
    before = set(Path("/tmp").glob("interlock-lab-*"))
    running = subprocess.Popen([program, "lab", "--seconds", "60", examples / "philosophers.c"], stdout=subprocess.PIPE, text=True)
    running.stdout.readline()
    time.sleep(0.1)
    left = set(Path("/tmp").glob("interlock-lab-*")) - before
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(running.pid)], capture_output=True, text=True).stdout.split()
    running.send_signal(signal.SIGKILL)
    running.wait()
    for child in children:
        for worker in subprocess.run(["ps", "-o", "pid=", "--ppid", child], capture_output=True, text=True).stdout.split():
            end(int(worker))
        end(int(child))
    check(not left, "a run that is killed leaves nothing in /tmp", str(left))


with tempfile.TemporaryDirectory() as name:
    mains(Path(name))
    races()
    killed_compilation(Path(name))
    several_files()
    if shutil.which(os.environ.get("CXX", "g++").split()[-1]):
        cxx()
    cmocka()
    if has_dispatch():
        system_calls()
        openmp(Path(name))
    every_name(Path(name))
    mistakes(Path(name))
    long_searches(Path(name))
for number, (good, text) in enumerate(results, 1):
    print(f"{'ok' if good else 'not ok'} {number} - {text}")
print(f"1..{len(results)}")
