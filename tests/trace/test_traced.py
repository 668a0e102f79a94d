"""A job of the user's, traced: it behaves as without us, and leaves a trace."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from brigade.errors import LauncherError, TrialError
from brigade.job.traced import run_traced
from brigade.launch import parse
from brigade.trace import native

#: Runs run_traced in a process of its own, so that streams and signals are those of a command.
DRIVER = """
import json, sys
from brigade import interrupt
from brigade.errors import BrigadeError
from brigade.job.traced import run_traced
from brigade.launch import parse
options = json.loads(sys.argv[2])
ranks = options.pop("ranks", 1)
try:
    with interrupt.listening():
        ran = run_traced(
            parse(sys.argv[3:], ranks), sys.argv[1], progress=lambda s, n: None, **options
        )
except BrigadeError as error:
    sys.exit(f"{type(error).__name__}: {error.message}")
sys.exit(ran.status if ran.status >= 0 else 128 - ran.status)
"""


def drive(folder: Path, *words: str, options: str = "{}", **more) -> subprocess.Popen:
    command = [sys.executable, "-c", DRIVER, str(folder / "trace"), options, *words]
    return subprocess.Popen(command, cwd=folder, text=True, **more)


def test_streams_and_status_are_the_programs_own(tmp_path: Path) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = drive(tmp_path, "sh", "-c", "cat; echo err >&2; exit 7", **pipes)
    assert child.communicate("through\n", timeout=60) == ("through\n", "err\n")
    assert child.returncode == 7
    trace = native.load(tmp_path / "trace")
    assert trace.processes[0].argv[0] == "sh"
    assert (trace.processes[0].rank, trace.processes[0].status) == (0, 7)
    assert trace.mechanism.name == "seccomp" and not trace.mechanism.lost


def test_every_rank_has_its_own_trace(tmp_path: Path) -> None:
    assert drive(tmp_path, "cat", "/etc/hostname", options='{"ranks": 3}').wait(60) == 0
    trace = native.load(tmp_path / "trace")
    assert sorted(p.rank for p in trace.processes if p.exe.endswith("/cat")) == [0, 1, 2]
    assert len(list((tmp_path / "trace").glob("*.trace"))) == 3
    assert len(trace.mountinfo) == 1


def test_a_traced_program_has_the_variables_that_a_shell_would_lose(tmp_path: Path) -> None:
    odd = {"BASH_FUNC_m%%": "() {  echo 'hi'\n}", "a.b": "1"}
    env = {**os.environ, **odd, "PWD": "/of another's folder"}
    plain = subprocess.run(["env", "-0"], env=env, stdout=subprocess.PIPE, text=True)
    child = drive(tmp_path, "env", "-0", env=env, stdout=subprocess.PIPE)
    assert sorted(child.communicate(timeout=60)[0].split("\0")) == sorted(plain.stdout.split("\0"))


@pytest.mark.all
def test_the_ranks_of_mpirun_have_their_numbers(tmp_path: Path) -> None:
    if not shutil.which("mpirun.openmpi") or not shutil.which("mpicc.openmpi"):
        pytest.skip("needs Open MPI")
    source = """
    #include <mpi.h>
    #include <unistd.h>
    int main(int argc, char **argv)
    {
        int rank;
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        access(rank ? "/rank/one" : "/rank/zero", F_OK);
        MPI_Finalize();
        return 0;
    }
    """
    (tmp_path / "m.c").write_text(source)
    subprocess.run(["mpicc.openmpi", "-o", "m", "m.c"], cwd=tmp_path, check=True)
    words = ["mpirun.openmpi", "-n", "2", "--oversubscribe", "./m"]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    child = drive(tmp_path, *words, options='{"ranks": null}', env={**os.environ, **root})
    assert child.wait(100) == 0
    trace = native.load(tmp_path / "trace")
    asked = sorted((p.rank, e.path) for p, e in trace.events() if e.path.startswith("/rank/"))
    assert asked == [(0, "/rank/zero"), (1, "/rank/one")]
    assert trace.mechanism.name == "seccomp" and not trace.mechanism.lost


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_us_is_the_jobs(tmp_path: Path, signum: int) -> None:
    script = "trap 'echo told; exit 5' TERM HUP; echo up; while :; do sleep 0.05; done"
    child = drive(tmp_path, "sh", "-c", script, stdout=subprocess.PIPE)
    assert child.stdout.readline() == "up\n"
    child.send_signal(signum)
    assert child.communicate(timeout=60)[0] == "told\n"
    assert child.returncode == 5


def test_a_job_whose_start_is_over_is_ended(tmp_path: Path) -> None:
    assert drive(tmp_path, "sleep", "1000", options='{"quiet_s": 0.3}').wait(60) == 128 + 15
    trace = native.load(tmp_path / "trace")
    assert trace.processes[0].status == -signal.SIGTERM


def test_what_a_program_says_and_reads_does_not_keep_it_from_being_quiet(tmp_path: Path) -> None:
    script = "import os\nwhile True: os.write(w, b'x'); os.read(r, 1); time.sleep(0.05)"
    words = [sys.executable, "-c", f"import time, os\nr, w = os.pipe()\n{script}"]
    assert drive(tmp_path, *words, options='{"quiet_s": 1, "limit_s": 100}').wait(90) == 128 + 15
    writes = [e for _, e in native.load(tmp_path / "trace").events() if e.call == "write"]
    assert 5 < len(writes) < 1000


def test_a_program_that_still_looks_something_up_is_not_quiet(tmp_path: Path) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do sleep 0.2; [ -e /no/such ]; done; exit 7"
    assert drive(tmp_path, "sh", "-c", script, options='{"quiet_s": 1.5}').wait(90) == 7


def test_a_job_that_is_never_quiet_is_ended_at_the_limit(tmp_path: Path) -> None:
    script = "while :; do cat /etc/hostname >/dev/null; done"
    began = time.monotonic()
    assert drive(tmp_path, "sh", "-c", script, options='{"limit_s": 0.5}').wait(60) == 128 + 15
    assert time.monotonic() - began > 0.5


def test_nothing_runs_on_when_we_fail(tmp_path: Path) -> None:
    def fails(seconds: float, size: int) -> None:
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            raise RuntimeError("the terminal is gone")

    launch = parse(["sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 1000"], 1)
    with pytest.raises(RuntimeError):
        run_traced(launch, str(tmp_path / "t"), progress=fails, limit_s=900)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_what_cannot_be_started_is_one_clear_error(tmp_path: Path) -> None:
    launch = parse(["srun", "true"], None)
    path, os.environ["PATH"] = os.environ["PATH"], "/nowhere"
    try:
        with pytest.raises(LauncherError, match="srun"):
            run_traced(launch, str(tmp_path / "t"), progress=lambda s, n: None)
    finally:
        os.environ["PATH"] = path


def test_a_job_that_left_no_trace_is_one_clear_error(tmp_path: Path) -> None:
    """The wrapper is not on that node: the program ran plainly."""
    launch = parse(["true"], 1)
    launch.job = lambda prefix: ["true"]  # type: ignore[method-assign]
    with pytest.raises(TrialError, match="no program of the job left a trace"):
        run_traced(launch, str(tmp_path / "t"), progress=lambda s, n: None)
