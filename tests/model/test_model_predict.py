"""Start-ups at any width: what bounds them, what a band holds, how staging is counted."""

from __future__ import annotations

import dataclasses
import math
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from brigade.errors import UsageError
from brigade.model import demand, fit, startup, system
from brigade.model.demand import Demand
from brigade.model.fit import Sample
from brigade.model.predict import Factors, predict, steady_seconds
from brigade.model.system import System

ROOT = Path(__file__).resolve().parents[2]
STEPS_C = r"""
#include <stdio.h>
#include "stream/plan.h"
int main(void)
{
    for (unsigned n = 2; n <= 33; n++)
        for (unsigned r = 1; r <= 9; r++)
            for (unsigned s = 1; s <= 40; s += 13) {
                struct plan plan;
                unsigned long long last = 0;
                plan_spread(&plan, n, r, s);
                for (unsigned k = 0; k < s; k++)
                    for (unsigned node = 0; node < n; node++)
                        if (plan_forwards(&plan, node, k) && plan_time(&plan, node, k) >= last)
                            last = plan_time(&plan, node, k) + 1;
                printf("%u %u %u %llu\n", n, r, s, last);
            }
}
"""
PROGRAM = Demand(
    first={"lookup": 4000, "open": 500}, further={"open": 500}, node_bytes=2e8, cpu_s=2.0,
    image_bytes=6e7, unpacked_bytes=2e8,
)  # fmt: skip
MACHINE = System(service_s=1e-4, servers=1)


def test_a_narrow_start_is_bound_by_processors_and_a_wide_one_by_the_metadata_server():
    narrow = predict(PROGRAM, MACHINE, 4, 4).direct
    wide = predict(PROGRAM, MACHINE, 4096, 512).direct
    assert narrow.bottleneck == startup.PROCESSORS and narrow.helps
    assert wide.bottleneck == startup.METADATA and wide.utilisation > 0.95
    requests = 512 * 4500 + (4096 - 512) * 500
    assert wide.requests == requests
    assert wide.seconds == pytest.approx(requests * 1e-4, rel=0.02)


def test_brigade_does_not_grow_with_the_ranks_where_direct_does():
    small, large = predict(PROGRAM, MACHINE, 64, 8), predict(PROGRAM, MACHINE, 40_960, 1707)
    assert large.direct.seconds > 50 * small.direct.seconds
    assert large.brigade.seconds < 2 * small.brigade.seconds
    assert large.brigade.requests == small.brigade.requests == PROGRAM.brigade_requests


