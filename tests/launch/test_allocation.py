"""An allocation of our own: steps have its variables, and it is given back whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import until

from brigade.errors import LauncherError, UsageError
from brigade.launch.srun import SrunLaunch

# Grants at once, or after WAIT; notes its options, and how it ended.
SALLOC = """\
#!/bin/sh
trap 'echo withdrawn >> "$0.log"; exit 1' TERM
echo "salloc: Pending job allocation 77" >&2
[ -z "$WAIT" ] || { echo pending >> "$0.log"; sleep "$WAIT" & wait; }
[ -z "$REFUSE" ] || { echo "salloc: error: Invalid partition" >&2; exit 1; }
echo "salloc: Granted job allocation 77" >&2
[ -z "$SALLOC_QOS" ] || echo "SALLOC_QOS" >> "$0.log"
while [ "$1" != /bin/sh ]; do echo "$1" >> "$0.log"; shift; done
SLURM_JOB_ID=77 SLURM_NNODES=3 SLURM_DISTRIBUTION=block OTHER=1 "$@"
echo "ended $?" >> "$0.log"
"""


@pytest.fixture
def salloc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for it; returns the file of what it noted."""
    for name, text in (("salloc", SALLOC), ("scancel", '#!/bin/sh\necho "$@" >> "$0.log"\n')):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in [name for name in os.environ if name.startswith("SLURM")]:
        monkeypatch.delenv(name)
    return tmp_path / "salloc.log"


def test_steps_have_the_variables_of_an_allocation_which_ends_with_the_session(
    salloc: Path,
) -> None:
    before = dict(os.environ)
    launch = SrunLaunch(["srun", "-N3", "--mpi=none", "./a"])
    with launch.session():
        assert os.environ["SLURM_JOB_ID"] == "77" and launch.nodes == 3
        assert os.environ.keys() - before.keys() == {"SLURM_JOB_ID", "SLURM_NNODES"}
        assert launch.job(["W"]) == "srun --job-name a -N3 --mpi=none W ./a".split()
        assert salloc.read_text().split() == ["--job-name", "a", "-N3"]
    assert dict(os.environ) == before
    assert salloc.read_text().split()[3:] == ["ended", "1"]  # what `read` is at the end of input
    assert launch.job(["W"]) == "srun -N3 --mpi=none W ./a".split()


def test_components_are_asked_for_together_under_the_name_that_the_user_gave(salloc: Path) -> None:
    with SrunLaunch("srun -J mine -N1 ./a : -N2 -pdebug ./b".split()).session():
        assert salloc.read_text().split() == "-J mine -N1 : -N2 -pdebug".split()


def test_what_srun_takes_from_its_environment_is_asked_for(
    salloc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """salloc reads variables of its own, which srun does not."""
    for name, value in {
        "ACCOUNT": "proj", "PARTITION": "gpu", "TIMELIMIT": "5", "NTASKS": "4", "NPROCS": "9",
        "OVERCOMMIT": "1", "EXCLUSIVE": "user", "QOS": "", "REQ_SWITCH": "2", "WAIT4SWITCH": "10",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"SLURM_{name}", value)
    monkeypatch.setenv("SALLOC_QOS", "high")
    with SrunLaunch("srun -p debug -n2 ./a".split()).session():
        asked = set(salloc.read_text().split())
    assert asked == {
        "--job-name", "a", "-p", "debug", "-n2", "--account=proj", "--time=5", "--overcommit",
        "--exclusive=user", "--switches=2@10",
    }  # fmt: skip


def test_a_name_for_the_job_in_the_environment_is_its_name(
    salloc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_NAME", "mine")
    launch = SrunLaunch(["srun", "./a"])
    with launch.session():
        assert salloc.read_text().split() == ["--job-name=mine"]
        assert launch.job([]) == ["srun", "./a"]


def test_what_steps_of_our_own_say_comes_to_us(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = SrunLaunch(["srun", "-o", "mine", "./a"])
    assert not [word for word in launch.trial(2, []) if "put=" in word or "error" in word]
    monkeypatch.setenv("SLURM_STDOUTMODE", "out.%j")
    monkeypatch.setenv("SLURM_STDERRMODE", "err.%j")
    for step in (launch.trial(2, []), launch.launched_per_node(["tool"])):
        assert {"--output=all", "--error=all"} <= set(step) and "mine" not in step
    assert launch.job([]) == ["srun", "-o", "mine", "./a"]


@pytest.mark.parametrize("name", ["SLURM_BCAST", "SRUN_CONTAINER"])
def test_what_the_environment_asks_of_srun_is_refused_as_an_option_is(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "/tmp/x")
    with pytest.raises(UsageError, match=name.rpartition("_")[2].lower()):
        SrunLaunch(["srun", "./a"])


def test_inside_an_allocation_none_is_taken(salloc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "5")
    with SrunLaunch(["srun", "./a"]).session():
        assert os.environ["SLURM_JOB_ID"] == "5" and not salloc.exists()


def test_a_refusal_is_told(salloc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFUSE", "1")
    with pytest.raises(LauncherError, match="Invalid partition"):
        with SrunLaunch(["srun", "./a"]).session():
            pytest.fail("there is no allocation")
    assert "SLURM_JOB_ID" not in os.environ


SRUN = """\
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
exec "$@"
"""


@pytest.mark.parametrize("strict", [False, True])
def test_without_an_allocation_the_job_starts_plainly(
    salloc: Path, monkeypatch: pytest.MonkeyPatch, strict: bool
) -> None:
    """srun may get what salloc does not, or says itself why it does not start."""
    monkeypatch.setenv("REFUSE", "1")
    (salloc.parent / "srun").write_text(SRUN)
    (salloc.parent / "srun").chmod(0o755)
    words = ["run", *(["--strict"] if strict else []), "--", "srun", "-N2", "sh", "-c", "exit 7"]
    done = subprocess.run(
        [sys.executable, "-m", "brigade", *words], capture_output=True, text=True, timeout=60
    )
    assert "Invalid partition" in done.stderr
    assert ("starts without an image" in done.stderr) is not strict
    assert done.returncode == (3 if strict else 7)


@pytest.mark.parametrize(
    ("wait", "end"), [("", signal.SIGINT), ("", signal.SIGKILL), ("60", signal.SIGINT)]
)
def test_it_is_given_back_when_brigade_is_ended(
    salloc: Path, wait: str, end: signal.Signals
) -> None:
    script = (
        "import time; from brigade import interrupt; from brigade.launch.srun import SrunLaunch\n"
        "with interrupt.listening(), SrunLaunch(['srun', './a']).session():\n"
        "    with interrupt.promptly(): time.sleep(60)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script], env={**os.environ, "WAIT": wait}, stderr=subprocess.DEVNULL
    )
    until(lambda: salloc.exists() and salloc.read_text().split()[-1] in ("pending", "a"))
    time.sleep(0.2)
    child.send_signal(end)
    child.wait(20)
    until(lambda: salloc.read_text().splitlines()[-1] == ("withdrawn" if wait else "ended 1"))
