"""`brigade run` on one machine: the program does what it does without, and the report is true."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import mpi_world
import mpich_launcher
import pytest
from project import Site
from world_of_c import library, program


def text_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What the program itself said on standard error."""
    return [line for line in done.stderr.splitlines() if line.startswith("to stderr")]


def test_output_paths_and_environment_are_what_they_were(made: Site) -> None:
    plain, under = made.plain("a", "b c"), made.brigade("a", "b c")
    assert under.stdout == plain.stdout
    assert text_of(under) == text_of(plain) != []
    assert under.returncode == 0


@pytest.mark.parametrize("launcher", ["", "mpirun.openmpi --oversubscribe", "mpiexec.mpich"])
def test_exported_functions_of_a_shell_reach_trial_and_ranks(site: Site, launcher: str) -> None:
    if launcher and not shutil.which(launcher.split()[0]):
        pytest.skip(f"needs {launcher.split()[0]}")
    odd = {"BASH_FUNC_needed%%": "() {  echo it\\'s here\n}", "a.b": "'"}
    env = {**os.environ, **mpi_world.ENVIRONMENT, **odd}
    code = (
        "import os, subprocess, pkg; out = subprocess.check_output(['bash', '-c', 'needed'])\n"
        "seen = [out, os.environ['a.b'], 'BRIGADE_KEPT' in os.environ]\n"
        "os.write(1, repr(seen).encode() + b'\\n')"
    )
    words = [*launcher.split(), *(["-n", "2"] if launcher else []), str(site.python), "-c", code]
    for _ in range(2):
        under = site.brigade_of(words, ("-n", "2") if not launcher else (), env)
        assert under.stdout.splitlines() == [repr([b"it's here\n", "'", False])] * 2, under.stderr
        report = site.report()
        assert report["unstaged"] is None
        assert not report["image"]["trial"] or report["image"]["trial"]["status"] == 0


@pytest.mark.parametrize("pwd", [None, "/", "it's no folder", ""])
@pytest.mark.parametrize("ranks", ["1", "2"])
def test_the_shell_on_the_way_changes_no_pwd(made: Site, pwd: str | None, ranks: str) -> None:
    code = "import os, pkg; os.write(1, repr(os.environ.get('PWD')).encode() + b'\\n')"
    env = {name: value for name, value in os.environ.items() if name != "PWD"}
    env |= {} if pwd is None else {"PWD": pwd}
    env |= {"BRIGADE_CACHE": str(made.base / "cache"), "BRIGADE_NODE_DIR": str(made.nodes)}
    command = [sys.executable, "-m", "brigade", "run", "-n", ranks, "--json", "-", "-q", "--"]
    command += [str(made.python), "-c", code]
    done = subprocess.run(command, env=env, cwd=made.base, capture_output=True, text=True)
    assert done.stdout.splitlines() == [repr(pwd)] * int(ranks), done.stderr
    assert json.loads(done.stderr)["unstaged"] is None


@pytest.mark.parametrize("code", ["0", "1", "77", "255"])
def test_exit_codes_pass_through(made: Site, code: str) -> None:
    assert made.brigade("exit", code).returncode == made.plain("exit", code).returncode == int(code)


def test_exit_codes_pass_through_where_ends_of_children_are_ignored(made: Site) -> None:
    """As whoever starts `brigade run` may have it: then the kernel keeps them from it."""
    ignore = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # noqa: E731
    done = made.brigade("exit", "3", run=("-n", "2"), preexec_fn=ignore, timeout=60)
    assert done.returncode == 3


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_death_by_signal_is_death_by_the_same_signal(made: Site, signum: int) -> None:
    number = str(int(signum))
    assert made.brigade("signal", number).returncode == made.plain("signal", number).returncode


def test_first_run_makes_an_image_and_the_second_uses_it(site: Site) -> None:
    assert site.brigade().returncode == 0
    first = site.report()
    assert site.brigade().returncode == 0
    second = site.report()
    assert first["image"]["trial"] and not second["image"]["trial"]
    assert first["image"]["id"] == second["image"]["id"]
    assert second["unstaged"] is None
    assert second["views"] == ["interpose", "python"]
    assert second["operations"]["before_per_rank"] > 10
    assert second["operations"]["answered_per_rank"]["min"] > 10
    assert second["misses"]["total"] == 0, second["misses"]


def test_processes_of_brigades_own_in_a_slurm_jobs_script_are_ranks_of_their_own(
    site: Site,
) -> None:
    counted = []
    for env in ({}, {"SLURM_PROCID": "0"}):
        env["BRIGADE_CACHE"] = str(site.base / f"cache{len(counted)}")
        assert site.brigade(run=("-n", "3"), env=env).returncode == 0
        counted.append(site.report()["operations"]["before_per_rank"])
    assert counted[1] < 1.5 * counted[0], "taken for one rank, two count twice"


