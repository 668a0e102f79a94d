"""Arrays cut into blocks of bounded size. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence


def block_shape(
    shape: Sequence[int], itemsize: int, limit: int, grain: Sequence[int] | None = None
) -> tuple[int, ...]:
    """The largest block of at most `limit` bytes that is made of whole grains (chunks of a file;
    default: single elements) and long in the last dimensions, as C order wants it. One grain where
    even that has more bytes."""
    unit = grain or [1] * len(shape)
    block = [max(1, min(n, g)) for n, g in zip(shape, unit)]
    total = itemsize
    for n in block:
        total *= n
    for d in reversed(range(len(block))):
        fits = max(1, limit // total)  # times the block of now
        grown = min(max(1, shape[d]), block[d] * fits)
        total = total // block[d] * grown
        block[d] = grown
        if grown < shape[d]:
            break
    return tuple(block)


def blocks(
    shape: Sequence[int], block: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(start, count) of each block of an array, in C order; of one without elements, none."""
    for start in itertools.product(*(range(0, n, step) for n, step in zip(shape, block))):
        yield start, tuple(min(step, n - at) for at, step, n in zip(start, block, shape))


def slices(start: Sequence[int], count: Sequence[int]) -> tuple[slice, ...]:
    """A block as NumPy, h5py and zarr take it."""
    return tuple(slice(at, at + n) for at, n in zip(start, count))
