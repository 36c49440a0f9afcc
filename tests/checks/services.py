#!/usr/bin/env python3
"""Every system service runs inside the service frame, so that its thread is not terminated half way through."""

import re
import sys
import tempfile
from pathlib import Path

from layering import code_only
from tap import Tap

# Services that hold nothing while they run: no reference, no lock but the dispatcher's, no memory.
NOTHING_TO_LOSE = {
    "NtWaitForAlertByThreadId": "only waits",
    "NtAlertThreadByThreadId": "one operation inside the dispatcher",
    "NtAlertMultipleThreadByThreadId": "the same, one after the other",
    "NtDelayExecution": "only waits",
    "ZwDelayExecution": "only waits",
    "NtYieldExecution": "only yields",
    "NtTestAlert": "user APCs run as outside a service",
    "NtSetInformationObject": "one compare-exchange",
    "NtGetCurrentProcessorNumber": "only reads",
    "NtGetCurrentProcessorNumberEx": "only reads",
    "NtCurrentTeb": "no service: reads and writes the thread's own block",
    "NtQuerySystemTime": "only reads the clock",
    "NtQueryTimerResolution": "only reads",
    "NtSetTimerResolution": "one exchange",
}
FRAME = re.compile(r"\b(?:NTP_SERVICE|NTP_SERVICE_UNTIL_RETURN|KiEnterService)\s*\(")
FUNCTION = re.compile(r"^(?:[A-Za-z_]\w*[ *]+)+([A-Za-z_]\w*)\([^;{}]*\)\n\{\n(.*?)^\}", re.S | re.M)
RETURNED = re.compile(r"\breturn\s+(\w+)\s*\(")
SERVICE = re.compile(r"^(?:Nt|Zw)[A-Z]\w*$")


def functions(root):
    """The body of every function in src, by name."""
    return {match.group(1): match.group(2) for path in sorted((root / "src").rglob("*.c"))
            for match in FUNCTION.finditer(code_only(path.read_text(encoding="utf-8")))}


def exported_services(root):
    names = re.findall(r"^\s*(\w+);", (root / "src" / "interlock.map").read_text(encoding="utf-8"), re.M)
    return [name for name in names if SERVICE.match(name)]


def framed(name, bodies):
    """Whether the function has the frame itself, or ends by returning what a function with the frame returns."""
    body = bodies.get(name, "")
    last = RETURNED.match(body, body.rfind("return "))
    return bool(FRAME.search(body)) or (last is not None and last.group(1) != name and framed(last.group(1), bodies))


def delegates(name, bodies):
    """Whether the function is another name for one that needs no frame."""
    called = set(re.findall(r"\b((?:Nt|Zw)[A-Z]\w*)\s*\(", bodies[name]))
    return bool(called) and called <= set(NOTHING_TO_LOSE)


def problems_of(root):
    bodies = functions(root)
    services = exported_services(root)
    yield from (f"{name} is exported, and not found in src" for name in services if name not in bodies)
    yield from (f"{name} does not enter the service frame (NTP_SERVICE)" for name in services
                if name in bodies and name not in NOTHING_TO_LOSE and not framed(name, bodies)
                and not delegates(name, bodies))
    yield from (f"{name} is exempt, but has the frame" for name in services
                if name in NOTHING_TO_LOSE and framed(name, bodies))


CLEAN = {
    "src/interlock.map": "INTERLOCK {\n    NtA;\n    NtB;\n    ZwB;\n    NtTestAlert;\n    RtlC;\n};\n",
    "src/nt/a.c": "NTSTATUS NtA(HANDLE Handle)\n{\n    return NTP_SERVICE(NtpA(Handle));\n}\n\n"
                  "NTSTATUS NtTestAlert(VOID)\n{\n    return KeTestAlertThread(UserMode);\n}\n",
    "src/nt/b.c": "static NTSTATUS NtpB(HANDLE Handle,\n                     ULONG Mode)\n{\n    KiEnterService(Thread);\n"
                  "    return Status;\n}\n\nNTSTATUS NtB(HANDLE Handle)\n{\n    if (Handle == NULL) {\n        return Bad();\n"
                  "    }\n    return NtpB(Handle, UserMode);\n}\n\nNTSTATUS ZwB(HANDLE Handle)\n{\n    return NtB(Handle);\n}\n",
}
PLANTED = {
    "a service without the frame": ("src/nt/a.c", "NTSTATUS NtA(HANDLE Handle)\n{\n    return NtpA(Handle);\n}\n"),
    "a service that only its error path frames":
        ("src/nt/a.c", "NTSTATUS NtA(HANDLE Handle)\n{\n    if (!Handle) {\n        return NtB(Handle);\n    }\n"
                       "    return NtpA(Handle);\n}\n"),
    "a frame in a comment":
        ("src/nt/a.c", "NTSTATUS NtA(HANDLE Handle)\n{\n    /* NTP_SERVICE( */\n    return NtpA(Handle);\n}\n"),
    "a service that is nowhere": ("src/nt/a.c", "\n"),
    "an exemption that is not needed any more":
        ("src/nt/c.c", "NTSTATUS NtTestAlert(VOID)\n{\n    return NTP_SERVICE(NtpTest());\n}\n"),
}


def self_test(tap):
    with tempfile.TemporaryDirectory() as directory:
        for what, (name, text) in {"": ("src/nt/d.c", "\n"), **PLANTED}.items():
            root = Path(directory) / (what or "clean").replace(" ", "-")
            for file, content in {**CLEAN, name: text}.items():
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(content, encoding="utf-8")
            found = list(problems_of(root))
            tap.case(f"self-test: {what} is caught" if what else "self-test: a clean tree passes",
                     ([] if found else ["nothing was reported"]) if what else found)


def main():
    tap = Tap()
    root = Path(sys.argv[1]).resolve()
    self_test(tap)
    tap.note(f"{len(exported_services(root))} services")
    tap.case("every service has the frame", problems_of(root))
    tap.done()


main()
