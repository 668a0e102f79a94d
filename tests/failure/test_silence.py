"""Programs that fail for reasons of their own get no word, whatever they say."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cases_python import clean
from failing import Case, Made, fail

from brigade.failure import Evidence, diagnose

PYTHON = sys.executable
#: What a trial may have printed that proves nothing by itself.
CHATTER = """\
warning: libfoo.so.1: cannot open shared object file: No such file or directory
ModuleNotFoundError: No module named 'json'
checking for version `GLIBC_2.99' not found (required by test)
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
    "the standard library": "import os.path, xml.etree.ElementTree, ctypes, ssl, sqlite3, "
    "multiprocessing.pool, concurrent.futures, collections.abc, importlib.metadata\n1 / 0",
}
COMMANDS = {
    "grep that finds nothing": ["grep", "x", "/dev/null"],
    "false": ["false"],
    "a shell's 127": ["sh", "-c", "exit 127"],
    "a shell's 126": ["bash", "-c", "exit 126"],
    "an abort": ["sh", "-c", "kill -ABRT $$"],
    "a fault": ["sh", "-c", "kill -SEGV $$"],
    "a kill": ["sh", "-c", "kill -KILL $$"],
    "a request to end": ["sh", "-c", "kill -TERM $$"],
    "a compiler": ["cc", "/dev/null", "-o", "/dev/null"],
}


@pytest.mark.parametrize("title", SCRIPTS)
@pytest.mark.parametrize("trial", [False, True], ids=["unheard", "heard"])
def test_a_script_that_fails_by_itself_gets_no_word(base, title, trial):
    (base / "app.py").write_text(SCRIPTS[title])
    made = Made([PYTHON, str(base / "app.py")], clean())
    if title == "a path of its own" and trial:
        return  # its words make it certain
    failed = fail(Case("", title, lambda _: made, [], trial=trial), base)
    assert failed.text == ""


@pytest.mark.parametrize("title", COMMANDS)
def test_a_program_that_fails_by_itself_gets_no_word(base, title):
    failed = fail(Case("", title, lambda _: Made(COMMANDS[title]), [], trial=True), base)
    assert failed.text == ""


@pytest.mark.parametrize("status", [1, 2, 126, 127, 139, -9, -11])
def test_what_was_merely_printed_proves_nothing(base, status):
    (base / "app.py").write_text("import json\n")
    words = [PYTHON, str(base / "app.py")]
    limits = {"as": None, "nofile": 1024, "stack": 8 << 20, "nproc": None}
    evidence = Evidence(words, words, status, 1.0, "local", said=CHATTER, limits=limits)
    assert diagnose(evidence) == []


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
