"""The same launcher command with another number of ranks."""

from __future__ import annotations

from brigade.errors import UsageError
from brigade.launch import parse
from brigade.launch.base import Launch, count
from brigade.launch.mpmd import MpmdLaunch
from brigade.launch.options import Option, flatten
from brigade.launch.srun import SrunLaunch

_SRUN_SHAPE = frozenset({"ntasks", "ntasks-per-node"})
_COUNTS = frozenset({"n", "np", "c", "N", "ppn", "perhost", "npernode"})


def resized(words: list[str], ranks: int) -> list[str]:
    """`words` (a launcher and a program, or a program alone) with `ranks` ranks.

    srun gets no more nodes than ranks; options that fix ranks a node are dropped. Raises UsageError
    for jobs of several programs.
    """
    launch = parse(words)
    if len(launch.programs) > 1 or isinstance(launch, SrunLaunch) and launch.entries is not None:
        raise UsageError("a job of several programs has no width that could be changed")
    if isinstance(launch, SrunLaunch):
        return _srun(launch, ranks)
    if isinstance(launch, MpmdLaunch):
        options, program = launch.contexts[0]
        kept = [option for option in options if option.name not in _COUNTS]
        return [launch.launcher, *flatten(kept), "-n", str(ranks), *program]
    return parse(words, ranks).job([])


def _srun(launch: SrunLaunch, ranks: int) -> list[str]:
    kept = []
    for option in launch.options:
        if option.name in _SRUN_SHAPE:
            continue
        nodes = count(option.values[0]) if option.name == "nodes" and option.values else None
        if nodes is not None and nodes > ranks:
            option = Option("nodes", (str(ranks),), ("--nodes", str(ranks)))
        kept.append(option)
    return [launch.srun, *flatten(kept), "--ntasks", str(ranks), *launch.program]


def widths_of(launch: Launch) -> list[int]:
    """Widths to look at, if the user names none: 1 and doubled, at most four, up to the job's."""
    most = launch.ranks or 4
    found = [most]
    while found[0] > 1 and len(found) < 4:
        found.insert(0, max(1, found[0] // 2))
    return found
