"""Jobs of several programs on a cluster: each of them is in the image, and no rank asks for its
files, whatever way the launcher is told of them."""

from __future__ import annotations

import re
from subprocess import PIPE

import mpich_launcher
import pytest
from cluster import Cluster, brought_up
from lab_needs import missing

from brigade.launch.srun_options import OPTIONS

NAME = "testmpmd"
BUDGET = 200  # requests of a whole job
SAYS = "sys.stdout.write(json.dumps([{name!r}, os.environ.get('SLURM_PROCID', ''), *sys.argv[1:]]))"
OCEAN = "import json, os, sys, numpy.testing, rich.console\n" + SAYS.format(name="ocean")
ATMOSPHERE = "import json, os, sys, numpy.random, click.testing\n" + SAYS.format(name="atmosphere")

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing() or "the lab can be brought up"),
    pytest.mark.timeout(400),
]


@pytest.fixture(scope="module")
def cluster():
    with brought_up(NAME) as cluster:
        for name, text in (("ocean", OCEAN), ("atmosphere", ATMOSPHERE)):
            _write(cluster, f"{name}.py", text + "\nprint()\n")
        yield cluster


def _write(cluster: Cluster, name: str, text: str) -> str:
    path = f"{cluster.lab.shared}/project/{name}"
    cluster.lab.exec("n0", ["/bin/sh", "-c", f"cat > {path} <<'END'\n{text}END\n"], check=True)
    return path


def _programs(cluster: Cluster) -> tuple[tuple[str, ...], tuple[str, ...]]:
    python, folder = f"{cluster.venv}/bin/python", f"{cluster.lab.shared}/project"
    return (python, f"{folder}/atmosphere.py", "grid"), (python, f"{folder}/ocean.py", "deep")


def _ways(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """One job, told in each way: 4 ranks of one program on 2 nodes, 2 of another."""
    air, sea = _programs(cluster)
    lines = f"0-3 {' '.join(air[:2])} 'grid 1' %o\n* {' '.join(sea[:2])} \\\ndeep\n"
    contexts = f"-n 4 {' '.join(air)}\n-n 2 {' '.join(sea)}\n"
    files = [_write(cluster, *one) for one in (("coupled", lines), ("contexts", contexts))]
    return {
        "multi-prog": ("srun", "-N3", "-n6", "--multi-prog", files[0]),
        "components": ("srun", "-N2", "-n4", *air, ":", "-N1", "-n2", *sea),
        "mpirun": ("mpirun", "-n", "4", *air, ":", "-n", "2", *sea),
        "app": ("mpirun", "--app", files[1]),
        "configfile": ("mpiexec.mpich", "-configfile", files[1]),
    }


@pytest.mark.parametrize("way", ["multi-prog", "components", "mpirun", "app", "configfile"])
def test_every_program_of_a_job_is_served(cluster: Cluster, way: str) -> None:
    words = _ways(cluster)[way]
    mpich_launcher.need_own(words[0])
    inside = ("salloc", "-Q", "-N3") if way == "components" else ()
    plain, direct, _ = cluster.job(program=words, inside=inside, brigade=None)
    assert [answer[0] for answer in plain] == ["atmosphere"] * 4 + ["ocean"] * 2
    for _ in range(2):  # with a trial, where no other way has made the image; and with it
        answers, asked, report = cluster.job(program=words, inside=inside)
        assert answers == plain and report["unstaged"] is None
        assert report["startup"]["ranks"] == 6 and report["misses"]["total"] == 0, report["misses"]
        if not report["image"]["trial"]:
            break
    assert not report["image"]["trial"]
    assert asked.requests < BUDGET and direct.requests > 5 * asked.requests


@pytest.mark.parametrize("salloc", [True, False], ids=["inside", "outside"])
def test_a_heterogeneous_job_is_staged_on_all_its_components(cluster: Cluster, salloc) -> None:
    air, sea = _programs(cluster)
    if salloc:
        words, inside = (
            ("srun", "--mpi=none", "--het-group=0,1", *air),
            ("salloc", "-Q", "-N1", ":", "-N2"),
        )
    else:
        words, inside = (
            ("srun", "--mpi=none", "-N1", "-n3", *air, ":", "--mpi=none", "-N2", "-n2", *sea),
            (),
        )
    plain, _, _ = cluster.job(program=words, inside=inside, brigade=None)
    answers, _, report = cluster.job(program=words, inside=inside)
    assert answers == plain and len(plain) == (3 if salloc else 5)
    assert report["unstaged"] is None and report["misses"]["total"] == 0
    assert report["staging"]["nodes"] == 3, report["staging"]


def test_programs_of_a_job_are_forked_from_what_they_have_in_common(cluster: Cluster) -> None:
    words = _ways(cluster)["multi-prog"]
    plain, _, _ = cluster.job(program=words, brigade=None)
    answers, _, report = cluster.job(program=words, brigade=("--fork",))
    assert answers == plain
    assert report["fork"]["ranks"] == 6 and report["fork"]["modules"] > 50, report["fork"]


#: Whether an option has a value in the next word, where srun's help shows it otherwise.
NOT_AS_SHOWN = {"bcast": False, "container": True}


def test_every_option_that_srun_names_is_known(cluster: Cluster) -> None:
    said = cluster.lab.run(["srun", "--help"], stdout=PIPE, text=True, check=True).stdout
    found = re.findall(r"^ +(?:-(\w), )?--([\w-]+)(?![\w-]| >=)(=)?", said, re.M)
    assert len(found) > 80
    short = {**OPTIONS.short, **OPTIONS.short_optional, **OPTIONS.short_flags}
    for letter, name, shown in found:
        with_value = NOT_AS_SHOWN.get(name, shown == "=")
        assert (name in OPTIONS.long_with_value) == with_value, name
        assert with_value or name in OPTIONS.long_flags, name
        if letter:
            assert short[letter] == name and (letter in OPTIONS.short) == with_value
