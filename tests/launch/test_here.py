"""A launcher that starts all ranks beside its command is told from one that may not: only what is
known to name no other machine counts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from brigade.launch.base import Launch
from brigade.launch.local import LocalLaunch
from brigade.launch.mpich import MpichLaunch
from brigade.launch.openmpi import OpenMpiLaunch
from brigade.launch.srun import SrunLaunch

NODE = os.uname().nodename
KINDS = {"mpirun": OpenMpiLaunch, "mpiexec": MpichLaunch}
ONE_NODE = {
    "SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NODELIST": "n3",
    "SLURMD_NODENAME": "n3",
}  # fmt: skip


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Nothing in it but a home that is empty; launchers of a prefix of their own."""
    for name in os.environ:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for folder in ("bin", "etc", "home"):
        (tmp_path / folder).mkdir()
    for name in KINDS:
        shutil.copy("/bin/true", tmp_path / "bin" / name)
    return monkeypatch


def launch_of(words: str, tmp_path: Path) -> Launch:
    name = words.split()[0]
    return KINDS[name](words.split(), str(tmp_path / "bin" / name))


def is_here(launch: Launch) -> bool:
    """It says so, and its steps and their MPI are as it says."""
    step = launch.per_node(["T"])
    assert launch.is_here == (step == ["T"]) and step[-1] == "T"
    if launch.is_here:
        assert launch.mpi_library("/x/libmpi.so.40") == "none"
        assert launch.per_node_told(["T"]) is None
    return launch.is_here


@pytest.mark.parametrize(
    "words",
    [
        "mpirun -n 4 ./a",
        "mpirun --oversubscribe --map-by core --bind-to none -x A=1 -np 4 ./a : -n 2 ./b",
        "mpirun --mca btl self,vader --mca osc ^rdma -n 4 ./a",
        f"mpirun -H localhost:8 -n 4 ./a : --host {NODE}:2,127.0.0.1 -n 1 ./b",
        "mpiexec -n 4 ./a : -n 2 ./b",
        f"mpiexec -hosts localhost:2,{NODE} -genv A 1 -n 4 ./a",
    ],
)
def test_all_ranks_start_here(words: str, tmp_path: Path) -> None:
    launch = launch_of(words, tmp_path)
    assert is_here(launch)
    launch.launched = True  # asked for
    assert not is_here(launch) and launch.mpi_library(None) == "auto"
    launch.launched, launch.everywhere = False, True
    assert not is_here(launch)


@pytest.mark.parametrize(
    "words",
    [
        "mpirun -n 4 -H n1 ./a",
        "mpirun -n 4 -H localhost:2,n1:2 ./a",
        "mpirun -n 4 ./a : -n 2 --host n1 ./b",
        "mpirun --hostfile h -n 4 ./a",
        "mpirun -machinefile h -n 4 ./a",
        "mpirun --rankfile r -n 4 ./a",
        "mpirun --map-by rankfile:file=r -n 4 ./a",
        "mpirun --map-by seq -n 4 ./a",
        "mpirun --mca orte_default_hostfile h -n 4 ./a",
        "mpirun --prtemca ras_base_verbose 1 -n 4 ./a",
        "mpirun --tune t -n 4 ./a",
        "mpirun --dvm-uri u -n 4 ./a",
        "mpiexec -f h -n 4 ./a",
        "mpiexec -hosts n1,n2 -n 4 ./a",
        "mpiexec -n 4 ./a : -host n1 -n 2 ./b",
        "mpiexec -launcher ssh -n 4 ./a",
        "mpiexec -rmk pbs -n 4 ./a",
    ],
)
def test_an_option_may_name_other_machines(words: str, tmp_path: Path) -> None:
    assert not is_here(launch_of(words, tmp_path))


