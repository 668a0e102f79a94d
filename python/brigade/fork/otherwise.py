"""What of a plan holds only where the program is given what the trial was given.

    otherwise(ranks, modules, read) -> Given

With other arguments, other files that it reads, or other variables, a program may set what a module
reads that it imports later, and a module may look at its arguments itself. The template leaves
those, and who imports them (imports/site/_brigade_otherwise.py). Pure, but for `read` and the files
of `inputs`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Callable, Optional

from brigade.fork.given import Given, Read
from brigade.fork.inputs import MOST, inputs
from brigade.fork.plan import Module
from brigade.fork.source.asking import asking, looks
from brigade.fork.source.choices import first_choice
from brigade.fork.variables import of_ranks
from brigade.trial.modules import RankModules, differing, place

_FIRST = 1  # line
_Choice = Callable[[str, bool], Optional[int]]  # (path of a source, by variables, too): its line
_INSTALLED = re.compile(r"/(?:site-packages|dist-packages|lib(?:64)?/python\d\.\d+)/")


def otherwise(
    ranks: list[RankModules],
    modules: Mapping[str, Module],
    texts: Mapping[str, bytes],
    read: Callable[[str], bytes],
) -> Given:
    """What holds for `modules`, of which those of Python have these `texts`, only where the program
    is given what it was given. `read(path)`: the text of another source, b"" where there is none.
    """
    found = Given()
    given = {rank.arguments for rank in ranks}
    found.arguments = given.pop() if len(given) == 1 else ""
    own = {name: text for name, text in texts.items() if is_own(modules[name].origin)}
    found.mine = {name: modules[name].origin for name in own}
    ask = asking({name: module.imports for name, module in modules.items()}, own)
    found.looking = [name for name, text in texts.items() if name in ask or looks(text)]
    choose = {name for name in ask if first_choice(own[name], module=True) is not None}
    late: dict[str, None] = {}
    varied: dict[str, None] = {}
    told: dict[str, None] = {}
    of_rank = differing(ranks)

    @cache
    def choice(path: str, variables: bool) -> int | None:
        text = read(path) if path else b""
        return first_choice(text, variables=variables) if text else _FIRST

    looked: list[dict[str, str] | None] = []
    for rank in ranks:
        begins = _begins_to_choose(rank, "", choice)
        late.update(_imported(rank, begins, modules))
        varies = _begins_to_choose(rank, "", choice, variables=True)
        varied.update(_imported(rank, varies, modules))
        told.update(_imported(rank, _told_from(rank, choose, choice), modules))
        if begins is not None:
            looked.append(inputs(rank))
        _note_variables(rank, found.variables, of_rank, modules, own)
        of_libraries = _reads_what_is_set(rank, modules)
        late.update(of_libraries)
        varied.update(of_libraries)
    found.late, found.varied, found.told = list(late), list(varied), list(told)
    if late:
        found.files = _together(looked)
    return found


def _together(looked: list[dict[str, str] | None]) -> dict[str, str] | None:
    files: dict[str, str] = {}
    for one in looked:
        if one is None:
            return None
        files.update(one)
    return files if len(files) <= MOST else None


def is_own(origin: str) -> bool:
    """Whether a module is the program's own: it comes neither with Python nor from site-packages.
    (Templates and trials say so, too: imports/site/_brigade_common.py.)"""
    return not _INSTALLED.search(origin)


def _begins_to_choose(
    rank: RankModules, who: str, choice: _Choice, *, variables: bool = False
) -> int | None:
    """The number of executions that had begun when `who` (a module; "": the program) imported
    something after its first choice; None if it did not."""
    for event in rank.events:
        if event.what != "asks" or event.module != who:
            continue
        file, [(_, line), *_] = place(event.detail)
        first = choice(os.path.join(rank.cwd, file) if file else "", variables)
        if first is not None and line >= first:
            return event.executed
    return None


def _told_from(rank: RankModules, choose: set[str], choice: _Choice) -> int | None:
    """When one of the modules that may choose by the arguments had them, first."""
    found = [
        begins if begins is not None else rank.ends.get(name, len(rank.executions))
        for name in {execution.module for execution in rank.executions} & choose
        for begins in [_begins_to_choose(rank, name, choice)]
    ]
    return min(found, default=None)


def _imported(
    rank: RankModules, begins: int | None, modules: Mapping[str, Module]
) -> dict[str, None]:
    if begins is None:
        return {}
    later = [execution.module for execution in rank.executions[begins:]]
    return {name: None for name in later if name in modules}


def _note_variables(
    rank: RankModules,
    variables: dict[str, Read],
    of_rank: set[str],
    modules: Mapping[str, Module],
    own: Collection[str],
) -> None:
    """Not of those that are a rank's in every job: who reads them is judged for that."""
    for event in rank.events:
        name, _, value = event.detail.partition("=")
        if event.what != "variable" or name in of_rank or of_ranks(name):
            continue
        known = variables.setdefault(name, Read(value))
        if event.module in modules and event.module not in known.by:
            known.by.append(event.module)
        if event.module in own or not event.module:
            known.chosen |= event.executed < len(rank.executions)


def _reads_what_is_set(rank: RankModules, modules: Mapping[str, Module]) -> dict[str, None]:
    """Modules whose libraries read a variable that the program sets, or may set as it has read it:
    what Python reads is compared when a module is shown, and of what libraries read only whether
    the trial's was another than at the start."""
    are_set = {
        event.detail.partition("=")[0]
        for event in rank.events
        if event.what in ("setenv", "variable") and not event.module
    }
    by_python = {
        (event.module, event.detail.partition("=")[0])
        for event in rank.events
        if event.what == "variable"
    }
    return {
        event.module: None
        for event in rank.events
        if event.what == "getenv" and event.module in modules
        for name in [event.detail.rstrip("!")]
        if name in are_set and (event.module, name) not in by_python
    }


def chosen_by_rank(rank: RankModules, of_rank: Collection[str]) -> str:
    """A variable that each rank has its own value of, and that the program itself read; or ""."""
    for event in rank.events:
        name = event.detail.partition("=")[0]
        if event.what == "variable" and not event.module and (name in of_rank or of_ranks(name)):
            return name
    return ""
