"""MPICH's mpiexec (hydra), and its relatives: Intel MPI, MVAPICH, ParaStation; and that of HPE
Cray's PALS, which has hydra's options and more."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from brigade.launch import here
from brigade.launch.base import count, library_beside, numbers_of
from brigade.launch.mpmd import MpmdLaunch
from brigade.launch.options import Option

_HOST_GROUP = "hosts-group"  # of Intel MPI: node[1-4,7],login
# From src/pm/hydra/mpiexec/options.c of MPICH 4.0 to 5.0, and what Intel MPI and PALS (the last
# line) add to it: how many words follow an option.
_ARITY = dict.fromkeys(
    (
        "arch bind-to binding bootstrap bootstrap-exec bootstrap-exec-args branch-count configfile "
        "demux envexcl envlist errfile errfile-pattern f g gdba genvexcl genvlist gpath "
        "gpu-subdevs-per-proc gpus-per-proc grr gtool gtoolfile gumask gwdir host hostfile "
        "hostlist hosts iface launcher launcher-exec localhost machine machinefile machinelist "
        "machines map-by membind memory-alloc-kinds n nameserver np order-nodes outfile "
        "outfile-pattern output-from path perhost pmi-connect ppn prepend-pattern rankmap rmk s "
        "soft tmpdir topolib umask usize wdir "
        "cpu-bind d depth e exclude-hosts gpu-bind mem-bind o pmi procinfo-file rlimits"
    ).split(),
    1,
) | {_HOST_GROUP: 1, "genv": 2, "env": 2}
_HOST_FILES = ("f", "hostfile", "machinefile", "machine")  # the last: of Intel MPI; else a list
_HOST_FILE_VARIABLES = ("HYDRA_HOST_FILE", "PBS_NODEFILE", "COBALT_NODEFILE", "PE_HOSTFILE")
_HOST_LISTS = ("hosts", "host", "hostlist", "machine", "machines", "machinelist")
_KEPT = frozenset({
    "genv", "genvlist", "genvnone", "genvall", *_HOST_LISTS, *_HOST_FILES, "wdir", "gwdir",
    "gpath", "gumask", "tmpdir", "launcher", "launcher-exec", "bootstrap-exec-args", "bootstrap",
    "bootstrap-exec", "rmk", "iface", "localhost", "disable-hostname-propagation", "pmi-port",
    "skip-launch-node", _HOST_GROUP,
})  # fmt: skip
# Those that name machines in another way, or whoever starts processes there.
_WHERE = frozenset({
    *_HOST_FILES, "bootstrap", "bootstrap-exec", "launcher", "launcher-exec", "localhost", "rmk",
    "skip-launch-node", _HOST_GROUP,
})  # fmt: skip


class MpichLaunch(MpmdLaunch):
    """`mpiexec [options] program [: [options] program]…`."""

    kind = "mpiexec"

    arity = _ARITY
    pairs = ("genv", "env")
    kept = _KEPT
    files = ("configfile",)
    hosts = ("host",)  # Intel MPI's

    @property
    def ranks(self) -> int | None:
        total = 0
        for options, _ in self.contexts:
            numbers = [count(o.values[0]) for o in options if o.name in ("n", "np")]
            if not numbers or numbers[-1] is None:
                return None
            total += numbers[-1]
        return total

    def _own_step(self) -> list[str]:
        return [self.launcher, *self._kept()]

    def is_told_of_others(self, options: Sequence[Option]) -> bool:
        named = [option.values[0] for option in options if option.name in _HOST_LISTS]
        others = here.names_others(named) or any(option.name in _WHERE for option in options)
        return others or here.hydra_is_told(os.environ)

    def launched_per_node(self, tool: list[str]) -> list[str]:
        return [*self._own_step(), "-ppn", "1", "-n", str(len(self._hosts()) or 1), *tool]

    def _hosts(self) -> list[str]:
        """The hosts of the job, in the order given, each once."""
        hosts: list[str] = []
        for option in (option for options, _ in self.contexts for option in options):
            named = _read_hosts(option.values[0]) if option.name in _HOST_FILES else []
            if not named and option.name in _HOST_LISTS:
                named = option.values[0].split(",")
            elif option.name == _HOST_GROUP:
                named = _read_group(option.values[0])
            hosts += named
        for variable in _HOST_FILE_VARIABLES:
            hosts = hosts or _read_hosts(os.environ.get(variable, ""))
        hosts = hosts or os.environ.get("LSB_MCPU_HOSTS", "").split()[::2]  # LSF: host slots …
        if not hosts and os.environ.get("SLURM_JOB_NUM_NODES", "").isdigit():
            return [str(node) for node in range(int(os.environ["SLURM_JOB_NUM_NODES"]))]
        return list(dict.fromkeys(host.split(":")[0].strip() for host in hosts if host.strip()))

    def launched_mpi_library(self, recorded: str | None) -> str:
        return library_beside(self.executable, ["libmpi.so.12", "libmpich.so.12", "libmpi.so"])


def _read_group(text: str) -> list[str]:
    """The hosts of a group, whose numbers stand in brackets. No zero is kept before a number."""
    hosts: list[str] = []
    for name, numbers in re.findall(r"([^,\[\]]+)(?:\[([^\]]*)\])?", text):
        hosts += [f"{name}{number}" for number in numbers_of(numbers)] or [name]
    return hosts


def _read_hosts(path: str) -> list[str]:
    """Host names of a hydra host file: one a line, `name:slots`, comments with '#'."""
    try:
        with open(path, encoding="utf-8") as lines:
            names = [line.split("#")[0].split() for line in lines]
    except OSError:
        return []
    return [words[0] for words in names if words]
