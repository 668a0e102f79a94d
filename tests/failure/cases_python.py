"""Python that does not come up, and scripts that import what cannot be imported."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest
from cases_launchers import ROOT, not_both
from failing import Case, Made
from world_of_c import library

PYTHON = sys.executable
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
EXTENSION = """
#include <Python.h>
%s
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "fast", 0, -1};
PyMODINIT_FUNC PyInit_fast(void) { %s return PyModule_Create(&definition); }
"""


def app(base: Path, text: str, name: str = "app.py") -> list[str]:
    (base / name).parent.mkdir(parents=True, exist_ok=True)
    (base / name).write_text(text)
    return [PYTHON, str(base / name)]


def clean(**variables: str) -> dict[str, str]:
    """Without the PYTHONPATH that tests run with; '' takes a variable away."""
    return {"PYTHONPATH": "", "PYTHONHOME": "", **variables}


def extension(
    path: Path, before: str = "", inside: str = "", flags: Sequence[str] = (), **options
) -> Path:
    include = f"-I{sysconfig.get_path('include')}"
    return library(path, include, *flags, source=EXTENSION % (before, inside), **options)


def no_headers() -> str:
    there = os.path.isfile(os.path.join(sysconfig.get_path("include"), "Python.h"))
    return "" if there else "needs Python.h"


def misspelt(base: Path) -> Made:
    (base / "solverlib.py").write_text("")
    return Made(app(base, "import json\nimport sloverlib\n"), clean())


def package_of_another_name(base: Path) -> Made:
    return Made(app(base, "import os\nimport cv2\n"), clean(PATH="/nowhere", HOME=str(base)))


def in_an_environment_beside(base: Path) -> Made:
    packages = base / f"venv/lib/python{VERSION}/site-packages/coupling"
    packages.mkdir(parents=True)
    (packages / "__init__.py").write_text("")
    (base / "venv/bin").mkdir()
    (base / "venv/bin/activate").write_text("")
    (base / "venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    return Made(app(base, "from coupling import x\n"), clean())


def in_a_folder_above(base: Path) -> Made:
    (base / "project/src/helpers").mkdir(parents=True)
    (base / "project/src/helpers/__init__.py").write_text("")
    return Made(app(base, "import helpers\n", "project/bin/app.py"), clean())


def of_a_module_that_is_found(base: Path) -> Made:
    (base / "mesh").mkdir()
    (base / "mesh/__init__.py").write_text("from . import grid\n")
    (base / "mesh/grid.py").write_text("import no_such_backend\n")
    return Made(app(base, "import mesh\n"), clean())


def guarded_but_raised_again(base: Path) -> Made:
    text = "try:\n    import no_such_fft\nexcept ImportError as error:\n"
    text += "    raise RuntimeError('no fft') from error\n"
    return Made(app(base, text), clean())


def imported_by_a_function(base: Path) -> Made:
    """Only the program's own words show that it came so far."""
    return Made(app(base, "def main():\n    import no_such_plotter\nmain()\n"), clean())


def run_as_a_module(base: Path) -> Made:
    return Made([PYTHON, "-m", "no_such_tool"], clean())


def under_mpi4py(base: Path) -> Made:
    pytest.importorskip("mpi4py")
    words = [sys.executable, "-m", "mpi4py", *app(base, "import no_such_halo\n")[1:]]
    return Made(["env", "OMP_NUM_THREADS=1", *words], {**clean(), **ROOT})


def script_that_is_not_there(base: Path) -> Made:
    app(base, "", "analyse.py")
    return Made([PYTHON, "analyze.py"], clean())


def own_file_hides_a_module(base: Path) -> Made:
    (base / "random.py").write_text("print('mine')\n")
    return Made(app(base, "from random import randint\n"), clean())


def own_file_hides_what_is_used(base: Path) -> Made:
    (base / "calendar.py").write_text("DAYS = 7\n")
    return Made(app(base, "import calendar\nprint(calendar.isleap(2000))\n"), clean())


