"""The real scientific stack that is started: packages from PyPI in virtual environments, one on the
lab's shared file system and one on the local disk, with the same packages of the same versions."""

from __future__ import annotations

import hashlib
import os
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


def warm(folders: list[Path]) -> None:
    """Read every file below `folders` once, so that the local disk's copies are in the page
    cache.
    """
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(parent, name)
                if os.path.isfile(path):
                    with open(path, "rb", buffering=0) as file:
                        while file.read(1 << 20):
                            pass
