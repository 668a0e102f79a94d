"""Every CPython that this machine has, one of each version: INTERPRETERS["3.11"] is a path."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys

import pytest

MINORS = range(9, 16)


def _candidates(minor: int) -> list[str]:
    own = [sys.executable] if sys.version_info[1] == minor else []
    on_path = shutil.which(f"python3.{minor}")
    pyenv = glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/python3.{minor}"))
    return own + ([on_path] if on_path else []) + sorted(pyenv)


def _works(python: str, minor: int) -> bool:
    probe = [python, "-c", "import sys; print(sys.version_info[:2])"]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == f"(3, {minor})"


def _find(minor: int) -> str | None:
    return next((c for c in _candidates(minor) if _works(c, minor)), None)


def need(minor: int) -> str:
    """Python 3.`minor`, also one that most tests leave out; without it the test skips."""
    python = _find(minor)
    if not python:
        pytest.skip(f"needs Python 3.{minor}")
    return python


INTERPRETERS = {f"3.{minor}": path for minor in MINORS if (path := _find(minor))}
