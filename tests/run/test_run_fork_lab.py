"""`brigade run --fork` on a cluster, under Slurm and PMIx: ranks of each node come from that node's
template, and what Slurm does to a job (suspend, cancel) it does to them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE

import pytest
from lab_needs import missing
from processes import until

from brigade.lab import Lab

SOURCE = """\\
#include <ctime>
#include <mpi.h>
#include <string>
#include <unistd.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, sum = 0;
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    std::string line = "[" + std::to_string(rank) + ", " + std::to_string(sum) + ", \\"" + host +
                       "\\", " + std::to_string(getppid()) + "]\\n";
    if (write(1, line.data(), line.size()) < 0) return 2;
    std::string how = argc > 1 ? argv[1] : "";
    while (how == "burns" && clock() < 1.5 * CLOCKS_PER_SEC) ;
    while (how == "burns" && access(argv[2], F_OK)) usleep(100000);
    MPI_Finalize();
    return how == "fails" && rank == 5 ? 7 : 0;
}
"""

BEATS = """\
import os, signal, sys, time
import decimal, email, json
mine = sys.argv[1] + "/" + os.environ["SLURM_PROCID"]
def ends(number, frame):
    with open(mine + ".ended", "w") as file:
        file.write(signal.Signals(number).name)
    sys.exit(9)
signal.signal(signal.SIGTERM, ends)
while True:
    with open(mine, "a") as file:
        file.write(".")
    time.sleep(0.05)
