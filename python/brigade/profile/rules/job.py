"""Rules about what the ranks of a job do alike, or besides loading."""

from __future__ import annotations

import os
import shlex
import statistics
from collections.abc import Iterator

from brigade.printable import size
from brigade.profile.profile import SHARED, Insight
from brigade.profile.sums import STARTUP, Sums, again
from brigade.profile.words import count, listed, many, percent

COMPONENTS = 20  # libraries named mca_*
BIG_BYTES = 256 << 20
SPREAD = 0.2  # of the median
LISTINGS = 200


def ended_badly(sums: Sums) -> Iterator[Insight]:
    """The program failed: the rest describes a start-up that did not get far."""
    bad = [rank for rank in sums.profile.ranks if rank.status not in (0, None)]
    if not bad:
        return
    status = bad[0].status or 0
    what = f"signal {-status}" if status < 0 else f"status {status}"
    yield Insight(
        "warning",
        f"{many(len(bad), 'rank')} of {len(sums.profile.ranks)} ended with {what}",
        f"First: rank {bad[0].rank} on {bad[0].host}. What stands here is what was seen until "
        "then.",
        "Mend that first: a start-up that fails is seldom the one that you want to know about.",
    )


def identical(sums: Sums) -> Iterator[Insight]:
    """What every rank asks alike can be asked once."""
    same = sums.profile.identical
    if not same or not same.calls or sums.width < 2 or same.alike / sums.width < 50:
        return
    if same.alike < 0.5 * same.calls or under_brigade(sums):
        return
    yield Insight(
        "critical" if same.alike / sums.width >= 500 else "warning",
        f"{percent(same.alike, same.calls)} of what the ranks ask is the same on every rank",
        f"{count(same.alike)} of {count(same.calls)} look-ups on shared file systems, with the "
        "same "
        f"answers; {count(same.paths)} paths in all. Asked once and broadcast, they do not grow "
        "with "
        "the ranks.",
        "Start the job from one image in each node's memory.",
        f"brigade run {again(sums)}",
    )


def ranks_differ(sums: Sums) -> Iterator[Insight]:
    """Ranks that look up clearly more or less than the others."""
    each = sums.each_rank()
    if len(each) < 2:
        return
    middle = statistics.median(each.values())
    apart = {rank: n for rank, n in each.items() if abs(n - middle) > max(20, SPREAD * middle)}
    if not apart:
        return
    worst = max(apart, key=lambda rank: abs(apart[rank] - middle))
    only = sums.profile.identical.only_some if sums.profile.identical else {}
    more = f" Asked by some only: {listed(only)}." if only else ""
    yield Insight(
        "info",
        f"{many(len(apart), 'rank')} of {len(each)} differ in what they look up",
        f"The median is {count(middle)}; rank {worst} has {count(apart[worst])}.{more}",
        "A trial run records few ranks: let it see one of these, too.",
        f"brigade run --trial-command '…' {again(sums)}",
    )


def children(sums: Sums) -> Iterator[Insight]:
    """Programs that a rank starts while it starts."""
    started = [node for node in sums.profile.tree if node.kind == "process"]
    calls = sum(node.calls for node in started)
    counts = [rank.processes for rank in sums.profile.ranks if rank.rank >= 0]
    if not started or (len(started) < 3 and calls < 50):
        return
    names = listed(dict.fromkeys(os.path.basename(node.path) or node.name for node in started), 5)
    per = f" A rank has {count(statistics.median(counts))} processes." if counts else ""
    yield Insight(
        "warning" if len(started) >= 10 or calls >= 500 else "info",
        f"Each rank starts {many(len(started), 'other program')} on its way",
        f"{names}: {count(calls)} calls of their own.{per}",
        "Find who asks (the tree below shows it) and give the answer otherwise: a variable, a "
        "setting, or once before the job.",
    )


