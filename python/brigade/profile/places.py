"""Where a path lies: on which mount, and whether that mount's answers come from elsewhere.

A call about a link itself (readlink, lstat, unlink) lies where the link does, any other where the
link leads. Links are resolved as the trace shows them (a readlink that worked) and, beyond that, as
the local file system has them afterwards: a trace of another machine keeps its paths as they were
asked.
What is below /proc is the kernel's, and never followed: it leads elsewhere for each process.

What counts as shared is decided as for an image (`brigade.trial.mounts.coverage`): shared file
systems that were looked at, folders named with --cover, and if neither was seen, the program's own
folder, which then stands for one. A folder that only counts as shared is a mount of its own here.
Where a job was `viewed` (its installed software mounted from node memory), that is what answered.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from brigade.profile.profile import KERNEL, LOCAL, MEMORY, SHARED, MountUse
from brigade.trace.events import Event, Trace
from brigade.trial.mounts import Coverage, Mount, MountTable, coverage, is_under, parse, read

KERNEL_TYPES = frozenset(
    """proc sysfs devtmpfs devpts cgroup cgroup2 mqueue debugfs tracefs securityfs bpf configfs
    hugetlbfs pstore fusectl binfmt_misc efivarfs nsfs rpc_pipefs selinuxfs""".split()
)
MEMORY_TYPES = frozenset({"tmpfs", "ramfs"})
_PROC = "/proc"
_MOST_LINKS = 40  # in a row: as many as the kernel follows
#: The mount of what has no path: pipes, sockets, anonymous memory.
NOWHERE = MountUse("", "none", "pipes and sockets", KERNEL)


class Places:
    """Answers for all hosts of one trace."""

    def __init__(
        self,
        trace: Trace,
        cover: Iterable[str] = (),
        prefixes: Iterable[str] = (),
        viewed: bool = False,
    ):
        self._viewed = viewed
        self._tables = {
            host: MountTable(parse(text)) for host, text in sorted(trace.mountinfo.items())
        }
        self.assumed = not self._tables
        if self.assumed:
            self._tables[""] = read()
        self._any = next(iter(self._tables.values()))
        self._links = {
            event.path: event.other
            for _, event in trace.events()
            if event.kind == "link"
            and not event.error
            and event.other
            and not is_under(event.path, _PROC)
        }
        self._foreign = {
            link: os.path.normpath(os.path.join(os.path.dirname(link), target))
            for link, target in self._links.items()
            if not os.path.lexists(link)
        }
        self._folders: dict[str, str] = {}
        self._resolved: dict[str, str] = {}
        self._known: dict[tuple[str, str], MountUse] = {}
        self.coverage = self._covered(trace, cover, prefixes)
        tables = self._tables.values()
        self._points = {mount.point for table in tables for mount in table}
        self._points.update(self.coverage.roots)

    def _covered(self, trace: Trace, cover: Iterable[str], prefixes: Iterable[str]) -> Coverage:
        folders = {
            self._where(event.path, event.follows).rpartition("/")[0] or "/"
            for _, event in trace.events()
            if event.path.startswith("/")
        }
        merged = MountTable(mount for table in self._tables.values() for mount in table)
        asked = [os.path.realpath(folder) for folder in cover]
        return coverage(sorted(folders), merged, asked, list(prefixes))

    def resolve(self, path: str) -> str:
        """The path without links in its folders; a link at its end is followed as well. Each path
        is looked at once: the trace of a wide job has each of them many times."""
        known = self._resolved.get(path)
        if known is None:
            known = self._resolved[path] = self._resolve(path)
        return known

    def _resolve(self, path: str) -> str:
        here = self._where(path, False)
        name = path.rpartition("/")[2]
        if name in ("", ".", "..") or is_under(here, _PROC):
            return here
        target = self._links.get(path)
        if target is not None:
            return os.path.normpath(os.path.join(os.path.dirname(here), target))
        for _ in range(_MOST_LINKS):
            if is_under(here, _PROC) or not os.path.islink(here):
                break
            here = self._where(os.path.join(os.path.dirname(here), os.readlink(here)), False)
        return here

    def _where(self, path: str, follows: bool) -> str:
        """The path without links in its folders; `follows`: nor at its end."""
        if follows:
            return self.resolve(path)
        if is_under(path, _PROC):
            return os.path.normpath(path)
        folder, _, name = path.rpartition("/")
        found = self._folders.get(folder)
        if found is None:
            found = self._folders[folder] = self._real(folder or "/")
        if name in ("", "."):
            return found
        return os.path.dirname(found) if name == ".." else f"{found.rstrip('/')}/{name}"

    def _real(self, folder: str) -> str:
        for link, target in self._foreign.items():
            if is_under(folder, link):
                return os.path.normpath(target + folder[len(link) :])
        return os.path.realpath(folder)

    def tidy(self, path: str) -> str:
        """Without "..", as $ORIGIN/../lib leaves it, where that is the same folder."""
        if ".." not in path:
            return path
        plain = os.path.normpath(path)
        return plain if self.resolve(plain) == self.resolve(path) else path

    def at(self, host: str, event: Event) -> MountUse:
        """The mount that a call was about."""
        return self.of(host, event.path, event.follows)

    def of(self, host: str, path: str, follows: bool = True) -> MountUse:
        """The mount that a path lies on, as the process on `host` meant it."""
        if not path.startswith("/"):
            return NOWHERE
        where = self._where(path, follows)
        key = (host, where if where in self._points else where.rpartition("/")[0])
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._use(host, where)
        return known

    def _use(self, host: str, where: str) -> MountUse:
        mount = self._tables.get(host, self._any).of(where) or Mount("/", "unknown", "unknown")
        root = self.coverage.root_of(where)
        if root is not None and self._viewed:
            return MountUse(root, "overlay", "brigade", MEMORY)
        if root is not None and self.coverage.why[root] != "shared":
            return MountUse(root, mount.fstype, mount.source, SHARED)
        return MountUse(mount.point, mount.fstype, mount.source, kind_of(mount))

    def stand_in(self) -> str | None:
        """The folder that counts as shared because nothing shared was looked at."""
        return next((root for root, why in self.coverage.why.items() if why == "prefix"), None)


def kind_of(mount: Mount) -> str:
    """Where the answers of a mount come from."""
    if mount.fstype in KERNEL_TYPES:
        return KERNEL
    if mount.fstype in MEMORY_TYPES:
        return MEMORY
    return SHARED if mount.shared else LOCAL
