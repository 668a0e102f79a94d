"""Do two variants differ? What pairs can show, and what they cannot."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brigade.study import pairs
from brigade.study.pairs import compare, needed

SECONDS = st.floats(0.1, 100)


def brute_p(logs: list[float]) -> float:
    """The two-sided p of the signed-rank test, by all choices of signs (no ties)."""
    ranks = [sorted(map(abs, logs)).index(abs(log)) + 1 for log in logs]
    smaller = min(
        sum(r for r, log in zip(ranks, logs) if log > 0),
        sum(r for r, log in zip(ranks, logs) if log < 0),
    )
    sums = [
        sum(r for r, up in zip(ranks, signs) if up)
        for signs in itertools.product((0, 1), repeat=len(logs))
    ]
    return min(1.0, 2 * sum(total <= smaller for total in sums) / len(sums))


@given(st.lists(st.floats(0.001, 3), min_size=1, max_size=9, unique=True), st.data())
def test_p_is_that_of_all_choices_of_signs(sizes, data):
    signs = data.draw(st.lists(st.sampled_from([1, -1]), min_size=len(sizes), max_size=len(sizes)))
    logs = [size * sign for size, sign in zip(sizes, signs)]
    if len({round(abs(log), 9) for log in logs}) < len(logs):
        return
    found = compare([math.exp(log) for log in logs], [1.0] * len(logs))
    assert found.p == pytest.approx(brute_p(logs))


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=12))
def test_a_difference_is_claimed_exactly_if_the_interval_leaves_out_1(seconds):
    ones, others = zip(*seconds)
    found = compare(list(ones), list(others))
    assert found.low <= found.ratio <= found.high
    ties = len({round(abs(math.log(a / b)), 9) for a, b in seconds}) < len(seconds)
    if not found.differs and found.pairs >= needed() and not ties:
        assert found.low <= 1 + 1e-9 and found.high >= 1 - 1e-9


def test_interval_and_test_agree_for_all_signs_of_seven_pairs():
    for signs in itertools.product((1, -1), repeat=7):
        logs = [sign * size for sign, size in zip(signs, (0.1, 0.23, 0.37, 0.41, 0.59, 0.67, 0.83))]
        found = compare([math.exp(log) for log in logs], [1.0] * 7)
        assert found.differs == (found.low > 1 or found.high < 1)


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=10))
def test_turning_the_question_round_turns_the_answer_round(seconds):
    ones, others = map(list, zip(*seconds))
    there, back = compare(ones, others), compare(others, ones)
    assert there.p == pytest.approx(back.p)
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert there.differs == back.differs


def test_few_pairs_show_nothing_however_far_apart():
    assert needed() == 6
    assert not compare([1.0] * 5, [9.0] * 5).differs
    assert compare([1.0] * 6, [9.0] * 6).differs


def test_the_level_of_many_comparisons_needs_more_pairs():
    level = pairs.LEVEL / 4
    assert not compare([1.0] * 6, [9.0] * 6, level).differs
    assert compare([1.0] * needed(level), [9.0] * needed(level), level).differs


def test_a_machine_that_slows_down_for_all_makes_no_difference():
    drift = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    found = compare([2 * seconds for seconds in drift], drift)
    assert found.ratio == pytest.approx(2)
    assert found.low == pytest.approx(2) and found.high == pytest.approx(2)


def test_alike_needs_pairs_that_could_have_shown_a_difference():
    near = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01]
    assert compare(near, [1.0] * 8).alike
    assert not compare(near[:4], [1.0] * 4).alike
    assert not compare([1.0, 1.2, 0.8, 1.3, 0.7, 1.2, 0.8, 1.1], [1.0] * 8).alike
