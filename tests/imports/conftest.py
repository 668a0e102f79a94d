"""Every CPython that this machine has, and a staged tree for each."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from module_tree import make_world
from staged import Staged

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


INTERPRETERS = {f"3.{minor}": path for minor in MINORS if (path := _find(minor))}


@pytest.fixture(scope="session", params=list(INTERPRETERS))
def python(request: pytest.FixtureRequest) -> str:
    """Path of an interpreter, one of each version that this machine has."""
    return INTERPRETERS[request.param]


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, python: str) -> Staged:
    """For tests that leave the tree and the stage as they are: one for each interpreter."""
    return make_world(tmp_path_factory.mktemp("world"), python)


@pytest.fixture
def own_world(tmp_path: Path) -> Staged:
    """For a test that changes things; this interpreter."""
    return make_world(tmp_path, sys.executable)


@pytest.fixture
def unlisted_world(tmp_path: Path) -> Staged:
    """The same with `lib` not LISTED, as a user's own folder is."""
    return make_world(tmp_path / "unlisted", sys.executable, listed=False)


@pytest.fixture(scope="session")
def preload(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An empty library with the preload's name: the view then believes the state file."""
    folder = tmp_path_factory.mktemp("preload")
    library = folder / "libbrigade-preload.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", str(library), "-x", "c", os.devnull], check=True
    )
    return str(library)
