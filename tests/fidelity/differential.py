"""One program, plain and under each view of a job: for tests that compare the two.

    pair = Differential(folder, covered=[tree])
    plain = pair.plain(command)             a CompletedProcess
    under = pair.under("python", command)   the same by `brigade run`; its report: `pair.report`

The image is made by the first run under any view, from a trial of the same command, and serves the
others. What must stay true: nothing but the program's own output is compared, so `brigade run` is
quiet; every run starts in the same working directory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from brigade.lab import Lab

VIEWS = ("interpose,python", "python", "interpose", "namespace")
LIMIT_S = 600


def python_path(*folders: str | Path) -> str:
    """PYTHONPATH for a program; where the tests themselves find Brigade by it, that stays."""
    own = os.environ.get("PYTHONPATH", "")
    return ":".join([*map(str, folders), *([own] if own else [])])


class Differential:
    def __init__(self, folder: Path, covered: Sequence[str | Path]) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.covered = [str(path) for path in covered]
        for name in ("work", "node", "cache"):
            (folder / name).mkdir(parents=True)
        self.report: dict = {}

    def plain(self, command: Sequence[str | Path], **environment: str):
        return self._run(command, {**os.environ, **self.places(), **environment})

    def under(
        self, view: str, command: Sequence[str | Path], ranks: int | None = 1, **environment: str
    ):
        """`ranks` is None where the command has a launcher of its own."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        options = ["-q", "--trial-ranks", ranks or 2, "--view", view, "--json", report]
        options += ["-n", ranks] if ranks else []
        options += [part for path in self.covered for part in ("--cover", path)]
        brigade = [sys.executable, "-m", "brigade", "run", *options, "--", *command]
        done = self._run(brigade, {**os.environ, **self.places(), **environment})
        self.report = json.loads(report.read_text()) if report.exists() else {}
        return done

    def places(self) -> dict[str, str]:
        """Where images and staged folders are; a node of a lab has its own memory."""
        node = os.environ.get("BRIGADE_NODE_DIR") or str(self.folder / "node")
        return {"BRIGADE_CACHE": str(self.folder / "cache"), "BRIGADE_NODE_DIR": node}

    def _run(self, command: Sequence[object], environment: dict[str, str]):
        words = [str(word) for word in command]
        return subprocess.run(
            words,
            cwd=self.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
        )


class InLab(Differential):
    """The same on the first node of a lab, whose shared file system is covered, as it always is."""

    def __init__(self, folder: Path, lab: Lab) -> None:
        super().__init__(folder, covered=[])
        self.lab = lab

    def places(self) -> dict[str, str]:
        return {"BRIGADE_CACHE": f"{self.lab.shared}/images"}

    def _run(self, command: Sequence[object], environment: dict[str, str]):
        return self.lab.run(
            [str(word) for word in command],
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
        )


def assert_same(
    pair: Differential,
    command: Sequence[str | Path],
    status: int = 0,
    ranks: int | None = 1,
    **environment: str,
) -> None:
    """The command works, and says and returns the same under every view, from the image."""
    plain = pair.plain(command, **environment)
    assert plain.returncode == status, plain.stderr
    for view in VIEWS:
        under = pair.under(view, command, ranks, **environment)
        assert pair.report.get("unstaged", "no report") is None, (view, under.stderr)
        assert under.returncode == plain.returncode, (view, under.stderr)
        said, before = under.stdout + under.stderr, plain.stdout + plain.stderr
        assert said == before, f"{view}: {said}\nplain: {before}"
