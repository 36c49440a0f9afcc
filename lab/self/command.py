#!/usr/bin/env python3
"""The command `interlock lab`: it compiles a test, finds its bug, and a token replays exactly that."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

# The expected result of each example: the last line of each scenario.
EXAMPLES = {
    "account.c": {"account": "assertion"},
    "cancel.c": {"cancel_lost": "deadlock", "cancel_noticed": None, "completed_twice": "race", "completed_once": None},
    "philosophers.c": {"philosophers": "deadlock", "left_handed": None},
    "publish.c": {"publish_relaxed": "assertion", "publish_release": None},
}
# Which thread holds what the first thread of lab/self/graphs.c waits for, as the report of a deadlock says.
GRAPHS = {
    "word": r"a sleeps on word\[1\] .*\n +b changed it last at .*: 0 -> 0x1",
    "mutant": r"a sleeps .*: waits for mutant\[1\] \(SignalState 0\), owned by b\n",
    "event": r"a sleeps .*: waits for event\[1\] \(SignalState 0\)\n +no other thread has changed it",
    "cleared": r"a sleeps .*: waits for event\[1\] .*\n +b, which has ended, changed it last at graphs.c:\d+ "
               r".* Ke(Clear|Reset)Event",
    "thread": r"a sleeps .*: waits for b.Header \(SignalState 0\), the end of b\n",
    "fastmutex": r"a sleeps .*: waits for the mutex fastmutex\[1\]\S*, owned by b\n",
    "guarded": r"a sleeps .*: waits for the mutex guarded\[1\]\S*, owned by b\n",
    "resource": r"a sleeps .*: waits for the resource resource\[1\]\S*, owned by b\n",
    "pushlock": r"a sleeps .*: waits for the pushlock pushlock\[1\]\S*\n +b changed it last at graphs.c:\d+ .*: 0 -> 0x1",
    "srwlock": r"a sleeps .*: waits for srwlock\[1\]\n +b changed it last at .*: 0 -> 0x1",
    "section": r"a sleeps .*: waits for the critical section section\[1\]\S*, owned by b\n",
    "spinlock": r"looks at spinlock\[1\]\n +b changed it last at graphs.c:\d+ .*: 0 -> 0x1",
}
OPTIONS = {"publish.c": ["--model", "c11"], "philosophers.c": ["--seconds", "1"]}


def lab(program, *arguments, typed=None):
    result = subprocess.run([program, "lab", *arguments], capture_output=True, text=True, input=typed)
    return result.returncode, result.stdout + result.stderr


def trace(output):
    """The steps of a trace: what a replay must repeat."""
    return re.findall(r"^ +\d+ .*$", output, re.M)


def sections(output):
    """{scenario: its part of the output}"""
    parts = re.split(r"^(\w+):", output, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def graphs(program, root):
    """What the reports of deadlocks say."""
    found = sections(lab(program, "--schedules", "2000", str(root / "lab" / "self" / "graphs.c"))[1])
    for scenario, pattern in GRAPHS.items():
        verdict = "livelock" if scenario == "spinlock" else "deadlock"
        part = found.get(scenario, "")
        yield f"  {verdict}: " in part and re.search(pattern, part) is not None, f"{scenario}: the owner"


def in_gdb(program, path, token):
    """A breakpoint is hit, and the failure is at the thread that made the last step."""
    typed = "tbreak deposit\nrun\nup 0\ncontinue\nbacktrace\ncontinue\n"
    _, output = lab(program, "--gdb", "--replay", token, path, typed=typed)
    stopped = re.search(r"Temporary breakpoint \d+, deposit", output)
    failed = re.search(r"Breakpoint \d+, lab_sched_fail(.|\n)*LabFail(.|\n)*account.c:\d+", output)
    return stopped is not None and failed is not None and f"replay: {token}" in output


def schedules(output, scenario):
    found = re.search(r"(\d+) schedules", sections(output).get(scenario, ""))
    return int(found.group(1)) if found else 0


def share(program, path, longer):
    """A scenario gets its share of the total time: at least 50 ms, here of 1 s."""
    least = schedules(lab(program, "--minutes", "0.00001", path)[1], "left_handed")
    return 0 < least < schedules(longer, "left_handed")


def main():
    program, root = sys.argv[1], Path(sys.argv[2])
    results = []
    for name, scenarios in EXAMPLES.items():
        path = str(root / "examples" / "lab" / name)
        code, output = lab(program, *OPTIONS.get(name, []), path)
        results.append((code == 1, f"{name} fails"))
        found = sections(output)
        if name == "philosophers.c":
            results.append((share(program, path, output), "--minutes is shared out"))
        for scenario, verdict in scenarios.items():
            part = found.get(scenario, "")
            if verdict is None:
                results.append(("exhaustive" in part and "FAILED" not in part, f"{scenario} is correct"))
                continue
            results.append((f"FAILED: {verdict}" in part, f"{scenario}: {verdict}"))
            token = re.search(r"replay: (\S+)", part)
            code, again = lab(program, "--replay", token.group(1) if token else "none", path)
            results.append((code == 1 and trace(again) == trace(part) != [], f"{scenario}: the token replays it"))
            if name == "account.c" and shutil.which("gdb"):
                results.append((token and in_gdb(program, path, token.group(1)), f"{scenario}: and in gdb"))
    results += graphs(program, root)
    code, output = lab(program, "--replay", "account@sc,p2:zz", str(root / "examples" / "lab" / "account.c"))
    results.append((code != 0 and code != 1, "an invalid token is refused"))
    code, output = lab(program, "--help", str(root / "examples" / "lab" / "account.c"))
    results.append((code == 0 and "--scale" in output and "--replay TOKEN" in output, "--help has the explorer's options"))
    code, output = lab(program, "nothing.c")
    results.append((code != 0, "a missing file is an error"))
    code, output = lab(program, "--scale", "--lock", "queued", "--processors", "1,4", "--json")
    counted = json.loads(output) if code == 0 else []
    results.append(([c["processors"] for c in counted] == [1, 4], "--scale counts"))
    code, output = lab(program, "--scale", "--processors", "0")
    results.append((code == 2, "--scale refuses a machine without processors"))
    for number, (good, text) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {text}")
    print(f"1..{len(results)}")


main()
