"""Ways into a cluster: job scripts with several steps, with and without `brigade stage`.

Each job script runs under sbatch in a lab of four nodes. Where one step must wait for another it
waits for a file, never for a time.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE

import mpich_launcher
import pytest
from lab_needs import missing

from brigade.lab import Lab
from brigade.lab.slurm import has_switches

NAME = "testways"
APP = """\
import os, sys, time
import shelf.first
if "wait" in sys.argv:
    open(sys.argv[2] + ".started." + os.environ["SLURM_PROCID"], "w").close()
    until = time.monotonic() + 60
    while not os.path.exists(sys.argv[2]) and time.monotonic() < until:
        time.sleep(0.05)
import shelf.second
sys.stdout.write("rank on " + os.uname().nodename + " " + shelf.second.__file__ + "\\n")
"""
HEAD = """\
set -u
cd /tmp
brigade() {{ {python} -m brigade "$@"; }}
app="{python} {shared}/app.py"
standing() {{
    srun --overlap -N4 -n4 sh -c 'ls -d /dev/shm/brigade-*/*/jobs/* | sed "s/^/kept /"'
}}
"""


pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing() or "the lab can be brought up"),
    pytest.mark.timeout(300),
]


class Cluster:
    """A lab with a program on its shared file system, and job scripts in it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        write = (
            f"cd {lab.shared}; mkdir -p shelf images; touch shelf/__init__.py shelf/first.py; "
            f"head -c 300000 /dev/urandom | base64 | sed 's/^/# /' > shelf/second.py; "
            f"cat > app.py <<'END'\n{APP}END\n"
        )
        lab.exec("n0", ["/bin/sh", "-c", write], check=True)

    def batch(self, script: str, *options: str, **variables: str) -> str:
        """Runs a job script under sbatch; returns what it printed."""
        shared = self.lab.shared
        for name in ("job.out", "job.code"):
            self.file(name).unlink(missing_ok=True)
        body = HEAD.format(python=sys.executable, shared=shared) + script
        text = f"#!/bin/bash\n(\n{body})\necho $? > $S/job.part; mv $S/job.part $S/job.code\n"
        self.file("job.sh").write_text(text)
        words = ["sbatch", "-Q", "-N4", "--overcommit", "-o", f"{shared}/job.out", *options]
        self.lab.run(
            [*words, f"{shared}/job.sh"],
            env={"BRIGADE_CACHE": f"{shared}/images", "S": shared, **variables},
            cwd="/", check=True, timeout=60,
        )  # fmt: skip
        self.wait_for(lambda: self.file("job.code").exists())
        self.wait_for(lambda: not self.asked("squeue", "-h"))
        out = self.file("job.out").read_text()
        assert self.file("job.code").read_text() == "0\n", out
        return out

    def asked(self, *command: str) -> str:
        return self.lab.run([*command], cwd="/", stdout=PIPE, text=True, timeout=60).stdout

    def wait_for(self, done: Callable[[], bool]) -> None:
        until = time.monotonic() + 150
        while not done():
            assert time.monotonic() < until, self.asked("squeue") + self.file("job.out").read_text()
            time.sleep(0.05)

    def report(self, name: str) -> dict:
        return json.loads(self.file(name).read_text())

    def file(self, name: str) -> Path:
        return self.lab.host_path("n0", f"{self.lab.shared}/{name}")

    def left(self) -> list[str]:
        """What lies in the nodes' memory and should not."""
        return [
            f"{node}: {path.name}"
            for node in self.lab.nodes
            for pattern in ("brigade-*/*", "brigade-*.*")
            for path in self.lab.host_path(node, "/dev/shm").glob(pattern)
            if path.name != "lock"
        ]


def missed(report: dict) -> list[str]:
    """Files of the program that ranks asked the shared file system for."""
    paths = [miss["path"] for miss in report["misses"]["paths"]]
    return [path for path in paths if "shelf" in path or path.endswith("app.py")]


