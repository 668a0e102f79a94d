"""What a start-up asks: node caches, profiles, JSON."""

from __future__ import annotations

import dataclasses
import json

import pytest

from brigade.errors import BrigadeError
from brigade.model import demand
from brigade.model.demand import Demand
from brigade.model.from_profile import from_profile
from brigade.model.system import System
from brigade.profile.profile import (
    KERNEL,
    SHARED,
    Cell,
    Identical,
    MountUse,
    Overhead,
    Profile,
    RankTimes,
    ServerCount,
)

FORGETFUL = System(caches_names=False, caches_absent=False)
CACHING = System(caches_names=True, caches_absent=True)


def profile(**changes) -> Profile:
    """Two ranks on one node, alike: 30 opens that work, 50 in vain, 20 stats, 5 of them by
    descriptor; opens on a mount that is not shared, and 7 after the start-up."""
    one = [
        ("/soft", "open", False, True, 30),
        ("/soft", "open", True, True, 50),
        ("/soft", "stat", False, True, 15),
        ("/soft", "stat", False, False, 5),
        ("/soft", "list", False, True, 2),
        ("/proc", "open", False, True, 99),
        ("/soft", "open", False, True, 7),
    ]
    cells = [
        Cell(
            rank,
            "user" if calls == 7 else "imports",
            mount,
            kind,
            failed,
            by_path,
            False,
            calls,
            0.001 * calls,
            0,
        )  # fmt: skip
        for rank in (0, 1)
        for mount, kind, failed, by_path, calls in one
    ]
    given = Profile(
        brigade="0", made="", command=["srun", "-n", "2", "app"], program=["app"], launcher="srun",
        mechanism="seccomp", seen=[], lost=[], overhead=Overhead(stops=0, stopped_s=0.0),
        ranks=[RankTimes(r, "n0", 1, "app", 0.0, 0.1, 2.102, None, 3.0, 0) for r in (0, 1)],
        mounts=[
            MountUse("/soft", "moosefs", "", SHARED),
            MountUse("/proc", "proc", "", KERNEL),
        ],
        cells=cells,
        files={"/soft/a": 1000, "/soft/b": 3000},
    )  # fmt: skip
    return dataclasses.replace(given, **changes)


def test_a_node_that_remembers_asks_again_only_to_open():
    found = demand.from_counts(CACHING, lookups=100, absent=300, opens=50)
    assert found.first == {"lookup": 400, "open": 50}
    assert found.further == {"open": 50}
    assert found.requests(ranks=24, nodes=2) == 2 * 450 + 22 * 50


def test_a_node_that_forgets_asks_everything_for_every_rank():
    found = demand.from_counts(FORGETFUL, lookups=100, absent=300, opens=50)
    assert found.requests(ranks=24, nodes=2) == 24 * 450


def test_what_is_absent_can_be_forgotten_alone():
    system = System(caches_names=True, caches_absent=False)
    found = demand.from_counts(system, lookups=100, absent=300, opens=50)
    assert found.further == {"lookup": 300, "open": 50}
    never = dataclasses.replace(system, attribute_life_s=0.0)
    assert demand.from_counts(never, lookups=100).further == {"lookup": 100}


def test_a_profile_counts_only_calls_by_path_on_shared_mounts():
    found = from_profile(profile(), FORGETFUL)
    assert found.first == {"lookup": 30 + 50 + 15 + 2, "open": 30, "readdir": 2}
    assert found.further == found.first
    assert found.node_bytes == found.unpacked_bytes == 4000
    assert found.cpu_s == pytest.approx(2.102 - 0.102)
    assert "requests" in found.assumed


def test_a_profile_under_brigade_tells_what_is_missed_and_how_long_a_rank_works():
    less = [profile().cells[0]._replace(calls=4), profile().cells[7]._replace(calls=4)]
    times = [RankTimes(r, "n0", 1, "app", 0.0, 0.1, 1.53, None, 2.0, 0) for r in (0, 1)]
    found = from_profile(profile(after=profile(cells=less, ranks=times)), FORGETFUL)
    assert found.misses == 4
    assert found.brigade_cpu_s == pytest.approx(1.5)


def test_a_path_that_a_rank_asks_twice_is_remembered():
    alike = Identical(calls=194, alike=194, paths=40)
    caching = from_profile(profile(identical=alike), CACHING)
    assert caching.first["lookup"] == pytest.approx(97 * 40 * 2 / 194)
    assert caching.further == {"open": 30}
    assert from_profile(profile(identical=alike), FORGETFUL).first["lookup"] == 97


def test_requests_that_were_counted_are_taken_before_rules():
    counted = [
        ServerCount("moosefs", "/soft", "warm", 7, 0),
        ServerCount("moosefs", "/soft", "cold", 516, 8_000),
    ]
    found = from_profile(profile(server=counted), FORGETFUL)
    assert found.requests(ranks=2, nodes=1) == pytest.approx(516)
    assert found.node_bytes == 8_000
    assert "requests" not in found.assumed and "516" in found.source


def test_time_that_tracing_took_is_not_the_programs():
    cost = Overhead(stops=100, stopped_s=1.0, traced_s=4.0, plain_s=2.0)
    measured = from_profile(profile(overhead=cost), FORGETFUL)
    assert measured.cpu_s == pytest.approx(1.0)
    stops_only = Overhead(stops=100, stopped_s=1.0)
    guessed = from_profile(profile(overhead=stops_only), FORGETFUL)
    assert guessed.cpu_s == pytest.approx(1.5)
    assert guessed.spread_of("cpu_s") > measured.spread_of("cpu_s")


def test_a_profile_without_ranks_says_what_to_do():
    with pytest.raises(BrigadeError, match="no rank") as failure:
        from_profile(profile(ranks=[]), FORGETFUL)
    assert "brigade profile" in str(failure.value.hint)


def test_a_demand_comes_back_from_json_as_it_was(tmp_path):
    given = Demand(first={"lookup": 10.0}, cpu_s=1.5, assumed=("cpu_s",), spread={"cpu_s": 0.1})
    (tmp_path / "demand.json").write_text(json.dumps(demand.to_json(given)))
    assert demand.load(tmp_path / "demand.json") == given


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"first": {"lookup": -1}}, "first"),
        ({"first": 5}, "first"),
        ({"cpu_s": "much"}, "cpu_s"),
        ({"cpu_s": None}, "cpu_s"),
        ({"node_bytes": float("inf")}, "node_bytes"),
        ({"colour": "blue"}, "colour"),
        ({"schema": 7}, "schema"),
    ],
)
def test_a_demand_that_cannot_be_is_named(tmp_path, change, named):
    path = tmp_path / "demand.json"
    path.write_text(json.dumps({**demand.to_json(Demand()), **change}))
    with pytest.raises(BrigadeError, match=named) as failure:
        demand.load(path)
    assert str(path) in failure.value.message
