"""What the samples of a study show, in words. Pure: every sentence is computed from them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from brigade.bench.cache.plan import PATTERNS
from brigade.model.cache.compare import cached
from brigade.printable import size

_FELL = 2.0  # a rate that is so many times less has fallen
Sample = Sequence[float]


def rate(value: float) -> str:
    return f"{size(value)}/s"


def curve(step: dict[str, Any]) -> list[tuple[float, float, float]]:
    """(seconds, bytes so far, bytes a second) at the end of each sample: as the caller saw it."""
    done, found = 0.0, []
    for begin, took, calls, _ in step["samples"]:
        bytes_ = min(calls * step["size"], step["bytes"] - done)
        done += bytes_
        found.append((begin + took, done, bytes_ / max(took, 1e-9)))
    return found


def knee(step: dict[str, Any]) -> tuple[float, float, float] | None:
    """(rate at first, bytes until it fell, rate at last), or None if it did not fall.

    First: the median of the first tenth. Last: of the last quarter of the bytes. It fell where the
    most is lost between them: where what is written is farthest from a straight line over time.
    """
    points = curve(step)
    if len(points) < 8:
        return None
    first = statistics.median(one[2] for one in points[: max(3, len(points) // 10)])
    cut = points[3 * len(points) // 4 - 1]
    end = points[-1]
    last = (end[1] - cut[1]) / max(end[0] - cut[0], 1e-9)
    if last * _FELL > first:
        return None
    at = max(points, key=lambda one: one[1] / end[1] - one[0] / end[0])
    return first, at[1], last


def perceived(step: dict[str, Any]) -> float:
    """Bytes a second of the calls alone: sleeps and fsyncs are not in it."""
    return float(step["bytes"] / max(sum(one[1] for one in step["samples"]), 1e-9))


def threshold(pages: Sequence[Sequence[float]]) -> float | None:
    """Nanoseconds above which a page came from the device: in the widest gap between times, as a
    ratio. None where no gap is wider than three times."""
    times = sorted(max(1.0, one[1]) for one in pages)
    gaps = [(b / a, (a * b) ** 0.5) for a, b in zip(times, times[1:])]
    widest = max(gaps, default=(1.0, 0.0))
    return widest[1] if widest[0] >= 3 else None


def conclude(report: dict[str, Any]) -> list[str]:
    """Sentences."""
    named = {one["name"]: one for one in report["results"]}
    found = _room(report)
    for pattern, tell in (
        ("back", _back), ("sleep", _sleep), ("fsync", _fsync), ("direct", _direct),
    ):  # fmt: skip
        steps = [one for name, one in named.items() if name.startswith(f"{pattern}-")]
        steps = [one for one in steps if "samples" in one]
        if steps:
            found += tell(sorted(steps, key=lambda one: int(one["size"])), named, report)
    if "large write" in named:
        found += _stays(named, report)
    return found


def _room(report: dict[str, Any]) -> list[str]:
    room, device = report["room"], report["rates"]
    how = "a cgroup of its own" if room["own"] else "what there is"
    if not room["own"] and room["why"]:
        how += f" (no cgroup: {room['why']})"
    missing = (
        []
        if report["direct"]
        else [f"O_DIRECT is refused here, or means little: no {PATTERNS['direct']}."]
    )
    return [
        f"The program had {size(room['bytes'])} of memory: {how}. By itself the device writes "
        f"{rate(device['write'])} and reads {rate(device['read'])}.",
        *missing,
    ]


def _back(
    steps: Sequence[dict[str, Any]], named: dict[str, Any], report: dict[str, Any]
) -> list[str]:
    found, device, kept = [], report["rates"]["write"], []
    for step in steps:
        what, fell = f"writes of {size(step['size'])}", knee(step)
        if fell is None:
            kept.append(f"{size(step['size'])} ({rate(perceived(step))})")
            continue
        first, until, last = fell
        found.append(
            f"{what[0].upper()}{what[1:]} back to back seem to run at {rate(first)}, until "
            f"{size(until)} are written; then at {rate(last)}, {last / device:.1f} times the "
            "device's own."
        )
    if kept:
        found.append(f"No fall was seen with writes of {', '.join(kept)}.")
    worst = max(steps, key=lambda one: max(s[3] for s in one["samples"]))
    longest = max(s[3] for s in worst["samples"])
    typical = statistics.median(s[1] / s[2] for s in worst["samples"])
    found.append(
        f"The longest single write, of {size(worst['size'])}, took {_time(longest)}: "
        f"{longest / max(typical, 1e-9):,.0f} times the median."
    )
    refused = sum(one.get("refused", 0) for one in named.values())
    if refused:
        found.append(
            f"{refused:,} times a write found the memory full of dirty pages and was refused "
            "(ENOMEM): cgroups of version 1 slow no writer down. It was tried again."
        )
    later = [named[f"{one['name']} fsync"]["seconds"] for one in steps]
    whole = [one["seconds"] + after for one, after in zip(steps, later)]
    found.append(
        f"Of the time until the file is on the device, {_share(sum(later), sum(whole))} come after "
        "the last write has returned, in fsync."
    )
    return found


def _sleep(
    steps: Sequence[dict[str, Any]], named: dict[str, Any], report: dict[str, Any]
) -> list[str]:
    found = []
    for step in steps:
        back = named.get(step["name"].replace("sleep", "back"))
        if not back:
            continue
        ratio = perceived(step) / perceived(back)
        found.append(f"{size(step['size'])}: {rate(perceived(step))}, {ratio:.1f} times as fast")
    if not found:
        return []
    return [f"With sleeps between bursts, writes are seen to run at ({'; '.join(found)})."]


def _fsync(
    steps: Sequence[dict[str, Any]], named: dict[str, Any], report: dict[str, Any]
) -> list[str]:
    told = []
    for step in steps:
        waited = sum(one[1] for one in step["fsyncs"])
        busy = waited + sum(one[1] for one in step["samples"])
        real = step["bytes"] / max(busy, 1e-9)
        told.append(
            f"{size(step['size'])}: {rate(real)}, {_share(waited, busy)} of the time in fsync"
        )
    return [f"With fsync between bursts what is seen is the device ({'; '.join(told)})."]


def _direct(
    steps: Sequence[dict[str, Any]], named: dict[str, Any], report: dict[str, Any]
) -> list[str]:
    told = [f"{size(one['size'])}: {rate(perceived(one))}" for one in steps]
    best = max(steps, key=perceived)
    enough = min(one["size"] for one in steps if perceived(one) > 0.9 * perceived(best))
    return [
        f"With O_DIRECT ({'; '.join(told)}) writes of {size(enough)} are enough for nine tenths of "
        "the best."
    ]


def _stays(named: dict[str, Any], report: dict[str, Any]) -> list[str]:
    look, memory = named["large after write"], report["room"]["bytes"]
    times, halves = look["bytes"] / memory, (cached(look, 0, 0.5), cached(look, 0.5, 1))
    which = f"of {times:.1f} times the memory" if times >= 1 else "that fits into the memory"
    found = [
        f"Of a file {which}, {100 * cached(look):.0f}% are cached after it was written serially: "
        f"{100 * halves[0]:.0f}% of the first half, {100 * halves[1]:.0f}% of the second."
    ]
    found += _pages(named["large pages"]["pages"])
    again, after = named["large read"], named["large after read"]
    found.append(
        f"Reading all of it again goes at {rate(again['bytes'] / again['seconds'])}, "
        f"{again['bytes'] / again['seconds'] / report['rates']['read']:.1f} times the device's "
        f"own; {100 * cached(after):.0f}% are cached then."
    )
    small, other = named["small after other"], named["other after write"]
    queue = min(1.0, max(0.0, (memory - other["bytes"]) / small["bytes"]))
    found.append(
        f"Of a file of {size(small['bytes'])} that was read twice, {100 * cached(small):.0f}% "
        f"outlive a write of {size(other['bytes'])}; a strict first-in first-out cache would keep "
        f"{100 * queue:.0f}%."
    )
    return found


def _pages(pages: Sequence[Sequence[float]]) -> list[str]:
    """Whether timed reads and mincore agree."""
    there = sum(1 for one in pages if one[2])
    if there in (0, len(pages)):
        typical = _time(statistics.median(one[1] for one in pages) / 1e9)
        which = "none" if not there else "all"
        return [
            f"Of {len(pages)} pages that were read by themselves mincore had {which}: {typical}."
        ]
    limit = threshold(pages)
    if limit is None:
        return ["Times of single pages do not tell cached ones from others here."]
    agree = sum((one[1] < limit) == bool(one[2]) for one in pages)
    hits = [one[1] for one in pages if one[1] < limit]
    misses = [one[1] for one in pages if one[1] >= limit]
    return [
        f"Timed reads of {len(pages)} single pages say the same as mincore of "
        f"{100 * agree / len(pages):.0f}%: {_time(statistics.median(hits) / 1e9)} from the cache, "
        f"{_time(statistics.median(misses) / 1e9)} from the device."
    ]


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1 or unit == "us":
            return f"{seconds * scale:.3g} {unit}"
    raise AssertionError("unreachable")


def _share(part: float, whole: float) -> str:
    return f"{100 * part / max(whole, 1e-9):.0f}%"
