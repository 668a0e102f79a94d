"""A staged folder made by hand, so that the import view is tested without image, stage and rank.

    world = Staged(tmp_path, python, roots=[tree], listed=[site_packages])
    world.trial([...])          run under the recorder, as in a trial
    world.stage()               copy what a trial's image would hold; make index and state
    world.run([...])            under the view         world.plain([...])   without it

The index holds every folder of the tables (for the dirty bits) and the Python section; nothing
else of it is read by the import view.
"""

from __future__ import annotations

import marshal
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from disk_tree import DiskTree

from brigade.image import layout
from brigade.imports import table

HEADER_BYTES = 208
ENTRY_BYTES = layout.ENTRY.size
STATE_HEADER_BYTES = 136
SLOT_BYTES = 128
N_MISSES = 4
DIRTY_OFF = STATE_HEADER_BYTES + SLOT_BYTES
NONE = 0xFFFFFFFF


def fnv1a(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def index_bytes(folders: Sequence[str], python: bytes) -> bytes:
    """An index (src/image/index.h) that knows `folders` and carries `python`."""
    n_buckets = 1
    while n_buckets < 2 * len(folders) + 1:
        n_buckets *= 2
    strings, entries, buckets = b"", b"", [NONE] * n_buckets
    for number, folder in enumerate(folders):
        path = folder.encode()
        entries += struct.pack("<IIIIB", len(strings), len(path), 0, 0, 2).ljust(ENTRY_BYTES, b"\0")
        strings += path + b"\0"
        slot = fnv1a(path) % n_buckets
        while buckets[slot] != NONE:
            slot = (slot + 1) % n_buckets
        buckets[slot] = number
    entries_off = HEADER_BYTES
    buckets_off = entries_off + len(entries)
    strings_off = buckets_off + 4 * n_buckets
    python_off = strings_off + len(strings)
    header = struct.pack(
        "<8sIIQQ6I11Q",
        b"BRGIDX1\0",
        1,
        HEADER_BYTES,
        python_off + len(python),
        0,
        len(folders),
        n_buckets,
        0,
        0,
        0,
        0,
        entries_off,
        buckets_off,
        0,
        0,
        0,
        0,
        strings_off,
        len(strings),
        python_off,
        len(python),
        0,
    ).ljust(HEADER_BYTES, b"\0")
    return header + entries + struct.pack(f"<{n_buckets}I", *buckets) + strings + python


class Staged:
    def __init__(
        self, folder: Path, python: str, roots: Sequence[Path], listed: Sequence[Path] = ()
    ) -> None:
        self.folder = folder
        self.python = python
        self.roots = [str(r) for r in roots]
        self.stage_folder = folder / "stage"
        self.records = folder / "records"
        self.state = self.stage_folder / "jobs" / "1" / "state"
        self.content: Callable[[str], bool] = lambda path: not path.endswith(".txt")
        self.tree = DiskTree(self.roots, [str(p) for p in listed], lambda p: self.content(p))
        self.folders: list[str] = []
        self.cwd = str(folder)
        self.lib = folder
        self.env: dict[str, str] = {}

    # the three ways to run ----------------------------------------------------------

    def _run(
        self, arguments: Sequence[str], extra: dict[str, str], env: dict[str, str] | None
    ) -> subprocess.CompletedProcess[str]:
        environ = {
            k: v for k, v in os.environ.items() if not k.startswith(("BRIGADE_", "PYTHON", "COV_"))
        }
        environ["BRIGADE_STRICT"] = "1"  # the user's own setting, seen by both
        environ.update(env or {})
        for name in ("PYTHONPATH", "LD_PRELOAD"):
            if name in extra and name in environ:
                extra["BRIGADE_SAVED_" + name] = environ[name]
                extra[name] += ":" + environ[name]
        environ.update(extra)
        return subprocess.run(
            [self.python, *arguments],
            env=environ,
            cwd=self.cwd,
            text=True,
            capture_output=True,
            timeout=120,
            check=False,
        )

    def plain(self, arguments: Sequence[str], env: dict[str, str] | None = None):
        return self._run(arguments, {}, env)

    def trial(self, arguments: Sequence[str], env: dict[str, str] | None = None):
        self.records.mkdir(exist_ok=True)
        return self._run(
            arguments, {"BRIGADE_RECORD": str(self.records), "PYTHONPATH": str(table.SITE)}, env
        )

    def run(
        self,
        arguments: Sequence[str],
        env: dict[str, str] | None = None,
        interposed: str | None = None,
    ):
        """`interposed`: path of a library that takes the preload's place."""
        extra = {
            "BRIGADE_STAGE": str(self.stage_folder),
            "BRIGADE_STATE": str(self.state),
            "BRIGADE_SLOT": "0",
            "BRIGADE_VIEW": "python",
            "PYTHONPATH": str(self.stage_folder / "root/.brigade/python"),
        }
        if interposed:
            extra["BRIGADE_VIEW"] = "interpose,python"
            extra["LD_PRELOAD"] = interposed
        return self._run(arguments, extra, env)

    # image and stage ----------------------------------------------------------------

    def seen(self) -> table.Seen:
        return table.seen(read_records(self.records))

    def stage(self, what: table.Seen | None = None) -> None:
        what = what or self.seen()
        root = self.stage_folder / "root"
        shutil.rmtree(self.stage_folder, ignore_errors=True)
        for covered in self.roots:
            self._copy(covered, root)
        for name, data in table.site_files(what).items():
            path = root / ".brigade/python" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        section = table.build(self.tree, what)
        self.folders = folders_of(section)
        (self.stage_folder / "index").write_bytes(index_bytes(self.folders, section))
        self.state.parent.mkdir(parents=True)
        slots, dirty = bytes(SLOT_BYTES), bytes((len(self.folders) // 64 + 1) * 8)
        header = struct.pack(
            "<8sIIIIQQQQ",
            b"BSTATE1\0",
            1,
            1,
            N_MISSES,
            len(self.folders),
            0,
            STATE_HEADER_BYTES,
            DIRTY_OFF,
            DIRTY_OFF + len(dirty),
        ).ljust(STATE_HEADER_BYTES, b"\0")
        self.state.write_bytes(header + slots + dirty + bytes(256 * N_MISSES))

    def counted(self) -> tuple[int, dict[int, int], list[str]]:
        """(hits, {cause: misses}, paths missed) of the one slot."""
        data = self.state.read_bytes()
        hits, *misses = struct.unpack_from("<9Q", data, STATE_HEADER_BYTES + 32)
        (at,) = struct.unpack_from("<Q", data, 48)
        (number,) = struct.unpack_from("<I", data, 60)
        paths = []
        for record in range(at, at + 256 * min(number, N_MISSES), 256):
            paths.append(data[record + 16 : record + 256].rstrip(b"\0").decode())
        return hits, {cause: n for cause, n in enumerate(misses) if n}, paths

    def _copy(self, covered: str, root: Path) -> None:
        for folder, dirs, files in os.walk(os.path.realpath(covered)):
            target = root / folder.lstrip("/")
            target.mkdir(parents=True, exist_ok=True)
            for name in dirs + files:
                source = os.path.join(folder, name)
                if os.path.islink(source):
                    to = os.readlink(source)
                    to = f"{root}{to}" if to.startswith("/") else to
                    (target / name).symlink_to(to)
                elif name in files and self.content(source):
                    shutil.copy2(source, target / name)

    def mark_changed(self, folder: Path | None) -> None:
        """What the preload does when a file changes; None: somewhere that no table names."""
        data = bytearray(self.state.read_bytes())
        data[64] = 1
        if folder is not None:
            number = self.folders.index(os.path.realpath(folder))
            data[DIRTY_OFF + number // 8] |= 1 << number % 8
        self.state.write_bytes(data)

    def mark_moved(self) -> None:
        """What it does when a link is pointed elsewhere, or a folder moved, that no table names."""
        data = bytearray(self.state.read_bytes())
        data[64] = 3
        self.state.write_bytes(data)


def folders_of(section: bytes) -> list[str]:
    """Every folder that the tables name, and every package folder in them."""
    found = set()
    for tables in marshal.loads(section).values():
        for blob in tables.values():
            folder, _listed, _mtime, names = marshal.loads(blob)
            found.add(folder)
            found.update(f"{folder}/{name}" for name in names if os.path.isdir(f"{folder}/{name}"))
    return sorted(found)


def read_records(folder: Path) -> list[list[str]]:
    records = []
    for path in sorted(folder.glob("*.py.rec")):
        fields = path.read_bytes().decode("utf-8", "surrogateescape").split("\0")
        assert fields.pop() == "" and len(fields) % 7 == 0, f"{path} is cut"
        records += [fields[at : at + 7] for at in range(0, len(fields), 7)]
    return records
