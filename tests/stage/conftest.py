"""A small tree with everything that can go wrong in it, an image of it, and several "nodes" on one
machine: each process of a launcher gets its own base folder (`--base .../n%r`)."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mpich_launcher
import pytest

from brigade.image.writer import ImageWriter
from brigade.paths import native

LAUNCHERS = {
    "openmpi": ["mpirun", "--oversubscribe", "--bind-to", "none", "-n"],
    "mpich": mpich_launcher.OWN,
}
BLOCK = 64 << 10
SEGMENT = 100_000
LIMIT_S = 60  #: of one staging; a hang is a failure
MEMORY, ENOUGH = "/dev/shm", 1 << 30


def image_of(prefix: Path, out: Path, block: int = BLOCK) -> str:
    """An image of the whole tree `prefix`; returns its id."""
    with ImageWriter(out, block_bytes=block) as writer:
        writer.add_root(str(prefix))
        for parent in reversed(prefix.parents):
            writer.add(str(parent), os.lstat(parent))
        for order, path in enumerate([prefix, *sorted(prefix.rglob("*"))]):
            st = os.lstat(path)
            if stat.S_ISLNK(st.st_mode):
                writer.add(str(path), st, target=os.readlink(path))
            elif stat.S_ISDIR(st.st_mode):
                writer.add(str(path), st, listed=True)
            else:
                writer.add(str(path), st, source=str(path), order=order)
        return writer.commit()


def make_tree(top: Path) -> None:
    noise = os.urandom(1 << 20)
    lib = top / "lib/python3/site-packages/pkg"
    lib.mkdir(parents=True)
    for i in range(200):
        (lib / f"m{i}.py").write_bytes(b"x = %d\n" % i * (i * 7 % 90))
    (lib / "__init__.py").touch()
    (lib / "empty.py").touch()
    (lib / "na me \u00e4.py").write_text("pass\n")
    (top / "lib/big.so").write_bytes(noise * 2 + b"\0" * 700_000 + noise[:333])
    (top / "lib/big.so").chmod(0o555)
    (top / "lib/copy.so").write_bytes((top / "lib/big.so").read_bytes())  # equal, yet another file
    os.link(top / "lib/big.so", top / "lib/same.so")  # the same file
    os.link(lib / "__init__.py", lib / "same_empty.py")
    (top / "lib/exactly_a_block").write_bytes(noise[:BLOCK])
    (top / "bin").mkdir()
    (top / "bin/tool").write_bytes(b"#!/bin/sh\necho hello\n")
    (top / "bin/tool").chmod(0o755)
    (top / "bin/secret").write_bytes(b"read-only")
    (top / "bin/secret").chmod(0o400)
    (top / "bin/link").symlink_to("tool")
    (top / "bin/absolute").symlink_to(top / "bin/tool")
    (top / "bin/out_and_in").symlink_to("../" * 30 + str(top)[1:] + "/bin/tool")
    (top / "bin/folder").symlink_to("../lib/python3")
    (top / "bin/dangling").symlink_to("nowhere")
    (top / "bin/outside").symlink_to("/usr/bin/env")
    os.utime(top / "bin/tool", ns=(1_600_000_000_123_456_789, 1_500_000_000_987_654_321))
    os.utime(top / "bin/secret", ns=(0, 7))
    (top / "closed").mkdir()
    (top / "closed/file").write_bytes(b"in a read-only folder")
    (top / "closed").chmod(0o555)


@dataclass
class Bench:
    """One image and the nodes it is staged to."""

    work: Path  #: readable by everybody
    tree: Path
    image: Path
    id: str
    uid: int = field(default_factory=os.geteuid)
    before: tuple[str, ...] = ()  #: words before the program, on each node

    def base(self, node: int) -> Path:
        return self.work / f"n{node}"

    def folder(self, node: int) -> Path:
        return self.base(node) / f"brigade-{self.uid}"

    def staged(self, node: int) -> Path:
        return self.folder(node) / self.id

    def command(self, *extra: str, job: str = "job") -> list[str]:
        return [
            *self.before,
            str(native("brigade-stage")), "put", "--image", str(self.image), "--job", job,
            "--base", str(self.work / "n%r"), "--segment", str(SEGMENT), *extra,
        ]  # fmt: skip

    def start(
        self, n: int, mpi: str, *extra: str, job: str = "job", fault: str = "",
        wrap: tuple[str, ...] = (), **settings: Any,
    ) -> subprocess.Popen[str]:  # fmt: skip
        for node in range(n):
            self.base(node).mkdir(exist_ok=True)
            os.chown(self.base(node), self.uid, -1)
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        env["OMPI_MCA_btl_vader_backing_directory"] = str(self.work)  # the killed leave it
        env.pop("BRIGADE_FAULT", None)
        if fault:
            env["BRIGADE_FAULT"] = fault
        command = [*wrap, *self.command(*extra, job=job)]
        if mpi == "none":
            command += ["--mpi", "none"]
        else:
            command = [*LAUNCHERS[mpi], str(n), *command]
        return subprocess.Popen(
            command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **settings
        )

    def put(self, n: int, mpi: str, *extra: str, **settings: Any) -> dict[str, Any]:
        """Stages on n nodes; returns the JSON object, with the exit status as "status"."""
        process = self.start(n, mpi, *extra, **settings)
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except BaseException:
            process.kill()  # Open MPI 5.0: one prterun in thousands waits for ever
            process.wait()
            raise
        lines = [line for line in out.splitlines() if line.startswith("{")]
        assert len(lines) <= 1, out
        result: dict[str, Any] = (
            json.loads(lines[0]) if lines else {"ok": None, "stderr": out + err}
        )
        return {**result, "status": process.returncode}

    def drop(self, node: int, *extra: str, job: str = "job") -> list[dict[str, Any]]:
        done = subprocess.run(
            [str(native("brigade-stage")), "drop", "--image-id", self.id, "--job", job,
             "--base", str(self.base(node)), *extra],
            text=True, stdout=subprocess.PIPE, check=True, timeout=LIMIT_S,
        )  # fmt: skip
        return [json.loads(line) for line in done.stdout.splitlines()]

    def left_on(self, node: int) -> list[str]:
        """What is there of staged folders, finished or not."""
        folder = self.folder(node)
        return (
            sorted(p.name for p in folder.iterdir() if p.name != "lock") if folder.exists() else []
        )

    def check_same(self, node: int) -> None:
        """The staged tree is the source, byte by byte, with modes, times and links."""
        root = Path(str(self.staged(node) / "root") + str(self.tree))
        inodes: dict[int, int] = {}
        seen = 0
        for source in sorted(self.tree.rglob("*")):
            copy = root / source.relative_to(self.tree)
            a = source.lstat()
            if stat.S_ISLNK(a.st_mode):
                self._check_link(source, copy)
                continue
            b = copy.lstat()
            assert stat.S_IFMT(a.st_mode) == stat.S_IFMT(b.st_mode), copy
            assert a.st_mtime_ns == b.st_mtime_ns, copy
            if stat.S_ISDIR(a.st_mode):
                continue
            assert stat.S_IMODE(a.st_mode) == stat.S_IMODE(b.st_mode), copy
            assert source.read_bytes() == copy.read_bytes(), copy
            assert inodes.setdefault(a.st_ino, b.st_ino) == b.st_ino, copy
            seen += 1
        assert len(set(inodes.values())) == len(inodes), "two source files became one"
        assert seen > 200
        index = self.staged(node) / "index"
        assert index.read_bytes()[:7] == b"BRGIDX1"
        assert stat.S_IMODE(self.staged(node).stat().st_mode) == 0o700

    def _check_link(self, source: Path, copy: Path) -> None:
        if source.name in ("dangling", "outside"):
            assert not os.path.lexists(copy), "a link whose target is not in the image"
            return
        root = self.staged_root_of(copy)
        assert os.path.realpath(copy) == str(root) + os.path.realpath(source)
        if source.name in ("link", "folder"):
            assert os.readlink(copy) == os.readlink(source)

    @staticmethod
    def staged_root_of(copy: Path) -> Path:
        return next(p for p in copy.parents if p.name == "root")


@pytest.fixture(scope="session")
def stage_image() -> Iterator[tuple[Path, Path, str]]:
    """(tree, image, id), readable by every user."""
    # Not tmp_path: that lies in a folder that other users cannot enter.
    top = Path(tempfile.mkdtemp(prefix="brigade-stage-")).resolve()
    top.chmod(0o755)
    tree = top / "sw"
    tree.mkdir()
    make_tree(tree)
    image = top / "sw.brg"
    image_id = image_of(tree, image)
    image.chmod(0o644)
    yield tree, image, image_id
    (tree / "closed").chmod(0o755)
    shutil.rmtree(top)


def in_memory() -> str | None:
    """Where nodes lie: in memory, as they do in a job, if there is enough. ext4 looks long for the
    number of a new file where many have just been removed: a quarter of what these tests took."""
    place = os.statvfs(MEMORY) if os.path.isdir(MEMORY) else None
    enough = place and place.f_bavail * place.f_frsize >= ENOUGH
    return MEMORY if enough and not place.f_flag & os.ST_NOEXEC else None


@pytest.fixture
def bench(stage_image: tuple[Path, Path, str]) -> Iterator[Bench]:
    tree, image, image_id = stage_image
    work = Path(tempfile.mkdtemp(prefix="brigade-nodes-", dir=in_memory()))
    work.chmod(0o755)
    yield Bench(work, tree, image, image_id)
    shutil.rmtree(work)


def need_launcher(mpi: str) -> None:
    if not shutil.which(LAUNCHERS[mpi][0]):
        pytest.skip(f"{LAUNCHERS[mpi][0]} is not installed")
    mpich_launcher.need_own(*LAUNCHERS[mpi])


@pytest.fixture(params=sorted(LAUNCHERS))
def mpi(request: pytest.FixtureRequest) -> str:
    need_launcher(request.param)
    return str(request.param)


@pytest.fixture
def as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
