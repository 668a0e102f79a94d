"""Import: an HDF5 or Zarr file becomes a file of named arrays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import brigade.io
from brigade.errors import UsageError
from brigade.io import _lib
from brigade.io.transfer.blocks import block_shape, blocks, slices
from brigade.io.transfer.foreign import Foreign
from brigade.io.transfer.leave import BLOCK_BYTES, Progress
from brigade.shut import exists


def take(
    source: Path,
    target: Path,
    foreign: Foreign,
    progress: Progress,
    replace: bool = False,
    skip: bool = False,
) -> list[str]:
    """Returns what could not be carried, one sentence each. Arrays among that are an error,
    before anything is written, unless `skip`."""
    foreign.load()
    if not exists(source):
        raise UsageError(f"there is no {source}")
    if not (source.is_file() or source.is_dir()):  # the opening of a pipe waits for who writes it
        raise UsageError(f"{source} is no plain file")
    if exists(target) and not replace:
        raise UsageError(f"{target} exists", hint="--force lets it be replaced")
    with foreign.open(source, "r") as root:
        left: list[str] = []
        found = list(_arrays(root, foreign, source.stem, left))
        refused = [f"array {name}: {why}" for name, _, why in found if why]
        if refused and not skip:
            raise UsageError("; ".join(refused), hint="--skip leaves these out")
        with brigade.io.open(None, target, "w") as f:
            left += refused + _attributes(root, f.attrs, "the file", foreign)
            kept = [(name, array) for name, array, why in found if not why]
            left += _copy(f, kept, foreign, progress)
    return left


def _arrays(
    root: Any, foreign: Foreign, alone: str, left: list[str]
) -> Iterator[tuple[str, Any, str]]:
    """(name, array, why it cannot be carried or ""), in the order of the file."""
    if foreign.is_array(root):
        yield alone, root, _why_not(root)
        return
    for name, item in foreign.children(root):
        if item is None:
            left.append(f"link {name}: it leads elsewhere")
        elif foreign.is_array(item):
            yield name, item, _why_not(item)
        elif not foreign.is_group(item):  # a named type of HDF5
            left.append(f"type {name}: it is no array")
        else:
            if len(item.attrs):
                left.append(f"attributes of group {name}: {', '.join(item.attrs)}")
            inside: list[str] = []
            for below, array, why in _arrays(item, foreign, alone, inside):
                yield f"{name}/{below}", array, why
            left += [sentence.replace(" ", f" {name}/", 1) for sentence in inside]


def _why_not(array: Any) -> str:
    if array.shape is None:
        return "it has no shape"
    if len(array.shape) > _lib.MAX_DIMS:
        return f"it has {len(array.shape)} dimensions, {_lib.MAX_DIMS} are possible"
    if getattr(array.dtype, "name", "") not in _lib.NUMBERS or array.dtype.metadata:
        return f"elements of type {array.dtype} have no equal"
    return ""


def _copy(
    f: brigade.io.File, arrays: list[tuple[str, Any]], foreign: Foreign, progress: Progress
) -> list[str]:
    left = []
    done, total = 0, sum(array.dtype.itemsize * int(array.size) for _, array in arrays)
    for name, array in arrays:
        shape, unit = array.shape, array.dtype.itemsize
        f.write_array(name, None, shape=shape, dtype=array.dtype.name)
        grain = getattr(array, "chunks", None)
        for start, count in blocks(shape, block_shape(shape, unit, BLOCK_BYTES, grain)):
            block = array[slices(start, count) or ()]
            f.write_array(name, block, shape=shape, start=start)
            done += block.nbytes
            progress(done, total)
        left += _attributes(array, f[name].attrs, f"array {name}", foreign)
    return left


def _attributes(owner: Any, into: brigade.io.Attributes, whose: str, foreign: Foreign) -> list[str]:
    left = []
    for name in owner.attrs:
        try:
            value = owner.attrs[name]
            if isinstance(value, bytes):
                value = value.decode()
            into[name] = str(value) if isinstance(value, str) else value
        except (TypeError, ValueError, OSError) as error:
            left.append(f"attribute {name} of {whose}: {error}")
    return left
