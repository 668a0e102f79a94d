"""Grow an image by what runs have missed, without another trial.

    IMAGE.records   the trial's records that IMAGE was made from (tar.gz), with `trial.json`, and
                    `added.json`: what has been added to them since, and what --cover named
    IMAGE.missed    what the last runs missed and the image does not have yet (`missed.py`)

Growing writes what was missed into the records as one more process of each rank, and builds the
image from them again: so it is what a trial that did all this would have given, by the same rules,
and nothing that was in it is lost unless it has changed on the file system. Contents that have not
changed are taken over from the image as they are.

What must stay true: the records are replaced before the image, each by one rename; stopped in
between, the next growth does the same again. What was added once is never asked for again, so that
a path that cannot be held does not make every run grow. What another user has put beside an image
is not read.
"""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Callable

from brigade.errors import ImageError
from brigade.image.build import Built, build
from brigade.image.missed import Miss, missed_of, pending
from brigade.image.reader import Image
from brigade.trial.record import FACTS, Trial, load, read_facts
from brigade.whose import open_ours

_CAUSES = frozenset({"UNKNOWN", "NO_CONTENT", "DIRECTORY"})
_LISTS = frozenset({"list", "dirfd"})
_MOST = 4096  # paths kept in one file
_LOOKED_AT = 20  # questions to the file system before a miss counts as not worth growing for
_CODE = (".py", ".pyc", ".so")
_LIST_NAME = "added.json"


@dataclass(frozen=True)
class Grown:
    """What growing did."""

    built: Built
    paths: int  # that were missed and are known now, or were tried


def records_of(image: str) -> str:
    return image + ".records"


def keep_records(
    folder: str,
    image: str,
    cover: Iterable[str] = (),
    added: Iterable[Miss] = (),
    written: Iterable[str] = (),
) -> None:
    """Put a trial's records beside its image, to grow it by. `written`: what the trial changed
    without a record of it (`Built.unseen`), which nobody can tell later."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=3, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for name in sorted(os.listdir(folder)):
            if name.endswith((".rec", ".mountinfo")):
                with open(os.path.join(folder, name), "rb") as stream:
                    _put(tar, name, stream.read())
        facts = read_facts(folder)
        facts["written"] = sorted({*facts.get("written", []), *written})
        _put(tar, FACTS, json.dumps(facts).encode())
        lists = {"cover": list(cover), "added": sorted(set(added))}
        _put(tar, _LIST_NAME, json.dumps(lists).encode())
    _replace(records_of(image), packed.getvalue())


def forget(image: str) -> None:
    """Remove the records of an image that could not be made."""
    for path in (records_of(image), missed_of(image)):
        with suppress(OSError):
            os.unlink(path)


def note(image: str, nodes: Iterable[dict[str, Any]], capped: bool) -> int:
    """Keep what a run has missed beside its image, if growing would help; returns how many paths.

    `nodes` is what the stager reported at the end; `capped`: contents may be missing on purpose.
    """
    causes = _CAUSES - {"NO_CONTENT"} if capped else _CAUSES
    found: dict[Miss, str] = {}
    for node in nodes:
        for miss in node.get("misses", []):
            if miss["cause"] in causes and miss["path"].startswith("/"):  # else cut at its start
                found[miss["op"], miss["path"]] = miss["cause"]
    if not found or not os.path.exists(records_of(image)):
        return 0
    known = {*pending(image), *_lists(image)[1]}
    new = {miss: cause for miss, cause in found.items() if miss not in known}
    if not new or not _is_worth_it(new):
        return 0
    everything = sorted({*pending(image), *new})[:_MOST]
    _replace(missed_of(image), json.dumps(everything).encode())
    return len(new)


def grow(
    image: str,
    progress: Callable[[int, int], None] | None = None,
) -> Grown | None:
    """Add what was missed; None if that is nothing. Raises ImageError if the image has no
    records beside it, BrigadeError if it cannot be built."""
    missed = pending(image)
    if not missed:
        return None
    folder = tempfile.mkdtemp(prefix="brigade-grow-")
    try:
        _unpack(image, folder)
        cover, added = _lists(image)
        with Image(image) as held:
            bare = bool(held.meta.get("bare"))
        supplement(folder, missed, number=len(added))
        keep_records(folder, image, cover, {*added, *missed})
        built = build(folder, image, cover=cover, progress=progress, bare=bare, base=image)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(FileNotFoundError):  # another job has grown it meanwhile
        os.unlink(missed_of(image))
    return Grown(built, len(missed))


def carried(image: str) -> list[Miss]:
    """What was ever added to an image, and what waits: a new trial's image gets it too."""
    return sorted({*_lists(image)[1], *pending(image)})


