"""`brigade.imports.broadcast`: one broadcast, any imports after it, and nothing left behind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from broadcast_world import EXTENSION, LAUNCHERS, N_MODULES, World, left_in

BROADCAST = "brigade.imports.broadcast(comm, IMAGE)\n"
# each rank its own modules in its own order; the last imports nothing
IMPORTS = f"""
import importlib, random
names = [f"pkg.m{{n}}" for n in range({N_MODULES}) if n % comm.size == rank]
random.Random(rank).shuffle(names)
names = names if rank < comm.size - 1 else []
out["sum"] = sum(importlib.import_module(name).value for name in names)
"""


@pytest.fixture(scope="session")
def mpi_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("mpi")).make()


@pytest.fixture
def node(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture(params=sorted(LAUNCHERS))
def mpi(request: pytest.FixtureRequest) -> str:
    if not shutil.which(LAUNCHERS[request.param][0]):
        pytest.skip(f"{LAUNCHERS[request.param][0]} is not installed")
    return str(request.param)


def own_modules(rank: int, size: int) -> int:
    """The sum that IMPORTS finds."""
    last = rank == size - 1
    return 0 if last else sum(n for n in range(N_MODULES) if n % size == rank)


def test_ranks_that_import_different_modules_all_end(mpi_world: World, node: Path, mpi: str):
    done = mpi_world.run(mpi, 4, BROADCAST + IMPORTS, node=node)
    assert done.status == 0 and len(done.ranks) == 4, done.err
    for rank in done.ranks:
        assert rank["active"] and rank["ranks"] == 4 and rank["nodes"] == 1, rank
        assert rank["sum"] == own_modules(rank["rank"], 4)
        assert rank["misses"] == {}
    assert all(rank["answered"] > 10 for rank in done.ranks[:3])
    assert done.ranks[0]["image_bytes"] == mpi_world.image.stat().st_size
    assert "4 of 4 ranks import from memory" in done.ranks[1]["report"]
    assert done.warnings == []
    assert left_in(node) == []


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize("with_image", [True, False])
def test_only_rank_0_touches_what_the_image_holds(mpi_world: World, node: Path, with_image: bool):
    trace = 'exec strace -f -qq -e trace=file -o "$TEST_TRACE.$OMPI_COMM_WORLD_RANK" "$@"'
    each = ("sh", "-c", trace, "sh")
    body = (BROADCAST if with_image else "") + IMPORTS
    env = {"TEST_TRACE": str(node / "trace")}
    done = mpi_world.run("openmpi", 3, body, node=node, env=env, each=each)
    assert done.status == 0 and len(done.ranks) == 3, done.err
    folder = re.escape(f'"{mpi_world.packages}/pkg')
    asked = [
        len(re.findall(folder, (node / f"trace.{rank}").read_text(errors="replace")))
        for rank in range(3)
    ]
    if with_image:
        assert asked[1:] == [0, 0]
    else:
        assert min(asked[:2]) > 10, "the trace must show plain imports"


def test_an_extension_is_mapped_from_node_memory(mpi_world: World, node: Path):
    body = f"""
{BROADCAST}
from pkg import {EXTENSION}
out["file"] = {EXTENSION}.__file__
out["maps"] = open("/proc/self/maps").read()
"""
    done = mpi_world.run("openmpi", 2, body, node=node)
    assert len(done.ranks) == 2, done.err
    for rank in done.ranks:
        assert Path(rank["file"]).parent == mpi_world.packages / "pkg"
        mapped = {word for word in rank["maps"].split() if f"pkg/{EXTENSION}." in word}
        assert mapped and all(path.startswith(f"{node}/brigade-") for path in mapped)


TWO_NODES = """
from brigade.imports import inside_move
inside_move.same_node = lambda comm: comm.Split(comm.rank // 2, comm.rank)
os.environ["BRIGADE_NODE_DIR"] += f"/n{rank // 2}"
"""


def two_nodes(node: Path) -> tuple[Path, Path]:
    nodes = node / "n0", node / "n1"
    for folder in nodes:
        folder.mkdir()
    return nodes


def test_each_node_gets_one_copy_in_small_segments(mpi_world: World, node: Path, mpi: str):
    nodes = two_nodes(node)
    body = TWO_NODES + "brigade.imports.broadcast(comm, IMAGE, segment_bytes=100_000)\n" + IMPORTS
    body += 'comm.Barrier(); out["there"] = os.listdir(next(iter(__import__("glob").glob('
    body += 'os.environ["BRIGADE_NODE_DIR"] + "/brigade-*"))))\n'
    done = mpi_world.run(mpi, 4, body + "comm.Barrier()\n", node=node)
    assert done.status == 0 and len(done.ranks) == 4, done.err
    for rank in done.ranks:
        assert rank["active"] and rank["nodes"] == 2 and rank["sum"] == own_modules(rank["rank"], 4)
        assert len(rank["there"]) == 2, "the lock and one staged folder"
    assert [left_in(n) for n in nodes] == [[], []]


def test_one_node_without_its_memory_leaves_all_plain_and_nothing_behind(
    mpi_world: World, node: Path
):
    nodes = two_nodes(node)
    nodes[1].rmdir()
    done = mpi_world.run("openmpi", 4, TWO_NODES + BROADCAST + IMPORTS, node=node)
    assert done.status == 0 and len(done.ranks) == 4, done.err
    assert not any(rank["active"] for rank in done.ranks)
    assert all("no room" in rank["reason"] for rank in done.ranks)
    assert len(done.warnings) == 2 and "no room" in done.warnings[0]
    assert left_in(nodes[0]) == []


def test_an_image_that_cannot_be_read_to_its_end_leaves_all_plain(mpi_world: World, node: Path):
    two_nodes(node)
    fail = """
from brigade.imports import inside_move
read = inside_move._read
inside_move._read = lambda fd, into, at, path: read(fd, into, at, path) if not at else "EIO there"
"""
    body = TWO_NODES + fail + "brigade.imports.broadcast(comm, IMAGE, segment_bytes=1_000_000)\n"
    done = mpi_world.run("openmpi", 3, body, node=node)
    assert done.status == 0 and [r["reason"] for r in done.ranks] == ["EIO there"] * 3, done.err
    assert left_in(node / "n0") == left_in(node / "n1") == []


def damaged(image: Path, to: Path) -> Path:
    data = bytearray(image.read_bytes())
    data[-len(data) // 4] ^= 1
    to.write_bytes(data)
    return to


def small_tmpfs(node: Path) -> tuple[str, ...]:
    script = f'mount -t tmpfs -o size=4m none "{node}/small" && exec "$@"'
    return "unshare", "-m", "sh", "-c", script, "sh"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("trouble", ["missing", "damaged", "other python", "no room"])
def test_what_goes_wrong_is_said_once_and_imports_are_plain_or_all_ranks_raise(
    mpi_world: World, node: Path, trouble: str, strict: bool
):
    env, options, before = {}, (), ()
    if trouble == "missing":
        env, words = {"TEST_IMAGE": str(node / "none.brg")}, "there is no file"
    elif trouble == "damaged":
        env, words = {"TEST_IMAGE": str(damaged(mpi_world.image, node / "bad.brg"))}, "damaged"
    elif trouble == "other python":
        options, words = ("-O",), "no import tables for this Python"
    else:
        if os.geteuid() != 0:
            pytest.skip("needs root, to mount a small tmpfs")
        (node / "small").mkdir()
        env, before = {"BRIGADE_NODE_DIR": str(node / "small")}, small_tmpfs(node)
        words = "MiB free, the image needs"
    body = f"""
try:
    brigade.imports.broadcast(comm, IMAGE, strict={strict})
except brigade.errors.BrigadeError as error:
    out["raised"] = str(error)
"""
    done = mpi_world.run(
        "openmpi", 3, body + IMPORTS, node=node, env=env, options=options, before=before
    )
    assert done.status == 0 and len(done.ranks) == 3, done.err
    for rank in done.ranks:
        assert not rank["active"] and rank["sum"] == own_modules(rank["rank"], 3)
        assert words in rank["raised" if strict else "reason"]
    assert len(done.warnings) == (0 if strict else 2), done.warnings
    assert left_in(node) == []


def test_a_stale_image_is_refused(mpi_world: World, node: Path, tmp_path: Path):
    module = mpi_world.packages / "pkg/m0.py"
    before = module.stat()
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    try:
        done = mpi_world.run("openmpi", 2, BROADCAST + IMPORTS, node=node)
    finally:
        os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
        mpi_world.make_image()
    assert all("is stale" in rank["reason"] and "m0.py" in rank["reason"] for rank in done.ranks)


def test_what_a_killed_job_left_goes_with_the_next_one_and_a_living_job_stays(
    mpi_world: World, node: Path
):
    kill = BROADCAST + "import signal; comm.Barrier(); os.kill(os.getpid(), signal.SIGKILL)\n"
    done = mpi_world.run("openmpi", 2, kill, node=node)
    assert done.status != 0 and len(left_in(node)) == 1
    inner = f"""
import subprocess
{BROADCAST}
jobs = lambda: sorted(str(p) for p in __import__("pathlib").Path(
    os.environ["BRIGADE_NODE_DIR"]).glob("brigade-*/*/jobs/*"))
mine = jobs()
if rank == 0:
    clean = {{k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_", "PRTE"))}}
    clean["TEST_OUT"] = os.environ["TEST_OUT"] + "2"
    os.mkdir(clean["TEST_OUT"])
    code = ("import brigade.imports; from mpi4py import MPI; "
            "r = brigade.imports.broadcast(MPI.COMM_WORLD, " + repr(IMAGE) + "); assert r, r")
    subprocess.run([sys.executable, "-c", code], check=True, env=clean, timeout=50)
comm.Barrier()
out["mine"], out["after"] = mine, jobs()
import pkg.m7
"""
    done = mpi_world.run("openmpi", 2, inner, node=node)
    assert done.status == 0 and len(done.ranks) == 2, done.err
    for rank in done.ranks:
        assert len(rank["mine"]) == 1, "the dead job is gone"
        assert rank["after"] == rank["mine"], "another job of the same user ended only itself"
        assert rank["misses"] == {}
    assert left_in(node) == []


def clean(mpi_world: World, node: Path) -> None:
    environ = mpi_world.environment("openmpi", node, None)
    command = [sys.executable, "-m", "brigade", "clean", "--idle", "0"]
    subprocess.run(command, env=environ, check=True, capture_output=True, timeout=60)


def test_brigade_clean_spares_a_living_job_and_removes_a_killed_one(mpi_world: World, node: Path):
    wait = """
import time
open(os.path.join(os.environ["TEST_OUT"], "ready"), "w").close()
while not os.path.exists(os.path.join(os.environ["TEST_OUT"], "go")):
    time.sleep(0.05)
"""
    out = node / "out"
    out.mkdir()
    environ = mpi_world.environment("openmpi", node, {"TEST_OUT": str(out)})
    command = [str(mpi_world.python), str(mpi_world.app(BROADCAST + wait))]  # a job of one rank
    with subprocess.Popen(command, env=environ, start_new_session=True) as job:
        try:
            deadline = time.monotonic() + 30
            while not (out / "ready").exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            clean(mpi_world, node)
            assert len(left_in(node)) == 1, "it lives"
        finally:
            job.kill()
    clean(mpi_world, node)
    assert left_in(node) == []


def test_what_is_no_communicator_is_named(mpi_world: World, node: Path):
    body = "brigade.imports.broadcast(comm.Get_group())\n"
    done = mpi_world.run("openmpi", 1, body, node=node)
    assert "an intracommunicator of mpi4py, not a Group" in done.ranks[0]["reason"], done.err


def test_it_finds_the_image_that_brigade_run_keeps_and_leaves_imports_to_brigade_run(
    mpi_world: World, node: Path
):
    body = "brigade.imports.broadcast(comm)\n" + IMPORTS
    none = mpi_world.run("openmpi", 1, body, node=node)
    assert "there is no image for" in none.ranks[0]["reason"], none.err
    environ = mpi_world.environment("openmpi", node, {"TEST_OUT": str(node / "out")})
    run = [sys.executable, "-m", "brigade", "run", "-q", "--"]
    under = subprocess.run(
        [*run, str(mpi_world.python), str(mpi_world.app(body))],
        env=environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert under.returncode == 0, under.stderr
    assert "`brigade run` started this program" in (node / "out/0").read_text()
    found = mpi_world.run("openmpi", 2, body, node=node)
    assert [rank["active"] for rank in found.ranks] == [True, True], found.err


def test_a_second_call_changes_nothing(mpi_world: World, node: Path):
    body = BROADCAST + 'out["same"] = brigade.imports.broadcast(comm) is brigade.imports.report()\n'
    done = mpi_world.run("openmpi", 2, body + IMPORTS, node=node)
    assert [rank["same"] and rank["active"] for rank in done.ranks] == [True, True], done.err


@pytest.mark.parametrize("strict", [False, True])
def test_without_mpi4py_imports_are_plain(tmp_path: Path, strict: bool):
    code = f"""
import sys
sys.modules["mpi4py"] = None
import brigade.imports
result = brigade.imports.broadcast(strict={strict})
print(bool(result), result)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "mpi4py cannot be imported" in done.stderr
    other = subprocess.run(
        command, env={**os.environ, "PMI_RANK": "3"}, capture_output=True, text=True, check=False
    )
    assert bool(other.stderr) == strict, "only the first rank warns"
    if strict:
        assert done.returncode == 1 and "UsageError" in done.stderr
    else:
        assert done.returncode == 0 and done.stdout.startswith("False imports are plain: mpi4py")
