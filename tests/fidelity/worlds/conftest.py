"""Worlds are judged two at a time, in the background, in the order of the tests that ask."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "view"))

from .build import Builder
from .compare import Verdict, judge
from .describe import ElfWorld
from .draw import draw
from .without import possible

AHEAD = 4  #: worlds that are begun before their test asks


class Court:
    """Judges worlds by seed; begins with those that are asked for next."""

    def __init__(self, builder: Builder, pool: ThreadPoolExecutor, seeds: list[str]) -> None:
        self.builder = builder
        self._pool = pool
        self._seeds = seeds
        self._begun: dict[str, Future[Verdict]] = {}

    def verdict(self, seed: str) -> Verdict:
        at = self._seeds.index(seed)
        for other in self._seeds[at : at + AHEAD]:
            if other not in self._begun:
                self._begun[other] = self._pool.submit(self.judge, draw(other))
        return self._begun.pop(seed).result()

    def judge(self, world: ElfWorld) -> Verdict:
        return judge(possible(world), self.builder)


@pytest.fixture(scope="session")
def court(request: pytest.FixtureRequest) -> Iterator[Court]:
    seeds = [
        item.callspec.params["seed"]
        for item in request.session.items
        if "court" in item.fixturenames and hasattr(item, "callspec")
        and "seed" in item.callspec.params
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="brigade-objects-") as folder:
        with ThreadPoolExecutor(2) as pool:
            yield Court(Builder(Path(folder)), pool, seeds)
            pool.shutdown(wait=True, cancel_futures=True)
