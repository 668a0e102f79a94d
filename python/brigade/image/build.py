"""Build an image from the records of a trial.

    records -> assemble (what is said) -> import tables, own parts, description -> writer
                                                   (reads contents, once each, or has them of an
                                                    older image)

A source that changes while it is read would leave metadata and bytes that do not belong
together. The writer notices; the image is then made once more without that path, and the
program will find the real one.

What must stay true: the image appears under its name complete or not at all, and nothing
in it was written by the trial.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Callable

from brigade import __version__
from brigade.fork.plan import Plan
from brigade.fork.program import ProgramPlan
from brigade.fork.trial_plan import of_trial
from brigade.image.assemble import MAX_DATA_FILE, Assembled, assemble
from brigade.image.layout import ABSENT
from brigade.image.own_parts import own_parts
from brigade.image.plan import UNSEEN, Entry, LeftOut
from brigade.image.writer import ImageWriter
from brigade.imports import table
from brigade.trial import mounts
from brigade.trial.record import Trial, load
from brigade.trial.summary import Summary

Progress = Callable[[int, int], None]
_TRIES = 3
_MPI = re.compile(r"^libmpi(ch|_cray|_gnu[\w]*|_intel[\w]*)?\.so(\.\d+)*$")


@dataclass
class Built:
    """An image that was made."""

    path: str
    image_id: str
    bytes: int
    entries: int
    files: int
    content_bytes: int
    seconds: float
    summary: Summary | None
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def unseen(self) -> list[str]:
        """Paths that somebody changed while the trial ran whom no record tells of."""
        return [left.path for left in self.left_out if left.why == UNSEEN]

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "id": self.image_id,
            "bytes": self.bytes,
            "entries": self.entries,
            "files": self.files,
            "content_bytes": self.content_bytes,
            "seconds": self.seconds,
            "trial": self.summary.as_json() if self.summary else None,
            "left_out": [[left.path, left.why] for left in self.left_out],
        }


def build(
    records: str | os.PathLike[str] | Trial,
    output: str | os.PathLike[str],
    *,
    cover: Iterable[str] = (),
    progress: Progress | None = None,
    level: int = 3,
    threads: int = 0,
    max_file: int | None = None,
    max_data_file: int | None = MAX_DATA_FILE,
    bare: bool = False,
    base: str | os.PathLike[str] | None = None,
) -> Built:
    """Make the image of a trial. `progress(done, total)` counts bytes of content read. `bare`: if
    the trial met nothing shared, it holds no contents: files are opened where they lie. `base`: an
    older image of the caller's own; of what has not changed since, the contents are taken from it.

    Raises TrialError if the trial gives nothing to answer for, ImageError if the image cannot
    be written.
    """
    trial = records if isinstance(records, Trial) else load(records)
    cover = list(cover)

    def look() -> Assembled:
        what = assemble(trial, cover=cover, max_file=max_file, max_data_file=max_data_file)
        if bare and what.coverage.fallback:
            what.bare = True
            for entry in what.entries:
                entry.content = False
        return what

    return make(
        look, output, trial=trial, progress=progress, level=level, threads=threads, base=base
    )


def make(
    look: Callable[[], Assembled],
    output: str | os.PathLike[str],
    *,
    trial: Trial | None,
    progress: Progress | None = None,
    level: int = 3,
    threads: int = 0,
    base: str | os.PathLike[str] | None = None,
) -> Built:
    """Write the image that `look` assembles; `look` is asked again if sources change."""
    started = time.monotonic()
    plan = of_trial(trial) if trial else None
    unsteady: dict[str, str] = {}
    for attempt in range(_TRIES):
        what = look()
        _leave_out(what, unsteady)
        with ImageWriter(output, level=level, threads=threads, base=base) as writer:
            _fill(writer, what, plan)
            writer.meta = describe(what, trial, plan)
            image_id, lost = _commit(writer, progress)
        if not lost or attempt == _TRIES - 1:
            break
        unsteady.update(lost)
    files = [entry for entry in what.entries if entry.content and entry.path not in lost]
    return Built(
        path=os.fspath(output),
        image_id=image_id,
        bytes=os.stat(output).st_size,
        entries=len(what.entries),
        files=len(files),
        content_bytes=sum(entry.stat.st_size for entry in files if entry.stat),
        seconds=time.monotonic() - started,
        summary=what.summary,
        left_out=what.left_out,
    )


def _commit(writer: ImageWriter, progress: Progress | None) -> tuple[str, dict[str, str]]:
    """The image's id, and which sources were lost, with the reason."""
    lost: dict[str, str] = {}
    return writer.commit(progress, lambda path, why: lost.update({path: why})), lost


def _leave_out(what: Assembled, unsteady: dict[str, str]) -> None:
    """Keep silent about paths that could not be read, or changed while they were."""
    if not unsteady:
        return
    what.entries = [entry for entry in what.entries if entry.path not in unsteady]
    above = {path.rpartition("/")[0] for path in unsteady}
    for entry in what.entries:
        if entry.path in above:
            entry.listed = entry.snapshot = False
    what.left_out += [LeftOut(path, why) for path, why in unsteady.items()]


def _fill(writer: ImageWriter, what: Assembled, plan: Plan | ProgramPlan | None) -> None:
    here = mounts.read()
    for root in what.coverage.roots:
        writer.add_root(root)
    for entry in what.entries:
        if entry.kind == ABSENT:
            writer.add(entry.path, order=entry.order, err=entry.err)
            continue
        writer.add(
            entry.path,
            entry.stat,
            target=entry.target or None,
            listed=entry.listed,
            snapshot=entry.snapshot,
            mount_dev=_is_mounts_own(here, entry),
            own_rights=entry.own_rights,
            order=entry.order,
            source=entry.path if entry.content else None,
        )
    for part in own_parts(what.python, plan.packed() if plan else None):
        writer.add(part.path, part.metadata, part.kind, source=part.source)
    for answer in what.answers:
        writer.add_answer(answer.context, answer.requester, answer.name, answer.path)
    writer.python_table = table.build(what.tree, what.python)


def _is_mounts_own(here: mounts.MountTable, entry: Entry) -> bool:
    """Whether the entry's device is the number of its mount: not in btrfs's subvolumes, say."""
    mount = here.of(entry.path)
    return mount is not None and entry.stat is not None and mount.device == entry.stat.st_dev


def describe(
    what: Assembled, trial: Trial | None, plan: Plan | ProgramPlan | None = None
) -> dict[str, Any]:
    """The image's description of itself (its `meta` section)."""
    files = [entry for entry in what.entries if entry.content]
    return {
        "brigade": __version__,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "host": socket.gethostname(),
        "program": what.program,
        "roots": what.coverage.why,
        "own_folders": what.own_folders,
        "python": [
            {"executable": i.executable, "version": i.version, "prefix": i.prefix}
            for i in what.python.interpreters.values()
        ],
        "mpi_library": _mpi_library(trial) if trial else None,
        "trial": what.summary.as_json() if what.summary else {},
        "entries": len(what.entries),
        "files": len(files),
        "bare": what.bare,
        "content_bytes": sum(entry.stat.st_size for entry in files if entry.stat),
        "left_out": [[left.path, left.why] for left in what.left_out],
        **({"fork": plan.as_json()} if plan else {}),
    }


def _mpi_library(trial: Trial) -> str | None:
    """The MPI that the program loaded: the staging processes use the same one."""
    for _, record in trial.records():
        if record.kind == "load" and _MPI.match(record.path.rpartition("/")[2]):
            return record.path
    return None
