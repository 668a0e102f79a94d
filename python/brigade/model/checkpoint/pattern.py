"""Expected time between two checkpoints on shared storage, failures included: exact, no sampling.

A *pattern* is `every` segments. A segment is `work_s` of computing and a copy to level 1 (node
memory or disk; `copy_s`, for which the program waits). The last copy of a pattern goes to shared
storage as well: either the program waits for it, or it goes on behind the next pattern's segments,
whose computing takes `slowdown` times as long meanwhile. It must be there before the copy that goes
to shared storage next begins: where it is not, the program waits.

Failures come at a constant rate at all times, in restarts too. The share `survive` of them leaves
level 1 whole: the program returns to its last segment, and what was on its way to shared storage
starts from the beginning. After the others it returns to what is whole on shared storage. While a
checkpoint is on its way that is the one before: a whole pattern is done again.

Expected remaining times are linear in each other, with one unknown for each place to which a
failure can lead:
    U[j]  segment j begins, nothing is on its way            (j of 0 to every)
    F[j]  segment j begins, and the way to shared storage does; F[every]: it is only waited for, at
          the end of the job
For each length that the way may have (values and weights: the slowest of N writers) the segments
are walked through; a phase of x seconds is survived with exp(-x / mtbf), and costs
mtbf (1 - exp(-x / mtbf)) seconds in the mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Vector = Any  # a NumPy array of float64


@dataclass(frozen=True)
class Timing:
    """Seconds, of a whole job's ranks together."""

    work_s: float  # computing of a segment
    copy_s: float  # to level 1; the program waits
    write_s: Vector  # to shared storage: values …
    weights: Vector  # … and how probable each is
    behind: bool  # the program goes on while it is written
    mtbf_s: float  # of the whole job
    restart_s: float  # from shared storage
    every: int = 1  # segments of a pattern
    slowdown: float = 1.0  # of computing while something is written behind
    survive: float = 0.0  # share of failures that level 1 survives
    restart_local_s: float = 0.0


@dataclass(frozen=True)
class Expected:
    """Seconds in the mean; math.inf where the job would not end."""

    first_s: float  # of a pattern with nothing on its way from before
    steady_s: float  # of every other
    last_s: float  # from the end of the last to its checkpoint on shared storage
    quiet_s: float  # a steady pattern without any failure


def expected(timing: Timing) -> Expected:
    quiet = quiet_s(timing)
    if timing.work_s <= 0 or timing.restart_s > 600 * timing.mtbf_s:
        return Expected(math.inf, math.inf, math.inf, quiet)
    found = _Equations(timing).solve()
    if found is None:
        return Expected(math.inf, math.inf, math.inf, quiet)
    u, f, last = found
    return Expected(u, f if timing.behind else u, last if timing.behind else 0.0, quiet)


def total_s(timing: Timing, work_s: float) -> float:
    """Of a job of so much computing, at least one pattern of it: its last result is written."""
    found = expected(timing)
    patterns = work_s / (timing.every * timing.work_s)
    return found.first_s + (patterns - 1) * found.steady_s + found.last_s


def quiet_s(timing: Timing) -> float:
    """Of a steady pattern if nothing fails."""
    if not timing.behind:
        each = timing.work_s + timing.copy_s
        return float(timing.every * each + timing.write_s @ timing.weights)
    left = np.array(timing.write_s, dtype=float)
    wall = np.zeros_like(left)
    for i in range(timing.every):
        on_way, after, _ = _segment(timing, left, i)
        wall += on_way + after
        left = np.maximum(left - on_way, 0.0)
    return float(wall @ timing.weights)


def _segment(timing: Timing, left: Vector, i: int) -> tuple[Vector, Vector, Vector]:
    """Of segment i, which begins with `left` seconds of writing to go: seconds until it or the
    writing ends, seconds after that, and whether the writing ends in it (in the last it does)."""
    slowed = timing.slowdown * timing.work_s
    full = slowed + timing.copy_s
    unwritten = timing.work_s - left / timing.slowdown + timing.copy_s
    if i == timing.every - 1:
        return left, np.where(left < slowed, unwritten, timing.copy_s), left < math.inf
    ends = left < full
    after = np.where(left < slowed, unwritten, full - left)
    return np.where(ends, left, full), np.where(ends, after, 0.0), ends


