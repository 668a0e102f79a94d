"""What a world of generated shared objects consists of, and what a visit of it answers.

A *part* is one shared object. Its functions form *chains*: each function computes
`(x ^ C) * M` modulo 2**64, C being its own constant, and hands the result to the next of its chain,
as deep as the call depth. The last of some chains calls a *leaf* in another part. Visiting a part
starts each of its chains once and adds up the answers, so that every function is called; a part
visits what it *owns*, too. The sum over all parts is the world's checksum: known here, without a
compiler, and the same on every rank that has really called everything.

Pure: nothing here looks at a file. What must stay true: the same settings give the same world on
every machine and Python (only `random.Random`'s documented streams are used).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Union

from brigade.bench import layout
from brigade.errors import UsageError

FORMAT = 1  # of a generated world: another number is another world
MULTIPLIER = 0x9E3779B97F4A7C15
MASK = 2**64 - 1
LEAVES = 8  # functions of a utility library that other parts call
NEEDS = 2  # utility libraries that a part is linked with, beside those that it owns


@dataclass(frozen=True)
class Pynamic:
    """Settings of `brigade bench pynamic`."""

    modules: int = 16
    utilities: int = 12
    functions: int = 200
    depth: int = 10
    cross: int = 20  # calls of a part into others
    function_bytes: int = 1200  # mean of what is added to a function's own code
    layout: str = "flat"
    seed: int = 1
    kind: str = "pynamic"


@dataclass(frozen=True)
class Cload:
    """Settings of `brigade bench cload`."""

    libraries: int = 100
    functions: int = 24
    depth: int = 4
    function_bytes: int = 1265
    layout: str = "one"
    directories: int = 40  # on the search path of layout "long", before the right one
    search: str = "rpath"
    dlopen: bool = False
    seed: int = 1
    kind: str = "cload"


Settings = Union[Pynamic, Cload]

PRESETS: dict[str, Settings] = {
    "llnl-495": Pynamic(modules=280, utilities=215, functions=1850, cross=185),
    "cload-710": Cload(libraries=710, layout="each"),
}


@dataclass(frozen=True)
class Call:
    """The end of chain `chain` calls leaf `leaf` of part `part`."""

    chain: int
    part: int
    leaf: int


@dataclass(frozen=True)
class Part:
    """One shared object. Paths are relative to the world's folder."""

    number: int
    name: str  # of a module, and the start of all its symbols
    kind: str  # "module", "utility" or "library"
    path: str
    functions: int
    depth: int
    leaves: int = 0
    calls: tuple[Call, ...] = ()
    owns: tuple[int, ...] = ()
    search: tuple[str, ...] = ()  # folders of its RUNPATH

    @property
    def needs(self) -> list[int]:
        """Parts that it is linked with, in order."""
        return list(dict.fromkeys([*self.owns, *(call.part for call in self.calls)]))

    def chains(self) -> Iterator[range]:
        """The functions of each chain, in the order of their calls."""
        for start in range(0, self.functions, self.depth):
            yield range(start, min(start + self.depth, self.functions))


@dataclass(frozen=True)
class World:
    settings: Settings
    parts: tuple[Part, ...]
    files: dict[str, str] = field(default_factory=dict)  # Python files beside the parts
    python_path: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    search: tuple[str, ...] = ()  # where the cload driver's libraries are searched


def plan(settings: Settings) -> World:
    """The world of these settings; UsageError if there can be none."""
    _check(settings)
    if isinstance(settings, Pynamic):
        return _pynamic(settings)
    parts = tuple(
        Part(
            number=i,
            name=f"library_{i:04d}",
            kind="library",
            path=f"{layout.cload_folder(settings.layout, i)}/liblibrary_{i:04d}.so",
            functions=settings.functions,
            depth=settings.depth,
        )
        for i in range(settings.libraries)
    )
    search = layout.cload_search(settings.layout, settings.libraries, settings.directories)
    return World(settings, parts, search=search)


def _check(settings: Settings) -> None:
    least_zero = ("utilities", "cross", "function_bytes", "directories", "seed")
    for name, value in asdict(settings).items():
        if isinstance(value, bool) or not isinstance(value, int):
            continue
        if value < (0 if name in least_zero else 1):
            raise UsageError(f"{name} cannot be {value}")
    layouts = layout.PYNAMIC if isinstance(settings, Pynamic) else layout.CLOAD
    if settings.layout not in layouts:
        raise UsageError(f"layout {settings.layout}: layouts are {', '.join(layouts)}")


def _pynamic(settings: Pynamic) -> World:
    """Utilities come first and need only utilities before them; each is owned by one module."""
    places = layout.pynamic_places(settings.layout, settings.modules, settings.utilities)
    parts = []
    for i in range(settings.utilities + settings.modules):
        is_module = i >= settings.utilities
        module = i - settings.utilities
        name = f"module_{module:04d}" if is_module else f"utility_{i:04d}"
        parts.append(
            Part(
                number=i,
                name=name,
                kind="module" if is_module else "utility",
                path=places.modules[module] if is_module else places.utilities[i],
                functions=settings.functions,
                depth=settings.depth,
                leaves=0 if is_module else LEAVES,
                calls=_calls(settings, name, min(i, settings.utilities)),
                owns=tuple(range(module, settings.utilities, settings.modules))
                if is_module
                else (),
                search=places.search,
            )
        )
    return World(settings, tuple(parts), places.files, places.python_path, places.imports)


def _calls(settings: Pynamic, name: str, targets: int) -> tuple[Call, ...]:
    """Calls of one part into utilities 0 to `targets`-1, at most one a chain."""
    draw = random.Random(f"{settings.seed} calls {name}")
    chains = -(-settings.functions // settings.depth)
    if not targets:
        return ()
    needs = draw.sample(range(targets), min(NEEDS, targets))
    places = sorted(draw.sample(range(chains), min(settings.cross, chains)))
    return tuple(
        Call(chain, needs[i % len(needs)], draw.randrange(LEAVES)) for i, chain in enumerate(places)
    )


def constants(world: World, part: Part) -> list[int]:
    """The constant of each function of a part; its leaves' come last."""
    draw = random.Random(f"{world.settings.seed} constants {part.name}")
    return [draw.getrandbits(64) for _ in range(part.functions + part.leaves)]


def start(part: Part, chain: int) -> int:
    """What a chain is called with."""
    return part.number << 32 | chain


def checksum(world: World) -> int:
    """What a visit of the whole world answers."""
    leaves = {p.number: constants(world, p)[p.functions :] for p in world.parts if p.leaves}
    total = 0
    for part in world.parts:
        own = constants(world, part)
        ends = {call.chain: leaves[call.part][call.leaf] for call in part.calls}
        for chain, functions in enumerate(part.chains()):
            x = start(part, chain)
            for function in functions:
                x = (x ^ own[function]) * MULTIPLIER & MASK
            if chain in ends:
                x = (x ^ ends[chain]) * MULTIPLIER & MASK
            total += x
    return total & MASK


def calls(world: World) -> int:
    """How many calls of functions a visit makes."""
    return sum(part.functions + len(part.calls) for part in world.parts)


def describe(world: World) -> dict[str, Any]:
    """What drivers and reports need to know of a world."""
    return {
        "settings": asdict(world.settings),
        "objects": len(world.parts),
        "calls": calls(world),
        "checksum": f"{checksum(world):016x}",
        "python_path": list(world.python_path),
        "imports": list(world.imports),
    }