@pytest.fixture(scope="module")
def cluster():
    lab = Lab.up(name=NAME, nodes=4)
    try:
        yield Cluster(lab)
    finally:
        lab.down()


def test_steps_of_a_script_find_what_was_staged_at_its_top(cluster: Cluster) -> None:
    out = cluster.batch(
        "brigade stage -q -- srun -N4 -n4 $app || exit 1\n"
        "brigade run -q --json $S/one.json -- srun -N4 -n8 $app || exit 2\n"
        "brigade run -q --json $S/two.json -- srun -N2 -n2 $app || exit 3\n"
        "echo before; standing\n"
        "brigade unstage -q || exit 4\n"
        "brigade run -q --json $S/three.json -- srun -N4 -n4 $app || exit 5\n"
    )
    assert out.count("rank on ") == 8 + 2 + 4, out
    for name, nodes in (("one", 4), ("two", 2)):
        staging = cluster.report(f"{name}.json")["staging"]
        assert staging["transport"] == "standing" and staging["nodes"] == nodes
        assert staging["read_bytes"] == 0 and staging["already"] == nodes
        assert missed(cluster.report(f"{name}.json")) == []
    kept = [line for line in out.splitlines() if line.startswith("kept ")]
    assert len(kept) == 4 and all("/jobs/standing-slurm-" in line for line in kept)
    alone = cluster.report("three.json")["staging"]
    assert alone["transport"] == "mpi" and alone["read_bytes"] > 0
    assert cluster.left() == []


def test_on_the_one_node_of_an_allocation_no_step_of_ours_needs_slurm(cluster: Cluster) -> None:
    out = cluster.batch(
        "brigade run -q --json $S/one.json -- srun -n4 $app || exit 1\n"
        "brigade run -q --fork --json $S/disk.json -- srun -n4 $PYTHON -c 'import json' || exit 2\n"
        "brigade run -q --transport mpi --json $S/asked.json -- srun -n4 $app || exit 3\n",
        "-N1",
        PYTHON=sys.executable,
    )
    assert out.count("rank on ") == 8, out
    one, disk, asked = (cluster.report(f"{name}.json") for name in ("one", "disk", "asked"))
    assert one["staging"]["transport"] == disk["staging"]["transport"] == "alone"
    assert asked["staging"]["transport"] == "mpi"
    assert one["startup"]["ranks"] == disk["fork"]["ranks"] == 4
    assert disk["staging"]["stays_on_disk"] and disk["misses"]["total"] == 0, disk
    assert missed(one) == missed(asked) == [] and cluster.left() == []


@pytest.mark.parametrize("ahead", [False, True], ids=["each for itself", "staged ahead"])
def test_two_steps_at_once_on_the_same_nodes_leave_each_other_alone(
    cluster: Cluster, ahead: bool
) -> None:
    """The second starts and ends while the first waits; then the first loads what it has left."""
    go = f"go{ahead}"
    out = cluster.batch(
        ("brigade stage -q -- srun -N4 -n4 $app || exit 1\n" if ahead else "")
        + f"brigade run -q --json $S/slow.json -- srun --overlap -N4 -n4 $app wait $S/{go} &\n"
        f"for i in $(seq 600); do [ $(ls $S/{go}.started.* 2>/dev/null | wc -l) = 4 ] && break; "
        "sleep 0.1; done\n"
        "brigade run -q --json $S/quick.json -- srun --overlap -N4 -n4 $app || exit 2\n"
        f"echo between; standing; touch $S/{go}\n"
        "wait %1 || exit 3\n"
        "brigade unstage -q\n"
    )
    assert out.count("rank on ") == 8, out
    kept = [line for line in out.splitlines() if line.startswith("kept ")]
    assert len(kept) == (8 if ahead else 4), out
    for name in ("slow", "quick"):
        report = cluster.report(f"{name}.json")
        assert report["unstaged"] is None and missed(report) == []
    assert cluster.left() == []


