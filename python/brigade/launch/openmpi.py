"""Open MPI's mpirun (also mpiexec, orterun, prterun), versions 3 to 5."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from brigade.errors import UsageError
from brigade.launch import here
from brigade.launch.base import count, library_beside
from brigade.launch.mpmd import MpmdLaunch
from brigade.launch.options import Option

# From `mpirun --help full` of Open MPI 4.1 and PRRTE's schizo_ompi.c for 5.0: how many words follow
# an option.
_ARITY = dict.fromkeys(
    (
        "am amca app app-pmix-prefix append-env arch bind-to bindto c cartofile cf cpu-list "
        "cpu-set cpus-per-proc cpus-per-rank debugger default-hostfile display display-topo dvm "
        "dvm-uri file forward-signals gpu-support H hnp host hostfile initial-errhandler "
        "launch-agent machinefile map-by mapby max-restarts max-vm-size memory-alloc-kinds n N "
        "np npernode npersocket ompi-server output output-directory output-filename path "
        "personality pmixmca-file "
        "ppr prefix preload-files prepend-env pset rank-by rankby rankfile "
        "report-events report-pid report-uri rf rtos runtime-options set-env spawn-timeout "
        "stdin stream-buffering timeout tmpdir tune unset-env wd wdir with-ft x xml-file xterm"
    ).split(),
    1,
) | dict.fromkeys(("mca", "gmca", "omca", "gomca", "prtemca", "pmixmca"), 2)
_KEPT = frozenset({
    "am", "default-hostfile", "H", "host", "hostfile", "machinefile", "launch-agent", "path",
    "prefix", "noprefix", "tune", "wd", "wdir", "x", "mca", "gmca", "omca", "gomca", "prtemca",
    "pmixmca", "allow-run-as-root", "nolocal", "personality", "do-not-resolve", "dvm", "dvm-uri",
    "tmpdir", "amca", "set-env", "unset-env", "prepend-env", "append-env",
})  # fmt: skip
# Options of one context alone.
_OF_ONE_CONTEXT = frozenset({
    "c", "H", "host", "hostfile", "machinefile", "n", "np", "path", "prefix", "noprefix",
    "preload-binary", "preload-files", "s", "wd", "wdir", "x",
})  # fmt: skip
# Those that may name machines, or files that do. Parameters are looked at one by one.
_WHERE = frozenset({
    "am", "amca", "default-hostfile", "display-topo", "dvm", "dvm-uri", "hnp", "hostfile",
    "launch-agent", "machinefile", "nolocal", "personality", "rankfile", "rf", "tune",
})  # fmt: skip
_PARAMETERS = frozenset({"mca", "gmca", "omca", "gomca", "prtemca", "pmixmca"})
_MAPPINGS = frozenset({"map-by", "mapby", "rank-by", "rankby"})


class OpenMpiLaunch(MpmdLaunch):
    """`mpirun [options] program [: [options] program]…`."""

    kind = "mpirun"
    searches_last = "whole"

    arity = _ARITY
    kept = _KEPT
    files = ("app", "file")
    hosts = ("H", "host")

    def __init__(self, words: list[str], executable: str) -> None:
        super().__init__(words, executable)
        named = {option.name for options, _ in self.contexts for option in options}
        if named & {"s", "preload-binary"}:
            raise UsageError("mpirun --preload-binary copies the program, and starts the copy")

    def ignored_beside_file(self) -> Collection[str]:
        behind = os.path.basename(os.path.realpath(self.executable))
        return _OF_ONE_CONTEXT if behind.startswith("orterun") else ()  # until Open MPI 4

    @property
    def ranks(self) -> int | None:
        counts = [
            count(option.values[0])
            for options, _ in self.contexts
            for option in options
            if option.name in ("n", "np", "c")
        ]
        known = [number for number in counts if number is not None]
        return sum(known) if len(known) == len(self.contexts) else None

    def _own_step(self) -> list[str]:
        return [self.launcher, *self._kept(), "--oversubscribe"]

    def is_told_of_others(self, options: Sequence[Option]) -> bool:
        named = any(map(_names_others, options))
        return named or here.open_mpi_is_told(self.executable, os.environ)

    def launched_per_node(self, tool: list[str]) -> list[str]:
        return [*self._own_step(), "--map-by", "ppr:1:node", "--bind-to", "none", *tool]

    def launched_mpi_library(self, recorded: str | None) -> str:
        return library_beside(self.executable, ["libmpi.so.40", "libmpi.so"])


def _names_others(option: Option) -> bool:
    """Whether an option may name another machine than this."""
    value = next(iter(option.values), "")
    if option.name in OpenMpiLaunch.hosts:
        return here.names_others([value])
    if option.name in _PARAMETERS:
        return here.says_where(value)
    if option.name in _MAPPINGS:
        return any(word in value for word in ("file", "seq"))
    return option.name in _WHERE
