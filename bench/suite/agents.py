"""Processes that take samples on request: the one built here, one of another build, one under Wine."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

REGIME_GAP = 1.5  # between two cache-line round trips: the host has moved the processors


class AgentDied(Exception):
    pass


class Agent:
    def __init__(self, command, label="", environment=None, silent=False):
        self.label = label
        self.best_calibration = float("inf")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL if silent else None,
                                        env=dict(os.environ, **(environment or {})))
        self.measurements, self.versions = [], {}
        self._list()

    def _ask(self, request):
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise AgentDied(f"{self.process.args}: ended with {self.process.wait()}")
        return line.strip()

    def _list(self):
        self._ask("list")
        while line := self._answer():
            entry = json.loads(line)
            if "row" in entry:
                entry["index"] = len(self.measurements)
                entry["agent"] = self
                self.measurements.append(entry)
            else:
                self.versions[entry["contenders"]] = entry["version"]

    def sample(self, measurement, milliseconds):
        self._ask(f"sample {measurement['index']} {milliseconds}")
        result = json.loads(self._answer())
        self.best_calibration = min(self.best_calibration, *result["calibration"])
        return result

    def is_disturbed(self, sample):
        """Another program had the processor before or after it or delayed the other processor, or the host moved
        the processors meanwhile."""
        line = sample.get("line", [1, 1])
        return (max(sample["calibration"]) > 1.1 * self.best_calibration
                or min(line) == 0 or max(line) > REGIME_GAP * min(line))

    def library(self):
        """What tells its libinterlock from another build."""
        for line in Path(f"/proc/{self.process.pid}/maps").read_text().splitlines():
            if "libinterlock" in line:
                return hashlib.sha256(Path(line.split()[-1]).read_bytes()).hexdigest()[:16]
        return ""

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def other_build(agent, path):
    """An agent with another libinterlock: that of a build directory, or ours with a replaced library."""
    theirs = os.path.join(path, "bench", "bench-agent")
    if os.path.isfile(theirs):
        return Agent([theirs], label="other")
    if not os.path.isfile(path):
        raise AgentDied(f"{path} is neither a library nor a directory with bench/bench-agent")
    return Agent([agent], label="other", environment={"LD_PRELOAD": os.path.abspath(path)})
