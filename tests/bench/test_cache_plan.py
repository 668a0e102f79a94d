"""The cache study's arithmetic: which cgroups there are, what is done, and what follows from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from brigade.bench.cache import conclude, memory, plan, rates, study
from brigade.errors import UsageError
from brigade.model.cache import workload
from brigade.model.cache.workload import Step

MIB = 1 << 20


def test_the_memory_controller_is_found_in_either_version_of_cgroups() -> None:
    mounts = (
        "proc /proc proc rw 0 0\n"
        "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
        "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
        "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
    )
    own = "5:cpu:/x\n4:memory:/job/7\n0::/user.slice/me\n"
    assert memory.homes(own, mounts) == [
        (2, Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup/unified/user.slice/me")),
        (1, Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup/memory/job/7")),
    ]
    assert memory.homes("0::/\n", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n") == [
        (2, Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup"))
    ]
    assert memory.homes("5:cpu:/x\n", mounts) == []


def made(write: float, read: float, seconds: float = 60.0, series: int = 4) -> plan.Sizes:
    return plan.sizes(plan.Rates(write, read), seconds, series)


def took(steps: list[Step], write: float, read: float) -> float:
    """Seconds if nothing were cached."""
    total = sum(
        one.bytes / {"write": write, "read": read}.get(one.operation, 1e30) for one in steps
    )
    return total + sum(one.sleep * (one.bytes // one.every) for one in steps if one.every)


@pytest.mark.parametrize("write", [10e6, 80e6, 400e6, 5e9])
@pytest.mark.parametrize("ratio", [0.3, 1.0, 3.0])
def test_the_study_takes_about_as_long_as_it_was_told(write: float, ratio: float) -> None:
    sizes = made(write, ratio * write)
    steps = plan.study(sizes, (4096, 65536, MIB, 8 * MIB), tuple(plan.PATTERNS), 0.1, 1.6)
    least = sizes.memory == plan.LEAST
    assert took(steps, write, ratio * write) < (70 if not least else 240)
    assert plan.LEAST <= sizes.memory <= plan.MOST
    assert sizes.series > sizes.memory, "a series meets the limit"


def test_a_slower_device_is_given_less_memory() -> None:
    assert made(20e6, 20e6).memory < made(200e6, 200e6).memory == plan.MOST


def test_each_pattern_does_what_it_says() -> None:
    steps = plan.study(made(1e8, 1e8), (4096, MIB), tuple(plan.PATTERNS), 0.1, 1.0)
    named = {one.name: one for one in steps if one.operation == "write"}
    assert {f"{pattern}-{size}" for pattern in plan.PATTERNS for size in (4096, MIB)} < set(named)
    assert not named["back-4096"].every and not named["back-4096"].fsync
    assert named["sleep-4096"].every and named["sleep-4096"].sleep == 0.1
    assert named["fsync-1048576"].fsync >= MIB
    assert named["direct-4096"].direct and not named["sleep-4096"].direct
    removed = {one.file for one in steps if one.operation == "remove"}
    assert removed == {one.file for one in steps if one.file != "-"}


def test_steps_are_the_same_after_they_were_text() -> None:
    steps = plan.study(made(1e8, 1e8), (4096, MIB), tuple(plan.PATTERNS), 0.1, 1.0)
    assert workload.parse(workload.text(steps)) == steps


def test_what_the_files_need_is_their_largest_sum() -> None:
    steps = workload.parse("write a bytes=4M\nremove a\nwrite b bytes=3M\nwrite c bytes=2M at=1M\n")
    assert study.files_bytes(steps) == 6 * MIB


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("wrote a bytes=4M", "'wrote' is no operation"),
        ("write a", "how many bytes"),
        ("write bytes=4M", "of which file"),
        ("write a bytes=4M speed=3", "'speed' is no setting"),
        ("write a bytes=four", "is not a size"),
        ("read a bytes=4M size=0", "at least one byte"),
    ],
)
def test_a_line_that_is_no_step_is_said_with_its_number(line: str, why: str) -> None:
    with pytest.raises(UsageError, match=rf"steps, line 2: .*{why}"):
        workload.parse(f"write a bytes=1M\n{line}\n", "steps")


@pytest.mark.parametrize(
    "wrong", [{"patterns": ("backwards",)}, {"memory": MIB}, {"sizes": (0,)}, {"sizes": (1000,)}]
)
def test_what_cannot_be_measured_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        study.check(replace(study.Wanted(), **wrong))


def step(name: str, size: int, calls: list[float], **more: Any) -> dict[str, Any]:
    """A step whose calls took so many seconds."""
    at, samples = 0.0, []
    for one in calls:
        samples.append([at, one, 1, one])
        at += one
    file = name.split(" ")[0]
    found = {"name": name, "file": file, "samples": samples, "size": size, "seconds": at}
    return {**found, "operation": "write", "bytes": size * len(calls), "close_s": 0.0, **more}


def test_rates_are_those_that_the_calls_were_made_with() -> None:
    def calibrated(name: str, size: int, fixed: float, rate: float) -> dict[str, Any]:
        return step(name, size, [fixed + size / rate] * 20)

    found = rates.rates(
        [
            calibrated("device write", 8 * MIB, 0.0, 80e6),
            calibrated("device read", 8 * MIB, 0.0, 200e6),
            calibrated("call write", 4096, 1e-3, 80e6),
            calibrated("call read", 4096, 2e-3, 200e6),
            calibrated("memory write large", MIB, 1e-6, 2e9),
            calibrated("memory write small", 4096, 1e-6, 2e9),
            calibrated("memory read large", MIB, 2e-6, 4e9),
            calibrated("memory read small", 4096, 2e-6, 4e9),
        ]
    )
    expected = {
        "write": 80e6, "read": 200e6, "write_burst": 0, "read_burst": 0,
        "write_latency": 1e-3, "read_latency": 2e-3,
        "memory_write": 2e9, "memory_read": 4e9, "write_call": 1e-6, "read_call": 2e-6,
    }  # fmt: skip
    assert found == pytest.approx(expected, abs=1)


def test_what_a_device_takes_in_at_once_is_not_its_rate() -> None:
    burst = step("device write", 8 * MIB, [0.001] * 4 + [0.1] * 20)
    rate, at_once = rates._steady(burst)
    assert rate == pytest.approx(8 * MIB / 0.1)
    assert at_once == pytest.approx(4 * 8 * MIB, rel=0.02)


def test_where_fsync_stands_for_the_device_its_ends_tell_the_rate() -> None:
    begins = [0.001 * number for number in range(10)]
    waits = [[begin + 0.0005, 0.1, 1, 0.1] for begin in begins[1::2]]
    samples = [[begin, 0.0001, 1, 0.0001] for begin in begins]
    found = {"name": "x", "samples": samples, "fsyncs": waits[:2], "size": MIB}
    assert rates._steady(found)[0] == pytest.approx(4 * MIB / 0.1035)


def test_a_fall_is_found_where_it_was() -> None:
    first, until, last = conclude.knee(step("back", MIB, [0.001] * 100 + [0.02] * 50)) or (0, 0, 0)
    assert (first, last) == pytest.approx((MIB / 0.001, MIB / 0.02))
    assert until == 100 * MIB
    assert conclude.knee(step("back", MIB, [0.001] * 150)) is None
    assert conclude.knee(step("back", MIB, [0.001] * 50 + [0.02] * 5 + [0.001] * 95)) is None


def test_pages_of_device_and_cache_are_told_apart_by_the_widest_gap() -> None:
    pages = [[0, 1000, 1], [1, 1500, 1], [2, 90_000, 0], [3, 200_000, 0]]
    limit = conclude.threshold(pages)
    assert limit is not None and 1500 < limit < 90_000
    assert conclude.threshold([[0, 1000, 1], [1, 1500, 1]]) is None


def study_of(fall: bool, small_cached: int) -> dict[str, Any]:
    calls = [0.001] * 100 + [0.02 if fall else 0.001] * 50
    looks = {"pages": 1000, "bytes": 4_096_000}
    results = [
        step("back-1048576", MIB, calls),
        {"name": "back-1048576 fsync", "seconds": 1.0},
        step("large write", MIB, calls),
        {"name": "large after write", "parts": [0] * 50 + [20] * 50, **looks, "pages": 2000},
        {"name": "large pages", "pages": [[0, 1000, 1]] * 8 + [[0, 9e4, 1], [0, 9e4, 0]]},
        step("large read", MIB, [0.01] * 100, operation="read"),
        {"name": "large after read", "parts": [10] * 100, **looks},
        {"name": "small after other", "parts": [small_cached] * 100, **looks},
        {"name": "other after write", "parts": [1] * 100, **looks},
    ]
    return {
        "room": {"bytes": 2_048_000, "own": True, "why": ""},
        "rates": {"write": MIB / 0.02, "read": MIB / 0.01},
        "direct": False,
        "results": results,
    }


def test_pages_of_one_kind_are_not_told_apart_by_their_times() -> None:
    (said,) = conclude._pages([[0, 1000, 1], [1, 90_000, 1], [2, 1000, 1]])
    assert said == "Of 3 pages that were read by themselves mincore had all: 1 us."


def test_version_2_makes_a_cgroup_below_one_that_hands_memory_on(tmp_path: Path) -> None:
    own = tmp_path / "user" / "session"
    own.mkdir(parents=True)
    for folder, controllers in ((tmp_path, "cpu memory"), (tmp_path / "user", "memory"), (own, "")):
        (folder / "cgroup.subtree_control").write_text(controllers + "\n")
    assert memory._parents(2, tmp_path, own) == [tmp_path / "user", tmp_path]
    assert memory._parents(1, tmp_path, own) == [own]


def test_conclusions_follow_from_the_samples() -> None:
    said = " ".join(conclude.conclude(study_of(fall=True, small_cached=10)))
    assert "until 100.0 MiB are written; then at 50.0 MiB/s, 1.0 times the device's own" in said
    assert "took 20.0 ms" in said or "took 20 ms" in said
    assert "Of a file of 2.0 times the memory, 50% are cached" in said
    assert "0% of the first half, 100% of the second" in said
    assert "say the same as mincore of 90%" in said
    assert "read twice, 100% outlive" in said and "would keep 0%" in said
    assert "O_DIRECT is refused" in said
    other = " ".join(conclude.conclude(study_of(fall=False, small_cached=2)))
    assert "No fall was seen" in other and "read twice, 20% outlive" in other
