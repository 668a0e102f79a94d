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

#: What a program must not notice at all; in a namespace, software is read-only
#: (docs/explanation/namespace.md), which suites of tests do notice.
UNNOTICED = ("interpose,python", "python", "interpose")
VIEWS = (*UNNOTICED, "namespace")
LIMIT_S = 600


class Differential:
    def __init__(self, folder: Path, covered: Sequence[str | Path]) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.covered = [str(path) for path in covered]
        for name in ("work", "node", "cache"):
            (folder / name).mkdir(parents=True)
        self.report: dict = {}

    def plain(self, command: Sequence[str | Path], **environment: str):
        return self._run(command, {**os.environ, **environment})

    def under(self, view: str, command: Sequence[str | Path], ranks: int = 1, **environment: str):
        report = self.folder / "report.json"
        options = ["-q", "-n", ranks, "--trial-ranks", 1, "--view", view, "--json", report]
        options += [part for path in self.covered for part in ("--cover", path)]
        brigade = [sys.executable, "-m", "brigade", "run", *options, "--", *command]
        places = {
            "BRIGADE_CACHE": str(self.folder / "cache"),
            "BRIGADE_NODE_DIR": str(self.folder / "node"),
        }
        done = self._run(brigade, {**os.environ, **places, **environment})
        self.report = json.loads(report.read_text()) if report.exists() else {}
        return done

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


def assert_same(pair: Differential, command: Sequence[str | Path], **environment: str) -> None:
    """The command works, and says and returns the same under every view, from the image."""
    plain = pair.plain(command, **environment)
    assert plain.returncode == 0, plain.stderr
    for view in VIEWS:
        under = pair.under(view, command, **environment)
        assert pair.report.get("unstaged", "no report") is None, (view, under.stderr)
        assert under.returncode == plain.returncode, (view, under.stderr)
        said, before = under.stdout + under.stderr, plain.stdout + plain.stderr
        assert said == before, f"{view}: {said}\nplain: {before}"
