"""Few bytes of each rank, where ranks are on several nodes: they are carried to rank 0 as the ranks
meet (carry.h), and the file is the one that a single process would have written."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest
from mpi_python import run
from mpi_world import EITHER_MPI, compile_mpi, needs_nodes, on_nodes, run_mpi
from store_world import verify

MOVING = Path(__file__).with_name("moving.c")


@pytest.fixture(scope="module", params=EITHER_MPI)
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def moving(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_mpi(mpi, MOVING, tmp_path_factory.mktemp(mpi) / "moving")


def move(
    mpi: str,
    ranks: int,
    nodes: int,
    program: Path,
    folder: Path,
    hints: str,
    most: int,
    **environment: str,
):
    words = on_nodes(nodes, [program, folder, f"sync=no:{hints}", "1", "20", str(most)])
    done = run_mpi(mpi, ranks, words, **environment)
    assert done.returncode == 0 and done.stdout.startswith("ok"), done.stdout + done.stderr


@pytest.mark.parametrize("most", [4096, 32_768])  # all calls are carried; some are
@pytest.mark.parametrize("hints", ["stripe=64K", "segment=128K:stripe=64K"])
def test_ranks_of_a_node_each(mpi: str, moving: Path, tmp_path: Path, hints: str, most: int):
    move(mpi, 3, 0, moving, tmp_path, f"share=no:{hints}", most)


@needs_nodes
@pytest.mark.parametrize("most", [4096, 32_768])
def test_nodes_of_several_ranks(mpi: str, moving: Path, tmp_path: Path, most: int):
    move(mpi, 6 if mpi == "openmpi" else 4, 2, moving, tmp_path, "stripe=64K", most)


@needs_nodes
def test_who_is_on_the_node_of_rank_0_waits_until_it_has_written(
    mpi: str, moving: Path, tmp_path: Path
):
    """Some bytes at a time; boxes are so full that they lie where they were filled."""
    ranks, hints = 6 if mpi == "openmpi" else 4, "stripe=64K:segment=128K:lock-unit=1M"
    move(mpi, ranks, 2, moving, tmp_path, hints, 200_000, BRIGADE_FAULT="io.short:50@0")


STREAM = """
with brigade.io.open(comm, PATH, "w", stripe="64K", sync=False) as f:
    if rank in (2, 3):  # by themselves; the first begins block 1, which is not the last one
        f.write((rank - 2) * 500_000, b"a" * 100_000)
    else:
        f.write(0, b"")
    f.write(70_000, b"b" * 100 if rank == 1 else b"")  # rank 0, of the same node, writes to it
    f.write(100_000, b"c" * 100_000 if rank == 2 else b"")
"""


@needs_nodes
def test_a_rank_that_goes_on_in_a_block_knows_of_what_was_carried_to_it(tmp_path: Path):
    run("openmpi", 4, STREAM, tmp_path, nodes=2)
    want = bytearray(b"a" * 100_000 + b"c" * 100_000 + bytes(300_000) + b"a" * 100_000)
    want[70_000:70_100] = b"b" * 100
    assert (tmp_path / "f").read_bytes() == bytes(want)
    assert verify(tmp_path / "f")["damaged"] == 0


READ = """
want = numpy.random.default_rng(3).integers(0, 256, 300_000, numpy.uint8)
if rank == 0:
    want.tofile(PATH)
comm.Barrier()
if os.environ.get("FAULT"):
    os.environ["BRIGADE_FAULT"] = os.environ["FAULT"]
out["explained"], out["same"] = [], []
def read(f, runs):
    got = numpy.zeros(sum(n for _, n in runs), numpy.uint8)
    f.read_pieces(runs, got)
    out["explained"].append(f.explain())
    expected = numpy.concatenate([want[at : at + n] for at, n in runs])
    out["same"].append(bool((got == expected).all()))
try:
    with brigade.io.open(comm, PATH, "r", share=False) as f:
        read(f, [(1000 + (i * size + rank) * 100, 100) for i in range(50)])
        read(f, [(200_000, 77)])  # all the same
        read(f, [(5, 0)] if rank == 1 else [(rank * 5000 + 3, 9), (rank * 50_000, 1)])
        read(f, [(0, 10), (299_990, 10)])  # too far apart
except OSError as error:
    out["failure"] = failure(error)
"""


def test_few_bytes_are_read_by_rank_0_for_all(tmp_path: Path):
    for rank in run("openmpi", 3, READ, tmp_path):
        assert rank["same"] == [True] * 4
        assert ["carried from rank 0" in text for text in rank["explained"]] == [True] * 3 + [False]


def test_all_are_told_that_rank_0_cannot_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FAULT", "io.read:3000@0")
    outs = run("openmpi", 3, READ, tmp_path)
    assert {json.dumps(rank["failure"]) for rank in outs} == {json.dumps(outs[0]["failure"])}
    assert outs[0]["failure"][:2] == [errno.EIO, 0]
    assert outs[0]["failure"][3] == str(tmp_path / "f")


WHO = """
def explained(n, **hints):
    with brigade.io.open(comm, PATH, "w", share=False, sync=False, **hints) as f:
        f.write(rank * n, bytes(n))
        return f.explain()
