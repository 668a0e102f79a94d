"""Which modules one process of a node can import for all its ranks, and why not the others.

    trial's records -> rank_modules -> make -> Plan -> meta["fork"], /.brigade/fork/plan
                                         pinned(what meta["fork"] says, --fork-warm, --fork-leave)

A module is warm if every rank of the trial executed it once, from the same file, and nothing
speaks against it; otherwise it is left, for a reason in words. Pure: no file is looked at.

What must stay true: a warm module never imports a left one, nor lies in a left package, because to
import it would import that one too. Warm modules stand in the order in which the first rank's
executions began. Whoever is not sure says "left".
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from brigade.errors import UsageError
from brigade.fork.environment import Environment
from brigade.fork.libraries import note
from brigade.fork.program import ProgramPlan, of_programs
from brigade.fork.rules import RULES, TOGETHER, Rule, rule_for
from brigade.fork.words import event_words
from brigade.trial.modules import (
    Event,
    RankModules,
    behind,
    count_programs,
    differing,
    rank_modules,
)
from brigade.trial.programs import is_interpreter
from brigade.trial.record import Trial

VERSION = 1
# what the program does itself, after which a template would not be where the program is
_ENDS = frozenset(["thread", "child", "socket", "output", "device", "write", "folder"])
_MACHINERY = "imports"  # by whomever: what follows goes through what was put there
_PYTHON_S_OWN = frozenset(["__main__", "sitecustomize", "usercustomize"])


class Left(NamedTuple):
    """Why a module is left. `through`: the left module that it imports, "" if it is the cause.
    `fixed`: not even `--fork-warm` can help."""

    why: str
    through: str = ""
    fixed: bool = False


@dataclass
class Module:
    """A module of the trial. `imports`: what it, or the package around it, asked for, and whom it
    `follows`: who loaded a library first that it brings."""

    name: str
    origin: str
    imports: list[str] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)  # that let something pass
    follows: dict[str, str] = field(default_factory=dict)  # module -> library


@dataclass
class Plan:
    """What is warm and what is left. `modules`: all, in order; those without a place come last.
    `behind`: what the program is known by, if wrappers stand in front of it (trial.modules)."""

    modules: list[Module]
    left: dict[str, Left]
    ranks: int = 0
    behind: str = ""

    @property
    def warm(self) -> list[Module]:
        return [module for module in self.modules if module.name not in self.left]

    @property
    def again(self) -> list[tuple[str, str]]:
        """What a rank does again: (module, action)."""
        return [
            (module.name, action)
            for module in self.modules
            for action in dict.fromkeys(r.action for r in module.rules if r.action)
        ]

    def knows(self, name: str) -> bool:
        """Whether the trial imported a module."""
        return any(module.name == name for module in self.modules)

    def chain(self, name: str) -> list[str]:
        """A left module, the left one that it imports, and so on to the cause."""
        chain = [name]
        while self.left[chain[-1]].through:
            chain.append(self.left[chain[-1]].through)
        return chain

    def as_json(self) -> dict[str, Any]:
        """For the description of an image; `from_json` reads it."""
        number = {module.name: i for i, module in enumerate(self.modules)}
        return {
            "version": VERSION,
            "kind": "python",
            "ranks": self.ranks,
            "behind": self.behind,
            "warm": len(self.warm),
            "left": {name: list(left) for name, left in self.left.items()},
            "modules": [
                [module.name, module.origin, sorted({number[name] for name in module.imports})]
                for module in self.modules
            ],
            "rules": {
                module.name: [[r.event, r.why, r.action] for r in module.rules]
                for module in self.modules
                if module.rules
            },
            "follows": {module.name: module.follows for module in self.modules if module.follows},
        }

    def packed(self) -> bytes:
        """`/.brigade/fork/plan`, for the template."""
        others, warm = [], 0
        for module in self.modules:
            left = self.left.get(module.name)
            warm += left is None
            if left and not left.fixed:
                others.append((warm, module.name, module.origin))
        names: dict[str, list[tuple[str, tuple[str, ...]]]]
        names = {"environ": [], "thread": [], "library": []}
        for module in self.modules:
            for rule in module.rules:
                if rule.names:
                    names[rule.event].append((module.name, rule.names))
        plan = {
            "version": VERSION,
            "warm": [(module.name, module.origin) for module in self.warm],
            "left": {name: left.why for name, left in self.left.items()},
            "again": self.again,
            "others": others,
            "names": names,
        }
        return marshal.dumps(plan, 2)


def of_trial(trial: Trial) -> Plan | ProgramPlan | None:
    """The plan of a trial, of Python's modules if there was any; None if it was not recorded for
    one."""
    if not any(record.kind == "watch" for _, record in trial.records()):
        return None
    ranks = rank_modules(trial)
    note(ranks)
    plan = make(ranks, count_programs(trial)) if ranks else of_programs(trial)
    plan.behind = behind(trial)
    if (
        isinstance(plan, ProgramPlan)
        and plan.kind == "plain"
        and any(is_interpreter(process) for process in trial.processes)
    ):
        plan.why = "what is started is no Python, and no wrapper that is known, but starts one"
    return plan


def make(
    ranks: list[RankModules], all_ranks: int | None = None, rules: tuple[Rule, ...] = RULES
) -> Plan:
    """The plan of a trial. `all_ranks`: how many there were, with or without Python."""
    if not ranks:
        return Plan([], {})
    modules = _modules(ranks)
    own = _not_in_all(ranks, modules, len(ranks) if all_ranks is None else all_ranks)
    names = differing(ranks)
    for rank in ranks:
        environment = Environment(rank, names, rules)
        for event in rank.events:
            if event.module in modules:
                _judge(modules[event.module], event, environment, rules, own)
        _end(rank, own, rules)
        _after_calls(rank, modules, own, rules)
    left = _spread(own, modules)
    return Plan(list(modules.values()), left, len(ranks))


def _modules(ranks: list[RankModules]) -> dict[str, Module]:
    """All modules, in the order of the first rank's executions, and what each asks for."""
    modules: dict[str, Module] = {}
    for rank in ranks:
        for execution in rank.executions:
            modules.setdefault(execution.module, Module(execution.module, execution.origin))
    for rank in ranks:
        for by, name in rank.asked:
            if by in modules and name in modules and by != name:
                modules[by].imports.append(name)
        for (by, name), library in rank.follows.items():
            if by in modules and name in modules and name not in modules[by].imports:
                modules[by].imports.append(name)
                modules[by].follows[name] = library
    for name, module in modules.items():
        parent = name.rpartition(".")[0]
        if parent in modules:
            module.imports.append(parent)
        module.imports = sorted(set(module.imports))
    return modules


