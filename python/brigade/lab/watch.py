"""What the nodes ask of the shared file system, as it happens (R8).

Only the counter pages are looked at, which costs the file system nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Callable

from brigade.lab.counters import Count, current
from brigade.lab.plan import LabPlan


@dataclass
class Step:
    """What was asked in a piece of time that ends `at_s` after the start."""

    at_s: float
    length_s: float
    total: Count
    nodes: dict[str, int] = field(default_factory=dict)  # requests of each

    def as_dict(self) -> dict[str, Any]:
        return {
            "seconds": round(self.at_s, 3),
            "length": round(self.length_s, 3),
            "requests": self.total.requests,
            "background": self.total.background,
            "bytes_read": self.total.bytes_read,
            "bytes_written": self.total.bytes_written,
            "kinds": self.total.kinds,
            "nodes": self.nodes,
        }


def steps(
    plan: LabPlan,
    every_s: float,
    seconds: float | None,
    over: Callable[[], bool] = lambda: False,
) -> Iterator[Step]:
    """Steps of `every_s`, for so many seconds, or until `over`; the last may be shorter."""
    start = before = time.monotonic()
    known = current(plan)
    while True:
        following = min(before + every_s, start + seconds) if seconds else before + every_s
        ended = _wait(following, over)
        now, counts = time.monotonic(), current(plan)
        grown = {node: counts[node] - known[node] for node in counts}
        total = sum(grown.values(), Count())
        requests = {node: count.requests for node, count in grown.items()}
        yield Step(now - start, now - before, total, requests)
        before, known = now, counts
        if ended or (seconds and now - start >= seconds):
            return


def _wait(until: float, over: Callable[[], bool]) -> bool:
    """Wait, looking now and then; whether it was over before."""
    while True:
        if over():
            return True
        left = until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, 0.05))
