"""What of a plan holds only where the program is called as in the trial was.

    otherwise(ranks, modules, read) -> Otherwise -> `/.brigade/fork/plan`, "called"

With other arguments, or other variables that it reads, a program may set what a module reads that
it imports later, and a module may look at them itself. The template leaves those, and who imports
them (imports/site/_brigade_otherwise.py). Pure, but for `read`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Callable

from brigade.fork.arguments import first_doubt, looks
from brigade.fork.plan import Module, inside_of
from brigade.fork.rules import TOGETHER
from brigade.fork.variables import of_ranks
from brigade.trial.modules import RankModules, differing

_READERS = 8
# variables that no two jobs have the same value of: only whether they are there counts
_OF_JOBS = ("SLURM*", "PBS*", "LSB*", "FLUX*", "PALS*", "PM*", "OMPI*", "MPI*", "TMP*", "*PWD",
            "HOSTNAME", "*_PORT", "*_PID", "*_ID", "SSH*", "XDG*", "TERM*")  # fmt: skip


@dataclass
class Read:
    """Of a variable: `value`, what tells it from others ("": there was none); `after`: the first
    module that was imported after the program read it (None: it did not); by which modules."""

    value: str
    after: str | None = None
    by: list[str] = field(default_factory=list)


@dataclass
class Otherwise:
    """`arguments`: what tells them from others. `late`: imported when the program may have looked
    at them; `looking`: modules that may do so themselves."""

    arguments: str = ""
    late: list[str] = field(default_factory=list)
    looking: list[str] = field(default_factory=list)
    variables: dict[str, Read] = field(default_factory=dict)

    def packed(self, modules: list[Module]) -> dict[str, Any]:
        """For the template: modules are numbers, `imports` those of each."""
        number = {module.name: i for i, module in enumerate(modules)}
        imports = [[number[name] for name in module.imports] for module in modules]
        for package in TOGETHER:
            inside = [number[name] for name in inside_of(package, number)]
            for one in inside:
                imports[one] += inside
        return {
            "names": list(number),
            "imports": imports,
            "arguments": self.arguments,
            "late": [number[name] for name in self.late],
            "looking": [number[name] for name in self.looking],
            "variables": {
                name: (
                    read.value,
                    any(fnmatchcase(name, pattern) for pattern in _OF_JOBS),
                    number[read.after] if read.after is not None else len(modules),
                    [number[by] for by in read.by],
                )
                for name, read in self.variables.items()
            },
        }


def otherwise(
    ranks: Iterable[RankModules], modules: Mapping[str, Module], read: Callable[[str], bytes]
) -> Otherwise:
    """What holds for `modules` only where the program is called as it was. `read(path)` gives the
    text of a source, b"" where there is none."""
    found = Otherwise()
    ranks = list(ranks)
    own = differing(ranks)
    told = {rank.arguments for rank in ranks}
    found.arguments = told.pop() if len(told) == 1 else ""
    late: dict[str, None] = {}
    for rank in ranks:
        late.update(dict.fromkeys(_late(rank, read)))
        _note_variables(rank, modules, found.variables, own)
    found.late = [name for name in late if name in modules]
    sources = {m.name: m.origin for m in modules.values() if m.origin.endswith(".py")}
    with ThreadPoolExecutor(_READERS) as pool:  # a shared file system takes its time for each
        texts = pool.map(read, sources.values())
        found.looking = [name for name, text in zip(sources, texts) if looks(text)]
    return found


def _late(rank: RankModules, read: Callable[[str], bytes]) -> list[str]:
    script = rank.main or rank.script
    doubt = first_doubt(read(script)) if script else 1
    if doubt is None:
        return []
    places = [(one.executed, int(one.detail)) for one in rank.events if one.what == "asks"]
    late: list[str] = []
    for (begin, line), (end, _) in zip(places, [*places[1:], (len(rank.executions), 0)]):
        if line >= doubt:
            late += [execution.module for execution in rank.executions[begin:end]]
    return late


def _note_variables(
    rank: RankModules, modules: Mapping[str, Module], variables: dict[str, Read], own: set[str]
) -> None:
    """Not of those that are a rank's `own` in every job: who reads them is judged for that."""
    for event in rank.events:
        name, _, value = event.detail.partition("=")
        if event.what != "variable" or name in own or of_ranks(name):
            continue
        known = variables.setdefault(name, Read(value))
        if event.module in modules and event.module not in known.by:
            known.by.append(event.module)
        elif not event.module and known.after is None:
            later = (one.module for one in rank.executions[event.executed :])
            known.after = next((one for one in later if one in modules), None)
