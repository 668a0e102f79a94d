"""A rank that may use other devices than its template is started by itself: it would be confined to
the template's, as Slurm confines each task (`--gpus-per-task`)."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from standing import Ranks

CGROUPS = Path("/sys/fs/cgroup")
_BPF = 321 if platform.machine() == "x86_64" else 280
_LOAD, _ATTACH, _OF_DEVICES, _TO_DEVICES = 5, 8, 15, 6
# (code, registers, offset, value): 0 where major is 1 and minor 7, which is /dev/full; otherwise 1
DENIES = [
    (0xB7, 0x00, 0, 1),
    (0x61, 0x12, 4, 0), (0x55, 0x02, 3, 1),
    (0x61, 0x12, 8, 0), (0x55, 0x02, 1, 7),
    (0xB7, 0x00, 0, 0),
    (0x95, 0x00, 0, 0),
]  # fmt: skip


def ask_bpf(what: int, words: bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    answer = libc.syscall(_BPF, what, ctypes.create_string_buffer(words, len(words)), len(words))
    if answer < 0:
        pytest.skip(f"needs bpf(2): {os.strerror(ctypes.get_errno())}")
    return answer


def deny_by_program(group: Path) -> None:
    text = b"".join(struct.pack("<BBhi", *step) for step in DENIES)
    program, license = (ctypes.create_string_buffer(part) for part in (text, b"GPL"))
    at = ctypes.addressof
    head = struct.pack("<IIQQ", _OF_DEVICES, len(DENIES), at(program), at(license))
    loaded, folder = ask_bpf(_LOAD, head + bytes(24)), os.open(group, os.O_RDONLY)
    ask_bpf(_ATTACH, struct.pack("<IIII", folder, loaded, _TO_DEVICES, 0))
    os.close(loaded)
    os.close(folder)


def deny_by_list(group: Path) -> None:
    (group / "devices.deny").write_text("c 1:7 rw")


@pytest.fixture(params=["version 1", "version 2"])
def tasks(request: pytest.FixtureRequest) -> Iterator[list[Path]]:
    """Three control groups, as Slurm has one for each task of a step; the last may not use
    /dev/full."""
    deny, places = (
        (deny_by_list, [CGROUPS / "devices"])
        if request.param == "version 1"
        else (deny_by_program, [CGROUPS, CGROUPS / "unified"])
    )
    mark = "devices.deny" if deny is deny_by_list else "cgroup.controllers"
    home = next((place for place in places if os.access(place / mark, os.R_OK | os.W_OK)), None)
    if os.geteuid() != 0 or home is None:
        pytest.skip(f"needs root, and control groups of {request.param}")
    step = home / f"brigade-test-{os.getpid()}"
    groups = [step / f"task_{n}" for n in range(3)]
    try:
        for group in groups:
            group.mkdir(parents=True)
        deny(groups[2])
        yield groups
    finally:
        for folder in (*groups, step):
            folder.rmdir()


def test_tasks_that_may_use_other_devices_are_not_forked(tasks: list[Path], ranks: Ranks) -> None:
    use = "echo here; true <>/dev/full"

    def enter(task: Path) -> dict:
        return {"preexec_fn": lambda: (task / "cgroup.procs").write_text("0")}

    first = ranks.first(**enter(tasks[0]))
    assert ranks.said(["sh", "-c", use], **enter(tasks[1])) == "here\n"
    child = ranks.shell(use, **enter(tasks[2]))
    out, err = child.communicate(timeout=60)
    assert (child.returncode != 0, out) == (True, "here\n")
    assert err.startswith("plain: other devices may be used\n") and "/dev/full" in err
    first.communicate("go\n")
    ranks.templates_end()
