"""MPI programs that call `brigade.imports.broadcast`, on one machine.

    world.run("openmpi", 4, BODY)      BODY runs on each rank; what it prints comes back, by rank

The environment has a package `pkg` (modules m0 to m39, an extension), and sees mpi4py from outside
its prefix, so that the image does not hold it.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mpich_launcher

LAUNCHERS = {
    "openmpi": ["mpirun", "--oversubscribe", "--bind-to", "none", "-n"],
    "mpich": mpich_launcher.launcher(),
}
LIMIT_S = 60  #: of one job; a hang is a failure
N_MODULES = 40
EXTENSION = "_queue"

_APP = """\
import json, os, sys
from mpi4py import MPI
import brigade.imports
comm, rank, out = MPI.COMM_WORLD, MPI.COMM_WORLD.rank, {{}}
IMAGE = os.environ.get("TEST_IMAGE")
{body}
sys.stdout.flush()
text = json.dumps({{"rank": rank, "report": str(brigade.imports.report()),
                   **brigade.imports.report().as_json(), **out}})
open(os.path.join(os.environ["TEST_OUT"], str(rank)), "w").write(text)
"""


@dataclass
class Done:
    """A job that has ended; `ranks` in order, those that got to their end."""

    status: int
    err: str
    ranks: list[dict[str, Any]]

    @property
    def warnings(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("brigade: ")]


@dataclass
class World:
    base: Path
    image: Path = field(init=False)

    def __post_init__(self) -> None:
        self.image = self.base / "env.brg"

    @property
    def python(self) -> Path:
        return self.base / "env/bin/python"

    @property
    def packages(self) -> Path:
        return next((self.base / "env/lib").glob("python*")) / "site-packages"

    def make(self) -> World:
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(self.base / "env")], check=True
        )
        import mpi4py

        outside = Path(mpi4py.__file__).resolve().parents[1]
        (self.packages / "outside.pth").write_text(f"{outside}\n")
        package = self.packages / "pkg"
        package.mkdir()
        (package / "__init__.py").write_text("")
        for number in range(N_MODULES):
            (package / f"m{number}.py").write_text(f"value = {number}\n")
        (package / "data.bin").write_bytes(os.urandom(3 << 20))
        for folder in (sysconfig.get_path("platstdlib"), sysconfig.get_config_var("DESTSHARED")):
            found = glob.glob(f"{folder}/**/{EXTENSION}.*.so", recursive=True)
            if found:
                shutil.copy(found[0], package)
                break
        command = [str(self.python), "-m", "compileall", "-q", str(self.packages)]
        subprocess.run(command, check=True)
        self.make_image()
        return self

    def make_image(self) -> None:
        command = [sys.executable, "-m", "brigade", "image", "create", "-q"]
        command += ["--prefix", str(self.base / "env"), "-o", str(self.image)]
        subprocess.run(command, check=True, capture_output=True)

    def environment(self, mpi: str, node: Path, env: Mapping[str, str] | None) -> dict[str, str]:
        own = ("BRIGADE_STAGE", "BRIGADE_STRICT", "BRIGADE_FAULT", "MPI4PY", "PYTHON")
        environ = {k: v for k, v in os.environ.items() if not k.startswith(own)}
        environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[2] / "python")
        environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        environ.update(TEST_IMAGE=str(self.image), BRIGADE_CACHE=str(self.base / "cache"))
        environ.update(BRIGADE_NODE_DIR=str(node), MPI4PY_MPIABI=mpi)
        if mpi == "mpich":  # Debian's library has another name than the one wheels ask for
            libraries = self.base / "mpich"
            libraries.mkdir(exist_ok=True)
            found = glob.glob("/usr/lib/*/libmpich.so.12")
            link = libraries / "libmpi.so.12"
            if found and not link.exists():
                link.symlink_to(found[0])
            environ["LD_LIBRARY_PATH"] = str(libraries)
        environ.update(env or {})
        return environ

    def app(self, body: str) -> Path:
        path = self.base / "app.py"
        text = _APP.format(body=body)
        if not path.exists() or path.read_text() != text:  # an image notices a rewrite
            path.write_text(text)
        return path

    def run(
        self,
        mpi: str,
        n: int,
        body: str,
        *,
        node: Path,
        env: Mapping[str, str] | None = None,
        options: tuple[str, ...] = (),
        before: tuple[str, ...] = (),
        each: tuple[str, ...] = (),
    ) -> Done:
        """`options` of Python; `before` the launcher, and before `each` rank's Python, words."""
        out = node / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        command = [*before, *LAUNCHERS[mpi], str(n), *each]
        command += [str(self.python), *options, str(self.app(body))]
        environ = self.environment(mpi, node, {"TEST_OUT": str(out), **(env or {})})
        done = subprocess.run(
            command, env=environ, text=True, capture_output=True, timeout=LIMIT_S, check=False
        )
        ranks = [json.loads(path.read_text()) for path in out.iterdir()]
        return Done(
            done.returncode, done.stderr + done.stdout, sorted(ranks, key=lambda r: r["rank"])
        )


def left_in(node: Path) -> list[str]:
    """Staged folders on a node, finished or not."""
    return sorted(p.name for p in node.glob("brigade-*/*") if p.name != "lock")
