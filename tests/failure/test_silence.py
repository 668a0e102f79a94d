"""Programs that fail for reasons of their own get no word, whatever they say."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import pytest
from cases_launchers import ROOT, mpi_program, not_both
from cases_libraries import of_a_library
from cases_python import clean
from failing import Case, Made, fail

from brigade.failure import Evidence, diagnose, imports

PYTHON = sys.executable
#: What a trial may have printed that proves nothing by itself.
CHATTER = """\
./configure: line 77: ls: command not found
warning: libfoo.so.1: cannot open shared object file: No such file or directory
ModuleNotFoundError: No module named 'json'
checking for version `GLIBC_2.99' not found (required by test)
solver: level 3 Out Of Memory check: ok
error: Detected 1 oom-kill event in the log that is read
checkpoint: mpirun has detected an attempt to run as root
note: There are not enough slots available in the system to satisfy the 64 slots
monitor: Unable to contact slurm controller (connect failure), retried
input error: Invalid account or account/partition combination, invalid partition specified: x
help: OMPI was not built with SLURM's PMI support on the old cluster
worker 3: can't start new thread, goes on alone
cache: OSError: [Errno 24] Too many open files, closed some
/opt/lib/libgomp.so.1: cannot allocate memory in static TLS block, loaded first
step 1 of 7
step 2 of 7
step 3 of 7
step 4 of 7
step 5 of 7
step 6 of 7
step 7 of 7
diverged
"""
#: What it may have said last, as of what it ends of; and the limits that say otherwise.
LAST_WORDS = {
    "RuntimeError: can't start new thread": {"nproc": 96365, "pids": 32768},
    "OSError: [Errno 24] Too many open files: 'x'": {"nofile": 20000},
    "ImportError: /nowhere/libx.so: cannot allocate memory in static TLS block": {},
}
HOOKS = """\
import sys, types
from importlib.machinery import ModuleSpec
class Finder:
    def find_spec(name, path=None, target=None):
        return ModuleSpec(name, Finder) if name.startswith("hooks.") else None
    def create_module(spec):
        return types.ModuleType(spec.name)
    def exec_module(module):
        pass
sys.meta_path.append(Finder)
"""
SCRIPTS = {
    "an exception": "raise ValueError(1)",
    "an exit status": "import sys; sys.exit(3)",
    "a guarded import": "try:\n import no_such\nexcept ImportError:\n pass\nraise SystemExit(1)",
    "suppressed": "from contextlib import suppress\nwith suppress(ImportError):\n"
    " import no_such\n1 / 0",
    "an import that is not reached": "def f():\n import no_such\n1 / 0",
    "an import under a condition": "import sys\nif sys.platform == 'win32':\n import winreg\n1/0",
    "a path of its own": "import sys; sys.path.append('/elsewhere'); import no_such",
    "real packages": "import numpy.linalg, click, rich.console\n1 / 0",
    "a name made at run time": "from time import sleep\nfrom rich import print\n1 / 0",
    "a package's lazy name": "from numpy import array, linalg, float64\nimport numpy.fft\n1 / 0",
    "a name made by a module": "from lazy import anything\n1 / 0",
    "a name of an importer": "from hooks import anything\n1 / 0",
    "the standard library": "import os.path, xml.etree.ElementTree, ctypes, ssl, sqlite3, "
    "multiprocessing.pool, concurrent.futures, collections.abc, importlib.metadata\n1 / 0",
}
#: Of packages that make importers, load lazily, or bring libraries along.
MODULES = (
    "numpy.testing numpy.f2py matplotlib.pyplot mpl_toolkits.mplot3d mpi4py.MPI mpi4py.futures "
    "hypothesis pytest PIL.Image fontTools.ttLib setuptools pip._internal rich.live jinja2 "
    "scikit_build_core.build mypy.api dateutil.tz packaging.version pygments.lexers ssl sqlite3 "
    "asyncio multiprocessing.pool xml.etree.ElementTree email.mime.text unittest.mock"
).split()
COMMANDS = {
    "grep that finds nothing": ["grep", "x", "/dev/null"],
    "false": ["false"],
    "a shell's 127": ["sh", "-c", "exit 127"],
    "a shell's 126": ["bash", "-c", "exit 126"],
    "an abort": ["sh", "-c", "kill -ABRT $$"],
    "a fault": ["sh", "-c", "kill -SEGV $$"],
    "a kill": ["sh", "-c", "kill -KILL $$"],
    "a request to end": ["sh", "-c", "kill -TERM $$"],
    "env": ["env", "-u", "HOME", "LC_ALL=C", "false"],
    "nice": ["nice", "-n", "5", "false"],
    "taskset": ["taskset", "-c", "0", "false"],
    "a compiler": ["cc", "/dev/null", "-o", "/dev/null"],
}


@pytest.mark.parametrize("title", SCRIPTS)
@pytest.mark.parametrize("trial", [False, True], ids=["unheard", "heard"])
def test_a_script_that_fails_by_itself_gets_no_word(base, title, trial):
    (base / "app.py").write_text(SCRIPTS[title])
    (base / "lazy.py").write_text("def __getattr__(name):\n    return name\n")
    (base / "hooks").mkdir()
    (base / "hooks/__init__.py").write_text(HOOKS)
    made = Made([PYTHON, str(base / "app.py")], clean())
    if title == "a path of its own" and trial:
        return  # its words make it certain
    failed = fail(Case("", title, lambda _: made, [], trial=trial), base)
    assert failed.text == ""


@pytest.mark.all
@pytest.mark.parametrize("name", MODULES)
def test_no_module_that_imports_well_is_called_missing(base, name):
    (base / "app.py").write_text(f"import {name}\nraise SystemExit(1)\n")
    made = Made([PYTHON, str(base / "app.py")], clean())
    failed = fail(Case("", name, lambda _: made, [], trial=True), base)
    assert "ModuleNotFound" in failed.said or failed.text == ""


@pytest.mark.parametrize("title", COMMANDS)
def test_a_program_that_fails_by_itself_gets_no_word(base, title):
    failed = fail(Case("", title, lambda _: Made(COMMANDS[title]), [], trial=True), base)
    assert failed.text == ""


NO_LIMITS = {"as": None, "nofile": 1024, "stack": 8 << 20, "nproc": None, "pids": 512}


@pytest.mark.parametrize("launcher", ["local", "srun", "mpirun", "mpiexec"])
@pytest.mark.parametrize("status", [1, 2, 126, 127, 137, 139, -9, -11])
def test_what_was_merely_printed_proves_nothing(base, status, launcher):
    (base / "app.py").write_text("import json\n")
    program = [PYTHON, str(base / "app.py")]
    words = program if launcher == "local" else [launcher, "-n", "1", *program]
    env = {**os.environ, **ROOT, "SLURM_JOB_ID": "7"}  # nothing else is wrong
    evidence = Evidence(
        words, program, status, 1.0, launcher, ranks=1, env=env, said=CHATTER, limits=NO_LIMITS
    )
    assert diagnose(evidence) == []


@pytest.mark.parametrize("last", LAST_WORDS)
def test_last_words_that_what_can_be_seen_does_not_bear_out_prove_nothing(base, last):
    (base / "app.py").write_text("import json\n")
    words = [PYTHON, str(base / "app.py")]
    limits = {**NO_LIMITS, **LAST_WORDS[last]}
    said = f"{CHATTER}{last}\n"
    assert diagnose(Evidence(words, words, 1, 1.0, "local", said=said, limits=limits)) == []


#: Words of launchers, as they say them, and as a step of ours is told to have ended.
SAID = {
    "srun: error: n1: task 3: Out Of Memory": ("launcher-oom", "srun", 137),
    "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.": ("launcher-oom", "srun", 137),
    "srun: error: Unable to allocate resources: Unable to contact slurm controller (connect "
    "failure)": ("launcher-unreachable", "srun", 1),
    "srun: fatal: Could not establish a configuration source": ("launcher-unreachable", "srun", 1),
    "srun: error: invalid partition specified: labb": ("launcher-partition", "srun", 1),
    "srun: error: Unable to create step for job 7: Requested node configuration is not available":
    ("launcher-limits", "srun", 1),
    "mpirun.openmpi has detected an attempt to run as root.": ("launcher-root", "mpirun", 1),
    "There are not enough slots available in the system to satisfy the 64\nslots":
    ("launcher-slots", "mpirun", 1),
    'The application appears to have been direct launched using "srun",\nbut OMPI was not built '
    "with SLURM's PMI support and therefore cannot": ("launcher-pmi", "srun", 1),
}  # fmt: skip


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize(
    "front", ["", "line\n", "staging ended with status 1 and said: ", "staging … said: one; "]
)
def test_what_a_launcher_itself_says_is_heard(said, front):
    kind, launcher, status = SAID[said]
    words = [launcher, "-n", "2", "/bin/false"]
    env = {**os.environ, **ROOT, "SLURM_JOB_ID": "7"}
    evidence = Evidence(
        words, words[-1:], status, 1.0, launcher, ranks=2, env=env, said=front + said
    )
    assert [one.kind for one in diagnose(evidence)] == [kind]
    other = dataclasses.replace(evidence, launcher="mpiexec", said=f"{front}app: {said}")
    assert diagnose(other) == []


def test_slots_that_a_users_file_gives_are_believed(base):
    ranks = 64 * (os.cpu_count() or 1)
    words = ["mpirun", "-n", str(ranks), "/bin/false"]
    env = {"PATH": os.environ["PATH"], "HOME": str(base), **ROOT}
    evidence = Evidence(words, words[-1:], 1, 1.0, "mpirun", ranks=ranks, env=env)
    assert [one.kind for one in diagnose(evidence)] == ["launcher-slots"]
    (base / ".openmpi").mkdir()
    (base / ".openmpi/mca-params.conf").write_text("rmaps_base_oversubscribe = 1\n")
    assert diagnose(evidence) == []


@pytest.mark.parametrize(
    "env", [{"SLURM_JOB_ID": "7"}, {"PATH": "/nowhere"}], ids=["a step", "no Slurm commands"]
)
def test_a_step_that_fails_says_nothing_of_slurm(env):
    words = ["srun", "-p", "none", "-n", "2", "/bin/false"]
    env = {**os.environ, **env}
    assert diagnose(Evidence(words, words[-1:], 1, 1.0, "srun", ranks=2, env=env)) == []


def test_a_status_that_ld_so_does_not_end_with_is_not_its(base):
    words = of_a_library(base).argv
    assert diagnose(Evidence(words, words, 127, 1.0, "local", cwd=str(base)))
    for status in (1, 3, -11):
        assert diagnose(Evidence(words, words, status, 1.0, "local", cwd=str(base))) == []


def test_a_program_under_the_launcher_of_its_own_mpi_gets_no_word(base):
    if not_both():
        pytest.skip(not_both())
    made = mpi_program(base, "openmpi", ["mpirun.openmpi", "--oversubscribe"], "mpirun")
    made.argv[-1] = "3"  # is not the number of ranks
    assert fail(Case("", "", lambda _: made, []), base).text == ""


@pytest.mark.parametrize("pmix", [False, True], ids=["MPICH", "MPICH for PMIx"])
def test_an_mpich_that_speaks_pmix_may_be_started_by_open_mpis_mpirun(base, pmix):
    needed = "libpmix.so.2" if pmix else "libother.so.2"
    for name, more in (
        (needed, []),
        ("libmpich.so.12", ["-Wl,--no-as-needed", str(base / needed)]),
        ("solver", ["-Wl,--no-as-needed", str(base / "libmpich.so.12"), f"-Wl,-rpath,{base}"]),
    ):
        shared = [] if name == "solver" else ["-shared", "-fPIC", f"-Wl,-soname,{name}"]
        start = ["-x", "c", "-", "-x", "none", "-o", str(base / name), *shared, *more]
        text = "int main(void) { return 1; }" if name == "solver" else ""
        subprocess.run(["cc", *start, f"-Wl,-rpath-link,{base}"], input=text, text=True, check=True)
    words = ["mpirun.openmpi", "--oversubscribe", "-n", "2", str(base / "solver")]
    env = {**os.environ, **ROOT, "LD_LIBRARY_PATH": str(base)}
    evidence = Evidence(words, words[-1:], 1, 1.0, "mpirun", ranks=2, cwd=str(base), env=env)
    kinds = [one.kind for one in diagnose(evidence)]
    assert kinds == ([] if pmix else ["launcher-of-another-mpi"])


@pytest.mark.parametrize(
    "front",
    [
        ["mpirun", "-n", "2", "-x", "PYTHONPATH={base}/more"],
        ["srun", "--export=ALL,PYTHONPATH={base}/more", "-n2"],
        ["mpiexec", "-n", "2", "-genv", "PYTHONPATH", "{base}/more"],
        ["mpirun", "--wdir", "{base}/more", "-n", "2"],
        ["env", "OTHER=1", "PYTHONPATH={base}/more"],
        ["nice", "-n", "3", "env", "-u", "HOME", "PYTHONPATH={base}/more"],
        ["taskset", "-c", "0", "env", "PYTHONPATH={base}/more"],
    ],
    ids=lambda front: " ".join(front),
)
def test_what_the_command_line_gives_the_program_is_taken_into_account(base, front):
    for folder in ("more", "less"):
        (base / folder).mkdir()
    (base / "more/given.py").write_text("")
    program = [PYTHON, "-c", "import given; raise SystemExit(1)"]
    env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def told(front: list[str]) -> list:
        words = [*front, *program]
        start = len(front) if front and front[0] in ("mpirun", "srun", "mpiexec") else 0
        launcher = front[0] if start else "local"
        evidence = Evidence(words, words[start:], 1, 1.0, launcher, ranks=2, cwd=str(base), env=env)
        return list(imports.examine(evidence.suspects[-1], evidence))

    assert told([word.replace("{base}", str(base)) for word in front]) == []
    assert told([word.replace("{base}/more", f"{base}/less") for word in front])
    assert told([])


def test_a_job_that_succeeded_is_not_looked_at():
    assert diagnose(Evidence(["/no/such"], ["/no/such"], 0, 1.0)) == []


def test_a_script_of_an_editable_installation_is_found(base):
    """Its importer is made by a line of a .pth file, which is not executed here."""
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", base / "venv"], check=True)
    packages = next((base / "venv/lib").glob("python*/site-packages"))
    (packages / "__editable___mine_finder.py").write_text("MAPPING = {'mine': '/src/mine'}\n")
    (packages / "mine.pth").write_text("import __editable___mine_finder\n/elsewhere\n")
    (packages / "touch.pth").write_text(f"import os; open({str(base / 'run')!r}, 'w')\n")
    (base / "app.py").write_text("import mine\n")
    made = Made([str(base / "venv/bin/python"), str(base / "app.py")], clean())
    failed = fail(Case("", "", lambda _: made, []), base)
    assert failed.text == ""
    os.unlink(base / "run")  # by the failed start itself
    (base / "app.py").write_text("import yours\n")
    words = made.argv
    assert diagnose(Evidence(words, words, 1, 1.0, "local", cwd=str(base)))
    assert not (base / "run").exists()
