"""From answer times to servers and service time: computed worlds are found again."""

from __future__ import annotations

import heapq
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brigade.calibrate.plan import CLIENTS, burst_sizes
from brigade.model import calibration
from brigade.model.calibration import Point, Request


class Server:
    """A metadata service whose answers are computed: servers behind one queue."""

    def __init__(self, servers: int, service_s: float, round_trip_s: float, jitter: float = 0.0):
        self.servers, self.service_s, self.round_trip_s = servers, service_s, round_trip_s
        self._jitter = jitter
        self._random = random.Random(4711)

    def run(self, clients: int, each: int) -> list[list[Request]]:
        """Closed loop: each client asks again as soon as it is answered."""
        free = [0.0] * self.servers
        waiting = [(0.0, i) for i in range(clients)]
        found: list[list[Request]] = [[] for _ in range(clients)]
        while waiting:
            begin, client = heapq.heappop(waiting)
            done = self._serve(free, begin)
            found[client].append((int(begin * 1e9), int((done - begin) * 1e9)))
            if len(found[client]) < each:
                heapq.heappush(waiting, (done, client))
        return found

    def burst(self, size: int) -> list[Request]:
        free = [0.0] * self.servers
        begins = sorted(self._random.uniform(0, 20e-6) for _ in range(size))
        return [(int(at * 1e9), int((self._serve(free, at) - at) * 1e9)) for at in begins]

    def _serve(self, free: list[float], begin: float) -> float:
        at = min(range(self.servers), key=lambda i: free[i])
        free[at] = max(begin, free[at]) + self.service_s
        noise = self._jitter * self.service_s * abs(self._random.gauss(0, 1))
        return free[at] + self.round_trip_s + noise

    def points(self) -> list[Point]:
        """Rising load, until a second step in a row gives no more."""
        found: list[Point] = []
        for clients in CLIENTS:
            found.append(calibration.point(self.run(clients, max(20, 1500 // clients))))
            if calibration.knee(found) and calibration.knee(found[:-1]):
                break
        return found

    def fit(self) -> calibration.Fit:
        bursts = [self.burst(size) for _ in range(5) for size in burst_sizes(64)]
        return calibration.fit(self.points(), bursts)


@settings(max_examples=12, deadline=None)
@given(
    servers=st.integers(1, 16),
    service_s=st.floats(1e-4, 5e-3),
    share=st.floats(0.02, 1.5),
)
def test_service_and_servers_are_found_again(servers, service_s, share):
    fitted = Server(servers, service_s, share * service_s).fit()
    assert fitted.reached
    assert fitted.servers == servers
    assert fitted.service_s == pytest.approx(service_s, rel=0.04)
    assert fitted.round_trip_s == pytest.approx(share * service_s, abs=0.06 * service_s + 3e-6)


@pytest.mark.parametrize("servers", [1, 2, 4, 8])
def test_answers_that_are_late_by_a_tenth_do_not_hide_the_servers(servers):
    fitted = Server(servers, 1e-3, 1e-4, jitter=0.1).fit()
    assert fitted.servers == servers
    assert fitted.service_s == pytest.approx(1e-3, rel=0.1)


@pytest.mark.parametrize("servers", [1, 2, 4])
def test_bursts_that_a_busy_machine_disturbs_do_not_decide(servers):
    """Five rounds of eight meet something else: answers are late by up to a service time."""
    server = Server(servers, 0.5e-3, 0.7e-4, jitter=0.02)
    chance = random.Random(3)
    bursts = []
    for number in range(8):
        late = 0.5e6 if number >= 3 else 0
        for size in burst_sizes(16):
            burst = server.burst(size)
            bursts.append([(at, took + int(chance.uniform(0, late))) for at, took in burst])
    fitted = calibration.fit(server.points(), bursts)
    assert fitted.servers == servers


def test_a_step_that_was_cut_short_does_not_set_the_limit():
    server = Server(2, 0.5e-3, 0.7e-4)
    short = Point(16, 256, 4225.0, 3.8e-3, 3.9e-3)
    bursts = [server.burst(size) for _ in range(5) for size in burst_sizes(16)]
    fitted = calibration.fit([*server.points(), short], bursts)
    assert fitted.servers == 2
    assert fitted.service_s == pytest.approx(0.5e-3, rel=0.02)


def test_a_slow_round_trip_is_not_taken_for_more_servers():
    """Both raise the number of clients at which throughput ends; only bursts tell them apart."""
    far, many = Server(1, 0.5e-3, 1.5e-3), Server(4, 2e-3, 0.0)
    for server in (far, many):
        assert server.points()[-1].throughput == pytest.approx(2000, rel=0.03)
        assert server.points()[0].median_s == pytest.approx(2e-3, rel=0.01)
    assert far.fit().servers == 1
    assert many.fit().servers == 4


def test_without_an_end_of_growth_the_limit_is_a_bound():
    server = Server(64, 1e-3, 0.0)
    points = [calibration.point(server.run(n, 50)) for n in (1, 2, 4)]
    fitted = calibration.fit(points, [])
    assert not fitted.reached
    assert fitted.throughput == pytest.approx(4000, rel=0.02)
    assert fitted.servers == 4
    assert fitted.service_s == pytest.approx(1e-3, rel=0.01)


def test_a_rate_that_clients_were_held_down_to_is_no_limit_of_the_server():
    """1000 a second were allowed, and one client gets 900 of them; two would get 1800."""
    points = [Point(1, 900, 900.0, 1.1e-3, 1.1e-3), Point(2, 1000, 1000.0, 1.1e-3, 1.1e-3)]
    assert calibration.fit(points, []).reached
    held = calibration.fit(points, [], held_down=True)
    assert not held.reached
    assert held.throughput == 1000 and held.service_s == pytest.approx(1.1e-3)


def test_numbers_of_servers_that_explain_as_much_are_named():
    """Without a burst nothing tells them apart."""
    fitted = calibration.fit(Server(4, 1e-3, 1e-4).points(), [])
    assert fitted.servers == 1
    assert fitted.also == [2, 3, 4]


@pytest.mark.parametrize(
    ("again", "found"),
    [
        ({0.1: [1e-6], 1.0: [1e-6], 3.0: [1e-3]}, (1.0, 3.0)),
        ({0.1: [1e-3], 1.0: [1e-3]}, (0.0, 0.1)),
        ({0.1: [1e-6], 1.0: [2e-6]}, (1.0, None)),
        ({0.1: [1e-6, 1e-3, 1e-6], 1.0: [1e-3, 1e-3, 1e-6]}, (0.1, 1.0)),
        ({}, (0.0, None)),
    ],
)
def test_how_long_an_answer_is_remembered_lies_between_two_delays(again, found):
    assert calibration.remembered(again, 1e-3) == found


def test_answers_wait_for_the_server_that_is_free_first():
    assert calibration.answers([0, 0, 0], 2, 1.0, 1.5) == [1.5, 1.5, 2.5]
    assert calibration.answers([0, 10], 1, 1.0, 1.0) == [1.0, 1.0]
