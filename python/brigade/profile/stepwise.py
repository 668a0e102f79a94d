"""An explanation for people: who asked, where it looked, what that cost, what is cheaper."""

from __future__ import annotations

import os

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from brigade.profile.explain import Explanation, Step
from brigade.profile.words import many

_HOW = {
    "DT_NEEDED": "is needed by",
    "dlopen": "is opened (dlopen) by",
    "LD_PRELOAD": "is preloaded (LD_PRELOAD) into",
    "import": "is imported by",
    "script": "is the script of",
    "exec": "is started by",
}


def print_explanation(told: Explanation, console: Console) -> None:
    """One explanation, from 60 columns on."""
    parts: list[RenderableType] = [_head(told), Text(_asked(told)), _table(told.steps)]
    if told.read_calls:
        parts.append(
            Text(
                f"Read: {many(told.read_calls, 'call')}, {told.read_us:,.0f} µs, "
                f"{told.read_bytes:,} bytes read."
            )
        )
    if told.of_ranks > 1:
        parts.append(Text(f"Looked for on {told.ranks} of {told.of_ranks} ranks."))
    if told.closest:
        parts.append(Text("Closest: " + ", ".join(told.closest)))
    if told.cheaper:
        parts.append(Text("What would make it cheaper:"))
        parts += [Padding(Text(f"- {one}"), (0, 0, 0, 2)) for one in told.cheaper]
    console.print(Group(*parts))


def _head(told: Explanation) -> Text:
    wasted = f"{many(told.calls, 'call')}, {told.wasted:,} of them in vain"
    if told.calls == 1:
        wasted = "1 call, in vain" if told.wasted else "1 call, not in vain"
    head = Text(told.name, style="bold")
    if told.found:
        return head.append(f": found at {told.found}; {wasted}", style="not bold")
    return head.append(f": not found; {wasted}", style="not bold")


def _asked(told: Explanation) -> str:
    if not told.chain:
        return f"A {told.kind}; who asked for it is not known."
    sure = "" if told.certain else " (inferred)"
    links = ", by ".join(told.chain[1:])
    return f"It {_HOW.get(told.how, 'is asked for by')} {told.chain[0]}{sure}" + (
        f", by {links}." if links else "."
    )


def _table(steps: list[Step]) -> Table:
    """One step a row; the paths last, because they are long."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("answer", no_wrap=True)
    table.add_column("calls", justify="right", no_wrap=True)
    table.add_column("µs", justify="right", no_wrap=True)
    table.add_column("where, and because of what", overflow="fold")
    for number, step in enumerate(steps, 1):
        where = Text(os.path.normpath(step.place))
        if step.hwcaps:
            where.append(", builds for kinds of processors")
        if step.shared:
            where.append(" (shared)", style="yellow")
        where.append(f"\n{_because(step)}", style="dim")
        table.add_row(
            str(number),
            Text(step.answer, style="green" if step.answer == "found" else ""),
            f"{step.calls:,}",
            f"{step.us:,.0f}" if step.us else "",
            where,
        )
    return table


def _because(step: Step) -> str:
    """The cause, and who made the place one, if that says more."""
    if step.owner in ("", step.cause):
        return step.cause
    owner = os.path.basename(step.owner) if step.cause in ("RPATH", "RUNPATH") else step.owner
    joined = " of " if step.cause in ("RPATH", "RUNPATH", "package path") else ", "
    return f"{step.cause}{joined}{owner}"
