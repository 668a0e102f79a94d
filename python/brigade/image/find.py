"""Which image a word on the command line means: a file, or one of those in the cache."""

from __future__ import annotations

import os
from pathlib import Path

from brigade.errors import ImageError
from brigade.paths import cache_dir
from brigade.shut import exists

SUFFIX = ".brg"
_ID_AT, _ID_BYTES, _SHORTEST_ID = 16, 16, 4


def cached() -> list[Path]:
    """The images in the cache folder, by name."""
    folder = cache_dir() / "images"
    return sorted(folder.glob("*" + SUFFIX)) if folder.is_dir() else []


def find_image(word: str) -> Path:
    """The file `word`; or else the one image in the cache whose name or id starts with it."""
    path = Path(word)
    if exists(path):
        return path
    found = _named(word, cached())
    if len(found) == 1:
        return found[0]
    folder = cache_dir() / "images"
    if not found:
        raise ImageError(
            f"there is no file {word}, and no image whose name or id starts so in {folder}",
            hint="give the path of an image, or list the cache: " + f"ls {folder}",
        )
    names = ", ".join(path.name for path in found)
    raise ImageError(
        f"{word} could mean {len(found)} images in {folder}: {names}", hint="give more of the name"
    )


def _named(word: str, images: list[Path]) -> list[Path]:
    if os.sep in word:
        return []
    exact = [path for path in images if word in (path.name, path.stem)]
    if exact:
        return exact
    return [path for path in images if path.name.startswith(word) or _id_starts(path, word)]


def _id_starts(path: Path, word: str) -> bool:
    """Whether the image's id starts with `word`, from its header alone (docs/format.md)."""
    if len(word) < _SHORTEST_ID:
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(_ID_AT + _ID_BYTES)
    except OSError:
        return False
    return head[: _ID_AT - 1 : -1].hex().startswith(word.lower())
