"""When to checkpoint: published points, the exact form, the simulation, spreads and their fits."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import random

import numpy as np
import pytest

from brigade.errors import BrigadeError
from brigade.model.checkpoint import advise as advise_module
from brigade.model.checkpoint import daly, fit, measured, optimum, pattern, simulate, spread
from brigade.model.checkpoint.advise import advise, choose
from brigade.model.checkpoint.check import check
from brigade.model.checkpoint.job import Job, Plan, cost, timing, wall_s
from brigade.model.checkpoint.pattern import Timing
from brigade.model.checkpoint.spread import Spread

JOB = Job(
    work_s=100 * 3600.0, nodes=64, cores=32, bytes=2e12, rate=10e9, writers=64, writer_rate=1e9,
    copy_rate=2e9, mtbf_s=6 * 3600.0, start_s=120.0, slowdown=1.1, survive=0.7,
    spread=Spread("lognormal", 0.3),
)  # fmt: skip


def alone(work: float, write: float, mtbf: float, restart: float, **more) -> Timing:
    return Timing(
        work_s=work, copy_s=more.pop("copy_s", 0.0), write_s=np.array([write]),
        weights=np.ones(1), behind=more.pop("behind", False), mtbf_s=mtbf, restart_s=restart,
        **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mtbf_min", "published_min", "digits"), [(24 * 60, 117, 0), (6 * 60, 57, 0), (15, 9.1, 1)]
)
def test_dalys_published_optima_are_found(mtbf_min, published_min, digits):
    """Figures 3 to 5 of his paper: dumps of 5 minutes, restarts of 10, 500 hours of work."""
    assert round(daly.daly(5, mtbf_min), digits) == published_min
    # and by search in the exact form, which knows nothing of the formula
    job = dataclasses.replace(
        JOB, work_s=500 * 3600, mtbf_s=60 * mtbf_min, spread=Spread(), survive=0,
        bytes=300.0, rate=1.0, start_s=300.0, writer_rate=math.inf,
    )  # fmt: skip
    assert job.write_s == 300 and job.restart_s == 600
    found = optimum.interval(job, "sync")
    assert found == pytest.approx(60 * published_min, rel=0.01)
    assert found == pytest.approx(60 * daly.exact(5, mtbf_min), rel=1e-3)
    assert wall_s(job, Plan("sync", found)) == pytest.approx(
        60 * daly.total(500 * 60, found / 60, 5, mtbf_min, 10), rel=1e-9
    )


def test_dalys_formula_ends_where_a_dump_takes_twice_the_time_between_failures():
    assert daly.daly(10, 5) == 5 == daly.daly(100, 5)
    for delta in (1e-6, 0.01, 0.1, 0.5):
        assert daly.daly(delta, 1) == pytest.approx(daly.exact(delta, 1), rel=0.02)
        assert daly.young(delta, 1) > daly.exact(delta, 1)


@pytest.mark.parametrize("x", [-1 / math.e, -0.36, -0.2, -1e-5, 0.0])
def test_lambert_w_is_the_inverse_of_w_exp_w(x):
    w = daly.lambert_w(x)
    assert w >= -1 and w * math.exp(w) == pytest.approx(x, abs=1e-12)


@pytest.mark.parametrize(("work", "slowdown"), [(3, 1.5), (10, 1.5), (10, 1.0), (40, 2.0)])
def test_one_level_written_behind_has_the_form_that_renewal_theory_gives(work, slowdown):
    """From one checkpoint's arrival to the next: M (1 - exp(-X/M)) exp((R + Y)/M), where X is left
    of the interval and the next one's way, and Y is the whole of both."""
    copy, way, mtbf, restart = 1.0, 6.0, 100.0, 7.0
    left = max(0.0, work - way / slowdown) + copy + way
    whole = work + copy + way
    form = mtbf * (1 - math.exp(-left / mtbf)) * math.exp((restart + whole) / mtbf)
    parts = alone(work, way, mtbf, restart, copy_s=copy, behind=True, slowdown=slowdown)
    assert pattern.expected(parts).steady_s == pytest.approx(form, rel=1e-12)


