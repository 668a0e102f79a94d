"""A lab comes up and goes down without a trace, whatever is killed in between."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from brigade.errors import LabError
from brigade.lab import Lab, namespaces

pytestmark = pytest.mark.usefixtures("able")
NAME = f"test-l-{os.getpid()}"


def traces() -> dict[str, object]:
    """Everything of this machine that a lab named NAME could leave behind."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout
    netns = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    processes = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{entry}/cmdline").read_bytes()
        except OSError:
            continue
        if NAME.encode() in command and int(entry) != os.getpid():
            processes.append(command)
    return {
        "links": [line.split(":")[1] for line in links.splitlines()],
        "namespaces": netns,
        "mounts": [m for m in Path("/proc/mounts").read_text().splitlines() if NAME in m],
        "processes": processes,
        "files": [str(p) for root in ("/run/brigade-lab", "/var/tmp", "/mnt") for p in named(root)],
        "mount points": sorted(os.listdir("/mnt")),
    }


def named(root: str) -> list[Path]:
    return [path for path in Path(root).glob("*") if NAME in path.name]


@pytest.fixture
def clean():
    Lab.take_down(NAME)  # of a test before that failed in its own ending
    before = traces()
    assert not before["files"]
    yield before
    Lab.take_down(NAME)
    assert not traces()["files"]


def up(nodes: int = 1, fs: str = "moosefs") -> Lab:
    return Lab.up(NAME, nodes, fs)


@pytest.mark.parametrize("fs", ["moosefs", "slow:1ms"])
def test_down_leaves_nothing_even_of_what_ran_in_the_nodes(clean, fs):
    lab = up(2, fs)
    assert lab.faults() == []
    # a session of its own, busy on the shared file system: as hard to get rid of as it gets
    lab.exec("n1", ["setsid", "--fork", "sh", "-c", f"cd {lab.shared}; exec sleep 1000"])
    lab.exec("n0", ["setsid", "--fork", "unshare", "-m", "sleep", "1000"], host_network=False)
    away = [("-n", "-m"), ("-n", "-m", "-i"), ("-n", "-m", "-u")]
    for number, kinds in enumerate(away):
        lab.exec(
            "n1", ["setsid", "--fork", "unshare", *kinds, "sleep", f"100{number}.{os.getpid()}"]
        )
    mine = f"sleep 100[0-9].{os.getpid()}"
    assert len(subprocess.run(["pgrep", "-f", mine], stdout=-1).stdout.split()) == len(away)
    lab.down()
    assert traces() == clean
    assert subprocess.run(["pgrep", "-f", mine], stdout=-1).stdout == b""


def test_down_twice_is_no_error(clean):
    up(fs="slow:1ms")
    assert Lab.take_down(NAME)
    assert not Lab.take_down(NAME)


def test_what_a_restart_of_the_machine_leaves_is_cleared_away(clean):
    local = Path(f"/var/tmp/brigade-lab-{NAME}/local/n0")
    local.mkdir(parents=True)
    assert Lab.take_down(NAME)
    assert traces() == clean
    local.mkdir(parents=True)
    (local / "old").touch()
    lab = up(fs="slow:1ms")
    assert lab.exec("n0", ["ls", lab.local], stdout=-1).stdout == b""
    lab.down()
    assert traces() == clean


def test_other_users_can_use_a_lab_that_was_brought_up_with_a_strict_umask(clean):
    before = os.umask(0o077)
    try:
        lab = up(fs="slow:1ms")
        assert os.umask(0o077) == 0o077
        for command in (["ls", lab.shared], ["ls", lab.local], ["srun", "-n1", "hostname"]):
            lab.exec("n0", command, user="nobody", cwd="/", check=True)
    finally:
        os.umask(before)


def test_another_users_folder_is_neither_used_nor_removed(clean):
    folder = Path(f"/var/tmp/brigade-lab-{NAME}")
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    try:
        with pytest.raises(LabError, match="not the lab's"):
            up(fs="slow:1ms")
        assert not Lab.take_down(NAME)
        assert folder.is_dir()
    finally:
        folder.rmdir()


def test_a_second_up_of_the_same_name_is_refused(clean):
    up(fs="slow:1ms")
    with pytest.raises(LabError, match="is up"):
        up(fs="slow:1ms")


# in a mount namespace of its own, as a container's: the kernel may count what other processors
# make as older, and pins only what is younger
_IN_A_NAMESPACE = """
import os, sys
from brigade.lab import Lab
os.sched_setaffinity(0, eval(sys.argv[2]))
lab = Lab.up(sys.argv[1], 1, "slow:1ms")
lab.exec("n0", [sys.executable, "-c", "import os; print(os.sched_getaffinity(0))"], check=True)
lab.down()
"""


@pytest.mark.parametrize("processor", sorted(os.sched_getaffinity(0)))
def test_up_in_a_mount_namespace_made_on_any_processor(clean, processor):
    everywhere = os.sched_getaffinity(0)
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private"]
        + [sys.executable, "-c", _IN_A_NAMESPACE, NAME, str(everywhere)],
        preexec_fn=lambda: os.sched_setaffinity(0, {processor}),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, f"{everywhere}\n"), done.stderr
    assert traces() == clean


