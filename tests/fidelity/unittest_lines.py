"""Run unittest modules and write what became of every single test, one JSON object a line.

    python unittest_lines.py FILE MODULE...        without a FILE ("") only import them

%r in FILE stands for the rank; without it, only the first one runs tests, others just import them.

A line holds `id`, `outcome` (ok, skip, failure, error, expected failure, unexpected success) and
`why` (the exception's type with its errno, or the reason of the skip) with `detail`, for people.
Resources that CPython's tests ask for (network, much time) are refused, as `python -m test` does.
Any CPython from 3.9 on runs this file, from anywhere: it needs nothing of Brigade.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
import unittest


class Lines(unittest.TestResult):
    """Writes each result when it is known: what a crash leaves is what came before it."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def line(self, test, outcome, why="", detail=""):
        row = {"id": test.id(), "outcome": outcome, "why": why, "detail": detail}
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def raised(self, test, outcome, error):
        kind, value, frames = error
        number = value.errno if isinstance(value, OSError) else None
        why = " ".join([kind.__name__, *([errno.errorcode[number]] if number else [])])
        self.line(test, outcome, why, "".join(traceback.format_exception(*error)))

    def addSuccess(self, test):
        self.line(test, "ok")

    def addError(self, test, error):
        self.raised(test, "error", error)

    def addFailure(self, test, error):
        self.raised(test, "failure", error)

    def addSubTest(self, test, subtest, error):
        if error:
            self.raised(subtest, "failure", error)

    def addSkip(self, test, reason):
        self.line(test, "skip", reason)

    def addExpectedFailure(self, test, error):
        self.line(test, "expected failure")

    def addUnexpectedSuccess(self, test):
        self.line(test, "unexpected success")


def main(file, names):
    try:
        from test import support

        support.use_resources = []
    except ImportError:
        pass  # this CPython came without its tests
    rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK", "0")
    suites = [unittest.defaultTestLoader.loadTestsFromName(name) for name in names]
    if not file or ("%r" not in file and rank != "0"):
        return
    with open(file.replace("%r", rank), "w") as lines:
        for suite in suites:
            suite.run(Lines(lines))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
