"""HDF5 and Zarr behind the same few calls. Their libraries are loaded when they are needed."""

from __future__ import annotations

import importlib
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from brigade.errors import UsageError
from brigade.shut import exists


class Foreign(ABC):
    """A format, and the library that reads and writes it."""

    name: str
    package: str
    extra: str  #: of `pip install brigade[...]`
    suffixes: tuple[str, ...]

    def load(self) -> Any:
        """The library, or an error that says how to get it."""
        try:
            return importlib.import_module(self.package)
        except ImportError as error:
            raise UsageError(
                f"{self.name} needs the Python package {self.package}: {error}",
                hint=f"pip install {self.package}, or with Brigade: pip install '.[{self.extra}]'",
            ) from None

    @abstractmethod
    def open(self, path: Path, mode: str) -> AbstractContextManager[Any]:
        """The root group, mode "r" or "w"; or an array, where that is all there is."""

    @abstractmethod
    def create(self, root: Any, name: str, shape: Any, dtype: Any, block: Any) -> Any:
        """A new array in groups as the slashes of its name say, to be written in such blocks."""

    @abstractmethod
    def children(self, group: Any) -> Iterator[tuple[str, Any]]:
        """Name and object of what is in a group; None for a link that leads elsewhere."""

    @abstractmethod
    def finish(self, path: Path) -> None:
        """What was written is on stable storage."""

    @abstractmethod
    def remove(self, path: Path) -> None:
        """Removes a file of this format, and nothing that is none."""

    @abstractmethod
    def replace(self, path: Path, new: Path) -> None:
        """`new` takes the place of a file of this format, and of nothing that is none. If that
        fails, or is interrupted, what lies at `path` is whole, the old or the new."""

    def is_array(self, item: Any) -> bool:
        return hasattr(item, "shape")

    def is_group(self, item: Any) -> bool:
        return hasattr(item, "keys")

    def attribute(self, value: Any) -> Any:
        """An attribute's value (str or one-dimensional array) as the library takes it."""
        return value if isinstance(value, str) or len(value) != 1 else value[0]


class Hdf5(Foreign):
    name, package, extra = "HDF5", "h5py", "hdf5"
    suffixes = (".h5", ".hdf5", ".he5", ".nc")

    def open(self, path: Path, mode: str) -> AbstractContextManager[Any]:
        writes = mode == "w"
        # before HDF5 1.8 an attribute had 64 KiB at most
        oldest = {"libver": ("v108", "latest")} if writes else {}
        opened: AbstractContextManager[Any] = self.load().File(
            path, mode, track_order=writes, **oldest
        )
        return opened

    def create(self, root: Any, name: str, shape: Any, dtype: Any, block: Any) -> Any:
        return root.create_dataset(name, shape=shape, dtype=dtype)

    def children(self, group: Any) -> Iterator[tuple[str, Any]]:
        hard = self.load().HardLink
        for name in group:
            yield (
                name,
                group[name] if group.get(name, getlink=True, getclass=True) is hard else None,
            )

    def is_array(self, item: Any) -> bool:
        return isinstance(item, self.load().Dataset)

    def finish(self, path: Path) -> None:
        _sync(path)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def replace(self, path: Path, new: Path) -> None:
        new.replace(path)


class Zarr(Foreign):
    name, package, extra = "Zarr", "zarr", "zarr"
    suffixes = (".zarr",)

    def open(self, path: Path, mode: str) -> AbstractContextManager[Any]:
        library = self.load()
        found = library.open_group(str(path), mode=mode) if mode == "w" else library.open(
            str(path), mode=mode
        )  # fmt: skip
        return nullcontext(found)

    def create(self, root: Any, name: str, shape: Any, dtype: Any, block: Any) -> Any:
        group, _, last = name.rpartition("/")
        inside = root.require_group(group) if group else root
        create = getattr(inside, "create_array", None) or inside.create_dataset  # zarr 3, 2
        return create(last, shape=shape, dtype=dtype, chunks=block, fill_value=0)

    def children(self, group: Any) -> Iterator[tuple[str, Any]]:
        for name in sorted(group.keys()):
            yield name, group[name]

    def attribute(self, value: Any) -> Any:
        """Zarr's attributes are JSON."""
        if isinstance(value, str):
            return value
        if value.dtype.kind == "c":
            raise TypeError("complex numbers have no JSON")
        return super().attribute(value.tolist())

    def finish(self, path: Path) -> None:
        for folder, _, files in os.walk(path):
            for name in files:
                _sync(Path(folder, name))

    def remove(self, path: Path) -> None:
        _require_zarr(path)
        _remove_any(path)

    def replace(self, path: Path, new: Path) -> None:
        """A folder takes the place of an empty one only: the old one is moved aside first, and
        removed when the new one is there."""
        _require_zarr(path)
        old = new.with_name(f"{new.stem}.old{new.suffix}")
        try:
            path.rename(old)
            new.rename(path)
            _remove_any(old)
        except BaseException:
            if exists(old) and exists(path):
                _remove_any(old)
            elif exists(old):
                old.rename(path)
            raise


def _require_zarr(path: Path) -> None:
    if path.is_dir() and not any((path / mark).exists() for mark in _MARKS):
        raise UsageError(f"{path} is a folder, and no Zarr file: it is left alone")


def _remove_any(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


_MARKS = ("zarr.json", ".zgroup", ".zarray", ".zattrs")
_FORMATS = (Hdf5(), Zarr())


def of(path: Path) -> Foreign:
    """The format that a name stands for."""
    for one in _FORMATS:
        if path.suffix.lower() in one.suffixes:
            return one
    known = ", ".join(f"{', '.join(one.suffixes)} ({one.name})" for one in _FORMATS)
    raise UsageError(
        f"{path}: the name does not say which format it is", hint=f"names end with {known}"
    )


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
