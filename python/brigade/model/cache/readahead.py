"""How far a sequential reader is read ahead of (mm/readahead.c). Pure."""

from __future__ import annotations


def first(request: int, most: int) -> int:
    """Bytes of the first window of a stream whose first read has `request` bytes."""
    size = 4096
    while size < request:
        size *= 2
    if size <= most // 32:
        size *= 4
    elif size <= most // 4:
        size *= 2
    else:
        size = most
    return max(min(size, most), 4096)


def following(window: int, most: int) -> int:
    """Bytes of the window after one of `window` bytes."""
    if window < most // 16:
        return max(4096, 4 * window)
    return max(4096, min(2 * window, most))


def seconds(bytes_: int, window: int, most: int, rate: float, latency: float) -> tuple[float, int]:
    """What so many bytes in sequence take, and the window after them.

    The next window is asked for when the reader comes to the one before: one is under way at any
    time, and each has its latency.
    """
    left, total = bytes_, 0.0
    while left > 0:
        step = min(window, left)
        total += step / rate + latency * step / window
        left -= step
        window = following(window, most)
        if window == most:
            total += left / rate + latency * left / window
            break
    return total, window