def name_that_is_not_there(base: Path) -> Made:
    (base / "mesh.py").write_text("def read_mesh():\n    pass\n")
    return Made(app(base, "from mesh import read_msh\n"), clean())


def for_another_python(base: Path) -> Made:
    (base / "site/fast.cpython-36m-x86_64-linux-gnu.so").parent.mkdir()
    extension(base / "site/fast.cpython-36m-x86_64-linux-gnu.so")
    return Made(app(base, "import fast\n"), clean(PYTHONPATH=f"{base}/site"))


def package_for_another_python(base: Path) -> Made:
    (base / "site/quick").mkdir(parents=True)
    (base / "site/quick/__init__.py").write_text("from . import _core\n")
    (base / "site/quick/_core.cpython-36m-x86_64-linux-gnu.so").write_bytes(b"\x7fELF")
    return Made(app(base, "import quick\n"), clean(PYTHONPATH=f"{base}/site"))


def submodule_for_another_python(base: Path) -> Made:
    """As NumPy is laid out."""
    core = base / "site/quick/_core"
    core.mkdir(parents=True)
    begin = "try:\n    __QUICK_SETUP__\nexcept NameError:\n    __QUICK_SETUP__ = False\n"
    begin += "if __QUICK_SETUP__:\n    pass\nelse:\n    from . import _core\n"
    (base / "site/quick/__init__.py").write_text(begin)
    (core / "__init__.py").write_text("from quick._core._umath import add\n")
    (core / "_umath.cpython-36m-x86_64-linux-gnu.so").write_bytes(b"")
    return Made(app(base, "import quick\n"), clean(PYTHONPATH=f"{base}/site"))


def bundled_library(base: Path) -> Made:
    """As pip's packages bring their libraries along."""
    packages = base / "site-packages"
    lib = library(packages / "quick.libs/libsolver-0a1b.so.2")
    (packages / "quick").mkdir()
    (packages / "quick/__init__.py").write_text("from . import fast\n")
    runpath = "-Wl,-rpath,$ORIGIN/../quick.libs"
    extension(packages / f"quick/fast{SUFFIX}", flags=[runpath], needs=[lib])
    lib.unlink()
    return Made(app(base, "import quick\n"), clean(PYTHONPATH=str(packages)))


def extension_without_its_library(base: Path) -> Made:
    lib = library(base / "x/libsolver.so.2")
    extension(base / f"fast{SUFFIX}", needs=[lib])
    (base / "lib").mkdir()
    lib.rename(base / "lib/libsolver.so.2")
    return Made(app(base, "import fast\n"), clean(LD_LIBRARY_PATH=""))


def extension_with_another_library(base: Path) -> Made:
    one = "int {}(void) {{ return 0; }}"
    lib = library(base / "lib/libsolver.so.2", source=one.format("solver_step"))
    before, inside = "int solver_step(void);", "solver_step();"
    extension(base / f"fast{SUFFIX}", before, inside, needs=[lib])
    library(lib, source=one.format("solver_stop"))
    return Made(app(base, "import fast\n"), clean(LD_LIBRARY_PATH=str(base / "lib")))


def home_of_another(base: Path) -> Made:
    (base / "lib/python3.2").mkdir(parents=True)
    return Made(app(base, ""), clean(PYTHONHOME=str(base)))


def library_of_another(base: Path) -> Made:
    old = base / "lib/python3.2"
    old.mkdir(parents=True)
    for name in ("os", "site", "encodings"):
        (old / f"{name}.py").write_text("raise SystemError('for Python 3.2')\n")
    return Made(app(base, ""), clean(PYTHONPATH=str(old)))


def by_the_scripts_own_first_line(base: Path) -> Made:
    app(base, f"#!{PYTHON}\nimport no_such_module\n", "tool")
    (base / "tool").chmod(0o755)
    return Made([str(base / "tool")], clean())


