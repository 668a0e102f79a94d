"""The real scientific stack that is started: packages from PyPI in virtual environments, one on the
lab's shared file system and one on the local disk, with the same packages of the same versions."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

PACKAGES = ["numpy", "scipy", "pandas", "matplotlib", "mpi4py"]
PYTHON = "/usr/bin/python3"


def local_stack(folder: Path, packages: list[str] = PACKAGES) -> Path:
    """A virtual environment with `packages` below `folder`; made once, then found again."""
    label = hashlib.blake2b(" ".join(packages).encode(), digest_size=4).hexdigest()
    venv = folder / f"stack-{label}"
    if not (venv / "ready").exists():
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([PYTHON, "-m", "venv", str(venv)], check=True)
        pip = [str(venv / "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], check=True)
        (venv / "ready").touch()
    return venv


def copy_command(venv: Path, target: str) -> list[str]:
    """A command that makes the virtual environment `target` with the packages of `venv`.

    The interpreter's part is made anew (its paths name its place); the installed packages are
    copied with their times, so that their compiled files stay valid.
    """
    script = (
        'set -e; rm -rf "$2"; "$3" -m venv --without-pip "$2"; '
        'cd "$1" && tar cf - lib | tar xf - -C "$2"'
    )
    return ["/bin/sh", "-c", script, "copy", str(venv), target, PYTHON]


def warm_command(folder: str) -> list[str]:
    """A command that reads every file below `folder`, and the interpreter's own library, once."""
    script = 'find "$1" /usr/lib/python3* -type f -exec cat {} + > /dev/null'
    return ["/bin/sh", "-c", script, "warm", folder]
