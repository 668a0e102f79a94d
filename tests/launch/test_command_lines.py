"""Launcher command lines are understood as the launchers themselves understand them."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from brigade.errors import LauncherError, UsageError
from brigade.job.key import image_path
from brigade.launch import misplaced, parse
from brigade.launch.misplaced import is_launcher, refuse_script
from brigade.launch.mpich import MpichLaunch
from brigade.launch.openmpi import OpenMpiLaunch
from brigade.launch.srun import SrunLaunch
from brigade.launch.srun_options import OPTIONS

APP = ["python", "app.py", "-n", "3", "--mpi"]


@pytest.mark.parametrize(
    "options",
    [
        ["-N", "4", "-n", "32"],
        ["-N4", "-n32"],
        ["--nodes=4", "--ntasks=32"],
        ["--nodes", "4", "--ntasks", "32"],
        ["-lN4", "-n", "32", "--mpi=pmix", "--export", "ALL", "-K1", "--exclusive"],
        ["-k", "-I30", "-n32", "-uK", "--compress", "--kill-on-bad-exit"],
        ["--compress=lz4", "--propagate", "--tasks-per-node", "8", "-n", "32", "--pty"],
        ["--part", "debug", "--cpu_bind", "none", "--treewidth", "4", "--tasks", "8", "-n32"],
    ],
)
def test_srun_program_begins_after_its_options(options):
    launch = SrunLaunch(["srun", *options, *APP])
    assert launch.program == APP
    assert launch.ranks == 32
    job = launch.job(["W"])
    assert job[-len(APP) - 1 :] == ["W", *APP]
    assert SrunLaunch(job).options == launch.options
    known = {*OPTIONS.long_with_value, *OPTIONS.long_flags}
    assert {option.name for option in launch.options} <= known


@pytest.mark.parametrize(
    ("options", "ranks"),
    [
        (["-N", "1000", "--ntasks-per-node=64"], 64000),
        (["--ntasks-per-node", "8"], 32),
        (["-n", "5", "--ntasks-per-node", "8"], 5),
        (["-N", "2-4", "--ntasks-per-node=2"], None),
        ([], 32),
        (["-N", "2"], None),
    ],
)
def test_srun_has_as_many_ranks_as_it_starts_without_n(monkeypatch, options, ranks):
    monkeypatch.delenv("SLURM_NTASKS", raising=False)
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "4")
    if not options:
        monkeypatch.setenv("SLURM_NPROCS", "32")
    assert SrunLaunch(["srun", *options, "./app"]).ranks == ranks


def test_srun_options_of_the_program_are_not_srun_options():
    launch = SrunLaunch(["srun", "-N", "2", "./app", "-n", "99"])
    assert launch.ranks is None
    assert launch.program == ["./app", "-n", "99"]


def test_srun_is_asked_for_options_of_the_sites_plug_ins(tmp_path):
    srun = tmp_path / "srun"
    srun.write_text(
        """#!/bin/sh
