#!/usr/bin/env python3
"""The rules of docs/architecture.md about layers.

1. A file includes headers of its own layer and lower ones.
2. Only src/hal knows the host.
3. Tracing is reached through its hooks, trace/trace.h, alone.
4. User mode (rtl, win32) reaches objects through nt: it uses no private name of ob, ps or io but the DOORS.
5. Above hal only ke/park.h spins, yields, naps and sleeps in the host. A few files of PARKS await an event from outside the process.
6. Only ke/ownthread.c starts threads of the library's own, and ps those of the program.
7. A member of KTHREAD, KPROCESS and KPRCB is used by ke. Other layers have a room in the thread's slot for theirs (KI_THREAD_ROOM)."""

import re
import sys
import tempfile
from pathlib import Path

from tap import Tap

LAYERS = [["hal"], ["ke", "trace"], ["ex"], ["wo"], ["ob", "ps", "io"], ["nt"], ["rtl"], ["win32"]]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
BELOW_ALL = -1
USER_MODE = {"rtl", "win32"}
PRIVATE_OF_OBJECTS = re.compile(r"\b(?:Obp|Psp|Iop)[A-Z]\w*")
# Private names of ob, ps and io that user mode uses, each with its reason.
DOORS = {
    "PspSetThreadStart": "a callback that ps makes when a thread begins: DllMain and TLS callbacks",
    "PspNotifyThreadStart": "the threads of the pool begin too",
    "PspRegisterThreadExit": "a callback that ps makes when a thread ends: storage and the pool clean up",
    "ObpWaitObject": "the pool waits for an object by reference, without a handle",
    "ObpDispatcherObject": "likewise",
    "IopDescriptorType": "likewise, for a descriptor of the host",
    "IopBindDescriptor": "a callback of the pool that is bound to a descriptor until its handle is closed",
    "IopIsDescriptorLost": "likewise",
    "ObpThreadType": "orphaned critical sections: a thread's id by its handle, whatever the handle may do",
    "ObpHeaderOf": "wait chains read threads, locks and names as a debugger does",
    "ObpQueryPath": "likewise",
    "ObpQueryPathOfShared": "likewise",
}
PARKING = re.compile(r"\b(HalPause|HalPauseFor|HalGiveWay|HalDispatch\s*\.\s*(?:Wait|Yield)|HalWaitShared|HalYieldToOther|"
                     r"HalClockWait|HalAwait\w+)\s*\(")
# Files that may: the parking layer, and those that wait for no other thread: a stall, the clock, NtYieldExecution, threads that
# await the close of a descriptor, another process, a console event, a shortage of memory.
PARKS = {"src/ke/park.h": PARKING, "src/ke/park.c": PARKING, "src/ke/timer.c": re.compile(r"HalPause\b|HalClockWait\b"),
         "src/nt/wait.c": re.compile(r"HalYieldToOther\b"), "src/io/descriptor.c": re.compile(r"HalAwaitKeeperLoss\b"),
         "src/ps/process.c": re.compile(r"HalAwaitProcess\b"), "src/wo/session.c": re.compile(r"HalAwaitBirth\b"),
         "src/win32/program.c": re.compile(r"HalAwaitConsoleEvent\b"),
         "src/win32/system.c": re.compile(r"HalAwaitMemoryPressure\b")}
STARTING = re.compile(r"\bHalCreateThread\s*\(")
STARTS = {"src/ke/ownthread.c", "src/ps/thread.c"}
OF_KE = re.compile(r"struct _(KTHREAD|KPROCESS|KPRCB) \{(.*?)^\}", re.M | re.S)
MEMBER = re.compile(r"(\w+)(?:\[\w+\])?(?:\s+DECLSPEC_ALIGN\(\w+\))?\s*$")
# Members for debuggers that only pushlocks write, beside those of ke that they complete.
OF_PUSHLOCKS = {"AutoBoostCount", "LockOwned"}
HOOKS = "trace.h"
CALL_OF_TRACE = re.compile(r"\bTracep?[A-Z]\w*\s*\(")
# The public headers below every layer, and one more of a layer. Another one without the name of a layer is a part of the
# header that includes it.
BASE = {"annotations.h", "bugcodes.h", "exception.h", "interlocked.h", "linkage.h", "ntdef.h", "ntstatus.h",
        "safe.h", "widestring.h", "windef.h"}
MORE = {"verifier.h": "ke", "dbg.h": "ex"}

