from __future__ import annotations

import os
from pathlib import Path

import pytest

from brigade.trial.mounts import Mount, MountTable, coverage, parse, read

INFO = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /proc rw - proc proc rw
31 22 0:41 / /home rw shared:5 master:2 - nfs4 server:/export/home rw,vers=4.2
32 22 0:42 /sub /scratch\040space rw - lustre 10.0.0.1@o2ib:/fs rw
33 31 0:43 / /home/local rw - xfs /dev/sdb rw
34 22 0:44 / /mnt/mfs rw - fuse mfs#10.1.0.1:9421 rw
35 22 0:45 / /img rw - fuse.squashfuse squashfuse rw
36 22 0:46 / /cvmfs/sw rw - fuse cvmfs2 ro
this line is not one
"""


def table() -> MountTable:
    return MountTable(parse(INFO))


def test_escaped_spaces_and_optional_fields_are_read() -> None:
    mounts = parse(INFO)
    assert len(mounts) == 8
    assert Mount("/scratch space", "lustre", "10.0.0.1@o2ib:/fs") in mounts
    assert [os.major(mounts[0].device), os.minor(mounts[0].device)] == [8, 1]


@pytest.mark.parametrize(
    ("fstype", "source", "shared"),
    [
        ("nfs", "s:/x", True), ("nfs4", "s:/x", True), ("lustre", "l", True), ("gpfs", "g", True),
        ("beegfs", "b", True), ("9p", "v", True), ("fuse.sshfs", "u@h:", True),
        ("fuse", "mfs#10.0.0.1:9421", True), ("fuse.glusterfs", "g", True),
        ("fuse", "cvmfs2", True),
        ("fuse.squashfuse", "x", False), ("fuse", "squashfuse", False), ("ext4", "/dev/a", False),
        ("tmpfs", "tmpfs", False), ("overlay", "overlay", False), ("fuseblk", "/dev/sdb1", False),
        ("fuse.lxcfs", "lxcfs", False), ("fuse.mergerfs", "a:b", False),
    ],
)  # fmt: skip
def test_a_file_system_is_shared_by_its_type(fstype: str, source: str, shared: bool) -> None:
    assert Mount("/m", fstype, source).shared is shared


def test_only_shared_mounts_that_were_used_are_covered() -> None:
    found = coverage(["/home/u/app", "/usr/lib", "/mnt/mfs/x"], table())
    assert found.roots == ["/home", "/mnt/mfs"]
    assert not found.fallback


def test_a_local_disk_inside_a_shared_one_is_not_covered() -> None:
    found = coverage(["/home/u"], table())
    assert found.covers("/home/u/x")
    assert not found.covers("/home/local/x")
    assert found.covers("/home/locality")


def test_what_the_user_names_is_covered_wherever_it_lies() -> None:
    found = coverage(["/home/u"], table(), cover=["/opt/sw", "/home/u/deep"])
    assert found.roots == ["/home", "/opt/sw"]
    assert found.why["/opt/sw"] == "asked"


def test_the_programs_own_folders_stand_in_only_if_nothing_is_shared() -> None:
    assert coverage(["/usr"], table(), prefixes=["/data/env", "/usr"]).roots == ["/data/env"]
    assert coverage(["/usr"], table(), prefixes=["/data/env"]).fallback
    assert coverage(["/home"], table(), prefixes=["/data/env"]).roots == ["/home"]


@pytest.mark.parametrize("wide", ["/", "/usr", "/tmp", "/home", "/proc/1", "/dev/shm"])
def test_a_folder_that_is_not_one_programs_own_never_stands_in(wide: str) -> None:
    assert coverage(["/usr"], MountTable([]), prefixes=[wide]).roots == []


def test_a_shared_root_disk_does_not_cover_what_the_kernel_shows() -> None:
    disk = MountTable([Mount("/", "nfs4", "s:/"), Mount("/tmp", "tmpfs", "tmpfs")])
    found = coverage(["/usr/lib"], disk)
    assert found.covers("/usr/lib/x")
    assert not found.covers("/proc/self/maps")
    assert not found.covers("/tmp/x")


def test_the_mounts_of_the_trials_node_win_over_ours(tmp_path: Path) -> None:
    (tmp_path / "n0.mountinfo").write_text("1 0 0:1 / /elsewhere rw - nfs s:/e rw\n")
    mount = read(tmp_path).of("/elsewhere/x")
    assert mount is not None and mount.shared
