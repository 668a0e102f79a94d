"""Decide what to look at before a job, so that changed sources are noticed cheaply.

One process asks; each question costs the shared file system a request. What a question
costs was measured on MooseFS and is about the same elsewhere: metadata of one path is one
request; reading a directory is two (permission and names), and brings the metadata of all
its names with it. So a directory with one or two things to check is asked for each of
them, any other is read.

    level   what is checked
    full    every path of the image, and the names in every directory whose names are known
    fast    1. the user's own files and folders: all that does not lie in installed software,
               and every absence there. Of a folder counts that it is there; it is asked for
               if nothing in it is. A listed folder whose time has changed is read, and in any
               case one that is not but has an import table: to see that what the table says
               is not there has not come
            2. the modification times of all directories of installed software, which come
               with reading their parents, and all files in those parents; first those of
               site-packages, then parents nearest to the root. A directory whose time has
               changed is read
            3. files in the remaining directories; as many as the budget allows, taking turns
    none    nothing

Byte code is left out of `fast`: Python decides by the source whether it is valid. What others
keep beside it (Numba its machine code, and an index of that) is checked like any file.

What must stay true: nothing here touches a file system; the same entries, budget and turn
give the same plan; step 1 is never cut, whatever the budget; a third of the budget is for
software, whatever step 1 takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from brigade.errors import UsageError
from brigade.image.layout import ABSENT, DIR
from brigade.image.names import PACKAGES, is_bytecode
from brigade.imports.claims import Claims

LEVELS = ("full", "fast", "none")
DEFAULT_BUDGET = 90
LIST_COST = 2


class Known(NamedTuple):
    """What an image says about one path. `used`: the trial touched it, or it has content."""

    path: str
    kind: int
    listed: bool
    used: bool
    size: int
    mtime_ns: int
    ctime_ns: int
    mode: int
    nlink: int
    inside: FolderCheck | None = None  # of a directory with names: for when its time has changed
    snapshot: bool = False

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0] or "/"


@dataclass
class FolderCheck:
    """Things to compare in one directory. `read`: by reading it; `names`: then these, and no
    others, must be there (None: other names do not matter). `own`: it is the user's, not of
    installed software. `claims`: what import tables say of it, that new names may contradict."""

    folder: str
    items: list[Known]
    read: bool
    names: frozenset[str] | None = None
    own: bool = False
    claims: Claims | None = None

    @property
    def cost(self) -> int:
        return LIST_COST if self.read else len(self.items)


@dataclass
class _Folder:
    """What the image has in one directory."""

    path: str
    listed: bool = False
    claims: Claims | None = None
    children: list[Known] = field(default_factory=list)


def plan_checks(
    entries: Iterable[Known],
    level: str,
    budget: int = DEFAULT_BUDGET,
    turn: int = 0,
    claims: Mapping[str, Claims] | None = None,
) -> list[FolderCheck]:
    """The directories to look into, sorted by path. `turn` says whose turn it is in step 3;
    `claims`: what import tables say of directories of the user's own."""
    if level not in LEVELS:
        raise UsageError(f"check level {level}: levels are {', '.join(LEVELS)}")
    if level == "none":
        return []
    folders = _folders(entries, claims or {})
    if level == "full":
        chosen = [_check(folder, folder.children, full=True) for folder in folders.values()]
    else:
        chosen = _fast(folders, budget, turn)
    chosen = [check for check in chosen if check.items or check.claims]
    return sorted(chosen, key=lambda check: check.folder)


def _folders(entries: Iterable[Known], claims: Mapping[str, Claims]) -> dict[str, _Folder]:
    folders = {path: _Folder(path, claims=some) for path, some in claims.items()}
    for known in entries:
        if known.path == "/":
            continue
        if known.kind == DIR and known.listed:
            folders.setdefault(known.path, _Folder(known.path)).listed = True
        if known.snapshot and known.path in claims:  # its time tells
            folders[known.path].claims = None
        folders.setdefault(known.folder, _Folder(known.folder)).children.append(known)
    for folder in sorted(folders.values(), key=lambda folder: len(folder.path), reverse=True):
        folder.children = [_with_inside(known, folders) for known in folder.children]
    return folders


