#!/usr/bin/env python3
"""The page of `interlock view` in Chromium: web/page.mjs opens it, checks it and clicks.

usage: browser.py CHECKS INTERLOCK STATIC SHARED MODULES

MODULES is the folder for npm's modules. INTERLOCK_SCREENSHOTS, if set, is a folder for pictures."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kdtest import INTERLOCK, STATIC, Program, Tap, until, view

SOURCE = Path(__file__).resolve().parent / "web"


def skip(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def install(modules):
    """Installs what package-lock.json lists, unless it is installed."""
    lock = (SOURCE / "package-lock.json").read_text(encoding="utf-8")
    done = modules / "installed"
    if done.exists() and done.read_text(encoding="utf-8") == lock:
        return True
    modules.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SOURCE / name, modules)
    result = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", modules],
                            cwd=modules, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        print("\n".join(f"# {line}" for line in result.stderr.splitlines()[-5:]))
        return False
    done.write_text(lock, encoding="utf-8")
    return True


def obey(program, need):
    if need == "start":
        program.process.stdin.write("start\n")
        program.process.stdin.flush()
    else:
        program.process.kill()
        program.process.wait()


def run(tap, program, modules, browser, address):
    facts = {**program.facts, "name": "service"}
    words = ["node", SOURCE / "page.mjs", modules, browser, address, json.dumps(facts),
             os.environ.get("INTERLOCK_SCREENSHOTS", "")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as node:
        for line in node.stdout:
            said = json.loads(line)
            if "need" in said:
                obey(program, said["need"])
            else:
                tap.case(said["case"], said["problems"])
        if node.wait() != 0:
            tap.case("the browser", [f"node ended with {node.returncode}"])


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    missing = [name for name in ("node", "npm") if not shutil.which(name)] + ([] if browser else ["chromium"])
    if missing:
        skip(f"there is no {', '.join(missing)}: scripts/ensure-deps browser installs it")
    modules = Path(sys.argv[5])
    if not install(modules):
        skip("npm could not install playwright-core (is this machine offline?)")
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder, \
            Program("service", shutil.copy(STATIC, Path(folder) / "service")) as p:
        until(lambda: view("locks", p.id), lambda d: len(d["locks"]) == 3 and d["deadlocks"])
        server = subprocess.Popen([INTERLOCK, "view", str(p.id)], stdout=subprocess.PIPE, text=True)
        try:
            run(tap, p, modules, browser, server.stdout.readline().strip())
        finally:
            server.terminate()
            server.wait()
    tap.done()


main()
