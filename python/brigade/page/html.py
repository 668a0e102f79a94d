"""The page: a profile as one HTML file that needs nothing else, on a screen or on paper.

`view`, `forest` and `chart` work out what is shown; the templates say how. The file works without
JavaScript, which only adds copying, filtering and the values under the pointer. Every value goes
through `_shown`, and the templates escape by themselves: names of files cannot become markup.
"""

from __future__ import annotations

import os
import statistics
from typing import TYPE_CHECKING, Any

from brigade.errors import BrigadeError
from brigade.page import forest, view
from brigade.page.chart import Chart, Mark, chart, nice
from brigade.printable import size
from brigade.profile import words
from brigade.profile.insights import find
from brigade.profile.profile import Profile, Timeline
from brigade.profile.sums import WIDE, Sums

if TYPE_CHECKING:
    from jinja2 import Environment

RANKS_SHOWN = 24
FILES_SHOWN = 12
ENTRIES_SHOWN = 400


def write(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Write the page. Raises BrigadeError if the file cannot be written."""
    text = render(profile)
    try:
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise BrigadeError(
            f"the page cannot be written to {os.fspath(path)}: {error.strerror}",
            hint="name another file with --html FILE",
        ) from error


def environment_of(**more: Any) -> Environment:
    """Jinja2's, for the templates of this folder: what is put in is escaped, and must be there."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("brigade.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        **more,
    )


def render(profile: Profile) -> str:
    """The page as text."""
    environment = environment_of(finalize=_shown)
    environment.filters.update(
        {name: getattr(words, name) for name in ("count", "big", "seconds", "many")}
        | {"size": size}
    )
    environment.filters["shell"] = words.shell
    environment.filters["widest"] = _widest
    environment.filters["transposed"] = _transposed
    return environment.get_template("page.html").render(values(profile))


def values(profile: Profile) -> dict[str, Any]:
    """Everything that the templates name."""
    sums = Sums(profile)
    return {
        "profile": profile,
        "sums": sums,
        "wide": WIDE,
        "headline": view.headline(sums),
        "lead": view.lead(sums),
        "facts": view.facts(sums),
        "insights": profile.insights or find(profile),
        "counts": view.counts(sums),
        "around_main": view.around_main(sums),
        "places": list(view.PLACES),
        "phases": view.phases(sums),
        "charts": charts(profile),
        "heat": view.heat(profile),
        "wasted": view.wasted(profile),
        "entries": view.entries(profile)[:ENTRIES_SHOWN],
        "tree": list(forest.rows(profile.tree)),
        "ranks": _ranks(profile, sums),
        "files": sorted(profile.files.items(), key=lambda item: -item[1])[:FILES_SHOWN],
        "comparison": view.comparison(profile),
        "overhead": view.overhead(profile),
        "percent": words.percent,
    }


def charts(profile: Profile) -> list[tuple[str, Chart, Chart | None, list[Mark]]]:
    """What is drawn over time: (whose operations, the chart, the same under Brigade on the same
    axes, marks); what reached servers before what was called."""
    order = sorted(profile.timelines, key=lambda line: line.of == "calls")
    pairs = [(line, _same(profile.after, line) if profile.after else None) for line in order]
    ready = [rank.ready_s for rank in profile.ranks if rank.ready_s is not None]
    lengths = [chart(line).length_s for pair in pairs for line in pair if line]
    length = max([statistics.median(ready) * 1.03 if ready else 0.0, *lengths])
    drawn = []
    for line, then in pairs:
        top = nice(max(chart(one, length).peak for one in (line, then) if one))
        main = chart(line, length, top)
        after = chart(then, length, top) if then else None
        drawn.append((_whose(line), main, after, _marks(profile, main)))
    return drawn


def _same(after: Profile, line: Timeline) -> Timeline | None:
    """The second run's timeline of the same sort; its steps may be others."""
    return next((one for one in after.timelines if one.of == line.of), None)


def _whose(line: Timeline) -> str:
    if line.of == "calls":
        return "calls on shared file systems, as the ranks made them"
    return f"requests to the servers, as the {line.of} clients counted them"


def _marks(profile: Profile, drawn: Chart) -> list[Mark]:
    """When the ranks reached main and were ready, in the median."""
    found = []
    for text, name in (("main", "main_s"), ("ready", "ready_s")):
        at = [getattr(rank, name) for rank in profile.ranks]
        at = [value for value in at if value is not None]
        if at and 0 < statistics.median(at) < drawn.length_s:
            found.append(Mark(statistics.median(at) / drawn.length_s, text))
    return found


def _ranks(profile: Profile, sums: Sums) -> dict[str, Any]:
    """The ranks on one axis of time; of many, those that were ready last."""
    own = [rank for rank in profile.ranks if rank.rank >= 0] or profile.ranks
    each = sums.each_rank()
    ends = [t for r in own for t in (r.ready_s, r.main_s, r.end_s) if t is not None]
    order = sorted(own, key=lambda rank: -(rank.ready_s or 0))
    shown = sorted(order[:RANKS_SHOWN], key=lambda rank: rank.rank)
    ready = [rank.ready_s - rank.start_s for rank in own if rank.ready_s is not None]
    spread = (min(ready), statistics.median(ready), max(ready)) if ready else None
    calls = list(each.values())
    middle = statistics.median(calls) if calls else 0
    return {
        "all": len(own),
        "shown": shown,
        "until": max(ends, default=0) or 1.0,
        "spread": spread,
        "lookups": each,
        "lookup_spread": (min(calls), middle, max(calls)) if calls else None,
        "middle": middle,
    }


def _widest(values: list[float]) -> float:
    return max(values, default=0) or 1


def _transposed(rows: list[list[int]]) -> list[tuple[int, ...]]:
    return list(zip(*rows))


def _shown(value: Any) -> Any:
    """Text with every byte printable; what is already markup stays."""
    return words.printable(value) if type(value) is str else value
