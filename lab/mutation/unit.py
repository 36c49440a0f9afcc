"""The unit tests, built with one source file of the library changed, and run."""

import json
import os
import re
import resource
import signal
import subprocess

import explorer

ROOMS = ("ke", "ex", "nt", "rtl", "win32")
LIBRARY = ("src/libinterlock-fast.a.p/", "src/libinterlock.so.")
SECONDS = 8  # at least, for a test that hangs
MEMORY = 4 << 30


class Tests:
    """The test programs of a build directory, and which functions each of them reaches."""

    def __init__(self, root, directory):
        listing = subprocess.run(["meson", "introspect", "--tests", directory], check=True, capture_output=True,
                                 text=True).stdout
        self.environments, targets = {}, {}
        for test in json.loads(listing):
            match = re.fullmatch(rf"(?:.*/)?(tests/({'|'.join(ROOMS)})-(\w+))", test["cmd"][0])
            if match and test["name"] == f"{match.group(2)}/{match.group(3)}":
                targets[test["name"]] = match.group(1)
                self.environments[test["name"]] = test["env"]
        self.targets = targets
        self.build = explorer.Build(root, directory, LIBRARY, targets) if targets else None

    def run(self, program, name, seconds, environment=None):
        """None, or why the test failed."""
        process = subprocess.Popen([program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   stdin=subprocess.DEVNULL, preexec_fn=limit,
                                   env={**(environment or os.environ), **self.environments[name]})
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = "hangs"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        if status in (0, 77):
            return None
        return status if status == "hangs" else f"status {status}"

    def reached(self, folder, sources, map_jobs):
        """{(path, function): [test], quickest first} and {test: seconds}"""
        names = sorted(self.targets)
        programs, numbers = explorer.counting_programs(self.build, folder / "unit-reach", sources, names, map_jobs)

        def measure(name):
            return (name, *explorer.counts_of(folder / f"counts-{name.replace('/', '-')}", lambda environment: self.run(
                programs[name], name, 60, environment)))

        by_function, seconds = {key: [] for key in numbers}, {}
        for name, failure, took, counts in sorted(map_jobs(measure, programs), key=lambda result: result[2]):
            if failure is not None:
                print(f"mutate: {name} fails without any change: {failure}; it is left out", flush=True)
                continue
            seconds[name] = took
            for key, number in numbers.items():
                if counts[number]:
                    by_function[key].append(name)
        return by_function, seconds


def limit():
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
