"""What the numbers depend on: the machine, and its load by other programs."""

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def _first(path, key):
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith(key):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return ""


def _output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[0]
    except (OSError, IndexError):
        return ""


def describe():
    return {
        "processor": _first("/proc/cpuinfo", "model name"),
        "model": ", ".join(f"{key} {_first('/proc/cpuinfo', name)}" for key, name in
                           (("family", "cpu family"), ("model", "model\t"), ("stepping", "stepping"))),
        "processors": len(os.sched_getaffinity(0)),
        "virtual": "hypervisor" in _first("/proc/cpuinfo", "flags").split(),
        "kernel": platform.release(),
        "compiler": _output(os.environ.get("CC", "cc"), "--version"),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _used_by(process):
    fields = Path(f"/proc/{process}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Load:
    """Processor seconds that the host stole or that other programs used."""

    def __init__(self, agents):
        self.processes = [os.getpid(), *(agent.process.pid for agent in agents)]
        self.start = self._read()

    def _read(self):
        fields = [int(field) / TICKS for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        ours = 0
        for process in self.processes + self._wine():
            try:
                ours += _used_by(process)
            except OSError:
                pass
        return {"all": sum(fields[:8]), "busy": sum(fields[:3]) + sum(fields[5:7]), "steal": fields[7], "ours": ours}

    @staticmethod
    def _wine():
        return [int(entry.name) for entry in Path("/proc").iterdir()
                if entry.name.isdigit() and _comm(entry).startswith(("wine", "services.exe", "bench-wine"))]

    def shares(self):
        """The shares of the time of all processors together: {"others": ..., "steal": ...}."""
        now = self._read()
        delta = {key: now[key] - self.start[key] for key in now}
        if delta["all"] <= 0:
            return {"others": 0, "steal": 0}
        others = max(0, delta["busy"] - delta["ours"]) / delta["all"]
        return {"others": round(min(1, others), 4), "steal": round(min(1, delta["steal"] / delta["all"]), 4)}


def _comm(entry):
    try:
        return (entry / "comm").read_text(errors="replace")
    except OSError:
        return ""
