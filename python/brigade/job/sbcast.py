"""Staging without MPI: Slurm's `sbcast` carries the image, and each node stages from its own copy.

    sbcast   brigade-land, the stager without MPI, into each node's memory
    srun     it makes the node's folder ready, or finds that the image is there already
    sbcast   the image into that folder, which only its user can enter
    srun     each node verifies, decompresses and publishes; copy and program go

sbcast serves all nodes of an allocation, so all of this does, and the end of the job as well. What
must stay true: after a failure nothing of this is left on any node that answers.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from typing import Any

from brigade import interrupt
from brigade.errors import ImageError, StageError
from brigade.job import stage
from brigade.job.leftovers import known
from brigade.job.pulse import patience
from brigade.job.step import PULSE, run_step, short
from brigade.launch import Launch
from brigade.paths import native

_PATIENCE_S = 600.0  # sbcast says nothing while it carries
# the program may not have arrived everywhere, or not whole; where staging has ended it has gone
_FORGET = (
    'carried=$1 installed=$2; shift 2; for tool in "$carried" "$installed"; do '
    '[ -x "$tool" ] && "$tool" "$@" > /dev/null && break; done; rm -f "$carried"'
)


def possible(launch: Launch) -> bool:
    """Whether sbcast can be used: inside one allocation, and for steps of srun's."""
    if launch.kind != "srun" or launch.spans_jobs:
        return False
    inside = launch.slurm_job or os.environ.get("SLURM_JOB_ID")
    return bool(inside) and shutil.which("sbcast") is not None


def put(
    launch: Launch,
    image: str,
    image_id: str,
    job: str,
    *,
    changed: list[int],
    memory: int | None,
    progress: Callable[[int, int], None],
) -> dict[str, Any]:
    """As `stage.put`, without MPI. `launch` then means all nodes of its allocation.

    Raises StageError when the image is not on every node.
    """
    carried = _Carried(launch, job)
    launch.everywhere = True
    start = time.monotonic()
    total = os.path.getsize(image)
    try:
        carried.send(str(native("brigade-land")), carried.program)
        more = ["--changed", ",".join(map(str, changed))] if changed else []
        there = carried.step("join", "--image-id", image_id, *more)
        progress(0, total)
        if memory is None and all(node["found"] for node in there):
            carried.remove(keep_job=True)
            return _result(image_id, there, 0, total, start)
        carried.send(image, f"{carried.folder}/image")
        progress(total // 2, total)
        cap = ["--memory", str(memory)] if memory is not None else []
        words = ["--image", f"{carried.folder}/image", "--mpi", "none", *known()]
        put = carried.step("put", *words, *cap, *more)
        staged_id = put[0]["image_id"]
        if memory is None and staged_id != image_id:
            raise StageError(f"{image} was exchanged while it was carried to the nodes")
        progress(total, total)
        return {
            **put[0],
            **_result(
                staged_id, [node for one in put for node in one["nodes"]], total, total, start
            ),
            "bytes": max(one["bytes"] for one in put),
        }
    except BaseException:
        carried.remove()
        raise


class _Carried:
    """What lies on the nodes in between, and how it gets there and goes."""

    def __init__(self, launch: Launch, job: str) -> None:
        self._launch, self._job = launch, job
        self._name = os.urandom(8).hex()  # nobody can have made a file of that name before
        base, user = stage.node_base(), f"brigade-{os.getuid()}"
        self.program = os.path.join(base, f"{user}.land-{self._name}")
        self.folder = os.path.join(base, user, f"incoming-{self._name}")

    def send(self, path: str, to: str) -> None:
        """A file to every node; fails if the name is taken there."""
        where = ["--jobid", self._launch.slurm_job] if self._launch.slurm_job else []
        command = ["sbcast", *where, path, to]
        _, said, status = run_step(command, lambda done, total: None, _PATIENCE_S)
        interrupt.check()
        if status:
            raise StageError(f"sbcast could not carry {path} to the nodes: {short(said)}")

    def step(self, command: str, *more: str) -> list[dict[str, Any]]:
        """One of the carried program's commands on every node; what each said."""
        tool = [self.program, command, "--job", self._job, "--base", stage.node_base(), *PULSE]
        tool += ["--incoming", self._name, *more]
        results, said, status = run_step(
            self._launch.per_node(tool), lambda done, total: None, patience(self._launch.ranks)
        )
        interrupt.check()
        for result in results:
            if result.get("reason"):
                raise (ImageError if result.get("damaged") else StageError)(stage.reason_of(result))
        if status or not results:
            raise StageError(
                f"staging what sbcast carried ended with status {status} and said: {short(said)}"
            )
        return results

    def remove(self, keep_job: bool = False) -> None:
        """Take it all away again; what cannot be is left to `brigade clean`."""
        job = "-" if keep_job else self._job  # a job that nobody has
        forget = ["forget", "--job", job, "--base", stage.node_base()]
        forget += ["--incoming", self._name, *PULSE]
        programs = [self.program, str(native("brigade-land"))]
        try:
            run_step(
                self._launch.per_node(["/bin/sh", "-c", _FORGET, "sh", *programs, *forget]),
                lambda done, total: None,
                patience(self._launch.ranks),
                stoppable=False,
            )
        except StageError:
            pass


def _result(
    staged_id: str, nodes: list[dict[str, Any]], read: int, total: int, start: float
) -> dict[str, Any]:
    """The stager's result, as if one process had seen it all."""
    return {
        "ok": True,
        "image_id": staged_id,
        "nodes": [
            {"bytes": 0, **node, "already": node.get("already", node.get("found")), "read_bytes": 0}
            for node in nodes
        ],
        "read_bytes": read,
        "seconds": time.monotonic() - start,
        "bytes": 0,
        "image_bytes": total,
    }
