"""The C text of a part, and the bytes that make it as large as a real one.

A function is a few instructions. Behind each come bytes that are never executed, as most of a real
function's never are: `.incbin` from a *padding* file, whose bytes repeat as code does, so that they
compress as code does. Parts of a Pynamic world export all functions, as Python's modules mostly do;
a library of a CLoad world exports one, so that finding files is what its load takes. Pure.
"""

from __future__ import annotations

import os
import random
from itertools import accumulate

from brigade.bench.plan import MULTIPLIER, Part, World, constants, start

MOST_PADDING = 4 << 20
PADDING_FILE = "padding"

# The little of Python's limited API that a module needs, so that no Python headers are: the layout
# of these structures is the same in every CPython from 3.9 on (not in free-threaded ones, which do
# not load .abi3.so).
_MODULE = """\
struct method { const char *name; void *call; int flags; const char *doc; };
struct module {
    u head[5];
    const char *name, *doc;
    long size;
    struct method *methods;
    void *rest[4];
};
extern void *PyModule_Create2(struct module *, int);
extern void *PyLong_FromUnsignedLongLong(u);
static void *visit(void) { return PyLong_FromUnsignedLongLong(@_visit()); }
static struct method methods[] = {{"visit", visit, 4, 0}, {0, 0, 0, 0}};
static struct module module = {{0}, "@", 0, -1, methods, {0}};
void *PyInit_@(void) { return PyModule_Create2(&module, 1013); }
"""


def symbol(part: Part, function: int) -> str:
    """A function's name: as long as mangled names of templates are."""
    return f"{part.name}_a_function_with_a_name_as_long_as_mangled_names_are_{function:05d}"


def part_source(world: World, part: Part) -> str:
    """The C text of a part; `.incbin` takes PADDING_FILE from the compiler's working folder."""
    draw = random.Random(f"{world.settings.seed} padding {part.name}")
    mean = world.settings.function_bytes
    available = padding_bytes(world)
    own = constants(world, part)
    after = _successors(world, part)
    names = [symbol(part, i) for i in range(len(own))]
    hidden = '__attribute__((visibility("hidden"))) ' if part.kind == "library" else ""
    lines = ["typedef unsigned long long u;"]
    lines += [f"{hidden}u {name}(u);" for name in names]
    lines += [f"u {name}(u);" for name in sorted(set(after.values()) - set(names))]
    for i, (name, constant) in enumerate(zip(names, own)):
        value = f"(x ^ {constant:#x}) * {MULTIPLIER:#x}"
        answer = f"{after[i]}({value})" if i in after else value
        lines.append(f"u {name}(u x) {{ return {answer}; }}")
        if mean:
            size = draw.randint(mean // 2, mean + mean // 2)
            offset = draw.randrange(available - 2 * mean)
            lines.append(f'__asm__(".text\\n.incbin \\"{PADDING_FILE}\\",{offset},{size}");')
    lines += _visit(world, part)
    if part.kind == "module":
        lines.append(_MODULE.replace("@", part.name))
    return "\n".join(lines) + "\n"


def _successors(world: World, part: Part) -> dict[int, str]:
    """The function that each calls; the last of a chain calls a leaf, or nothing."""
    ends = {call.chain: call for call in part.calls}
    after = {}
    for chain, functions in enumerate(part.chains()):
        for function in functions[:-1]:
            after[function] = symbol(part, function + 1)
        if chain in ends:
            target = world.parts[ends[chain].part]
            after[functions[-1]] = symbol(target, target.functions + ends[chain].leaf)
    return after


def _visit(world: World, part: Part) -> list[str]:
    """`NAME_visit`: every chain through a table of pointers, then what the part owns."""
    owned = [world.parts[number].name for number in part.owns]
    heads = ", ".join(symbol(part, functions[0]) for functions in part.chains())
    count = -(-part.functions // part.depth)
    return [
        *(f"u {name}_visit(void);" for name in owned),
        f"static u (*const heads[])(u) = {{{heads}}};",
        f"u {part.name}_visit(void)",
        "{",
        "    u sum = 0;",
        f"    for (u i = 0; i < {count}; i++) sum += heads[i]({start(part, 0)}ull + i);",
        *(f"    sum += {name}_visit();" for name in owned),
        "    return sum;",
        "}",
    ]


def padding_bytes(world: World) -> int:
    """Size of the padding file: enough that it hardly shows how often its bytes come again."""
    mean = world.settings.function_bytes
    return max(4 * mean, min(MOST_PADDING, len(world.parts) * world.settings.functions * mean // 4))


def padding(world: World) -> bytes:
    """Bytes as code has them: short words, few of them often, most of them seldom.

    zstd makes them 2.9 times smaller; libpython and libstdc++ 2.8 and 2.9 times.
    """
    draw = random.Random(f"{world.settings.seed} padding")
    size = padding_bytes(world)
    words = [draw.getrandbits(8 * n).to_bytes(n, "little") for n in (3, 4, 5, 6, 7, 8, 10) * 600]
    draw.shuffle(words)
    weights = list(accumulate((rank + 5) ** -1.3 for rank in range(len(words))))
    text = b"".join(draw.choices(words, cum_weights=weights, k=size // 3 + 1))
    return (text * (size // len(text) + 1))[:size]


def cload_table(world: World) -> str:
    """The C table of all libraries: for linked drivers their functions, else their names."""
    names = [part.name for part in world.parts]
    bases = [os.path.basename(part.path) for part in world.parts]
    return "\n".join(
        [
            "typedef unsigned long long u;",
            "#ifdef OPENED",
            "static const char *const files[] = {" + ", ".join(f'"{b}"' for b in bases) + "};",
            "static const char *const names[] = {"
            + ", ".join(f'"{name}_visit"' for name in names)
            + "};",
            "#else",
            *(f"u {name}_visit(void);" for name in names),
            "static u (*const visits[])(void) = {"
            + ", ".join(f"{name}_visit" for name in names)
            + "};",
            "#endif",
            f"enum {{ count = {len(names)} }};",
            "",
        ]
    )
