"""One program, plain and under each view of a job: for tests that compare the two.

    pair = Differential(folder, covered=[tree])
    plain = pair.plain(command)             a CompletedProcess
    under = pair.under("python", command)   the same by `brigade run`; its report: `pair.report`
    ranks = pair.forked(command)            two ranks, forked from one process; one of each

The image is made by the first run under any view, from a trial of the same command, and serves the
others. What must stay true: nothing but the program's own output is compared, so `brigade run` is
quiet; every run starts in the same working directory, and nothing stands before the program: a
shell in front of it would be what is forked, or rather not.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from brigade.lab import Lab

VIEWS = ("interpose,python", "python", "interpose", "namespace")
FORK = "fork"  #: one more way: its image serves the views as well, so it comes first
WAYS = (FORK, *VIEWS)
RANKS = 2  #: that are forked: a single one would not be
LIMIT_S = 600
APART = Path(__file__).with_name("apart.py")


def python_path(*folders: str | Path) -> str:
    """PYTHONPATH for a program; where the tests themselves find Brigade by it, that stays."""
    own = os.environ.get("PYTHONPATH", "")
    return ":".join([*map(str, folders), *([own] if own else [])])


class Differential:
    emptied = False  #: whether each process of a program finds the working folder empty

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
        options = ["--trial-ranks", ranks or 2, "--view", view]
        return self._brigade([*options, *(["-n", ranks] if ranks else [])], command, environment)

    def under_fork(self, command: Sequence[object], *options: object, **environment: str):
        """The same for a command with a launcher of its own, whose ranks are forked."""
        return self._brigade(["--trial-ranks", RANKS, "--fork", *options], command, environment)

    def forked(
        self,
        command: Sequence[str | Path],
        trial: Sequence[str | Path] | None = None,
        **environment: str,
    ) -> list[subprocess.CompletedProcess[str]]:
        """What each of two ranks says that are forked, if such a program's can be. `trial`: what is
        tried in place of the command."""
        launcher = self.folder / "mpirun"
        turns = f'-turns "{self.work}"' if self.emptied else ""
        launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{APART}" {turns} "$@"\n')
        launcher.chmod(0o755)
        said = self.folder / "rank"
        for old in self.folder.glob("rank.*"):
            old.unlink()
        words = [launcher, "-n", RANKS, "-outfile-pattern", said, *command]
        options: list[object] = []
        environment["HYDRA_HOST_FILE"] = ""  # in a lab, the hosts of MPICH's launcher
        if trial:
            line = shlex.join(map(str, [launcher, "-n", RANKS, *trial]))
            options += ["--trial-command", line]
            environment["BRIGADE_CACHE"] = f"{self.places()['BRIGADE_CACHE']}-of-imports"
        done = self.under_fork(words, *options, **environment)
        found = []
        for rank in range(RANKS):
            text = {
                name: Path(f"{said}.{rank}.{name}").read_text(errors="replace")
                if Path(f"{said}.{rank}.{name}").exists() else ""
                for name in ("out", "err", "status")
            }  # fmt: skip
            assert text["status"], (done.stdout, done.stderr)
            status = int(text["status"])
            found.append(subprocess.CompletedProcess(words, status, text["out"], text["err"]))
        return found

    def _brigade(self, options: Sequence, command: Sequence, environment: dict[str, str]):
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        options = ["-q", "--json", report, *options]
        options += [part for path in self.covered for part in ("--cover", path)]
        brigade = [sys.executable, "-m", "brigade", "run", *options, "--", *command]
        done = self._run(brigade, {**os.environ, **self.places(), **environment})
        self.report = json.loads(report.read_text()) if report.exists() else {}
        return done

    def why_not_forked(self) -> str:
        """Of the last run under --fork: "" if all ranks of all nodes were forked."""
        assert self.report.get("unstaged", "no report") is None, self.report
        fork = self.report["fork"]
        if not fork:
            return "no node has two ranks"
        if fork["nowhere"]:
            return str(fork["nowhere"])
        assert fork["ranks"] + len(fork["plain"]) >= RANKS, fork
        return f"{fork['plain']}: {fork['why']}" if fork["plain"] else ""

    def without(self, view: str) -> str:
        """Of the last run: "" if `view` was in effect in every rank, or why nodes did without the
        namespace. That it was asked for, and the job staged, does not say so."""
        if view != "namespace":
            assert self.report["operations"]["answered_per_rank"]["min"] > 0, (view, self.report)
            return ""
        told = self.report["namespace"]
        assert told, self.report
        if not told["without"]:
            assert told["ranks"] == self.report["ranks"], self.report
        return "; ".join(sorted(set(told["without"].values())))

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
    """The same on the first node of a lab, whose shared file system is covered, as it always is.
    `work` is a folder there; it is empty when a program starts, and ranks start one by one."""

    emptied = True

    def __init__(self, folder: Path, lab: Lab, work: str) -> None:
        super().__init__(folder, covered=[])
        self.work = Path(work)
        self.lab = lab

    def places(self) -> dict[str, str]:
        return {"BRIGADE_CACHE": f"{self.lab.shared}/images"}

    def _run(self, command: Sequence[object], environment: dict[str, str]):
        node = self.lab.nodes[0]
        empty = ["/bin/sh", "-c", 'rm -rf "$1" && mkdir "$1"', "sh", str(self.work)]
        self.lab.exec(node, empty, cwd="/", check=True)
        return self.lab.run(
            [str(word) for word in command],
            cwd=str(self.work),
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
    not_forked: str | None = "",
    prints_its_path: bool = False,
    **environment: str,
) -> None:
    """The command works, and says and returns the same under every view, from the image, and as
    each of several ranks that are forked. `not_forked`: why ranks of this program are not (a part
    of it), None if it does not matter. `prints_its_path`: /proc/self/exe, which is the staged one
    where there is nothing but the view `python`. A test whose namespace was not to be had skips
    after all else."""
    plain = pair.plain(command, **environment)
    assert plain.returncode == status, plain.stderr
    before = plain.stdout + plain.stderr
    without, of_python = "", True
    for way in WAYS:
        if way == FORK and ranks:
            found = pair.forked(command, **environment)
        elif way == FORK:
            found = [pair.under_fork(command, **environment)]
        else:
            found = [pair.under(way, command, ranks, **environment)]
        assert pair.report.get("unstaged", "no report") is None, (way, pair.report, found)
        if way == FORK:
            of_python = "python" in pair.report["views"]
            if not_forked is not None:
                why = pair.why_not_forked()
                assert not_forked in why and bool(why) == bool(not_forked), why
        elif of_python or way != "python":
            without = pair.without(way) or without
        for under in found:
            assert under.returncode == plain.returncode, (way, under.stderr)
            said = under.stdout + under.stderr
            if prints_its_path and way == "python":
                said = re.sub(r"\S*/brigade-\d+/[0-9a-f]{32}/root/", "/", said)
            assert said == before, f"{way}: {said}\nplain: {before}"
    if without:
        pytest.skip(f"the namespace was not in effect: {without}")
