"""Where a program that is no Python can be stopped, to be forked for each rank of a node.

    trial's records -> first_programs -> of_programs -> ProgramPlan -> meta["fork"]

`main`: before main, with all constructors done once, if nothing that they did is one rank's own;
`preinit`: before any constructor, when only the libraries are loaded and relocated; `plain`: not at
all. The reasons are in words. Whoever is not sure says `preinit`, and whoever cannot know, `plain`.
Before a constructor nobody can stop where another library's come first of all, as those of
libpthread before glibc 2.34: then it is `plain`, too.

What must stay true: what a rule does again in Python (`_brigade_again.py`) is not done for other
programs, so a rule with an action is none here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from brigade.elf.file import INITFIRST, NotElf, read
from brigade.fork.libraries import is_libc
from brigade.fork.rules import rule_for
from brigade.fork.words import event_words, variable_words
from brigade.trial.invocation import invocation, is_python
from brigade.trial.modules import Event, RankModules, differing, first_programs, of_process
from brigade.trial.record import Process, Trial

VERSION = 1
FEWEST = 8  # objects: below, forking costs what loading does
_NO_VARIABLES = "looks at no variable"
_MAIN = "main"  # the event that says that main is next


@dataclass
class ProgramPlan:
    """Where the ranks' program is stopped. `why`: why not before main, or why not at all. `seen`:
    what its constructors did, and why it is harmless or "". `behind`: as of a `Plan`."""

    kind: str
    why: str = ""
    program: str = ""
    objects: int = 0  # that are loaded before main
    ranks: int = 0
    seen: list[tuple[str, str, str]] = field(default_factory=list)  # what, detail, why harmless
    behind: str = ""

    def knows(self, name: str) -> bool:
        """No module, as none is imported."""
        return False

    def packed(self) -> None:
        """Nothing for the template: it imports nothing."""

    def as_json(self) -> dict[str, Any]:
        """For the description of an image; `from_json` reads it."""
        return {
            "version": VERSION,
            "kind": self.kind,
            "why": self.why,
            "program": self.program,
            "objects": self.objects,
            "ranks": self.ranks,
            "behind": self.behind,
            "seen": [list(one) for one in self.seen],
        }


def from_json(value: Mapping[str, Any]) -> ProgramPlan:
    """The plan that an image's description holds."""
    seen = [(what, detail, why) for what, detail, why in value["seen"]]
    return ProgramPlan(
        value["kind"], value["why"], value["program"], value["objects"], value["ranks"], seen,
        value["behind"],
    )  # fmt: skip


def of_programs(
    trial: Trial,
    uncertain: Callable[[str], str] | None = None,
    starts_first: Callable[[str], bool] | None = None,
) -> ProgramPlan:
    """The plan of a trial. `uncertain(path of an object)` tells what of it no trial can see, or
    "": `reads_environment`; `starts_first`, whether its constructors run before all others'."""
    uncertain = uncertain or reads_environment
    starts_first = starts_first or asks_to_be_first
    first = first_programs(trial)
    if not first:
        return ProgramPlan("plain", "the trial recorded no process")
    ranks = [of_process(rank, first[rank]) for rank in sorted(first)]
    loaded = {rank: _loaded(process) for rank, process in first.items()}
    example = first[ranks[0].rank]
    plan = ProgramPlan(
        "plain", "", example.exe, min(len(paths) for paths in loaded.values()), len(ranks)
    )
    plan.why = _why_plain(ranks, example, plan.objects)
    if plan.why:
        return plan
    plan.kind = "preinit"
    plan.why = _why_preinit(ranks, plan)
    for path in [example.exe, *loaded[ranks[0].rank]]:
        plan.why = plan.why or uncertain(path)
    if not plan.why:
        plan.kind = "main"
        return plan
    first_of_all = next(filter(starts_first, loaded[ranks[0].rank]), "")
    if first_of_all:
        plan.kind = "plain"
        plan.why += f"; and constructors of {os.path.basename(first_of_all)} run before all others"
    return plan


def _loaded(process: Process) -> list[str]:
    """The objects that a process loads before main."""
    records = sorted(process.records, key=lambda r: r.time_ns)
    before = takewhile(lambda r: (r.kind, r.path) != ("event", _MAIN), records)
    return list(dict.fromkeys(r.path for r in before if r.kind == "load"))


def _why_plain(ranks: list[RankModules], example: Process, objects: int) -> str:
    for rank in ranks:
        if not rank.watched:
            return (
                f"rank {rank.rank} of the trial was not watched: its program is static, or for"
                " another C library"
            )
        if not any(event.what == _MAIN for event in rank.events):
            return f"rank {rank.rank} of the trial did not get as far as main"
    if objects < FEWEST and is_python(example.exe):
        return _why_unseen(example.argv)
    if objects < FEWEST:
        return f"it loads {objects} libraries only, which takes no longer than a fork"
    return ""


def _why_unseen(argv: list[str]) -> str:
    """Why nothing was seen of what a Python imports."""
    letters = {letter for letter, _ in invocation(argv).options} if argv else set()
    for letter, why in (("I", _NO_VARIABLES), ("E", _NO_VARIABLES), ("S", "imports no `site`")):
        if letter in letters:
            return f"its Python, started with -{letter}, {why}, so nothing can be imported for it"
    return "its Python did not import what PYTHONPATH names, so nothing can be imported for it"


def _why_preinit(ranks: list[RankModules], plan: ProgramPlan) -> str:
    """What speaks against sharing what constructors did; notes all of it in `plan.seen`."""
    names = differing(ranks)
    why = ""
    for rank in ranks:
        for event in takewhile(lambda event: event.what != _MAIN, rank.events):
            against = _against(event, names)
            if event.what != "getenv" or against:
                one = (event.what, event.detail, "" if against else _harmless(event))
                plan.seen += [one] if one not in plan.seen else []
            if against and not why:
                why = f"a constructor {against}"
    return why


def _harmless(event: Event) -> str:
    rule = rule_for("", event.what, event.detail)
    return rule.why if rule and rule.modules == "*" and not rule.action else ""


def _against(event: Event, names: set[str]) -> str:
    if event.what == "getenv":
        return variable_words(event.detail, names) or ""
    return "" if _harmless(event) else event_words(event)


def asks_to_be_first(path: str) -> bool:
    """Whether an object's constructors run before those of all that is loaded earlier."""
    try:
        return bool(read(path).flags_1 & INITFIRST)
    except (OSError, NotElf):
        return False  # it was loaded, so that what a template finds is the same


def reads_environment(path: str) -> str:
    """Why what the constructors of an object read of the environment is not known: they may read
    `environ` itself, which no hook sees."""
    name = path.rpartition("/")[2]
    if is_libc(path):
        return ""
    try:
        file = read(path)
        if file.constructors > 1 and file.may_name("environ"):  # the first is the compiler's own
            return f"constructors of {name} may read all of the environment"
    except (OSError, NotElf):
        return f"{name} could not be looked at"
    return ""
