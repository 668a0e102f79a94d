"""Ways to bring an image into the nodes' memory: what stands there already, MPI, or sbcast.

The first that works is taken, and the result says which: `transport` is "standing" (nothing was
moved), "mpi", "sbcast" (`transport_why`: what spoke against MPI), or "alone" (each node read the
image for itself).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from brigade import interrupt
from brigade.errors import NoMpiError, StageError
from brigade.job import sbcast, stage
from brigade.job.early import Early
from brigade.job.progress import Progress
from brigade.job.pulse import patience
from brigade.job.standing import Standing
from brigade.job.step import PULSE, run_step
from brigade.job.way import Way
from brigade.launch import Launch
from brigade.paths import native


def bring(
    launch: Launch,
    image: str,
    image_id: str,
    job: str,
    way: Way,
    stands: Standing | None,
    progress: Callable[[int, int], None],
    early: Early | None = None,
    join_as: str | None = None,
) -> dict[str, Any]:
    """The image on every node of `launch`, with an entry for `job`; the stager's result.

    `stands`: what may be there already; `early`: what may have been begun; `join_as`: the entry
    that keeps what stands, where a new one is not wanted. Raises StageError when the image is not
    on every node.
    """
    if stands and way.memory in (None, stands.memory):
        joined = _join(launch, join_as or job, way, stands)
        if joined:
            return joined
        if interrupt.noted() and not join_as:
            stage.drop(launch, stands.staged_id, job, keep=True)
    interrupt.check()
    if way.transport == "sbcast" and not sbcast.possible(launch):
        raise StageError(
            "--transport sbcast needs srun, inside an allocation, and Slurm's sbcast in PATH"
        )
    if way.transport == "sbcast":
        return _by_sbcast(launch, image, image_id, job, way, progress, None)
    fall_back = way.transport == "auto" and sbcast.possible(launch)
    if fall_back and way.mpi == "none" and launch.nodes > 1:
        why = "the launcher was told to start no MPI"
        return _by_sbcast(launch, image, image_id, job, way, progress, why)
    try:
        staged = stage.put(
            launch,
            image,
            job,
            mpi=way.mpi,
            readers=way.readers,
            changed=way.changed,
            memory=way.memory,
            topology=way.topology,
            progress=progress,
            held=early.take() if early else None,
        )
    except NoMpiError as error:
        if not fall_back:
            raise
        return _by_sbcast(launch, image, image_id, job, way, progress, error.message)
    return {**staged, "transport": "alone" if way.mpi == "none" else "mpi"}


def _by_sbcast(
    launch: Launch,
    image: str,
    image_id: str,
    job: str,
    way: Way,
    progress: Callable[[int, int], None],
    why: str | None,
) -> dict[str, Any]:
    staged = sbcast.put(
        launch, image, image_id, job, changed=way.changed, memory=way.memory, progress=progress
    )
    return {**staged, "transport": "sbcast", "transport_why": why}


def warn_of(staged: dict[str, Any], progress: Progress) -> None:
    """Say what staging could do without, but was asked for, and where it was not."""
    nodes = staged.get("nodes", [])
    n_hosts = len({node["host"] for node in nodes})
    if n_hosts < len(nodes):
        progress.warn(
            f"the launcher was to start one process on each of {len(nodes)} nodes, and started "
            f"them on {n_hosts}\n  ranks on other nodes start plainly"
        )
    warning = (staged.get("topology") or {}).get("warning")
    if warning:
        progress.warn(f"{warning}\n  nodes stand in the launcher's order")


def _join(launch: Launch, job: str, way: Way, stands: Standing) -> dict[str, Any] | None:
    """Join what stands, without MPI and without the image; None if a node does not have it.

    What was joined until then is left: staging finds it there, and takes it away if it fails.
    """
    start = time.monotonic()
    tool = [str(native("brigade-stage")), "join", "--image-id", stands.staged_id, "--job", job]
    tool += ["--base", stage.node_base(), *PULSE]
    if way.changed:
        tool += ["--changed", ",".join(map(str, way.changed))]
    try:
        results, _, status = run_step(
            launch.per_node(tool),
            lambda done, total: None,
            patience(launch.ranks),
            counted=not launch.is_here,
        )
    except StageError:
        return None
    if status or not results or not all(result.get("found") for result in results):
        return None
    nodes = [
        {"host": result["host"], "already": True, "bytes": 0, "read_bytes": 0} for result in results
    ]
    return {
        "ok": True,
        "image_id": stands.staged_id,
        "nodes": nodes,
        "read_bytes": 0,
        "seconds": time.monotonic() - start,
        "bytes": 0,
        "image_bytes": stands.image_bytes,
        "transport": "standing",
    }
