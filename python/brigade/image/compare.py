"""What differs between what two images answer.

Left aside: when and where the images were made (`meta`), the order of first use, and what the
source's file system numbers by itself (device, inode, access and change time, blocks).
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from brigade.image.layout import ABSENT, Entry
from brigade.image.reader import Image


@dataclass(frozen=True)
class Change:
    """One path that both images know, with what they say about it: (what, old, new)."""

    path: str
    what: tuple[tuple[str, str, str], ...]


@dataclass
class Difference:
    """Everything that differs; empty if the two images give the same answers."""

    removed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    roots_removed: list[str] = field(default_factory=list)
    roots_added: list[str] = field(default_factory=list)
    answers: int = 0  #: ld.so's answers that only one image has
    import_tables: bool = False

    def __bool__(self) -> bool:
        return any(vars(self).values())


def compare(old: Image, new: Image) -> Difference:
    """Compares two open images."""
    result = Difference()
    if old.id == new.id:
        return result
    before = {entry.path: entry for entry in old.entries()}
    for entry in new.entries():
        known = before.pop(entry.path, None)
        if known is None:
            result.added.append(entry.path)
            continue
        what = tuple(_differences(old, known, new, entry))
        if what:
            result.changed.append(Change(entry.path, what))
    result.removed = list(before)
    result.roots_removed = [root for root in old.roots if root not in new.roots]
    result.roots_added = [root for root in new.roots if root not in old.roots]
    answers = {answer[:4] for answer in old.answers()}
    result.answers = len(answers ^ {answer[:4] for answer in new.answers()})
    result.import_tables = old.python_table != new.python_table
    return result


def _differences(
    old_image: Image, old: Entry, new_image: Image, new: Entry
) -> Iterator[tuple[str, str, str]]:
    before, after = _said(old_image, old), _said(new_image, new)
    for what in before:
        if before[what] != after.get(what, before[what]):
            yield what, before[what], after[what]


def _said(image: Image, entry: Entry) -> dict[str, str]:
    """What an image says about a path, in words that can be compared."""
    said = {"kind": entry.kind_name}
    if entry.kind == ABSENT:
        return {**said, "error": errno.errorcode.get(entry.err, str(entry.err))}
    said["mode"] = stat.filemode(entry.mode)
    said["owner"] = f"{entry.uid}:{entry.gid}"
    if entry.target:
        said["target"] = entry.target
    else:
        said["size"] = str(entry.size)
        said["mtime_ns"] = str(entry.mtime_ns)
    said["listed"] = "yes" if entry.listed else "no"
    said["content"] = "no" if entry.content is None else image.content(entry.content).hash
    return said
