"""Projects to run, for the tests of `brigade run`."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import Site


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site with an image, shared by tests that do not change it."""
    site = Site(tmp_path_factory.mktemp("site")).make()
    first = site.brigade()
    assert first.returncode == 0, first.stderr
    return site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path).make()