CASES = [
    Case("no-module", "a misspelt module", misspelt,
         ["module sloverlib is imported by {base}/app.py:2, and was not found",
          "searched: {base} (the script)", "closest:  solverlib ({base}/solverlib.py)",
          "is solverlib meant?"]),
    Case("no-module", "a module whose package has another name", package_of_another_name,
         ["cv2 is imported by", "-m pip install opencv-python"]),
    Case("no-module", "a module of an environment that is not active", in_an_environment_beside,
         ["source {base}/venv/bin/activate"]),
    Case("no-module", "a module in a folder of the project", in_a_folder_above,
         ["export PYTHONPATH={base}/project/src"]),
    Case("no-module", "a module that a module needs", of_a_module_that_is_found,
         ["no_such_backend is imported by {base}/mesh/grid.py:1 (imported from {base}/app.py:1)"]),
    Case("no-module", "a module whose absence is turned into another error",
         guarded_but_raised_again, ["no_such_fft is imported by {base}/app.py:2"]),
    Case("no-module", "a module that a function imports", imported_by_a_function,
         ["module no_such_plotter is imported by"], trial=True),
    Case("no-module", "`python -m` of a module that is not there", run_as_a_module,
         ["module no_such_tool, which Python is to run, was not found"]),
    Case("no-module", "a module, of a script with a first line", by_the_scripts_own_first_line,
         ["no_such_module is imported by {base}/tool:2"]),
    Case("no-module", "a module, under `python -m mpi4py`", under_mpi4py,
         ["no_such_halo is imported by {base}/app.py:1"], needs=not_both),
    Case("no-script", "a script that is not there", script_that_is_not_there,
         ["analyze.py, which Python is to run, is not there", "closest:  {base}/analyse.py"]),
    Case("hidden-module", "an own file that hides a module", own_file_hides_a_module,
         ["{base}/random.py hides the module random", "wants random.randint",
          "mv {base}/random.py {base}/my_random.py"]),
    Case("hidden-module", "an own file that hides a module that is used",
         own_file_hides_what_is_used, ["{base}/calendar.py hides", "wants calendar.isleap"]),
    Case("no-name", "a name that a module does not have", name_that_is_not_there,
         ["read_msh is imported by {base}/app.py:1 from mesh", "is read_mesh meant?"]),
    Case("extension-of-another-python", "an extension module for another Python",
         for_another_python,
         [f"there for Python 3.6 alone, this is {VERSION}", "{base}/site (PYTHONPATH)",
          "closest:  {base}/site/fast.cpython-36m"], needs=no_headers),
    Case("extension-of-another-python", "PYTHONPATH of another Python", package_for_another_python,
         ["quick._core is imported by {base}/site/quick/__init__.py:1",
          "is {base}/site in PYTHONPATH"]),
    Case("extension-of-another-python", "a package installed for another Python",
         submodule_for_another_python,
         ["module quick._core._umath is imported by {base}/site/quick/_core/__init__.py:1",
          "closest:  {base}/site/quick/_core/_umath.cpython-36m"]),
    Case("missing-library", "a library that a Python package brings along", bundled_library,
         ["libsolver-0a1b.so.2 is needed by {base}/site-packages/quick/fast",
          "quick.fast is imported by", "pip install --force-reinstall quick"], needs=no_headers),
    Case("missing-library", "a library that an extension module needs",
         extension_without_its_library,
         ["libsolver.so.2 is needed by {base}/fast", "fast is imported by {base}/app.py:1",
          "export LD_LIBRARY_PATH={base}/lib"], needs=no_headers),
    Case("undefined-symbol", "an extension module built against another library",
         extension_with_another_library, ["solver_step is used by {base}/fast",
          "solver_stop in libsolver.so.2"], needs=no_headers),
    Case("wrong-pythonhome", "PYTHONHOME of another Python", home_of_another,
         ["PYTHONHOME={base} has no standard library", "python3.2 in {base}/lib",
          "unset PYTHONHOME"]),
    Case("library-of-another-python", "the standard library of another Python in PYTHONPATH",
         library_of_another, ["PYTHONPATH has {base}/lib/python3.2", "unset PYTHONPATH"]),
]  # fmt: skip