def supplement(folder: str, missed: Sequence[Miss], number: int = 0) -> None:
    """Add to a trial's records what a run missed: as done by each of its ranks."""
    if not missed:
        return
    trial = load(folder)
    start = max(process.start_ns for process in trial.processes) + 1
    ranks = sorted({str(p.rank) for p in trial.processes if p.rank is not None}) or [""]
    lines = [line for miss in missed for line in _as_records(*miss)]
    for pid, rank in enumerate(ranks, start=1):
        with open(os.path.join(folder, f"grown.{pid}.{start + number}.rec"), "wb") as out:
            out.write(_one_process(trial, pid, rank, lines))


def _one_process(
    trial: Trial, pid: int, rank: str, lines: Iterable[tuple[str, str, str, str, str]]
) -> bytes:
    """What a process of the trial's program would have recorded."""
    exe = next((process.exe for process in trial.processes if process.exe), "/")
    every = [("process", str(pid), "0", exe, rank), *lines, ("end", "0", "", "", "")]
    return b"".join(os.fsencode("\0".join((*one, "0", str(pid))) + "\0") for one in every)


def _as_records(op: str, path: str) -> list[tuple[str, str, str, str, str]]:
    """What a trial would have recorded of this call, by what is there now."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            return []
        return [("stat", str(error.errno), "", path, "")]
    if stat.S_ISDIR(mode):
        return [("list" if op in _LISTS or op == "open" else "stat", "0", "", path, "")]
    records = [("open" if stat.S_ISREG(mode) else "stat", "0", "", path, "0")]
    if path.endswith(_CODE):
        folder = path.rpartition("/")[0]
        if folder.endswith("/__pycache__"):
            folder = folder.rpartition("/")[0]
        records.append(("path-entry", "0", "", folder, ""))
    return records


def _is_worth_it(new: dict[Miss, str]) -> bool:
    """Whether something that exists was missed. Names that come and go from run to run must not
    make every run grow."""
    if "NO_CONTENT" in new.values():
        return True
    return any(os.path.lexists(path) for _, path in list(new)[:_LOOKED_AT])


def _lists(image: str) -> tuple[list[str], list[Miss]]:
    """What --cover named, and what has been added since the trial."""
    try:
        with open_ours(records_of(image)) as packed, tarfile.open(fileobj=packed) as tar:
            stream = tar.extractfile(_LIST_NAME)
            lists = json.load(stream) if stream else {}
        return lists["cover"], [(op, path) for op, path in lists["added"]]
    except (OSError, KeyError, ValueError, tarfile.TarError):
        return [], []


def _unpack(image: str, folder: str) -> None:
    """The records into `folder`."""
    try:
        with open_ours(records_of(image)) as packed, tarfile.open(fileobj=packed) as tar:
            for member in tar.getmembers():
                stream = tar.extractfile(member)
                name = os.path.basename(member.name)
                if stream is None or name == _LIST_NAME:
                    continue
                with open(os.path.join(folder, name), "wb") as out:
                    shutil.copyfileobj(stream, out)
    except (OSError, tarfile.TarError) as error:
        raise ImageError(
            f"{records_of(image)}, the records that {image} was made from, cannot be read: {error}",
            hint="make the image anew with `brigade run --renew`",
        ) from error


def _put(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def _replace(path: str, data: bytes) -> None:
    folder, name = os.path.split(path)
    fd, temporary = tempfile.mkstemp(prefix=name + ".", dir=folder or ".")
    try:
        with open(fd, "wb") as out:
            out.write(data)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
