"""The machine that a study was made on, from what it says of kernel, memory and calibration. What
it measured afterwards is not looked at. Pure."""

from __future__ import annotations

from typing import Any

from brigade.model.cache.settings import Device, Kernel, Limits, Machine, Memory

# What becomes clean at one moment: XFS ends write-back by up to 4,096 folios (IOEND_BATCH_SIZE),
# ext4 by extents of up to 2,048 blocks (MAX_WRITEPAGES_EXTENT_LEN).
_TOGETHER: dict[str, dict[str, Any]] = {
    "xfs": {"together_folios": 4096},
    "ext4": {"together": 8 << 20},
}
# What a client of a shared file system keeps by itself before a writer waits: mfsmount's
# mfswritecachesize, if it is as built. Of another FUSE a request, which a writer waits for.
_CLIENTS = {"fuse.mfs": 256 << 20, "fuse.moosefs": 256 << 20}
_REQUEST = 1 << 20


def machine(study: dict[str, Any], policy: str = "linux") -> Machine:
    about, rates = study["kernel"], study["rates"]
    device = Device(
        write=rates["write"], read=rates["read"],
        write_latency=rates["write_latency"], read_latency=rates["read_latency"],
        write_burst=rates["write_burst"], read_burst=rates["read_burst"],
    )  # fmt: skip
    memory = Memory(
        about["memory"], rates["memory_write"], rates["memory_read"],
        rates["write_call"], rates["read_call"],
    )  # fmt: skip
    return Machine(device, memory, kernel(about, policy))


def kernel(about: dict[str, Any], policy: str = "linux") -> Kernel:
    """The settings of a kernel, in bytes and seconds."""
    background, hard = limits(about)
    found = [Limits(background, hard)]
    if about.get("strict_limit"):
        most = min(about["max_bytes"] or hard, hard * about.get("max_ratio", 100) / 100 or hard)
        found.append(Limits(most * background / hard, most, strict=True))
    name = about.get("filesystem", "")
    fuse = name.startswith("fuse")
    if fuse:
        found.append(Limits(0, _CLIENTS.get(name, _REQUEST), blocking=True))
    shares: tuple[float, ...] = ()
    if about["cgroup"] == 2:
        available = max(1.0, about["available"])
        shares = (background / available, hard / available)
    return Kernel(
        tuple(found), shares, about["dirty_expire_cs"] / 100, about["dirty_writeback_cs"] / 100,
        (about.get("read_ahead_kb") or 128) << 10, policy=policy,
        write_through=fuse, close_waits=fuse, **_TOGETHER.get(name, {}),
    )  # fmt: skip


def limits(about: dict[str, Any]) -> tuple[float, float]:
    """The machine's background and hard limit in bytes (domain_dirty_limits)."""
    available = about["available"]
    hard = about["dirty_bytes"] or available * about["dirty_ratio"] / 100
    background = (
        about["dirty_background_bytes"] or available * about["dirty_background_ratio"] / 100
    )
    return (background if background < hard else hard / 2), hard
