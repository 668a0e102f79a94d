"""The plan of a trial: which modules one process of a node can import for all its ranks.

    trial's records -> rank_modules -> make -> Plan

A module is warm if every rank of the trial executed it once, from the same file, and nothing
speaks against it; otherwise it is left, for a reason in words. Whoever is not sure says "left".
Pure, but for the sources of what was imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Callable

from brigade.fork import by_text
from brigade.fork.environment import Environment
from brigade.fork.libraries import note
from brigade.fork.otherwise import chosen_by_rank, is_own, otherwise
from brigade.fork.plan import Left, Module, Plan, importers_of, inside_of, is_in, spread
from brigade.fork.program import ProgramPlan, of_programs
from brigade.fork.rules import RULES, Rule, rule_for
from brigade.fork.source.present import present
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

_READERS = 8
# what the program does itself, after which a template would not be where the program is
_ENDS = frozenset(["thread", "child", "socket", "output", "device", "write", "folder", "bind"])
_TOLD = frozenset(["setenv", "called", "variable", "asks"])  # what others are judged by
_MACHINERY = "imports"  # by whomever: what follows goes through what was put there
_PYTHON_S_OWN = frozenset(["__main__", "sitecustomize", "usercustomize"])


def of_trial(trial: Trial) -> Plan | ProgramPlan | None:
    """The plan of a trial, of Python's modules if there was any; None if it was not recorded for
    one."""
    if not any(record.kind == "watch" for _, record in trial.records()):
        return None
    ranks = rank_modules(trial)
    note(ranks)
    plan = make(ranks, count_programs(trial), read=_text) if ranks else of_programs(trial)
    plan.behind = behind(trial)
    if (
        isinstance(plan, ProgramPlan)
        and plan.kind == "plain"
        and any(is_interpreter(process) for process in trial.processes)
    ):
        plan.why = "what is started is no Python, and no wrapper that is known, but starts one"
    return plan


def _text(path: str) -> bytes:
    try:
        with open(path, "rb") as source:
            return source.read()
    except OSError:
        return b""


def make(
    ranks: list[RankModules],
    all_ranks: int | None = None,
    rules: tuple[Rule, ...] = RULES,
    read: Callable[[str], bytes] | None = None,
) -> Plan:
    """The plan of a trial. `all_ranks`: how many there were, with or without Python. `read(path)`:
    the text of a source, b"" where there is none; without it nothing is known of what
    a program may be given else."""
    if not ranks:
        return Plan([], {})
    modules = _modules(ranks)
    own = _not_in_all(ranks, modules, len(ranks) if all_ranks is None else all_ranks)
    names = differing(ranks)
    texts = _texts(modules, read) if read else {}
    if read:
        mine = {name: text for name, text in texts.items() if is_own(modules[name].origin)}
        by_text.note(ranks, modules, mine, read)
        _follow_who_is_there(modules, texts)
    for rank in ranks:
        environment = Environment(rank, names, rules)
        for event in rank.events:
            if event.module in modules:
                _judge(modules[event.module], event, environment, rules, own)
        _end(rank, own, rules)
        _after_calls(rank, modules, own, rules)
    called = otherwise(ranks, modules, texts, read) if read else None
    if called:
        why = "is imported when the program may have chosen by {}, which is each rank's own"
        for rank in ranks:
            variable = chosen_by_rank(rank, names)
            for name in called.varied if variable else ():
                own.setdefault(name, Left(why.format(variable)))
    left = spread(own, modules)
    files = {rank.main for rank in ranks}
    main = files.pop() if len(files) == 1 else ""
    return Plan(list(modules.values()), left, len(ranks), main=main, called=called)


def _texts(modules: Mapping[str, Module], read: Callable[[str], bytes]) -> dict[str, bytes]:
    sources = {m.name: m.origin for m in modules.values() if m.origin.endswith(".py")}
    with ThreadPoolExecutor(_READERS) as pool:  # a shared file system takes its time for each
        return dict(zip(sources, pool.map(read, sources.values())))


def _follow_who_is_there(modules: Mapping[str, Module], texts: Mapping[str, bytes]) -> None:
    """Who asks whether a module is there that came before it, and does not import it, is told so in
    a template only if that one is warm."""
    place = {name: number for number, name in enumerate(modules)}
    for name, text in texts.items():
        for other in sorted(present(text)):
            if place.get(other, len(place)) < place[name] and other not in modules[name].imports:
                modules[name].imports.append(other)
                modules[name].follows[other] = "sys.modules"


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
    fails: dict[int, set[str]] = {}
    for rank in ranks:
        origins: dict[str, str] = {}
        failed = fails[rank.rank] = set()  # last: whoever asks next has it executed once more
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
    for name, module in modules.items():
        module.fails = all(name in failed for failed in fails.values())
        for number in [n for n, failed in fails.items() if name in failed and not module.fails]:
            why = f"it failed in rank {number} of the trial, and not in every other"
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
    if event.what in _TOLD:
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
    reads; a template would import that without. What a module of its own did so, it does without
    only if that module is left: then who may read it is left, too."""
    importers = importers_of(modules.values())
    done: set[tuple[str, str]] = set()
    for event in rank.events:
        package = _changed(event, modules)
        if event.what != "called" or (event.module, package) in done or _is_harmless(event, rules):
            continue
        done.add((event.module, package))
        inside = list(modules) if package in ("*", "builtins") else inside_of(package, modules)
        # of what was there before the first module, it is known only who asked for it
        inside += [by for by, name in rank.asked if by in modules and is_in(package, name)]
        later = {execution.module for execution in rank.executions[event.executed :]}
        reached = _reached(inside, importers)
        for name in reached & later:  # those that import only such as come later follow from them
            if name not in inside and not reached.intersection(modules[name].imports) - later:
                continue
            if not event.module:
                doing = (
                    f"calls or changes {event.detail}" if package != "*" else "has done very much"
                )
                own.setdefault(name, Left(f"before it the program itself {doing}"))
            elif event.module in modules and event.module not in modules[name].imports:
                modules[name].imports.append(event.module)
                modules[name].follows[event.module] = event.detail


def _changed(event: Event, modules: Mapping[str, Module]) -> str:
    """The package, or, if it is the one of who did so, the module in it."""
    package = event.detail.partition(".")[0]
    if package != event.module.partition(".")[0]:
        return package
    return by_text.module_of(event.detail, modules) or package


def _reached(front: Iterable[str], importers: Mapping[str, list[str]]) -> set[str]:
    """Those modules and all that import them, whatever lies between."""
    reached, following = set(front), list(front)
    while following:
        new = set(importers.get(following.pop(), ())) - reached
        reached |= new
        following += new
    return reached


def _is_harmless(event: Event, rules: tuple[Rule, ...]) -> bool:
    """Whether a rule for all modules fits: the program is none, and has none of its own."""
    rule = rule_for("", event.what, event.detail, rules)
    return rule is not None and rule.modules == "*"
