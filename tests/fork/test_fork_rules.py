"""Every rule is about something that happens, and without it the module would be left.

Two ranks import the module as a trial does. Packages that this Python does not have are looked for
in the one that BRIGADE_TEST_PYTHON names.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from brigade.fork.libraries import note
from brigade.fork.page import page
from brigade.fork.rules import RULES, Rule
from brigade.fork.trial_plan import make
from brigade.imports import table
from brigade.paths import native
from brigade.trial.modules import RankModules, rank_modules
from brigade.trial.record import load

PYTHONS = [sys.executable, *filter(None, [os.environ.get("BRIGADE_TEST_PYTHON")])]
OPENMP_NAME = "libwithomp.so"
OPENMP = f"import ctypes\nctypes.CDLL({{folder!r}} + '/{OPENMP_NAME}')\n"
# names environ under the name of a library for which there is a rule
NAMING = "import ctypes\nctypes.CDLL({{folder!r}} + '/{}')\n"
NAMES = "extern char **environ;\nchar **f(void) { return environ; }\n"
ASKING = "import ctypes\nctypes.CDLL({folder!r} + '/libffi.so.x').f()\n"
ASKS = "#include <time.h>\n#include <unistd.h>\nint f(void) { return getpid() ^ time(0); }\n"
LDCONFIG = "import subprocess\nsubprocess.run(['/sbin/ldconfig', '-p'], stdout=-3)\n"
# (modules, event, detail) of a rule -> the module that shows it, and its code if it is ours
SHOWN: dict[tuple[str, str, str], tuple[str, str]] = {
    ("*", "host", "*"): ("shown", "import os\nos.uname()\n"),
    ("*", "write", "*/__pycache__*"): ("shown", "import shown_too\n"),
    ("*", "thread", "*/lib*openblas*"): ("numpy._core._multiarray_umath", ""),
    ("*", "cpus", "*/lib*openblas*"): ("numpy._core._multiarray_umath", ""),
    ("*", "cpus", "*/libgomp*"): ("shown", OPENMP),
    ("*", "library", "*/libpython*"): ("shown", NAMING.format("libpython3.x.so")),
    ("*", "library", "*/libgfortran*"): ("shown", NAMING.format("libgfortran-x.so")),
    ("*", "library", "*/libgomp*"): ("shown", NAMING.format("libgomp-x.so")),
    ("*", "library", "*/libiomp5*"): ("shown", NAMING.format("libiomp5-x.so")),
    ("*", "library", "*/libnccl.so*"): ("shown", NAMING.format("libnccl.so.x")),
    ("*", "library", "*/libmpi.so.40*"): ("shown", NAMING.format("libmpi.so.40.x")),
    ("*", "library", "*/libopen-[pr]*"): ("shown", NAMING.format("libopen-pal.so.x")),
    ("*", "child", "*/uname"): ("shown", "import subprocess\nsubprocess.run(['uname', '-p'])\n"),
    ("*", "child", "*/ldconfig"): ("shown", LDCONFIG),
    ("*", "pid", "libffi"): ("shown", ASKING),
    ("*", "clock", "libffi"): ("shown", ASKING),
    ("*", "process", "/proc/self/maps"): ("shown", "open('/proc/self/maps').close()\n"),
    ("*", "process", "/proc/[0-9]*/maps"): (
        "shown",
        "import os\nopen('/proc/' + os.readlink('/proc/self') + '/maps').close()\n",
    ),
    ("threading", "pid", "thread"): ("threading", ""),
    ("random", "random", "*"): ("random", ""),
    ("numpy.random.mtrand", "random", "*"): ("numpy.random.mtrand", ""),
    ("rich.style", "generator", "random"): ("rich.style", "import rich.default_styles\n"),
    ("logging", "clock", "*"): ("logging", ""),
    ("multiprocessing.process", "random", "*"): ("multiprocessing.process", ""),
    ("_strptime", "clock", "*"): ("_strptime", ""),
    ("astropy.extern._strptime", "clock", "*"): ("astropy.extern._strptime", ""),
    ("pandas._libs.tslibs.strptime", "clock", "*"): ("pandas._libs.tslibs.strptime", ""),
    ("dateutil.parser._parser", "clock", "*"): ("dateutil.parser._parser", ""),
    ("numpy.f2py.rules", "clock", "*"): ("numpy.f2py.rules", ""),
    ("scipy.stats._new_distributions", "random", "*"): ("scipy.stats._new_distributions", ""),
    ("matplotlib", "write", "*"): ("matplotlib", "import matplotlib\nmatplotlib.get_configdir()"),
    ("matplotlib.font_manager", "write", "*"): ("matplotlib.font_manager", ""),
    ("matplotlib.font_manager", "child", "*/fc-list"): ("matplotlib.font_manager", ""),
    ("matplotlib.font_manager", "thread", "*python*"): ("matplotlib.font_manager", ""),
    ("matplotlib.font_manager", "pid", "thread"): ("matplotlib.font_manager", ""),
    ("matplotlib.font_manager", "clock", "*"): ("matplotlib.font_manager", ""),
    ("torch", "clock", "*"): ("torch", ""),
    ("torch._C", "clock", "*"): ("torch._C", ""),
    ("torch._C", "cpus", "*/libtorch_cpu*"): ("torch._C", ""),
    ("torch._C", "random", "/dev/urandom"): ("torch._C", ""),
    ("torch*", "library", "*/libtorch_cpu*"): ("torch._C", ""),
    ("torch.distributed._composable.contract", "random", "*"): (
        "torch.distributed._composable.contract",
        "",
    ),
    ("triton*", "library", "*/libtriton*"): ("triton._C.libtriton", ""),
    ("pyarrow.lib", "random", "*"): ("pyarrow.lib", ""),
    ("pyarrow.lib", "pid", ""): ("pyarrow.lib", ""),
    ("pyarrow.lib", "clock", "*"): ("pyarrow.lib", ""),
    ("pyarrow.lib", "cpus", "*/libarrow*"): ("pyarrow.lib", ""),
    ("pyarrow.lib", "thread", "*/libarrow*"): ("pyarrow.lib", ""),
    ("pyarrow.*", "library", "*/libarrow*"): ("pyarrow.lib", ""),
    ("joblib._multiprocessing_helpers", "pid", ""): ("joblib._multiprocessing_helpers", ""),
    ("joblib._multiprocessing_helpers", "random", "*"): ("joblib._multiprocessing_helpers", ""),
    ("sklearn.ensemble._hist_gradient_boosting.*", "random", "*"): (
        "sklearn.ensemble._hist_gradient_boosting.grower",
        "",
    ),
    ("llvmlite.binding.executionengine", "process", "/proc/self/status"): (
        "llvmlite.binding.executionengine",
        "",
    ),
    ("lightgbm.basic", "process", "/proc/self/status"): ("lightgbm.basic", ""),
    ("llvmlite.*", "library", "*/libllvmlite*"): ("llvmlite.binding.dylib", ""),
    ("numba.core.config", "environ", "*"): ("numba.core.config", ""),
    ("numba.core.config", "cpus", "*"): ("numba.core.config", ""),
    ("numba.core.types.functions", "terminal", "*"): ("numba.core.types.functions", ""),
    ("dask.config", "environ", "*"): ("dask.config", ""),
    ("dask.system", "cpus", "*"): ("dask.system", ""),
    ("dask.system", "pid", ""): ("dask.system", ""),
    ("dask.system", "process", "*"): ("dask.system", ""),
    ("psutil._pslinux", "pid", ""): ("psutil._pslinux", ""),
    ("networkx", "environ", "*"): ("networkx", ""),
    ("tqdm.std", "environ", "*"): ("tqdm.std", ""),
    ("numexpr", "thread", "*/numexpr/*"): ("numexpr", ""),
    ("numexpr", "pid", ""): ("numexpr", ""),
    ("numcodecs.blosc", "pid", ""): ("numcodecs.blosc", ""),
    ("jiter.jiter", "random", "hash"): ("jiter.jiter", ""),
    ("rpds.rpds", "random", "hash"): ("rpds.rpds", ""),
    ("pydantic_core._pydantic_core", "random", "hash"): ("pydantic_core._pydantic_core", ""),
    ("pydantic_core._pydantic_core", "pid", "thread"): ("pydantic_core._pydantic_core", ""),
    ("*", "random", "*/_pydantic_core.*"): ("pydantic.types", ""),
    ("safetensors._safetensors_rust", "random", "hash"): ("safetensors._safetensors_rust", ""),
    ("tiktoken._tiktoken", "random", "hash"): ("tiktoken._tiktoken", ""),
    ("sympy.core.random", "random", "*"): ("sympy.core.random", ""),
    ("sympy.core.symbol", "random", "*"): ("sympy.core.symbol", ""),
    ("xarray.backends.locks", "random", "*"): ("xarray.backends.locks", ""),
    ("datasets.fingerprint", "random", "*"): ("datasets.fingerprint", ""),
    ("distributed.client", "random", "*"): ("distributed.client", ""),
    ("filelock.*", "pid", ""): ("filelock._core._fork", ""),
    ("filelock._identity._process", "process", "/proc/self/mountinfo"): (
        "filelock._identity._process",
        "",
    ),
    ("filelock._strict", "random", "*"): ("filelock._strict", ""),
    ("filelock._strict", "write", "*"): ("filelock._strict", ""),
    ("torch._inductor.config", "cpus", "*"): ("torch._inductor.config", ""),
    ("torch._dynamo.package", "pid", ""): ("torch._dynamo.package", ""),
    ("torch._dynamo.package", "random", "*"): ("torch._dynamo.package", ""),
    ("torch._dynamo.package", "write", "*"): ("torch._dynamo.package", ""),
    ("datasets.utils._filelock", "pid", ""): ("datasets.utils._filelock", ""),
    ("fsspec.*", "pid", ""): ("fsspec.spec", ""),
    ("huggingface_hub.hf_file_system", "pid", ""): ("huggingface_hub.hf_file_system", ""),
    ("datasets.filesystems.compression", "pid", ""): ("datasets.filesystems.compression", ""),
    ("fsspec.config", "environ", "*"): ("fsspec.config", ""),
    ("dill.session", "pid", ""): ("dill.session", ""),
    ("dill.session", "random", "*"): ("dill.session", ""),
    ("dill.session", "write", "*"): ("dill.session", ""),
    ("pyscf.__config__", "pid", ""): ("pyscf.__config__", ""),
    ("pyscf.__config__", "random", "*"): ("pyscf.__config__", ""),
    ("pyscf.__config__", "write", "*"): ("pyscf.__config__", ""),
    ("multiprocess.process", "random", "*"): ("multiprocess.process", ""),
    ("transformers.utils.hub", "random", "*"): ("transformers.utils.hub", ""),
    ("urllib3.util.connection", "socket", "*"): ("urllib3.util.connection", ""),
    ("_duckdb", "clock", "*"): ("_duckdb", ""),
    ("jaxlib._jax", "clock", "*"): ("jaxlib._jax", ""),
    ("jax*", "cpus", "*/libjax_common*"): ("jaxlib._jax", ""),
    ("jax._src.pretty_printer", "terminal", "*"): ("jax._src.pretty_printer", ""),
    ("jax*", "library", "*/libjax_common*"): ("jaxlib._jax", ""),
    ("opentelemetry.context", "random", "*"): ("opentelemetry.context", ""),
    ("opentelemetry.baggage", "random", "*"): ("opentelemetry.baggage", ""),
    ("opentelemetry.trace.propagation", "random", "*"): ("opentelemetry.trace.propagation", ""),
    ("uvloop.loop", "library", "*/uvloop/loop*"): ("uvloop.loop", ""),
    ("tensorflow*", "clock", "*"): ("tensorflow.python.framework.ops", ""),
    ("tensorflow*", "cpus", "*"): ("tensorflow.python.platform._pywrap_cpu_feature_guard", ""),
    ("tensorflow*", "pid", "thread"): ("tensorflow.python.pywrap_tensorflow", ""),
    ("tensorflow*", "library", "*/libtensorflow_*.so*"): (
        "tensorflow.python.platform._pywrap_cpu_feature_guard",
        "",
    ),
    ("tensorflow*", "library", "*/_pywrap_tpu_embedding*"): (
        "tensorflow.python.tpu._pywrap_tpu_embedding",
        "",
    ),
    ("absl.testing.absltest", "pid", ""): ("absl.testing.absltest", ""),
    ("absl.testing.absltest", "random", "*"): ("absl.testing.absltest", ""),
    ("absl.testing.absltest", "write", "*"): ("absl.testing.absltest", ""),
}


# rules for what not every version does
TENSORFLOWS = {
    ("tensorflow*", "thread"): "2.21",
    ("tensorflow*", "*/_pywrap_tpu_embedding*"): "2.16",
}


# rules for what the program itself calls: the call, before it imports what it imports again
CALLS: dict[tuple[str, str, str], str] = {
    ("*", "called", "matplotlib.use"): "matplotlib.use('agg')",
    ("*", "called", "numpy*.set_printoptions"): "numpy.set_printoptions(precision=3)",
    ("*", "called", "numpy.*"): "numpy.arange(3)",
    ("*", "called", "numpy.__getattr__"): "numpy.testing",
    ("*", "called", "scipy*.__getattr__"): "scipy.constants",
    ("*", "called", "sklearn.__getattr__"): "sklearn.dummy",
    ("*", "called", "pydantic.__getattr__"): "pydantic.dataclasses",
    ("*", "called", "lazy_loader.__getattr__"): "skimage.filters",
    ("*", "called", "transformers.utils.import_utils.__getattr__"): "transformers.AutoConfig",
}


def python_with(module: str) -> str:
    """A Python whose version of the package has this module, and has not imported it at its start:
    what code in .pth files imports, no trial sees being executed.
    """
    at_start = f"import sys; sys.exit({module != 'sys'} and {module!r} in sys.modules)"
    there = f"import importlib.util as u, sys; sys.exit(not u.find_spec({module!r}))"
    for python in PYTHONS:
        asked = [
            subprocess.run([python, "-c", code], check=False, capture_output=True).returncode
            for code in (at_start, there)
        ]
        if asked == [0, 0]:
            return python
    pytest.skip(
        f"needs {module}, not imported when Python starts (BRIGADE_TEST_PYTHON: a Python with it)"
    )


def two_ranks(folder: Path, python: str, module: str, before: str = "") -> list[RankModules]:
    """What two ranks that import a module do, after some code; each finds its own caches empty."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("BRIGADE_", "PYTHON"))}
    for name in ("COLUMNS", "LINES"):  # where they are set, no terminal is asked
        kept.pop(name, None)
    records = folder / "records"
    records.mkdir()
    wrapper = [str(native("brigade-rank")), "--record", str(records), "--watch", "salt"]
    for rank in range(2):
        home = folder / "home"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        env = {
            **kept,
            "BRIGADE_RANK": str(rank),
            "MPLCONFIGDIR": str(home / "matplotlib"),
            "TF_CPP_MIN_LOG_LEVEL": "1",  # TensorFlow writes to stderr otherwise
            "TF_ENABLE_ONEDNN_OPTS": "0",  # and on some processors of this, at any level
            "SETUPTOOLS_USE_DISTUTILS": "stdlib",  # and older ones import distutils twice
            "PYTHONPATH": str(folder),
            "PYTHONPYCACHEPREFIX": "" if module != "shown" else str(home / "__pycache__"),
        }
        done = subprocess.run(
            [*wrapper, "--python-view", str(table.SITE), "--", python, "-c",
             f"{before}import {module}"],
            env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    ranks = rank_modules(load(records))
    note(ranks)
    return ranks


def fits(rule: Rule, trial: list[RankModules], module: str) -> bool:
    return any(
        rule.fits(event.module, event.what, event.detail)
        for rank in trial
        for event in rank.events
        if event.module == module
    )


def make_openmp(folder: Path) -> None:
    """A library that brings OpenMP's."""
    made = subprocess.run(
        ["cc", "-x", "c", "-fopenmp", "-shared", "-fPIC", "-o", folder / OPENMP_NAME, "-"],
        input=b"#include <omp.h>\nint f(void) { return omp_get_max_threads(); }\n",
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("needs a compiler with OpenMP")


AT_IMPORT = [rule for rule in RULES if rule.event != "called"]


@pytest.mark.parametrize("rule", AT_IMPORT, ids=lambda rule: f"{rule.modules} {rule.event}")
def test_a_rule_is_needed_and_enough(rule: Rule, tmp_path: Path) -> None:
    module, code = SHOWN[rule.modules, rule.event, rule.detail]
    python = python_with("sys" if module == "shown" else module)
    if module == "shown":
        (tmp_path / "shown.py").write_text(code.format(folder=str(tmp_path)))
        (tmp_path / "shown_too.py").write_text("")
    if code is OPENMP:
        make_openmp(tmp_path)
    if (rule.event == "library" and module == "shown") or code is ASKING:
        library = str(tmp_path / code.rpartition("/")[2].partition("'")[0])
        build = ["cc", "-x", "c", "-shared", "-fPIC", "-o", library, "-"]
        subprocess.run(build, input=ASKS if code is ASKING else NAMES, text=True, check=True)
    if rule.event == "thread" and "openblas" in rule.detail and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")
    trial = two_ranks(tmp_path, python, module)
    if not fits(rule, trial, module) and rule.detail == "*/fc-list":
        pytest.skip("needs fontconfig")
    if not fits(rule, trial, module) and "libffi looks" in rule.why:
        pytest.skip("needs a libffi without static trampolines")
    if not fits(rule, trial, module) and "CUDA" in rule.why:
        pytest.skip("needs PyTorch for CUDA")
    if not fits(rule, trial, module) and (rule.modules, rule.detail) in TENSORFLOWS:
        pytest.skip(f"needs TensorFlow {TENSORFLOWS[rule.modules, rule.detail]} or so")
    assert fits(rule, trial, module), [e for e in trial[0].events if e.module == module]
    assert module not in make(trial).left, make(trial).left[module]
    without = tuple(other for other in RULES if other != rule)
    assert not make(trial, rules=without).left[module].through


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("OMP_PROC_BIND", "true", "binds this process to processors or memory"),
        ("OMP_PLACES", "threads", "binds this process to processors or memory"),
        ("GOMP_CPU_AFFINITY", "0-1", "binds this process to processors or memory"),
        ("OMP_PROC_BIND", "false", ""),
    ],
)
def test_openmp_is_left_where_it_binds_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, why: str
) -> None:
    """Its places are the processors of the process that loaded it, and not of a rank."""
    make_openmp(tmp_path)
    (tmp_path / "shown.py").write_text(OPENMP.format(folder=str(tmp_path)))
    for name in ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    left = make(two_ranks(tmp_path, sys.executable, "shown")).left
    assert (left["shown"].why if "shown" in left else "") == why


