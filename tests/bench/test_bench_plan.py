"""Worlds as they are planned: nothing is compiled here."""

from __future__ import annotations

import dataclasses

import pytest

from brigade.bench import layout, sources
from brigade.bench.plan import (
    MASK,
    MULTIPLIER,
    PRESETS,
    Cload,
    Part,
    Pynamic,
    World,
    calls,
    checksum,
    constants,
    plan,
    start,
)
from brigade.errors import UsageError

SMALL = Pynamic(modules=8, utilities=5, functions=30, depth=4, cross=3)


def texts(world: World) -> list[str]:
    return [sources.part_source(world, part) for part in world.parts]


def test_the_same_seed_gives_the_same_sources_and_another_seed_others():
    assert texts(plan(SMALL)) == texts(plan(SMALL))
    other = plan(dataclasses.replace(SMALL, seed=2))
    assert all(a != b for a, b in zip(texts(plan(SMALL)), texts(other)))
    assert sources.padding(plan(SMALL)) == sources.padding(plan(SMALL)) != sources.padding(other)


def test_a_known_world_has_a_known_checksum_on_every_python():
    assert f"{checksum(plan(SMALL)):016x}" == "967af7c5a34cbca2"


def walk(world: World, part: Part, counted: dict[str, int]) -> int:
    """Visit a part by following its plan, function by function; counts what is called."""
    ends = {call.chain: call for call in part.calls}
    total = sum(walk(world, world.parts[number], counted) for number in part.owns)
    for chain, functions in enumerate(part.chains()):
        x = start(part, chain)
        for function in functions:
            x = (x ^ constants(world, part)[function]) * MULTIPLIER & MASK
            name = sources.symbol(part, function)
            counted[name] = counted.get(name, 0) + 1
        if chain in ends:
            target = world.parts[ends[chain].part]
            leaf = target.functions + ends[chain].leaf
            x = (x ^ constants(world, target)[leaf]) * MULTIPLIER & MASK
            counted["leaves"] = counted.get("leaves", 0) + 1
        total += x
    return total & MASK


def test_a_visit_of_all_modules_calls_every_function_once():
    world, counted = plan(SMALL), {}
    modules = [part for part in world.parts if part.kind == "module"]
    assert sum(walk(world, part, counted) for part in modules) & MASK == checksum(world)
    assert sum(counted.values()) == calls(world)
    counted.pop("leaves")
    assert set(counted.values()) == {1}
    assert len(counted) == len(world.parts) * SMALL.functions


@pytest.mark.parametrize("name", layout.PYNAMIC)
def test_each_part_of_a_layout_has_a_place_of_its_own_on_the_search_path(name):
    world = plan(dataclasses.replace(SMALL, layout=name, modules=20, utilities=9))
    assert len({part.path for part in world.parts}) == 29
    for part in world.parts:
        if part.kind == "utility":
            assert part.path.rpartition("/")[0] in part.search
    assert len(world.imports) == 20


def test_libraries_need_only_libraries_before_them_and_each_is_owned_once():
    world = plan(PRESETS["llnl-495"])
    assert all(n < part.number for part in world.parts for n in part.needs)
    owned = [number for part in world.parts for number in part.owns]
    assert sorted(owned) == list(range(215))


def test_the_presets_have_the_published_numbers_of_objects():
    assert {name: len(plan(settings).parts) for name, settings in PRESETS.items()} == {
        "llnl-495": 495,
        "cload-710": 710,
    }


def test_the_search_path_of_a_layout_ends_where_the_libraries_are():
    assert plan(Cload(libraries=3, layout="each")).search == ("lib/0000", "lib/0001", "lib/0002")
    long = plan(Cload(libraries=3, layout="long", directories=5))
    assert len(long.search) == 6
    assert {part.path.rpartition("/")[0] for part in long.parts} == {long.search[-1]}


@pytest.mark.parametrize(
    "settings, said",
    [
        (Pynamic(modules=0), "modules cannot be 0"),
        (Pynamic(layout="heap"), "layouts are flat, packages, path"),
        (Cload(layout="flat"), "layouts are one, each, long"),
    ],
)
def test_settings_that_cannot_be_meant_are_an_error_that_says_which(settings, said):
    with pytest.raises(UsageError, match=said):
        plan(settings)
