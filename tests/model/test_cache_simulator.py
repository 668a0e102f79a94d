"""The page-cache simulator: what must hold of any workload, and cases with answers on paper."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from brigade.errors import UsageError
from brigade.model.cache import pagecache, simulate, throttle, workload
from brigade.model.cache.compare import cached
from brigade.model.cache.settings import Device, Kernel, Limits, Machine, Memory

MIB = 1 << 20
DEVICE = Device(write=50 * MIB, read=200 * MIB, write_latency=0, read_latency=0)
MEMORY = Memory(128 * MIB, write=2000 * MIB, read=4000 * MIB, write_call=1e-5, read_call=1e-5)
KERNEL = Kernel((Limits(32 * MIB, 64 * MIB),))
MACHINE = Machine(DEVICE, MEMORY, KERNEL)


def run(text: str, machine: Machine = MACHINE) -> list[dict[str, Any]]:
    return simulate.run(workload.parse(text), machine)


def seconds(text: str, machine: Machine = MACHINE) -> list[float]:
    return [one["seconds"] for one in run(text, machine) if "seconds" in one]


def kernel(**changes: Any) -> Machine:
    return replace(MACHINE, kernel=replace(KERNEL, **changes))


def copied(bytes_: int, calls: int) -> float:
    return bytes_ / MEMORY.write + calls * MEMORY.write_call


# What must hold of any workload


def anything(rng: random.Random) -> str:
    """A workload of two clients, who share files."""
    lines = [f"file {name} bytes={rng.randint(1, 200)}M" for name in "abc"]
    for _ in range(rng.randint(4, 14)):
        client, name = rng.choice(["", "[other] "]), rng.choice("abc")
        size = rng.choice(["4k", "100k", "1M", "3M"])
        lines.append(client + rng.choice([
            f"write {name} bytes={rng.randint(4, 250)}M size={size} at={rng.choice(['0', '10M'])}",
            f"write {name} bytes={rng.randint(4, 50)}M size={size} fsync=8M",
            f"write {name} bytes={rng.randint(4, 50)}M size={size} every=8M sleep=50ms",
            f"read {name} bytes={rng.randint(4, 250)}M size={size}",
            f"fsync {name}", f"look {name}", f"probe {name} count=8", f"drop {name}",
            f"sleep sleep={rng.choice(['1s', '40s'])}",
        ]))  # fmt: skip
    return "\n".join(lines)


MACHINES = {
    "usual": MACHINE,
    "fifo": kernel(policy="fifo"),
    "small": replace(MACHINE, memory=replace(MEMORY, bytes=16 * MIB)),
    "shared": replace(MACHINE, device=replace(DEVICE, shared=True, write_burst=4 * MIB)),
    "strict": kernel(limits=(Limits(32 * MIB, 64 * MIB), Limits(8 * MIB, 16 * MIB, strict=True))),
    "client": kernel(limits=(Limits(0, 16 * MIB, blocking=True),), write_through=True),
    "cgroup": kernel(limits=(), cgroup=(0.1, 0.2)),
    "slow": replace(MACHINE, device=replace(DEVICE, write=256 << 10)),
    "lumps": kernel(together=8 * MIB),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("seed", range(6))
def test_no_byte_is_lost_and_no_limit_exceeded(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = MACHINES[name]
    steps = workload.parse(anything(random.Random(seed)))
    clients = len({step.client for step in steps})
    caches = []
    make = pagecache.PageCache.__init__

    def made(self: pagecache.PageCache, *words: Any) -> None:
        make(self, *words)
        caches.append(self)

    def holds() -> None:
        cache = caches[0]
        chunks = [chunk for file in cache.files.values() for chunk in file.chunks.values()]
        assert sum(chunk.bytes for chunk in chunks) == cache.used <= machine.memory.bytes
        assert sum(chunk.dirty for chunk in chunks) == cache.dirty
        assert sum(chunk.writing for chunk in chunks) == cache.writing
        unwritten = cache.dirty + cache.writing + cache.behind
        hard = min(one.hard for one in cache._limits())
        assert unwritten <= hard + clients * machine.chunk
        assert cache.written_bytes + unwritten <= cache.dirtied_bytes, "or were overwritten"

    run_on = simulate.Clock.run

    def checked(self: Any, ended: Any) -> None:
        def and_holds() -> bool:
            holds()
            return bool(ended())

        run_on(self, and_holds)

    monkeypatch.setattr(pagecache.PageCache, "__init__", made)
    monkeypatch.setattr(simulate.Clock, "run", checked)
    results = simulate.run(steps, machine)
    assert len(results) == len(steps) and len(caches) == 1
    assert all(one.get("seconds", 0.0) >= 0 for one in results)
    for client in {step.client for step in steps}:
        begins = [one["begin"] for step, one in zip(steps, results) if step.client == client]
        assert begins == sorted(begins)


def test_a_simulation_is_the_same_again() -> None:
    text = anything(random.Random(3))
    assert run(text) == run(text)


# Answers on paper


def test_below_free_run_a_write_is_a_copy() -> None:
    assert KERNEL.limits[0].free_run == 48 * MIB
    small, large = seconds("write a bytes=40M size=4k\nfsync a\nwrite b bytes=40M size=4M")[::2]
    assert small == pytest.approx(copied(40 * MIB, 40 * 256))
    assert large == pytest.approx(copied(40 * MIB, 10))


def test_a_writer_ends_at_the_devices_rate() -> None:
    (one,) = run("write a bytes=400M size=1M")
    last = one["samples"][-100:]
    took = last[-1][0] + last[-1][1] - last[0][0]
    assert 100 * MIB / took == pytest.approx(DEVICE.write, rel=0.03)


@pytest.mark.parametrize("name", ["usual", "fifo", "client", "cgroup", "lumps", "strict"])
def test_until_it_is_on_the_device_a_file_takes_what_the_device_takes(name: str) -> None:
    bytes_ = 300 * MIB
    total = sum(seconds(f"write a bytes={bytes_} size=1M\nfsync a", MACHINES[name]))
    assert total == pytest.approx(bytes_ / DEVICE.write, rel=0.02)


def test_what_fsync_has_left_is_what_the_limit_allows() -> None:
    write, fsync = seconds("write a bytes=400M size=1M\nfsync a")
    assert fsync == pytest.approx(56 * MIB / DEVICE.write, rel=0.05)  # the setpoint
    strict = kernel(limits=(Limits(8 * MIB, 16 * MIB, strict=True),))
    assert seconds("write a bytes=400M size=1M\nfsync a", strict)[1] == pytest.approx(
        12 * MIB / DEVICE.write, rel=0.1
    )
    fifo = kernel(policy="fifo")
    assert seconds("write a bytes=400M size=1M\nfsync a", fifo)[1] == pytest.approx(
        64 * MIB / DEVICE.write, rel=0.05
    )


def test_a_clients_cache_takes_in_so_much_at_once() -> None:
    client = MACHINES["client"]
    write, close = run("write a bytes=16M size=1M\nwrite b bytes=116M size=1M", client)
    assert write["seconds"] == pytest.approx(copied(16 * MIB, 16), rel=0.05)
    assert close["seconds"] == pytest.approx(116 * MIB / DEVICE.write, rel=0.02)
    waits = replace(client, kernel=replace(client.kernel, close_waits=True))
    (one,) = run("write a bytes=16M size=1M", waits)
    assert one["seconds"] == pytest.approx(16 * MIB / DEVICE.write, rel=0.01)
    assert one["close_s"] == pytest.approx(one["seconds"] - copied(16 * MIB, 16), rel=0.01)


def test_reads_have_their_own_rate_and_a_cached_one_is_a_copy() -> None:
    first, again = seconds(
        "file a bytes=100M\nread a bytes=100M size=1M\nread a bytes=100M size=1M"
    )
    copy = 100 * MIB / MEMORY.read + 100 * MEMORY.read_call
    assert first == pytest.approx(100 * MIB / DEVICE.read, rel=0.03)
    assert again == pytest.approx(copy)


def test_each_window_of_a_reader_has_its_latency() -> None:
    slow = replace(MACHINE, device=replace(DEVICE, read_latency=0.001))
    text = "file a bytes=64M\nread a bytes=64M size=64k"
    short, long = (
        seconds(text, replace(slow, kernel=replace(KERNEL, read_ahead=ahead)))[0]
        for ahead in (128 << 10, 1 << 20)
    )
    base = 64 * MIB / DEVICE.read
    assert short == pytest.approx(base + 512 * 0.001, rel=0.03)
    assert long == pytest.approx(base + 64 * 0.001, rel=0.06)


def test_what_is_dirty_for_long_is_written_by_itself() -> None:
    write = "write a bytes=30M size=1M\n"
    waits = 30 * MIB / DEVICE.write
    assert seconds(write + "sleep sleep=20s\nfsync a")[-1] == pytest.approx(waits, rel=0.01)
    assert seconds(write + "sleep sleep=40s\nfsync a")[-1] == pytest.approx(0, abs=1e-6)
    soon = kernel(expire=1.0, writeback=0.5)
    assert seconds(write + "sleep sleep=3s\nfsync a", soon)[-1] == pytest.approx(0, abs=1e-6)


def test_above_the_background_limit_writing_begins_at_once() -> None:
    write = "write a bytes=40M size=1M\nsleep sleep=1s\nfsync a"
    left = seconds(write)[-1] * DEVICE.write / MIB
    assert 32 - 12 <= left <= 32, "what is below the limit stays, but for the pass that was begun"


def test_limits_of_a_cgroup_are_shares_of_its_memory() -> None:
    small, large = (
        replace(MACHINES["cgroup"], memory=replace(MEMORY, bytes=size * MIB)) for size in (64, 256)
    )
    text = "write a bytes=400M size=1M\nfsync a"
    assert seconds(text, large)[1] == pytest.approx(4 * seconds(text, small)[1], rel=0.1)


def test_sleeps_hide_the_device_from_a_writer() -> None:
    back, sleeping = run(
        "write a bytes=200M size=1M\nfsync a\nwrite b bytes=200M size=1M every=8M sleep=200ms"
    )[::2]
    calls = [sum(sample[1] for sample in one["samples"]) for one in (back, sleeping)]
    assert calls[1] == pytest.approx(copied(200 * MIB, 200), rel=0.01)
    assert calls[0] > 10 * calls[1]


def test_direct_calls_take_the_devices_time_and_no_room() -> None:
    slow = replace(MACHINE, device=replace(DEVICE, write_latency=0.001, read_latency=0.002))
    write, look, read = run(
        "write a bytes=50M size=1M direct\nlook a\nread a bytes=50M size=1M direct", slow
    )
    assert write["seconds"] == pytest.approx(1.0 + 50 * 0.001)
    assert read["seconds"] == pytest.approx(0.25 + 50 * 0.002)
    assert sum(look["parts"]) == 0


def test_a_device_that_takes_some_at_once_gives_that_much() -> None:
    burst = replace(MACHINE, device=replace(DEVICE, write_burst=10 * MIB))
    text = "write a bytes=50M size=1M direct\nsleep sleep=1s\nwrite b bytes=50M size=1M direct"
    first, _, second = seconds(text, burst)
    assert [first, second] == pytest.approx(2 * [40 * MIB / DEVICE.write])


def test_readers_and_write_back_share_a_device_that_does_one_thing_at_a_time() -> None:
    text = "file a bytes=100M\nwrite b bytes=40M\nsleep sleep=1ms\nread a bytes=100M\nfsync b"
    apart = seconds(text)
    together = seconds(text, replace(MACHINE, device=replace(DEVICE, shared=True)))
    assert together[2] >= apart[2]
    assert sum(together) > sum(apart) + 0.1


def test_two_clients_have_half_of_the_device_each() -> None:
    alone = seconds("write a bytes=200M\nfsync a")
    first, second = run("[x] write a bytes=200M fsync=200M\n[y] write b bytes=200M fsync=200M")
    assert max(first["seconds"], second["seconds"]) == pytest.approx(2 * sum(alone), rel=0.02)
    assert min(first["seconds"], second["seconds"]) > 1.5 * sum(alone)


# What stays


def test_after_a_serial_write_the_last_part_is_cached() -> None:
    look = run("write a bytes=256M size=1M\nlook a")[1]
    assert cached(look) == pytest.approx(0.5, abs=0.01)
    assert cached(look, 0, 0.45) == 0 and cached(look, 0.55, 1) == 1


SECOND_CHANCE = """
write small bytes=32M
drop small
read small bytes=32M
read small bytes=32M
write other bytes=192M
look small
"""


def test_what_was_read_twice_outlives_a_write_but_not_in_a_queue() -> None:
    assert cached(run(SECOND_CHANCE)[-1]) == 1
    assert cached(run(SECOND_CHANCE, kernel(policy="fifo"))[-1]) == 0
    once = SECOND_CHANCE.replace("read small bytes=32M\n", "", 1)
    assert cached(run(once)[-1]) == 0


def test_a_memory_full_of_dirty_pages_drives_out_what_was_read_twice() -> None:
    """As cgroups of version 1 have it: no limit below the memory; dirty pages become active."""
    assert cached(run(SECOND_CHANCE, kernel(limits=(Limits(1 << 40, 1 << 41),)))[-1]) == 0


def test_timed_pages_say_the_same_as_a_look() -> None:
    look, probe = run("write a bytes=256M\nlook a\nprobe a count=100")[1:]
    hits = [page[2] for page in probe["pages"]]
    assert sum(hits) / 100 == pytest.approx(cached(look), abs=0.02)
    slowest_hit = max(ns for _, ns, hit in probe["pages"] if hit)
    assert slowest_hit < min(ns for _, ns, hit in probe["pages"] if not hit)


def test_a_dropped_and_a_removed_file_leave_their_room() -> None:
    looks = run("write a bytes=64M\nlook a\ndrop a\nlook a\nremove a\nwrite a bytes=8M\nlook a")
    assert [cached(one) for one in looks if one["operation"] == "look"] == [1, 0, 1]
    assert looks[-1]["bytes"] == 8 * MIB


def test_a_removed_file_is_not_written_any_more() -> None:
    whole = seconds("write a bytes=30M\nremove a\nwrite b bytes=1M\nfsync b")
    assert whole[-1] == pytest.approx(1 * MIB / DEVICE.write, rel=0.01)


# What cannot be


@pytest.mark.parametrize("text", ["look a", "fsync a", "remove a", "write a bytes=1M\nlook b"])
def test_a_file_that_no_step_has_made_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="no step before has made this file"):
        run(text)


def test_too_little_memory_is_an_error() -> None:
    with pytest.raises(UsageError, match="too little to simulate"):
        run("write a bytes=1M", replace(MACHINE, memory=replace(MEMORY, bytes=1000)))


def test_a_wait_without_end_is_an_error() -> None:
    stuck = kernel(limits=(Limits(1, -1, blocking=True),))
    with pytest.raises(UsageError, match="cannot happen"):
        run("write a bytes=1M", stuck)


# The formulas


def test_a_writers_rate_is_twice_the_base_then_the_base_then_nothing() -> None:
    limits = Limits(32, 64)
    assert (limits.free_run, limits.setpoint) == (48, 56)
    assert [throttle.position(at, limits) for at in (48, 56, 64, 70)] == [2, 1, 0, 0]
    assert [throttle.position(at, limits) for at in (52, 60)] == [1.125, 0.875], "a cubic"
    assert throttle.tightest(48, [limits]) is None
    assert throttle.tightest(50, [limits, Limits(1, 51)]) == Limits(1, 51)


def test_the_base_rate_comes_to_that_of_the_device() -> None:
    rate = throttle.BaseRate(300e6, 300e6)
    limits, done, dirtied, dirty = Limits(320e6, 640e6), 0.0, 0.0, 560e6
    for tick in range(1, 300):
        wrote = rate.base * throttle.position(dirty, limits) * 0.25
        done, dirtied, dirty = done + 25e6, dirtied + wrote, dirty + wrote - 25e6
        rate.update(0.25 * tick, done, dirtied, dirty, limits)
    assert rate.written == pytest.approx(100e6, rel=0.01)
    assert rate.base * throttle.position(dirty, limits) == pytest.approx(100e6, rel=0.05)
    assert limits.setpoint - 60e6 < dirty < limits.hard
