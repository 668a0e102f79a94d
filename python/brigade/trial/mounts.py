"""Which paths lie on file systems that the nodes of a machine share.

`/proc/self/mountinfo` is parsed into a table; each mount is *shared* or *local* by the
type of its file system. A *coverage* is what an image answers for: the mount points of
shared file systems that a trial saw, plus the folders named with `--cover`. Local disks
are left out: they are node-local already and may differ from node to node.

Decided here, because names alone do not tell:
- FUSE is shared unless the helper is known to serve something that the node itself holds
  or unpacks. `fuse.squashfuse` is such a helper: look-ups in it never leave the node, and
  the next node may have mounted another file there. `--cover` covers it nevertheless.
- CernVM-FS (type `fuse`, source `cvmfs2`) is shared: its cache is filled over the network.
- `overlay` is local: it is a container's root; what it shows may differ between nodes.

What must stay true: every root is canonical (no link, no "..", no double slash), and no
root lies inside another.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SHARED_TYPES = frozenset(
    """nfs nfs4 lustre gpfs mmfs ceph beegfs beegfs_nodev 9p virtiofs afs cifs smb3 smbfs panfs
    pvfs2 orangefs glusterfs wekafs dvs gfs2 ocfs2 coda acfs vboxsf prl_fs""".split()
)
LOCAL_FUSE = frozenset(
    """squashfuse squashfuse_ll snapfuse fuse-overlayfs overlayfs unionfs unionfs-fuse mergerfs
    bindfs gvfsd-fuse portal lxcfs encfs gocryptfs cryfs archivemount fuseiso ratarmount erofsfuse
    fuse2fs fuse-ext2 ntfs ntfs-3g exfat exfat-fuse vmware-vmblock jmtpfs simple-mtpfs""".split()
)
# Never covered, whatever else is: names there mean something else in every process.
KERNEL_FOLDERS = ("/proc", "/sys", "/dev")
# Too wide to be one program's own folder.
NOT_A_PREFIX = frozenset(
    """/ /usr /usr/local /bin /sbin /lib /lib64 /etc /opt /home /root /srv /mnt /media /tmp /var
    /var/tmp /run /boot""".split()
)
_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    point: str
    fstype: str
    source: str
    device: int = field(default=0, compare=False)  #: st_dev of what is mounted there, as a rule

    @property
    def shared(self) -> bool:
        """True if what is mounted comes from outside the node."""
        base, _, helper = self.fstype.partition(".")
        if base == "fuse":
            named = helper or self.source.rpartition("/")[2].partition("#")[0].partition(":")[0]
            return named not in LOCAL_FUSE
        return self.fstype in SHARED_TYPES or base in SHARED_TYPES


def is_under(path: str, folder: str) -> bool:
    """True if `path` is `folder` or lies below it (both without a trailing slash)."""
    return path == folder or folder == "/" or path.startswith(folder + "/")


def _unescape(text: str) -> str:
    raw = _ESCAPE.sub(lambda found: chr(int(found.group(1), 8)), text)
    return os.fsdecode(raw.encode("utf-8", "surrogateescape")) if raw.isascii() else raw


def parse(text: str) -> list[Mount]:
    """The mounts of a mountinfo text in mount order; lines that are not one are skipped."""
    mounts = []
    for line in text.splitlines():
        left, dash, right = line.partition(" - ")
        before, after = left.split(" "), right.split(" ")
        if not dash or len(before) < 6 or len(after) < 2:
            continue
        device = _device(before[2])
        mounts.append(Mount(_unescape(before[4]), after[0], _unescape(after[1]), device))
    return mounts


def _device(text: str) -> int:
    major, _, minor = text.partition(":")
    return os.makedev(int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else 0


class MountTable:
    """Answers which mount a canonical path lies on."""

    def __init__(self, mounts: Iterable[Mount]) -> None:
        self._by_point = {mount.point: mount for mount in mounts}  # the last one hides the others

    def __iter__(self) -> Iterator[Mount]:
        return iter(self._by_point.values())

    def of(self, path: str) -> Mount | None:
        while True:
            mount = self._by_point.get(path)
            if mount is not None or path in ("", "/"):
                return mount
            path = path.rpartition("/")[0] or "/"


def read(folder: str | os.PathLike[str] | None = None) -> MountTable:
    """The mounts as the trial's nodes saw them: `*.mountinfo` in the record folder if the
    recorder left one, otherwise those of this process."""
    texts = []
    if folder is not None:
        texts = sorted(Path(folder).glob("*.mountinfo"))
    source = texts[0] if texts else Path("/proc/self/mountinfo")
    try:
        return MountTable(parse(source.read_text(encoding="utf-8", errors="surrogateescape")))
    except OSError:
        return MountTable([])


@dataclass
class Coverage:
    """The trees an image answers for. `holes` are mounts inside a root that are not shared;
    `why` is one of `shared`, `asked`, `prefix` for each root."""

    roots: list[str] = field(default_factory=list)
    holes: list[str] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict)

    def root_of(self, path: str) -> str | None:
        """The covered root that a canonical path lies under, or None."""
        for root in self.roots:
            if is_under(path, root):
                inside = any(is_under(path, h) and is_under(h, root) for h in self.holes)
                return None if inside else root
        return None

    def covers(self, path: str) -> bool:
        return self.root_of(path) is not None

    @property
    def fallback(self) -> bool:
        """True if nothing shared was seen and the program's own folders stand in."""
        return "prefix" in self.why.values()


def _outermost(roots: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for root in sorted(set(roots)):
        if not any(is_under(root, other) for other in kept):
            kept.append(root)
    return kept


def _is_kernel(path: str) -> bool:
    return any(is_under(path, folder) for folder in KERNEL_FOLDERS)


def coverage(
    folders: Iterable[str],
    table: MountTable,
    cover: Iterable[str] = (),
    prefixes: Iterable[str] = (),
) -> Coverage:
    """What an image of a trial that looked into `folders` answers for.

    All are canonical. `cover` are folders that the user named; `prefixes` are the program's
    own folders, used only if neither gives a root.
    """
    why: dict[str, str] = {}
    for folder in dict.fromkeys(folders):
        mount = table.of(folder)
        if mount is not None and mount.shared and not _is_kernel(mount.point):
            why.setdefault(mount.point, "shared")
    for root in cover:
        why.setdefault(root, "asked")
    if not why:
        for root in prefixes:
            if root not in NOT_A_PREFIX and not _is_kernel(root):
                why[root] = "prefix"
    roots = _outermost(why)
    holes = [
        mount.point
        for mount in table
        if not mount.shared
        and any(is_under(mount.point, root) and mount.point != root for root in roots)
    ]
    holes += [folder for folder in KERNEL_FOLDERS if "/" in roots and folder not in holes]
    return Coverage(roots, holes, {root: why[root] for root in roots})
