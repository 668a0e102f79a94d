"""The laws that every solution must obey, asserted in every run.

Little: customers in a system = throughput x time in it. Utilisation: share of time that a server
works = throughput x demand / servers, and never above 1. They hold for any distribution; a
violation is a defect of a solver, and its numbers must not be shown.
"""

from __future__ import annotations

import math

from brigade.errors import BrigadeError

TOLERANCE = 1e-6


class LawError(BrigadeError):
    """A solver broke a law; the message has the numbers."""


def little(where: str, customers: float, throughput: float, seconds: float) -> None:
    """Raise LawError unless customers = throughput * seconds."""
    product = throughput * seconds
    if not math.isclose(customers, product, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        raise _broken(
            f"Little's law is broken at {where}: {customers:.9g} customers, but "
            f"{throughput:.9g}/s x {seconds:.9g} s = {product:.9g}"
        )


def utilisation(where: str, busy: float, throughput: float, demand_s: float, servers: int) -> None:
    """Raise LawError unless busy = throughput * demand / servers, and at most 1."""
    expected = throughput * demand_s / servers
    if not math.isclose(busy, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        raise _broken(
            f"the utilisation law is broken at {where}: busy {busy:.9g} of the time, but "
            f"{throughput:.9g}/s x {demand_s:.9g} s / {servers} = {expected:.9g}"
        )
    if not -TOLERANCE <= busy <= 1 + TOLERANCE:
        raise _broken(f"{where} works {busy:.9g} of the time, which cannot be")


def _broken(text: str) -> LawError:
    return LawError(text, hint="a defect of Brigade's model: please report it with the command")
