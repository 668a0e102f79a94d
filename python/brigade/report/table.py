"""The end table of `brigade run`, for people, on standard error."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from brigade.report.causes import CAUSES

_PATHS_SHOWN = 5


def print_report(report: dict[str, Any]) -> None:
    """Print the table; one line only if the job ran without an image."""
    console = Console(file=sys.stderr, highlight=False, soft_wrap=False)
    if report["unstaged"]:
        console.print(Text(f"brigade: the job ran without an image: {report['unstaged']}"))
        return
    table = Table(
        title=_title(report), title_justify="left", show_header=False, box=None, pad_edge=False
    )
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in rows(report):
        table.add_row(label, Text(text))
    console.print(table)


def rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The lines of the table: (label, text). Lines about what was not measured are left out."""
    lines = [
        ("file-system look-ups a rank", _operations(report["operations"])),
        ("image", _image(report["image"], report["staging"])),
        ("staging", _staging(report["staging"])),
        ("node memory", _memory(report["staging"])),
        ("start-up seconds a rank", _startup(report["startup"])),
        ("misses", _misses(report["misses"])),
    ]
    for miss in report["misses"]["paths"][:_PATHS_SHOWN]:
        lines.append(
            ("", f"{miss['count']} x {miss['op']} {miss['path']} ({_cause(miss['cause'])})")
        )
    return [(label, text) for label, text in lines if text]


def size(number: float) -> str:
    """Bytes in words people use: 84.1 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    raise AssertionError("unreachable")


def _title(report: dict[str, Any]) -> str:
    ranks = (report["startup"] or {}).get("ranks") or report["ranks"]
    nodes = (report["staging"] or {}).get("nodes")
    return f"brigade: {ranks} ranks on {nodes} node{'s' if nodes != 1 else ''}"


def _operations(operations: dict[str, Any] | None) -> str:
    if not operations:
        return ""
    after = operations["after_per_rank"]
    before = operations["before_per_rank"]
    text = f"{before:,.0f} before, " if before is not None else ""
    text += f"{after['median']:,.0f} now"
    if after["max"] > after["median"]:
        text += f" (at most {after['max']:,.0f})"
    return text


def _image(image: dict[str, Any] | None, staging: dict[str, Any] | None) -> str:
    if not image:
        return ""
    text = size(image["bytes"]) if image["bytes"] else ""
    if staging and staging["bytes_per_node"]:
        text += f", {size(staging['bytes_per_node'])} in a node's memory"
    if image["trial"]:
        trial, writing = image["trial"]["seconds"], image["trial"]["build_seconds"]
        text += f", new (trial {trial:.1f} s, writing {writing:.1f} s)"
    if image["ranks_agreed"] is False:
        text += "; the trial's ranks differed (brigade image info says how)"
    return text


def _staging(staging: dict[str, Any] | None) -> str:
    if not staging:
        return ""
    if staging["already"] == staging["nodes"]:
        return f"{staging['seconds']:.2f} s (every node had it)"
    text = f"{staging['seconds']:.2f} s"
    if staging["bytes_per_second_per_node"]:
        text += f", {size(staging['bytes_per_second_per_node'])}/s into each node"
    return text + f", {size(staging['read_bytes'])} read from the file system in all"


def _memory(staging: dict[str, Any] | None) -> str:
    """What `--memory` did, if it was given."""
    memory = (staging or {}).get("memory")
    if not memory:
        return ""
    allowed, whole = size(memory["allowed"]), size(memory["whole"])
    files = memory["left_out_files"]
    if not files:
        return f"{whole} of the {allowed} allowed: nothing left out"
    return (
        f"{allowed} allowed, {whole} wanted: {files:,} file{'s' if files != 1 else ''} "
        f"({size(memory['left_out_bytes'])}) left on the file system, the largest "
        + ", ".join(memory["largest"])
    )


def _startup(startup: dict[str, Any] | None) -> str:
    if not startup:
        return ""
    own = startup["per_rank"]
    launch = startup["after_launch"]
    return (
        f"{own['min']:.2f} / {own['median']:.2f} / {own['max']:.2f} (min, median, max); "
        f"the last {launch['max']:.2f} s after the launch"
    )


def _misses(misses: dict[str, Any]) -> str:
    if not misses["total"]:
        return "none"
    causes = ", ".join(
        f"{number:,} {_cause(cause)}" for cause, number in misses["by_cause"].items()
    )
    return f"{misses['total']:,}: {causes}"


def _cause(name: str) -> str:
    return CAUSES.get(name, name)
