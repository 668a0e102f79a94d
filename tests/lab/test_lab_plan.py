"""What a lab's plan and its pages say, without bringing anything up."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from brigade.cli.lab import command
from brigade.errors import UsageError
from brigade.lab import Lab, configs, lab, slurm, state
from brigade.lab.counters import Count, Stats, parse_page
from brigade.lab.plan import MAX_SERVERS, FileSystem, LabPlan


@pytest.mark.parametrize(
    ("text", "service_us", "servers"),
    [("slow:0.5ms", 500, 1), ("slow:30us", 30, 1), ("slow:1s,servers=4", 1e6, 4)],
)
def test_a_slow_file_system_is_named_by_its_service_time(text, service_us, servers):
    assert FileSystem.parse(text) == FileSystem("slow", service_us, servers)
    assert FileSystem.parse(str(FileSystem.parse(text))) == FileSystem.parse(text)


@pytest.mark.parametrize(
    "text", ["nfs", "slow", "slow:5", "slow:1ms,servers=0", "slow:1ms,servers=129", "slow:1ms,x=1"]
)
def test_an_unknown_file_system_is_refused_with_the_known_ones(text):
    with pytest.raises(UsageError) as caught:
        FileSystem.parse(text)
    assert "slow:0.5ms" in (caught.value.hint or "")


NO_NAMES = ["", "Lab", "a/b", "..", "{folder}", "a" * 30, "1st"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_is_no_folder_or_host_name_is_refused(name):
    with pytest.raises(UsageError):
        LabPlan(name)


@pytest.mark.parametrize("name", NO_NAMES)
def test_no_other_folder_is_taken_for_a_labs_and_removed(name, tmp_path, monkeypatch):
    root, other = tmp_path / "run" / "labs", tmp_path / "run" / "other"
    for folder in (root / "lab" / "etc", other):
        folder.mkdir(parents=True)
    for module in ("plan", "state"):
        monkeypatch.setattr(f"brigade.lab.{module}.STATE_ROOT", root)
    name = name.format(folder=other)
    for call in (Lab.take_down, Lab.find, state.load, state.require_outside):
        with pytest.raises(UsageError, match="cannot name a lab"):
            call(name)
    for words in (["down"], ["status"], ["stats"], ["run", "true"], ["exec", "n0", "true"]):
        done = CliRunner().invoke(command, [words[0], "--name", name, *words[1:]])
        assert isinstance(done.exception, UsageError)
    assert other.is_dir() and [path.name for path in root.iterdir()] == ["lab"]


@pytest.mark.parametrize("folder", ["/", "/tmp", "/dev", "/dev/shm", "/tmp/."])
def test_a_folder_that_nodes_have_themselves_cannot_be_shown_to_them(folder):
    with pytest.raises(UsageError, match="of their own"):
        lab._visible([folder])


def test_of_folders_that_are_shown_the_outer_ones_stand_for_all(tmp_path, monkeypatch):
    (tmp_path / "a/b").mkdir(parents=True)
    monkeypatch.setattr("brigade.lab.lab.PRIVATE", (str(tmp_path), "/dev/shm"))
    shown = lab._visible([str(tmp_path / "a/b"), str(tmp_path / "a"), "/etc"])
    assert str(tmp_path / "a") in shown
    assert not {str(tmp_path / "a/b"), "/etc"} & set(shown)


def test_as_many_servers_are_allowed_as_the_slow_file_system_has():
    header = (Path(__file__).parents[2] / "src/lab/slowfs.h").read_text()
    assert f"#define SLOW_MAX_SERVERS {MAX_SERVERS}\n" in header
    assert FileSystem.parse(f"slow:1ms,servers={MAX_SERVERS}").servers == MAX_SERVERS


@pytest.mark.parametrize("words", [["exec", "n0", "--"], ["run", "--", "--"], ["run"]])
def test_without_a_command_it_is_asked_for(words):
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 2 and "command" in done.output.lower()


def test_a_lab_that_could_not_be_changed_leaves_no_folder(tmp_path, monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    for module in ("plan", "state"):
        monkeypatch.setattr(f"brigade.lab.{module}.STATE_ROOT", tmp_path / "labs")
    with pytest.raises(KeyError), state.locked("lab"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_every_member_has_an_address_of_its_own():
    plan = LabPlan(n_nodes=64)
    assert len({plan.address(member) for member in plan.members}) == 65
    assert all(f"{plan.address(m)} {m}\n" in plan.hosts() for m in plan.members)


def test_the_munge_socket_fits_into_a_socket_address():
    assert len(str(LabPlan("a" * 24).munge_socket)) < 108


def test_slurm_is_found_where_path_has_no_folders_of_system_programs(tmp_path, monkeypatch):
    """As after `su`."""
    program = tmp_path / "slurmctld"
    program.write_text("#!/bin/sh\necho slurm 24.11.5\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("brigade.lab.debian._SBIN", (str(tmp_path),))
    assert not slurm.has_switches()


def test_the_remote_shell_drops_options_and_keeps_the_command(tmp_path):
    agent = tmp_path / "rsh"
    text = (
        configs.rsh_agent(LabPlan()).replace('"$(id -u)" = 0', "0 = 1").replace("exec srun", "echo")
    )
    agent.write_text(text)
    said = subprocess.run(
        ["sh", agent, "-x", "-l", "root", "n2", "FOO=1", "orted", "-mca", "a", "b c"],
        capture_output=True,
        text=True,
    )
    assert said.stdout.endswith("-w n2 sh -c FOO=1 orted -mca a b c\n")


def page(kinds: list[tuple[bytes, int, int]]) -> bytes:
    head = struct.pack("<8sQQQ", b"BRGLABC1", len(kinds), 7, 9)
    return head + b"".join(struct.pack("<20sIQ", *kind) for kind in kinds)


def test_a_page_keeps_background_apart_from_requests():
    count = parse_page(page([(b"lookup", 0, 5), (b"clock", 1, 3), (b"open", 0, 0)]))
    assert count == Count(5, 3, 7, 9, {"lookup": 5, "clock": 3})


@pytest.mark.parametrize("damage", [b"", b"BRGLABC1", page([(b"a", 0, 1)])[:-1], b"x" * 100])
def test_a_damaged_page_is_an_error(damage):
    with pytest.raises(ValueError):
        parse_page(damage)


def test_a_difference_of_counts_is_what_happened_in_between():
    before = Count(5, 1, 10, 0, {"lookup": 5})
    after = Count(8, 1, 30, 4, {"lookup": 5, "open": 3})
    assert after - before == Count(3, 0, 20, 4, {"open": 3})
    assert Stats({"n0": before, "n1": after}).total == Count(
        13, 2, 40, 4, {"lookup": 10, "open": 3}
    )
