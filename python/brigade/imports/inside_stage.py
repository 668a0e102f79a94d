"""`brigade-stage` for one node, started from a rank of a running MPI program.

What must stay true: the rank is not forked (posix_spawn starts the program without copying
the rank's memory, which MPI may have registered), and nothing of MPI is passed on but variables.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def own_folder() -> str:
    """This user's folder of staged images; the same for all ranks of a node."""
    return f"{os.environ.get('BRIGADE_NODE_DIR') or '/dev/shm'}/brigade-{os.geteuid()}"


def put(offer: dict[str, Any], memory: int, job: str) -> str:
    """Unpack the image in descriptor `memory`. Returns "" or what went wrong."""
    os.set_inheritable(memory, True)
    words = ["put", "--image", f"/proc/self/fd/{memory}", "--job", job, "--mpi", "none"]
    if offer["changed"]:
        words += ["--changed", ",".join(map(str, offer["changed"]))]
    status, said = _run(offer["stager"], words)
    if status == 0:
        return ""
    return _reason(said).replace(f"/proc/self/fd/{memory}", offer["image"]) or (
        f"{offer['stager']} ended with status {status} and said nothing"
    )


def drop(stager: str, image_id: str, job: str) -> None:
    """End a job on this node; the staged folder goes with its last job. Never raises."""
    try:
        _run(stager, ["drop", "--image-id", image_id, "--job", job])
    except OSError:
        pass  # it is tried again by the next broadcast on this node


def _run(stager: str, words: list[str]) -> tuple[int, str]:
    reading, writing = os.pipe()
    try:
        actions = [(os.POSIX_SPAWN_DUP2, writing, 1), (os.POSIX_SPAWN_DUP2, writing, 2)]
        base = os.path.dirname(own_folder())
        command = [stager, *words, "--base", base]
        pid = os.posix_spawn(stager, command, os.environ, file_actions=actions)
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    said = b""
    with open(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    return status, said.decode("utf-8", "replace").strip()


def _reason(said: str) -> str:
    """The stager's reason, out of its JSON line."""
    import json

    for line in said.splitlines():
        if line.startswith("{"):
            try:
                result = json.loads(line)
                return f"{result['host']}: {result['reason']}"
            except (ValueError, KeyError):
                break
    return said
