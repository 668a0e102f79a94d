"""`brigade explain --fork`: in words, why a module is imported once per node or by each rank; of a
program that is no Python, where it is stopped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from brigade.fork.plan import Left, Module, Plan, given_otherwise
from brigade.fork.program import ProgramPlan
from brigade.trial.modules import SEVERAL

_STOPPED = {
    "main": "stopped before main: libraries are loaded, and constructors run, once per node",
    "preinit": "stopped before constructors: libraries are loaded once per node",
    "plain": "not stopped: each rank is started in the ordinary way",
}


def lines(plan: Plan | ProgramPlan, names: list[str]) -> Iterator[str]:
    """What is to be printed about modules; about all that are left, if none is named."""
    if isinstance(plan, ProgramPlan):
        yield from _program(plan)
        yield from (f"{name}: the trial did not import it" for name in names)
        return
    if not names:
        yield from _overview(plan)
        return
    modules = {module.name: module for module in plan.modules}
    otherwise = given_otherwise(plan)
    for number, name in enumerate(names):
        if number:
            yield ""
        if name in modules:
            yield from _module(plan, modules[name], otherwise)
        else:
            yield f"{name}: the trial did not import it"
            near = get_close_matches(name, modules, 3)
            if near:
                yield f"  it imported {', '.join(near)}"


def _module(
    plan: Plan, module: Module, otherwise: Mapping[str, Mapping[str, Left]]
) -> Iterator[str]:
    if module.name not in plan.left:
        yield f"{module.name}: warm, imported once per node"
        for what, left in otherwise.items():
            if module.name in left:
                yield f"  left to each rank with {what}: it {left[module.name].why}"
    else:
        *importers, cause = plan.chain(module.name)
        yield f"{module.name}: left to each rank"
        for name in importers:
            yield f"  {name} {plan.left[name].why}"
        yield f"  {cause}: {plan.left[cause].why}"
        if not plan.left[cause].fixed:
            yield f"  --fork-warm {cause} imports it once all the same"
    if module.origin:
        yield f"  from {module.origin}"
    for rule in module.rules:
        again = f"; each rank: {rule.action}" if rule.action else ""
        yield f"  rule for its {rule.event}: {rule.why}{again}"


def _overview(plan: Plan) -> Iterator[str]:
    total = len(plan.modules)
    yield f"{len(plan.warm)} of {total} modules are warm (a trial of {plan.ranks} ranks)"
    if plan.behind:
        yield f"of {plan.behind.removeprefix(SEVERAL)}, which a wrapper or launcher starts"
    for what, left in given_otherwise(plan).items():
        yield f"with {what} {len(left)} more are left to each rank"
    causes: dict[str, list[str]] = {}
    for name in plan.left:
        causes.setdefault(plan.chain(name)[-1], []).append(name)
    for cause, names in sorted(causes.items(), key=lambda item: -len(item[1])):
        yield ""
        yield f"{cause}: {plan.left[cause].why}"
        others = [name for name in names if name != cause]
        if others:
            yield f"  and {len(others)} that need it:"
            yield from (f"    {name}" for name in others)


def _program(plan: ProgramPlan) -> Iterator[str]:
    yield f"{plan.program}: {_STOPPED[plan.kind]}"
    if plan.why:
        yield f"  {plan.why}"
    if plan.behind:
        yield "  a wrapper or launcher starts it"
    yield f"  {plan.objects} libraries before main (a trial of {plan.ranks} ranks)"
    for what, detail, why in plan.seen:
        yield f"  constructors: {what}{' ' if detail else ''}{detail}{f': {why}' if why else ''}"


def as_json(plan: Plan | ProgramPlan, names: list[str]) -> str:
    """The same for machines: of each module, or of the whole plan."""
    if isinstance(plan, ProgramPlan):
        return json.dumps(plan.as_json(), indent=2)
    if names:
        return json.dumps(_told(plan, names), indent=2)
    whole = {
        "ranks": plan.ranks,
        "behind": plan.behind,
        "warm": [module.name for module in plan.warm],
        "left": _told(plan, plan.left),
        "otherwise": {what: list(left) for what, left in given_otherwise(plan).items()},
    }
    return json.dumps(whole, indent=2)


def _told(plan: Plan, names: Iterable[str]) -> dict[str, dict[str, Any] | None]:
    """Of each; None of what the trial did not import."""
    modules = {module.name: module for module in plan.modules}
    otherwise = given_otherwise(plan)
    found: dict[str, dict[str, Any] | None] = {}
    for name in names:
        module, left = modules.get(name), plan.left.get(name)
        if module is None:
            found[name] = None
            continue
        chain = plan.chain(name) if left else []
        found[name] = {
            "warm": left is None,
            "origin": module.origin,
            "why": left.why if left else None,
            "chain": chain,
            "cause": plan.left[chain[-1]].why if chain else None,
            "otherwise": {what: more[name].why for what, more in otherwise.items() if name in more},
            "rules": [{"event": r.event, "why": r.why, "action": r.action} for r in module.rules],
        }
    return found
