"""`brigade model cache` as a user calls it, and how a study becomes a machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from brigade.cli.model import command
from brigade.errors import UsageError
from brigade.model.cache import compare, from_study, simulate, workload
from brigade.model.cache.settings import Limits

MIB = 1 << 20
ABOUT = {
    "dirty_ratio": 20, "dirty_background_ratio": 10, "dirty_bytes": 0, "dirty_background_bytes": 0,
    "dirty_expire_cs": 3000, "dirty_writeback_cs": 500, "max_bytes": None, "max_ratio": 100,
    "strict_limit": 0, "read_ahead_kb": 256, "available": 1000 * MIB, "memory": 64 * MIB,
    "cgroup": 0, "filesystem": "tmpfs",
}  # fmt: skip
RATES = {
    "write": 40e6, "read": 160e6, "write_burst": 0.0, "read_burst": 0.0, "write_latency": 1e-4,
    "read_latency": 1e-4, "memory_write": 2e9, "memory_read": 4e9, "write_call": 1e-6,
    "read_call": 1e-6,
}  # fmt: skip
STEPS = """
write a bytes=96M size=1M
look a
fsync a
read a bytes=96M size=64k
read a bytes=96M size=1M direct
write b bytes=32M size=1M every=8M sleep=500ms
write b bytes=32M size=1M fsync=8M
"""


def model(*words: str) -> str:
    result = CliRunner().invoke(command, ["cache", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.output)


def study(policy: str = "linux") -> dict[str, Any]:
    """A study whose measurements are a simulation's."""
    made: dict[str, Any] = {
        "schema": 1, "benchmark": "cache", "kernel": {**ABOUT, "dirty_bytes": 32 * MIB},
        "rates": RATES, "steps": STEPS.strip().splitlines(),
    }  # fmt: skip
    steps = workload.parse(STEPS)
    return {**made, "results": simulate.run(steps, from_study.machine(made, policy))}


def test_without_a_word_twice_the_memory_is_written_and_read() -> None:
    lines = model().splitlines()
    assert lines[0].split() == ["step", "begins", "takes", "bytes", "rate", "longest", "call"]
    assert lines[1].startswith("write a") and "256.0 MiB" in lines[1]
    assert "50% cached" in lines[2]
    assert all(len(line) <= 80 for line in lines)


def test_what_is_given_changes_what_comes_out() -> None:
    def took(*words: str) -> dict[str, float]:
        results = json.loads(model("--json", *words))["results"]
        return {one["operation"]: one["seconds"] for one in results if "seconds" in one}

    usual = took("--memory", "64M")
    assert took("--memory", "64M", "--read", "50M")["read"] > 1.8 * usual["read"]
    assert took("--memory", "64M", "--write", "50M")["write"] > 1.8 * usual["write"]
    assert took("--memory", "64M", "--dirty", "60M")["fsync"] > 3 * usual["fsync"]
    assert took("--memory", "64M", "--strict", "4M")["fsync"] < 0.6 * usual["fsync"]
    client = took("--memory", "64M", "--client-dirty", "32M", "--write-through")
    assert client["fsync"] < 0.01, "close has waited"
    assert took("--memory", "64M", "--latency", "10ms")["read"] > 1.5 * usual["read"]


def test_a_workload_of_several_clients_is_done(tmp_path: Path) -> None:
    steps = tmp_path / "steps"
    steps.write_text("[one] write a bytes=64M size=1M\n[two] write b bytes=64M size=4k\n")
    results = json.loads(model("--workload", str(steps), "--json"))["results"]
    assert [one["begin"] for one in results] == [0, 0]


def test_a_figure_is_drawn_of_either_kind(tmp_path: Path) -> None:
    model("--figure", str(tmp_path / "one.png"), "--memory", "32M")
    file = tmp_path / "study.json"
    file.write_text(json.dumps(study()))
    model("--compare", str(file), "--figure", str(tmp_path / "two.svg"))
    assert (tmp_path / "one.png").stat().st_size > 5000
    drawn = (tmp_path / "two.svg").read_text()
    assert "measured" in drawn and "within 15%" in drawn


def test_a_comparison_with_itself_has_no_error_and_another_policy_has(tmp_path: Path) -> None:
    file = tmp_path / "study.json"
    file.write_text(json.dumps(study()))
    found = json.loads(model("--compare", str(file), "--json"))
    assert found["summary"]["linux"]["cache"]["max"] == 0
    assert found["summary"]["fifo"]["cache"]["max"] > 0.1
    assert found["cached"][0]["measured"] == found["cached"][0]["simulated"]
    text = model("--compare", str(file))
    assert "write a" in text and "+0%" in text and "policy linux (the table)" in text


def test_an_error_is_by_what_was_measured(tmp_path: Path) -> None:
    made = study()
    made["results"][2]["seconds"] /= 2  # fsync a
    file = tmp_path / "study.json"
    file.write_text(json.dumps(made))
    found = json.loads(model("--compare", str(file), "--json"))
    assert found["summary"]["linux"]["fsync"] == {"phases": 1, "mean": 1.0, "max": 1.0}
    assert found["summary"]["linux"]["write"]["max"] == 0


