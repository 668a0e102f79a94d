"""Every report reaches a console that shows it, whatever COLUMNS says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from brigade.console import NARROWEST, make_console

PACKAGE = Path(__file__).resolve().parents[2] / "python/brigade"
PREDICT = ["predict", "--ranks", "8", "--lookups", "10"]


def test_all_consoles_are_made_in_one_place() -> None:
    makers = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if re.search(r"(?<!\w)Console\(|rich import print|get_console", path.read_text())
    }
    assert makers == {"console.py"}


@pytest.mark.parametrize("columns", ["0", "1", "3", "19", "-5", "", "²", "wide"])
def test_columns_that_no_terminal_has_count_as_not_set(monkeypatch, columns: str) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    usual = make_console().width
    monkeypatch.setenv("COLUMNS", columns)
    assert make_console().width == usual


def test_columns_that_a_terminal_has_are_taken(monkeypatch) -> None:
    for columns in (NARROWEST, 33, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert make_console().width == columns


def test_a_report_is_printed_where_there_is_no_width() -> None:
    words = {}
    for columns in ("0", "80"):
        done = subprocess.run(
            [sys.executable, "-m", "brigade", *PREDICT],
            env={**os.environ, "COLUMNS": columns}, capture_output=True, text=True,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        words[columns] = done.stdout.split()
    assert len(words["0"]) > 40 and words["0"] == words["80"]
