"""`brigade run` and `brigade profile` end a failed start with why; the rest stays the program's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from cases_libraries import behind_a_script, of_a_library
from cases_python import in_an_environment_beside

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def brigade(
    base: Path,
    *words: str,
    command: str = "run",
    env: dict[str, str] | None = None,
    front: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    nodes = base / "nodes"
    nodes.mkdir(exist_ok=True)
    variables = {"BRIGADE_CACHE": f"{base}/cache", "BRIGADE_NODE_DIR": str(nodes)}
    return subprocess.run(
        [*front, sys.executable, "-m", "brigade", command, *words],
        env={**os.environ, **variables, "BRIGADE_PATIENCE": "60", **(env or {})},
        cwd=base, capture_output=True, text=True, timeout=100,
    )  # fmt: skip


def plain(base: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=base, capture_output=True, text=True)


def test_run_tells_why_after_the_report_and_keeps_status_and_output(base):
    app = of_a_library(base).argv[0]
    alone = plain(base, app)
    first, again = brigade(base, "--", app), brigade(base, "--", app)
    for done in (first, again):
        assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout) == (127, "")
        assert alone.stderr in done.stderr
        told = done.stderr.partition(alone.stderr)[2]
        assert "brigade: libinner.so.1 is needed by" in told
        assert told.rstrip().endswith("LD_LIBRARY_PATH")


def test_a_program_that_its_script_starts_is_known_from_the_trial(base):
    done = brigade(base, "--", behind_a_script(base).argv[0])
    assert done.returncode == 3
    assert "brigade: libinner.so.1 is needed by" in done.stderr


def test_quiet_says_nothing_and_the_report_has_it_nevertheless(base):
    app = of_a_library(base).argv[0]
    alone = plain(base, app)
    done = brigade(base, "-q", "--json", "report.json", "--", app)
    assert (done.returncode, done.stderr) == (127, alone.stderr)
    found = json.loads((base / "report.json").read_text())["failure"]
    assert [one["kind"] for one in found] == ["missing-library"]
    assert found[0]["mend"] and found[0]["searched"]


def test_a_job_that_fails_by_itself_ends_as_without_brigade(base):
    done = brigade(base, "--json", "report.json", "--", "sh", "-c", "echo no; exit 4")
    assert (done.returncode, done.stdout) == (4, "no\n")
    assert json.loads((base / "report.json").read_text())["failure"] == []
    assert "to mend" not in done.stderr


def test_what_a_trial_said_is_heard_only_if_it_failed(base):
    script = base / "app.sh"
    says = "#!/bin/sh\necho Too many open files >&2\n"
    script.write_text(f"{says}[ ! -e flag ] && >flag || exit 3\n")
    script.chmod(0o755)
    few = ["prlimit", "--nofile=256:256"]
    done = brigade(base, "--", str(script), front=few)
    assert done.returncode == 3
    assert "256 files open" not in done.stderr
    (base / "flag").unlink()
    script.write_text(f"{says}exit 3\n")
    done = brigade(base, "--renew", "--", str(script), front=few)
    assert "256 files open" in done.stderr


def test_a_program_that_is_not_there_is_told_without_an_image_too(base):
    done = brigade(base, "--view", "none", "--", "./sovler")
    assert done.returncode == 127
    assert "brigade: ./sovler is not there" in done.stderr


def test_a_script_that_the_kernel_does_not_execute_is_told(base):
    (base / "app").write_text("echo hello\n")
    (base / "app").chmod(0o755)
    done = brigade(base, "--view", "none", "--", "./app")
    assert done.returncode == 126
    assert "brigade: ./app is a script without a first line" in done.stderr


def test_a_launcher_that_is_not_there_is_told_with_what_is(base):
    (base / "modules/slurm").mkdir(parents=True)
    (base / "bin").mkdir()
    (base / "bin/mpirun").symlink_to("/bin/true")
    env = {"PATH": f"{base}/bin", "MODULEPATH": ""}
    done = brigade(base, "--", "srun", "-n", "2", "true", env=env)
    assert done.returncode == 3
    assert "srun is not in PATH" in done.stderr and "mpirun is there" in done.stderr
    env["MODULEPATH"] = f"{base}/modules"
    done = brigade(base, "--", "srun", "-n", "2", "true", env=env)
    assert "module load slurm" in done.stderr


def test_profile_sees_which_process_failed(base):
    """The script's own status says nothing; the trace has the process that ld.so ended."""
    script = behind_a_script(base).argv[0]
    done = brigade(base, "--html", "none", "--", script, command="profile")
    assert done.returncode == 3, done.stderr
    assert "brigade: libinner.so.1 is needed by" in done.stderr


def test_profile_knows_an_environment_by_the_name_of_its_python(base):
    """The file behind the links of an environment is another interpreter, with other modules."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", base / "own"], check=True)
    packages = next((base / "own/lib").glob("python*/site-packages"))
    (packages / "mine.py").write_text("")
    (base / "app.py").write_text("import mine\nimport yours\n")
    env = {"PYTHONHOME": "", "PATH": f"{base}/own/bin:{os.environ['PATH']}"}
    del env["PYTHONHOME"]
    words = ["--html", "none", "--", "sh", "-c", "python app.py; exit 5"]
    done = brigade(base, *words, command="profile", env=env)
    assert done.returncode == 5, done.stderr
    assert "module yours is imported by" in done.stderr
    assert "module mine" not in done.stderr


@pytest.mark.all
def test_run_tells_of_python_what_its_environment_lacks(base):
    made = in_an_environment_beside(base)
    done = brigade(base, "-n", "2", "--", *made.argv)
    assert done.returncode == 1
    assert f"source {base}/venv/bin/activate" in done.stderr