# What a file outside src/hal may use of the compiler and the C library: none of it depends
# on the host's kernel.
PORTABLE = {
    "ctype.h", "inttypes.h", "limits.h", "setjmp.h", "stdalign.h", "stdarg.h", "stdatomic.h",
    "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "stdnoreturn.h", "string.h",
}
# What a public header may also need, to give functions of the C library other names.
FOR_DIALECTS = {"cwchar", "strings.h", "time.h", "wchar.h"}
HOST_CALL = re.compile(
    r"\b(syscall|futex|pthread_\w+|sem_\w+|sig(?:action|procmask|queue|altstack)|tgkill|nanosleep|"
    r"clock_\w+|usleep|sched_\w+|mmap|munmap|mprotect|membarrier|gettid|getcpu|backtrace\w*)\s*\("
)
# Assembly without operands (a pause) touches no variable and is fine everywhere.
INLINE_SECTION = "include/interlock/interlocked.h"  # the section of hal/section.h, inline in programs
ASSEMBLY = re.compile(
    r"\b(?:asm|__asm|__asm__)\b(?!\s*(?:volatile|__volatile__)?\s*\(\s*\"\"\s*(?:::: *\"\"\s*)?\))"
)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
INCLUDE_BY_MACRO = re.compile(r"^\s*#\s*include\s+[A-Za-z_]", re.M)


def code_only(text):
    """The text without comments and without the contents of literals, line numbers kept."""
    def blank(match):
        token = match.group(0)
        if token.startswith(("'", '"')):
            return token[0] + token[0]
        return "\n" * token.count("\n") or " "

    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text,
                  flags=re.S)


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)


def public_rank(root, name):
    """The layer of a public header; None if it belongs to no layer."""
    header = Path(name).name
    if Path(name).parent.name in RANK:
        return RANK[Path(name).parent.name]
    if header in BASE:
        return BELOW_ALL
    if Path(header).stem in RANK:
        return RANK[Path(header).stem]
    if header in MORE:
        return RANK[MORE[header]]
    return min((RANK[layer] for layer in RANK
                for whole in [root / "include" / "interlock" / f"{layer}.h"] if whole.exists()
                and header in {Path(n).name for _, n in INCLUDE.findall(whole.read_text("utf-8"))}),
               default=None)


def is_above(target, rank):
    """Reports an unknown layer at its header, not where it is included."""
    return target is not None and target > rank


def check_file(root, path):
    """The violations in one file of src/<layer> or include/interlock."""
    relative = path.relative_to(root)
    public = relative.parts[0] == "include"
    layer = "public" if public else relative.parts[1]
    rank = public_rank(root, str(relative)) if public else RANK[layer]
    if rank is None:
        yield f"{relative}: it has not the name of a layer, and no layer's header includes it"
        return
    text = path.read_text(encoding="utf-8")
    includes = without_comments(text)
    code = code_only(text)

    def at(source, match):
        return f"{relative}:{source.count(chr(10), 0, match.start(0)) + 1}"

    for match in INCLUDE_BY_MACRO.finditer(includes):
        yield f"{at(includes, match)}: the name of an included file must be written out"

    for match in INCLUDE.finditer(includes):
        place = at(includes, match)
        kind, name = match.groups()
        if name.startswith("interlock/"):
            if not (root / "include" / name).exists():
                yield f"{place}: there is no public header {name}"
            elif is_above(public_rank(root, name), rank):
                yield f"{place}: {name} belongs to a higher layer than {layer}"
        elif kind == '"':
            places = [path.parent / name, root / "src" / name]
            target = next((p.resolve() for p in places if p.exists()), None)
            if target is None:
                yield f"{place}: \"{name}\" is not a file of this project"
                continue
            parts = target.relative_to(root).parts
            if parts[0] == "include":
                target_rank = public_rank(root, name)
            else:
                target_rank = RANK[parts[1]]
                if public:
                    yield f"{place}: a public header includes the internal {name}"
                    continue
            if is_above(target_rank, rank):
                yield f"{place}: \"{name}\" belongs to a higher layer than {layer}"
            if parts[1] == "trace" and layer != "trace" and parts[-1] != HOOKS:
                yield f"{place}: of src/trace only {HOOKS} is for others"
        elif layer != "hal" and name not in (PORTABLE | FOR_DIALECTS if public else PORTABLE):
            yield f"{place}: only src/hal may include <{name}>"

    if layer in USER_MODE:
        for match in PRIVATE_OF_OBJECTS.finditer(code):
            if match.group(0) not in DOORS:
                yield f"{at(code, match)}: {match.group(0)} is private to ob, ps or io: user mode goes through nt"
    if layer != "trace" and not public:
        for match in CALL_OF_TRACE.finditer(code):
            yield f"{at(code, match)}: {match.group(0).rstrip('( ')} is called other than by a KTRACE_ hook"
    if layer != "hal":
        for match in HOST_CALL.finditer(code):
            yield f"{at(code, match)}: only src/hal calls the host: {match.group(1)}()"
        for match in PARKING.finditer(code):
            if not (allowed := PARKS.get(str(relative))) or not allowed.match(match.group(0)):
                yield f"{at(code, match)}: threads wait through ke/park.h, not by {match.group(1)}()"
        for match in STARTING.finditer(code):
            if str(relative) not in STARTS:
                yield f"{at(code, match)}: threads of the library are started by ke/ownthread.c"
        for match in ASSEMBLY.finditer(code) if str(relative) != INLINE_SECTION else ():
            yield f"{at(code, match)}: only src/hal may have assembly with operands"


