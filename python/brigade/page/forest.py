"""The tree of who loaded what, as rows to be drawn one after the other.

`Profile.tree` is a list with indices to parents. A tree can be thousands deep and wide, so nothing
here recurses; a parent's smallest children are folded into one row, and sums stay whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from brigade.profile.profile import Node

CHILDREN = 40  # of one parent; the smallest of more are folded
OPEN_FROM = 0.1  # share of all calls from which a branch stands open


class Row(NamedTuple):
    """A node, or the folded rest of one's children (`node` None, `folded` of them)."""

    node: Node | None
    depth: int
    children: int  # rows directly below
    calls: int  # with everything below
    wasted: int
    seconds: float
    folded: int
    last: int  # how many branches end after this row
    open: bool


class _Sum(NamedTuple):
    calls: int
    wasted: int
    seconds: float


def rows(tree: list[Node], most: int = CHILDREN, depth: int | None = None) -> Iterator[Row]:
    """The rows of the tree, the largest branches first; not below `depth`, if it is given."""
    below = children(tree)
    sums = _sums(tree, below)
    whole = sum(sums[root].calls for root in below[-1]) or 1
    waiting: list[tuple[int | list[int], int, int]] = [
        (one, 0, 0) for one, _ in _cut(below[-1], sums, most)
    ][::-1]
    while waiting:
        one, level, last = waiting.pop()
        if isinstance(one, list):
            total = [sums[index] for index in one]
            yield Row(
                *(None, level, 0, sum(t.calls for t in total), sum(t.wasted for t in total)),
                *(sum(t.seconds for t in total), len(one), last, False),
            )
            continue
        deeper = below.get(one, []) if depth is None or level < depth else []
        parts = _cut(deeper, sums, most)
        stands_open = level == 0 or sums[one].calls >= OPEN_FROM * whole
        yield Row(
            *(tree[one], level, len(parts), *sums[one], 0, 0 if parts else last, stands_open),
        )
        ends = [(part, level + 1, ended) for part, ended in parts]
        if ends:
            part, level_below, ended = ends[-1]
            ends[-1] = (part, level_below, ended + last)
        waiting += ends[::-1]


def children(tree: list[Node]) -> dict[int, list[int]]:
    """Index of a node -> those of the nodes that it loaded; -1 -> roots. Whatever its indices say,
    every node is below exactly one other or a root: nodes that load each other hang on none."""
    below: dict[int, list[int]] = {-1: []}
    for index, node in enumerate(tree):
        loader = node.loader if 0 <= node.loader < len(tree) and node.loader != index else -1
        below.setdefault(loader, []).append(index)
    reached = set(_order(below))
    for index, node in enumerate(tree):
        if index not in reached:  # on a ring, or below one: cut it here
            below[node.loader].remove(index)
            below[-1].append(index)
            reached.update(_order({-1: [index], **{k: v for k, v in below.items() if k >= 0}}))
    return below


def _order(below: dict[int, list[int]]) -> list[int]:
    """All nodes that are reached from the roots, each after its loader."""
    order = list(below[-1])
    for index in order:
        order += below.get(index, [])
    return order


def _sums(tree: list[Node], below: dict[int, list[int]]) -> list[_Sum]:
    """Of each node with everything below it."""
    sums = [_Sum(node.calls, node.wasted, node.seconds) for node in tree]
    for index in reversed(_order(below)):
        for child in below.get(index, []):
            own, more = sums[index], sums[child]
            sums[index] = _Sum(
                own.calls + more.calls, own.wasted + more.wasted, own.seconds + more.seconds
            )
    return sums


def _cut(nodes: list[int], sums: list[_Sum], most: int) -> list[tuple[int | list[int], int]]:
    """The largest first, the rest as one list; with 1 at the last: there its branch ends."""
    order = sorted(nodes, key=lambda index: (-sums[index].calls, index))
    shown: list[int | list[int]] = [*order[:most]]
    if len(order) > most:
        shown.append(order[most:])
    return [(one, int(i == len(shown) - 1)) for i, one in enumerate(shown)]
