"""verify finds any damage, and names the block; reading with verify=yes does too."""

from __future__ import annotations

import ctypes
import errno
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from mpi_python import run
from store_world import MIB, assert_whole, compile_alone, pattern, told, verify, words

import brigade.io
from brigade.paths import native

BLOCK = 64 << 10
SIZE = 5 * BLOCK + 1234


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_alone(tmp_path_factory.mktemp("alone") / "driver")


def write(alone: Path, path: Path, salt: int, way: str = "create", calls: int = 1) -> Path:
    command = [alone, *words(path, way, "stripe=64K:sync=no", SIZE, calls, salt)]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    assert told(done.stdout)[0].code == 0, done.stdout
    return path


@pytest.fixture
def file(alone: Path, tmp_path: Path) -> Path:
    return write(alone, tmp_path / "ckpt", 3)


def flip(path: Path, at: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def test_any_flipped_bit_of_the_data_is_found_in_its_block(file: Path):
    chance = random.Random(1)
    edges = [0, BLOCK - 1, BLOCK, SIZE - 1]
    for at in [*edges, *(chance.randrange(SIZE) for _ in range(20))]:
        bit = chance.randrange(8)
        flip(file, at, bit)
        outcome = verify(file)
        assert outcome["damaged"] == 1, at
        assert outcome["listed"][0]["offset"] == at // BLOCK * BLOCK
        flip(file, at, bit)
    assert verify(file)["damaged"] == 0


def test_any_flipped_bit_of_the_checksums_is_found(alone: Path, file: Path):
    write(alone, file, 4)  # now there are two sections
    sums = file.with_name("ckpt.sums")
    chance = random.Random(2)
    for at in range(sums.stat().st_size):
        bit = chance.randrange(8)
        flip(sums, at, bit)
        assert "error" in verify(file), at
        flip(sums, at, bit)
    assert verify(file)["damaged"] == 0


def test_what_is_missing_or_too_much_is_found(file: Path):
    whole = file.read_bytes()
    for content in (whole[:-1], whole + b"x", b""):
        file.write_bytes(content)
        assert verify(file)["errno"] == errno.EBADMSG
    file.write_bytes(whole)
    sums = file.with_name("ckpt.sums")
    known = sums.read_bytes()
    for content in (known[:-1], known + b"\0", known[:40]):
        sums.write_bytes(content)
        assert verify(file)["errno"] == errno.EBADMSG
    sums.unlink()
    assert verify(file)["errno"] == errno.ENODATA


def test_a_file_and_its_checksums_may_be_copied(alone: Path, file: Path, tmp_path: Path):
    write(alone, file, 4)
    other = tmp_path / "elsewhere"
    other.mkdir()
    for name in ("ckpt", "ckpt.sums"):
        shutil.copy(tmp_path / name, other)
    assert_whole(other / "ckpt", pattern(SIZE, 4))
    # and the copy may be written over: nothing is lost of what is known about it
    write(alone, other / "ckpt", 5)
    assert_whole(other / "ckpt", pattern(SIZE, 5))


def test_bytes_of_two_writings_match_neither(alone: Path, file: Path):
    write(alone, file, 4)
    mixed = pattern(SIZE, 3)[:BLOCK] + pattern(SIZE, 4)[BLOCK:]
    file.write_bytes(mixed)
    assert verify(file)["damaged"] == 1


@pytest.mark.parametrize("calls", (1, 3, 50))
def test_sums_are_the_same_however_a_file_was_written(alone: Path, tmp_path: Path, calls: int):
    assert_whole(write(alone, tmp_path / "ckpt", 6, calls=calls), pattern(SIZE, 6))


def test_holes_are_zeros_and_match(tmp_path: Path):
    path = tmp_path / "ckpt"
    library = ctypes.CDLL(str(native("libbrigade_io.so")))
    f, write_create = ctypes.c_void_p(), 2 | 4
    assert library.brg_file_open_alone(bytes(path), write_create, None, ctypes.byref(f), None) == 0
    for offset in (300 << 20, 5):
        at, size = ctypes.c_uint64(offset), ctypes.c_size_t(4)
        assert library.brg_file_write(f, at, b"abcd", size, None) == 0
    assert library.brg_file_commit(f, None) == 0
    library.brg_file_close(f, None)
    assert path.stat().st_blocks * 512 < MIB
    assert verify(path)["damaged"] == 0
    with path.open("r+b") as file:
        file.seek(100 << 20)
        file.write(b"x")
    assert [bad["offset"] for bad in verify(path)["listed"]] == [100 << 20]


def test_damage_in_what_an_update_keeps_is_still_found(alone: Path, file: Path):
    flip(file, 3 * BLOCK + 7, 2)
    command = [alone, *words(file, "update", "stripe=64K:sync=no", BLOCK, 1, 8)]
    assert told(subprocess.run(command, text=True, capture_output=True).stdout)[0].code == 0
    assert file.read_bytes()[:BLOCK] == pattern(BLOCK, 8)
    assert [bad["offset"] for bad in verify(file)["listed"]] == [3 * BLOCK]


def test_reading_with_verify_finds_damage_and_without_does_not(alone: Path, file: Path):
    def read(hints: str) -> tuple[int, int]:
        command = [alone, *words(file, "read", hints, SIZE, 1, 3)]
        line = told(subprocess.run(command, text=True, capture_output=True).stdout)[0]
        return line.code, line.offset

    assert read("verify=yes") == (0, -1)
    flip(file, 2 * BLOCK + 1, 0)
    assert read("verify=yes") == (-errno.EBADMSG, 2 * BLOCK)
    assert read("")[0] == 1  # the driver sees the wrong byte itself
    file.with_name("ckpt.sums").unlink()
    assert read("verify=yes")[0] == 1  # there is nothing to compare with


@pytest.mark.parametrize("hints", ("direct-io=yes", "direct-io=yes:uring=no"))
def test_bytes_that_go_past_the_page_cache_are_the_same(alone: Path, tmp_path: Path, hints: str):
    path = tmp_path / "ckpt"
    for size, calls in ((7 * MIB + 4097, 1), (7 * MIB + 4097, 3), (MIB, 1)):
        command = [alone, *words(path, "create", f"{hints}:segment=1M", size, calls, 4)]
        subprocess.run(command, check=True, capture_output=True)
        assert_whole(path, pattern(size, 4))


def test_without_checksums_no_stale_ones_stay(alone: Path, file: Path):
    command = [alone, *words(file, "create", "checksums=no", SIZE, 1, 9)]
    subprocess.run(command, check=True, capture_output=True)
    assert verify(file)["errno"] == errno.ENODATA
    notes = file.with_name("ckpt.sums")
    notes.write_text("somebody's notes")
    subprocess.run(command, check=True, capture_output=True)
    assert notes.read_text() == "somebody's notes"


def test_a_changed_file_in_place_has_new_checksums(alone: Path, file: Path):
    inode = file.stat().st_ino
    command = [alone, *words(file, "update", "stripe=64K:update=in-place", BLOCK, 1, 8)]
    assert told(subprocess.run(command, text=True, capture_output=True).stdout)[0].code == 0
    assert file.stat().st_ino == inode
    assert_whole(file, pattern(BLOCK, 8) + pattern(SIZE, 3)[BLOCK:])


def bytes_read() -> int:
    """By this process, so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.parametrize("update", ["copy", "in-place"])
def test_of_a_block_that_is_changed_in_part_no_more_is_read_than_the_block(
    tmp_path: Path, update: str
):
    path, content = tmp_path / "ckpt", pattern(8 * MIB, 1)
    with brigade.io.open(None, path, "w", sync=False) as file:
        file.write(0, content)
    with brigade.io.open(None, path, "r+", update=update, sync=False) as file:
        before = bytes_read()
        file.write(5 * MIB + 100, b"changed")
        file.commit()
        assert BLOCK <= bytes_read() - before < 3 * BLOCK
    assert_whole(path, content[: 5 * MIB + 100] + b"changed" + content[5 * MIB + 107 :])


#: stripes of a file, of its update, and the update's blocks
OTHER_STRIPES = [("16M", "1M", MIB), ("16M", "512K", BLOCK), ("1M", "64M", BLOCK)]


@pytest.mark.parametrize("update", ["copy", "in-place"])
@pytest.mark.parametrize("stripe, other, block", OTHER_STRIPES)
def test_an_update_keeps_the_size_of_blocks_where_it_fits_its_stripes(
    tmp_path: Path, stripe: str, other: str, block: int, update: str
):
    path, content = tmp_path / "ckpt", pattern(3 * MIB, 1)
    with brigade.io.open(None, path, "w", stripe=stripe, sync=False) as file:
        file.write(0, content)
    with brigade.io.open(None, path, "r+", stripe=other, update=update, sync=False) as file:
        file.write(MIB, b"changed")
    assert_whole(path, content[:MIB] + b"changed" + content[MIB + 7 :])
    assert verify(path)["block_bytes"] == block


LATER = [[(10, 20)], [(SIZE, 100)], [(SIZE + BLOCK, 9)], [(0, SIZE)], [(5 * BLOCK, 7), (0, 1)]]


@pytest.mark.parametrize("later", [[], *LATER])
def test_the_last_block_keeps_a_true_checksum_whatever_comes_later(
    tmp_path: Path, later: list[tuple[int, int]]
):
    """Each of `later` is a call: (offset, bytes)."""
    content = pattern(SIZE, 1)
    with brigade.io.open(None, tmp_path / "ckpt", "w", stripe="64K", sync=False) as file:
        file.write(0, content)
        for salt, (offset, size) in enumerate(later, 2):
            content = content.ljust(offset, b"\0")
            content = content[:offset] + pattern(size, salt) + content[offset + size :]
            file.write(offset, pattern(size, salt))
    assert_whole(tmp_path / "ckpt", content)
    assert verify(tmp_path / "ckpt")["damaged"] == 0


def test_a_block_written_whole_after_its_beginning_has_the_sum_of_what_is_there(tmp_path: Path):
    """What was begun does not go on after the whole block was written."""
    with brigade.io.open(None, tmp_path / "ckpt", "w", stripe="64K", sync=False) as file:
        file.write(0, pattern(20 << 10, 1))
        file.write(0, pattern(64 << 10, 2))
        file.write(20 << 10, pattern(44 << 10, 3))
    assert_whole(tmp_path / "ckpt", pattern(64 << 10, 2)[: 20 << 10] + pattern(44 << 10, 3))
    assert verify(tmp_path / "ckpt")["damaged"] == 0


REFUSED = """
wrong = ""
with brigade.io.open(comm, PATH, "w", stripe="64K", sync=False) as f:
    f.write(rank * 100_000, b"a" * 100_000)
    try:
        f.write(-1 if rank == 1 else rank * 100_000 + 7, b"b" * 70_000)
    except Exception as error:
        wrong = str(error)
    f.write(size * 100_000 + rank, b"c")
assert "offset" in wrong or "-1" in wrong, wrong
"""


def test_what_some_wrote_of_a_call_that_others_refused_has_true_sums(tmp_path: Path):
    """Ranks may have written their bytes before they heard of it."""
    run("openmpi", 3, REFUSED, tmp_path)
    content = (tmp_path / "f").read_bytes()
    assert len(content) == 300_003 and content.endswith(b"ccc")
    assert set(content[100_000:200_000]) == set(b"a")
    assert verify(tmp_path / "f")["damaged"] == 0


OVER = """
for file in range(20):
    with brigade.io.open(comm, PATH + str(file), "w", stripe="64K", sync=False) as f:
        f.write(0, bytes([file + rank]) * (192 << 10))
"""


def test_blocks_that_all_wrote_have_the_sums_of_what_stays(tmp_path: Path):
    """Every rank has noted its own of each block before it hears that others wrote it as well."""
    run("openmpi", 3, OVER, tmp_path)
    for number in range(20):
        assert set((tmp_path / f"f{number}").read_bytes()) == {number + 2}
        assert verify(tmp_path / f"f{number}")["damaged"] == 0, number


STREAMS = """
import random
for file in range(30):
    pick, content = random.Random(file), bytearray()
    ways = {"transport": pick.choice(["direct", "simple"]), "share": pick.random() < 0.5}
    with brigade.io.open(comm, PATH + str(file), "w", stripe="64K", sync=False, **ways) as f:
        ends = [0] * size
        for call in range(pick.randrange(1, 9)):
            for writer in range(size):
                goes_on, n = pick.random() < 0.7, pick.choice([0, 8, 16, 44, 64, 128]) << 10
                at = ends[writer] if goes_on else pick.randrange(6) * pick.choice([20, 64]) << 10
                piece = bytes([call * size + writer + 1]) * n
                content = content.ljust(at, b"\\0") if n else content
                content[at : at + n] = piece
                ends[writer] = at + n
                if writer == rank:
                    mine = at, piece
            f.write(mine[0], mine[1] or None)
    if rank == 0:
        with open(PATH + str(file), "rb") as there:
            assert there.read() == content, file
"""


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_sums_that_grow_from_call_to_call_are_true(tmp_path: Path, ranks: int):
    """Ranks go on where they were, or elsewhere, over each other's bytes or not."""
    run("openmpi", ranks, STREAMS, tmp_path)
    for number in range(30):
        assert verify(tmp_path / f"f{number}")["damaged"] == 0, number


MANY = """
import os

def open_one(number):
    return brigade.io.open(comm, PATH + str(number), "w", stripe="64K", share=SHARE, sync=False)

def kept_on_disk():
    comm.Barrier()
    n = sum(name.endswith(".blocks") for name in os.listdir(os.path.dirname(PATH)))
    comm.Barrier()
    return n

END = 16 * 448 * (64 << 10)  # of what a page takes
files = [open_one(number) for number in range(6)]
for number, f in enumerate(files):
    f.write(rank * 100_000, bytes([1 + number + rank]) * 100_000)
seen = [kept_on_disk()]
for number, f in enumerate(files):
    f.write(END - 150_000 + rank * 100_000, bytes([1 + number + rank]) * 100_000)
seen.append(kept_on_disk())
for f in files:
    f.commit()
    f.close()
with open_one(6) as f:
    f.write(END // 2 + rank * 100_000, bytes([rank]) * 100_000)
    f.write(END - 1000 + rank * 100, bytes([rank]) * 100)  # behind blocks that others wrote
    seen.append(kept_on_disk())
assert seen == [2, 6, 0], seen
"""


@pytest.mark.parametrize("share", [True, False])
def test_checksums_of_small_files_take_no_file_while_these_are_written(tmp_path: Path, share: bool):
    """Four files of a world at a time have memory for the sums of their first blocks, each anew."""
    run("openmpi", 3, f"SHARE = {share}\n" + MANY, tmp_path)
    for number in range(7):
        assert verify(tmp_path / f"f{number}")["damaged"] == 0, number
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


#: (rank, offset, bytes) in KiB of each call; the middle one takes the block from who began it
BETWEEN = {
    "direct": [[(0, 0, 20)], [(1, 0, 64)], [(0, 20, 44)]],
    "direct:part": [[(0, 0, 20)], [(1, 0, 18)], [(0, 20, 44)]],
    # the first and the last have one writer, rank 0; in the middle rank 1 writes the second block
    "simple": [[(0, 64, 20)], [(0, 0, 128)], [(0, 84, 44)]],
}


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("way", BETWEEN)
def test_who_began_a_block_does_not_go_on_after_another(tmp_path: Path, way: str, share: bool):
    run(
        "openmpi",
        2,
        f"""
with brigade.io.open(comm, PATH, "w", transport={way.split(":")[0]!r}, stripe="64K", writers=2,
                     share={share}, sync=False) as f:
    for call, pieces in enumerate({BETWEEN[way]}, 1):
        mine = [piece for piece in pieces if piece[0] == rank]
        f.write_pieces([(at << 10, n << 10) for _, at, n in mine],
                       b"".join(bytes([call]) * (n << 10) for _, at, n in mine))
""",
        tmp_path,
    )
    assert verify(tmp_path / "f")["damaged"] == 0


APART = """
with brigade.io.open(comm, PATH, "w", stripe="64K", share=False, sync=False) as f:
    f.write(0, b"a" * 100_000 if rank == 0 else None)
    f.write_pieces([(10, 5), (300_000, 7)] if rank == 1 else [], b"b" * 12 * rank)
"""


def test_the_last_block_keeps_a_true_checksum_where_ranks_share_nothing(tmp_path: Path):
    """The second call touches what the first one wrote, so that files are closed between them."""
    run("openmpi", 2, APART, tmp_path)
    whole = b"a" * 10 + b"b" * 5 + b"a" * 99_985
    assert_whole(tmp_path / "f", whole.ljust(300_000, b"\0") + b"b" * 7)


def test_permissions_stay(alone: Path, file: Path):
    file.chmod(0o640)
    write(alone, file, 4)
    assert file.stat().st_mode & 0o7777 == 0o640
    assert file.with_name("ckpt.sums").stat().st_mode & 0o7777 == 0o640


def test_a_link_stays_and_what_it_leads_to_is_replaced(alone: Path, file: Path):
    link = file.with_name("latest")
    link.symlink_to("ckpt")
    write(alone, link, 4)
    assert link.is_symlink()
    assert_whole(file, pattern(SIZE, 4))
    assert verify(link)["damaged"] == 0


@pytest.mark.parametrize("stripe, block", [("1M", BLOCK), ("64K", BLOCK), ("16M", MIB)])
def test_blocks_are_a_sixteenth_of_a_stripe(alone: Path, tmp_path: Path, stripe: str, block: int):
    path = tmp_path / "ckpt"
    command = [alone, *words(path, "create", f"sync=no:stripe={stripe}", 3 * MIB, 1, 1)]
    subprocess.run(command, check=True, capture_output=True)
    assert verify(path)["block_bytes"] == block