@pytest.mark.parametrize("key", CALLS, ids=lambda key: key[2])
def test_a_rule_for_a_call_of_the_program_is_needed_and_enough(
    key: tuple[str, str, str], tmp_path: Path
) -> None:
    call = CALLS[key]
    package = call.partition(".")[0]
    python = python_with(package)
    (tmp_path / "shown.py").write_text(f"import {package}\n")
    trial = two_ranks(tmp_path, python, "shown", f"import {package}\n{call}\n")
    assert "shown" not in make(trial).left, make(trial).left["shown"]
    without = tuple(r for r in RULES if (r.modules, r.event, r.detail) != key)
    assert "before it the program itself calls" in make(trial, rules=without).left["shown"].why


def test_every_rule_is_shown_and_every_pattern_is_used_once() -> None:
    named = [(rule.modules, rule.event, rule.detail) for rule in RULES]
    assert sorted(named) == sorted([*SHOWN, *CALLS])


def test_actions_are_those_that_a_rank_knows() -> None:
    text = (Path(table.SITE) / "_brigade_again.py").read_text()
    for action in {rule.action for rule in RULES if rule.action}:
        assert f'    "{action}":' in text


def test_the_width_of_numbas_messages_is_asked_again() -> None:
    again = runpy.run_path(str(Path(table.SITE) / "_brigade_again.py"))["ACTIONS"]
    asked = SimpleNamespace(columns=123)
    module = SimpleNamespace(_termwidth=80, get_terminal_size=lambda: asked)
    again["numba-width"](module)
    assert module._termwidth == 123


def test_the_page_of_the_rules_is_current() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/reference/fork-rules.md").read_text()
    assert text == page(), "python -m brigade.fork.page > docs/reference/fork-rules.md"
