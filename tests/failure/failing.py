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
from brigade.failure.evidence import own_limits
from brigade.job.failed import oom_kills


@dataclass
class Made:
    """What to start, and how."""

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)  # of prlimit
    group: Path | None = None  # a control group to run in
    launcher: str = "local"
    ranks: int = 1
    words: int = 1  # of the program, at the end
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
    # what a shell sets for Open MPI counts as a word about slots
    env = {name: value for name, value in os.environ.items() if not name.startswith("OMPI_MCA_")}
    env.update(made.env)
    for name in [name for name, value in made.env.items() if value == ""]:
        del env[name]
    limits = {**own_limits(), **made.limits}
    if made.group and (made.group / "pids.max").exists():
        limits["pids"] = int((made.group / "pids.max").read_text())
    error, kills = 0, oom_kills() or 0
    front = ["prlimit", *(f"--{k}={v}:{v}" for k, v in made.limits.items())] if made.limits else []
    if made.group:
        front = ["sh", "-c", f'echo $$ > {made.group}/cgroup.procs; exec "$@"', "sh"]
    try:
        done = subprocess.run(
            [*front, *made.argv],
            env=env, cwd=base, capture_output=True, text=True, errors="replace", timeout=60,
        )  # fmt: skip
        status, said = done.returncode, done.stderr + done.stdout
    except OSError as exception:
        error = exception.errno or 0
        status, said = (127 if isinstance(exception, FileNotFoundError) else 126), ""
    assert status != 0, said
    evidence = Evidence(
        words=made.argv,
        program=made.argv if made.launcher == "local" else made.argv[-made.words :],
        status=status,
        seconds=1.0,
        launcher=made.launcher,
        ranks=made.ranks,
        cwd=str(base),
        env=env,
        said=said if case.trial else "",
        exec_error=error,
        oom_kills=(oom_kills() or 0) - kills,
        limits=limits,
    )
    return Failed(made, status, said, diagnose(evidence))