"""

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing() or "the lab can be brought up"),
    pytest.mark.skipif(not shutil.which("mpicxx.openmpi"), reason="needs package libopenmpi-dev"),
    pytest.mark.timeout(400),
]


@pytest.fixture(scope="module")
def lab():
    lab = Lab.up(name="testfork", nodes=2)
    yield lab
    lab.down()


def test_ranks_of_a_cpp_code_come_from_one_process_a_node(lab: Lab) -> None:
    folder = Path("/var/tmp") / f"brigade-testfork-{os.getpid()}"  # that nodes share
    folder.mkdir()
    try:
        (folder / "app.cc").write_text(SOURCE)
        subprocess.run(["mpicxx.openmpi", folder / "app.cc", "-o", folder / "app"], check=True)
        app = f"{lab.shared}/app"
        lab.exec("n0", ["cp", str(folder / "app"), app], check=True)
        front = [sys.executable, "-m", "brigade", "run", "-q", "--fork", "--json"]
        job = [*front, str(folder / "told.json"), "--", "srun", "--mpi=pmix", "-N2", "-n8"]
        stays = ["sh", "-c", 'A=1 "$@" || exit $?', "wrapper"]
        becomes = ["env", "A=1", "nice", "-n", "1"]

        def run(*arguments: str, wrapper: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
            return lab.run(
                [*job, *wrapper, app, *arguments],
                cwd="/", env={"BRIGADE_CACHE": f"{lab.shared}/images"},
                stdout=PIPE, stderr=PIPE, text=True, timeout=180,
            )  # fmt: skip

        for arguments, status, wrapper in (
            ((), 0, ()), ((), 0, ()), (("fails",), 7, ()),
            ((), 0, stays), (("fails",), 7, stays), ((), 0, becomes),
        ):  # fmt: skip
            done = run(*arguments, wrapper=wrapper)
            assert done.returncode == status, done.stdout + done.stderr
            said = sorted(json.loads(line) for line in done.stdout.splitlines() if line[:1] == "[")
            assert [(rank, total) for rank, total, _, _ in said] == [(r, 28) for r in range(8)]
            assert len({(host, parent) for _, _, host, parent in said}) == 2
            told = json.loads((folder / "told.json").read_text())["fork"]
            assert (told["ranks"], told["plain"]) == (8, []), told
        go_on = f"{lab.shared}/go-on"
        with ThreadPoolExecutor() as pool:
            burning = pool.submit(run, "burns", go_on)
            try:
                until(lambda: seconds_accounted(lab) >= 8)  # of 12: it has whole ones
            finally:
                lab.exec("n0", ["touch", go_on], check=True)
            assert burning.result().returncode == 0
    finally:
        shutil.rmtree(folder)


def test_forked_ranks_ask_the_file_system_no_more_whatever_their_number(lab: Lab) -> None:
    """No more than others do that are not forked, behind a wrapper, too. Python is found by links
    that lie there, as in a virtual environment. A client asks again for a folder's name after a
    second, so a few look-ups more or less say nothing."""
    folder = f"{lab.shared}/linked"
    report = Path("/var/tmp") / f"brigade-testfork-{os.getpid()}.json"
    front = [sys.executable, "-m", "brigade", "run", "-q", "--json", str(report)]
    lab.exec("n0", ["mkdir", "-p", f"{folder}/bin"], check=True)
    lab.exec("n0", ["ln", "-s", "/usr/bin/python3", f"{folder}/bin/python3"], check=True)
    lab.exec("n0", ["ln", "-s", "python3", f"{folder}/bin/python"], check=True)
    words = "import decimal, email.message, json, xml.dom.minidom; print(2)"
    lab.exec("n0", ["sh", "-c", f"echo '{words}' > {folder}/app.py"], check=True)
    lab.exec("n0", ["sh", "-c", f"echo 'exec \"$@\"' > {folder}/wrapper"], check=True)
    plain, wrapped = (), ("sh", f"{folder}/wrapper")
    counts = {}
    try:
        # the first of each has the trial
        for ranks, fork, wrapper in (
            (4, True, plain), (4, True, plain), (12, True, plain), (4, True, plain),
            (4, True, wrapped), (12, True, wrapped), (4, True, wrapped), (4, False, plain),
        ):  # fmt: skip
            lab.drop_caches()
            lab.reset()
            job = ["srun", "-N2", f"-n{ranks}", *wrapper]
            job += [f"{folder}/bin/python", f"{folder}/app.py"]
            done = lab.run(
                [*front, *["--fork"] * fork, "--", *job],
                cwd="/", env={"BRIGADE_CACHE": f"{lab.shared}/images"},
                stdout=PIPE, stderr=PIPE, text=True, timeout=180,
            )  # fmt: skip
            assert (done.returncode, done.stdout.split()) == (0, ["2"] * ranks), done.stderr
            told = json.loads(report.read_text())["fork"]
            assert not fork or (told["ranks"], told["plain"]) == (ranks, []), told
            kinds = lab.stats().total.kinds
            asked = sum(kinds.get(kind, 0) for kind in ("lookup", "readlink", "open"))
            counts[ranks, fork, wrapper] = asked
    finally:
        report.unlink(missing_ok=True)
    least = counts[4, False, plain]
    assert 0 < least and all(abs(count - least) < 12 for count in counts.values()), counts


def test_a_job_is_suspended_resumed_and_cancelled(lab: Lab) -> None:
    """All four ranks stand still while Slurm has suspended the job, go on, and end by the signal of
    `scancel`, which each of them hears once and handles; no process is left of them."""

    def slurm(*command: str) -> str:
        return lab.run([*command], cwd="/", stdout=PIPE, text=True, check=True).stdout.strip()

    def beats() -> list[int]:
        return [file.stat().st_size for file in sorted(folder.glob("[0-3]"))]

    def processes() -> list[str]:
        return [str(p) for p in Path("/proc").glob("[0-9]*/cmdline") if named(p, str(folder))]

    folder = Path("/var/tmp") / f"brigade-beats-{os.getpid()}"  # that nodes share
    folder.mkdir()
    try:
        (folder / "app.py").write_text(BEATS)
        front = [sys.executable, "-m", "brigade", "run", "-q", "--fork", "--json"]
        job = [*front, str(folder / "told.json"), "--", "srun", "-N2", "-n4", sys.executable]
        whole = [*job, str(folder / "app.py"), str(folder)]
        with ThreadPoolExecutor() as pool:
            running = pool.submit(
                lab.run, whole, cwd="/", env={"BRIGADE_CACHE": f"{lab.shared}/images"},
                stdout=PIPE, stderr=PIPE, text=True, timeout=180,
            )  # fmt: skip
            until(lambda: [n > 3 for n in beats()] == [True] * 4 or running.done())
            (number,) = set(slurm("squeue", "--noheader", "--format=%A").split())
            slurm("scontrol", "suspend", number)
            until(lambda: slurm("squeue", "--noheader", "--format=%T") == "SUSPENDED")
            still = beats()
            time.sleep(1)
            assert beats() == still
            slurm("scontrol", "resume", number)
            until(lambda: [now > then for now, then in zip(beats(), still)] == [True] * 4)
            for file in folder.glob("*.ended"):  # of the trial
                file.unlink()
            slurm("scancel", number)
            done = running.result()
        assert done.returncode == 9, done.stdout + done.stderr
        ended = [file.read_text() for file in sorted(folder.glob("*.ended"))]
        assert ended == ["SIGTERM"] * 4, done.stderr
        told = json.loads((folder / "told.json").read_text())["fork"]
        assert told["plain"] == [] and told["ranks"] > 0, told
        until(lambda: not processes())
    finally:
        lab.run(["scancel", "--user=root"], cwd="/")
        shutil.rmtree(folder)


def named(command: Path, text: str) -> bool:
    try:
        return text.encode() in command.read_bytes()
    except OSError:
        return False  # it has ended


def seconds_accounted(lab: Lab) -> int:
    """Processor time of the steps that run, as Slurm has it."""

    def said(*command: str) -> list[str]:
        return lab.run([*command], stdout=PIPE, text=True).stdout.split()

    steps = said("squeue", "--steps", "--noheader", "--format=%i")
    used = [said("sstat", "-n", "-P", "-j", step, "--format=TRESUsageInTot") for step in steps]
    times = re.findall(r"cpu=(\d+):(\d+):(\d+)", str(used))
    return sum(int(h) * 3600 + int(m) * 60 + int(s) for h, m, s in times)
