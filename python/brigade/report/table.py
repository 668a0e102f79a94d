"""The end table of `brigade run`, for people, on standard error.

A heading for each thing that was measured, its figures below it, one fact a line: nothing needs to
be wrapped on a terminal of 60 columns, except long paths, which are parted behind a slash. In a
file, as a batch job's, every fact is one line.
"""

from __future__ import annotations

import sys
from typing import Any

from rich.text import Text

from brigade.console import make_console
from brigade.printable import is_terminal, printable, size
from brigade.report import fork
from brigade.report.causes import CAUSES

_PATHS_SHOWN = 5
_INDENT = "  "


def print_report(report: dict[str, Any]) -> None:
    """Print the table; one line only if the job ran without an image."""
    console = make_console(file=sys.stderr, highlight=False, soft_wrap=True)
    narrow = is_terminal(console.file)
    if report["unstaged"]:
        text = f"brigade: the job ran without an image: {report['unstaged']}"
        for line in _parted(text, console.width) if narrow else [text]:
            console.print(Text(line))
        return
    console.print(Text(_title(report)))
    room = console.width - len(_INDENT)
    for heading, facts in sections(report):
        console.print(Text(heading, style="bold"))
        for fact in facts:
            shown = printable(fact)
            for line in _parted(shown, room) if narrow else [shown]:
                console.print(Text(_INDENT + line))


