"""Open MPI's mpirun (also mpiexec, orterun, prterun), versions 3 to 5."""

from __future__ import annotations

from brigade.launch.base import Launch, count, library_beside
from brigade.launch.options import Option, flatten, split_contexts, split_words

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
# What our own steps keep of the user's options: where to run and how to get there.
_KEPT = frozenset({
    "am", "default-hostfile", "H", "host", "hostfile", "machinefile", "launch-agent", "path",
    "prefix", "noprefix", "tune", "wd", "wdir", "x", "mca", "gmca", "omca", "prtemca", "pmixmca",
    "allow-run-as-root", "nolocal", "personality", "do-not-resolve",
})  # fmt: skip


class OpenMpiLaunch(Launch):
    """`mpirun [options] program [: [options] program]…`."""

    kind = "mpirun"

    def __init__(self, words: list[str], executable: str) -> None:
        super().__init__(words)
        self.mpirun = words[0]
        self._executable = executable
        self.contexts: list[tuple[list[Option], list[str]]] = [
            split_words(context, _ARITY) for context in split_contexts(words[1:])
        ]

    @property
    def program(self) -> list[str]:
        return self.contexts[0][1]

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

    def _kept(self) -> list[str]:
        return flatten(option for option in self.contexts[0][0] if option.name in _KEPT)

    def _rebuild(self, prefix: list[str]) -> list[str]:
        words = [self.mpirun]
        for at, (options, program) in enumerate(self.contexts):
            words += [":"] if at else []
            words += [*flatten(options), *prefix, *program]
        return words

    def job(self, prefix: list[str]) -> list[str]:
        return self._rebuild(prefix)

    def trial(self, ranks: int, prefix: list[str]) -> list[str]:
        share = max(1, min(ranks, self.ranks or ranks) // len(self.contexts))
        words = [self.mpirun, *self._kept(), "--oversubscribe"]
        for at, (_, program) in enumerate(self.contexts):
            words += [":"] if at else []
            words += ["-n", str(share), *prefix, *program]
        return words

    def per_node(self, tool: list[str]) -> list[str]:
        return [
            self.mpirun, *self._kept(), "--map-by", "ppr:1:node", "--bind-to", "none",
            "--oversubscribe", *tool,
        ]  # fmt: skip

    def mpi_library(self, recorded: str | None) -> str:
        return library_beside(self._executable, ["libmpi.so.40", "libmpi.so"])