def _not_in_all(
    ranks: list[RankModules], modules: Mapping[str, Module], all_ranks: int
) -> dict[str, Left]:
    """Modules that were not imported in the same way by every rank."""
    left: dict[str, Left] = {}
    unwatched = [rank.rank for rank in ranks if not rank.watched]
    for name, module in modules.items():
        if unwatched:
            left[name] = Left(f"rank {unwatched[0]} of the trial was not watched", fixed=True)
        elif all_ranks > len(ranks):
            left[name] = Left("not every rank of the trial was a Python program", fixed=True)
        elif name in _PYTHON_S_OWN:
            left[name] = Left("Python itself imports it when it starts", fixed=True)
        elif (
            module.origin
            and not module.origin.startswith("/")
            and (module.origin not in ("built-in", "frozen"))
        ):
            left[name] = Left("it does not come from a file", fixed=True)
    for rank in ranks:
        origins: dict[str, str] = {}
        failed: set[str] = set()  # the last time: whoever asks next has it executed once more
        for execution in rank.executions:
            name = execution.module
            again = name in origins and name not in failed
            (failed.add if execution.failed else failed.discard)(name)
            if again:  # who has done that would do it in the template
                by = execution.by if execution.by in modules else ""
                why = f"it imports {name} once more" if by else "it was imported more than once"
                left.setdefault(by or name, Left(why, fixed=True))
            elif execution.origin != modules[name].origin:
                why = f"it was {execution.origin} for rank {rank.rank}"
                left.setdefault(name, Left(why, fixed=True))
            origins[name] = execution.origin
        for name in modules:
            if name not in origins:
                why = f"rank {rank.rank} of the trial did not import it"
                left.setdefault(name, Left(why, fixed=True))
    return left


def _judge(
    module: Module,
    event: Event,
    environment: Environment,
    rules: tuple[Rule, ...],
    own: dict[str, Left],
) -> None:
    """Leave the module because of what it did, unless a rule says that it may."""
    why = None
    if event.what in ("setenv", "called"):
        return
    rule = None
    if event.what != "getenv":
        rule = rule_for(module.name, event.what, event.detail, rules)
    if event.what == "getenv":
        why = environment.read(module, event.detail)
    elif event.what == "environ":
        why = environment.read_all(module, event.detail)
    elif rule is None:
        why = event_words(event)
    elif event.what == "library":
        why = environment.read_unseen(rule.names)
    if rule and rule not in module.rules:
        module.rules.append(rule)
    if why:
        own.setdefault(module.name, Left(why))


def _end(rank: RankModules, own: dict[str, Left], rules: tuple[Rule, ...]) -> None:
    """After what the program does itself, or anyone to the import system, nothing is certain."""
    ends = [
        event
        for event in rank.events
        if (event.what == _MACHINERY or not event.module and event.what in _ENDS)
        and not _is_harmless(event, rules)
    ]
    if not ends:
        return
    first = min(ends, key=lambda event: event.executed)
    for execution in rank.executions[first.executed :]:
        why = f"before it {first.module or 'the program itself'} {event_words(first)}"
        own.setdefault(execution.module, Left(why))