out["few"] = explained(1000)
out["asked"] = explained(1000, transport="simple")
out["parts"] = explained(1000, layout="parts")
out["many"] = explained(70_000)
"""


def test_only_few_bytes_are_carried_and_the_explanation_says_so(tmp_path: Path):
    for rank in run("openmpi", 3, WHO, tmp_path):
        assert "carried to rank 0" in rank["few"] and "writers: 1 of 3 ranks" in rank["few"]
        assert not [name for name in ("asked", "parts", "many") if "carried" in rank[name]]


SAME = """
rng = numpy.random.default_rng(7)
want = numpy.zeros(400_000, numpy.uint8)
end = 0
with brigade.io.open(comm, PATH, "w", stripe="64K", share=False, sync=False) as f:
    for call in range(40):
        most = 90_000 if call % 10 == 9 else 9000  # the longer ones go through windows
        for other in range(size):
            at, n = int(rng.integers(0, 200_000)), int(rng.integers(1, most))
            if other == 1 and call >= 30:
                continue  # it has come to commit, and serves the others
            value = (call * size + other) % 251 + 1
            want[at : at + n] = value  # of what several write the highest rank's stays
            end = max(end, at + n)
            if other == rank:
                f.write(at, numpy.full(n, value, numpy.uint8))
comm.Barrier()
out["same"] = bool((numpy.fromfile(PATH, numpy.uint8) == want[:end]).all())
"""


@pytest.mark.parametrize("sync", ["yes", "no"])
def test_ranks_over_each_other_and_one_that_commits_before_the_others(tmp_path: Path, sync: str):
    """Its commit flushes what it wrote before the ranks meet: what it knew of checksums then may
    not stay true."""
    outs = run("openmpi", 3, SAME.replace("sync=False", f"sync={sync == 'yes'}"), tmp_path)
    assert [rank["same"] for rank in outs] == [True] * 3
    assert verify(tmp_path / "f")["damaged"] == 0


LATE = """
import time
def late(f, who, first, gap, second):
    f.write(rank * first, bytes([rank + 1]) * first)
    if rank == who:
        return  # it commits at once
    time.sleep(0.05)
    at = 3 * first + gap + ((rank - who) % 3 - 1) * second
    f.write(at, bytes([rank + 11]) * second)
for who in range(3):
    for first in (1000, 21_845, 100_000):
        for gap, second in ((-50, 100), (200_000, 100), (200_000, 70_000)):
            for transport in ("auto", "simple"):
                name = f"{PATH}:{who}:{first}:{gap}:{second}:{transport}"
                with brigade.io.open(comm, name, "w", stripe="64K", share=SHARE, sync=SYNC,
                                     transport=transport) as f:
                    late(f, who, first, gap, second)
"""


@pytest.mark.parametrize("share, sync", [(False, False), (True, False), (True, True)])
def test_what_a_rank_flushed_before_others_were_ready_has_true_checksums(
    share: bool, sync: bool, tmp_path: Path
):
    """It has come to commit, and the others still write: what it knew of checksums, and rank 0 has
    published of them but for their name, may not stay true."""
    run("openmpi", 3, f"SHARE, SYNC = {share}, {sync}\n" + LATE, tmp_path)
    files = sorted(path for path in tmp_path.glob("f:*") if path.suffix != ".sums")
    assert len(files) == 54
    for path in files:
        who, first, gap, second = (int(word) for word in path.name.split(":")[1:5])
        want = bytearray(b"".join(bytes([rank + 1]) * first for rank in range(3)))
        for turn in (1, 2):
            at = 3 * first + gap + (turn - 1) * second
            want += bytes(max(at + second - len(want), 0))
            want[at : at + second] = bytes([(who + turn) % 3 + 11]) * second
        assert path.read_bytes() == bytes(want), path.name
        told = verify(path)
        assert told.get("damaged") == 0, (path.name, told)


HEADER = """
with brigade.io.open(comm, PATH, "w", share=False) as f:
    f.write(4096 + rank * 1000, bytes([rank + 1]) * 1000)
    f.write(0, b"h" * 100 if rank == 2 else b"")
out["names"] = os.listdir(os.path.dirname(PATH))
"""


def test_rank_0_settles_a_small_file_by_itself(tmp_path: Path):
    """A header comes after what follows it: its block is read back, and no file of sums that ranks
    share is made for that."""
    run("openmpi", 3, HEADER, tmp_path)
    data = (tmp_path / "f").read_bytes()
    assert data[:100] == b"h" * 100 and data[4096:] == b"\1" * 1000 + b"\2" * 1000 + b"\3" * 1000
    assert verify(tmp_path / "f")["damaged"] == 0


FAILS = """
os.environ["BRIGADE_FAULT"] = "{fault}"
try:
    with brigade.io.open(comm, PATH, "w", share=False) as f:
        f.write(rank * 1000, bytes([rank]) * 1000)
        f.write(3000 + rank * 1000, bytes([rank]) * 1000)
except OSError as error:
    out["failure"] = failure(error)
"""


@pytest.mark.parametrize(
    ("fault", "code", "offset"),
    [
        ("io.write:0@0", errno.ENOSPC, 0),
        ("io.write:3500@0", errno.ENOSPC, 3500),
        ("io.eio:100@0", errno.EIO, 100),
        ("io.fsync:0@0", errno.EIO, None),
        ("io.fsync:1@0", errno.EIO, None),
        ("io.rename:0@0", errno.EIO, None),
        ("io.rename:1@0", errno.EIO, None),
    ],
)
def test_all_are_told_what_failed_on_rank_0(
    tmp_path: Path, fault: str, code: int, offset: int | None
):
    (tmp_path / "f").write_bytes(b"old")
    outs = run("openmpi", 3, FAILS.format(fault=fault), tmp_path)
    for rank in outs:
        assert rank["failure"][:3] == [code, 0, offset], json.dumps(outs)
        assert rank["failure"][3] == str(tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == b"old"
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".f.")]


def test_what_failed_elsewhere_does_not_matter_as_rank_0_writes(tmp_path: Path):
    outs = run("openmpi", 3, FAILS.format(fault="io.write:0@1"), tmp_path)
    assert outs == [{}] * 3 and (tmp_path / "f").stat().st_size == 6000