echo asked >> "$0.log"
echo "  -n, --ntasks=ntasks         number of tasks to run"
echo "Options provided by plugins:"
echo "      --squash=[SERVER#]IMAGE[:TAG]|PATH"
echo "      --squash-readonly       mount it so that nobody writes"
"""
    )
    srun.chmod(0o755)
    plug_ins = ["--squash-readonly", "--squash", "software", "-n", "2"]
    assert SrunLaunch([str(srun), *plug_ins, *APP]).program == APP
    assert (tmp_path / "srun.log").exists()
    (tmp_path / "srun.log").unlink()
    known = ["--ntasks", "2", "--squash=software", "--time-m", "3"]
    assert SrunLaunch([str(srun), *known, *APP]).program == APP
    assert not (tmp_path / "srun.log").exists()


@pytest.mark.parametrize(
    "options",
    [
        "-n 8 --ppn 4 --depth=8 --cpu-bind depth",
        "-n 8 -ppn 4 --cpu-bind depth -d 16 --line-buffer --no-vni -o out.%r -e err.%r",
        "--envall --pmi=pmix --cpu-bind list:0:8 --gpu-bind list:0-2:3-5 --mem-bind list:0:1 -n 8",
        "-genvexcl A,B -hosts-group node[1-4] -branch-count 8 -pmi-connect lazy-cache -n 8",
        "-n 8 --of-a-later-version some-value",
        "--of-a-later-version some-value -n 8 -v --another 3 --a-third /etc/passwd",
    ],
)
def test_mpiexec_programs_begin_after_options_of_its_relatives_and_of_later_versions(options):
    for program in (["sh", "-c", "exit"], ["/only/nodes/have.it", "sh"]):
        launch = MpichLaunch(["mpiexec", *options.split(), *program], "/usr/bin/mpiexec")
        assert launch.program == program and launch.ranks == 8
        assert launch.job(["W"]) == ["mpiexec", *options.split(), "W", *program]


def test_hosts_of_a_group_are_counted():
    words = ["mpiexec", "-hosts-group", "a[1-3,07],b,c[0]", "-n", "8", "sh"]
    step = MpichLaunch(words, "/usr/bin/mpiexec").launched_per_node(["T"])
    assert step == ["mpiexec", "-hosts-group", "a[1-3,07],b,c[0]", "-ppn", "1", "-n", "6", "T"]


@pytest.mark.parametrize("flag", ["-verbose", "--unknown-flag"])
def test_a_program_behind_a_flag_is_no_value(flag):
    for program in (["sh", "ls"], ["./only-nodes", "ls"], ["only-nodes", "x", "-y"]):
        launch = MpichLaunch(["mpiexec", "-n", "2", flag, *program], "/usr/bin/mpiexec")
        assert launch.program == program
    launch = OpenMpiLaunch(["mpirun", "--tag-output", "sh", "ls"], "/usr/bin/orterun")
    assert launch.program == ["sh", "ls"]


@pytest.mark.parametrize("launch", [OpenMpiLaunch, MpichLaunch])
def test_a_program_that_the_launcher_looks_for_elsewhere_is_left_to_it(launch):
    with pytest.raises(UsageError, match="looks for ls in other folders"):
        launch(["mpirun", "-path", "/opt/bin", "-n", "2", "ls"], "/usr/bin/mpirun")
    named = launch(["mpirun", "-path", "/opt/bin", "-n", "2", "./ls"], "/usr/bin/mpirun")
    assert named.programs == [["./ls"]]


@pytest.mark.parametrize(
    "words",
    ["flux run -n 4 ./a", "/usr/bin/jsrun -n 4 ./a", "ibrun ./a", "pbsdsh ./a", "prun -n 2 ./a",
     "charmrun +p2 ./a", "blaunch ./a", "poe ./a", "oshexec ./a"],
)  # fmt: skip
def test_a_launcher_that_is_not_known_is_said_to_be(words):
    with pytest.raises(UsageError, match="a launcher that Brigade does not know"):
        parse(words.split())


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
    "words",
    [
        ["srun", "--multi-prog", "f", ":", "-n2", "b"],
        ["srun", "--multi-prog", "/missing"],
        ["srun", "--bcast", "./a"],
        ["srun", "--bcast=/tmp/a", "./a"],
        ["srun", "-n2", "--container-image=img.sqsh", "./a"],
        ["srun", "--container", "bundle", "./a"],
        ["srun", "-n2", "./a", ":", "--container-name=mine", "./b"],
    ],
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


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("HYDRA_HOST_FILE", "a:8\nb:8\n"),
        ("PBS_NODEFILE", "a\na\nb\nb\n"),
        ("PE_HOSTFILE", "a 8 all.q@a UNDEFINED\nb 8 all.q@b UNDEFINED\n"),
        ("LSB_MCPU_HOSTS", "a 8 b 8"),
    ],
)
def test_mpiexec_takes_hosts_from_the_batch_system(tmp_path, monkeypatch, variable, text):
    (tmp_path / "hosts").write_text(text)
    monkeypatch.setenv(variable, text if variable[0] == "L" else str(tmp_path / "hosts"))
    launch = MpichLaunch(["mpiexec", "-n", "16", "./a"], "/usr/bin/mpiexec.hydra")
    assert launch.per_node(["T"])[-3:] == ["-n", "2", "T"]


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
        ("nsys profile srun -N2 app", "nsys profile brigade run -- srun …"),
        ("flock /l oshrun -n 2 app", "flock /l brigade run -- oshrun …"),
        ("xvfb-run -a mpiexec app", "xvfb-run -a brigade run -- mpiexec …"),
        ("apptainer exec i.sif mpirun a", "apptainer exec i.sif brigade run -- mpirun …"),
        ("apptainer exec /s/i.sif srun a", "apptainer exec /s/i.sif brigade run -- srun …"),
        ("timeout -k 5 60 srun app", "timeout -k 5 60 brigade run -- srun …"),
        ("stdbuf -oL srun app", "stdbuf -oL brigade run -- srun …"),
        ("perf stat -- srun app", "perf stat -- brigade run -- srun …"),
        ("numactl --interleave=all srun a", "numactl --interleave=all brigade run -- srun …"),
        ("env P=/a/b srun a", "env P=/a/b brigade run -- srun …"),
        ("strace -o /tmp/out mpirun a", "strace -o /tmp/out brigade run -- mpirun …"),
        ("nice /opt/mpi/bin/mpirun a", "nice brigade run -- /opt/mpi/bin/mpirun …"),
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
    for words in (
        "python run.py --with srun",
        "timeout 60 app",
        "timeout 60 app --launcher srun",
        "apptainer exec i.sif python bench.py --launcher srun",
        "apptainer exec i.sif python3.11 bench.py srun",
        "env OMP=1 ./a mpirun",
        "env -u A ./a mpirun",
        "nice -n 5 bash job.sh mpirun",
    ):
        assert parse(words.split()).kind == "local", words


def test_what_stands_in_front_of_a_program_is_told_by_names_alone(tmp_path, monkeypatch):
    (tmp_path / "start").symlink_to("/no/mpirun")
    monkeypatch.setenv("PATH", str(tmp_path))
    asked = []
    monkeypatch.setattr(misplaced.shutil, "which", asked.append)
    misplaced.refuse_misplaced("timeout 60 start a b c".split())
    assert asked == []


def test_a_launcher_of_a_sites_own_name_is_told_by_its_file(tmp_path):
    for name, there in (
        ("mpirun", b"\x7fELF"),
        ("mpirun-5.0", b"\x7fELF"),
        ("job", b"#!/bin/sh\n"),
    ):
        (tmp_path / name).write_bytes(there)
        (tmp_path / name).chmod(0o755)
    for name, there in (("start", "mpirun"), ("mpiexec.site", "mpirun"), ("mpirun.sh", "job")):
        (tmp_path / name).symlink_to(there)
    for name in ("mpirun", "mpirun-5.0", "mpiexec.site", "start"):
        assert is_launcher(str(tmp_path / name)), name
    for name in ("job", "mpirun.sh", "mpirun_absent"):
        assert not is_launcher(str(tmp_path / name)), name
    for name in (
        "srun",
        "oshrun",
        "shmemrun",
        "mpiexec.hydra",
        "mpirun_openmpi",
        "mpirun.openmpi",
        "mpirun-absent",
    ):
        assert is_launcher(name), name


@pytest.mark.skipif(not shutil.which("oshrun"), reason="needs Open MPI's oshrun")
def test_oshrun_is_open_mpis_mpirun():
    launch = parse("oshrun -n 3 ./a x".split())
    assert (
        isinstance(launch, OpenMpiLaunch) and launch.ranks == 3 and launch.program == ["./a", "x"]
    )


@pytest.mark.parametrize(
    ("launch", "option"), [(OpenMpiLaunch, "--app"), (MpichLaunch, "-configfile")]
)
def test_contexts_of_a_file_are_those_of_the_command_line(tmp_path, launch, option):
    file = tmp_path / "contexts"
    file.write_text("# coupled\n-n 2 ./a x\n\n  -np 3 -wdir /w ./b 'y'\n")
    words = ["mpirun", "-host", "n0,n1", option, str(file)]
    from_file = launch(words, "/usr/bin/x")
    written = "mpirun -host n0,n1 -n 2 ./a x : -np 3 -wdir /w ./b 'y'".split()
    assert from_file.programs == [["./a", "x"], ["./b", "'y'"]] and from_file.ranks == 5
    assert from_file.job(["W"]) == launch(written, "/usr/bin/x").job(["W"])
    assert from_file.trial(2, ["W"]) == launch(written, "/usr/bin/x").trial(2, ["W"])
    assert from_file.job([]) == words
    with pytest.raises(UsageError, match="missing: No such file"):
        launch(["mpirun", option, str(tmp_path / "missing")], "/usr/bin/x")
    file.write_text("# nothing\n")
    with pytest.raises(UsageError, match="no line names a program"):
        launch(words, "/usr/bin/x")


def test_own_steps_go_to_the_hosts_of_every_context():
    words = "x -host n0:4 -n 1 ./a : -host n1,n0:2,n2 -n 2 ./b : -n 1 ./c".split()
    step = OpenMpiLaunch(words, "/usr/bin/x").per_node(["T"])
    assert step[:3] == ["x", "-host", "n0:4,n1,n2"] and step.count("-host") == 1
    step = MpichLaunch(words, "/usr/bin/x").per_node(["T"])
    assert step == "x -host n0:4,n1,n2 -ppn 1 -n 3 T".split()
    words = "x -n 1 ./a : -H n1 -n 2 ./b".split()
    assert OpenMpiLaunch(words, "/usr/bin/x").per_node(["T"])[:3] == ["x", "-H", "n1"]


@pytest.mark.parametrize(
    ("launch", "folders"),
    [
        (SrunLaunch("srun -D /a -n 2 app.py".split()), ["/a"]),
        (SrunLaunch("srun --chdir=/b app.py : -n 2 app.py".split()), ["/b"]),
        (OpenMpiLaunch("mpirun -wdir /a app.py : -wd /c app.py".split(), "/x"), ["/a", "/c"]),
        (MpichLaunch("mpiexec -gwdir /d -n 2 app.py".split(), "/x"), ["/d"]),
        (SrunLaunch("srun -n 2 app.py -D /a".split()), []),
    ],
)
def test_ranks_that_start_in_another_folder_have_another_image(launch, folders):
    assert launch.folders == folders
    here = image_path(launch.programs, [])
    assert (image_path(launch.programs, [], folders=launch.folders) == here) == (not folders)


@pytest.mark.parametrize("option", ["-s", "--preload-binary"])
def test_mpirun_that_starts_a_copy_of_the_program_is_left_alone(option):
    with pytest.raises(UsageError, match="starts the copy"):
        OpenMpiLaunch(["mpirun", "-n", "2", "./a", ":", option, "./b"], "/usr/bin/x")


def test_orterun_forgets_what_is_said_of_one_context_beside_a_file(tmp_path):
    (tmp_path / "contexts").write_text("-n 2 ./a\n-n 3 ./b\n")
    words = "mpirun -x A=1 --mca b c --hostfile h -n 9 --map-by node --app".split()
    launch = OpenMpiLaunch([*words, str(tmp_path / "contexts")], "/usr/bin/orterun")
    assert launch.job(["W"]) == ("mpirun --mca b c --map-by node -n 2 W ./a : -n 3 W ./b".split())
    assert launch.ranks == 5


def test_mpirun_trial_of_many_contexts_starts_each_program_once():
    words = " : ".join(f"-n 4 ./a{i % 2} {i}" for i in range(20)).split()
    trial = OpenMpiLaunch(["mpirun", *words], "/usr/bin/x").trial(2, ["W"])
    assert trial[-11:] == "-n 1 W ./a0 0 : -n 1 W ./a1 1".split()


def test_mpiexec_takes_hosts_from_a_list_or_a_file_of_the_same_option(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("a\nb\nc\n")
    for value, nodes in ((str(hosts), "3"), ("a,b", "2")):
        launch = MpichLaunch(["mpiexec", "-machine", value, "./a"], "/usr/bin/x")
        assert launch.per_node(["T"])[-2:] == [nodes, "T"]


@pytest.mark.parametrize("value", [["A=1"], ["A", "1"]])
def test_mpiexec_takes_a_variable_as_one_word_or_two(value):
    words = ["mpiexec", "-genv", *value, "-n", "2", "-env", *value, "./a", "-env", "A", "b"]
    launch = MpichLaunch(words, "/usr/bin/x")
    assert launch.programs == [["./a", "-env", "A", "b"]] and launch.ranks == 2
    assert launch.per_node(["T"])[: 2 + len(value)] == ["mpiexec", "-genv", *value]


@pytest.mark.parametrize(
    ("head", "before"),
    [
        ("#!/bin/bash\ncd /tmp\n  srun -N2 ./a\n", "{}"),
        ("#! /usr/bin/env sh\nA=1 exec timeout 5m mpirun.openmpi -n 2 ./a", "{} more"),
        ("mpiexec -n 2 ./a\n", "bash -eu {} more"),
        ("mpiexec -n 2 ./a\n", "bash -euo pipefail -O extglob {} more"),
        ("mpiexec -n 2 ./a\n", "sh {}"),
    ],
)
def test_a_script_that_has_its_own_launcher_is_not_tried_as_a_whole(tmp_path, head, before):
    script = tmp_path / "run.sh"
    script.write_text(head)
    with pytest.raises(UsageError, match="^run.sh starts (srun|mpi\\w+.*) itself"):
        refuse_script(before.format(script).split())


def test_a_command_of_a_shell_counts_like_its_script():
    with pytest.raises(UsageError, match="bash -c starts srun itself"):
        refuse_script(["bash", "-lc", "srun ./a", "x"])
    with pytest.raises(UsageError, match="bash -c starts srun itself"):
        refuse_script(["bash", "-o", "pipefail", "-c", "srun ./a"])


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("#!/usr/bin/python3\nsrun = 1\n", "{}"),
        ("#!/bin/sh\n# srun ./a\necho srun ./a\nbrigade run -- srun ./a\nsrun_it x\n", "{}"),
        ("srun ./a\n", "python3 {}"),
        ("srun ./a\n", "./app {}"),
        ("", "bash -e"),
        ("", "/missing {}"),
    ],
)
def test_what_only_names_a_launcher_is_started(tmp_path, text, before):
    script = tmp_path / "run.sh"
    script.write_text(text)
    refuse_script(before.format(script).split())
