"""The page's contents for a terminal, from 60 columns; without colour where there is none.

Sections as in the end table of `brigade run`: a heading, the facts below it. Everything is `Text`,
never markup, so that names of files cannot colour or move anything. Commands are printed in one
piece, so that they can be copied whatever the width.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from brigade.page import forest, view
from brigade.printable import size
from brigade.profile.insights import find
from brigade.profile.profile import Profile
from brigade.profile.sums import Sums
from brigade.profile.words import count, many, percent, printable, seconds

_INDENT = 2
_COLOURS = {"critical": "red", "warning": "yellow", "info": "blue", "good": "green"}
_AT_LENGTH = ("critical", "warning")  # the others are told at length on the page
_ENTRIES, _TREE_DEPTH, _TREE_CHILDREN, _TREE_ROWS = 8, 2, 5, 24


def show(profile: Profile, console: Console) -> None:
    """Print the whole report."""
    sums = Sums(profile)
    _say(console, view.headline(sums), "bold", 0)
    _say(console, view.lead(sums), "", 0)
    _insights(profile, console)
    _counts(sums, console)
    _searches(profile, console)
    _phases(sums, console)
    _tree(profile, console)
    _identical(profile, sums, console)
    _comparison(profile, console)
    _seen(profile, console)


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))


def _say(console: Console, text: str, style: str = "", indent: int = _INDENT) -> None:
    """Words, broken where they end, all lines indented alike."""
    _wrapped(console, Text(printable(text), style=style), indent)


def _wrapped(console: Console, text: Text, indent: int = _INDENT) -> None:
    for line in text.wrap(console, max(20, console.width - indent)):
        line.rstrip()
        console.print(Text(" " * indent) + line, soft_wrap=True)


def _command(console: Console, command: str) -> None:
    """A command to copy: as it is, and in one piece."""
    for line in command.split("\n"):
        text = Text(" " * _INDENT + "$ " + printable(line), style="cyan")
        console.print(text, soft_wrap=True)


def _insights(profile: Profile, console: Console) -> None:
    _heading(console, "what to do")
    for one in profile.insights or find(profile):
        title = Text(f"{one.severity.upper()}: ", style=f"bold {_COLOURS[one.severity]}")
        title.append(printable(one.title), style="default")
        _wrapped(console, title)
        if one.severity in _AT_LENGTH:
            _say(console, one.detail, "", 2 * _INDENT)
            if one.recommendation:
                _say(console, f"-> {one.recommendation}", "", 2 * _INDENT)
        if one.command:
            _command(console, one.command)


def _table(console: Console, titles: Iterable[str], rows: Iterable[list[str]]) -> None:
    """Names at the left, numbers at the right."""
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2 if console.width > 72 else 1, 0, 0),
        header_style="dim",
    )
    for number, title in enumerate(titles):
        table.add_column(title, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console.print(Padding(table, (0, 0, 0, _INDENT), expand=False))


def _counts(sums: Sums, console: Console) -> None:
    who = "a rank" if sums.ranks else "the program"
    _heading(console, f"calls of {who}, found and in vain")
    titles = ["", "shared", "vain", "local", "vain", "memory", "vain", "all"]
    rows = [
        [row.name, *(count(calls / sums.width) for calls in [*row.calls, row.total])]
        for row in [*view.counts(sums), *view.around_main(sums)]
    ]
    _table(console, titles, rows)
    if sums.width > 1:
        _say(console, f"{count(sums.calls())} on {many(sums.width, 'rank')} together")


def _searches(profile: Profile, console: Console) -> None:
    entries = view.wasted(profile)
    if not entries:
        return
    _heading(console, "searched in vain, calls of a rank")
    room = console.width - _INDENT
    for entry in entries[:_ENTRIES]:
        what = f"{entry.cause}{' hwcaps' if entry.hwcaps else ''}"
        number = f"{count(entry.wasted):>7}  {what:<15} "
        place = printable(entry.place) or "(empty: the current folder)"
        console.print(Text(" " * _INDENT + number + _cut(place, room - len(number))))
        if entry.owner and entry.owner != entry.cause:
            by = f"by {printable(entry.owner)}"
            console.print(Text(" " * (_INDENT + len(number)) + _cut(by, room - len(number)), "dim"))
    if len(entries) > _ENTRIES:
        rest = entries[_ENTRIES:]
        number = f"{count(sum(entry.wasted for entry in rest)):>7}"
        _say(console, f"{number}  in {many(len(rest), 'more entry', 'more entries')}")


def _cut(text: str, room: int) -> str:
    """The end of a long path says more than its start."""
    return text if len(text) <= room else "…" + text[len(text) - room + 1 :]


def _phases(sums: Sums, console: Console) -> None:
    rows = view.phases(sums)
    if not rows:
        return
    _heading(console, "look-ups on shared file systems by phase: # found, - in vain")
    most = max(row.shared + row.failed for row in rows) or 1
    room = max(8, console.width - _INDENT - 36)
    for row in rows:
        found = round(room * row.shared / most)
        failed = min(room - found, round(room * row.failed / most))
        line = Text(" " * _INDENT + f"{row.name:<12}")
        line.append(f"{count(row.shared / sums.width):>7} {count(row.failed / sums.width):>7}  ")
        line.append("#" * found, "blue").append("-" * failed, "red")
        console.print(line)


def _tree(profile: Profile, console: Console) -> None:
    if not profile.tree:
        return
    _heading(console, "who loaded what: calls, in vain, with everything below")
    for number, row in enumerate(forest.rows(profile.tree, _TREE_CHILDREN, _TREE_DEPTH)):
        if number == _TREE_ROWS:
            _say(console, "and more: see the page")
            break
        line = Text(f"{' ' * _INDENT}{count(row.calls):>7} {count(row.wasted):>7}  ")
        line.append("  " * row.depth)
        if row.node:
            mark = "" if row.node.certain else " (inferred)"
            line.append(printable(row.node.name)).append(f" {row.node.kind}{mark}", "dim")
        else:
            line.append(f"{row.folded:,} smaller", "dim")
        line.truncate(console.width, overflow="ellipsis")
        console.print(line)


def _identical(profile: Profile, sums: Sums, console: Console) -> None:
    same = profile.identical
    if not same or sums.width < 2:
        return
    _heading(console, "the same on every rank")
    _say(
        console,
        f"{percent(same.alike, same.calls)}: {count(same.alike)} of {count(same.calls)} calls, "
        f"{many(same.paths, 'path')}",
    )


def _comparison(profile: Profile, console: Console) -> None:
    rows = view.comparison(profile)
    if rows:
        _heading(console, "before and after")
        titles = ["", "as it is", "Brigade"]
        _table(console, titles, [[row.label, row.before_text, row.after_text] for row in rows])


def _seen(profile: Profile, console: Console) -> None:
    _heading(console, f"how it was seen: {profile.mechanism}")
    for text in profile.seen:
        _say(console, " ".join(text.split()))
    for text in profile.lost:
        _say(console, f"lost: {' '.join(text.split())}")
    _say(console, view.overhead(profile))
    for one in profile.server:
        read = f", {size(one.bytes_read)} read" if one.bytes_read is not None else ""
        text = f"{one.mount} ({one.source}), {one.state}: {many(one.requests, 'request')}{read}"
        _say(console, text)
    ready = [rank.ready_s - rank.start_s for rank in profile.ranks if rank.ready_s is not None]
    if ready:
        _say(console, f"to start: {seconds(min(ready))} to {seconds(max(ready))} a rank")
