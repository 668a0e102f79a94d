"""Sums over a profile's cells: what the insights, the page and the terminal report all quote.

A *look-up* here is a call that asks the file system where or what something is: an open, stat,
link or exec by path, or the listing of a folder. Reads and questions about an open descriptor are
none. The *start-up* is every phase but the user's own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from brigade.profile.profile import LOCAL, PHASES, SHARED, Cell, Profile

LOOKUP_KINDS = ("open", "stat", "link", "exec", "list", "folder")
STARTUP = tuple(phase for phase in PHASES if phase != "user")
WIDE = (1_024, 40_960)  # the widths that reports speak of


class Sums:
    """A profile, and questions about it. `wanted` names fields of Cell; a tuple stands for any of
    its values; `place` is the kind of the cell's mount."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        # of a mount that is not listed nothing is known: it counts as local
        self._places = {mount.point: mount.kind for mount in profile.mounts}
        self.ranks = sorted({cell.rank for cell in profile.cells if cell.rank >= 0})

    @property
    def width(self) -> int:
        """How many ranks were seen; 1 for a program without a launcher."""
        return max(1, len(self.ranks))

    @cached_property
    def own(self) -> list[Cell]:
        """The cells of ranks; of a program without ranks, all."""
        if not self.ranks:
            return self.profile.cells
        return [cell for cell in self.profile.cells if cell.rank >= 0]

    @cached_property
    def _together(self) -> list[Cell]:
        """The same, ranks added up: a few hundred cells however wide the job."""
        sums: dict[tuple[Any, ...], list[Any]] = {}
        for cell in self.own:
            total = sums.setdefault(cell[1:7], [0, 0.0, 0])
            for i, value in enumerate(cell[7:]):
                total[i] += value
        return [Cell(-1, *key, *total) for key, total in sums.items()]

    @cached_property
    def launcher_calls(self) -> int:
        """Calls of processes that belong to no rank, beside ranks: the launcher's own."""
        return sum(cell.calls for cell in self.profile.cells) - self.calls()

    def cells(self, **wanted: Any) -> Iterator[Cell]:
        """Those with the wanted values, of all ranks together."""
        place = wanted.pop("place", None)
        for cell in self._together:
            if place is not None and not _is(self._places.get(cell.mount, LOCAL), place):
                continue
            if all(_is(getattr(cell, name), value) for name, value in wanted.items()):
                yield cell

    def calls(self, **wanted: Any) -> int:
        """Of all ranks together."""
        return sum(cell.calls for cell in self.cells(**wanted))

    def seconds(self, **wanted: Any) -> float:
        return sum(cell.seconds for cell in self.cells(**wanted))

    def bytes(self, **wanted: Any) -> int:
        return sum(cell.bytes for cell in self.cells(**wanted))

    def per_rank(self, **wanted: Any) -> float:
        """The mean over ranks."""
        return self.calls(**wanted) / self.width

    def lookups(self, **wanted: Any) -> int:
        """Look-ups of all ranks; on shared mounts, during start-up, unless said otherwise."""
        wanted = {"place": SHARED, "phase": STARTUP, "kind": LOOKUP_KINDS, **wanted}
        return sum(
            cell.calls for cell in self.cells(**wanted) if cell.by_path or cell.kind == "list"
        )

    def lookups_per_rank(self, **wanted: Any) -> float:
        return self.lookups(**wanted) / self.width

    def each_rank(self) -> dict[int, int]:
        """Look-ups of each rank."""
        found = dict.fromkeys(self.ranks, 0)
        for cell in self.profile.cells:
            if cell.rank >= 0 and self.shared(cell.mount) and cell.phase in STARTUP:
                if cell.kind in LOOKUP_KINDS and (cell.by_path or cell.kind == "list"):
                    found[cell.rank] += cell.calls
        return found

    def shared(self, mount: str) -> bool:
        return self._places.get(mount) == SHARED


def again(sums: Sums) -> str:
    """The profiled command, as it stands behind `brigade run` and its like."""
    profile = sums.profile
    width = f"-n {sums.width} " if profile.launcher is None and sums.width > 1 else ""
    return f"{width}-- {shlex.join(profile.command)}"


def _is(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, tuple) else bool(value == wanted)
