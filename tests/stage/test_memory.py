"""`brigade-stage put --memory`: a node's memory holds what is most useful, and no more."""

from __future__ import annotations

import re
from pathlib import Path

from .conftest import Bench, need_launcher


def used_by(bench: Bench, node: int) -> int:
    """Bytes of pages below the node's folder, hard links counted once."""
    seen = {p.lstat().st_ino: p.lstat().st_size for p in bench.folder(node).rglob("*")
            if p.is_file() and not p.is_symlink()}  # fmt: skip
    return sum(-(-size // 4096) * 4096 for size in seen.values())


def root_of(bench: Bench, node: int, image_id: str) -> Path:
    return Path(f"{bench.folder(node)}/{image_id}/root{bench.tree}")


def test_a_cap_leaves_out_large_files_and_says_so(bench: Bench, mpi: str) -> None:
    allowed = 3 << 20
    result = bench.put(3, mpi, "--memory", str(allowed))
    assert result["ok"] is True, result
    assert result["image_id"] != bench.id, "a folder that answers otherwise has another name"
    memory = result["memory"]
    assert memory["allowed"] == allowed < memory["whole"]
    left_out = ["lib/big.so", "lib/copy.so", "lib/same.so"]
    assert memory["left_out_files"] == 3
    assert [path[-len(name) :] for path, name in zip(memory["largest"], left_out)] == left_out
    assert memory["left_out_bytes"] == sum((bench.tree / n).stat().st_size for n in left_out)
    for node in range(3):
        assert used_by(bench, node) <= allowed
        root = root_of(bench, node, result["image_id"])
        for source in bench.tree.rglob("*"):
            copy = root / source.relative_to(bench.tree)
            if str(source.relative_to(bench.tree)) in left_out:
                assert not copy.exists()
            elif source.is_file() and not source.is_symlink():
                assert copy.read_bytes() == source.read_bytes(), copy


def test_blocks_that_hold_only_what_is_left_out_are_not_read(bench: Bench) -> None:
    need_launcher("mpich")
    whole = bench.put(3, "mpich", job="whole")
    cut = bench.put(3, "mpich", "--memory", str(3 << 20), "--readers", "3", job="cut")
    assert whole["ok"] and cut["ok"]
    assert cut["read_bytes"] < whole["read_bytes"] - 2_000_000


def test_a_cap_that_is_wide_enough_changes_nothing(bench: Bench) -> None:
    plain = bench.put(1, "none")
    capped = bench.put(1, "none", "--memory", str(1 << 30), job="other")
    assert capped["image_id"] == plain["image_id"] == bench.id
    assert capped["nodes"][0]["already"] is True
    assert capped["memory"]["left_out_files"] == 0 and "memory" not in plain


def test_capped_and_whole_live_side_by_side(bench: Bench) -> None:
    bench.put(1, "none", job="whole")
    capped = bench.put(1, "none", "--memory", str(3 << 20), job="capped")
    again = bench.put(1, "none", "--memory", str(3 << 20), job="again")
    assert bench.left_on(0) == sorted([bench.id, capped["image_id"]])
    assert again["image_id"] == capped["image_id"] and again["nodes"][0]["already"] is True
    bench.check_same(0)


def test_too_little_for_the_index_is_one_clear_error(bench: Bench, mpi: str) -> None:
    result = bench.put(2, mpi, "--memory", "20000")
    assert result["ok"] is False and result["status"] == 3
    assert re.search(r"index alone takes \d+ KiB.*--memory allows 19 KiB", result["reason"])
    assert bench.left_on(0) == bench.left_on(1) == []
