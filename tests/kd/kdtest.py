"""What the tests of the debugger share: programs that wait in known ways, and access to the views."""

import http.client
import itertools
import json
import os
import subprocess
import sys
import time
from urllib.parse import urlsplit

sys.path.insert(0, sys.argv[1])
from tap import Tap  # noqa: E402,F401

INTERLOCK, STATIC, SHARED = map(os.path.abspath, sys.argv[2:5])
SANITIZED = "sanitized" in sys.argv[5:]
PATIENCE = 180
_worlds = itertools.count()


def new_session():
    """A separate world: tests do not share names."""
    return f"kd-{os.getpid()}-{next(_worlds)}"


def interlock(*words, **options):
    return subprocess.run([INTERLOCK, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE,
                          check=False, **options)


DEADLOCKED = 3


def view(*words):
    """The JSON of a view that must succeed. Only `deadlocks` has a status for what it found."""
    result = interlock(*words, "--json")
    found = json.loads(result.stdout) if result.returncode in (0, DEADLOCKED) else {}
    expected = DEADLOCKED if words[0] == "deadlocks" and any(d["certain"] for d in found.get("deadlocks", [])) else 0
    if result.returncode != expected:
        raise AssertionError(f"interlock {words}: {result.returncode}: {result.stderr}")
    return found


class Program:
    """A scene of the program (program/). Its members are what it prints: addresses and thread ids."""

    def __init__(self, scene, program=STATIC, **settings):
        environment = {**os.environ, "INTERLOCK_PROCESSORS": "4", "ASAN_OPTIONS": "detect_leaks=0",
                       "INTERLOCK_SESSION": "private", **settings}
        # Not a with block: __exit__ ends it.
        self.process = subprocess.Popen([program, scene], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment)
        self.id = self.process.pid
        self.facts = {}
        for line in self.process.stdout:
            if line == "ready\n":
                return
            name, value = line.split()
            self.facts[name] = int(value, 0)
        raise AssertionError(f"{scene} has not come to be ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def start(self):
        self.process.stdin.write("start\n")
        self.process.stdin.flush()

    def __getattr__(self, name):
        return self.facts[name]


class View:
    """A running `interlock view`."""

    def __init__(self, *words):
        # Not a with block: __exit__ ends it.
        self.process = subprocess.Popen([INTERLOCK, "view", *map(str, words)], stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        parts = urlsplit(self.address)
        self.port, self.token = parts.port, parts.path.strip("/")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, path, method="GET", host=None, body=None):
        """(status, headers, body) of a complete path."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body=body, headers={"Host": host or f"127.0.0.1:{self.port}"})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path):
        return self.ask(f"/{self.token}/{path}")

    def api(self, path):
        return json.loads(self.get(f"api/{path}")[2])


def until(take, is_so):
    """The first result that satisfies the condition, or the last one."""
    end = time.monotonic() + PATIENCE
    while True:
        taken = take()
        try:
            if is_so(taken) or time.monotonic() > end:
                return taken
        except (KeyError, IndexError, TypeError):
            if time.monotonic() > end:
                return taken
        time.sleep(0.05)


def number(address):
    return int(address, 16) if address else 0


def differences(what, found, expected):
    return [] if found == expected else [f"{what}: {found!r} instead of {expected!r}"]