def test_several_ranks_each_run_once_and_share_one_staged_folder(made: Site) -> None:
    under = made.brigade(run=("-n", "4"))
    answers = {json.dumps(json.loads(line)) for line in under.stdout.splitlines()}
    assert len(under.stdout.splitlines()) == 4 and len(answers) == 1
    assert made.report()["startup"]["ranks"] == 4
    assert made.report()["staging"]["nodes"] == 1


def test_no_covered_path_is_touched_by_a_rank(made: Site, tmp_path) -> None:
    """The kernel's own word: the ranks' system calls name nothing below the environment."""
    trace = tmp_path / "trace"
    tool = ["strace", "-f", "-s", "4096", "-e", "trace=%file", "-o", str(trace)]
    environment = {
        **os.environ,
        "BRIGADE_CACHE": str(made.base / "cache"),
        "BRIGADE_NODE_DIR": str(made.nodes),
    }
    command = [sys.executable, "-m", "brigade", "run", "-q", "--", str(made.python), str(made.app)]
    done = subprocess.run(
        [*tool, *command], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = trace.read_text().splitlines()
    ranks = {line.split()[0] for line in lines if "brigade-rank" in line and "execve(" in line}
    assert ranks
    touched = [
        line for line in lines if line.split()[0] in ranks and f'"{made.base}/venv/lib' in line
    ]
    assert touched == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda site: site.app.write_text(site.app.read_text() + "# edited\n"), "app.py"),
        (lambda site: (site.package / "new.py").write_text(""), "new.py"),
        (lambda site: (site.package / "data.txt").write_text("forty-three\n"), "data.txt"),
    ],
)
def test_a_changed_source_is_noticed_and_the_image_renewed(site: Site, change, path: str) -> None:
    assert site.brigade().returncode == 0
    time.sleep(0.02)
    change(site)
    again = site.brigade()
    assert again.stdout == site.plain().stdout
    assert "making an image" in again.stderr and path in again.stderr
    assert site.report()["image"]["trial"]


def test_output_beside_the_script_is_no_reason_for_a_new_trial(site: Site) -> None:
    assert site.brigade().returncode == 0
    (site.app.parent / "result.dat").write_text("42")
    assert "making an image" not in site.brigade().stderr


SAY = "int say(void); int main(void) { return say(); }"
APP_WITH_OUTPUT = """\
import os
here = os.path.dirname(__file__)
os.makedirs(here + "/results/run1", exist_ok=True)
print(os.listdir(here + "/results"), os.path.exists(here + "/old"))
os.listdir(here)
"""


def test_a_folder_that_the_user_removed_is_made_again_without_a_new_trial(site: Site) -> None:
    site.app.write_text(APP_WITH_OUTPUT)
    results, old = site.app.parent / "results", site.app.parent / "old"
    results.mkdir()
    old.mkdir()
    assert site.brigade().stdout == "['run1'] True\n"
    shutil.rmtree(results)
    old.rmdir()
    again = site.brigade(run=("--no-grow",))
    assert again.stdout == "['run1'] False\n", again.stderr
    assert again.returncode == 0 and "making an image" not in again.stderr
    assert {str(results), str(old)} <= set(site.report()["image"]["left_to_file_system"])


APP_WITH_SETTINGS = """\
import os
try:
    from local_settings import value
except ImportError:
    value = "default"
print(value)
with open(os.path.join(os.path.dirname(__file__), "log.txt"), "a") as log:
    log.write(value + "\\n")
"""


def test_settings_that_appear_beside_a_script_that_logs_there_are_found(site: Site) -> None:
    site.app.write_text(APP_WITH_SETTINGS)
    for _ in range(2):
        assert site.brigade().stdout == "default\n"
    assert site.report()["image"]["left_to_file_system"] == []
    (site.app.parent / "local_settings.py").write_text("value = 'local'\n")
    again = site.brigade()
    assert again.stdout == "local\n"
    assert "making an image" not in again.stderr


def test_a_library_that_appears_earlier_on_the_search_path_is_loaded(site: Site) -> None:
    dev, lib = site.base / "dev/build", site.base / "project/lib"
    says = "int say(void) {{ return {}; }}"
    old = library(lib / "libsay.so", source=says.format(1))
    words = [str(program(site.base / "project/say", needs=[old], source=SAY))]
    dev.mkdir(parents=True)
    how = {"run": ("--cover", str(site.base)), "env": {"LD_LIBRARY_PATH": f"{dev}:{lib}"}}
    assert [site.brigade_of(words, **how).returncode for _ in range(2)] == [1, 1]
    assert site.report()["image"]["trial"] is None
    library(dev / "libsay.so", source=says.format(2))
    assert site.brigade_of(words, **how).returncode == 2


