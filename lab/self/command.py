#!/usr/bin/env python3
"""The command `interlock lab`: it compiles a test, finds its bug, and a token replays exactly that."""

import re
import subprocess
import sys
from pathlib import Path

# What each example must come to: the last line of each scenario.
EXAMPLES = {
    "account.c": {"account": "assertion"},
    "philosophers.c": {"philosophers": "deadlock", "left_handed": None},
    "publish.c": {"publish_relaxed": "assertion", "publish_release": None},
}
OPTIONS = {"publish.c": ["--model", "c11"], "philosophers.c": ["--seconds", "1"]}


def lab(program, *arguments):
    result = subprocess.run([program, "lab", *arguments], capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


def trace(output):
    """The steps of a trace: what a replay must repeat."""
    return re.findall(r"^ +\d+ .*$", output, re.M)


def sections(output):
    """{scenario: its part of the output}"""
    parts = re.split(r"^(\w+):", output, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def main():
    program, root = sys.argv[1], Path(sys.argv[2])
    results = []
    for name, scenarios in EXAMPLES.items():
        path = str(root / "examples" / "lab" / name)
        code, output = lab(program, *OPTIONS.get(name, []), path)
        results.append((code == 1, f"{name} fails"))
        found = sections(output)
        for scenario, verdict in scenarios.items():
            part = found.get(scenario, "")
            if verdict is None:
                results.append(("exhaustive" in part and "FAILED" not in part, f"{scenario} is correct"))
                continue
            results.append((f"FAILED: {verdict}" in part, f"{scenario}: {verdict}"))
            token = re.search(r"replay: (\S+)", part)
            code, again = lab(program, "--replay", token.group(1) if token else "none", path)
            results.append((code == 1 and trace(again) == trace(part) != [], f"{scenario}: the token replays it"))
    code, output = lab(program, "--replay", "account@sc,p2:zz", str(root / "examples" / "lab" / "account.c"))
    results.append((code != 0 and code != 1, "a token that is none is refused"))
    code, output = lab(program, "nothing.c")
    results.append((code != 0, "a file that is not there is an error"))
    for number, (good, text) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {text}")
    print(f"1..{len(results)}")


main()