def unused_doors(root):
    """Doors that the code does not use: their lines of DOORS are to be deleted."""
    used = {name for layer in USER_MODE for path in sorted((root / "src" / layer).rglob("*.[ch]"))
            for name in PRIVATE_OF_OBJECTS.findall(code_only(path.read_text(encoding="utf-8")))}
    return sorted(set(DOORS) - used)


def foreign_members(root):
    """Members of ke's structures that no function of ke uses."""
    texts = {path: code_only(path.read_text(encoding="utf-8")) for path in sorted((root / "src" / "ke").rglob("*.[ch]"))}
    used = {name for text in texts.values() for name in re.findall(r"(?:->|\.)\s*(\w+)", text)}
    for path, text in texts.items():
        for structure in OF_KE.finditer(text):
            members = [found[1] for line in structure[2].split(";") if (found := MEMBER.search(line.strip()))]
            yield from (f"{path.relative_to(root)}: ke does not use {structure[1]}.{name}"
                        for name in members if name not in used | OF_PUSHLOCKS)


def check_tree(root):
    """Violations for each folder that holds code: {folder: [violation, ...]}."""
    root = root.resolve()
    result = {}
    for folder in sorted(p for p in (root / "src").iterdir() if p.is_dir()):
        name = f"src/{folder.name}"
        if folder.name not in RANK:
            result[name] = [f"{name} is not one of the layers"]
            continue
        files = sorted(p for p in folder.rglob("*") if p.suffix in (".c", ".h"))
        if files:
            result[name] = [v for path in files for v in check_file(root, path)]
            if folder.name == "ke":
                result[name] += foreign_members(root)
    for path in sorted((root / "include" / "interlock").rglob("*.h")):
        result[str(path.relative_to(root))] = list(check_file(root, path))
    return result


