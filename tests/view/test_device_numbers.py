"""Each node numbers its mounts by itself: a file has one device, whichever call asks for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from test_answers import assert_same
from world import World, everything, grow

PYTHON = "/usr/bin/python3"
OTHERS = 12345  #: what the host where the image was made called the device


@pytest.fixture
def moved(world: World) -> World:
    """The image was made on another host; `file` and `open` are not read from node memory."""
    grow(world)
    world.put(unread=["file", "sub/twin"], unlisted=["open"], device=OTHERS)
    world.number({OTHERS: os.stat(world.tree).st_dev})
    return world


def test_every_call_gives_the_number_of_this_node(moved: World, probe: Path) -> None:
    assert_same(moved, probe, *everything(moved))
    assert moved.counts().hits > 500


def test_what_is_unknown_here_keeps_the_number_of_the_image(moved: World) -> None:
    moved.number({})
    asked = f"import os; print(os.stat({str(moved.tree)!r}).st_dev)"
    assert moved.run(PYTHON, "-S", "-c", asked).stdout == f"{OTHERS}\n"


@pytest.mark.parametrize(
    "command",
    [
        "cp {tree}/file {work}/copy && cmp {tree}/file {work}/copy",
        "cp -r {tree}/sub {work}/tree && ls -R {work}/tree",
        "python3 -S -c 'import os; print([(w[0], w[1]) for w in os.fwalk(\"{tree}\")])'",
        "touch {tree}/sub/new; python3 -S -c 'import os; print(os.path.ismount(\"{tree}/sub\"))'",
        "python3 -S -c 'import shutil; shutil.rmtree(\"{tree}/sub\")'; ls {tree}",
    ],
)
def test_programs_that_compare_what_two_calls_say(
    moved: World, tmp_path: Path, command: str
) -> None:
    viewed = moved.run("sh", "-c", command.format(tree=moved.tree, work=_work(tmp_path, "view")))
    assert (viewed.returncode, viewed.stderr) == (0, "")
    if "rm" in command:
        grow(World(tmp_path / "again"))
        command = command.replace("{tree}", str(tmp_path / "again" / "shared"))
    plain = moved.plain("sh", "-c", command.format(tree=moved.tree, work=_work(tmp_path, "plain")))
    assert viewed.stdout.replace("/view/", "/plain/") == plain.stdout


def _work(base: Path, name: str) -> Path:
    folder = base / "work" / name
    folder.mkdir(parents=True)
    return folder
