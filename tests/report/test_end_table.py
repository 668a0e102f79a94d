"""The end table of `brigade run`: readable on narrow terminals, and clear about what it counted."""

from __future__ import annotations

import copy
import re
import sys
from typing import Any

import pytest

from brigade.report.table import _parted, print_report

LONG = "/mnt/shared/project/venv/lib/python3.11/site-packages/matplotlib/mpl-data/DejaVuSans.ttf"
REPORT: dict[str, Any] = {
    "unstaged": None,
    "ranks": 4096,
    "views": ["interpose", "python"],
    "image": {
        "bytes": 1023 << 20,
        "trial": {"seconds": 1234.5, "build_seconds": 123.4},
        "renewed": f"{LONG} changed and 123,456 more",
        "grown": {"paths": 123456, "seconds": 123.4},
        "left_to_file_system": [LONG] * 6,
        "ranks_agreed": False,
    },
    "staging": {
        "nodes": 128,
        "already": 0,
        "seconds": 123.45,
        "bytes_per_node": 1023 << 20,
        "read_bytes": 1023 << 20,
        "bytes_per_second_per_node": 1000 << 20,
        "stays_on_disk": False,
        "memory": {
            "allowed": 1000 << 20,
            "whole": 1023 << 20,
            "left_out_files": 1234,
            "left_out_bytes": 100 << 20,
            "largest": [LONG, LONG],
        },
    },
    "startup": {
        "ranks": 4096,
        "per_rank": {"min": 100.25, "median": 200.5, "max": 300.75},
        "after_launch": {"min": 1.0, "median": 2.0, "max": 1234.56},
    },
    "operations": {
        "before_per_rank": 123456.0,
        "after_per_rank": {"min": 1.0, "median": 2.0, "max": 12345.0},
    },
    "misses": {
        "total": 123456,
        "by_cause": {"UNKNOWN": 123000, "DIRECTORY": 456},
        "paths": [{"count": 4096, "op": "readlink", "path": LONG, "cause": "DIRECTORY"}],
    },
}


def printed(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    columns: int,
    terminal: bool = True,
    **changes: Any,
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    print_report({**copy.deepcopy(REPORT), **changes})
    return re.sub("\x1b[^m]*m", "", capsys.readouterr().err).splitlines()


@pytest.mark.parametrize("columns", [80, 60])
def test_no_fact_but_one_with_a_path_takes_more_than_a_line(monkeypatch, capsys, columns):
    narrow = printed(monkeypatch, capsys, columns)
    wide = printed(monkeypatch, capsys, 500)
    assert max(map(len, narrow)) <= columns
    assert [line for line in wide if LONG not in line and line not in narrow] == []


@pytest.mark.parametrize("columns", [80, 60])
def test_a_long_path_is_parted_only_behind_slashes_and_nothing_of_it_is_lost(
    monkeypatch, capsys, columns
):
    lines = [line.removeprefix("  ") for line in printed(monkeypatch, capsys, columns)]
    assert "".join(lines).count(LONG) == 9
    parts = [line for line in lines if line.startswith(LONG.split("project/")[0])]
    assert parts and all(line.endswith("/") for line in parts)


def test_what_is_no_terminal_has_each_fact_on_a_line_of_its_own(monkeypatch, capsys):
    wide = printed(monkeypatch, capsys, 500)
    assert printed(monkeypatch, capsys, 60, terminal=False) == wide
    path = "/sw/" + 30 * "name " + "\n\x1b[31mred"
    changed = {**REPORT["image"], "left_to_file_system": [path]}
    lines = printed(monkeypatch, capsys, 60, terminal=False, image=changed)
    assert any(line.endswith("name \\n\\x1b[31mred") for line in lines)
    why = f"{LONG} is not readable"
    for terminal in (False, True):
        lines = printed(monkeypatch, capsys, 60, terminal=terminal, unstaged=why)
        assert "".join(lines).endswith(why)
        assert (len(lines) == 1) is not terminal


@pytest.mark.parametrize("columns", [0, 1, 2, 3])
def test_a_terminal_of_no_width_has_the_whole_table(monkeypatch, capsys, columns):
    wide = printed(monkeypatch, capsys, 500)
    narrow = printed(monkeypatch, capsys, columns)
    assert "".join("".join(narrow).split()) == "".join("".join(wide).split())


@pytest.mark.parametrize("room", [-2, -1, 0, 1, 2, 3])
def test_a_fact_is_parted_in_any_room(room):
    lines = _parted("changed /a/long name", room)
    assert "".join(lines).replace(" ", "") == "changed/a/longname"
    assert max(map(len, lines)) <= max(1, room)


def test_start_up_says_its_unit_and_which_figure_is_which(monkeypatch, capsys):
    lines = printed(monkeypatch, capsys, 80)
    at = lines.index("start-up, seconds per rank (min, median, max)")
    assert lines[at + 1] == "  100.25, 200.50, 300.75"


@pytest.mark.parametrize(
    "views, how",
    [
        (["interpose", "python"], "counted in this job"),
        (["interpose"], "counted in this job"),
        (["python"], "imports only, counted in this job"),
    ],
)
def test_operations_say_how_they_were_counted(monkeypatch, capsys, views, how):
    lines = printed(monkeypatch, capsys, 80, views=views)
    at = lines.index("shared-file-system operations per rank")
    assert lines[at + 1 : at + 3] == [
        "  before 123,456 (counted in the trial)",
        f"  now 2, at most 12,345 ({how})",
    ]


def test_what_was_not_measured_is_left_out(monkeypatch, capsys):
    lines = printed(monkeypatch, capsys, 80, startup=None, staging=None, operations=None)
    headings = [line for line in lines[1:] if not line.startswith(" ")]
    assert headings == ["image", "misses"]


def test_another_way_than_mpi_is_named_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    staging = {**REPORT["staging"], "transport_why": "n1: no MPI library found"}
    lines = printed(monkeypatch, capsys, 80, staging=staging)
    assert "  by sbcast: n1: no MPI library found" in lines
    staging = {**REPORT["staging"], "already": 128, "transport": "standing", "read_bytes": 0}
    lines = printed(monkeypatch, capsys, 80, staging=staging)
    assert "  123.45 s (it stands on every node: brigade stage)" in lines
