"""The plan of a trial for ranks that are forked lies in the image, and stays there."""

from __future__ import annotations

import json
import marshal
from pathlib import Path

import pytest
from made import World, record

from brigade.errors import ImageError
from brigade.fork.plan import from_json
from brigade.image import grow
from brigade.image.build import build
from brigade.image.reader import Image

PLAN = "/.brigade/fork/plan"
WATCHED = [
    record("watch"),
    record("imported", "pkg", status=1, extra="/pkg.py"),
    record("imported", "pkg.core", status=2, by="pkg", extra="/core.py"),
    record("event", "pid", by="pkg.core"),
    record("imported", "alone", status=3, extra="/alone.py", time_ns=9),
]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def built(world: World) -> str:
    path = str(world.base / "image.brg")
    build(world.records, path, cover=[str(world.root)])
    return path


def check(image_path: str) -> None:
    with Image(image_path) as image:
        plan = from_json(image.meta["fork"])
        held = marshal.loads(image.read(PLAN))
    assert [module.name for module in plan.warm] == ["alone"]
    assert plan.left["pkg.core"].why == "asks for the process's number"
    assert held["warm"] == [("alone", "/alone.py")]
    assert held["left"]["pkg"] == "imports pkg.core, which is left"
    assert json.loads(json.dumps(held["version"])) == 1


def test_the_image_of_a_watched_trial_has_a_plan_twice(world: World) -> None:
    world.trial(WATCHED)
    check(built(world))


def test_another_image_has_none(world: World) -> None:
    world.trial()
    with Image(built(world)) as image:
        assert "fork" not in image.meta
        with pytest.raises(ImageError, match="has no file"):
            image.read(PLAN)


@pytest.mark.parametrize("host", ["n0", "x1"])
def test_an_image_that_grows_keeps_its_plan(world: World, host: str) -> None:
    """And what was written unseen, however often it grows and whatever its hosts are called."""
    world.trial(WATCHED, host=host)
    path = built(world)
    written = f"{world.app}/helper.py"
    grow.keep_records(str(world.records), path, [str(world.root)], written=[written])
    for read in "app.py", "settings.ini":
        Path(grow.missed_of(path)).write_text(json.dumps([["open", f"{world.app}/{read}"]]))
        grown = grow.grow(path)
        assert grown is not None
        assert [left.path for left in grown.built.left_out] == [written]
        check(path)
