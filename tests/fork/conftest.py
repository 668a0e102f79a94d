"""A world for each CPython of this machine, with a template and a false library; rank processes of
a template without Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pythons import INTERPRETERS
from standing import Ranks
from warm_world import Warm


@pytest.fixture(scope="session", params=list(INTERPRETERS))
def python(request: pytest.FixtureRequest) -> str:
    """Path of an interpreter, one of each version that this machine has."""
    return INTERPRETERS[request.param]


@pytest.fixture
def warm(tmp_path: Path, python: str) -> Warm:
    return Warm(tmp_path, python)


@pytest.fixture
def ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ranks]:
    """Rank processes that share one template, unless they say otherwise."""
    monkeypatch.setenv("JOB", str(tmp_path))
    monkeypatch.setenv("FORK_DRIVER_KEY", "all share one template")
    ranks = Ranks(tmp_path)
    yield ranks
    ranks.close()
