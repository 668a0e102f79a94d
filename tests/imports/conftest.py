"""Every CPython that this machine has, and a staged tree for each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from module_tree import make_world
from pythons import INTERPRETERS
from staged import Staged


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
