"""What device and memory do by themselves, from the steps of the calibration. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from brigade.errors import BrigadeError


def rates(results: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Rates in bytes a second, times of a call in seconds:

    write, read (the device), write_latency, read_latency (of a call of 4 KiB, less what its bytes
    take at that rate), memory_write, memory_read, and write_call, read_call of the kernel.
    """
    named = {one["name"]: one for one in results}
    found = {}
    for way in ("write", "read"):
        device = named[f"device {way}"]
        found[way] = _steady(device)
        small = named[f"small {way}"]
        found[f"{way}_latency"] = max(0.0, _call(small) - small["size"] / found[way])
        large, small = (named[f"memory {way} {size}"] for size in ("large", "small"))
        # seconds of a call = write_call + bytes / memory_write, through two points
        seconds = _call(large) - _call(small)
        found[f"memory_{way}"] = (large["size"] - small["size"]) / max(seconds, 1e-9)
        found[f"{way}_call"] = max(0.0, _call(small) - small["size"] / found[f"memory_{way}"])
    return found


def _steady(step: dict[str, Any]) -> float:
    """Bytes a second from the first call's end on: what a device takes in at once is not its."""
    seconds = step["seconds"] - step["close_s"]
    first = step["samples"][0] if step["samples"] else None
    if first is None or seconds <= 0:
        raise BrigadeError(f"{step['name']}: nothing was moved", hint="is the file system full?")
    if step["bytes"] <= step["size"] * first[2]:
        return float(step["bytes"] / seconds)
    fsync = step.get("fsyncs")
    begin = fsync[0][0] + fsync[0][1] if fsync else first[0] + first[1]
    return float((step["bytes"] - step["size"] * first[2]) / (seconds - begin))


def _call(step: dict[str, Any]) -> float:
    """Seconds of a call, with the fsync behind it if there is one: the median."""
    calls = [one[1] / one[2] for one in step["samples"]]
    fsyncs = [one[1] for one in step.get("fsyncs", [])]
    return float(statistics.median(calls) + (statistics.median(fsyncs) if fsyncs else 0.0))