def test_the_ring_follows_slurms_topology_or_a_file(cluster: Cluster) -> None:
    """The lab's leaf switches have two nodes each, as they come; the file deals them in turn."""
    cluster.file("dealt.conf").write_text("SwitchName=a Nodes=n[0,2]\nSwitchName=b Nodes=n[1,3]\n")
    run = "brigade run -q --json $S/{0}.json {1} -- srun -N4 -n4 $app || exit {2}\n"
    cluster.batch(
        run.format("slurm", "", 1)
        + run.format("file", "--topology $S/dealt.conf", 2)
        + run.format("wrong", "--topology $S/job.sh", 3)
    )
    told = {name: cluster.report(f"{name}.json") for name in ("slurm", "file", "wrong")}
    assert [missed(report) for report in told.values()] == [[], [], []]
    found = {name: report["staging"]["topology"] for name, report in told.items()}
    if has_switches():
        assert found["slurm"] == {"from": "slurm", "crossings": 2, "crossings_before": 2}
    else:
        assert found["slurm"]["from"] is None
    assert found["file"] == {"from": "file", "crossings": 2, "crossings_before": 4}
    assert found["wrong"]["from"] is None and "line 2 " in found["wrong"]["warning"]
    assert cluster.left() == []


@pytest.fixture
def no_mpi(cluster: Cluster):
    """Nodes on which no MPI library can be loaded."""
    known = cluster.asked("/sbin/ldconfig", "-p")
    found = re.findall(r"=> (.*/libmpi(?:ch)?\.so.*)", known)
    libraries = sorted({os.path.realpath(path) for path in found})
    assert libraries, "there is an MPI to hide"
    for node in cluster.lab.nodes:
        for library in libraries:
            cluster.lab.exec(node, ["mount", "--bind", "/dev/null", library], check=True)
    yield
    for node in cluster.lab.nodes:
        cluster.lab.exec(node, ["umount", *libraries], check=True)


def test_where_no_mpi_can_be_loaded_sbcast_carries_the_image(cluster: Cluster, no_mpi) -> None:
    out = cluster.batch(
        "brigade run -q --json $S/none.json -- srun -N4 -n8 --mpi=pmix $app || exit 1\n"
        "echo between; ls -A /dev/shm\n"
        "brigade run -q --json $S/mpi.json --transport mpi -- srun -N4 -n4 $app || exit 2\n"
    )
    assert out.count("rank on ") == 8 + 4, out
    report = cluster.report("none.json")
    staging = report["staging"]
    assert staging["transport"] == "sbcast" and "no MPI library" in staging["transport_why"]
    assert staging["nodes"] == 4 and staging["read_bytes"] == report["image"]["bytes"]
    assert report["startup"]["ranks"] == 8 and missed(report) == []
    assert "land" not in out, "the program that staged has gone"
    assert "no MPI library" in cluster.report("mpi.json")["unstaged"]
    assert cluster.left() == []


def test_sbcast_stages_for_some_or_all_nodes_and_for_several_steps(cluster: Cluster) -> None:
    """It serves all nodes of the allocation: none may be left with an image nobody wanted."""
    cluster.batch(
        "brigade run -q --json $S/some.json --transport sbcast -- srun -N2 -n2 $app || exit 1\n"
        "srun -N4 -n4 sh -c 'ls -d /dev/shm/brigade-*/*.* /dev/shm/brigade-*/?????*' && exit 9\n"
        "brigade stage --json --transport sbcast -- srun -N4 -n4 $app > $S/stage.json || exit 2\n"
        "brigade run -q --json $S/step.json -- srun -N4 -n4 $app || exit 3\n"
        "brigade stage --json --transport sbcast -- srun -N4 -n4 $app > $S/again.json || exit 4\n"
        "brigade unstage -q || exit 5\n"
        "brigade run -q --json $S/free.json -- srun --mpi=none -N4 -n4 $app || exit 6\n"
    )
    assert cluster.report("some.json")["staging"]["transport"] == "sbcast"
    assert cluster.report("stage.json")["transport"] == "sbcast"
    assert cluster.report("step.json")["staging"]["transport"] == "standing"
    assert cluster.report("again.json")["transport"] == "standing"
    assert cluster.report("free.json")["staging"]["transport"] == "sbcast", "not an image a node"
    for name in ("some", "step", "free"):
        assert missed(cluster.report(f"{name}.json")) == []
    assert cluster.left() == []


