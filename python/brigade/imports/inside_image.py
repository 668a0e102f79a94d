"""Rank 0's part of a broadcast: which image, is it good for this program, what others must know.

It runs in one process of the job; the others wait. What must stay true: an image that is stale,
or made for another Python, is refused before a byte of it is sent.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import marshal
import os
import shlex
import sys
from collections.abc import Iterable
from typing import Any

from brigade.errors import ImageError
from brigade.image import freshness
from brigade.image.find import find_image
from brigade.image.reader import Image
from brigade.imports.table import Interpreter
from brigade.job.key import image_path
from brigade.paths import native
from brigade.whose import stranger


def offer(word: str | os.PathLike[str] | None, cover: Iterable[str]) -> dict[str, Any]:
    """The image and what all ranks must know of it. Raises BrigadeError if there is none to use."""
    path = str(find_image(os.fspath(word))) if word is not None else _kept(cover)
    with Image(path) as image:
        _check_python(image)
        found = freshness.check(image)
        if not found.ok:
            where, what = found.changed[0]
            raise ImageError(
                f"{path} is stale: {where} {what}",
                hint="make it anew with `brigade run --renew` or `brigade image create`",
            )
        return {
            "reason": "",
            "image": path,
            "id": image.id,
            "bytes": image.total_bytes,
            "raw_bytes": image.raw_bytes,
            "changed": found.silent,
            "stager": str(native("brigade-stage")),
        }


def _kept(cover: Iterable[str]) -> str:
    """The image that `brigade run` keeps for this program."""
    program = program_of(list(sys.argv), getattr(sys, "orig_argv", None))
    path = image_path([program], cover)
    if not os.path.exists(path):
        raise ImageError(
            f"there is no image for {shlex.join(program)}: {path} is missing",
            hint="run it once under `brigade run`, or make one with `brigade image create` and "
            "give it as broadcast(comm, image=FILE)",
        )
    user = stranger(path)
    if user is not None:
        raise ImageError(
            f"{path} belongs to user {user}, and what an image holds is run",
            hint="run it once under `brigade run`, or name the image: broadcast(comm, image=FILE)",
        )
    return path


def program_of(argv: list[str], orig_argv: list[str] | None) -> list[str]:
    """The command line that started this interpreter, as near as it is known (3.9: not whole)."""
    return orig_argv if orig_argv else [sys.executable, *argv]


def _check_python(image: Image) -> None:
    here = Interpreter(
        executable=sys.executable,
        cache_tag=sys.implementation.cache_tag or "",
        magic=importlib.util.MAGIC_NUMBER,
        optimization=str(sys.flags.optimize or ""),
        extension_suffixes=tuple(importlib.machinery.EXTENSION_SUFFIXES),
        check_hash_pycs=_check_hash_pycs(),
    )
    section = image.python_table
    tables = marshal.loads(section) if section else {}
    if not tables.get(here.key):
        made_for = sorted({key.split("|")[1] for key in tables if tables[key]})
        raise ImageError(
            f"{image.path} has no import tables for this Python ({here.cache_tag}), "
            f"only for {', '.join(made_for) or 'none'}",
            hint="make an image with the Python that runs the program",
        )


def _check_hash_pycs() -> str:
    import _imp

    return str(_imp.check_hash_based_pycs)