def test_without_failures_only_waiting_and_slower_computing_are_left():
    rare = 1e12
    parts = alone(100, 30, rare, 1, copy_s=2, behind=True, slowdown=1.5)
    assert pattern.expected(parts).steady_s == pytest.approx(102 + 30 / 3, rel=1e-9)
    assert pattern.quiet_s(parts) == pytest.approx(102 + 30 / 3)
    parts = alone(100, 30, rare, 1, copy_s=2, every=3)
    assert pattern.expected(parts).steady_s == pytest.approx(3 * 102 + 30, rel=1e-9)
    slow = alone(10, 30, rare, 1, copy_s=2, behind=True, slowdown=1.5)
    assert pattern.quiet_s(slow) == pytest.approx(30 + 2), "the next one waits for the way"


GRID = list(
    itertools.product((False, True), (1, 2, 7), (0.0, 0.8), (4.0, 25.0), (60.0, 900.0), (0.0, 0.5))
)


def test_the_exact_form_agrees_with_the_simulation_over_a_grid():
    """96 jobs, 80 runs each: how many standard errors the simulated mean is off. Of so many true
    forms two lie beyond 2.6 in the mean, and none (1 of 160) beyond 4; their squares' mean is 1."""
    rng = np.random.default_rng(7)
    off = []
    for behind, every, survive, work, mtbf, sigma in GRID:
        writers, mean = 12, 9.0
        shape = Spread("lognormal", sigma) if sigma else Spread()
        values, weights = spread.largest(shape, writers)
        copy = 1.5 if behind or every > 1 else 0.0
        parts = Timing(
            work, copy, values * mean, weights, behind, mtbf, 8.0, every, 1.3, survive, 2.0
        )
        count = max(2, 30 // every)
        draw = simulate.writer(shape, mean, writers, rng)
        job = simulate.Job(
            count, every, work, copy, draw, behind, 1.3, mtbf, survive, 8.0, 2.0
        )  # fmt: skip
        runs = [simulate.simulate(job, rng).wall_s for _ in range(80)]
        band = simulate.band(runs, 1.0)
        off.append((pattern.total_s(parts, count * every * work) - band.mean)
                   / (band.high - band.mean))  # fmt: skip
    assert max(map(abs, off)) < 4, GRID[int(np.argmax(np.abs(off)))]
    assert sum(abs(one) > 2.6 for one in off) <= 4
    assert abs(np.mean(off)) < 0.4 and 0.6 < np.mean(np.square(off)) < 1.6


@pytest.mark.parametrize("way", ["sync", "partial", "full"])
@pytest.mark.parametrize("kind", [Spread(), Spread("weibull", 3.0), Spread("gumbel", 0.2)])
def test_a_job_agrees_with_its_simulation(way, kind):
    every = 1 if way == "full" else 3
    job = dataclasses.replace(JOB, spread=kind, survive=0 if way == "full" else 0.7)
    assert check(job, Plan(way, 1200.0, every), 60, seed=3).agrees


def test_the_largest_number_that_was_tried_is_named_as_such():
    room = optimum.Flat(600.0, 2400.0)
    for every, said in ((max(optimum.EVERY), True), (4, False)):
        words = advise_module._interval(JOB, cost(JOB, Plan("sync", 1200.0, every)), room)
        assert f"every {every}th one to shared storage" in words
        assert ("were not tried" in words) == said


def test_few_rounds_of_many_kinds_do_not_make_writes_look_alike():
    rng = np.random.default_rng(2)
    for rounds in (2, 3, 10):
        rows = [
            {"variant": "brigade", "ranks": 4, "pattern": cell, "record": 1,
             "write_total": float((1 + cell) * draw)}
            for cell in range(2000 // rounds)
            for draw in np.exp(0.3 * rng.standard_normal(rounds))
        ]  # fmt: skip
        found = measured.parse(json.dumps(rows))
        logs = np.log(found.seconds)
        assert np.std(logs) == pytest.approx(0.3, rel=0.06), rounds


def test_samples_of_one_kind_are_taken_as_they_are():
    seconds = [1.0, 1.5, 0.7, 2.0]
    rows = [{"variant": "brigade", "ranks": 4, "pattern": "a", "record": 1, "write_total": one}
            for one in seconds]  # fmt: skip
    assert measured.parse(json.dumps(rows)).seconds == pytest.approx(seconds)


@pytest.mark.parametrize("writers", [4, 24, 40])
@pytest.mark.parametrize(
    "kind",
    [
        Spread("lognormal", 0.8, of=16),
        Spread("gumbel", 0.3, of=16),
        spread.of_samples([1.0, 1.1, 1.3, 1.6, 3.0], of=16),
    ],
)
def test_writers_that_are_no_multiple_of_a_samples_are_simulated_as_many_as_they_are(kind, writers):
    draw = simulate.writer(kind, 1.0, writers, np.random.default_rng(5))
    drawn = [draw() for _ in range(20_000)]
    assert np.mean(drawn) == pytest.approx(spread.factor(kind, writers), rel=0.02)
    job = dataclasses.replace(JOB, writers=writers, writer_rate=math.inf, spread=kind)
    assert check(job, Plan("sync", 1200.0), 60, seed=3).agrees


@pytest.mark.parametrize(
    "kind", [Spread("lognormal", 0.5), Spread("weibull", 2.0), Spread("gumbel", 0.15)]
)
def test_the_slowest_of_many_is_what_drawing_them_gives(kind):
    rng = np.random.default_rng(5)
    assert spread.factor(kind, 1) == pytest.approx(1.0, abs=0.01)
    drawn = [simulate.writer(kind, 1.0, 100, rng)() for _ in range(4000)]
    error = np.std(drawn) / math.sqrt(len(drawn))
    assert spread.factor(kind, 100) == pytest.approx(np.mean(drawn), abs=4 * error)
    assert spread.factor(kind, 10_000) > spread.factor(kind, 100) > 1.2


def test_samples_that_are_the_slowest_of_some_give_the_slowest_of_more():
    one = Spread("weibull", 2.0)
    eight = dataclasses.replace(one, of=8)
    assert spread.factor(eight, 800) == pytest.approx(spread.factor(one, 100), rel=1e-9)
    values = (0.5, 1.0, 1.5)
    both = spread.of_samples(values)
    assert spread.factor(both, 1) == pytest.approx(1.0)
    assert spread.factor(both, 2) == pytest.approx((0.5 * 1 + 1.0 * 3 + 1.5 * 5) / 9)


@pytest.mark.parametrize(
    ("kind", "draw", "shape"),
    [
        ("lognormal", lambda rng, n: rng.lognormal(1.0, 0.6, n), 0.6),
        ("weibull", lambda rng, n: 3 * rng.weibull(1.7, n), 1.7),
        ("gumbel", lambda rng, n: rng.gumbel(5.0, 0.8, n), 0.8 / (5 + spread.EULER * 0.8)),
    ],
)
def test_what_samples_were_drawn_from_is_found_again(kind, draw, shape):
    samples = [one for one in draw(np.random.default_rng(11), 400) if one > 0]
    best = fit.fits(samples)[0]
    assert best.spread.kind == kind
    assert best.spread.shape == pytest.approx(shape, rel=0.12)
    assert best.mean_s == pytest.approx(np.mean(samples), rel=0.05)
    assert best.p > 0.05 and best.distance < 0.05
    others = fit.fits(samples)[1:]
    assert min(one.p for one in others) < 0.05, "a wrong kind is told"


@pytest.mark.parametrize("samples", [[1.0] * 20, [1.0, 2.0], [0.0, *range(1, 20)], [-1.0] * 9])
def test_samples_that_have_no_distribution_are_refused(samples):
    with pytest.raises(BrigadeError):
        fit.fits(samples)


def test_measured_writes_are_read_from_all_that_benchmarks_leave():
    plain = measured.parse("# a comment\n0.5 0.75\n1.0 # another\n")
    assert plain.seconds == (0.5, 0.75, 1.0) and plain.of == 1
    rng = random.Random(1)
    samples = [
        {"variant": name, "ranks": ranks, "pattern": "strided", "record": record,
         "component": "ompio", "write": {"total": record * rng.uniform(0.9, 1.1)}}
        for name in ("brigade", "romio") for ranks in (4, 16) for record in (1, 100)
        for _ in range(5)
    ]  # fmt: skip
    found = measured.parse(json.dumps({"samples": samples}))
    assert (len(found.seconds), found.of) == (10, 16)
    relative = np.array(found.seconds) / np.mean(found.seconds)
    assert relative.min() > 0.8 and relative.max() < 1.2, "kinds of writes are not mixed up"
    columns = ["pattern", "record", "ranks", "variant", "component", "write_total"]
    rows = [["strided", 1, 4, "romio", "", 0.5], ["strided", 1, 4, "romio", "", 0.7]]
    table = json.dumps({"samples": {"columns": columns, "rows": rows}})
    assert measured.parse(table, "romio").seconds == pytest.approx((0.5, 0.7))
    for text in (table, "{", "[1]", "", "0.5 x", "-1 2", json.dumps({"a": 1})):
        with pytest.raises(BrigadeError):
            measured.parse(text)


@pytest.mark.parametrize("way", ["sync", "partial", "full"])
def test_no_other_interval_is_better_and_the_flat_part_is_as_good_as_said(way):
    found = optimum.best(JOB, way)
    plan = found.plan
    for factor in (0.5, 0.8, 0.95, 1.05, 1.25, 2.0):
        other = Plan(way, factor * plan.interval_s, plan.every)
        assert wall_s(JOB, other) >= found.wall_s
    room = optimum.flat(JOB, plan)
    for end, out in ((room.low_s, 0.98), (room.high_s, 1.02)):
        assert wall_s(JOB, Plan(way, end, plan.every)) <= 1.0101 * found.wall_s
        assert wall_s(JOB, Plan(way, out * end, plan.every)) > 1.01 * found.wall_s


def test_costs_add_up():
    for way in ("sync", "partial", "full"):
        one = optimum.best(JOB, way)
        parts = one.compute_s + one.checkpoints_s + one.failures_s
        assert parts == pytest.approx(one.wall_s) and min(one.checkpoints_s, one.failures_s) > 0
        assert one.processor_hours == pytest.approx(one.wall_s * 64 * 32 / 3600)
        assert one.mean_rate < one.peak_rate


def test_the_least_rate_is_where_the_next_checkpoint_begins_to_wait():
    plan = Plan("partial", 1800.0)
    job = dataclasses.replace(JOB, spread=Spread(), mtbf_s=1e12, writer_rate=math.inf)
    least = cost(job, plan).least_rate
    full = 1800 * 1.1 + job.copy_s
    for rate, waits in ((1.05 * least, False), (0.95 * least, True)):
        quiet = pattern.quiet_s(timing(dataclasses.replace(job, rate=rate), plan))
        assert (quiet > full * 1.001) == waits


def test_as_many_writers_as_fill_the_rate_and_no_more():
    alike = dataclasses.replace(JOB, spread=Spread())
    assert optimum.writers(alike, 4096) == 10
    uneven = dataclasses.replace(JOB, spread=Spread("lognormal", 0.5))
    assert optimum.writers(uneven, 4096) == 10, "more only wait for a slower slowest"
    assert optimum.writers(alike, 4) == 4


@pytest.mark.parametrize(("of", "count"), [(64, 16), (64, 1), (1024, 700), (8, 6), (4096, 12)])
@pytest.mark.parametrize("shape", [0.0, 0.1, 0.4, 1.5])
def test_the_writers_that_are_advised_are_no_slower_than_those_of_the_job(of, count, shape):
    job = dataclasses.replace(JOB, spread=Spread("lognormal", shape, of=of), writers=count)
    advised = optimum.writers(job, 4096)
    asked = dataclasses.replace(job, writers=advised)
    assert asked.write_s <= job.write_s * optimum.NEAR
    assert advised == count or advised >= of, "of others nothing was measured"


def test_the_smallest_rate_keeps_the_budget():
    plan = Plan("sync", 1.0, 1)
    rate = optimum.smallest(JOB, plan, 0.1)
    assert rate is not None
    for factor, within in ((1.02, True), (0.95, False)):
        asked = dataclasses.replace(JOB, rate=factor * rate, writer_rate=math.inf)
        assert (optimum.best(asked, "sync", 1).overhead <= 0.1) == within
    assert optimum.smallest(dataclasses.replace(JOB, start_s=36000.0), plan, 0.01) is None


def test_the_advice_takes_the_simplest_way_that_is_as_good():
    costs = optimum.all_ways(JOB)
    assert choose(costs).plan.way != "sync"
    easy = dataclasses.replace(JOB, mtbf_s=1e9)
    assert choose(optimum.all_ways(easy)).plan.way == "sync"
    words = " ".join(advise(JOB, costs, 0.1, 2048).lines)
    assert all(name in words for name in ("Interval:", "Way:", "Writers: 10", "Rate:"))


def test_more_failures_survived_on_the_nodes_send_fewer_checkpoints_to_shared_storage():
    plans = [
        optimum.best(dataclasses.replace(JOB, survive=share), "sync").plan.every
        for share in (0.0, 0.5, 0.95)
    ]
    assert plans[0] == 1 and plans == sorted(plans) and plans[2] > plans[1]


def test_a_job_that_cannot_end_takes_for_ever():
    assert wall_s(dataclasses.replace(JOB, mtbf_s=1.0), Plan("sync", 3600.0)) == math.inf
