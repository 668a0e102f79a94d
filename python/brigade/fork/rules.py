"""What modules do at import that does not keep them from being imported once for all ranks.

A rule says of an event (docs/design/0023-fork.md) in the execution of a module that it is harmless,
and why; or that a rank does something again when it sees the module: an action of
`_brigade_again.py`. The first rule that fits is the one that counts; what no rule fits leaves the
module to each rank.

What must stay true: a rule stands here only for code that was read; each has a test that shows
that the event still happens (tests/fork/test_fork_rules.py). docs/reference/fork-rules.md is made
from this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Rule:
    """An event of a module that does not speak against it. `modules` and `detail` are patterns;
    `action`: what a rank does again, or None; `names`, of `environ` and `library`: which variables
    count of all that were read (`*` at the end: all that begin so); of `thread`: threads that may
    stay; of `called`: which functions it is not for."""

    modules: str
    event: str
    why: str
    detail: str = "*"
    action: str | None = None
    names: tuple[str, ...] = ()

    def fits(self, module: str, event: str, detail: str) -> bool:
        return (
            event == self.event
            and fnmatchcase(module, self.modules)
            and fnmatchcase(detail, self.detail)
            and not (event == "called" and any(fnmatchcase(detail, name) for name in self.names))
        )


_OPENBLAS = "its own handler of fork ends its threads before, and they start again when needed"
_OPENMP = (
    "only counted before the first team of threads, and ranks have the same number of them; where"
    " it binds threads (`OMP_PROC_BIND`, `OMP_PLACES`, `GOMP_CPU_AFFINITY`), it is left (`bind`)"
)
_FONTS = "the list of fonts is made once, and is a file by then"
_ARROW = (
    "OpenSSL's and the allocator's own numbers, which no result depends on; OpenSSL's generator is"
    " seeded again in another process"
)
_JOBLIB = "the name of a semaphore that is gone when the import has ended"
_SPLITTER = "a default of private classes, to which every estimator gives a generator of its own"
_COMMANDS = "gives it to the commands that it starts, which is not at import"
_COUNTED = "only counts processors, of which ranks of a template may use the same number"
_MPI = "reads it when MPI starts, and what starts MPI is left"
_NUMEXPR = "its threads end before the fork, and are started again"
_RUST = "keys of Rust's hash tables, on which only the order of what they hold depends"
_LAZY = "imports what a name stands for when it is first asked for"
_TIMER = "a clock that would say that making the list of fonts takes long, and has ended"
_HANDLER = "its own handler of fork notes it again"
_FSSPEC = "whose file systems these are is noted by its own handler of fork, and asked at each use"
_FOLDER = "looks where temporary files go, and does so again"
_OWN = "of all variables only its own count"
_KEYS = "names of what it keeps in contexts, which are compared within a process only"
_MAPS = "what lies where in its memory, which is the same in a process that is forked"
_METRICS = (
    "since when its metrics, its store of Google's and a line of its log that is not shown count"
)
_LIBFFI = "libffi looks whether the kernel forbids code that is made while it runs"

RULES = (
    Rule("*", "host", "a template serves one node, and ranks of the same UTS namespace"),
    Rule("*", "write", "compiled code that Python keeps, which is there by then",
         detail="*/__pycache__*"),
    Rule("*", "thread", _OPENBLAS, detail="*/lib*openblas*", action="openblas"),
    Rule("*", "cpus", "only counted, and a template's ranks have the same number of them",
         detail="*/lib*openblas*"),
    Rule("*", "cpus", _OPENMP, detail="*/libgomp*", action="openmp"),
    Rule("*", "library", "`os.environ` is made of it, which a rank has anew",
         detail="*/libpython*"),
    Rule("*", "library", _COMMANDS, detail="*/libgfortran*"),
    Rule("*", "library", "of all variables only those of OpenMP count", detail="*/libgomp*",
         names=("OMP_*", "GOMP_*", "ACC_*")),
    Rule("*", "library", "of all variables only those of OpenMP count", detail="*/libiomp5*",
         names=("OMP_*", "GOMP_*", "KMP_*", "LIBOMP_*")),
    Rule("*", "library", "tells a diagnosis which of its own are set, which is not at import",
         detail="*/libnccl.so*", names=("NCCL_*",)),
    Rule("*", "library", _MPI, detail="*/libmpi.so.40*"),
    Rule("*", "library", _MPI, detail="*/libopen-[pr]*"),
    Rule("*", "pid", "libffi finds its own file by it, to make functions from",
         detail="libffi"),
    Rule("*", "clock", "libffi makes a number from it that tells its memory from others'",
         detail="libffi"),
    Rule("*", "process", _MAPS, detail="/proc/self/maps"),
    Rule("*", "process", _MAPS, detail="/proc/[0-9]*/maps"),
    Rule("*", "child", "`uname` tells what the kernel is, and has ended when the import has",
         detail="*/uname"),
    Rule("*", "child", "`ldconfig` lists libraries, and has ended when the import has",
         detail="*/ldconfig"),
    Rule("*", "called", "which backend there is to be is asked when a figure is made",
         detail="matplotlib.use"),
    Rule("*", "called", "how arrays are printed is asked when one is",
         detail="numpy*.set_printoptions"),
    Rule("*", "called", "makes arrays, or reads them", detail="numpy.*",
         names=("numpy*.set*", "numpy.random*", "numpy*ufunc_config*", "numpy*errstate*",
                "numpy*.printoptions*", "numpy.testing*", "numpy.distutils*", "numpy.f2py*",
                "numpy.__getattr__")),
    Rule("*", "called", _LAZY, detail="numpy.__getattr__"),
    Rule("*", "called", _LAZY, detail="scipy*.__getattr__"),
    Rule("*", "called", _LAZY, detail="sklearn.__getattr__"),
    Rule("*", "called", _LAZY, detail="transformers.utils.import_utils.__getattr__"),
    Rule("*", "called", _LAZY, detail="pydantic.__getattr__"),
    Rule("*", "called", _LAZY, detail="lazy_loader.__getattr__"),
    Rule("threading", "pid", "Python sets the main thread's number after each fork",
         detail="thread", action="threading"),
    Rule("random", "random", "seeded again", action="random-seed"),
    Rule("rich.style", "generator", "numbers that tell links on a terminal apart", detail="random",
         names=("random",)),
    Rule("numpy.random.mtrand", "random", "the global generator is seeded again",
         action="numpy-random"),
    Rule("logging", "clock", "the start that relative times count from is taken again",
         action="logging-start"),
    Rule("multiprocessing.process", "random", "the process's secret is made again",
         action="multiprocessing-key"),
    Rule("_strptime", "clock", "the names of time zones, for which only the year counts"),
    Rule("astropy.extern._strptime", "clock", "the names of time zones, for which only the year"
         " counts"),
    Rule("pandas._libs.tslibs.strptime", "clock",
         "the names of time zones, for which only the year counts"),
    Rule("dateutil.parser._parser", "clock", "the current year only"),
    Rule("numpy.f2py.rules", "clock", "a date for comments in the code that f2py writes"),
    Rule("scipy.stats._new_distributions", "random",
         "numbers for examples in its documentation; no generator is kept"),
    Rule("matplotlib", "write", "its folders are made, and are there by then; one of this process"
         " alone would ask for random numbers", action="matplotlib"),
    Rule("matplotlib.font_manager", "write", _FONTS, action="matplotlib"),
    Rule("matplotlib.font_manager", "child", _FONTS, detail="*/fc-list", action="matplotlib"),
    Rule("matplotlib.font_manager", "thread", _TIMER, detail="*python*", action="matplotlib"),
    Rule("matplotlib.font_manager", "pid", _TIMER, detail="thread", action="matplotlib"),
    Rule("matplotlib.font_manager", "clock", _TIMER, action="matplotlib"),
    Rule("torch", "clock", "libcublas (CUDA) keeps the second in which it was loaded"),
    Rule("torch._C", "clock", "the processor's clock is compared with the system's, once for all"
         " processes of a node"),
    Rule("torch._C", "cpus", "MKL counts cores, and ranks have the same number of processors",
         detail="*/libtorch_cpu*"),
    Rule("torch._C", "random", "the default generator is seeded again", detail="/dev/urandom",
         action="torch-random"),
    Rule("torch._inductor.config", "cpus", _COUNTED),
    Rule("torch._dynamo.package", "pid", _FOLDER, detail="", action="tempfile-folder"),
    Rule("torch._dynamo.package", "random", _FOLDER, action="tempfile-folder"),
    Rule("torch._dynamo.package", "write", _FOLDER, action="tempfile-folder"),
    Rule("torch*", "library", _COMMANDS, detail="*/libtorch_cpu*"),
    Rule("torch.distributed._composable.contract", "random", "the names of what it keeps in modules"
         " are made again", action="torch-contract"),
    Rule("triton*", "library", _COMMANDS, detail="*/libtriton*"),
    Rule("pyarrow.lib", "random", _ARROW),
    Rule("pyarrow.lib", "pid", _ARROW, detail=""),
    Rule("pyarrow.lib", "clock", _ARROW),
    Rule("pyarrow.lib", "cpus", "only counted, and a template's ranks have the same number of them",
         detail="*/libarrow*"),
    Rule("pyarrow.lib", "thread", "of the allocator jemalloc, whose own handler of fork has it do"
         " in a rank what the thread would have done", detail="*/libarrow*",
         names=("jemalloc_bg_thd",)),
    Rule("pyarrow.*", "library", "of all variables only those of its allocator mimalloc"
         " count", detail="*/libarrow*", names=("MIMALLOC_*", "mimalloc_*")),
    Rule("joblib._multiprocessing_helpers", "pid", _JOBLIB, detail=""),
    Rule("joblib._multiprocessing_helpers", "random", _JOBLIB),
    Rule("sklearn.ensemble._hist_gradient_boosting.*", "random", _SPLITTER),
    Rule("llvmlite.binding.executionengine", "process", _LIBFFI, detail="/proc/self/status"),
    Rule("lightgbm.basic", "process", _LIBFFI, detail="/proc/self/status"),
    Rule("llvmlite.*", "library", _COMMANDS, detail="*/libllvmlite*"),
    Rule("numba.core.config", "environ", _OWN,
         names=("NUMBA_*", "CUDA_PATH", "VS_PROFILER")),
    Rule("numba.core.config", "cpus", "only counted, and a template's ranks have the same number of"
         " them"),
    Rule("numba.core.types.functions", "terminal", "how wide a line of its errors may be is asked"
         " again", action="numba-width"),
    Rule("dask.config", "environ", _OWN, names=("DASK_*",)),
    Rule("dask.system", "cpus", _COUNTED),
    Rule("dask.system", "pid", _COUNTED, detail=""),
    Rule("dask.system", "process", _COUNTED),
    Rule("psutil._pslinux", "pid", "looks which files the kernel has of a process", detail=""),
    Rule("networkx", "environ", _OWN, names=("NETWORKX_*",)),
    Rule("tqdm.std", "environ", _OWN, names=("TQDM_*",)),
    Rule("numexpr", "thread", _NUMEXPR, detail="*/numexpr/*", action="numexpr-threads"),
    Rule("numexpr", "pid", _NUMEXPR, detail=""),
    Rule("numcodecs.blosc", "pid", "whose threads those of Blosc are is noted again", detail="",
         action="numcodecs-pid"),
    Rule("jiter.jiter", "random", _RUST, detail="hash"),
    Rule("rpds.rpds", "random", _RUST, detail="hash"),
    Rule("pydantic_core._pydantic_core", "random", _RUST, detail="hash"),
    Rule("*", "random", _RUST, detail="*/_pydantic_core.*"),
    Rule("pydantic_core._pydantic_core", "pid", "the main thread's number, which Rust names when it"
         " panics", detail="thread"),
    Rule("safetensors._safetensors_rust", "random", _RUST, detail="hash"),
    Rule("tiktoken._tiktoken", "random", _RUST, detail="hash"),
    Rule("sympy.core.random", "random", "its two generators are seeded again",
         action="sympy-random"),
    Rule("sympy.core.symbol", "random", "what its dummies are counted from is chosen again, far"
         " from the template's", action="sympy-dummies"),
    Rule("xarray.backends.locks", "random", "the names of its two locks are made again",
         action="xarray-locks"),
    Rule("datasets.fingerprint", "random", "its generator is seeded again",
         action="datasets-random"),
    Rule("distributed.client", "random", "what its futures are named after is made again",
         action="distributed-futures"),
    Rule("filelock.*", "pid", _HANDLER, detail=""),
    Rule("filelock._identity._process", "process", "the number of the kernel's start, which is the"
         " node's", detail="/proc/self/mountinfo"),
    Rule("filelock._strict", "random", _FOLDER, action="tempfile-folder"),
    Rule("filelock._strict", "write", _FOLDER, action="tempfile-folder"),
    Rule("datasets.utils._filelock", "pid", _HANDLER, detail=""),
    Rule("fsspec.*", "pid", _FSSPEC, detail=""),
    Rule("huggingface_hub.hf_file_system", "pid", _FSSPEC, detail=""),
    Rule("datasets.filesystems.compression", "pid", _FSSPEC, detail=""),
    Rule("fsspec.config", "environ", _OWN, names=("FSSPEC_*",)),
    Rule("dill.session", "pid", _FOLDER, detail="", action="tempfile-folder"),
    Rule("dill.session", "random", _FOLDER, action="tempfile-folder"),
    Rule("dill.session", "write", _FOLDER, action="tempfile-folder"),
    Rule("pyscf.__config__", "pid", _FOLDER, detail="", action="tempfile-folder"),
    Rule("pyscf.__config__", "random", _FOLDER, action="tempfile-folder"),
    Rule("pyscf.__config__", "write", _FOLDER, action="tempfile-folder"),
    Rule("multiprocess.process", "random", "the process's secret is made again",
         action="multiprocessing-key"),
    Rule("transformers.utils.hub", "random", "the name of its session is made again",
         action="transformers-session"),
    Rule("urllib3.util.connection", "socket", "looks whether the node has IPv6, and closes it"),
    Rule("_duckdb", "clock", "from when its allocator jemalloc counts how old free memory is"),
    Rule("jaxlib._jax", "clock", "since when its counters of events count"),
    Rule("jax*", "cpus", "only counted before its first thread, and ranks have the same number of"
         " them", detail="*/libjax_common*"),
    Rule("jax._src.pretty_printer", "terminal", "whether it may print in colours is asked again",
         action="jax-colours"),
    Rule("jax*", "library", _COMMANDS, detail="*/libjax_common*"),
    Rule("opentelemetry.context", "random", _KEYS),
    Rule("opentelemetry.baggage", "random", _KEYS),
    Rule("opentelemetry.trace.propagation", "random", _KEYS),
    Rule("uvloop.loop", "library", _COMMANDS, detail="*/uvloop/loop*"),
    Rule("tensorflow*", "clock", _METRICS),
    Rule("tensorflow*", "cpus", _COUNTED),
    Rule("tensorflow*", "pid", "the main thread's number, which lines of its log name",
         detail="thread"),
    Rule("tensorflow*", "library", _COMMANDS, detail="*/libtensorflow_*.so*"),
    Rule("tensorflow*", "library", _COMMANDS, detail="*/_pywrap_tpu_embedding*"),
    Rule("absl.testing.absltest", "pid", _FOLDER, detail="", action="tempfile-folder"),
    Rule("absl.testing.absltest", "random", _FOLDER, action="tempfile-folder"),
    Rule("absl.testing.absltest", "write", _FOLDER, action="tempfile-folder"),
)  # fmt: skip


# Packages whose modules note in the package that they have been loaded, and import others then
# (VTK's `on_vtk_module_init`): a rank would find it noted of those that it has yet to load.
TOGETHER = ("vtkmodules",)


def rule_for(module: str, event: str, detail: str, rules: tuple[Rule, ...] = RULES) -> Rule | None:
    """The first rule that fits, or None."""
    return next((rule for rule in rules if rule.fits(module, event, detail)), None)
