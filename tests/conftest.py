"""What all tests share: tests that had to be run twice are written down for tools/check.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    folder = os.environ.get("BRIGADE_TEST_RERUNS")
    if report.outcome == "rerun" and folder:  # type: ignore[comparison-overlap]
        with Path(folder).open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\n")
