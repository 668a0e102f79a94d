"""What a study starts, in which order. Pure.

Variants stand next to each other in time: of each repeat and width all of them, beginning with
another one each time, so that a machine that grows slower does not look like a slow variant.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from brigade.errors import UsageError


@dataclass(frozen=True)
class Variant:
    """One way to start the program."""

    name: str  # a word: "links"
    label: str  # for people: "one directory of links"
    words: tuple[str, ...]  # launcher and program
    env: dict[str, str] = field(default_factory=dict)  # what differs from ours
    cwd: str = ""  # "": ours
    brigade: bool = False  # start it with `brigade run`


@dataclass(frozen=True)
class Start:
    """One start of a variant."""

    variant: Variant
    ranks: int
    repeat: int


def starts(variants: list[Variant], widths: list[int], repeats: int) -> list[Start]:
    """Every start, in the order in which they are made."""
    found = []
    for repeat in range(repeats):
        for ranks in widths:
            first = (repeat + widths.index(ranks)) % max(1, len(variants))
            turn = variants[first:] + variants[:first]
            found += [Start(variant, ranks, repeat) for variant in turn]
    return found


def numbers(text: str | None, default: list[int]) -> list[int]:
    """`1,2,4` as widths, each once, rising."""
    if text is None:
        return default
    try:
        found = sorted({int(word) for word in text.split(",")})
    except ValueError as error:
        raise UsageError(f"--widths {text}: numbers with commas between them: 1,2,4") from error
    if found[0] < 1:
        raise UsageError(f"--widths {text}: a width is at least 1")
    return found
