"""A study's conclusion in words: only what follows from its samples. Pure.

Every variant is compared with the baseline over all pairs of starts; the level is shared out among
the comparisons. What the samples cannot show is said as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from brigade.study.pairs import LEVEL, Comparison, compare, needed
from brigade.study.samples import Study

_GROWS = 1.1
_ANOTHER = 1.15  # a ratio that differs by more from that over all widths is told


def conclude(study: Study) -> list[str]:
    """Sentences, the most important first."""
    if not study.samples:
        return ["Nothing was measured."]
    found = _fastest(study)
    found += [_against(study, name) for name in study.variants if name != study.baseline]
    found += _growth(study)
    found += _operations(study)
    found += [f"{study.labels[name]} was left out: {why}." for name, why in study.left_out.items()]
    return found + _unknown(study)


def against(study: Study, one: str, other: str, widths: Sequence[int] | None = None) -> Comparison:
    """All pairs of starts of two variants that stood next to each other."""
    ones: list[float] = []
    others: list[float] = []
    for ranks in widths or study.widths:
        for a, b in zip(study.seconds(one, ranks), study.seconds(other, ranks)):
            ones.append(a)
            others.append(b)
    return compare(ones, others, LEVEL / max(1, len(study.variants) - 1))


def _fastest(study: Study) -> list[str]:
    if len(study.variants) < 2:
        return []
    ranks = study.widths[-1]
    order = sorted(study.variants, key=lambda name: study.median(name, ranks))
    first, second = (study.labels[name] for name in order[:2])
    at = f"{ranks} rank{'s' if ranks > 1 else ''}"
    seconds = study.median(order[0], ranks)
    lead = against(study, order[0], order[1])
    if lead.differs and lead.ratio < 1:
        return [
            f"Quickest at {at}: {first}, {seconds:.2f} s (median); it takes {lead.ratio:.2f} of "
            f"the seconds of {second}, the next."
        ]
    there = against(study, order[0], order[1], [ranks])
    agree = there.high < 1 and len(study.widths) > 1
    all_of = "all" if there.quicker == there.pairs else f"{there.quicker} of"
    why = f"it is in {all_of} {there.pairs} pairs there, but the widths do not agree"
    return [
        f"Quickest at {at}: {first}, {seconds:.2f} s (median); that it is quicker than {second} "
        f"cannot be claimed{f': {why}' if agree else ''}."
    ]


def _against(study: Study, name: str) -> str:
    """One variant and the baseline."""
    found = against(study, name, study.baseline)
    label, base = study.labels[name], study.labels[study.baseline]
    between = f"{found.low:.2f} to {found.high:.2f}, {found.pairs} pairs of starts"
    if found.differs:
        word = "less" if found.ratio < 1 else "more"
        chance = f"by chance at most once in {1 / found.p:,.0f} times"
        return (
            f"{_upper(label)} takes {word} time than {base}: {found.ratio:.2f} of its seconds "
            f"({between}; {chance}){_at_most(study, name, found.ratio)}."
        )
    if found.alike:
        return f"{_upper(label)} and {base} take the same time, within a few percent ({between})."
    short = needed(found.level) - found.pairs
    pairs = "pair" if short == 1 else "pairs"
    more = f"; at least {short} more {pairs} would be needed to show any" if short > 0 else ""
    at_most = _at_most(study, name, found.ratio)
    return f"No difference between {label} and {base} can be claimed ({between}{more}){at_most}."


def _at_most(study: Study, name: str, ratio: float) -> str:
    """The ratio at the largest width, where it is another one."""
    if len(study.widths) < 2:
        return ""
    most = study.widths[-1]
    there = against(study, name, study.baseline, [most])
    if ratio / _ANOTHER < there.ratio < ratio * _ANOTHER:
        return ""
    span = f"{there.low:.2f} to {there.high:.2f}"
    return f"; at {most} ranks {there.ratio:.2f} ({span}, {there.pairs} pairs)"


def _growth(study: Study) -> list[str]:
    """How each variant grows with the width, by the medians and ranges at both ends."""
    if len(study.widths) < 2:
        return []
    least, most = study.widths[0], study.widths[-1]
    parts = []
    for name in study.variants:
        few, many = study.seconds(name, least), study.seconds(name, most)
        ratio = study.median(name, most) / study.median(name, least)
        apart = min(many) > max(few)
        if apart and ratio > _GROWS:
            times = f"{ratio:.1f} times"
        else:
            times = "no visible growth" if ratio <= _GROWS else "growth within the spread"
        span = f"{study.median(name, least):.2f} to {study.median(name, most):.2f} s"
        parts.append(f"{study.labels[name]} {span} ({times})")
    return [f"From {least} to {most} ranks: " + ", ".join(parts) + "."]


def _operations(study: Study) -> list[str]:
    """Calls of one rank, and what saving them brought."""
    if not study.operations:
        return []
    base = study.operations.get(study.baseline)
    parts: list[str] = []
    open_question: list[str] = []
    for_nothing: list[str] = []
    for name, counts in study.operations.items():
        text = f"{study.labels[name]} {counts['calls']:,} ({counts['failed']:,} in vain)"
        if base and base["calls"] and name != study.baseline:
            text += f", {counts['calls'] / base['calls']:.2f} of {study.labels[study.baseline]}"
            if counts["calls"] < 0.95 * base["calls"] and name in study.variants:
                compared = against(study, name, study.baseline)
                if compared.alike:
                    for_nothing.append(study.labels[name])
                elif not (compared.differs and compared.ratio < 1):
                    open_question.append(study.labels[name])
        parts.append(text)
    found = ["Calls by path of one rank on files that are not in memory: " + "; ".join(parts) + "."]
    if open_question:
        found.append(f"Fewer calls, but no gain in time shown: {', '.join(open_question)}.")
    if for_nothing:
        found.append(
            f"Fewer calls, and the same time: {', '.join(for_nothing)}. What these calls cost is "
            "not what this start-up waited for here."
        )
    return found


def _unknown(study: Study) -> list[str]:
    most = study.widths[-1]
    variant = "each variant was started once before it was timed"
    return [
        f"Not shown: more than {most} rank{'s' if most > 1 else ''} (`brigade predict` "
        f"computes that), other hours of the day, and a first start with cold caches: {variant}."
    ]


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