@settings(max_examples=15, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
@given(
    st.integers(1, 3000), st.integers(1, 32), st.floats(1e-6, 1e-2), st.integers(1, 512),
    st.floats(0, 5),
)  # fmt: skip
def test_bounds_steady_state_and_simulation_agree(nodes, each, service_s, servers, cpu_s):
    wanted = dataclasses.replace(PROGRAM, cpu_s=cpu_s)
    machine = dataclasses.replace(MACHINE, service_s=service_s, servers=servers)
    found = predict(wanted, machine, nodes * each, nodes, draws=0).direct
    assert found.bounds[0] * 0.98 <= found.seconds <= found.bounds[1] * 1.05
    assert found.steady_s == pytest.approx(found.seconds, rel=0.1)
    assert found.bounds[0] <= found.steady_s * (1 + 1e-9)


def test_a_band_of_exact_values_stays_within_the_bounds_at_many_servers():
    machine = dataclasses.replace(MACHINE, servers=256, service_s=100e-6)
    found = predict(dataclasses.replace(PROGRAM, cpu_s=0.01), machine, 500, 500).direct
    assert found.high <= found.bounds[1]


def test_forty_thousand_ranks_give_a_band_around_the_prediction():
    found = predict(PROGRAM, dataclasses.replace(MACHINE, spread={"service_s": 0.1}), 40_960, 1707)
    direct = found.direct
    assert direct.low < direct.seconds < direct.high
    # 90% of a log-normal with a spread of 0.1
    assert direct.high / direct.low == pytest.approx(math.exp(2 * 1.645 * 0.1), rel=0.15)


def test_kinds_with_a_service_time_of_their_own_have_its_spread_too():
    kinds = {"lookup": 1e-4, "open": 3e-4}
    machine = dataclasses.replace(MACHINE, service_by_kind=kinds, spread={"service_s": 0.1})
    found = predict(PROGRAM, machine, 4096, 512).direct
    assert found.high / found.low == pytest.approx(math.exp(2 * 1.645 * 0.1), rel=0.15)


def test_what_is_exact_has_a_narrow_band_and_what_is_assumed_a_wide_one():
    exact = predict(PROGRAM, MACHINE, 4096, 512).direct
    guessed = predict(PROGRAM, system.typical(), 4096, 512).direct
    assert exact.high / exact.low < 1.1
    assert guessed.high / guessed.low > 2


def test_threads_that_were_assumed_are_drawn_too():
    """Half and twice as many lie in the band of an otherwise exact prediction."""
    machine = dataclasses.replace(MACHINE, servers=8, assumed=("servers",))
    found = predict(PROGRAM, machine, 4096, 512).direct
    for servers in (4, 16):
        other = dataclasses.replace(MACHINE, servers=servers)
        assert found.low < predict(PROGRAM, other, 4096, 512, draws=0).direct.seconds < found.high
    factors = Factors(seed=1, draws=24)
    assert all(factors.system(machine, draw).servers >= 1 for draw in range(24))


def test_requests_that_an_image_does_not_answer_have_a_spread_too():
    wanted = dataclasses.replace(PROGRAM, misses=50.0, spread={"misses": 0.3})
    factors = Factors(seed=1, draws=8)
    assert len({factors.demand(wanted, draw).misses for draw in range(8)}) == 8


def test_values_that_are_drawn_do_not_move_together():
    factors = Factors(seed=1, draws=24)
    drawn = [factors.system(system.typical(), draw) for draw in range(24)]
    services = sorted(range(24), key=lambda i: drawn[i].service_s)
    links = sorted(range(24), key=lambda i: drawn[i].link_bandwidth)
    assert services != links
    assert len({one.service_s for one in drawn}) == 24


def test_the_same_seed_gives_the_same_answer():
    machine = system.typical()
    first, second = (predict(PROGRAM, machine, 256, 8, seed=5) for _ in range(2))
    assert first == second
    assert predict(PROGRAM, machine, 256, 8, seed=6) != first


def test_a_time_that_is_nothing_counts_as_none():
    found = predict(Demand(cpu_s=1e-310), MACHINE, 8, 2).direct
    assert found.seconds == 0.0


@pytest.mark.parametrize(("ranks", "nodes"), [(0, 1), (4, 0), (3, 4)])
def test_an_impossible_width_is_refused(ranks, nodes):
    with pytest.raises(UsageError, match="cannot be"):
        predict(PROGRAM, MACHINE, ranks, nodes)


def test_more_ranks_than_cores_share_them():
    wanted, machine = Demand(cpu_s=2.0), System(cores=8)
    assert predict(wanted, machine, 8, 1).direct.seconds == pytest.approx(2.0)
    assert predict(wanted, machine, 32, 1).direct.seconds == pytest.approx(8.0)
    lab = System(cores=2, shared_cores=True)
    wide = predict(dataclasses.replace(wanted, first={"lookup": 100.0}), lab, 16, 8).direct
    assert wide.seconds >= 16 * 2.0 / 2


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(1, 200), st.integers(1, 8), st.integers(1, 300))
def test_the_ring_takes_as_many_steps_as_its_plan_promises(nodes, readers, segments):
    """src/stream/plan.h: at most S + n + 2R; no schedule needs fewer than S - S/n."""
    steps = startup.ring_steps(nodes, readers, segments)
    used = min(readers, nodes, segments)
    assert steps <= segments + nodes + 2 * used
    if nodes > 1:
        assert steps >= segments - segments / nodes
        assert steps >= nodes - 1


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_the_ring_takes_exactly_the_steps_of_the_plan_in_c(tmp_path):
    (tmp_path / "steps.c").write_text(STEPS_C)
    program = tmp_path / "steps"
    sources = [tmp_path / "steps.c", ROOT / "src/stream/plan.c"]
    subprocess.run(["cc", "-O1", f"-I{ROOT / 'src'}", *sources, "-o", program], check=True)
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    rows = [tuple(map(int, line.split())) for line in said.splitlines()]
    assert len(rows) > 1000
    assert [row for row in rows if startup.ring_steps(*row[:3]) != row[3]] == []