def test_nothing_is_left_in_node_memory_unless_asked(made: Site) -> None:
    made.brigade()
    assert not list(made.nodes.glob("brigade-*/[0-9a-f]*"))
    made.brigade(run=("--keep",))
    kept = list(made.nodes.glob("brigade-*/[0-9a-f]*"))
    assert len(kept) == 1
    assert not any((kept[0] / "jobs").iterdir())
    made.brigade()
    assert made.report()["staging"]["already"] == 1
    assert not list(made.nodes.glob("brigade-*/[0-9a-f]*"))


def test_a_node_without_room_starts_the_job_unstaged_and_says_why(made: Site) -> None:
    under = made.brigade(env={"BRIGADE_NODE_DIR": "/proc"})
    assert under.stdout == made.plain().stdout
    assert under.returncode == 0
    assert "/proc" in made.report()["unstaged"]
    assert "starts without an image" in under.stderr


def test_an_empty_folder_for_node_memory_means_the_usual_one(made: Site) -> None:
    under = made.brigade(env={"BRIGADE_NODE_DIR": ""})
    assert under.returncode == 0 and made.report()["unstaged"] is None, under.stderr


def test_strict_ends_instead(made: Site) -> None:
    under = made.brigade(run=("--strict",), env={"BRIGADE_NODE_DIR": "/proc"})
    assert under.returncode == 6 and under.stdout == ""


def test_a_damaged_image_is_made_anew(site: Site) -> None:
    site.brigade()
    image = next((site.base / "cache/images").glob("*.brg"))
    image.write_bytes(image.read_bytes()[:-100])
    again = site.brigade()
    assert again.stdout == site.plain().stdout and again.returncode == 0
    assert "making an image" in again.stderr


def test_an_image_named_by_the_user_must_be_readable(made: Site, tmp_path) -> None:
    under = made.brigade(run=("--image", str(tmp_path / "none.brg")))
    assert under.returncode == 4 and under.stdout == ""
    assert "none.brg" in under.stderr


def test_a_relative_name_of_an_image_or_of_the_cache_means_this_folder(site: Site) -> None:
    """Trial and staging may have another: srun's --chdir, mpirun's --wdir."""
    elsewhere = site.base / "elsewhere"
    elsewhere.mkdir()
    mpi = ("mpirun.openmpi", "--oversubscribe", "--wdir", str(elsewhere), "-n", "2")
    words = [*mpi, str(site.python), str(site.app)]
    options = {"cwd": site.base, "env": {**mpi_world.ENVIRONMENT, "BRIGADE_CACHE": "cache"}}
    assert site.brigade_of(words, **options).stdout.count("\n") == 2
    assert site.report()["image"]["trial"]["status"] == 0 and site.report()["unstaged"] is None
    image = next((site.base / "cache/images").glob("*.brg"))
    assert list(elsewhere.iterdir()) == []
    named = ("--image", str(image.relative_to(site.base)))
    assert site.brigade_of(words, named, **options).stdout.count("\n") == 2
    assert site.report()["unstaged"] is None


def test_without_a_home_the_program_is_started_plainly(site: Site) -> None:
    code = "import os, runpy; os.path.expanduser = str; "
    code += "runpy.run_module('brigade', None, '__main__')"
    gone = ("BRIGADE_CACHE", "XDG_CACHE_HOME")
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "--", "echo", "hi"],
        env={name: value for name, value in os.environ.items() if name not in gone},
        cwd=site.base, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("hi\n", 0)
    assert "no home folder" in done.stderr and not (site.base / "~").exists()


