"""Run tests with pytest and write what became of every single one, one JSON object a line.

    python pytest_lines.py FILE ARGUMENT...        the arguments are pytest's own; without a FILE
                                                   ("") only import the tests

The lines are those of unittest_lines.py. Of several ranks the first one runs tests, others just
import them. The exit status is 0 if tests ran, failed or not. Any
CPython with pytest runs this file, from anywhere: it needs nothing of Brigade.
"""

from __future__ import annotations

import json
import os
import sys

import pytest

RAN = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


class Lines:
    """A plugin that writes each result when it is known."""

    def __init__(self, file):
        self.file = file

    def line(self, test, outcome, why="", detail=""):
        row = {"id": test, "outcome": outcome, "why": why, "detail": detail}
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def pytest_collectreport(self, report):
        if report.outcome == "failed":
            self.line(report.nodeid, "not collected", detail=report.longreprtext)
        elif report.outcome == "skipped":
            self.line(report.nodeid, "skip", report.longrepr[2])

    def pytest_runtest_logreport(self, report):
        if report.skipped and hasattr(report, "wasxfail"):
            self.line(report.nodeid, "expected failure", report.wasxfail)
        elif report.skipped:
            self.line(report.nodeid, "skip", report.longrepr[2])
        elif report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = crash.message.partition("\n")[0].partition(":")[0] if crash else ""
            self.line(report.nodeid, f"failure in {report.when}", why, report.longreprtext)
        elif report.when == "call":
            self.line(report.nodeid, "unexpected success" if hasattr(report, "wasxfail") else "ok")


def main(file, arguments):
    if not file or os.environ.get("PMI_RANK", "0") != "0":
        return pytest.main(["-p", "no:cacheprovider", "--collect-only", "-qq", *arguments])
    with open(file, "w") as lines:
        return pytest.main(["-p", "no:cacheprovider", *arguments], plugins=[Lines(lines)])


if __name__ == "__main__":
    code = main(sys.argv[1], sys.argv[2:])
    sys.exit(0 if code in RAN else code)
