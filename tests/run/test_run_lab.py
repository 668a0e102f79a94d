"""`brigade run` on a cluster: four nodes, a shared file system, real launchers, an exact budget.

The budget is a count, not a time: what the file system's clients asked of their server for a whole
job, from before `brigade run` starts until after it has ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from subprocess import PIPE

import mpich_launcher
import pytest
from cluster import Cluster, brought_up
from lab_needs import missing

NAME = "testrun"
BUDGET = 200  # requests of a whole job, whatever its width
#: Ranks of a node exchange large messages, and read each other's memory as MPI libraries do (CMA).
NEIGHBOURS = """\
import ctypes, json, os, sys
from mpi4py import MPI
node = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)
other, size = (node.rank + 1) % node.size, 4 << 20
mine, got = bytearray([node.rank + 1]) * size, bytearray(size)
node.Sendrecv(mine, other, recvbuf=got, source=(node.rank - 1) % node.size)
exchanged = got == bytearray([(node.rank - 1) % node.size + 1]) * size
word = ctypes.create_string_buffer(b"rank %d" % node.rank)
places = node.allgather((os.getpid(), ctypes.addressof(word), len(word)))
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
pid, base, length = places[other]
copy = ctypes.create_string_buffer(length)
libc = ctypes.CDLL(None, use_errno=True)
n = libc.process_vm_readv(pid, ctypes.byref(Part(ctypes.addressof(copy), length)), 1,
                          ctypes.byref(Part(base, length)), 1, 0)
read = copy.value.decode() if n == length else os.strerror(ctypes.get_errno())
node.barrier()
spaces = len(set(node.allgather(os.stat("/proc/self/ns/user").st_ino)))
own = os.stat("/proc/self/ns/user").st_ino != int(sys.argv[1])
sys.stdout.write(json.dumps([MPI.COMM_WORLD.rank, node.size, exchanged, read == "rank %d" % other,
                             spaces, own]) + "\\n")
