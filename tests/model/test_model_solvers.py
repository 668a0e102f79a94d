"""Bounds, exact solution, simulation and closed forms say the same."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brigade.model import bounds, closed, laws, mva, simulate
from brigade.model.network import DELAY, Network, Station

quick = settings(max_examples=25, deadline=None, derandomize=True)
seconds = st.floats(1e-5, 10)
customers = st.integers(1, 600)


def repairman(think_s: float, service_s: float, servers: int = 1, cv: float = 1.0) -> Network:
    stations = (Station("think", think_s, DELAY, cv), Station("server", service_s, servers, cv))
    return Network(stations)


@quick
@given(customers, seconds, seconds, st.integers(1, 40))
def test_the_exact_solution_is_that_of_the_machine_repairman(n, think_s, service_s, servers):
    found = mva.solve(repairman(think_s, service_s, servers), n)
    assert math.isclose(
        found.throughput, closed.repairman(n, think_s, service_s, servers), rel_tol=1e-9
    )


@quick
@given(customers, st.floats(0, 10), st.lists(seconds, min_size=1, max_size=4))
def test_the_exact_solution_is_that_of_mean_value_analysis(n, think_s, demands):
    queues = [Station(str(i), demand) for i, demand in enumerate(demands)]
    found = mva.solve(Network((Station("think", think_s, DELAY), *queues)), n)
    expected = closed.single_server(n, think_s, demands)
    assert math.isclose(found.throughput, expected, rel_tol=1e-7)


@quick
@given(
    customers,
    st.floats(0, 10),
    st.lists(st.tuples(seconds, st.integers(1, 8)), min_size=1, max_size=3),
)
def test_throughput_lies_within_its_bounds_and_never_falls(n, think_s, parts):
    queues = [Station(str(i), demand, servers) for i, (demand, servers) in enumerate(parts)]
    network = Network((Station("think", think_s, DELAY), *queues))
    rates = mva.throughputs(network, n)
    for index in {0, len(rates) // 2, len(rates) - 1}:
        for kind in (bounds.asymptotic, bounds.balanced):
            low, high = kind(network, index + 1)
            assert low * (1 - 1e-9) <= rates[index] <= high * (1 + 1e-9)
    assert all(b >= a * (1 - 1e-9) for a, b in zip(rates, rates[1:]))


@quick
@given(st.integers(1, 12), st.floats(0, 3), st.lists(st.floats(0.01, 1), min_size=1, max_size=4))
def test_single_servers_lie_within_the_balanced_bounds(n, think_s, demands):
    queues = [Station(str(i), demand) for i, demand in enumerate(demands)]
    network = Network((Station("think", think_s, DELAY), *queues))
    low, high = bounds.balanced(network, n)
    assert low * (1 - 1e-9) <= closed.single_server(n, think_s, demands) <= high * (1 + 1e-9)
    wide = bounds.asymptotic(network, n)
    assert wide.low <= low * (1 + 1e-9) and high <= wide.high * (1 + 1e-9)


@pytest.mark.parametrize("servers", [1, 4, 64])
@pytest.mark.parametrize("think_s", [1e-4, 0.1, 50.0])
def test_forty_thousand_customers_are_solved_and_stable(servers, think_s):
    network = repairman(think_s, 1e-3, servers)
    found = mva.solve(network, 40_960)
    expected = closed.repairman(40_960, think_s, 1e-3, servers)
    assert math.isclose(found.throughput, expected, rel_tol=1e-8)
    there = sum(load.customers for load in found.loads) + found.throughput * think_s
    assert math.isclose(there, 40_960, rel_tol=1e-6)


@quick
@given(st.integers(1, 60), st.integers(1, 40), st.floats(0, 2), st.floats(1e-4, 0.5))
def test_a_simulation_of_constant_times_is_the_closed_form(n, rounds, think_s, service_s):
    network = repairman(think_s, service_s, cv=0.0)
    exact = simulate.Aggregation(1, 1)
    found = simulate.run(network, n, rounds, seed=1, how=exact).makespan_s
    expected = closed.constant_makespan(n, rounds, think_s, service_s)
    assert math.isclose(found, expected, rel_tol=1e-9)


@pytest.mark.parametrize("n", [1, 4, 11, 40])
@pytest.mark.parametrize("servers", [1, 3])
def test_a_simulation_agrees_with_the_exact_solution_within_its_band(n, servers):
    network = repairman(1.0, 0.1, servers)
    rounds, exact = 1000, simulate.Aggregation(1, 1)
    expected = mva.solve(network, n).throughput
    runs = [simulate.run(network, n, rounds, seed, exact).throughput for seed in range(8)]
    band = simulate.mean_band(runs)
    assert band.holds(expected)
    assert band.high - band.low < 0.05 * expected


@pytest.mark.parametrize("cv", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("n", "rounds"), [(300, 400), (40_960, 5000)])
@pytest.mark.parametrize("load", [0.3, 3.0])
def test_aggregated_runs_keep_the_length_of_a_start_up(n, rounds, load, cv):
    """Away from the knee what is aggregated changes a start-up by less than 2%."""
    think_s = 1.0
    network = repairman(think_s, load * think_s / n, cv=cv)
    how = simulate.aggregation(network, n, rounds)
    assert not how.exact
    expected = rounds * n / mva.solve(network, n).throughput
    runs = [simulate.run(network, n, rounds, seed).mean_s for seed in range(5)]
    assert sum(runs) / len(runs) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("events", [8000, simulate.EVENTS])
@pytest.mark.parametrize("load", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("servers", [64, 256, 512])
def test_aggregated_runs_keep_the_length_of_a_start_up_at_many_servers(servers, load, events):
    """Nobody waits longer, and the last one is no later, because few stand for many."""
    network = repairman(10e-6, 100e-6, servers)
    n, rounds = round(load * network.knee), 4500
    how = simulate.aggregation(network, n, rounds, events)
    found = simulate.run(network, n, rounds, 1, how)
    expected = rounds * n / mva.throughputs(network, n)[-1]
    assert found.mean_s == pytest.approx(expected, rel=0.02)
    assert expected * 0.99 <= found.makespan_s <= 1.08 * expected


def test_the_throughput_of_groups_that_are_not_full_is_that_of_their_customers():
    """50 customers in two groups of 49: each stands for 25."""
    network = repairman(1.0, 1e-4, cv=0.0)
    found = simulate.run(network, 50, 100, seed=1, how=simulate.Aggregation(49, 1))
    assert found.throughput == pytest.approx(50 / network.round_s, rel=0.03)


def test_a_coarse_group_below_the_knee_takes_as_long_as_one_alone():
    """A unit of 2,000 customers is served 2,000 times as long; that is not added to its round."""
    network = repairman(1.0, 0.6 / 40_960, cv=0.0)
    how = simulate.aggregation(network, 40_960, 5000, events=800)
    assert how.group > 1000
    found = simulate.run(network, 40_960, 5000, seed=1, how=how).mean_s
    assert found == pytest.approx(5000 * network.round_s, rel=0.01)


def test_an_aggregated_run_at_the_knee_is_within_five_percent():
    network = repairman(1.0, 1 / 40_960)
    expected = 5000 * 40_960 / mva.solve(network, 40_960).throughput
    found = simulate.run(network, 40_960, 5000, seed=3).mean_s
    assert found == pytest.approx(expected, rel=0.05)


@quick
@given(st.integers(1, 10**6), st.integers(1, 10**5), st.integers(1, 64))
def test_a_run_takes_about_as_many_events_as_it_may(n, rounds, servers):
    network = repairman(1.0, 1e-3, servers)
    how = simulate.aggregation(network, n, rounds, events=10_000)
    events = math.ceil(n / how.group) * max(1, round(rounds / how.chunk))
    assert events <= 2 * 10_000
    assert events >= min(n * rounds, 10_000) / 3
    assert how.exact == (n * rounds <= 10_000)


@quick
@given(st.integers(1, 2000), st.integers(1, 5000), st.floats(1e-3, 2), st.floats(1e-5, 0.5))
def test_a_makespan_is_not_below_its_bound(n, rounds, think_s, service_s):
    network = repairman(think_s, service_s, cv=0.0)
    found = simulate.run(network, n, rounds, seed=1).makespan_s
    assert found >= bounds.makespan(network, n, rounds).low * (1 - 1e-9) - think_s


def test_only_delays_is_a_solution_too():
    network = Network((Station("think", 2.0, DELAY, 0.0),))
    assert mva.solve(network, 10).throughput == pytest.approx(5)
    assert simulate.run(network, 10, 3, seed=1).makespan_s == pytest.approx(6)


def test_a_broken_law_is_an_exception_with_its_numbers():
    with pytest.raises(laws.LawError, match=r"Little's law .* 3 customers, but 1/s x 2 s = 2"):
        laws.little("here", 3, 1, 2)
    with pytest.raises(laws.LawError, match="utilisation law"):
        laws.utilisation("here", 0.5, 1, 0.4, 1)
    with pytest.raises(laws.LawError, match=r"works 1\.2"):
        laws.utilisation("here", 1.2, 1.2, 1, 1)


def test_a_solver_that_miscounts_is_caught_in_its_run(monkeypatch):
    network = repairman(1.0, 0.1, 2)
    with monkeypatch.context() as change:
        wrong = property(lambda self: 0.9)
        change.setattr(Network, "delay_s", wrong)
        change.setattr(mva, "_load", _with_delay_of_one(mva._load))
        with pytest.raises(laws.LawError):
            mva.solve(network, 20)
    with monkeypatch.context() as change:
        change.setattr(simulate._Simulation, "_delay", lambda self, share: self._think())
        with pytest.raises(laws.LawError):
            simulate.run(network, 20, 10, seed=1)


def _with_delay_of_one(load):
    """Let one part of the solver see another delay than the rest."""

    def changed(network, *arguments):
        other = Network((Station("more", 0.5, DELAY), *network.stations))
        right = property(lambda self: sum(s.demand_s for s in self.stations if not s.servers))
        before, Network.delay_s = Network.delay_s, right
        try:
            return load(other, *arguments)
        finally:
            Network.delay_s = before

    return changed


def test_every_run_checks_both_laws(monkeypatch):
    seen = []
    monkeypatch.setattr(laws, "little", lambda *values: seen.append("little"))
    monkeypatch.setattr(laws, "utilisation", lambda *values: seen.append("utilisation"))
    mva.solve(repairman(1.0, 0.1), 5)
    assert set(seen) == {"little", "utilisation"}
    seen.clear()
    simulate.run(repairman(1.0, 0.1), 5, 5, seed=1)
    assert set(seen) == {"little", "utilisation"}


def test_a_band_of_runs_holds_nine_of_ten_further_ones():
    network = repairman(1.0, 0.1)
    runs = [simulate.run(network, 5, 30, seed).makespan_s for seed in range(400)]
    held = 0
    for start in range(0, 390, 10):
        band = simulate.band_of(runs[start : start + 9])
        held += band.holds(runs[start + 9])
    assert 31 <= held <= 39  # of 39
