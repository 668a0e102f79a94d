"""What `brigade stage` has left standing on nodes: names and records.

A record says what stands, so that a later job looks for it there before it stages anything. It is
only a hint: whether a node has it, the node itself says (`brigade-stage join`). What keeps it in
the nodes' memory is a job entry without processes, named after the allocation and the process that
staged: what a staging that fails takes away is its own. A record names one of them. There may be
more on the same image, of stagings at the same time or of one that was killed before its record:
whoever takes an image away takes all of the allocation's (`entries`).

    <cache>/standing/<allocation>/<image id>.json
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from brigade.errors import StageError
from brigade.launch import Launch
from brigade.paths import cache_dir

_PREFIX = "standing-"  # src/stage/dead.c knows it too
_SLURM = "slurm-"


@dataclass(frozen=True)
class Standing:
    """One image that stands on the nodes of an allocation."""

    allocation: str
    image: str
    image_id: str
    staged_id: str  # another one than the image's where --memory has cut it
    memory: int | None
    image_bytes: int | None
    transport: str | None
    words: list[str]  # of the launcher that staged it
    nodes: list[str]
    since: float  # seconds, as time.time() gives them
    job: str = ""  # the entry that keeps it; "": that of the allocation's name alone
    cwd: str = ""  # in which `words` were meant; "": not known

    @property
    def entry(self) -> str:
        return self.job or _PREFIX + self.allocation


def allocation(launch: Launch | None = None) -> str:
    """Names the nodes that a job is on: Slurm's allocation, else this host."""
    number = (launch.slurm_job if launch else None) or os.environ.get("SLURM_JOB_ID")
    return f"{_SLURM}{number}" if number else os.uname().nodename


def job_name(where: str) -> str:
    """The job entry that keeps what this process stages on the nodes of allocation `where`."""
    return f"{_PREFIX}{where}.{os.uname().nodename}-{os.getpid()}"


def entries(where: str) -> str:
    """How the names of all job entries begin that `job_name` has given for allocation `where`."""
    own = "" if where.startswith(_SLURM) else f"{where}-"  # another host's name may begin like this
    return f"{_PREFIX}{where}.{own}"


def slurm_job_of(name: str) -> str | None:
    """The Slurm job whose allocation an entry (or an allocation) is named after, or None."""
    match = re.fullmatch(rf"(?:{_PREFIX})?{_SLURM}(\d+)(?:\..+)?", name)
    return match.group(1) if match else None


def make_room(where: str) -> None:
    """The folder for records of what is to stand in allocation `where`. Raises StageError."""
    with _kept_in(_folder(where)):
        _folder(where).mkdir(parents=True, exist_ok=True)


def note(what: Standing) -> None:
    """Remember what stands; appears whole or not at all. Raises StageError."""
    path = _path(what.allocation, what.image_id)
    part = path.with_suffix(f".{os.getpid()}.part")
    with _kept_in(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(asdict(what), indent=1) + "\n", encoding="utf-8")
        part.replace(path)


def find(where: str, image_id: str | None) -> Standing | None:
    """What stands of an image on the nodes of allocation `where`, as far as is known here."""
    return _read(_path(where, image_id)) if image_id else None


def all_of(where: str | None = None) -> Iterator[Standing]:
    """Everything that stands in allocation `where`, or in all of them."""
    top = cache_dir() / "standing"
    for path in sorted(top.glob(f"{where or '*'}/*.json")):
        what = _read(path)
        if what:
            yield what


def forget(what: Standing) -> None:
    """Drop a record; what is not there is no error. Raises StageError."""
    path = _path(what.allocation, what.image_id)
    with _kept_in(path.parent):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # others stand in the same allocation
        path.parent.rmdir()


@contextmanager
def _kept_in(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StageError(
            f"the record of what stands on the nodes cannot be kept in {folder}: {error.strerror}",
            hint="BRIGADE_CACHE names another folder for images and records",
        ) from error


def new(
    where: str, launch: Launch, image: str, image_id: str, staged: dict[str, Any], job: str
) -> Standing:
    """The record of what was staged just now."""
    memory = (staged.get("memory") or {}).get("allowed")
    return Standing(
        allocation=where,
        image=image,
        image_id=image_id,
        staged_id=staged["image_id"],
        memory=memory,
        image_bytes=staged.get("image_bytes"),
        transport=staged.get("transport"),
        words=launch.words,
        nodes=[node["host"] for node in staged.get("nodes", [])],
        since=time.time(),
        job=job,
        cwd=_cwd(),
    )


def _cwd() -> str:
    with suppress(OSError):  # it may have been removed
        return os.getcwd()
    return ""


def _path(where: str, image_id: str) -> Path:
    return _folder(where) / f"{image_id}.json"


def _folder(where: str) -> Path:
    return cache_dir() / "standing" / where


def _read(path: Path) -> Standing | None:
    """A record, or None if it is not there or cannot be understood: then everything is staged."""
    try:
        if path.stat().st_uid != os.geteuid():
            return None
        return Standing(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
