"""Launchers: what the user wrote after `brigade run --`, understood well enough to start the same
program small (trial), with one process per node (staging), and with a wrapper (the job)."""

from __future__ import annotations

import os
import shutil
import subprocess

from brigade.errors import LauncherError, SilentLauncherError, UsageError
from brigade.launch.base import Launch
from brigade.launch.guard import environment, guarded
from brigade.launch.misplaced import is_launcher, refuse_misplaced

__all__ = ["Launch", "environment", "guarded", "parse", "parse_bare"]

_ANSWER_S = 8.0


def parse(words: list[str], ranks: int | None = None) -> Launch:
    """The launch that `words` describe; `ranks` is for programs started without a launcher.

    Raises UsageError for what cannot be staged (then start it as it is), LauncherError if
    the launcher is not there, SilentLauncherError if it does not say what it is.
    """
    refuse_misplaced(words)
    name = os.path.basename(words[0])
    if is_launcher(words[0]):
        if ranks is not None:
            raise UsageError(f"-n goes to {name}: brigade run -- {name} -n {ranks} …")
        executable = shutil.which(words[0])
        if executable is None:
            from brigade.failure.launchers import absent

            raise LauncherError(f"{words[0]} is not in PATH", hint=absent(words[0], os.environ))
        launch = _launcher(name, words, executable)
    else:
        from brigade.launch.local import LocalLaunch

        launch = LocalLaunch(words, ranks or 1)
    if not launch.program:
        raise UsageError(f"{name}: no program given")
    return launch


def parse_bare(words: list[str], here: str) -> Launch:
    """The same of a launcher without a program, or of no words: this node. `here`: what to type for
    that.

    Raises UsageError if the first word is no launcher: taken for a program, it would be this node.
    """
    if words:
        refuse_misplaced(words)
        if not is_launcher(words[0]):
            raise UsageError(
                f"{words[0]} is no launcher that Brigade knows",
                hint=f"srun, mpirun or mpiexec with options; for this node: {here}",
            )
    return parse([*words, "true"])  # a launcher's command needs some program


def _launcher(name: str, words: list[str], executable: str) -> Launch:
    if name == "srun":
        from brigade.launch.srun import SrunLaunch

        return SrunLaunch(words)
    if _is_open_mpi(executable):
        from brigade.launch.openmpi import OpenMpiLaunch

        return OpenMpiLaunch(words, executable)
    from brigade.launch.mpich import MpichLaunch

    return MpichLaunch(words, executable)


def _is_open_mpi(executable: str) -> bool:
    """Tell Open MPI's mpirun from MPICH's: by the file behind the links, else by its own word."""
    behind = os.path.basename(os.path.realpath(executable))
    if behind.startswith(("orterun", "prterun", "prte", "mpirun.openmpi")):
        return True
    if "hydra" in behind or "mpich" in behind:
        return False
    try:
        said = subprocess.run(
            [executable, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_ANSWER_S,
        )
    except subprocess.TimeoutExpired as error:
        raise SilentLauncherError(
            f"{executable} --version has not answered for {_ANSWER_S:.0f} s",
            hint="does it start anything by itself?",
        ) from error
    except OSError as error:
        raise SilentLauncherError(f"{executable} --version: {error.strerror}") from error
    return "Open MPI" in said.stdout + said.stderr or "PRRTE" in said.stdout + said.stderr
