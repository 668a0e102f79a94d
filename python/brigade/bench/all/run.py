"""Runs each benchmark as a command of its own: what one does wrong, the others do not feel."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

from brigade.bench.all.plan import Entry, words

COLUMNS = 100  # of tables
PATIENCE_S = 20.0  # for a benchmark that is asked to end: it gives its launcher half of that
Progress = Optional[Callable[[int, int], None]]


@dataclass(frozen=True)
class Outcome:
    entry: Entry
    command: tuple[str, ...]
    seconds: float
    report: Any = None  # its JSON; None: it failed
    table: str = ""
    figure: str = ""  # SVG
    failure: str = ""

    @property
    def why(self) -> str:
        """The line of a failure that says most."""
        lines = self.failure.splitlines()
        said = [line for line in lines if line.startswith("brigade: ")]
        return said[-1].partition(": ")[2] if said else lines[-1]

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.entry.name, "title": self.entry.title, "command": list(self.command),
            "seconds": self.seconds, "failure": self.failure or None, "report": self.report,
        }  # fmt: skip


def run(
    entries: Sequence[Entry],
    quick: bool,
    ranks: int,
    folder: Path,
    launcher: Sequence[str],
    limit_s: float,
    progress: Progress = None,
) -> list[Outcome]:
    """Every entry's outcome, in order; one that fails, or takes longer than limit_s, is said to."""
    found = []
    for number, entry in enumerate(entries):
        if progress:
            progress(number, len(entries))
        found.append(_one(entry, quick, ranks, folder, launcher, limit_s))
    if progress:
        progress(len(entries), len(entries))
    return found


def _one(
    entry: Entry,
    quick: bool,
    ranks: int,
    folder: Path,
    launcher: Sequence[str],
    limit_s: float,
) -> Outcome:
    place = folder / entry.name
    place.mkdir()
    drawn = place.with_suffix(".svg")
    figure = str(drawn) if _can_draw() else None
    asked = words(entry, quick, ranks, str(place), figure, launcher)
    shown = ("brigade", "bench", *words(entry, quick, ranks, "DIR", None, launcher))
    begin = time.monotonic()
    status, out, err = _command([sys.executable, "-m", "brigade", "bench", *asked], limit_s)
    seconds = time.monotonic() - begin
    if status is None:
        failure = f"it took longer than {limit_s:g} s and was ended"
        return Outcome(entry, shown, seconds, failure=failure)
    if status:
        said = "\n".join(err.strip().splitlines()[-12:]) or "it said nothing"
        return Outcome(entry, shown, seconds, failure=f"exit code {status}\n{said}")
    try:
        report = json.loads(out)
        table = _printed(entry, report)
    except Exception as error:  # its report is not what is known here: the others still are
        failure = f"its report cannot be shown: {type(error).__name__}: {error}"
        return Outcome(entry, shown, seconds, failure=failure)
    svg = drawn.read_text(encoding="utf-8") if drawn.exists() else ""
    return Outcome(entry, shown, seconds, report, table, svg)


def _can_draw() -> bool:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def _command(command: list[str], limit_s: float) -> tuple[int | None, str, str]:
    """(exit code, or None: too long; standard output; standard error). It is a group of its own:
    nothing of what it starts is left when it is ended."""
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = child.communicate(timeout=limit_s)
        return child.returncode, out, err
    except subprocess.TimeoutExpired:
        _end(child)
        return None, "", ""
    except BaseException:  # a signal to this process; none reaches the child by itself
        _end(child)
        raise


def _end(child: subprocess.Popen[str]) -> None:
    """Asked to, it ends what it has started; what is left of its group after that is killed."""
    child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.communicate(timeout=PATIENCE_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _printed(entry: Entry, report: Any) -> str:
    """The table that the benchmark prints of this report."""
    module, _, name = entry.show.partition(":")
    show = getattr(importlib.import_module(module), name)
    given = [report[key] for key in entry.parts] if entry.parts else [report]
    text = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(COLUMNS)
    try:
        with contextlib.redirect_stdout(text):
            show(*given, *entry.more)
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return "\n".join(line.rstrip() for line in text.getvalue().strip("\n").splitlines())
