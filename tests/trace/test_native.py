"""The files of `brigade-trace` become a trace; a torn file gives what is whole in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from brigade.errors import BrigadeError
from brigade.trace import native

WRITTEN = (
    "brigade-trace\t1\n"
    "H\tnode\t5000\tseccomp\n"
    "P\t1\t70\t60\t3\t10\t-\n"
    "X\t1\t/bin/sh\t/home\\twork\n"
    "A\t1\tsh\t-c\ta\\nb\n"
    "V\t1\tPATH=/bin\tLANG=C\n"
    "E\t1\t70\texecve\t10\t90\t0\t0\t0\t0\t/bin/sh\n"
    "I\t1\t400\n"
    "E\t1\t71\topenat\t500\t7\t2\t-1\t0\t524288\t/no\\\\such\n"
    "P\t2\t72\t70\t3\t600\t1\n"
    "E\t2\t72\treadlink\t650\t7\t0\t4\t0\t0\t/l\tfour\n"
    "Q\t2\t700\t0\n"
    "L\ta sentence\n"
    "S\t12\t3400\n"
    "Q\t1\t800\t-9\n"
    "Z\n"
)


def test_a_file_is_read_as_the_format_says(tmp_path: Path) -> None:
    (tmp_path / "node.70.5000.trace").write_text(WRITTEN)
    (tmp_path / "node.mountinfo").write_text("1 0 0:1 / / rw - ext4 /dev/x rw\n")
    trace = native.load(tmp_path)
    first, child = trace.processes
    assert (first.host, first.pid, first.parent, first.rank, first.start_ns) == (
        "node",
        70,
        60,
        3,
        10,
    )
    assert (first.exe, first.cwd, first.argv) == ("/bin/sh", "/home\twork", ["sh", "-c", "a\nb"])
    assert (first.env, first.entry_ns) == ({"PATH": "/bin", "LANG": "C"}, 400)
    assert (first.end_ns, first.status, child.status) == (800, -9, 0)
    assert (child.exe, child.argv, child.parent) == (first.exe, first.argv, 70)
    assert first.events[1] == (500, 7, 71, "openat", 2, -1, "/no\\such", False, 524288, "")
    assert child.events[0].other == "four"
    says = trace.mechanism
    assert (says.name, says.lost, says.stops, says.stopped_ns) == (
        "seccomp",
        ["a sentence"],
        12,
        3400,
    )
    assert list(trace.mountinfo) == ["node"] and says.complete


def test_files_are_put_on_one_clock(tmp_path: Path) -> None:
    (tmp_path / "a.70.5000.trace").write_text(WRITTEN)
    (tmp_path / "b.70.9000.trace").write_text(WRITTEN.replace("\t5000\t", "\t9000\t"))
    trace = native.load(tmp_path)
    assert trace.start_ns == 5000
    assert [p.start_ns for p in trace.processes] == [10, 600, 4010, 4600]
    assert trace.processes[2].events[0].time_ns == 4010
    assert (trace.processes[2].entry_ns, trace.processes[2].end_ns) == (4400, 4800)


def test_a_file_that_was_cut_anywhere_gives_its_whole_lines(tmp_path: Path) -> None:
    file = tmp_path / "node.70.5000.trace"
    for size in range(len(WRITTEN)):
        file.write_text(WRITTEN[:size])
        trace = native.load(tmp_path)
        whole = WRITTEN[:size].rpartition("\n")[0]
        assert sum(len(p.events) for p in trace.processes) == whole.count("\nE\t")
        said = "what came after" if "H\t" in whole else "no beginning"
        assert any(said in text for text in trace.mechanism.lost)


@pytest.mark.parametrize("begins", ["", "brigade-trace\t1\nH\tb\t4"])
def test_a_file_without_its_head_moves_no_clock_and_is_said_to_be_lost(
    tmp_path: Path, begins: str
) -> None:
    (tmp_path / "a.70.5000.trace").write_text(WRITTEN)
    (tmp_path / "b.70.4000.trace").write_text(begins)
    (tmp_path / "c.70.4500.trace").write_text(begins)
    trace = native.load(tmp_path)
    assert (trace.start_ns, trace.mechanism.name) == (5000, "seccomp")
    assert [p.start_ns for p in trace.processes] == [10, 600]
    assert trace.mechanism.lost[1:] == [
        "all that a program did: its trace has no beginning (2 times)"
    ]


def test_a_trace_is_complete_once_its_program_has_ended(tmp_path: Path) -> None:
    """What it left behind, a daemon, may still run."""
    file = tmp_path / "node.70.5000.trace"
    for text, complete in (
        (WRITTEN.replace("Z\n", ""), True),
        (WRITTEN.replace("Z\n", "").replace("Q\t1\t800\t-9\n", ""), False),
        (WRITTEN.replace("seccomp", "none"), False),
        ("", False),
    ):
        file.write_text(text)
        assert native.load(tmp_path).mechanism.complete is complete


@pytest.mark.parametrize(
    "text", ["other\t1\n", "brigade-trace\t2\n", WRITTEN.replace("openat", "opemat")], ids=len
)
def test_what_is_no_trace_is_one_clear_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.trace").write_text(text)
    with pytest.raises(BrigadeError, match=r"x\.trace"):
        native.load(tmp_path)


def test_a_folder_without_a_trace_is_one_clear_error(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(BrigadeError, match=str(folder)):
            native.load(folder)
