"""Worlds and the probe, for the tests of the interpose view."""

from __future__ import annotations

from pathlib import Path

import pytest
from world import World, compile_c, grow

HERE = Path(__file__).parent


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture(scope="session")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probe")
    return compile_c((HERE / "probe.c").read_text(), folder / "probe")


@pytest.fixture(scope="session")
def tree_world(tmp_path_factory: pytest.TempPathFactory, probe: Path) -> World:
    """A tree with everything a tree can have, staged once."""
    world = World(tmp_path_factory.mktemp("tree"))
    grow(world)
    return world.put(
        absent=["sub/absent", "open/absent"], unlisted=["open"], forget=["open/unknown"]
    )
