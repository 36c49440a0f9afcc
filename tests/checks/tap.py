"""Results in the Test Anything Protocol."""

import sys


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def case(self, name, problems=()):
        """One test case. It passes if problems is empty; otherwise they are printed below it."""
        problems = list(problems)
        self.count += 1
        self.failed += bool(problems)
        print(f"{'not ok' if problems else 'ok'} {self.count} - {name}")
        for problem in problems:
            for line in str(problem).rstrip().splitlines():
                print(f"# {line}")
        sys.stdout.flush()

    def note(self, text):
        print(f"# {text}")

    def done(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)