def _with_inside(known: Known, folders: dict[str, _Folder]) -> Known:
    folder = folders.get(known.path)
    if known.kind != DIR or folder is None:
        return known
    if known.snapshot:
        items = [child for child in folder.children if child.kind != ABSENT]
        return known._replace(inside=FolderCheck(known.path, items, True, own=True))
    if not known.listed:
        return known
    items = [child for child in folder.children if _matters(child, True)]
    return known._replace(inside=FolderCheck(known.path, items, True, _names(folder)))


def _names(folder: _Folder) -> frozenset[str]:
    return frozenset(known.name for known in folder.children if known.kind != ABSENT)


def _check(folder: _Folder, items: list[Known], full: bool = False) -> FolderCheck:
    read = len(items) > LIST_COST or (full and folder.listed) or folder.claims is not None
    names = _names(folder) if read and folder.listed else None
    return FolderCheck(folder.path, items, read, names, not folder.listed, folder.claims)


def _check_own(folder: _Folder, folders: dict[str, _Folder]) -> FolderCheck:
    """Of a directory of the user's own: what it takes; if that is to read it, all that is known."""
    items = [known for known in folder.children if _matters(known) or _is_end(known, folders)]
    check = _check(folder, items)
    if check.read:
        check.items = [known for known in folder.children if not is_bytecode(known.path)]
    return check


def _is_end(known: Known, folders: dict[str, _Folder]) -> bool:
    """Whether it is a directory that was used, and nothing that is asked for lies in it: that
    would tell that it is there."""
    if not _is_way(known):
        return False
    below = folders.get(known.path, _Folder(known.path)).children
    return not any(_is_way(one) or (one.kind != ABSENT and _matters(one)) for one in below)


def _is_way(known: Known) -> bool:
    return known.kind == DIR and known.used and not is_bytecode(known.path)


def _fast(folders: dict[str, _Folder], budget: int, turn: int) -> list[FolderCheck]:
    own, parents, rest = [], [], []
    for folder in folders.values():
        if not folder.listed:
            own.append(_check_own(folder, folders))
            continue
        check = _check(folder, [known for known in folder.children if _matters(known, True)])
        if not check.items:
            continue
        if any(known.kind == DIR for known in check.items):
            parents.append(check)
        else:
            rest.append(check)
    parents.sort(key=lambda check: (_rank(check), check.folder.count("/"), check.folder))
    rest.sort(key=lambda check: (-len(check.items), check.folder))
    room = max(budget - sum(check.cost for check in own), budget // 3)
    chosen = own
    while parents and parents[0].cost <= room:
        room -= parents[0].cost
        chosen.append(parents.pop(0))
    return chosen + _turn(parents + rest, room, turn)


def _rank(check: FolderCheck) -> int:
    """What tells most is asked first: whether packages were installed, then in which."""
    if any(known.name in PACKAGES for known in check.items):
        return 0
    return 1 if check.folder.rpartition("/")[2] in PACKAGES else 2


def _matters(known: Known, in_software: bool = False) -> bool:
    if is_bytecode(known.path):  # a folder of it matters if others keep something there, too
        return known.inside is not None and bool(known.inside.items)
    if known.kind == DIR:
        return known.listed or known.snapshot
    return known.used or (known.kind == ABSENT and not in_software)


def _turn(checks: list[FolderCheck], room: int, turn: int) -> list[FolderCheck]:
    """This turn's share of the checks: they are dealt out in order, as many to a share as there
    is room for, and at least one."""
    shares: list[list[FolderCheck]] = [[]]
    left = room
    for check in checks:
        if check.cost > left and shares[-1]:
            shares.append([])
            left = room
        shares[-1].append(check)
        left -= check.cost
    return shares[turn % len(shares)]
