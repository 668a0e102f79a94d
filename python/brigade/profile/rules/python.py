"""Rules about how Python finds its modules."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator

from brigade.printable import size
from brigade.profile.profile import Insight
from brigade.profile.rules.search import WORTH, cost, entries, in_use, severity, without
from brigade.profile.sums import Sums
from brigade.profile.words import count, listed, many, percent

SOURCES_READ = 5  # modules compiled at each start, from which it is worth a word
_CACHED = re.compile(r"(.*/)?__pycache__/([^/]+?)\.[^./]+(\.opt-\d)?\.pyc$")


def python_path(sums: Sums) -> Iterator[Insight]:
    """PYTHONPATH folders that gave nothing stand before everything else."""
    idle = [e for e in entries(sums, "sys.path") if e.owner == "PYTHONPATH" and not e.found]
    wasted = sum(cost(entry) for entry in idle)
    if wasted < WORTH:
        return
    places = list(dict.fromkeys(entry.place for entry in idle))
    useful = [e for e in in_use(sums, "sys.path") if e.owner == "PYTHONPATH"]
    yield Insight(
        severity(wasted),
        f"{many(len(places), 'PYTHONPATH folder')} gave nothing and cost each rank {count(wasted)} "
        "calls",
        f"Each import looks there first: {listed(places)}.",
        "Leave out what this job does not use; modules files often add it.",
        without("PYTHONPATH", places) if useful else "unset PYTHONPATH",
    )


def editable(sums: Sums) -> Iterator[Insight]:
    """Folders that .pth files add: what `pip install -e` leaves."""
    found = [e for e in entries(sums, "sys.path") if e.owner.endswith((".pth", ".egg-link"))]
    wasted = sum(cost(entry) for entry in found)
    if wasted < WORTH:
        return
    yield Insight(
        severity(wasted),
        f"{many(len(found), 'folder')} from .pth files cost each rank {count(wasted)} calls in "
        "vain",
        f"{listed(e.place for e in found)}: put on sys.path by "
        f"{listed(dict.fromkeys(os.path.basename(e.owner) for e in found))}, as `pip install -e` "
        "does.",
        "Install these packages into site-packages for production runs.",
        f"pip install {shlex.quote(found[0].place)}    # without -e",
    )


def user_site(sums: Sums) -> Iterator[Insight]:
    """~/.local is searched before site-packages, and nothing comes from there."""
    found = [
        e
        for e in entries(sums, "sys.path")
        if "/.local/lib/python" in e.place and not e.found and cost(e) >= WORTH
    ]
    if not found:
        return
    wasted = sum(cost(entry) for entry in found)
    yield Insight(
        severity(wasted),
        f"Your own site-packages gave nothing and cost each rank {count(wasted)} calls",
        f"{listed(e.place for e in found)} is searched for every import.",
        "Start Python without it.",
        "export PYTHONNOUSERSITE=1",
    )


def script_folder(sums: Sums) -> Iterator[Insight]:
    """The script's folder stands first on sys.path, and nothing comes from there."""
    found = [e for e in entries(sums, "sys.path") if e.owner == "the script's folder"]
    wasted = sum(cost(entry) for entry in found if not entry.found)
    if wasted < 10 * WORTH or any(entry.found for entry in found):
        return
    yield Insight(
        severity(wasted),
        f"The script's folder is asked first for every import: {count(wasted)} calls for nothing",
        f"On each rank; no module came from {listed(e.place for e in found)}.",
        "Python 3.11 and later can leave it out (earlier ones with -I).",
        "export PYTHONSAFEPATH=1",
    )


def long_path(sums: Sums) -> Iterator[Insight]:
    """Imports walk over many sys.path entries."""
    found = entries(sums, "sys.path")
    wasted = sum(cost(entry) for entry in found)
    total = sums.lookups_per_rank()
    if len(found) < 4 or wasted < 100:
        return
    yield Insight(
        severity(wasted),
        f"Imports look {count(wasted)} times into a wrong folder on each rank "
        f"({percent(wasted, total)} of its look-ups)",
        f"sys.path has {len(found)} folders on shared file systems, and every import walks them in "
        "order; most in vain in "
        f"{listed([e.place for e in sorted(found, key=lambda e: -cost(e))], 2)}.",
        "Put packages into one site-packages, that of the interpreter or one environment; an "
        "image answers the whole walk from memory.",
    )


def uncompiled(sums: Sums) -> Iterator[Insight]:
    """Sources that were read although modules come from __pycache__."""
    paths = sums.profile.files
    cached = set()
    for path in paths:
        match = _CACHED.match(path)
        if match:
            cached.add(f"{match[1] or ''}{match[2]}.py")
    scripts = {node.path for node in sums.profile.tree if node.asked in ("script", "exec")}
    read = [p for p in paths if p.endswith(".py") and p not in cached and p not in scripts]
    if len(read) < SOURCES_READ:
        return
    folder = _folder(read)
    python = sums.profile.program[0] if sums.profile.program else "python"
    python = python if os.path.basename(python).startswith("python") else "python"
    yield Insight(
        "warning" if len(read) >= 10 * SOURCES_READ else "info",
        f"{count(len(read))} modules are compiled from source at each start, by every rank",
        f"Their .py were read ({size(sum(paths[p] for p in read))}) and no .pyc: "
        f"{listed(os.path.basename(p) for p in read)}; most in {folder}.",
        "Compile them once, as the user who may write there.",
        f"{shlex.quote(python)} -m compileall -q {shlex.quote(folder)}",
    )


def bytecode_written(sums: Sums) -> Iterator[Insight]:
    """Ranks write, or try to write, __pycache__ on a shared file system."""
    phases = ("interpreter", "imports")
    tried = sums.calls(place="shared", kind=("write", "change"), phase=phases)
    if tried < 2 * sums.width:
        return
    failed = sums.calls(place="shared", kind=("write", "change"), phase=phases, failed=True)
    yield Insight(
        "warning",
        f"Each rank changes the shared file system {count(tried / sums.width)} times during "
        "imports",
        f"{count(failed)} of {count(tried)} calls failed. Most often this is every rank writing "
        "the "
        "same __pycache__; changes are the dearest requests of a metadata server.",
        "Compile beforehand (python -m compileall), and let ranks write none.",
        "export PYTHONDONTWRITEBYTECODE=1",
    )


def _folder(paths: list[str]) -> str:
    """The folder below which most of the sources lie; not the root of a whole file system."""
    folder = os.path.commonpath([os.path.dirname(path) for path in paths])
    while folder.count("/") < 4:  # far apart: the part of the tree with most of them
        below = Counter(p[: p.find("/", len(folder) + 1)] for p in paths if p.startswith(folder))
        deeper = below.most_common(1)[0][0]
        if os.path.dirname(deeper) != folder.rstrip("/") or below[deeper] < 2:
            break
        folder = deeper
        paths = [path for path in paths if path.startswith(folder + "/")]
    return folder


RULES = (python_path, editable, user_site, script_folder, long_path, uncompiled, bytecode_written)