@pytest.mark.parametrize(
    ("kind", "name", "here"),
    [
        ("mpirun", "OMPI_MCA_pml", True),
        ("mpirun", "PRTE_ALLOW_RUN_AS_ROOT", True),
        ("mpirun", "OMPI_MCA_orte_default_hostfile", False),
        ("mpirun", "PRTE_MCA_prte_default_hostfile", False),
        ("mpirun", "HYDRA_HOST_FILE", True),
        ("mpiexec", "HYDRA_HOST_FILE", False),
        ("mpiexec", "I_MPI_HYDRA_BOOTSTRAP", False),
        *[(k, n, False) for k in KINDS for n in ("PBS_NODEFILE", "LSB_MCPU_HOSTS", "PE_HOSTFILE")],
        *[(k, n, False) for k in KINDS for n in ("SLURM_JOB_ID", "SLURM_NODELIST", "FLUX_URI")],
    ],
)
def test_a_variable_may(
    kind: str, name: str, here: bool, tmp_path: Path, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv(name, "h")
    assert is_here(launch_of(f"{kind} -n 4 ./a", tmp_path)) is here


@pytest.mark.parametrize(
    ("file", "text", "here"),
    [
        ("etc/openmpi-default-hostfile", "# none\n\n", True),
        ("etc/openmpi-default-hostfile", "# all\nn1 slots=4\n", False),
        ("etc/prte-default-hostfile", "n1\n", False),
        ("etc/openmpi-mca-params.conf", "btl = ^openib # old\npml=ob1\n", True),
        ("etc/openmpi-mca-params.conf", "orte_default_hostfile = /etc/h\n", False),
        ("home/.prte/mca-params.conf", "plm_ssh_agent = rsh\n", False),
    ],
)
def test_a_file_of_settings_may(file: str, text: str, here: bool, tmp_path: Path) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    assert is_here(launch_of("mpirun -n 4 ./a", tmp_path)) is here
    assert is_here(launch_of("mpiexec -n 4 ./a", tmp_path))


@pytest.mark.parametrize("name", KINDS)
def test_a_sites_own_script_may(name: str, tmp_path: Path) -> None:
    (tmp_path / "bin" / name).write_text('#!/bin/sh\nexec /opt/mpi/bin/mpirun --hostfile h "$@"\n')
    assert not is_here(launch_of(f"{name} -n 4 ./a", tmp_path))


def test_a_file_of_hydras_may(tmp_path: Path) -> None:
    (tmp_path / "home/.mpiexec.hydra.conf").write_text("HYDRA_HOST_FILE=/h\n")
    assert not is_here(launch_of("mpiexec -n 4 ./a", tmp_path))


@pytest.mark.parametrize(
    ("words", "changed", "here"),
    [
        ("srun -n 4 --mpi=pmix -c 2 ./a", {}, True),
        ("srun -N 1 -n 4 ./a", {}, True),
        ("srun -N 2 -n 4 ./a", {}, False),
        ("srun -w n3 -n 4 ./a", {}, False),
        ("srun --jobid 9 ./a", {}, False),
        ("srun --uid 9 ./a", {}, False),
        ("srun -n 1 ./a : -n 1 ./b", {}, False),
        ("srun --site-image=x -n 4 ./a", {}, False),  # of a plug-in
        ("srun -n 4 ./a", {"SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "n[3-4]"}, False),
        ("srun -n 4 ./a", {"SLURMD_NODENAME": "n2"}, False),
        ("srun -n 4 ./a", {"SLURM_HET_SIZE": "2"}, False),
        ("srun -n 4 ./a", {"SLURMD_NODENAME": ""}, False),  # salloc, on a login node
    ],
)
def test_in_an_allocation_of_this_one_node(
    words: str, changed: dict, here: bool, tmp_path: Path, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("PATH", "/usr/bin:/bin")
    for name, value in {**ONE_NODE, **changed}.items():
        environment.setenv(name, value)
    assert is_here(SrunLaunch(words.split())) is here
    if not words.startswith("srun -n 4 ./a"):
        return
    for name in KINDS:
        assert is_here(launch_of(f"{name} -n 4 ./a", tmp_path)) is here


def test_srun_of_another_job_or_of_none_does_not(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("PATH", "/usr/bin:/bin")
    assert not is_here(SrunLaunch("srun -n 4 ./a".split()))
    for name, value in ONE_NODE.items():
        environment.setenv(name, value)
    launch = SrunLaunch("srun -n 4 ./a".split())
    launch.join_slurm_job("8")
    assert not is_here(launch)


def test_without_a_launcher_they_always_do() -> None:
    launch = LocalLaunch(["./a"], 4)
    launch.launched = True
    assert is_here(launch)