def test_a_phase_is_its_calls_and_fsyncs_without_sleeps_and_direct_ones_stand_apart() -> None:
    made = study()
    direct = [step.direct for step in workload.parse(STEPS)]
    phases = compare.phases(direct, made["results"], made["results"])
    named = {one.name: one for one in phases}
    assert {one.kind for one in phases} == {"write", "fsync", "read", "direct"}
    assert len([one for one in phases if one.name == "write b"]) == 1, "the other took no time"
    synced = made["results"][6]
    waits = sum(one[1] for one in synced["fsyncs"])
    assert 0.5 < waits < named["write b"].measured == pytest.approx(synced["seconds"], rel=0.01)
    assert made["results"][5]["seconds"] > 1.5, "sleeps"
    assert compare.summary(phases)["cache"]["phases"] == len(phases) - 1


def test_another_background_leaves_the_limit_of_a_study_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    path.write_text(json.dumps(study()))
    words = ["--machine", str(path), "--memory", "64M", "--background", "1M", "--json"]
    first = json.loads(model(*words))["machine"]["kernel"]["limits"][0]
    assert first == {"background": MIB, "hard": 32 * MIB, "strict": False, "blocking": False}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--compare", "{study}", "--memory", "1G"], "give only that"),
        (["--compare", "{study}", "--workload", "{study}"], "give only that"),
        (["--compare", "{other}"], "is no study"),
        (["--machine", "{other}"], "is no study"),
        (["--workload", "{other}"], "line 1"),
        (["--background", "1G", "--dirty", "1M"], "must be less"),
        (["--memory", "1k"], "too little"),
        (["--memory", "1"], "--memory is too little"),
        (["--memory", "5", "--background", "9"], "less than the most dirty bytes, here 1$"),
        (["--memory", "0"], "--memory must be above 0"),
        (["--dirty", "0"], "--dirty must be above 0"),
        (["--writeback", "0"], "--writeback must be above 0"),
        (["--write", "0"], "--write must be above 0"),
        (["--read", "0"], "--read must be above 0"),
        (["--workload", "{binary}"], "is not text"),
        (["--workload", "{unmade}"], "no step before has made this file"),
    ],
)
def test_what_cannot_be_meant_is_an_error_of_usage(
    words: list[str], why: str, tmp_path: Path
) -> None:
    names = {"study": tmp_path / "study.json", "other": tmp_path / "other"}
    names["study"].write_text(json.dumps(study()))
    names["other"].write_text("{}")
    names |= {name: tmp_path / name for name in ("binary", "unmade")}
    names["binary"].write_bytes(b"write a bytes=1M # \xff\n")
    names["unmade"].write_text("read a bytes=1M\nlook a\n")
    with pytest.raises(UsageError, match=why):
        model(*(word.format(**names) for word in words))


def test_the_kernels_settings_become_limits() -> None:
    def limits(**changes: Any) -> tuple[Limits, ...]:
        return from_study.kernel({**ABOUT, **changes}).limits

    assert limits() == (Limits(100 * MIB, 200 * MIB),)
    assert limits(dirty_bytes=50 * MIB) == (Limits(25 * MIB, 50 * MIB),), "half, if not below"
    both = {"dirty_bytes": 50 * MIB, "dirty_background_bytes": 10 * MIB}
    assert limits(**both) == (Limits(10 * MIB, 50 * MIB),)
    strict = limits(strict_limit=1, max_bytes=40 * MIB)
    assert strict[1] == Limits(20 * MIB, 40 * MIB, strict=True)
    fuse = limits(strict_limit=1, max_bytes=None, max_ratio=1)
    assert fuse[1] == Limits(1 * MIB, 2 * MIB, strict=True)


def test_a_cgroup_of_version_2_has_limits_of_its_own() -> None:
    assert from_study.kernel({**ABOUT, "cgroup": 2}).cgroup == pytest.approx((0.1, 0.2))
    assert from_study.kernel({**ABOUT, "cgroup": 1}).cgroup == ()


def test_times_and_windows_are_in_seconds_and_bytes() -> None:
    kernel = from_study.kernel(ABOUT)
    assert (kernel.expire, kernel.writeback, kernel.read_ahead) == (30.0, 5.0, 256 << 10)
    assert from_study.kernel({**ABOUT, "filesystem": "ext4"}).lump(4096) == 8 * MIB
    assert from_study.kernel({**ABOUT, "filesystem": "xfs"}).lump(4096) == 16 * MIB
    assert kernel.lump(4096) == 0


def test_a_client_through_fuse_writes_at_once_into_a_cache_of_its_own() -> None:
    kernel = from_study.kernel({**ABOUT, "filesystem": "fuse.mfs"})
    assert kernel.write_through and kernel.close_waits
    assert Limits(0, 256 * MIB, blocking=True) in kernel.limits
    assert not from_study.kernel(ABOUT).write_through
