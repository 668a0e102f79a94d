"""What one process of a node imports for all its ranks, and what is left to each, and why.

    brigade.fork.trial_plan -> Plan -> meta["fork"], /.brigade/fork/plan
                               pinned(what meta["fork"] says, --fork-warm, --fork-leave)

What must stay true: a warm module never imports a left one, nor lies in a left package, because to
import it would import that one too. Warm modules stand in the order in which the first rank's
executions began.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from brigade.errors import UsageError
from brigade.fork import given
from brigade.fork.rules import TOGETHER, Rule

VERSION = 1


class Left(NamedTuple):
    """Why a module is left. `through`: the left module that it imports, "" if it is the cause.
    `fixed`: not even `--fork-warm` can help."""

    why: str
    through: str = ""
    fixed: bool = False


@dataclass
class Module:
    """A module of the trial. `imports`: what it, or the package around it, asked for, and whom it
    `follows`: who loaded a library first that it brings. `fails`: its execution raised."""

    name: str
    origin: str
    imports: list[str] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)  # that let something pass
    follows: dict[str, str] = field(default_factory=dict)  # module -> library
    fails: bool = False


@dataclass
class Plan:
    """What is warm and what is left. `modules`: all, in order; those without a place come last.
    `behind`: what the program is known by, if wrappers stand in front of it (trial.modules).
    `main`: the file that `-m MODULE` means. `called`: what holds only where the program is called
    as it was."""

    modules: list[Module]
    left: dict[str, Left]
    ranks: int = 0
    behind: str = ""
    main: str = ""
    called: given.Given | None = None
    named: frozenset[str] = frozenset()  # by --fork-warm, with what lies in those packages

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
            "given": self.called.as_json(number) if self.called else None,
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
        names = {"environ": [], "thread": [], "library": [], "generator": []}
        for module in self.modules:
            for rule in module.rules:
                if rule.names:
                    names[rule.event].append((module.name, rule.names))
        plan = {
            "version": VERSION,
            "warm": [(module.name, module.origin) for module in self.warm],
            "left": {name: left.why for name, left in self.left.items()},
            "fails": [module.name for module in self.modules if module.fails],
            "again": self.again,
            "main": self.main,
            "others": others,
            "names": names,
            "called": self._called(),
        }
        return marshal.dumps(plan, 2)

    def _called(self) -> dict[str, Any] | None:
        number = {module.name: i for i, module in enumerate(self.modules)}
        imports = [[number[name] for name in module.imports] for module in self.modules]
        for package in TOGETHER:
            inside = [number[name] for name in inside_of(package, number)]
            for one in inside:
                imports[one] += inside
        return self.called.packed(number, imports) if self.called else None


def importers_of(modules: Iterable[Module]) -> dict[str, list[str]]:
    """module -> those that import it."""
    importers: dict[str, list[str]] = {}
    for module in modules:
        for name in module.imports:
            importers.setdefault(name, []).append(module.name)
    return importers


def spread(own: Mapping[str, Left], modules: Mapping[str, Module]) -> dict[str, Left]:
    """The causes, and all that import them, whatever lies between, with all of a package that must
    be warm together; in the order of the modules."""
    left = _with_importers(own, modules)
    for package in TOGETHER:
        inside = inside_of(package, modules)
        first = next((name for name in inside if name in left), "")
        apart = [name for name in inside if name not in left] if first else []
        why = f"must be where {first} is, which is left"
        left = _with_importers({**left, **{name: Left(why, first) for name in apart}}, modules)
    return {name: left[name] for name in modules if name in left}


def _with_importers(own: Mapping[str, Left], modules: Mapping[str, Module]) -> dict[str, Left]:
    importers = importers_of(modules.values())
    left = dict(own)
    front = [name for name in modules if name in left]
    while front:
        following = []
        for name in front:
            for importer in importers.get(name, []):
                if importer not in left:
                    cause = modules[importer].follows.get(name)
                    inside = importer.startswith(name + ".")
                    word = "lies in" if inside else "imports"
                    if cause:
                        library = cause.rpartition("/")[2]
                        is_file = library != cause
                        word = (
                            f"brings {library} as does" if is_file else f"may read {cause}, set by"
                        )
                    left[importer] = Left(f"{word} {name}, which is left", name)
                    following.append(importer)
        front = following
    return left


def from_json(value: Mapping[str, Any]) -> Plan:
    """The plan that an image's description holds: what its modules are, and why; not what only a
    template needs to know."""
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
    told = value.get("given")
    called = given.from_json(told, names) if told else None
    return Plan(modules, left, value["ranks"], value["behind"], called=called)


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
        for inside in inside_of(name, own):
            if not own[inside].fixed:
                del own[inside]
    for name in leave:
        for inside in inside_of(name, modules):
            own[inside] = Left("the user says so (--fork-leave)")
    named = frozenset(inside for name in warm for inside in inside_of(name, modules))
    return Plan(plan.modules, spread(own, modules), plan.ranks, plan.behind, named=named)


def given_otherwise(plan: Plan) -> dict[str, dict[str, Left]]:
    """What is left beside that of the plan where the program is given something else, by what that
    is, in words; nothing that nothing is left for."""
    modules = {module.name: module for module in plan.modules}
    of = plan.called or given.Given()
    own = {
        "other arguments": {
            **dict.fromkeys([*of.late, *of.told], Left("may depend on the program's arguments")),
            **dict.fromkeys(of.looking, Left("may look at the program's arguments")),
        }
    }
    if of.files is None or of.files:
        why = Left("may depend on a file that the program reads")
        own["other files that it reads"] = dict.fromkeys(of.late, why)
    chosen = [name for name, read in of.variables.items() if read.chosen]
    if chosen:
        why = Left("may depend on a variable that the program reads")
        own[f"another value of {' or '.join(chosen)}"] = dict.fromkeys(of.varied, why)
    found = {}
    for what, causes in own.items():
        left = spread({**plan.left, **causes}, modules)
        found[what] = {name: why for name, why in left.items() if name not in plan.left}
    return {what: left for what, left in found.items() if left}


def inside_of(package: str, names: Iterable[str]) -> list[str]:
    """The package itself, and what lies in it."""
    return [name for name in names if is_in(package, name)]


def is_in(package: str, name: str) -> bool:
    return name == package or name.startswith(package + ".")
