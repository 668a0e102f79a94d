"""Runs a world plain, under the recorder, under each view with two images, and as a rank that is to
be forked; tells what differs.

The two images: *whole*, made of everything and of what a recorded run of the same found; *part*,
made of a run that does half as much, without some libraries, in folders that are not listed. What
the second does not know must come from the tree, and change nothing.

Lines about Brigade's own preloaded library are left out: dl_iterate_phdr() shows it, as it shows
every preloaded library. With threads, lines are compared as a set, and both ways are run again
until they agree once: which thread comes first decides much.
"""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from world import VIEWS, World

from brigade.fork.program import asks_to_be_first
from brigade.trial.record import Trial

from .build import Builder
from .describe import ElfWorld, words

#: Where the process that ranks are forked from stops; there is one in each job's folder.
FORK = {"whole": "main", "part": "preinit"}
LIMIT_S = 20
DONE = 1  #: brg_forked of src/view/state.h
RETRIES = 15  #: of a world that has threads


@dataclass(frozen=True)
class Outcome:
    """What can be seen of a run."""

    lines: tuple[str, ...]
    errors: tuple[str, ...]
    status: int

    def text(self) -> list[str]:
        return [*self.lines, "-- stderr", *self.errors, f"-- status {self.status}"]


@dataclass
class Verdict:
    """`differences`: way -> what differs, as lines of a diff. `loads`: libraries that came from
    the staged folder. `works`: the plain program reached its end. `forked`: ranks that were."""

    differences: dict[str, list[str]]
    loads: int
    works: bool
    forked: int = 0

    def __str__(self) -> str:
        return "\n".join(f"== {way}\n" + "\n".join(d) for way, d in self.differences.items())


class Bench:
    """A built world, ready to be run. Everything lies in `base`, which must be empty."""

    def __init__(self, described: ElfWorld, builder: Builder, base: Path) -> None:
        self.described = described
        self.world = World(base)
        tree = self.world.tree
        self.program = builder.build(described, tree, base / "scratch")
        self.cwd = builder.expand(described.cwd, tree)
        self.environment = {"PATH": os.defpath, "LC_ALL": "C"}
        for name, value in described.environment.items():
            self.environment[name] = builder.expand(value, tree)
        self.environment["WORLD_PROGRAM"] = str(self.program)
        os.makedirs(self.cwd, exist_ok=True)
        self.spread = any(word[0] == "threads" for word in words(described.program.script))
        self._expand = lambda text: builder.expand(text, tree)

    def command(self, script: list[list] | None = None) -> list[str]:
        program = self.described.program
        start = str(self.program)
        if program.invoke == "relative":
            start = os.path.join(".", os.path.relpath(start, self.cwd))
        return [start, *self._arguments(program.script if script is None else script)]

    def _arguments(self, script: list[list]) -> list[str]:
        arguments = []
        for word in script:
            if word[0] in ("child", "fork"):
                inner = self._arguments(word[1])
                arguments += [f"{word[0]}|{len(inner)}", *inner]
            else:
                arguments.append(self._expand("|".join(word)))
        return arguments

    def options(self) -> dict[str, object]:
        return {"cwd": self.cwd, "env": self.environment, "timeout": LIMIT_S}

    def outcome(self, done: subprocess.CompletedProcess) -> Outcome:
        lines = [line for line in done.stdout.split("\n") if "libbrigade-" not in line]
        errors = done.stderr.split("\n")
        if self.spread:
            lines, errors = sorted(lines), sorted(errors)
        return Outcome(tuple(lines), tuple(errors), done.returncode)

    def plain(self) -> Outcome:
        return self.outcome(self.world.plain(*self.command(), **self.options()))

    def viewed(self, view: str) -> Outcome:
        return self.outcome(self.world.run(*self.command(), view=view, **self.options()))

    def to_be_forked(self, kind: str) -> Outcome:
        """That it was forked, or said why not, is a part of it."""
        self.world.reset()
        done = self.world.run(*self.command(), fork=kind, **self.options())
        forked, why = self.world.forked()
        if forked != DONE and not why:
            return Outcome(("neither forked nor refused",), (), forked)
        return self.outcome(done)

    def _stage(self, **parts: object) -> None:
        shutil.rmtree(self.world.stage, ignore_errors=True)
        self.world.put(**parts)

    def verdict(self) -> Verdict:
        plain = self.plain()
        differences: dict[str, list[str]] = {}
        loads = forked = 0

        def compare(way: str, run: Callable[[], Outcome]) -> None:
            other = run()
            plains, others = {plain}, {other}
            for _ in range(RETRIES if self.spread else 0):
                if plains & others:
                    break
                plains.add(self.plain())
                others.add(run())
            if plains & others:
                return
            diff = difflib.unified_diff(plain.text(), other.text(), "plain", way, lineterm="", n=1)
            differences[way] = list(diff)

        half = self.command(
            self.described.program.script[: len(self.described.program.script) // 2]
        )
        part, _ = self.world.record(*half, **self.options())
        whole, recorded = self.world.record(*self.command(), **self.options())
        runs = [self.outcome(recorded)]  # this one first; more only if threads make it differ
        compare(
            "recorded",
            lambda: (
                runs.pop()
                if runs
                else self.outcome(self.world.record(*self.command(), **self.options())[1])
            ),
        )
        preinit = not _starts_first(whole)
        for image in ("whole", "part"):
            if image == "whole":
                self._stage(trial=whole)
            else:
                self._stage(trial=part, **self._unknown())
            for view in VIEWS:
                self.world.reset()
                compare(f"{view}, {image} image", lambda view=view: self.viewed(view))
                loads += self.world.counts().loads
            if _can_be_forked(plain):
                kind = FORK[image] if preinit else "main"
                compare(f"fork, {image} image", lambda kind=kind: self.to_be_forked(kind))
                forked += self.world.forked()[0] == DONE
        works = plain.status < 127 and "-- stderr" in plain.text()
        return Verdict(differences, loads, works, forked)

    def _unknown(self) -> dict[str, list[str]]:
        forget, unlisted = [], []
        for name in self.described.partly:
            library = self.described.library(name)
            if library:
                folder = self._expand(library.folder)
                forget.append(f"{folder}/{library.file}")
                unlisted.append(folder)
                if library.stored:
                    forget.append(f"{library.stored}/{library.file}.real")
                    unlisted.append(library.stored)
        return {"forget": forget, "unlisted": unlisted}


def _can_be_forked(plain: Outcome) -> bool:
    """No trial is the base of it where ld.so fails; and what it says to one more process than there
    are ranks, a template, is a line more."""
    said = any("cannot be preloaded" in line for line in plain.errors)
    return plain.status != 127 and not said


def _starts_first(trial: Trial) -> bool:
    """Whether nobody can stop before all constructors, as with libpthread before glibc 2.34."""
    return any(asks_to_be_first(one.path) for _, one in trial.records() if one.kind == "load")


def judge(world: ElfWorld, builder: Builder) -> Verdict:
    """Build a world in a folder of its own, run it every way, and take it away again."""
    with tempfile.TemporaryDirectory(prefix="brigade-world-") as folder:
        return Bench(world, builder, Path(folder)).verdict()
