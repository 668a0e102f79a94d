"""A world for each CPython of this machine, with a template and a false library."""

from __future__ import annotations

from pathlib import Path

import pytest
from pythons import INTERPRETERS
from warm_world import Warm


@pytest.fixture(scope="session", params=list(INTERPRETERS))
def python(request: pytest.FixtureRequest) -> str:
    """Path of an interpreter, one of each version that this machine has."""
    return INTERPRETERS[request.param]


@pytest.fixture
def warm(tmp_path: Path, python: str) -> Warm:
    return Warm(tmp_path, python)