def sections(report: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """The table: (heading, facts). What was not measured is left out."""
    found = [
        (
            "shared-file-system operations per rank",
            _operations(report["operations"], report["views"]),
        ),
        ("namespace", _namespace(report.get("namespace"))),
        ("containers", _away(report.get("away", 0))),
        ("image", _image(report["image"], report["staging"])),
        ("staging", _staging(report["staging"])),
        ("node memory", _memory(report["staging"])),
        ("start-up, seconds per rank (min, median, max)", _startup(report["startup"])),
        ("fork", fork.facts(report.get("fork"))),
        ("misses", _misses(report["misses"], report["views"])),
    ]
    return [(heading, facts) for heading, facts in found if facts]


def _parted(fact: str, room: int) -> list[str]:
    """`fact` in lines of at most `room` characters (1 at least), parted behind spaces and slashes;
    only what has neither is cut anywhere."""
    lines, room = [], max(1, room)
    while len(fact) > room:
        cut = max(fact.rfind(" ", 0, room), fact.rfind("/", 0, room)) + 1 or room
        lines.append(fact[:cut].rstrip())
        fact = fact[cut:]
    return [*lines, fact]


def _title(report: dict[str, Any]) -> str:
    ranks = (report["startup"] or {}).get("ranks") or report["ranks"]
    nodes = (report["staging"] or {}).get("nodes")
    counted = [
        f"{n} {what}{'s' if n != 1 else ''}" for n, what in ((ranks, "rank"), (nodes, "node"))
    ]
    return f"brigade: {counted[0]} on {counted[1]}"


def _operations(operations: dict[str, Any] | None, views: list[str] | None) -> list[str]:
    """Both figures count calls that name a path under a covered root, not a server's requests."""
    if not operations or views == ["namespace"]:
        return []  # nothing in the ranks counts
    facts = []
    if operations["before_per_rank"] is not None:
        facts.append(f"before {operations['before_per_rank']:,.0f} (counted in the trial)")
    after = operations["after_per_rank"]
    most = f", at most {after['max']:,.0f}" if after["max"] > after["median"] else ""
    how = "counted in this job" if views != ["python"] else "imports only, counted in this job"
    return [*facts, f"now {after['median']:,.0f}{most} ({how})"]


def _namespace(namespace: dict[str, Any] | None) -> list[str]:
    """The namespace view, and on which nodes the ranks did without it."""
    if not namespace:
        return []
    facts = []
    if namespace["ranks"]:
        folders = namespace["folders"]
        what = f"{folders:,} folder{'s' if folders != 1 else ''} covered"
        facts.append(f"{namespace['ranks']:,} ranks, {what}")
    hosts: dict[str, list[str]] = {}
    for host, why in namespace["without"].items():
        hosts.setdefault(why, []).append(host)
    for why, names in hosts.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        facts.append(f"not on {names[0]}{more}: {why}")
    return facts


def _away(programs: int) -> list[str]:
    """What Brigade has left alone, because it sees other files than were staged."""
    if not programs:
        return []
    was = "program was" if programs == 1 else "programs were"
    return [f"{programs:,} {was} started in one, and left alone"]


def _image(image: dict[str, Any] | None, staging: dict[str, Any] | None) -> list[str]:
    if not image:
        return []
    sizes = [size(image["bytes"])] if image["bytes"] else []
    if staging and staging["bytes_per_node"]:
        sizes.append(f"{size(staging['bytes_per_node'])} in a node's memory")
    facts = [", ".join(sizes)] if sizes else []
    if image["trial"]:
        trial, writing = image["trial"]["seconds"], image["trial"]["build_seconds"]
        facts.append(f"new: trial {trial:.1f} s, writing {writing:.1f} s")
        facts.append(f"why: {image['renewed']}")
    if image["grown"]:
        facts.append(
            f"grown by {image['grown']['paths']:,} paths that the last run missed "
            f"({image['grown']['seconds']:.1f} s)"
        )
    if image["left_to_file_system"]:
        facts.append("changed since, left to the file system:")
        facts += [f"  {path}" for path in image["left_to_file_system"][:_PATHS_SHOWN]]
        if len(image["left_to_file_system"]) > _PATHS_SHOWN:
            facts.append(f"  and {len(image['left_to_file_system']) - _PATHS_SHOWN} more")
    if image["ranks_agreed"] is False:
        facts.append("the trial's ranks differed: see brigade image info")
    return facts


def _staging(staging: dict[str, Any] | None) -> list[str]:
    if not staging:
        return []
    seconds = f"{staging['seconds']:.2f} s"
    if staging.get("transport") == "standing":
        return [f"{seconds} (it stands on every node: brigade stage)"]
    by = [f"by sbcast: {staging['transport_why']}"] if staging.get("transport_why") else []
    if staging["already"] == staging["nodes"]:
        return [f"{seconds} (every node had it)"]
    if staging["bytes_per_second_per_node"]:
        seconds += f", {size(staging['bytes_per_second_per_node'])}/s into each node"
    return [seconds, f"{size(staging['read_bytes'])} read from the file system in all", *by]


def _memory(staging: dict[str, Any] | None) -> list[str]:
    """What `--memory` did, if it was given, or why no contents were copied."""
    memory = (staging or {}).get("memory")
    if not staging or not memory:
        return []
    if staging["stays_on_disk"]:
        return ["nothing is on a shared file system: files are opened where they lie"]
    allowed, whole = size(memory["allowed"]), size(memory["whole"])
    files = memory["left_out_files"]
    if not files:
        return [f"{whole} of the {allowed} allowed: nothing left out"]
    return [
        f"{allowed} allowed, {whole} wanted",
        f"{files:,} file{'s' if files != 1 else ''} ({size(memory['left_out_bytes'])}) left on the "
        "file system, largest:",
        *memory["largest"],
    ]


def _startup(startup: dict[str, Any] | None) -> list[str]:
    if not startup:
        return []
    own, launch = startup["per_rank"], startup["after_launch"]
    return [
        f"{own['min']:.2f}, {own['median']:.2f}, {own['max']:.2f}",
        f"the last rank {launch['max']:.2f} s after the launch",
    ]


def _misses(misses: dict[str, Any], views: list[str] | None) -> list[str]:
    if not misses["total"]:
        return [] if views == ["namespace"] else ["none"]
    return [
        *[f"{number:,} {_cause(cause)}" for cause, number in misses["by_cause"].items()],
        *[
            f"{miss['count']} x {miss['op']} {miss['path']} ({_cause(miss['cause'])})"
            for miss in misses["paths"][:_PATHS_SHOWN]
        ],
    ]


def _cause(name: str) -> str:
    return CAUSES.get(name, name)
