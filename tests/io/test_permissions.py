"""Who may use a file after it was written anew: whoever might before, and nobody else."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

import brigade.io

GROUP, OWNER = 54321, 54322
LAYOUTS = ("shared", "parts")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file away")
ACCESS_LIST = "system.posix_acl_access"


def old_file(folder: Path, mode: int, owner: int = -1, group: int = -1) -> Path:
    path = folder / "file"
    path.write_bytes(b"old")
    os.chown(path, owner, group)
    path.chmod(mode)
    return path


def write(path: Path, mode: str = "w", **hints: str) -> None:
    with brigade.io.open(None, path, mode, **hints) as f:
        f.write(0, b"new")


def all_of(path: Path) -> list[Path]:
    """The file, its checksums, and its parts."""
    parts = [inside for folder in path.parent.glob(".file.*") for inside in folder.glob("*")]
    return [path, *path.parent.glob("file.sums"), *parts]


@needs_root
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_file_that_is_replaced_keeps_its_owner_and_group(tmp_path: Path, layout: str):
    path = old_file(tmp_path, 0o660, OWNER, GROUP)
    write(path, layout=layout)
    assert len(all_of(path)) == 2
    for made in all_of(path):
        found = made.stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (OWNER, GROUP, 0o660), made


@needs_root
def test_a_file_that_is_updated_keeps_its_owner_and_group(tmp_path: Path):
    path = old_file(tmp_path, 0o664, OWNER, GROUP)
    write(path, "r+")
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (OWNER, GROUP, 0o664)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_new_file_does_not_run_with_rights_of_the_old_one(tmp_path: Path, layout: str):
    path = old_file(tmp_path, 0o6755)
    write(path, layout=layout)
    assert path.stat().st_mode & 0o7777 == 0o755


def test_what_nobody_else_may_read_is_not_readable_while_it_is_written(tmp_path: Path):
    path = old_file(tmp_path, 0o600)
    with brigade.io.open(None, path, "w") as f:
        f.write(0, b"secret")
        (temporary,) = (p for p in tmp_path.glob(".file.*") if not p.name.endswith(".blocks"))
        assert temporary.stat().st_mode & 0o077 == 0
    assert path.stat().st_mode & 0o7777 == 0o600


def access_list(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_group_that_an_access_list_shuts_out_stays_out(tmp_path: Path, layout: str):
    nobody = 0xFFFFFFFF
    listed = access_list(
        (1, 6, nobody), (2, 6, OWNER), (4, 0, nobody), (16, 6, nobody), (32, 0, nobody)
    )  # owner rw, one user rw, group nothing, mask rw, others nothing
    path = old_file(tmp_path, 0o600)
    try:
        os.setxattr(path, ACCESS_LIST, listed)
    except OSError as error:
        pytest.skip(f"no access lists here: {error}")
    assert path.stat().st_mode & 0o777 == 0o660
    write(path, layout=layout)
    if layout == "shared":
        assert os.getxattr(path, ACCESS_LIST) == listed
    else:
        assert path.stat().st_mode & 0o777 == 0o600