def test_a_program_that_does_not_exist_is_named(made: Site) -> None:
    environment = {**os.environ, "BRIGADE_CACHE": str(made.base / "cache2")}
    command = [sys.executable, "-m", "brigade", "run", "--", "/no/such/program"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 127
    assert "/no/such/program" in done.stderr


@pytest.mark.skipif(not shutil.which("mpirun.openmpi"), reason="needs Open MPI")
def test_a_program_in_the_folder_of_the_ranks_is_found_as_mpirun_finds_it(site: Site) -> None:
    site.app.write_text(f"#!{site.python}\n{site.app.read_text()}")
    site.app.chmod(0o755)
    words = ["mpirun.openmpi", "--oversubscribe", "-n", "2", "app.py", "x"]
    env = {**os.environ, **mpi_world.ENVIRONMENT}
    plain = subprocess.run(words, cwd=site.app.parent, env=env, capture_output=True, text=True)
    under = site.brigade_of(words, env=env, cwd=site.app.parent)
    assert plain.returncode == under.returncode == 0, under.stderr
    assert under.stdout == plain.stdout
    assert under.stdout.count("forty-two") == 2 and site.report()["unstaged"] is None


#: Looks for a program in a folder that nobody else knows of, and starts two.
LOOKS = """\
#!/bin/sh
case $1 in --version) echo HYDRA; exit;; -*) shift 2;; esac
command -v "$1" >/dev/null || { word=$1; shift; set -- "$0.d/$word" "$@"; }
"$@" && "$@"
"""


def test_what_only_the_launcher_finds_is_started_as_it_would_be(site: Site) -> None:
    launcher = site.base / "mpiexec"
    (site.base / "mpiexec.d").mkdir()
    for path, text in ((launcher, LOOKS), (site.base / "mpiexec.d/hidden", "#!/bin/sh\necho $1\n")):
        path.write_text(text)
        path.chmod(0o755)
    for _ in range(2):  # nor is there an image of it
        under = site.brigade_of([str(launcher), "-n", "2", "hidden", "seen"])
        assert (under.returncode, under.stdout) == (0, "seen\nseen\n"), under.stderr
        assert site.report()["unstaged"] == "the trial did not find hidden in PATH"


#: Starts all its processes on this machine, whatever it is told of hosts; notes what it is told.
IGNORES = """\
#!/bin/sh
case $1 in --version) echo HYDRA; exit;; esac
while [ "${1#-}" != "$1" ]; do case $1 in -n) n=$2;; esac; shift 2; done
case $*  in *brigade-stage*) what=own;; *) what=job;; esac
echo "$what $I_MPI_JOB_RESPECT_PROCESS_PLACEMENT" >> "$0.log"
exec mpiexec.mpich -n "$n" "$@"
"""


@pytest.mark.skipif(not shutil.which("mpiexec.mpich"), reason="needs MPICH")
def test_hosts_that_were_not_staged_are_not_counted_as_nodes(made: Site) -> None:
    mpich_launcher.need_own("mpich")
    launcher = made.base / "mpiexec"
    launcher.write_text(IGNORES)
    launcher.chmod(0o755)
    words = [str(launcher), "-hosts", "a,b", "-n", "2", str(made.python), str(made.app)]
    under = made.brigade_of(words, run=("--quiet",))
    assert under.returncode == 0 and under.stdout.count("forty-two") == 2, under.stderr
    assert "one process on each of 2 nodes, and started them on 1" in under.stderr
    report = made.report()
    assert (report["unstaged"], report["staging"]["nodes"]) == (None, 1)
    told = Path(f"{launcher}.log").read_text().splitlines()
    assert set(told) == {"own off", "job "}  # Intel MPI's goes by what it is told of hosts so


def test_terminate_reaches_the_program_and_cleans_up(site: Site) -> None:
    site.app.write_text(APP_THAT_WAITS)
    site.brigade(env={"BRIGADE_TEST_WAIT": "0"})
    environment = {
        **os.environ,
        "BRIGADE_CACHE": str(site.base / "cache"),
        "BRIGADE_NODE_DIR": str(site.nodes),
        "BRIGADE_TEST_WAIT": "60",
    }
    command = [sys.executable, "-m", "brigade", "run", "-q", "--", str(site.python), str(site.app)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout and job.stdout.readline() == "started\n"
        job.send_signal(signal.SIGTERM)
        assert job.stdout.read() == "told to stop\n"
        assert job.wait(timeout=20) == 5
    assert not list(site.nodes.glob("brigade-*/[0-9a-f]*"))


APP_THAT_WAITS = """\
import os, signal, sys, time
import pkg
def stop(number, frame):
    os.write(1, b"told to stop\\n")  # a print may be under way
    sys.exit(5)
signal.signal(signal.SIGTERM, stop)
os.write(1, b"started\\n")
time.sleep(float(os.environ["BRIGADE_TEST_WAIT"]))
"""


def test_descriptors_that_a_shell_opens_reach_the_ranks(made: Site) -> None:
    code = "import os; os.write(1, os.read(7, 9))"
    command = f'"$0" -m brigade run -q -- {made.python} -c "{code}" 7<<EOF\nfor seven\nEOF'
    environment = {
        **os.environ,
        "BRIGADE_CACHE": str(made.base / "cache"),
        "BRIGADE_NODE_DIR": str(made.nodes),
    }
    done = subprocess.run(
        ["sh", "-c", command, sys.executable], env=environment, capture_output=True, text=True
    )
    assert done.stdout == "for seven", done.stderr
