"""Bring a program of the table onto the shared file system of a lab.

Debian packages, and those that they need and the machine lacks, are downloaded and unpacked, not
installed: the machine stays as it is. Packages from PyPI go into a virtual environment.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from brigade.lab import Lab

from .table import Program

APPS = Path(__file__).parent / "apps"

# Links of packages lead to absolute paths: to those in the tree, where they are there.
RELINK = """
import os, sys
tree = sys.argv[1]
for folder, folders, files in os.walk(tree):
    for path in (os.path.join(folder, name) for name in folders + files):
        target = os.readlink(path) if os.path.islink(path) else ""
        if target.startswith("/") and os.path.lexists(tree + target):
            os.remove(path)
            os.symlink(os.path.relpath(tree + target, os.path.dirname(path)), path)
"""


def install(program: Program, lab: Lab, scratch: Path) -> str:
    """The folder on the shared file system; skips, saying why, where a package cannot be got."""
    tree = f"{lab.shared}/{program.name}"
    if program.debian:
        debs = download(program.debian, scratch / "debs")
        unpack = 'mkdir "$1" && for deb in "$2"/*.deb; do dpkg -x "$deb" "$1" || exit; done'
        shell(lab, unpack, tree, str(debs))
    else:
        lab.exec("n0", ["/usr/bin/python3", "-m", "venv", tree], check=True)
        fetch = [f"{tree}/bin/pip", "install", "-q", "--disable-pip-version-check"]
        lab.exec("n0", [*fetch, *program.pypi], host_network=True, check=True)
    shell(lab, 'cp "$2" "$1"', tree, str(APPS / program.app))
    shell(lab, f'cd "$1" && {program.prepare or "true"}', tree)
    if program.debian:
        lab.exec("n0", ["/usr/bin/python3", "-c", RELINK, tree], check=True)
    return tree


def shell(lab: Lab, script: str, *arguments: str) -> None:
    command = ["/bin/sh", "-c", script, "sh", *arguments]
    lab.exec("n0", command, host_network=True, check=True)


def download(packages: tuple[str, ...], folder: Path) -> Path:
    (folder / "partial").mkdir(parents=True)
    command = ["apt-get", "install", "--download-only", "--reinstall", "-y", "-q"]
    command += ["--no-install-recommends", "-o", f"Dir::Cache::archives={folder}"]
    command += ["-o", "Debug::NoLocking=1", *packages]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["?"])[-1]
        pytest.skip(f"{why} (apt-get update && {' '.join(command)})")
    return folder


def words(program: Program, tree: str, wide: bool = False) -> tuple[list[str], dict[str, str]]:
    """The command, to be started in its working folder, and the environment. `wide`: by the
    program's launcher."""
    multiarch = subprocess.run(["cc", "-print-multiarch"], capture_output=True, text=True).stdout
    version = subprocess.run(
        ["/usr/bin/python3", "-c", "import sys; print('python%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
    ).stdout
    names = {
        "tree": tree,
        "lib": f"{tree}/usr/lib/{multiarch.strip()}",
        "app": f"{tree}/{program.app}",
        "work": work_of(tree),
        "python": version.strip(),
    }
    command = [word.format(**names) for word in program.command]
    return [*(program.launcher if wide else ()), *command], {
        name: value.format(**names) for name, value in program.environment.items()
    }


def work_of(tree: str) -> str:
    """The working folder of the program that lies in `tree`."""
    return f"{tree}.work"