def mpi_components(sums: Sums) -> Iterator[Insight]:
    """MPI opens its components one by one."""
    found = [n for n in sums.profile.tree if os.path.basename(n.path).startswith("mca_")]
    folders = {os.path.dirname(node.path) for node in found}
    calls = sums.lookups(phase="mpi")
    if len(found) < COMPONENTS or len(folders) != 1 or calls < 50 * sums.width:
        return
    folder = folders.pop()
    yield Insight(
        "warning",
        f"MPI_Init opens {len(found)} components and looks up {count(calls / sums.width)} times on "
        "shared file systems",
        f"Open MPI lists {folder} and a folder in your home, and opens every component on every "
        "rank.",
        "Name the one folder, or build Open MPI with --disable-dlopen, which puts them into "
        "libmpi.",
        f"export OMPI_MCA_mca_base_component_path={shlex.quote(folder)}",
    )


def user_data(sums: Sums) -> Iterator[Insight]:
    """Input that every rank reads by itself."""
    read = sums.bytes(place=SHARED, phase="user", kind="read")
    opened = sums.calls(place=SHARED, phase="user", kind="open", failed=False)
    if sums.width < 2 or (read / sums.width < (1 << 20) and opened / sums.width < 100):
        return
    yield Insight(
        "warning" if read / sums.width >= (64 << 20) or opened / sums.width >= 500 else "info",
        f"Each rank reads {size(read / sums.width)} of the program's own input",
        f"{count(opened / sums.width)} opens a rank on shared file systems. If the ranks read "
        "the same, "
        "it is read as often as there are ranks.",
        "Read it on rank 0 and broadcast it: data = comm.bcast(data, root=0).",
    )


def system_shared(sums: Sums) -> Iterator[Insight]:
    """The system's own folders come over the network."""
    found = [
        mount
        for mount in sums.profile.mounts
        if mount.kind == SHARED and mount.point in ("/", "/usr", "/lib", "/lib64", "/etc")
    ]
    if not found:
        return
    calls = sum(sums.lookups_per_rank(mount=mount.point) for mount in found)
    yield Insight(
        "warning" if calls >= 50 else "info",
        f"System libraries come over the network: {listed(mount.point for mount in found)}",
        f"{listed(m.fstype for m in found)} from {listed(m.source for m in found)}; {count(calls)} "
        "look-ups a rank there.",
        "Let the image cover it, too.",
        f"brigade run --cover {shlex.quote(found[0].point)} {again(sums)}",
    )


def big_bytes(sums: Sums) -> Iterator[Insight]:
    """Bytes, not look-ups, are much of the start-up."""
    total = sum(sums.profile.files.values())
    if total < BIG_BYTES:
        return
    largest = sorted(sums.profile.files.items(), key=lambda item: -item[1])
    yield Insight(
        "critical" if total >= 4 * BIG_BYTES else "warning",
        f"{size(total)} of files are opened for loading, from each node",
        f"{count(len(largest))} files; the largest: "
        f"{listed(f'{os.path.basename(path)} {size(n)}' for path, n in largest)}.",
        "Read once and passed from node to node, the file system gives each byte once.",
        f"brigade run {again(sums)}",
    )


def opened_again(sums: Sums) -> Iterator[Insight]:
    """The same files are opened over and over."""
    worked = {"place": SHARED, "phase": STARTUP, "failed": False}
    opens = sums.per_rank(kind="open", **worked) - sums.per_rank(kind="list", **worked)
    files = len(sums.profile.files)
    if files < 20 or opens < 1.5 * files or opens - files < 100:
        return
    yield Insight(
        "info",
        f"Files are opened {opens / files:.1f} times each",
        f"{count(opens)} opens a rank that worked, of {count(files)} files.",
        "Zip files, resources and configuration are often opened again for every use: open once, "
        "keep.",
    )


def listings(sums: Sums) -> Iterator[Insight]:
    """Folders are listed often; a large one costs many requests."""
    listed_ = sums.per_rank(place=SHARED, kind="list")
    if listed_ < LISTINGS:
        return
    yield Insight(
        "info",
        f"Each rank lists folders {count(listed_)} times",
        "Two calls a folder at least: what a listing costs grows with the names in it.",
        "Entry points and plug-ins are often found by listing every sys.path folder: "
        "fewer installed packages in it make it cheaper.",
    )


def under_brigade(sums: Sums) -> bool:
    command = sums.profile.command
    return bool(command) and os.path.basename(command[0]) == "brigade"


RULES = (
    ended_badly,
    identical,
    ranks_differ,
    children,
    mpi_components,
    user_data,
    system_shared,
    big_bytes,
    opened_again,
    listings,
)
