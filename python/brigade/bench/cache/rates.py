"""What device and memory do by themselves, from the steps of the calibration. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from brigade.errors import BrigadeError


def rates(results: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Rates in bytes a second, times of a call in seconds:

    write, read (the device), write_burst, read_burst (bytes that it takes or gives at once, before
    it goes on at that rate), write_latency, read_latency (of a call of 4 KiB, less what its bytes
    take at that rate), memory_write, memory_read, and write_call, read_call of the kernel.
    """
    named = {one["name"]: one for one in results}
    found = {}
    for way in ("write", "read"):
        device = named[f"device {way}"]
        found[way], found[f"{way}_burst"] = _steady(device)
        small = named[f"call {way}"]
        at_once = found[f"{way}_burst"] > 8 * small["size"]
        moved = 0.0 if at_once else small["size"] / found[way]
        found[f"{way}_latency"] = max(0.0, _call(small) - moved)
        large, small = (named[f"memory {way} {size}"] for size in ("large", "small"))
        # seconds of a call = write_call + bytes / memory_write, through two points
        seconds = _call(large) - _call(small)
        found[f"memory_{way}"] = (large["size"] - small["size"]) / max(seconds, 1e-9)
        found[f"{way}_call"] = max(0.0, _call(small) - small["size"] / found[f"memory_{way}"])
    return found


def _steady(step: dict[str, Any]) -> tuple[float, float]:
    """(bytes a second, bytes that it takes or gives at once before): the line through the ends of
    the calls of the second half, and where it meets the begin."""
    points = []
    if step.get("fsyncs"):  # what came before one is on the device when it ends
        for begin, took, _, _ in step["fsyncs"]:
            calls = sum(one[2] for one in step["samples"] if one[0] < begin)
            points.append((begin + took, step["size"] * calls))
    else:
        done = 0
        for begin, took, calls, _ in step["samples"]:
            done += step["size"] * calls
            points.append((begin + took, done))
    if not points or points[-1][0] <= 0:
        raise BrigadeError(f"{step['name']}: nothing was moved", hint="is the file system full?")
    later = points[len(points) // 2 :]
    if len(later) < 4:
        return points[-1][1] / points[-1][0], 0.0
    at, bytes_ = (statistics.fmean(column) for column in zip(*later))
    rate = sum((x - at) * (y - bytes_) for x, y in later) / sum((x - at) ** 2 for x, _ in later)
    return rate, max(0.0, bytes_ - rate * at)


def _call(step: dict[str, Any]) -> float:
    """Seconds of a call, with the fsync behind it if there is one: the median."""
    calls = [one[1] / one[2] for one in step["samples"]]
    fsyncs = [one[1] for one in step.get("fsyncs", [])]
    return float(statistics.median(calls) + (statistics.median(fsyncs) if fsyncs else 0.0))
