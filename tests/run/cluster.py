"""A cluster in a box with a Python environment on its shared file system, and jobs run there."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

from brigade.lab import Lab

APP = """\
import json, os, sys
import numpy, numpy.linalg, numpy.random, numpy.testing, rich.console, click.testing
world = sys.argv[1:] == ["mpi"]
if world:
    from mpi4py import MPI
    rank, size = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.allreduce(1)
else:
    rank, size = 0, 0
sys.stdout.write(json.dumps([rank, size, numpy.__file__, sys.executable, sys.path]) + "\\n")
"""
PACKAGES = {
    "numpy",
    "rich",
    "click",
    "mpi4py",
    "pygments",
    "markdown_it",
    "mdurl",
    "markdown_it_py",
}


class Cluster:
    """A lab with an environment and a program on its shared file system."""

    def __init__(self, lab: Lab, reports: Path) -> None:
        self.lab = lab
        self.venv = f"{lab.shared}/venv"
        self.app = f"{lab.shared}/project/app.py"
        self.reports = reports

    def install(self) -> None:
        """NumPy and others as they are installed for these tests, copied with their times."""
        import numpy

        site = Path(numpy.__file__).parents[1]
        names = [n for n in os.listdir(site) if n.split("-")[0].split(".")[0] in PACKAGES]
        script = (
            'set -e; cd "$1"; venv="$2"; shift 2; /usr/bin/python3 -m venv --without-pip "$venv"; '
            'to=$(echo "$venv"/lib/python3*/site-packages); tar cf - "$@" | tar xf - -C "$to"; '
            f"mkdir -p {self.lab.shared}/project"
        )
        self.lab.exec(
            "n0", ["/bin/sh", "-c", script, "sh", str(site), self.venv, *names], check=True
        )
        write = f"cat > {self.app} <<'END'\n{APP}END\n"
        self.lab.exec("n0", ["/bin/sh", "-c", write], check=True)

    def job(
        self,
        *launcher: str,
        brigade: tuple[str, ...] | None = (),
        mpi: bool = True,
        program: tuple[str, ...] = (),
        inside: tuple[str, ...] = (),
        **variables: str,
    ):
        """Run the program, `inside` an allocation if that is given; returns (sorted answers,
        requests, report or None)."""
        python = f"{self.venv}/bin/python"
        command = [*launcher, *(program or (python, self.app, *(["mpi"] if mpi else [])))]
        report = self.reports / "report.json"
        if brigade is not None:
            front = [sys.executable, "-m", "brigade", "run", "-q", "--json", str(report)]
            command = [*front, *brigade, "--", *command]
        command = [*inside, *command]
        self.lab.drop_caches()
        self.lab.reset()
        done = self.lab.run(
            command,
            cwd="/",
            env={"BRIGADE_CACHE": f"{self.lab.shared}/images", **variables},
            stdout=PIPE,
            stderr=PIPE,
            text=True,
            timeout=180,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        answers = sorted(json.loads(line) for line in done.stdout.splitlines() if line[:1] == "[")
        told = json.loads(report.read_text()) if brigade is not None else None
        return answers, self.lab.stats().total, told


@contextmanager
def brought_up(name: str) -> Iterator[Cluster]:
    """A cluster of four nodes with its environment, and no image yet."""
    reports = Path("/var/tmp") / f"brigade-{name}-{os.getpid()}"  # a folder that nodes share
    reports.mkdir()
    lab = Lab.up(name=name, nodes=4)
    try:
        cluster = Cluster(lab, reports)
        cluster.install()
        yield cluster
    finally:
        lab.down()
        shutil.rmtree(reports)
