#!/usr/bin/env python3
"""Prints Debian's list of symbols, from the map that the library is linked with.

usage: symbols.py PACKAGE SONAME INTERLOCK.MAP"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "checks"))
from abi import Map  # noqa: E402

# Debian has its own names for machines.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "riscv64": "riscv64"}


def main():
    package, soname, path = sys.argv[1:]
    listed = Map(Path(path).read_text())
    print(f"{soname} {package} #MINVER#")
    print(f"* Build-Depends-Package: {package.rstrip('0123456789')}-dev")
    for version in sorted(set(listed.versions.values())):
        print(f" INTERLOCK_{version}@INTERLOCK_{version} {version}")
    for name, version in sorted(listed.versions.items()):
        machines = [ARCHITECTURES[machine] for machine in listed.only.get(name, [])]
        tag = f"(arch={' '.join(machines)})" if machines else ""
        print(f" {tag}{name}@INTERLOCK_{version} {version}")


main()
