"""Worlds and the probe, for the tests of the interpose view."""

from __future__ import annotations

from pathlib import Path

import pytest
from world import World, compile_c

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


def grow(world: World) -> None:
    tree = world.tree
    (tree / "sub" / "deep" / "er").mkdir(parents=True)
    (tree / "open").mkdir()
    (tree / "empty").mkdir()
    (tree / "file").write_text("a file\n")
    (tree / "nothing").write_text("")
    (tree / "sub" / "script").write_text("#!/bin/sh\necho hello\n")
    (tree / "sub" / "script").chmod(0o755)
    (tree / "sub" / "deep" / "er" / "leaf").write_text("leaf\n")
    (tree / "open" / "known").write_text("known\n")
    (tree / "open" / "unknown").write_text("unknown\n")
    (tree / "private").write_text("private\n")
    (tree / "private").chmod(0o600)
    (tree / "sub" / "twin").hardlink_to(tree / "file")
    (tree / "name with space").write_text("x")
    (tree / "sub" / "uml\u00e4ut").write_text("y")
    for link, target in {
        "to_file": "file",
        "to_dir": "sub/deep",
        "sub/up": "..",
        "sub/loop": "loop",
        "dangling": "no/such",
        "absolute": str(tree / "sub" / "deep"),
        "chain": "sub/up/to_file",
        "outside": "/usr/bin/env",
        "out_dir": "/usr/lib",
    }.items():
        (tree / link).symlink_to(target)
