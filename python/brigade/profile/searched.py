"""What each search entry cost a rank: calls by path that it caused, and those of them in vain.

What must stay true, and is checked: a rank's wasted calls, over all entries, are all its failed
calls by path.
"""

from __future__ import annotations

import os
import statistics
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from brigade.profile.places import Places
from brigade.profile.profile import SearchEntry
from brigade.profile.ranks import Rank
from brigade.profile.story import Mark, Story
from brigade.profile.variables import folders

_NS = 1e-9
_NAMES = 200  # of one entry, the most frequent


class Key(NamedTuple):
    cause: str
    place: str
    hwcaps: bool
    owner: str
    relative: bool


@dataclass
class _Count:
    calls: int = 0
    wasted: int = 0
    wasted_ns: int = 0
    found: set[tuple[int, int]] = field(default_factory=set)
    names: Counter[str] = field(default_factory=Counter)


def searches(ranks: list[Rank], places: Places) -> list[SearchEntry]:
    """Entries of all ranks, most wasted first; the counts are medians over the ranks."""
    counted = [_of_rank(rank, places) for rank in ranks]
    entries = []
    for key in dict.fromkeys(key for one in counted for key in one):
        of_ranks = [one.get(key, _Count()) for one in counted]
        shown = next(one for one in of_ranks if one.calls)
        entries.append(
            SearchEntry(
                cause=key.cause,
                place=key.place,
                hwcaps=key.hwcaps,
                owner=key.owner,
                mount=places.of(ranks[0].program.process.host, key.place).point,
                calls=statistics.median_high(one.calls for one in of_ranks),
                wasted=statistics.median_high(one.wasted for one in of_ranks),
                found=statistics.median_high(len(one.found) for one in of_ranks),
                seconds_wasted=statistics.median(one.wasted_ns for one in of_ranks) * _NS,
                names=dict(shown.names.most_common(_NAMES)),
                relative=key.relative,
            )
        )
    entries = [entry for entry in entries if entry.calls]
    return sorted(entries, key=lambda entry: (-entry.wasted, -entry.calls, entry.place))


def _of_rank(rank: Rank, places: Places) -> dict[Key, _Count]:
    counts: dict[Key, _Count] = {}
    failed = 0
    for number, story in enumerate(rank.stories):
        for event, mark in zip(story.process.events, story.marks):
            if event.by_fd:
                continue
            failed += bool(event.error)
            if not mark.cause:
                continue
            relative = _is_relative(story, mark)
            key = Key(mark.cause, places.tidy(mark.place), mark.hwcaps, mark.owner, relative)
            count = counts.setdefault(key, _Count())
            count.calls += 1
            if event.error:
                count.wasted += 1
                count.wasted_ns += event.took_ns
                count.names[mark.sought or "?"] += 1
            elif mark.search >= 0 and story.searches[mark.search].found == event.path:
                count.found.add((number, mark.search))
    wasted = sum(count.wasted for count in counts.values())
    assert wasted == failed, f"rank {rank.number}: {wasted} calls have a cause, {failed} failed"
    return counts


def _is_relative(story: Story, mark: Mark) -> bool:
    """Whether a place was searched because a path variable has it as an empty or relative entry."""
    if mark.cause not in ("PATH", "LD_LIBRARY_PATH"):
        return False
    process = story.process
    told = folders(mark.cause, process.env.get(mark.cause, ""), process.cwd)
    return told.get(os.path.normpath(mark.place), False)
