"""Export: a file of named arrays becomes an HDF5 or Zarr file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brigade.io
from brigade.errors import BrigadeError, UsageError
from brigade.io.transfer.blocks import block_shape, blocks, slices
from brigade.io.transfer.foreign import Foreign
from brigade.shut import exists

BLOCK_BYTES = 8 << 20

Progress = Callable[[int, int], None]


def export(
    source: Path, target: Path, foreign: Foreign, progress: Progress, replace: bool = False
) -> list[str]:
    """Returns what could not be carried, one sentence each."""
    is_there = exists(target)
    if is_there and not replace:
        raise UsageError(f"{target} exists", hint="--force lets it be replaced")
    foreign.load()
    temporary = target.with_name(f".{target.stem}.brg-{os.getpid()}{target.suffix}")
    try:
        with brigade.io.open(None, source) as f:
            if not len(f) and not len(f.attrs):
                raise UsageError(f"{source} holds no arrays", hint="it is plain bytes")
            with foreign.open(temporary, "w") as root:
                left = _attributes(f.attrs, root.attrs, "the file", foreign)
                left += _arrays(f, root, foreign, progress)
        foreign.finish(temporary)
        if is_there:
            foreign.replace(target, temporary)
        else:
            temporary.rename(target)
    except BaseException:
        if temporary.exists() and (exists(target) or not is_there):
            foreign.remove(temporary)
        raise
    return left


def _arrays(f: brigade.io.File, root: Any, foreign: Foreign, progress: Progress) -> list[str]:
    arrays, left = f.arrays, []
    done, total = 0, sum(array.nbytes for array in arrays.values())
    for name, array in arrays.items():
        block = block_shape(array.shape, array.dtype.itemsize, BLOCK_BYTES)
        try:
            made = foreign.create(root, name, array.shape, array.dtype, block)
        except (ValueError, TypeError, KeyError) as error:
            raise BrigadeError(f"{foreign.name} cannot hold array {name}: {error}") from error
        for start, count in blocks(array.shape, block):
            made[slices(start, count) or ()] = f.read_array(name, start=start, count=count)
            done += int(array.dtype.itemsize * _product(count))
            progress(done, total)
        left += _attributes(array.attrs, made.attrs, f"array {name}", foreign)
    return left


def _attributes(
    attributes: brigade.io.Attributes, into: Any, whose: str, foreign: Foreign
) -> list[str]:
    left = []
    for name in attributes:
        try:
            into[name] = foreign.attribute(attributes.typed(name))
        except (TypeError, ValueError, RuntimeError) as error:
            left.append(f"attribute {name} of {whose}: {error}")
    return left


def _product(count: tuple[int, ...]) -> int:
    total = 1
    for n in count:
        total *= n
    return total
