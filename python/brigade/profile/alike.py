"""What all ranks ask alike: the same call about the same path with the same answer, on a shared
mount. One rank could ask it and hand the answer on."""

from __future__ import annotations

from collections import Counter
from typing import Callable

from brigade.profile.profile import Identical
from brigade.profile.story import Story
from brigade.trace.events import Event

_ONLY_SOME = 50  # paths that the profile names


def identical(
    ranks: dict[int, list[Story]], shared: Callable[[Story, Event], bool]
) -> Identical | None:
    """None for fewer than two ranks: nothing can be compared."""
    if len(ranks) < 2:
        return None
    asked: list[Counter[tuple[str, str, int]]] = []
    for stories in ranks.values():
        one: Counter[tuple[str, str, int]] = Counter()
        for story in stories:
            for event in story.process.events:
                if not event.by_fd and shared(story, event):
                    one[event.call, event.path, event.error] += 1
        asked.append(one)
    total: Counter[tuple[str, str, int]] = sum(asked, Counter())
    common = {key: min(one[key] for one in asked) for key in total}
    alike = sum(common.values()) * len(asked)
    only: Counter[str] = Counter()
    for key, calls in total.items():
        if calls > common[key] * len(asked):
            only[key[1]] += calls - common[key] * len(asked)
    return Identical(
        calls=sum(total.values()),
        alike=alike,
        paths=len({key[1] for key, least in common.items() if least}),
        only_some=dict(only.most_common(_ONLY_SOME)),
    )
