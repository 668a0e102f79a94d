"""Which views a job's ranks get: what `--view` names, or what `auto` chooses for the program.

Nothing can be preloaded into a static program, into Go's, or into one with a C library of its own:
only the namespace view reaches it. Everything else gets `interpose` and, if it is Python, `python`:
they change less of what a program can notice (docs/design/0005-namespace-view.md). So does a Python
behind a static command that but starts it.
"""

from __future__ import annotations

import os
import subprocess

from brigade.errors import UsageError
from brigade.paths import native
from brigade.trial.invocation import STARTERS

AUTO = ("interpose", "python")
VIEWS = ("namespace", *AUTO)


def parse(text: str) -> list[str]:
    """The views that `--view` names; empty for none."""
    if text == "auto":
        return list(AUTO)
    if text == "none":
        return []
    views = [view for view in text.split(",") if view]
    unknown = [view for view in views if view not in VIEWS]
    if unknown or not views:
        raise UsageError(f"--view {text}: views are auto, none, {', '.join(VIEWS)}")
    return views


def automatic(programs: list[list[str]], has_python: bool) -> list[str]:
    """What `auto` is for the programs of a job. `has_python`: their image knows about imports."""
    views = list(AUTO) if has_python else ["interpose"]
    named = executables(programs)
    if has_python:
        named = [program for program in named if os.path.basename(program) not in STARTERS]
    return ["namespace", *views] if any(map(is_apart, named)) else views


def executables(programs: list[list[str]]) -> list[str]:
    """Each program once, without what it is told."""
    return list(dict.fromkeys(words[0] for words in programs))


def is_apart(program: str) -> bool:
    """Whether Brigade's libraries cannot be loaded into a program (src/view/binary.h)."""
    return _inspect(program) == "apart"


def is_unseen(program: str) -> bool:
    """Whether no trial sees what a program does: it is apart, or starts others in a container."""
    return _inspect(program) != "joins"


def _inspect(program: str) -> str:
    command = [str(native("brigade-rank")), "--inspect", program]
    told = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return told.stdout.strip()
