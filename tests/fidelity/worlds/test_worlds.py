"""Random programs start as they do without Brigade: same output, same end, same loaded paths.

A world that fails is made smaller and written to kept/, where it is a test from then on. Fifty
fixed worlds, in which every feature is, run always; fifty more, and a thousand from a new seed each
time (BRIGADE_TEST_SEED repeats one), in `make check-all`. `python -m worlds SEED`, started in
tests/fidelity, shows one by hand.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter
from pathlib import Path

import pytest

from .build import Builder, lib_token
from .conftest import Court
from .describe import FEATURES, ElfWorld, Library, features, from_json, to_json
from .draw import draw
from .shrink import keep, kept, shrink

FIXED = [str(i) for i in range(50)]
FURTHER = [pytest.param(str(i), marks=pytest.mark.all) for i in range(50, 100)]
SEED = os.environ.get("BRIGADE_TEST_SEED") or str(secrets.randbelow(10**9))
MORE = [f"{SEED}-{i}" for i in range(1000)]
KEPT = kept()


def judge_drawn(court: Court, seed: str) -> None:
    verdict = court.verdict(seed)
    if verdict.differences:
        small = shrink(draw(seed), court.builder, next(iter(verdict.differences)))
        path = keep(small, f"seed-{seed}")
        pytest.fail(f"world {seed} differs; kept, smaller, as {path}\n{verdict}", pytrace=False)


@pytest.mark.parametrize("seed", [*FIXED, *FURTHER])
def test_a_fixed_world_runs_the_same_under_each_view(court: Court, seed: str) -> None:
    judge_drawn(court, seed)


@pytest.mark.all
@pytest.mark.parametrize("seed", MORE)
def test_a_new_world_runs_the_same_under_each_view(court: Court, seed: str) -> None:
    judge_drawn(court, seed)


@pytest.mark.parametrize("name", KEPT)
def test_a_world_that_once_failed_runs_the_same(court: Court, name: str) -> None:
    verdict = court.judge(KEPT[name])
    assert not verdict.differences, str(verdict)


def test_the_fixed_worlds_have_every_feature() -> None:
    had = Counter(feature for seed in FIXED for feature in features(draw(seed)))
    assert [feature for feature in FEATURES if had[feature] < 3] == []


def test_a_seed_always_draws_the_same_world_and_it_survives_json() -> None:
    for seed in FIXED:
        assert draw(seed) == draw(seed) == from_json(to_json(draw(seed)))


def one_library() -> ElfWorld:
    world = ElfWorld([Library("l0", "lib", "libl0.so", "libl0.so")])
    world.program.needs = ["l0"]
    world.program.search.kind = "runpath"
    world.program.search.paths = ["{tree}/nowhere", "$ORIGIN/../lib"]
    world.program.script = [["iterate"]]
    return world


def test_libraries_come_from_the_staged_folder(court: Court) -> None:
    verdict = court.judge(one_library())
    assert verdict.works and not verdict.differences
    assert verdict.loads >= 2  # once with each image, under each view
    assert verdict.forked == 2  # stopped before main, and before constructors


def test_both_kinds_of_search_path_can_stand_in_one_file(tmp_path: Path) -> None:
    world = one_library()
    world.program.search.kind = "both"
    world.program.search.ignored = ["{tree}/ignored"]
    program = Builder(tmp_path / "objects").build(world, tmp_path, tmp_path / "scratch")
    tags = os.popen(f"LC_ALL=C readelf -d {program}").read()
    assert f"Library rpath: [{tmp_path}/ignored]" in tags
    assert f"Library runpath: [{tmp_path}/nowhere:$ORIGIN/../lib]" in tags
    assert "/" not in lib_token()[:1]


def test_a_difference_is_seen_and_the_world_shrinks_to_what_makes_it(
    court: Court, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the "view" is a lie told to the program: another LD_LIBRARY_PATH."""
    from world import World

    world = one_library()
    world.libraries += [Library(f"l{i}", "opt/a", f"libl{i}.so", f"libl{i}.so") for i in (1, 2)]
    world.program.script = [["open", "N", "{tree}/opt/a/libl1.so"], ["next"], ["iterate"]]
    world.libraries[0].features = ["constructor", "ifunc"]
    honest = World.run

    def lie(self: World, *command: str, **options):
        options["env"] = {**options["env"], "LD_PRELOAD": f"{self.tree}/opt/a/libl2.so"}
        return honest(self, *command, **options)

    monkeypatch.setattr(World, "run", lie)
    way = "interpose, whole image"
    assert way in court.judge(world).differences
    small = shrink(world, court.builder, way)
    assert len(small.libraries) <= 1 and len(small.program.script) <= 1
    assert sum(len(library.features) for library in small.libraries) == 0
