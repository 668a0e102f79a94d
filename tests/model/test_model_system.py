"""The machine of the model, and its JSON."""

from __future__ import annotations

import dataclasses
import json

import pytest

from brigade.errors import BrigadeError
from brigade.model import show, system
from brigade.model.demand import Demand
from brigade.model.system import System


def test_a_system_comes_back_from_json_as_it_was(tmp_path):
    given = dataclasses.replace(
        system.typical(),
        service_s=3e-4,
        service_by_kind={"open": 5e-4},
        assumed=("hop_s",),
        spread={"service_s": 0.02},
    )
    system.save(given, tmp_path / "system.json")
    assert system.load(tmp_path / "system.json") == given


def test_what_a_file_leaves_out_is_assumed():
    found = system.from_json({"schema": 1, "service_s": 1e-3, "servers": 2})
    assert found.service_s == 1e-3 and found.servers == 2
    assert "service_s" not in found.assumed and "round_trip_s" in found.assumed
    assert found.spread_of("service_s") == 0.0
    assert found.spread_of("round_trip_s") == system.ASSUMED_SPREAD


def test_a_typical_system_measures_nothing():
    assert set(system.typical().assumed) == set(system.MEASURABLE)


def test_an_assumption_that_is_false_is_named_as_such():
    forgetful = dataclasses.replace(system.typical(), caches_names=False)
    said = show.assumed(Demand(), forgetful)
    assert "that nodes do not remember names" in said
    assert "that nodes remember absent names" in said


def test_a_kind_without_a_time_of_its_own_takes_the_common_one():
    found = System(service_s=1e-3, service_by_kind={"open": 2e-3})
    assert (found.service("open"), found.service("lookup")) == (2e-3, 1e-3)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"service_s": -1}, "service_s"),
        ({"service_s": "fast"}, "service_s"),
        ({"service_s": float("nan")}, "service_s"),
        ({"servers": 0}, "servers"),
        ({"servers": 1.5}, "servers"),
        ({"caches_names": 1}, "caches_names"),
        ({"link_bandwidth": 0}, "link_bandwidth"),
        ({"spread": {"service_s": -0.1}}, "spread"),
        ({"colour": "blue"}, "colour"),
        ({"schema": 2}, "schema"),
    ],
)
def test_a_value_that_cannot_be_is_named(tmp_path, change, named):
    path = tmp_path / "system.json"
    path.write_text(json.dumps({**system.to_json(System()), **change}))
    with pytest.raises(BrigadeError, match=named) as failure:
        system.load(path)
    assert str(path) in failure.value.message


@pytest.mark.parametrize("text", [None, "", "[]", "{}", "nonsense"])
def test_what_is_no_system_is_one_clear_error(tmp_path, text):
    path = tmp_path / "system.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BrigadeError, match="system.json") as failure:
        system.load(path)
    assert failure.value.hint
