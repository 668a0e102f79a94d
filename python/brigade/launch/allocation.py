"""An allocation of our own, taken with salloc and held by it.

salloc starts a shell that tells its environment and waits for the end of its input. So steps of
ours, and the job, find the variables that a job script would, and the allocation is given back
however this process ends.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import IO

from brigade import interrupt
from brigade.errors import LauncherError
from brigade.launch import slurm

_WAITS = "cat /proc/self/environ; echo; read _"
_GRANTED = re.compile(r"Granted job allocation (\d+)")
_GIVE_BACK_S = 10.0
# Set by salloc for its command, and not for its tasks by an srun that takes its own allocation; an
# srun inside would take the first for the user's wish.
_MORE = ("SLURM_DISTRIBUTION", "SLURM_NODE_ALIASES")


@contextmanager
def allocated(options: list[str]) -> Iterator[None]:
    """What `salloc` grants for `options`, however long the queue; this process's environment is
    that of its command meanwhile. Raises LauncherError if it grants nothing, Interrupted."""
    command = ["salloc", *options]
    srun_s = {name: value for name, value in os.environ.items() if not name.startswith("SALLOC_")}
    with TemporaryFile() as said:
        try:
            salloc = subprocess.Popen(
                [*command, "/bin/sh", "-c", _WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=said, start_new_session=True, env=srun_s,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise LauncherError("salloc is not in PATH", hint="run inside an allocation") from error
        try:
            with interrupt.promptly():
                told = _environment(salloc)
            if told is None:
                salloc.wait()
                interrupt.check()
                raise _refused(command, _text(said))
            with _environ(told):
                yield
        finally:
            _give_back(salloc, said)


def _environment(salloc: subprocess.Popen[bytes]) -> dict[str, str] | None:
    """Slurm's variables, when they are told; None if salloc ended before."""
    assert salloc.stdout
    told = b""
    while not told.endswith(b"\0\n"):
        more = os.read(salloc.stdout.fileno(), 1 << 16)
        if not more:
            return None
        told += more
    pairs = (os.fsdecode(one).partition("=") for one in told[:-2].split(b"\0"))
    return {
        name: value for name, _, value in pairs if name.startswith("SLURM") and name not in _MORE
    }


@contextmanager
def _environ(new: dict[str, str]) -> Iterator[None]:
    old = dict(os.environ)
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new.keys() - old.keys():
            del os.environ[name]
        os.environ.update(old)


def _give_back(salloc: subprocess.Popen[bytes], said: IO[bytes]) -> None:
    """salloc ends with its command; one that still waits for nodes, or will not, is ended."""
    assert salloc.stdin and salloc.stdout
    with suppress(OSError):
        salloc.stdin.close()
    granted = _GRANTED.search(_text(said))
    if not granted:
        salloc.terminate()
    try:
        salloc.wait(_GIVE_BACK_S)
    except subprocess.TimeoutExpired:
        salloc.kill()
        salloc.wait()
    salloc.stdout.close()
    granted = _GRANTED.search(_text(said))  # in the last moment, too
    if granted and salloc.returncode:
        slurm.ask(["scancel", "--quiet", granted.group(1)])


def _text(said: IO[bytes]) -> str:
    said.seek(0)
    return said.read().decode(errors="replace")


def _refused(command: list[str], said: str) -> LauncherError:
    from brigade.failure.launchers import refused

    known = refused(said, "srun")
    return LauncherError(
        f"salloc gave no allocation: {said.strip()}",
        hint=known.mend[0] if known else "`" + " ".join(command) + " true` shows it by itself",
    )
