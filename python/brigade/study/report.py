"""A study in the terminal: a table of medians, how it was made, and the conclusion."""

from __future__ import annotations

import shlex

from brigade.study.samples import Study


def title(study: Study) -> str:
    """One line that says what was started."""
    command = shlex.join(study.command)
    short = command if len(command) <= 70 else command[:67] + "…"
    return f"start-up of `{short}`"


def print_study(study: Study, conclusions: list[str]) -> None:
    """On standard output."""
    from rich.table import Table
    from rich.text import Text

    from brigade.console import make_console

    console = make_console(highlight=False)
    over = f"to a line with {study.until!r}" if study.until else "to the end"
    console.print(Text(title(study), style="bold"))
    console.print(Text(f"seconds {over}: median, and range below it"))
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    for ranks in study.widths:
        table.add_column(f"{ranks}\nrank{'s' if ranks > 1 else ''}", justify="right", no_wrap=True)
    counted = any(sample.requests is not None for sample in study.samples)
    if counted:
        table.add_column(f"requests\n{study.widths[-1]} ranks", justify="right")
    if study.operations:
        table.add_column("calls\na rank", justify="right")
        table.add_column("in\nvain", justify="right")
    for name in study.variants:
        cells = [_cell(study, name, ranks) for ranks in study.widths]
        if counted:
            requests = study.requests(name, study.widths[-1])
            cells.append("-" if requests is None else f"{requests:,.0f}")
        if study.operations:
            calls = study.operations.get(name)
            cells += [f"{calls['calls']:,}", f"{calls['failed']:,}"] if calls else ["-", "-"]
        table.add_row(study.labels[name], *cells)
    console.print(table)
    for heading, sentences in (("How it was made", study.facts), ("Conclusion", conclusions)):
        if sentences:
            console.print(Text(f"\n{heading}", style="bold"))
        for sentence in sentences:
            console.print(Text(f"- {sentence}"))


def _cell(study: Study, name: str, ranks: int) -> str:
    values = study.seconds(name, ranks)
    return f"{study.median(name, ranks):.2f}\n{min(values):.2f}–{max(values):.2f}"
