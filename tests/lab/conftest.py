"""Labs that the tests of this folder share: one of each kind, with few nodes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from brigade.lab import Lab
from brigade.lab.debian import missing_packages


@pytest.fixture(scope="session")
def able() -> None:
    """Skip, saying why, where no lab can be brought up."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a lab is made of namespaces and mounts")
    missing = missing_packages("moosefs") + missing_packages("slow")
    if missing:
        pytest.skip(f"needs Debian packages: {' '.join(missing)}")


@pytest.fixture(scope="session")
def moose(able: None) -> Iterator[Lab]:
    yield from _lab("m", 3, "moosefs")


@pytest.fixture(scope="session")
def slow(able: None) -> Iterator[Lab]:
    yield from _lab("s", 2, "slow:2ms")


def _lab(letter: str, nodes: int, fs: str) -> Iterator[Lab]:
    lab = Lab.up(f"test-{letter}-{os.getpid()}", nodes, fs)
    yield lab
    lab.down()
