"""A traced program as a workload of the simulator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from brigade import paths
from brigade.cli.model import command
from brigade.errors import UsageError
from brigade.model.cache import from_trace
from brigade.model.cache.workload import Step
from brigade.trace import native
from brigade.trace.events import Event, Mechanism, Trace, TracedProcess

MS = 1_000_000


def event(at_ms: float, call: str, path: str, result: int = 0, **more: int) -> Event:
    return Event(int(at_ms * MS), MS // 100, 1, call, 0, result, path, **more)


def traced(*events: Event) -> list[Step]:
    process = TracedProcess("here", 1, 0, None, 0, events=list(events))
    return from_trace.steps(Trace(0, Mechanism(""), [process], {}))


def test_calls_that_follow_one_another_are_one_step() -> None:
    found = traced(
        event(0, "openat", "/out", 3),
        *(event(0.1 * n, "write", "/out", 4096) for n in range(5)),
        event(0.6, "fsync", "/out"),
        event(100, "write", "/out", 1000),
    )
    assert [(step.operation, step.bytes, step.size, step.at) for step in found] == [
        ("write", 20480, 4096, 0),
        ("fsync", 0, 1 << 20, 0),
        ("sleep", 0, 1 << 20, 0),
        ("write", 1000, 1000, 20480),
    ]
    assert found[2].sleep == pytest.approx(0.0994, abs=1e-4)


def test_what_is_only_read_is_there_before_and_an_open_begins_anew() -> None:
    found = traced(
        *(event(n, "read", "/in", 1 << 20) for n in (0, 0.1, 0.2)),
        event(0.3, "openat", "/in", 3),
        event(0.4, "read", "/in", 1 << 20),
    )
    assert found[0] == Step("file", "f0", 3 << 20, client="p0")
    assert [(step.at, step.bytes) for step in found[1:]] == [(0, 3 << 20), (0, 1 << 20)]


def test_what_is_no_file_or_failed_is_nothing() -> None:
    failed = Event(0, 10, 1, "write", 28, -1, "/out")
    with pytest.raises(UsageError, match="no reads and writes"):
        traced(failed, event(0, "read", "/proc/self/maps", 10), event(0, "write", "pipe:[1]", 10))


@pytest.mark.skipif(not (paths.native_dir() / "brigade-trace").exists(), reason="not built")
def test_a_real_trace_is_simulated(tmp_path: Path) -> None:
    program = f"import os; f = open({str(tmp_path / 'out')!r}, 'wb', 0)\n"
    program += "[f.write(bytes(1 << 20)) for _ in range(8)]; os.fsync(f.fileno())"
    (tmp_path / "traced").mkdir()
    tool = str(paths.native("brigade-trace"))
    words = [tool, "--out", str(tmp_path / "traced"), sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, env=dict(os.environ))
    if done.returncode or not list((tmp_path / "traced").glob("*.trace")):
        pytest.skip(f"nothing can be traced here: {done.stderr[:200]}")
    found = from_trace.steps(native.load(tmp_path / "traced"))
    written = [step for step in found if step.operation == "write"]
    assert sum(step.bytes for step in written) >= 8 << 20
    assert max(step.size for step in written) == 1 << 20
    assert any(step.operation == "fsync" for step in found)
    words = ["cache", "--trace", str(tmp_path / "traced")]
    result = CliRunner().invoke(command, words, catch_exceptions=False)
    assert result.exit_code == 0 and "fsync out" in result.output