def test_two_labs_side_by_side_do_not_meet(clean, moose):
    lab = up(fs="slow:1ms")
    lab.exec("n0", ["touch", f"{lab.shared}/mine"], check=True)
    assert moose.exec("n0", ["test", "-e", f"{lab.shared}/mine"]).returncode == 1
    assert Lab.find(NAME).nodes == ["n0"]
    lab.down()
    assert moose.faults() == []


def test_after_kill_of_anything_down_leaves_nothing(clean):
    lab = up(2)
    pins = [lab.plan.pins(member) for member in lab.plan.members]
    victims = random.Random(7).sample(sorted(namespaces.processes(pins)), 5)
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    lab.down()
    assert traces() == clean


def test_after_kill_of_everything_up_comes_up_again(clean):
    lab = up()
    namespaces.kill_all([lab.plan.pins(member) for member in lab.plan.members])
    assert any("mfsmaster" in fault for fault in lab.faults())
    again = up()
    assert again.faults() == []
    assert again.run(["srun", "-n1", "hostname"], stdout=-1, text=True).stdout == "n0\n"
    again.down()
    assert traces() == clean


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_up_ended_half_way_leaves_nothing_behind_down(clean, ending):
    for delay in (0.25, 0.6, 1.2):
        command = [sys.executable, "-m", "brigade", "lab", "up", "--name", NAME, "--nodes", "2"]
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # a shell starts what it puts into the background with Ctrl-C ignored
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        time.sleep(delay)
        process.send_signal(ending)
        process.wait()
        if ending == signal.SIGKILL:
            Lab.take_down(NAME)
        assert traces() == clean


# ended while it tries on which processor namespaces can be pinned, with one of them pinned
_ENDED_IN_THE_TRIAL = """
import os, signal, sys
from brigade.lab import Lab, namespaces

class Libc:
    mount = namespaces._libc.mount

    def umount2(self, target, flags):
        namespaces._libc = libc
        os.kill(os.getpid(), int(sys.argv[2]))
        return 0

libc, namespaces._libc = namespaces._libc, Libc()
Lab.up(sys.argv[1], 1, "slow:1ms")
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_up_ended_in_its_trial_of_processors_leaves_nothing_behind_down(clean, ending):
    done = subprocess.run(
        [sys.executable, "-c", _ENDED_IN_THE_TRIAL, NAME, str(int(ending))],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        capture_output=True,
        text=True,
    )
    assert done.returncode == -ending, done.stderr
    if ending == signal.SIGKILL:
        assert any("/ns/probe/" in mount for mount in traces()["mounts"])
        assert Lab.take_down(NAME)
    assert traces() == clean


def test_from_inside_a_lab_is_neither_taken_down_nor_called_dead(clean):
    lab = up(fs="slow:1ms")
    for words in (["down"], ["status"], ["up"], ["exec", "n0", "true"]):
        done = lab.run([sys.executable, "-m", "brigade", "lab", *words], stderr=-1)
        assert done.returncode == LabError.exit_code
        assert b"outside the lab" in done.stderr
    stats = lab.run([sys.executable, "-m", "brigade", "lab", "stats", "--json"], stdout=-1)
    assert stats.returncode == 0
    assert lab.faults() == []


def test_why_a_command_cannot_start_in_a_folder_is_told(clean):
    lab = up(fs="slow:1ms")
    absent, strict = f"/tmp/{NAME}-absent", f"{lab.local}/strict"
    lab.exec("n0", ["mkdir", "-m", "700", strict], cwd="/", check=True)
    for cwd, words in ((absent, "--bind"), (strict, "a folder that this user may enter")):
        done = lab.exec("n0", ["true"], user="nobody", cwd=cwd, stderr=-1, text=True)
        assert done.returncode == 126
        assert done.stderr.startswith(f"brigade: cannot go to {cwd} on n0")
        assert words in done.stderr and ("--bind" in done.stderr) == (cwd == absent)


def test_without_root_it_says_so_whatever_is_asked(clean):
    lab = up(fs="slow:1ms")
    others = (["down"], ["status"], ["drop-caches"], ["exec", "n0", "true"], ["run", "true"])
    for words in (["up"], *others):
        command = [sys.executable, "-m", "brigade", "lab", words[0], "--name", NAME, *words[1:]]
        command = ["setpriv", "--reuid=65534", *command]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == LabError.exit_code, (words, done.stdout)
        assert done.stderr.startswith("brigade: the lab needs root"), (words, done.stderr)
    assert lab.faults() == []


def test_missing_packages_are_one_line_for_apt(clean, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("brigade.lab.debian._SBIN", ())
    with pytest.raises(LabError) as caught:
        up()
    assert (caught.value.hint or "").startswith("apt-get install -y --no-install-recommends bash")
    assert "moosefs-master" in (caught.value.hint or "")


def test_a_slurm_without_pmix_is_told_and_no_package_is_offered(clean, monkeypatch):
    nothing = {"slurm-wlm-basic-plugins": "/nowhere/mpi_pmix.so"}
    monkeypatch.setattr("brigade.lab.debian._PMIX_PLUGIN", nothing)
    with pytest.raises(LabError, match="without PMIx") as caught:
        up()
    assert "apt-get" not in (caught.value.hint or "")
