"""Bring an image into every node's memory, and take the job's counters out again.

Both are one process per node under the user's own launcher; what they do is in `src/stage/`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from brigade import interrupt
from brigade.errors import ImageError, LostNodeError, NoMpiError, StageError
from brigade.job.leftovers import known
from brigade.job.pulse import patience
from brigade.job.step import PULSE, Step, begin_step, run_step, short
from brigade.launch import Launch
from brigade.launch.base import step_environment
from brigade.paths import native

_NOT_LONGER_S = "30"
_WORD_BYTES = 32 << 10  # that a launcher takes before anybody reads them; tests/stage/test_held.py


def node_base() -> str:
    """Where a node keeps staged folders."""
    return os.environ.get("BRIGADE_NODE_DIR") or "/dev/shm"  # empty is not a name


def staged_folder(image_id: str) -> str:
    """The staged folder of an image, the same path on every node."""
    return os.path.join(node_base(), f"brigade-{os.getuid()}", image_id)


def put(
    launch: Launch,
    image: str,
    job: str,
    *,
    mpi: str,
    readers: int | None,
    changed: list[int],
    memory: int | None = None,
    topology: str | None = None,
    progress: Callable[[int, int], None],
    held: Held | None = None,
) -> dict[str, Any]:
    """Stage `image` on all nodes of `launch`. Returns the stager's result (contracts page).

    For the entries in `changed` (numbers) the image does not answer in this job. With `memory`
    (bytes a node) the staged folder may have another id than the image: the result says which.

    Raises StageError when the image is not on every node (NoMpiError, if that was because MPI did
    not start), and ImageError when the image itself is damaged; nothing is then left on any. A
    signal ends it likewise: Interrupted. If one comes when all is staged, the result is returned.
    `held`: what `hold` has begun; it is used, or ended.
    """
    tool = _put_words(image, job, mpi, readers, memory, topology)
    entries = ",".join(map(str, changed))
    try:
        if held and held.serves(tool, entries):
            results, said, status = held.go(entries)
        else:
            if held:
                held.withdraw()
            tool += ["--changed", entries] if entries else []
            results, said, status = _run(launch, [*tool, *known()], progress)
    except LostNodeError:
        _forget_where_possible(launch, job)
        raise
    if not results or any(result.get("killed") for result in results):
        _forget(launch, job)
    if not results:
        interrupt.check()
        raise NoMpiError(f"staging ended with status {status} and said: {short(said)}")
    for result in results:
        if result.get("mpi") is False:
            interrupt.check()
            raise NoMpiError(reason_of(result))
    for result in results:
        if not result.get("ok"):
            interrupt.check()
            raise (ImageError if result.get("damaged") else StageError)(reason_of(result))
    return _joined(results)


class Held:
    """A `put` whose processes start while others still look whether the image serves. They stage
    nothing before they are told."""

    def __init__(self, tool: list[str], step: Step) -> None:
        self._tool = tool  # without what is told
        self._step = step

    def serves(self, tool: list[str], entries: str) -> bool:
        return self._tool == tool and len(entries) < _WORD_BYTES

    def go(self, entries: str) -> tuple[list[dict[str, Any]], str, int]:
        self._step.tell(entries + "\n")
        return self._step.finish()

    def withdraw(self) -> None:
        """Nobody wants it: its processes end by themselves, having made nothing."""
        self._step.tell("")
        with suppress(StageError):
            self._step.finish()


def hold(
    launch: Launch,
    image: str,
    job: str,
    *,
    mpi: str,
    readers: int | None,
    memory: int | None = None,
    topology: str | None = None,
    progress: Callable[[int, int], None],
) -> Held | None:
    """Start what `put` with the same settings would; None if that cannot be held back. Whoever has
    it must put with it, or withdraw it."""
    tool = _put_words(image, job, mpi, readers, memory, topology)
    command = launch.per_node_told([*tool, *known(), "--held"])
    if command is None:
        return None
    step = begin_step(command, progress, patience(launch.ranks), told=True)
    return Held(tool, step)


def _put_words(
    image: str,
    job: str,
    mpi: str,
    readers: int | None,
    memory: int | None,
    topology: str | None,
) -> list[str]:
    """The stager's command line, without what of it may change from one moment to the next."""
    tool = [
        str(native("brigade-stage")),
        "put",
        "--image",
        image,
        "--job",
        job,
        "--base",
        node_base(),
    ]
    tool += ["--progress", "2", *PULSE]
    if mpi != "auto":  # the stager then asks the launcher's own variables
        tool += ["--mpi", mpi]
    if readers:
        tool += ["--readers", str(readers)]
    if memory is not None:
        tool += ["--memory", str(memory)]
    if topology is not None:
        tool += ["--topology", topology]
    return tool


def _forget(launch: Launch, job: str) -> None:
    """After a launcher has ended processes before they could take away what they made: Slurm kills
    all when one has lost its MPI."""
    with suppress(StageError):
        _run(launch, [*_forget_tool(job), *PULSE], stoppable=False)


def _forget_where_possible(launch: Launch, job: str) -> None:
    """The same, where a node does not answer: nobody waits for the launcher, which waits for it.
    MPICH's ends its processes without giving them time."""
    command = ["timeout", "-k", "1", _NOT_LONGER_S, *launch.per_node(_forget_tool(job))]
    with suppress(OSError):
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, env=step_environment(),
        )  # fmt: skip
    with suppress(StageError):  # at least this host
        run_step(_forget_tool(job), lambda done, total: None, counted=False, stoppable=False)


def _forget_tool(job: str) -> list[str]:
    return [str(native("brigade-stage")), "forget", "--job", job, "--base", node_base()]


def _run(
    launch: Launch,
    tool: list[str],
    progress: Callable[[int, int], None] = lambda done, total: None,
    stoppable: bool = True,
) -> tuple[list[dict[str, Any]], str, int]:
    return run_step(
        launch.per_node(tool),
        progress,
        patience(launch.ranks),
        counted=not launch.is_here,
        stoppable=stoppable,
    )


def _joined(results: list[dict[str, Any]]) -> dict[str, Any]:
    """One result for all nodes. Without MPI each node staged for itself and says so."""
    return {
        **results[0],
        "nodes": [node for result in results for node in result["nodes"]],
        "read_bytes": sum(result["read_bytes"] for result in results),
        "seconds": max(result["seconds"] for result in results),
    }


def drop(
    launch: Launch, image_id: str, job: str, *, keep: bool, also: str | None = None
) -> list[dict[str, Any]]:
    """End a job on all its nodes; returns one object a node. `also`: and those on that image whose
    names begin like this. Never raises: the job has been run."""
    tool = [str(native("brigade-stage")), "drop", "--image-id", image_id, "--job", job]
    tool += ["--base", node_base(), *(["--keep"] if keep else []), *known(), *PULSE]
    tool += ["--also", also] if also else []
    try:
        results, _, _ = _run(launch, tool, stoppable=False)
    except StageError:
        results = []
    if not results and not launch.is_here:  # an allocation that is over starts no step more
        with suppress(StageError):
            results, _, _ = run_step(tool, lambda done, total: None, counted=False, stoppable=False)
    return results


def reason_of(result: dict[str, Any]) -> str:
    """Why staging failed, in words."""
    words = str(result.get("reason", "no reason given"))
    where = result.get("host")
    if where and where not in words:
        words = f"{where}: {words}"
    needed, free = result.get("needed"), result.get("free")
    if needed and free is not None and "needed" not in words:
        words += f" (needed {needed / 2**20:.0f} MiB, free {free / 2**20:.0f} MiB)"
    return words
