"""Launcher command lines are understood as the launchers themselves understand them."""

from __future__ import annotations

import os
import subprocess

import pytest

from brigade.errors import LauncherError, UsageError
from brigade.launch import parse
from brigade.launch.mpich import MpichLaunch
from brigade.launch.openmpi import OpenMpiLaunch
from brigade.launch.srun import SrunLaunch

APP = ["python", "app.py", "-n", "3", "--mpi"]


@pytest.mark.parametrize(
    "options",
    [
        ["-N", "4", "-n", "32"],
        ["-N4", "-n32"],
        ["--nodes=4", "--ntasks=32"],
        ["--nodes", "4", "--ntasks", "32"],
        ["-lN4", "-n", "32", "--mpi=pmix", "--export", "ALL", "-K1", "--exclusive"],
    ],
)
def test_srun_program_begins_after_its_options(options):
    launch = SrunLaunch(["srun", *options, *APP])
    assert launch.program == APP
    assert launch.ranks == 32
    job = launch.job(["W"])
    assert job[-len(APP) - 1 :] == ["W", *APP]
    assert SrunLaunch(job).ranks == 32


def test_srun_options_of_the_program_are_not_srun_options():
    launch = SrunLaunch(["srun", "-N", "2", "./app", "-n", "99"])
    assert launch.ranks is None
    assert launch.program == ["./app", "-n", "99"]


def test_srun_trial_is_small_and_does_not_touch_the_users_files():
    launch = SrunLaunch(
        [
            "srun",
            "-N",
            "4",
            "-n",
            "32",
            "-o",
            "out.%j",
            "-p",
            "debug",
            "-w",
            "n[0-3]",
            "-c",
            "2",
            "./app",
        ]
    )
    trial = launch.trial(2, ["W"])
    assert trial[-2:] == ["W", "./app"]
    assert "out.%j" not in trial and "n[0-3]" not in trial
    assert trial[trial.index("--ntasks") + 1] == "2"
    assert trial[trial.index("--nodes") + 1] == "1"
    assert ["-p", "debug"] == trial[trial.index("-p") : trial.index("-p") + 2]


def test_srun_per_node_step_is_on_the_jobs_own_nodes_and_takes_no_processors_away():
    words = ["srun", "-N", "2", "-w", "n2,n3", "-r", "1", "-c", "4", "./app"]
    step = SrunLaunch(words).per_node(["T"])
    assert step[step.index("-w") + 1] == "n2,n3" and step[step.index("-r") + 1] == "1"
    assert "-c" not in step and "--overlap" in step


def test_srun_per_node_step_has_one_task_on_each_node_of_the_job():
    step = SrunLaunch(["srun", "-N", "4", "-n", "32", "--mpi=pmix", "./app"]).per_node(["T"])
    assert step[-1] == "T" and "./app" not in step
    assert "--mpi=pmix" in step
    assert step[step.index("--nodes") + 1] == step[step.index("--ntasks") + 1] == "4"


@pytest.mark.parametrize(
    "words", [["srun", "-n1", "a", ":", "-n2", "b"], ["srun", "--multi-prog", "f"]]
)
def test_srun_jobs_that_cannot_be_staged_are_refused(words):
    with pytest.raises(UsageError):
        SrunLaunch(words)


def test_mpirun_mpmd_gets_the_prefix_in_each_context():
    launch = OpenMpiLaunch(
        ["mpirun", "--mca", "btl", "tcp,self", "-n", "2", "./a", "x", ":", "-np", "3", "./b"],
        "/usr/bin/orterun",
    )
    assert launch.ranks == 5
    assert launch.job(["W"]) == [
        "mpirun", "--mca", "btl", "tcp,self", "-n", "2", "W", "./a", "x",
        ":", "-np", "3", "W", "./b",
    ]  # fmt: skip
    assert launch.trial(2, ["W"])[-10:] == ["-n", "1", "W", "./a", "x", ":", "-n", "1", "W", "./b"]


def test_mpirun_per_node_keeps_hosts_and_drops_counts():
    step = OpenMpiLaunch(
        ["mpirun", "-H", "a:8,b:8", "-n", "16", "--map-by", "node", "-x", "FOO", "./a"],
        "/usr/bin/orterun",
    ).per_node(["T"])
    assert ["-H", "a:8,b:8"] == step[1:3]
    assert "-n" not in step and "node" not in step
    assert step[step.index("--map-by") + 1] == "ppr:1:node"


def test_mpiexec_counts_hosts_once(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("a:8\nb:8  # second\n\na:8\n")
    step = MpichLaunch(
        ["mpiexec", "-f", str(hosts), "-n", "16", "./a"], "/usr/bin/mpiexec.hydra"
    ).per_node(["T"])
    assert step[-3:] == ["-n", "2", "T"]


def test_missing_launcher_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(LauncherError, match="srun"):
        parse(["srun", "-n", "2", "./a"])


def test_local_launch_starts_every_rank_and_returns_the_first_failure():
    launch = parse(["sh", "-c", 'echo $BRIGADE_RANK; [ "$BRIGADE_RANK" != 2 ] || exit 7'], ranks=4)
    result = subprocess.run(
        launch.job([]), capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert sorted(result.stdout.split()) == ["0", "1", "2", "3"]
    assert result.returncode == 7


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("timeout 60 srun -N2 app", "timeout 60 brigade run -- srun …"),
        ("env A=1 mpirun.openmpi app", "env A=1 brigade run -- mpirun.openmpi …"),
        ("sbatch job.sh", "sbatch … brigade run -- srun …, or before `srun` in the job's script"),
        (
            "salloc -N2 srun app",
            "salloc … brigade run -- srun …, or before `srun` in the job's script",
        ),
    ],
)
def test_what_must_stand_before_brigade_is_refused_with_the_right_order(words, hint):
    with pytest.raises(UsageError) as caught:
        parse(words.split())
    assert caught.value.hint == hint


def test_a_program_with_a_launchers_name_among_its_arguments_is_a_program():
    assert parse("python run.py --with srun".split()).kind == "local"
    assert parse("timeout 60 app".split()).kind == "local"
