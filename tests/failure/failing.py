"""Programs that fail to start, made for real, and what became of them.

A `Case` makes a program in a folder of its own; `fail` starts it as a launcher would, without
Brigade, and `told` is what Brigade then finds out: from the status alone (`said` stays empty),
or from what the program said in its trial.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from brigade.failure import Diagnosis, Evidence, diagnose


@dataclass
class Made:
    """What to start, and how."""

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    front: list[str] = field(default_factory=list)  # prlimit and the like, before it
    launcher: str = "local"
    ranks: int = 1
    hold: object = None  # kept until the case is over: an open file


@dataclass
class Case:
    """`title` and `kind` stand in the table of docs/how-to/when-a-start-fails.md."""

    kind: str
    title: str
    make: Callable[[Path], Made]
    tells: Sequence[str]  # all of these stand in what is told; {base} is the folder
    trial: bool = False  # only the program's own words show it, as its trial has them
    needs: Callable[[], str] = lambda: ""  # why it cannot be made here, or ""

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.make.__name__}"


@dataclass
class Failed:
    made: Made
    status: int
    said: str
    diagnoses: list[Diagnosis]

    @property
    def text(self) -> str:
        return "\n".join(line for one in self.diagnoses for line in one.lines())


def fail(case: Case, base: Path) -> Failed:
    made = case.make(base)
    env = {**os.environ, **made.env}
    for name in [name for name, value in made.env.items() if value == ""]:
        del env[name]
    error = 0
    try:
        done = subprocess.run(
            [*made.front, *made.argv],
            env=env, cwd=base, capture_output=True, text=True, errors="replace", timeout=60,
        )  # fmt: skip
        status, said = done.returncode, done.stderr + done.stdout
    except OSError as exception:
        error = exception.errno or 0
        status, said = (127 if isinstance(exception, FileNotFoundError) else 126), ""
    assert status != 0, said
    evidence = Evidence(
        words=made.argv,
        program=made.argv if made.launcher == "local" else made.argv[-1:],
        status=status,
        seconds=1.0,
        launcher=made.launcher,
        ranks=made.ranks,
        cwd=str(base),
        env=env,
        said=said if case.trial else "",
        exec_error=error,
    )
    return Failed(made, status, said, diagnose(evidence))