"""


#: Static: reads as many files as there are, looks for as many that there are not.
READS = """\
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void)
{
    char name[200], text[100];
    int sum = 0, gone = 0;
    struct stat st;
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "%s/lib/data/%d", getenv("SW"), i);
        int fd = open(name, O_RDONLY);
        sum += fd >= 0 && read(fd, text, sizeof text) > 0 ? atoi(text) : 0;
        close(fd);
        snprintf(name, sizeof name, "%s/lib/data/no-%d", getenv("SW"), i);
        gone += stat(name, &st) != 0;
    }
    printf("[%d, %d]\\n", sum, gone);
    return 0;
}
"""


pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing() or "the lab can be brought up"),
    pytest.mark.timeout(400),
]


@pytest.fixture(scope="module")
def cluster():
    with brought_up(NAME) as cluster:
        _, _, first = cluster.job("srun", "--mpi=pmix", "-N4", "-n4")
        assert first["unstaged"] is None and first["image"]["trial"]
        yield cluster


def test_a_job_stays_in_its_budget_whatever_its_width(cluster: Cluster) -> None:
    plain, direct, _ = cluster.job("srun", "--mpi=pmix", "-N4", "-n4", brigade=None)
    counts, read = {}, {}
    for ranks in (4, 16):
        answers, asked, report = cluster.job("srun", "--mpi=pmix", "-N4", f"-n{ranks}")
        assert report["unstaged"] is None and not report["image"]["trial"]
        assert report["misses"]["total"] == 0, report["misses"]
        assert [answer[0] for answer in answers] == list(range(ranks))
        assert {answer[1] for answer in answers} == {ranks}
        assert {str(answer[2:]) for answer in answers} == {str(plain[0][2:])}
        counts[ranks], read[ranks] = asked.requests, asked.bytes_read / report["image"]["bytes"]
    assert max(counts.values()) <= BUDGET, counts
    assert max(counts.values()) <= 1.1 * min(counts.values()), counts
    assert max(read.values()) <= 1.1, read
    assert direct.requests > 5 * max(counts.values())


@pytest.mark.parametrize(
    "launcher",
    [
        ("mpirun", "-n", "8"),
        ("mpiexec.mpich", "-n", "8"),
        ("srun", "-n", "8", "-N", "2", "--mpi=none"),
    ],
    ids=lambda launcher: launcher[0],
)
def test_every_launcher_runs_the_same_job_staged(cluster: Cluster, launcher) -> None:
    mpich_launcher.need_own(*launcher)
    answers, _, report = cluster.job(*launcher, mpi=False)
    plain, _, _ = cluster.job(*launcher, mpi=False, brigade=None)
    assert answers == plain and len(answers) == 8
    assert report["unstaged"] is None
    assert report["staging"]["nodes"] > 1
    assert report["startup"]["ranks"] == 8


#: Tells the variables that a shell may lose.
ODD = """\
import json, numpy, os, sys
odd = sorted(item for item in os.environ.items() if not item[0].isidentifier())
sys.stdout.write(json.dumps([os.uname().nodename, odd, "BRIGADE_KEPT" in os.environ]) + "\\n")
"""


@pytest.mark.parametrize(
    "launcher",
    [
        ("mpiexec.mpich", "-n", "4"),
        ("srun", "-n", "4", "-N", "2", "--mpi=none"),
        ("srun", "-n", "4", "-N", "2", "--mpi=none", "--export=NONE"),
    ],
    ids=["mpiexec", "srun", "srun-none"],
)
def test_ranks_have_the_variables_that_a_launcher_passes_on(cluster: Cluster, launcher) -> None:
    variables = {"BASH_FUNC_m%%": '() {  echo "it\'s"\n}', "a.b": "1"}
    python = f"{cluster.venv}/bin/python"
    plain, _, _ = cluster.job(*launcher, program=(python, "-c", ODD), brigade=None, **variables)
    for _ in range(2):
        answers, _, report = cluster.job(*launcher, program=(python, "-c", ODD), **variables)
        assert answers == plain and len(answers) == 4
        assert report["unstaged"] is None


@pytest.mark.parametrize("way", ["command", "multi-prog"])
def test_a_program_in_the_steps_folder_is_found_as_srun_finds_it(cluster: Cluster, way) -> None:
    folder = f"{cluster.lab.shared}/says"
    says = f"#!/bin/sh\necho '[\"'$0'\"]'\n{cluster.venv}/bin/python -c 'import rich.console'\n"
    write = (
        f"mkdir -p {folder}; cd {folder}; echo '* says.out' > says.conf\n"
        f"cat > says.out <<'END'\n{says}END\nchmod +x says.out"
    )
    cluster.lab.exec("n0", ["/bin/sh", "-c", write], check=True)
    words = ("--multi-prog", f"{folder}/says.conf") if way == "multi-prog" else ("says.out",)
    launcher = ("srun", "-N2", "-n4", "-D", folder, "--mpi=none")
    plain, _, _ = cluster.job(*launcher, program=words, brigade=None)
    assert plain == [["says.out"]] * 4
    for _ in range(2):
        answers, _, report = cluster.job(*launcher, program=words)
        assert answers == plain and report["unstaged"] is None


@pytest.mark.parametrize(
    "view", ["namespace,interpose,python", pytest.param("namespace", marks=pytest.mark.all)]
)
def test_a_job_in_a_namespace_asks_once_a_node_not_once_a_rank(cluster: Cluster, view: str) -> None:
    plain, direct, _ = cluster.job("srun", "--mpi=pmix", "-N4", "-n4", brigade=None)
    counts = {}
    for ranks in (4, 8):
        answers, asked, report = cluster.job(
            "srun", "--mpi=pmix", "-N4", f"-n{ranks}", brigade=("--view", view)
        )
        assert report["namespace"]["without"] == {} and report["misses"]["total"] == 0, report
        assert (report["namespace"]["nodes"], report["namespace"]["ranks"]) == (4, ranks)
        assert {str(answer[2:]) for answer in answers} == {str(plain[0][2:])}
        counts[ranks] = asked.requests
    assert direct.requests > 3 * max(counts.values()), (direct.requests, counts)
    if view != "namespace":  # there, each rank lists folders and reads the user's own files
        assert max(counts.values()) <= 1.1 * min(counts.values()), counts


@pytest.mark.parametrize(
    "launcher",
    [("srun", "--mpi=pmix", "-N2", "-n4"), ("mpirun", "-n", "8", "--map-by", "node")],
    ids=lambda launcher: launcher[0],
)
def test_ranks_of_a_node_share_memory_in_their_namespace(cluster: Cluster, launcher) -> None:
    app = cluster.app.replace("app.py", "neighbours.py")
    cluster.lab.exec("n0", ["/bin/sh", "-c", f"cat > {app} <<'END'\n{NEIGHBOURS}END\n"], check=True)
    outside = str(os.stat("/proc/self/ns/user").st_ino)
    answers, _, report = cluster.job(
        *launcher,
        brigade=("--view", "namespace"),
        program=(f"{cluster.venv}/bin/python", app, outside),
    )
    assert report["namespace"]["without"] == {}
    assert len(answers) == report["namespace"]["ranks"]
    assert all(answer[1:] == [2, True, True, 1, True] for answer in answers), answers


#: What the image says of a folder and a file, and what the kernel says of the same.
DEVICES = """\
import json, os, sys
folder = os.path.dirname(sys.argv[1])
said, asked = os.stat(folder), os.fstat(os.open(folder, os.O_RDONLY))
walked = sum(1 for _ in os.fwalk(folder))
print(json.dumps([os.uname().nodename, said.st_dev, os.path.samestat(said, asked), walked]))
"""


def test_a_file_has_one_device_on_each_node_whatever_that_calls_it(cluster: Cluster) -> None:
    app = cluster.app.replace("app.py", "devices.py")
    cluster.lab.exec("n0", ["/bin/sh", "-c", f"cat > {app} <<'END'\n{DEVICES}END\n"], check=True)
    program = (f"{cluster.venv}/bin/python", app, f"{cluster.venv}/bin/python")
    plain, _, _ = cluster.job("srun", "-N4", "-n4", "--mpi=none", brigade=None, program=program)
    answers, _, report = cluster.job("srun", "-N4", "-n4", "--mpi=none", program=program)
    assert report["unstaged"] is None and report["startup"]["ranks"] == 4
    assert len({device for _, device, _, _ in plain}) == 4
    assert answers == plain and all(same for _, _, same, _ in plain)


#: Prints what Slurm tells a rank, but for numbers that are others each time; a line is short enough
#: to arrive as one.
TOLD = """\
import json, os
told = {k[6:]: v for k, v in os.environ.items() if k[:6] == "SLURM_"}
some = ("PROCID", "JOB_NAME", "CLUSTER_NAME", "JOB_NUM_NODES", "JOB_CPUS_PER_NODE", "SUBMIT_DIR",
        "SUBMIT_HOST", "JOB_PARTITION", "NTASKS", "NNODES", "TASKS_PER_NODE", "NODELIST")
