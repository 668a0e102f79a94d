"""What all tests share: signals as at a terminal; tests that had to be run twice are written down
for tools/check.py."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

# A shell starts what it puts into the background with Ctrl-C ignored, nohup with SIGHUP, and
# programs inherit that. CI may be such a one; tests of signals start programs that must heed them.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGTERM, signal.SIG_DFL)

# Nor are a shell's words to Python the tests': with them, byte code is not there, or nothing waits
# in a buffer.
for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(name, None)


_REASON = 600  # characters of why a test failed at first
_is_worker = False  # of those that pytest -n starts: the process that gathers writes for all


def pytest_configure(config: pytest.Config) -> None:
    global _is_worker
    _is_worker = hasattr(config, "workerinput")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    folder = os.environ.get("BRIGADE_TEST_RERUNS")
    if report.outcome == "rerun" and folder and not _is_worker:  # type: ignore[comparison-overlap]
        with Path(folder).open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\t{_reason(report)}\n")


def _reason(report: pytest.TestReport) -> str:
    """Why a test failed, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return " ".join(str(crash.message if crash else report.longrepr).split())[:_REASON]
