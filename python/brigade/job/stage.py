"""Bring an image into every node's memory, and take the job's counters out again.

Both are one process per node under the user's own launcher; what they do is in `src/stage/`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from brigade.errors import StageError
from brigade.launch import Launch
from brigade.paths import native

_PROGRESS = re.compile(r"^(?:\d+: )?(\d+) (\d+)$")  # srun --label puts "N: " in front


def node_base() -> str:
    """Where a node keeps staged folders."""
    return os.environ.get("BRIGADE_NODE_DIR", "/dev/shm")


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
    progress: Callable[[int, int], None],
) -> dict[str, Any]:
    """Stage `image` on all nodes of `launch`. Returns the stager's result (contracts page).

    For the entries in `changed` (numbers) the image does not answer in this job.

    Raises StageError when the image is not on every node; nothing is then left on any.
    """
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
    tool += ["--mpi", mpi, "--progress", "2"]
    if readers:
        tool += ["--readers", str(readers)]
    if changed:
        tool += ["--changed", ",".join(map(str, changed))]
    results, said, status = _run(launch.per_node(tool), progress)
    if not results:
        raise StageError(f"staging ended with status {status} and said: {_short(said)}")
    result = results[-1]
    if not result.get("ok"):
        raise StageError(_reason(result))
    return result


def drop(launch: Launch, image_id: str, job: str, *, keep: bool) -> list[dict[str, Any]]:
    """End a job on all its nodes; returns one object a node. Never raises: the job has been run."""
    tool = [str(native("brigade-stage")), "drop", "--image-id", image_id, "--job", job]
    tool += ["--base", node_base(), *(["--keep"] if keep else [])]
    try:
        results, _, _ = _run(launch.per_node(tool), lambda done, total: None)
    except StageError:
        return []
    return results


def _run(
    command: list[str], progress: Callable[[int, int], None]
) -> tuple[list[dict[str, Any]], str, int]:
    """Run a step; returns its JSON lines, what else it said, and its status."""
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    except OSError as error:
        raise StageError(f"cannot start {command[0]}: {error.strerror}") from error
    assert child.stdout and child.stderr
    said: list[str] = []
    errors = child.stderr

    def listen() -> None:
        for line in errors:
            match = _PROGRESS.match(line)
            if match:
                progress(int(match.group(1)), int(match.group(2)))
            elif line.strip():
                said.append(line.strip())

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    results = []
    try:
        for line in child.stdout:
            text = line[line.find("{") :] if "{" in line else ""
            try:
                results.append(json.loads(text))
            except ValueError:
                if line.strip():
                    said.append(line.strip())
        status = child.wait()
        listener.join()
    except KeyboardInterrupt:
        child.send_signal(signal.SIGTERM)
        child.wait()
        raise
    return results, "; ".join(said), status


def _reason(result: dict[str, Any]) -> str:
    """Why staging failed, in words."""
    words = str(result.get("reason", "no reason given"))
    where = result.get("host")
    if where and where not in words:
        words = f"{where}: {words}"
    needed, free = result.get("needed"), result.get("free")
    if needed and free is not None and "needed" not in words:
        words += f" (needed {needed / 2**20:.0f} MiB, free {free / 2**20:.0f} MiB)"
    return words


def _short(text: str) -> str:
    return text[-400:] or "nothing"