of_a_step = {"DISTRIBUTION", "JOB_CPUS_PER_NODE_PACK_GROUP_0"}
print(json.dumps([*(told.get(name) for name in some), len(told.keys() - of_a_step)]), flush=True)
"""


def test_outside_an_allocation_a_job_is_told_what_it_is_without_brigade(cluster: Cluster) -> None:
    app = cluster.app.replace("app.py", "told.py")
    cluster.lab.exec("n0", ["/bin/sh", "-c", f"cat > {app} <<'END'\n{TOLD}END\n"], check=True)
    program = (f"{cluster.venv}/bin/python", app)
    launcher = ("srun", "-N2", "-n4", "-t", "5")
    plain, _, _ = cluster.job(*launcher, program=program, brigade=None)
    staged, _, report = cluster.job(*launcher, program=program)
    assert staged == plain and report["unstaged"] is None
    assert [rank[:2] for rank in plain] == [[str(number), "python"] for number in range(4)]
    assert None not in plain[0]


def test_a_static_program_is_served_whatever_its_width(cluster: Cluster) -> None:
    software, built = f"{cluster.lab.shared}/sw", cluster.reports / "reads"
    compile_it = ["cc", "-x", "c", "-", "-static", "-o", str(built)]
    subprocess.run(compile_it, input=READS, text=True, check=True)
    script = f"mkdir -p {software}/bin {software}/lib/data && cp {built} {software}/bin && cd "
    script += f"{software}/lib/data && for i in $(seq 0 199); do echo $i > $i; done"
    cluster.lab.exec("n0", ["/bin/sh", "-c", script], check=True)
    program = (f"{software}/bin/reads",)
    first, _, report = cluster.job("srun", "-N4", "-n4", program=program, SW=software)
    assert report["image"]["trial"], report
    counts = {}
    for ranks in (4, 16):
        launcher = ("srun", "-N4", f"-n{ranks}")
        answers, asked, report = cluster.job(*launcher, program=program, SW=software)
        assert answers == first * (ranks // 4) == [[19900, 200]] * ranks
        assert report["views"][0] == "namespace" and report["namespace"]["ranks"] == ranks
        counts[ranks] = asked.requests
    _, direct, _ = cluster.job(*launcher, program=program, SW=software, brigade=None)
    assert max(counts.values()) <= BUDGET, counts
    assert direct.requests > 5 * max(counts.values()), (direct.requests, counts)


def test_doctor_asks_every_node_and_tells_like_answers_once(cluster: Cluster) -> None:
    words = [sys.executable, "-m", "brigade", "doctor", "--json", "--", "srun", "-N4"]
    done = cluster.lab.run(words, cwd="/", stdout=PIPE, stderr=PIPE, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [group["hosts"] for group in told["nodes"]] == [sorted(cluster.lab.nodes)]
    assert "slurm" in told["launchers"]["srun"]


def test_nothing_is_left_in_any_nodes_memory(cluster: Cluster) -> None:
    cluster.job("srun", "--mpi=pmix", "-N4", "-n4")
    for node in cluster.lab.nodes:
        shm = cluster.lab.host_path(node, "/dev/shm")
        assert [path.name for path in shm.glob("brigade-*/[0-9a-f]*")] == []


def test_a_full_node_starts_the_job_unstaged_and_is_named(cluster: Cluster) -> None:
    cluster.lab.exec("n2", ["mount", "-o", "remount,size=20M", "/dev/shm"], check=True)
    try:
        answers, _, report = cluster.job("srun", "--mpi=pmix", "-N4", "-n4")
        assert len(answers) == 4
        assert "n2" in report["unstaged"] and "free" in report["unstaged"]
    finally:
        cluster.lab.exec("n2", ["mount", "-o", "remount,size=50%", "/dev/shm"], check=True)
