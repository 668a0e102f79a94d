"""Rules about the whole: how much it is, how it grows, how far it is to be trusted."""

from __future__ import annotations

from collections.abc import Iterator

from brigade.profile.profile import Insight
from brigade.profile.rules.job import under_brigade
from brigade.profile.sums import WIDE, Sums, again
from brigade.profile.words import big, count, many, percent

# look-ups of one rank on shared file systems
FEW, SOME, MANY = 50, 300, 2000
SLOWED = 1.5  # traced against plain


def growth(sums: Sums) -> Iterator[Insight]:
    """What it becomes where every rank asks for itself."""
    each = sums.lookups_per_rank()
    if each < FEW or under_brigade(sums):
        return
    yield Insight(
        "critical" if each >= MANY else "warning" if each >= SOME else "info",
        f"At {WIDE[0]:,} ranks this start-up is {big(each * WIDE[0])} look-ups",
        f"{count(each)} a rank on shared file systems; by proportion {big(each * WIDE[1])} at "
        f"{WIDE[1]:,} ranks. One metadata server answers them all, one after the other.",
        "See what that means in seconds, with and without Brigade.",
        f"brigade profile --json start.json {again(sums)}\n"
        f"brigade predict --ranks {WIDE[0]} --profile start.json",
    )


def in_vain(sums: Sums) -> Iterator[Insight]:
    """Most look-ups find nothing."""
    every, failed = sums.lookups(), sums.lookups(failed=True)
    if every / sums.width < FEW or failed < 0.5 * every:
        return
    yield Insight(
        "warning" if failed / sums.width >= SOME else "info",
        f"{percent(failed, every)} of all look-ups find nothing",
        f"{count(failed / sums.width)} of {count(every / sums.width)} on each rank ask for what "
        "is not "
        "there. Few file-system clients remember an absence; such questions go to the server.",
        "The heat map says which search entries they come from.",
    )


def little(sums: Sums) -> Iterator[Insight]:
    """A start-up with nothing to mend."""
    each = sums.lookups_per_rank()
    if each >= FEW or any(rank.status not in (0, None) for rank in sums.profile.ranks):
        return
    yield Insight(
        "good",
        "This start-up is easy on the file system",
        f"{many(each, 'look-up')} a rank on shared file systems: {big(each * WIDE[0])} at "
        f"{WIDE[0]:,} ranks.",
    )


def improved(sums: Sums) -> Iterator[Insight]:
    """What the second run, under Brigade, left over."""
    after = sums.profile.after
    if not after:
        return
    before, now = sums.lookups_per_rank(), Sums(after).lookups_per_rank()
    if before < 1:
        return
    if now < 0.5 * before:
        times = f"{before / now:,.0f} times fewer" if now >= 1 else "none is left"
        yield Insight(
            "good",
            f"Under Brigade a rank asks {many(now, 'time')} instead of {count(before)}: {times}",
            "Counted in a second run of the same command, in the same way.",
            "",
            f"brigade run {again(sums)}",
        )
    else:
        yield Insight(
            "warning",
            f"Under Brigade a rank still asks {count(now)} times, of {count(before)} before",
            "Counted in a second run of the same command, in the same way.",
            "See what was missed, and why, in the table at its end.",
            f"brigade run {again(sums)}",
        )


def absorbed(sums: Sums) -> Iterator[Insight]:
    """What the clients' caches keep from the server, where they tell. A first run whose requests
    are far fewer than the look-ups of one rank found the caches warm: it is nothing to compare."""
    for found in sums.profile.server:
        asked = sums.lookups(mount=found.mount)
        if found.state != "warm" or asked < FEW * sums.width:
            continue
        same = [one for one in sums.profile.server if one.mount == found.mount]
        before = [one for one in same if one.state in ("cold", "as found")]
        if not before or before[0].requests < 0.5 * asked / sums.width:
            continue
        first = before[0].requests
        if found.requests >= 0.5 * first:
            yield Insight(
                "info",
                f"Caches do not help: warm, {percent(found.requests, first)} of the first run's "
                "requests reach the server again",
                f"{found.mount}: {count(first)} in the first run, {count(found.requests)} warm. "
                "This client asks again for names and absences.",
                "A second start on the same nodes will not be quicker; an image is.",
            )


def slowed(sums: Sums) -> Iterator[Insight]:
    """Seconds are those of a traced run."""
    cost = sums.profile.overhead
    if not cost.traced_s or not cost.plain_s or cost.traced_s < SLOWED * cost.plain_s:
        return
    yield Insight(
        "info",
        f"Tracing made this run {cost.traced_s / cost.plain_s:.1f} times slower",
        f"{cost.traced_s:.2f} s traced, {cost.plain_s:.2f} s plain, in runs after the first. "
        "Counts are exact; seconds include the tracing.",
        "Compare seconds with each other, not with a clock.",
    )


def unseen(sums: Sums) -> Iterator[Insight]:
    """A trace from which something is missing, as it says itself."""
    lost = [text for text in sums.profile.lost if not text.lower().startswith("nothing")]
    if not lost:
        return
    yield Insight(
        "info",
        "Not everything could be seen",
        " ".join(" ".join(one.split()).rstrip(".") + "." for one in lost),
        "Counts are lower bounds for what is named here.",
    )


RULES = (growth, in_vain, little, improved, absorbed, slowed, unseen)