@pytest.mark.all
def test_an_sbcast_that_refuses_the_image_leaves_nothing_of_the_program(cluster: Cluster) -> None:
    cluster.batch(
        "mkdir -p $S/bin; printf '%s\\n' '#!/bin/sh' "
        "'case $* in *.brg*) echo no such luck >&2; exit 1;; esac; exec /usr/bin/sbcast \"$@\"' "
        "> $S/bin/sbcast; chmod +x $S/bin/sbcast; export PATH=$S/bin:$PATH\n"
        "brigade run -q --json $S/refused.json --transport sbcast -- srun -N4 -n4 $app || exit 1\n"
    )
    assert "no such luck" in cluster.report("refused.json")["unstaged"]
    assert cluster.left() == []


@pytest.mark.all
def test_a_signal_while_sbcast_carries_the_image_leaves_nothing(cluster: Cluster) -> None:
    """Here sbcast waits for ever; the program that was carried before takes all away."""
    cluster.batch("brigade run -q -- srun -N4 -n4 $app || exit 1\n")  # makes the image
    wait = (
        "#!/bin/sh\ncase $* in *.brg*) : > $S/carrying; sleep 100;; esac\nexec /usr/bin/sbcast $@\n"
    )
    sbcast = cluster.file("slow/sbcast")
    sbcast.parent.mkdir()
    sbcast.write_text(f"#!/bin/sh\n{wait}\nexec /usr/bin/sbcast $@\n")
    sbcast.chmod(0o755)
    shared = cluster.lab.shared
    words = [sys.executable, "-m", "brigade", "run", "-q", "--transport", "sbcast", "--"]
    words += ["srun", "-N4", "-n4", "--overcommit", sys.executable, f"{shared}/app.py"]
    env = {"BRIGADE_CACHE": f"{shared}/images", "S": shared}
    env["PATH"] = f"{shared}/slow:{os.environ['PATH']}"
    with cluster.lab.popen("n0", words, cwd="/tmp", env=env, stderr=PIPE, text=True) as job:
        cluster.wait_for(cluster.file("carrying").exists)
        assert len(cluster.left()) == 8, "a program and a folder on each node"
        job.send_signal(signal.SIGTERM)
        _, said = job.communicate(timeout=60)
    assert job.returncode == -signal.SIGTERM and "stopped by SIGTERM" in said
    assert cluster.left() == []
    cluster.wait_for(lambda: not cluster.asked("squeue", "-h"))


@pytest.mark.all
def test_a_full_node_under_sbcast_is_named_and_nothing_is_left_on_any(cluster: Cluster) -> None:
    cluster.lab.exec("n2", ["mount", "-o", "remount,size=3M", "/dev/shm"], check=True)
    try:
        cluster.batch(
            "brigade run -q --json $S/full.json --transport sbcast -- srun -N4 -n4 $app || exit 1\n"
        )
    finally:
        cluster.lab.exec("n2", ["mount", "-o", "remount,size=50%", "/dev/shm"], check=True)
    assert "n2" in cluster.report("full.json")["unstaged"]
    assert cluster.left() == []


def test_a_script_that_forgot_to_unstage_is_cleaned_up_after_it_is_over(cluster: Cluster) -> None:
    cluster.batch("brigade stage -q -- srun -N4 -n4 $app; sleep 0\n")
    assert len(cluster.left()) == 4
    command = [sys.executable, "-m", "brigade", "clean", "--json", "--", "srun", "-N4"]
    env = {"BRIGADE_CACHE": f"{cluster.lab.shared}/images"}
    done = cluster.lab.run(command, env=env, stdout=PIPE, text=True, timeout=100, cwd="/")
    found = json.loads(done.stdout)["found"]
    assert len(found) == 4 and all(one["removed"] for one in found), found
    assert cluster.left() == []


