"""Rank processes of tests: `fork_driver` standing for a rank, or the same program by itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from processes import until

from brigade.paths import native

DRIVER = native("brigade-rank").parents[1] / "tests/fork_driver"
WHAT_I_AM = [sys.executable, "-S", "-E", str(Path(__file__).parent / "what_i_am.py")]


class Ranks:
    """Starts rank processes of one job on this node, and ends what a failed test leaves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[str]] = []

    def start(
        self, words: list[str], *, n_local: int = 0, plain: bool = False, **options: Any
    ) -> subprocess.Popen[str]:
        command = words if plain else [str(DRIVER), "rank", str(self.folder), str(n_local), *words]
        for name in ("stdout", "stderr"):
            options.setdefault(name, subprocess.PIPE)
        child = subprocess.Popen(command, text=True, **options)
        self.started.append(child)
        return child

    def said(self, words: list[str], **options: Any) -> str:
        """What a rank writes that ends well and was forked."""
        child = self.start(words, **options)
        out, err = child.communicate(timeout=60)
        assert (child.returncode, err) == (0, ""), (out, err)
        return out

    def shell(self, script: str, **options: Any) -> subprocess.Popen[str]:
        return self.start(["sh", "-c", script], **options)

    def first(self, **options: Any) -> subprocess.Popen[str]:
        """A rank that is there, and so the template; it ends when it reads a line."""
        child = self.shell("echo here; read line", stdin=subprocess.PIPE, **options)
        assert child.stdout and child.stdout.readline() == "here\n"
        return child

    def template(self) -> int:
        """The pid of the template, of which there must be one; it may be about to come."""
        until(self._templates)
        (found,) = self._templates()
        return found

    def templates_end(self) -> None:
        until(lambda: not self._templates())

    def _templates(self) -> list[int]:
        return [pid for pid in processes() if folder_of(pid) == str(self.folder)]

    def close(self) -> None:
        for child in self.started:
            if child.poll() is None:
                child.kill()
            child.communicate()
        self.templates_end()


def processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def words_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []


def folder_of(pid: int) -> str:
    """The job's folder of a template: where its socket is bound."""
    if words_of(pid) != ["fork_driver", "template"]:
        return ""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next((v.partition(b"=")[2].decode() for v in variables if v.startswith(b"JOB=")), "")


def children(pid: int) -> list[int]:
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def lives(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


Setup = Callable[[], None]
