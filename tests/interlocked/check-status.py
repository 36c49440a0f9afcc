#!/usr/bin/env python3
"""Status and bugcheck codes against the headers of mingw-w64, an independent source, and against
the numbers in the published documentation for codes that those headers lack."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "checks"))
from tap import Tap

MINGW = Path("/usr/share/mingw-w64/include")
DEFINE = re.compile(r"^#define\s+(\w+)\s+\(\((?:NTSTATUS|DWORD|ULONG)\)\s*(0x[0-9A-Fa-f]+)L?\)", re.M)

DOCUMENTED = {
    "STATUS_ALREADY_COMPLETE": 0x000000FF,
    "STATUS_NO_WORK_DONE": 0x80000032,
    "STATUS_NOT_SAME_OBJECT": 0xC00001AC,
    "STATUS_OPERATION_IN_PROGRESS": 0xC0000476,
    "STATUS_REPARSE_POINT_ENCOUNTERED": 0xC000050B,
    "STATUS_ALREADY_INITIALIZED": 0xC0000510,
    "STATUS_INTERRUPTED": 0xC0000515,
    "STATUS_THREAD_NOT_RUNNING": 0xC0000516,
    "STATUS_CALLBACK_RETURNED_THREAD_AFFINITY": 0xC0000721,
    "DRIVER_VERIFIER_DETECTED_VIOLATION": 0xC4,
    "TIMER_OR_DPC_INVALID": 0xC7,
    "DRIVER_VERIFIER_IOMANAGER_VIOLATION": 0xC9,
    "RESOURCE_OWNER_POINTER_INVALID": 0x132,
    "DPC_WATCHDOG_VIOLATION": 0x133,
    "KERNEL_SECURITY_CHECK_FAILURE": 0x139,
    "INVALID_PUSH_LOCK_FLAGS": 0x152,
    "KERNEL_LOCK_ENTRY_LEAKED_ON_THREAD_TERMINATION": 0x153,
    "KERNEL_THREAD_PRIORITY_FLOOR_VIOLATION": 0x157,
    "KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE": 0x162,
    "INVALID_RUNDOWN_PROTECTION_FLAGS": 0x16C,
    "INVALID_SLOT_ALLOCATOR_FLAGS": 0x16D,
    "ERESOURCE_INVALID_RELEASE": 0x16E,
    "FAST_ERESOURCE_PRECONDITION_VIOLATION": 0x1C6,
    "KERNEL_AUTO_BOOST_LOCK_ACQUISITION_WITH_RAISED_IRQL": 0x192,
}
for i in range(64):
    DOCUMENTED[f"STATUS_WAIT_{i}"] = i
    DOCUMENTED[f"STATUS_ABANDONED_WAIT_{i}"] = 0x80 + i


def read(path):
    """{name: [values]} of the codes that a header defines."""
    found = {}
    for name, value in DEFINE.findall(path.read_text(encoding="utf-8", errors="replace")):
        found.setdefault(name, []).append(int(value, 16))
    return found


def compare(ours, theirs):
    """Problems of our codes, and how many of the codes the other headers have."""
    problems, compared = [], 0
    for name, values in ours.items():
        if len(values) != 1:
            problems.append(f"{name} is defined {len(values)} times")
        expected = [DOCUMENTED[name]] if name in DOCUMENTED else []
        if name in theirs:
            expected += theirs[name]
            compared += 1
        if theirs and not expected:
            problems.append(f"{name} is neither in mingw-w64 nor documented here")
        problems += [f"{name} is {values[0]:#x}, expected {e:#x}" for e in expected if e != values[0]]
    return problems, compared


def main():
    tap = Tap()
    include = Path(sys.argv[1]).resolve() / "include" / "interlock"
    for ours_name, theirs_name, at_least in (("ntstatus.h", "ntstatus.h", 300),
                                             ("bugcodes.h", "bugcodes.h", 40)):
        ours = read(include / ours_name)
        theirs = read(MINGW / theirs_name) if (MINGW / theirs_name).exists() else {}
        problems, compared = compare(ours, theirs)
        tap.case(f"{ours_name}: the numbers", problems)
        if theirs:
            tap.case(f"{ours_name}: {compared} of {len(ours)} codes are in mingw-w64",
                     [] if compared >= at_least else ["too few: the comparison is broken"])
        else:
            tap.note(f"no mingw-w64 headers here: {ours_name} compared with the documented numbers only")

        wrong = {name: [values[0] ^ 1] for name, values in ours.items()}
        tap.case(f"{ours_name}: self-test, wrong numbers are caught",
                 [] if len(compare(wrong, theirs)[0]) >= len(wrong) or not theirs else ["they are not"])

    text = (include / "bugcodes.h").read_text(encoding="utf-8")
    defined = list(read(include / "bugcodes.h"))
    body = text[text.index("#define INTERLOCK_BUGCODE_LIST"):text.index("#define INTERLOCK_VERIFIER_LIST")]
    listed = re.findall(r"\bX\((\w+),", body)
    tap.case(f"INTERLOCK_BUGCODE_LIST has the {len(defined)} codes in their order",
             [] if listed == defined else sorted(set(listed) ^ set(defined)) or ["the order differs"])
    tap.done()


main()