def test_staging_takes_as_long_as_the_longest_of_its_three_parts():
    slow = dataclasses.replace(MACHINE, decode_bandwidth=1e7, decode_workers=1)
    parts = startup.staging(PROGRAM, slow, 100)
    assert parts["unpacking"] == pytest.approx(20.0)
    phase = startup.brigade(PROGRAM, slow, 100, 100)
    assert phase.before["staging: unpacking"] == max(parts.values()) == parts["unpacking"]
    shared = dataclasses.replace(slow, shared_cores=True, cores=2)
    assert startup.staging(PROGRAM, shared, 100)["unpacking"] == pytest.approx(1000.0)
    assert startup.staging(PROGRAM, shared, 1)["unpacking"] == pytest.approx(20.0)


def test_misses_under_brigade_go_to_the_server_and_cost():
    missing = dataclasses.replace(PROGRAM, misses=1000.0)
    found = predict(missing, MACHINE, 4096, 512).brigade
    assert found.requests == 4096 * 1000 + PROGRAM.brigade_requests
    assert found.bottleneck == startup.METADATA
    assert found.seconds > 4096 * 1000 * 1e-4


def test_a_fit_recovers_what_made_the_samples():
    truth = Demand(first={"lookup": 900.0}, further={"lookup": 900.0}, cpu_s=0.8, fixed_s=0.5)
    machine = System(service_s=1e-3, servers=1, service_cv=0.0, round_trip_s=0.0)
    samples = [
        Sample(
            nodes, ranks, fit.simulated(startup.direct(truth, machine, ranks, nodes), events=9000)
        )
        for nodes, ranks in ((1, 1), (1, 2), (2, 4), (2, 16))
    ]
    start = {"cpu_s": 2.0, "service_s": 1e-4, "fixed_s": 0.1}
    wrong = dataclasses.replace(truth, cpu_s=2.0, fixed_s=0.1)
    found, fitted, left = fit.fit(samples, startup.direct, wrong, machine, start)
    assert left < 0.01
    assert fitted.service_s == pytest.approx(1e-3, rel=0.02)
    assert found.cpu_s + found.fixed_s == pytest.approx(1.3, rel=0.05)
    wide = startup.direct(found, fitted, 512, 64)
    assert steady_seconds(wide) == pytest.approx(512 * 0.9 + 0.5, rel=0.03)


def test_requests_of_the_first_and_of_further_ranks_are_told_apart():
    samples = [
        Sample(nodes, ranks, 1.0, kinds={"lookup": nodes * 700.0 + (ranks - nodes) * 20.0})
        for nodes, ranks in ((1, 1), (1, 4), (2, 4), (2, 8))
    ]
    first, further = fit.first_and_further(samples)
    assert first["lookup"] == pytest.approx(700) and further["lookup"] == pytest.approx(20)
    only = fit.first_and_further([Sample(2, 2, 1.0, kinds={"open": 10.0})])
    assert only == ({"open": 5.0}, {})


def test_counts_of_one_rank_make_a_demand_that_names_its_guesses():
    wanted = demand.from_counts(system.typical(), lookups=100, opens=10, node_bytes=1e8)
    assert set(wanted.assumed) == {"cpu_s", "image_bytes"}
    told = demand.from_counts(system.typical(), lookups=100, cpu_s=1.0, image_bytes=1e6)
    assert told.assumed == ()


def test_a_few_further_ranks_on_a_node_do_not_lengthen_what_nobody_waits_for():
    """Streams are whole numbers; what is left over of one makes no round longer."""
    seconds = [
        predict(PROGRAM, MACHINE, ranks, 1, draws=0).direct.seconds for ranks in range(1, 13)
    ]
    alone = 2.0 + 4500 * (1e-4 + MACHINE.round_trip_s) + 2e8 / 5e9
    assert max(seconds) < 1.1 * min(seconds)
    assert min(seconds) >= alone
