"""Programs under brigade-trace and under strace, for the tests of both."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

from processes import field, until

from brigade.paths import native as part
from brigade.trace import native, strace
from brigade.trace.events import Trace

TRACER = str(part("brigade-trace"))


def compile_c(source: str, target: Path, *flags: str) -> Path:
    """A program of C source, beside which nothing is left."""
    text = target.with_suffix(".c")
    text.write_text(source)
    subprocess.run(["cc", "-O1", "-o", target, text, *flags], check=True)
    return target


def traced(
    folder: Path,
    *words: str | Path,
    options: tuple[str, ...] = (),
    front: tuple[str | Path, ...] = (),
    **more,
) -> tuple[Trace, subprocess.CompletedProcess]:
    """The trace of a program, and how it ended. `front`: what starts the tracer."""
    out = folder / "trace"
    out.mkdir(exist_ok=True)
    out.chmod(0o777)
    more = {"capture_output": True, "text": True, "timeout": 100, **more}
    command = [*front, TRACER, "--out", out, *options, "--", *words]
    done = subprocess.run(command, check=False, **more)
    return whole(out), done


def whole(folder: Path) -> Trace:
    """The trace in `folder`, once its tracers have ended."""
    until(lambda: all(f.read_bytes().endswith(b"\nZ\n") for f in folder.glob("*.trace")))
    return native.load(folder)


def straced(folder: Path, *words: str | Path, **more) -> Trace:
    """The same of `strace -f`."""
    out = folder / "strace.out"
    command = ["strace", "-f", "-y", "-ttt", "-T", "-o", out, "--", *words]
    subprocess.run(command, capture_output=True, check=False, timeout=100, **more)
    return strace.load(out)


def counts(trace: Trace) -> Counter[tuple[str, int]]:
    """How often each call ended how."""
    return Counter((event.call, event.error) for _, event in trace.events())


def paths(trace: Trace, *calls: str) -> list[str]:
    """What was asked, in order."""
    return [e.path for _, e in trace.events() if not calls or e.call in calls]


def is_traced(pid: int) -> int:
    """Who traces a process; 0: nobody, or it is gone."""
    try:
        return int(field(pid, "TracerPid"))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def environment(**more: str) -> dict[str, str]:
    """Ours, without what differs from run to run in Python."""
    return {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", **more}
