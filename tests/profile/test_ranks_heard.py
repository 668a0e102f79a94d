"""A profile of some ranks does not pass for one of all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from brigade.job.observed import unheard


def profile(*ranks: int) -> Any:
    return SimpleNamespace(ranks=[SimpleNamespace(rank=rank) for rank in ranks])


def test_ranks_that_left_no_trace_are_said_to_be_lost():
    (said,) = unheard(4, profile(0, 1))
    assert said.startswith("2 of 4 ranks left no trace")
    assert unheard(2, profile(0, 1)) == []
    assert unheard(2, profile(0, 1, 1, 2)) == []


def test_nothing_is_said_where_nobody_knows_how_many_there_are():
    assert unheard(None, profile(0)) == []
    assert unheard(1, profile(-1)) == []
    assert unheard(1, profile()) == []