def test_from_outside_an_allocation_it_is_named_by_its_number(cluster: Cluster) -> None:
    granted = cluster.lab.run(
        ["salloc", "--no-shell", "-N4", "--overcommit"], cwd="/", stderr=PIPE, text=True, timeout=60
    ).stderr
    number = re.findall(r"Granted job allocation (\d+)", granted)[0]
    app = [
        "srun",
        f"--jobid={number}",
        "-N4",
        "-n4",
        sys.executable,
        f"{cluster.lab.shared}/app.py",
    ]

    def brigade(*words: str) -> str:
        return cluster.lab.run(
            [sys.executable, "-m", "brigade", *words], cwd="/tmp", stdout=PIPE, text=True,
            env={"BRIGADE_CACHE": f"{cluster.lab.shared}/images"}, timeout=100, check=True,
        ).stdout  # fmt: skip

    report = f"{cluster.lab.shared}/number.json"
    assert json.loads(brigade("stage", "--json", "--", *app))["allocation"] == f"slurm-{number}"
    assert brigade("run", "-q", "--json", report, "--", *app).count("rank on ") == 4
    assert cluster.report("number.json")["staging"]["transport"] == "standing"
    assert brigade("unstage") == "nothing stands here\n", "of this host's own"
    assert "taken off 4 nodes" in brigade("unstage", "--all") and cluster.left() == []
    brigade("stage", "-q", "--", *app)
    cluster.asked("scancel", number)
    cluster.wait_for(lambda: not cluster.asked("squeue", "-h"))
    assert "its job is over" in brigade("unstage", "--all") and len(cluster.left()) == 4
    assert brigade("unstage", "--all") == "nothing stands here\n"
    assert brigade("clean", "--", "srun", "-N4").count("removed") == 4 and cluster.left() == []


@pytest.mark.parametrize(
    "launcher",
    [("mpirun", "-n", "4"), pytest.param(("mpiexec.mpich", "-n", "4"), marks=pytest.mark.all)],
)
def test_without_slurm_it_stands_for_the_host_that_staged_it(cluster: Cluster, launcher) -> None:
    mpich_launcher.need_own(*launcher)
    app = [*launcher, sys.executable, f"{cluster.lab.shared}/app.py"]
    report = f"{cluster.lab.shared}/host.json"
    told = {}
    for words in (
        ["stage", "--json", "--", *app],
        ["run", "-q", "--json", report, "--", *app],
        ["unstage", "--json"],
    ):
        done = cluster.lab.run(
            [sys.executable, "-m", "brigade", *words], cwd="/tmp", stdout=PIPE, text=True,
            env={"BRIGADE_CACHE": f"{cluster.lab.shared}/images"}, timeout=100, check=True,
        )  # fmt: skip
        told[words[0]] = done.stdout
    assert json.loads(told["stage"])["allocation"] == "n0"
    assert sorted(json.loads(told["stage"])["nodes"]) == cluster.lab.nodes
    assert told["run"].count("rank on ") == 4
    staging = cluster.report("host.json")["staging"]
    assert staging["transport"] == "standing" and staging["nodes"] == 4
    assert len(json.loads(told["unstage"])["unstaged"][0]["nodes"]) == 4
    assert cluster.left() == []


def test_stage_with_srun_outside_an_allocation_is_refused(cluster: Cluster) -> None:
    command = [sys.executable, "-m", "brigade", "stage", "--", "srun", "-N4", "true"]
    done = cluster.lab.run(command, stdout=PIPE, stderr=PIPE, text=True, timeout=100, cwd="/")
    assert done.returncode == 2 and "needs an allocation" in done.stderr