class _Equations:
    """x = A x + b over U[0..every], F[0..every]; U[every]: what is left when all are done (in the
    program's wait for shared storage if it does not go on behind)."""

    def __init__(self, timing: Timing) -> None:
        self._t, self._k = timing, timing.every
        self._n = 2 * (self._k + 1)

    def _u(self, j: int) -> Vector:
        """A row: coefficients of all unknowns, and at its end the constant."""
        row = np.zeros(self._n + 1)
        row[j] = 1.0
        return row

    def _f(self, j: int) -> Vector:
        return self._u(self._k + 1 + j)

    def _constant(self, seconds: float) -> Vector:
        row = np.zeros(self._n + 1)
        row[-1] = seconds
        return row

    def solve(self) -> tuple[float, float, float] | None:
        k = self._k
        again = self._again()
        now = self._u(0) + again  # back to the beginning of this pattern
        before = now + self._f(0)  # to that of the one before, and then this one as well
        rows = [self._plain(j, now) for j in range(k)]
        rows.append(self._waited(now) if not self._t.behind else self._constant(0.0))
        rows += [self._written(j, now, before) for j in range(k + 1)]
        system = np.array(rows)
        solved = self._solved(np.eye(self._n) - system[:, :-1], system[:, -1])
        if solved is None:
            return None
        # The last way to shared storage: what fails has only that pattern and this wait before it.
        u = float(solved[0])
        lost = self._constant(u + float(again[-1])) + self._f(k)
        row = self._written(k, now, lost)
        itself = float(row[self._n - 1])
        last = float(row[-1]) / (1 - itself) if itself < 1 else math.inf
        return u, float(solved[k + 1]), last

    def _solved(self, matrix: Vector, right: Vector) -> Vector | None:
        if not self._t.behind:
            matrix = matrix[: self._k + 1, : self._k + 1]
            right = right[: self._k + 1]
        try:
            found = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:
            return None
        if not np.all(np.isfinite(found)) or found[0] <= 0 or np.linalg.cond(matrix) > 1e13:
            return None
        return np.concatenate([found, np.zeros(self._n - len(found))])

    def _again(self) -> Vector:
        """The restart from shared storage until it succeeds, without what follows."""
        return self._constant(self._t.mtbf_s * math.expm1(self._t.restart_s / self._t.mtbf_s))

    def _failed(self, whole: Vector, lost: Vector) -> Vector:
        """A failure: on to `whole` by level 1 if it survives, else on to `lost`."""
        t = self._t
        works = math.exp(-t.restart_local_s / t.mtbf_s)
        tried = self._constant(t.mtbf_s * (1 - works)) + works * whole
        tried = tried + (1 - works) * (1 - t.survive) * lost
        restarted = tried / (1 - (1 - works) * t.survive)
        return t.survive * restarted + (1 - t.survive) * lost

    def _phase(
        self, alive: Vector, seconds: Vector, whole: Vector, lost: Vector
    ) -> tuple[Vector, Vector]:
        """A row for a phase that is begun with probabilities `alive`, and who survives it."""
        fails = float(alive @ -np.expm1(-seconds / self._t.mtbf_s))
        row = self._constant(self._t.mtbf_s * fails)
        return row + fails * self._failed(whole, lost), alive * np.exp(-seconds / self._t.mtbf_s)

    def _plain(self, j: int, now: Vector) -> Vector:
        length = np.array([self._t.work_s + self._t.copy_s])
        row, stays = self._phase(np.ones(1), length, self._u(j), now)
        return row + stays[0] * self._u(j + 1)

    def _waited(self, now: Vector) -> Vector:
        row, _ = self._phase(self._t.weights, self._t.write_s, self._u(self._k), now)
        return row

    def _written(self, j: int, now: Vector, before: Vector) -> Vector:
        """From segment j on, with the whole way to shared storage to go."""
        t = self._t
        alive, left = np.array(t.weights, dtype=float), np.array(t.write_s, dtype=float)
        total = self._constant(0.0)
        for i in range(j, self._k):
            on_way, after, ends = _segment(t, left, i)
            row, alive = self._phase(alive, on_way, self._f(i), before)
            rest, stays = self._phase(np.where(ends, alive, 0.0), after, self._u(i), now)
            total = total + row + rest + float(stays.sum()) * self._u(i + 1)
            alive, left = np.where(ends, 0.0, alive), left - on_way
            if not alive.any():
                break
        if j == self._k:
            total, _ = self._phase(alive, left, self._f(j), before)
        return total