CLEAN = {
    "include/interlock/ntdef.h": "#include <stddef.h>\n",
    "include/interlock/ke.h": "#include <interlock/ntdef.h>\n",
    "include/interlock/ex.h": "#include <interlock/ke.h>\n#include <interlock/part.h>\n",
    "include/interlock/part.h": "#include <interlock/ke.h>\n",
    "include/interlock/win32/base.h": "#include <interlock/ex.h>\n#include <wchar.h>\n",
    "src/hal/hal.h": "#include <interlock/ntdef.h>\n",
    "src/hal/wait.c": "#include \"hal.h\"\n#include <linux/futex.h>\nvoid f(void) { syscall(1); }\n",
    "src/ke/ki.h": "#include \"../hal/hal.h\"\n#include <interlock/ke.h>\n"
                   "typedef struct _KTHREAD {\n    ULONG Own;\n    ULONG LockOwned[2];\n} KTHREAD;\n"
                   "void g(KTHREAD *t) { t->Own = 1; }\n",
    "src/ke/a.c": "#include \"ki.h\"\n/* syscall( */ const char *s = \"pthread_self()\";\n"
                  "void f(void) { __asm__ volatile(\"yield\" ::: \"memory\"); __asm__(\"nop\"); }\n",
    "src/ob/obp.h": "",
    "src/trace/trace.h": "#include \"../ke/ki.h\"\n#define KTRACE_X() TraceX()\n",
    "src/trace/tracep.h": "#include \"trace.h\"\nvoid f(void) { TracepX(); }\n",
    "src/ke/t.c": "#include \"../trace/trace.h\"\n",
    "src/rtl/a.c": "#include \"ob/obp.h\"\nvoid f(void) { ObpWaitObject(1); ObDereferenceObject(1); }\n",
    "src/ps/a.c": "#include \"ob/obp.h\"\n#include \"ke/ki.h\"\n",
}
PLANTED = {
    "a spin beside the parking layer": ("src/ex/spin.c", "void f(void) { HalPause(); }\n"),
    "a sleep beside the parking layer": ("src/ke/timer.c", "void f(void) { HalDispatch.Wait(a, 1, d); }\n"),
    "a yield beside the parking layer": ("src/ex/yield.c", "void f(void) { HalDispatch.Yield(); }\n"),
    "a sleep on a shared word beside the parking layer": ("src/wo/lock.c", "void f(void) { HalWaitShared(a, 1, d); }\n"),
    "an event of the host that is awaited elsewhere": ("src/ex/wait.c", "void f(void) { HalAwaitProcess(1); }\n"),
    "a thread that is started beside ownthread.c": ("src/io/descriptor.c", "void f(void) { HalCreateThread(a, b, 0, c); }\n"),
    "an internal header of a higher layer": ("src/ke/b.c", "#include \"ob/obp.h\"\n"),
    "a public header of a higher layer": ("src/hal/b.c", "#include <interlock/ke.h>\n"),
    "a public header that includes a higher one":
        ("include/interlock/ke.h", "#include <interlock/ex.h>\n"),
    "a public header that includes an internal one":
        ("include/interlock/ke.h", "#include \"../../src/ke/ki.h\"\n"),
    "a kernel header outside hal": ("src/ke/b.c", "#include <linux/futex.h>\n"),
    "a POSIX header outside hal": ("src/ex/b.c", "#include <pthread.h>\n"),
    "a clock header outside hal": ("src/ps/b.c", "# include <time.h>\n"),
    "a system call outside hal": ("src/ke/b.c", "long f(void) { return syscall (1); }\n"),
    "a thread call outside hal": ("src/ke/b.c", "void f(void) { pthread_self(); }\n"),
    "assembly outside hal": ("src/ke/b.c", "void f(int *x) { __asm__(\"incl %0\" : \"+m\"(*x)); }\n"),
    "a header that does not exist": ("src/ke/b.c", "#include \"nothing.h\"\n"),
    "a part of a header of a higher layer": ("src/ke/b.c", "#include <interlock/part.h>\n"),
    "a public header in the folder of a higher layer":
        ("src/ex/b.c", "#include <interlock/win32/base.h>\n"),
    "a POSIX header in a public header":
        ("include/interlock/win32/base.h", "#include <pthread.h>\n"),
    "a wide header outside public headers": ("src/ex/b.c", "#include <wchar.h>\n"),
    "a public header of no layer": ("include/interlock/misc.h", "\n"),
    "a folder that is no layer": ("src/misc/b.c", "\n"),
    "a private header of tracing": ("src/ke/b.c", "#include \"../trace/tracep.h\"\n"),
    "a call of tracing without a hook": ("src/ke/b.c", "void f(void) { TraceX(); }\n"),
    "a private function of the object manager in user mode": ("src/rtl/b.c", "void f(void) { ObpCreateObject(); }\n"),
    "a private function of ps in user mode": ("src/win32/b.c", "void f(void) { PspExitThread(); }\n"),
    "a member of KTHREAD that belongs to a higher layer":
        ("src/ke/c.h", "typedef struct _KTHREAD {\n    ULONG Borrowed DECLSPEC_ALIGN(64); /* ->Borrowed */\n} KTHREAD;\n"),
    "a member of KPROCESS that belongs to a higher layer":
        ("src/ke/c.h", "typedef struct _KPROCESS {\n    ULONG Class;\n} KPROCESS;\n"),
    "a file name hidden in a macro": ("src/ke/b.c", "#include HEADER\n"),
}


def write_tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def self_test(tap):
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "clean"
        write_tree(root, CLEAN)
        tap.case("self-test: a clean tree passes", [v for vs in check_tree(root).values() for v in vs])
        for number, (what, (name, text)) in enumerate(PLANTED.items()):
            root = Path(directory) / str(number)
            write_tree(root, {**CLEAN, name: text})
            found = [v for vs in check_tree(root).values() for v in vs]
            tap.case(f"self-test: {what} is caught", [] if found else ["nothing was reported"])


def main():
    tap = Tap()
    self_test(tap)
    for folder, violations in check_tree(Path(sys.argv[1])).items():
        tap.case(folder, violations)
    for name in unused_doors(Path(sys.argv[1])):
        tap.note(f"{name} is not used: its line in DOORS can go")
    tap.done()


if __name__ == "__main__":
    main()
