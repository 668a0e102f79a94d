"""Open MPI's mpirun (also mpiexec, orterun, prterun), versions 3 to 5."""

from __future__ import annotations

from brigade.launch.base import count, library_beside
from brigade.launch.mpmd import MpmdLaunch

# From `mpirun --help full` of Open MPI 4.1 and 5.0: how many words follow an option.
_ARITY = dict.fromkeys(
    (
        "am app bind-to c np n N cf cartofile cpu-list cpu-set cpus-per-proc "
        "cpus-per-rank debugger default-hostfile hnp H host hostfile launch-agent "
        "machinefile map-by max-restarts max-vm-size npernode npersocket ompi-server "
        "output-filename path personality ppr prefix preload-files rank-by report-events "
        "report-pid report-uri rf rankfile stdin timeout tune wd wdir x xml-file xterm "
        "output dvm-uri runtime-options display pmixmca-file"
    ).split(),
    1,
) | {"mca": 2, "gmca": 2, "omca": 2, "prtemca": 2, "pmixmca": 2}
_KEPT = frozenset({
    "am", "default-hostfile", "H", "host", "hostfile", "machinefile", "launch-agent", "path",
    "prefix", "noprefix", "tune", "wd", "wdir", "x", "mca", "gmca", "omca", "prtemca", "pmixmca",
    "allow-run-as-root", "nolocal", "personality", "do-not-resolve",
})  # fmt: skip


class OpenMpiLaunch(MpmdLaunch):
    """`mpirun [options] program [: [options] program]…`."""

    kind = "mpirun"

    arity = _ARITY
    kept = _KEPT

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

    def per_node(self, tool: list[str]) -> list[str]:
        return [*self._own_step(), "--map-by", "ppr:1:node", "--bind-to", "none", *tool]

    def mpi_library(self, recorded: str | None) -> str:
        return library_beside(self.executable, ["libmpi.so.40", "libmpi.so"])