def _after_calls(
    rank: RankModules, modules: Mapping[str, Module], own: dict[str, Left], rules: tuple[Rule, ...]
) -> None:
    """What the program called, or changed, between its imports may have set what a later import
    reads; a template would import that without."""
    importers = _importers(modules.values())
    done: set[str] = set()
    for event in rank.events:
        package = event.detail.partition(".")[0]
        if event.module or event.what != "called" or package in done:
            continue
        if _is_harmless(event, rules):
            continue
        done.add(package)
        inside = list(modules) if package in ("*", "builtins") else _inside(package, modules)
        # of what was there before the first module, it is known only who asked for it
        inside += [by for by, name in rank.asked if by in modules and _is_in(package, name)]
        later = {execution.module for execution in rank.executions[event.executed :]}
        reached = _reached(inside, importers)
        for name in reached & later:  # those that import only such as come later follow from them
            if name not in inside and not reached.intersection(modules[name].imports) - later:
                continue
            doing = f"calls or changes {event.detail}" if package != "*" else "has done very much"
            own.setdefault(name, Left(f"before it the program itself {doing}"))


def _reached(front: Iterable[str], importers: Mapping[str, list[str]]) -> set[str]:
    """Those modules and all that import them, whatever lies between."""
    reached, following = set(front), list(front)
    while following:
        new = set(importers.get(following.pop(), ())) - reached
        reached |= new
        following += new
    return reached


def _importers(modules: Iterable[Module]) -> dict[str, list[str]]:
    importers: dict[str, list[str]] = {}
    for module in modules:
        for name in module.imports:
            importers.setdefault(name, []).append(module.name)
    return importers


def _is_harmless(event: Event, rules: tuple[Rule, ...]) -> bool:
    """Whether a rule for all modules fits: the program is none, and has none of its own."""
    rule = rule_for("", event.what, event.detail, rules)
    return rule is not None and rule.modules == "*"


def _spread(own: Mapping[str, Left], modules: Mapping[str, Module]) -> dict[str, Left]:
    """The causes, and all that import them, whatever lies between, with all of a package that must
    be warm together; in the order of the modules."""
    left = _with_importers(own, modules)
    for package in TOGETHER:
        inside = _inside(package, modules)
        first = next((name for name in inside if name in left), "")
        apart = [name for name in inside if name not in left] if first else []
        why = f"must be where {first} is, which is left"
        left = _with_importers({**left, **{name: Left(why, first) for name in apart}}, modules)
    return {name: left[name] for name in modules if name in left}


def _with_importers(own: Mapping[str, Left], modules: Mapping[str, Module]) -> dict[str, Left]:
    importers = _importers(modules.values())
    left = dict(own)
    front = [name for name in modules if name in left]
    while front:
        following = []
        for name in front:
            for importer in importers.get(name, []):
                if importer not in left:
                    library = modules[importer].follows.get(name)
                    inside = importer.startswith(name + ".")
                    word = "lies in" if inside else "imports"
                    if library:
                        word = f"brings {library.rpartition('/')[2]} as does"
                    left[importer] = Left(f"{word} {name}, which is left", name)
                    following.append(importer)
        front = following
    return left


def from_json(value: Mapping[str, Any]) -> Plan:
    """The plan that an image's description holds, without its rules' patterns."""
    names = [name for name, _, _ in value["modules"]]
    modules = [
        Module(
            name,
            origin,
            [names[i] for i in imports],
            [Rule(name, e, why, action=a) for e, why, a in value["rules"].get(name, [])],
            value["follows"].get(name, {}),
        )
        for name, origin, imports in value["modules"]
    ]
    left = {name: Left(*words) for name, words in value["left"].items()}
    return Plan(modules, left, value["ranks"], value["behind"])


def pinned(plan: Plan, warm: Iterable[str] = (), leave: Iterable[str] = ()) -> Plan:
    """The plan as the user wants it: `warm` and `leave` are modules, or packages with all in them.

    Raises UsageError for a module that the trial did not import, or that cannot be warm.
    """
    warm, leave = list(warm), list(leave)
    modules = {module.name: module for module in plan.modules}
    for option, names in (("--fork-warm", warm), ("--fork-leave", leave)):
        for name in names:
            if name not in modules:
                raise UsageError(
                    f"{option} {name}: the trial imported no module of that name",
                    hint="`brigade explain --fork -- COMMAND` lists them",
                )
    own = {name: left for name, left in plan.left.items() if not left.through}
    for name in warm:
        if name in own and own[name].fixed:
            raise UsageError(
                f"--fork-warm {name}: {own[name].why}",
                hint="only what every rank of the trial imported can be warm",
            )
        for inside in _inside(name, own):
            if not own[inside].fixed:
                del own[inside]
    for name in leave:
        for inside in _inside(name, modules):
            own[inside] = Left("the user says so (--fork-leave)")
    return Plan(plan.modules, _spread(own, modules), plan.ranks, plan.behind)


def _inside(package: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if _is_in(package, name)]


def _is_in(package: str, name: str) -> bool:
    return name == package or name.startswith(package + ".")
