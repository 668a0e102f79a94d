"""A small world for tests of the interpose view: a source tree, its image, a staged folder.

Made by copying, so that no MPI, no root and no launcher is needed. `World.run` starts a program by
`brigade-rank` as a job would; `World.plain` without Brigade. What the job's state counted can be
read back.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from brigade.image.reader import Image
from brigade.image.snapshot import Snapshot
from brigade.image.writer import ImageWriter
from brigade.paths import native
from brigade.trial.answers import answers
from brigade.trial.record import Trial, load

JOB = "test"
#: Every view of a rank that any program is to start as plain under: name -> `brigade-rank --view`.
VIEWS = {"interpose": "interpose", "namespace": "namespace"}
CAUSES = ("UNKNOWN", "NO_CONTENT", "CHANGED", "WRITE", "DIRECTORY", "UNSUPPORTED", "STAGE", "LATE")
_HEADER = struct.Struct("<Q4I4Q2IQ832x")
_SLOT = struct.Struct("<Ii4Q8Q2QQ")
_FORK = struct.Struct("<2I2Q120s")
_FORK_OFF = 136  # of struct brg_fork in struct brg_state
_DEVICES_OFF, _N_DEVICES_OFF = 648, 132  # of devices and n_devices there
_MISS = struct.Struct("<BBH12s240s")
_N_SLOTS, _N_MISSES = 1024, 1024
_STATE_MAGIC = 0x0031455441545342


@dataclass(frozen=True)
class Counts:
    """What one job counted, summed over its slots."""

    hits: int
    misses: dict[str, int]  # by cause, without zeros
    loads: int
    processes: int
    log: list[tuple[str, str, str]]  # cause, call, path


def run(command: list[str], **options) -> subprocess.CompletedProcess:
    options.setdefault("timeout", 60)
    return subprocess.run(command, capture_output=True, text=True, errors="replace", **options)


def compile_c(source: str, target: Path, *flags: str) -> Path:
    """Build a C program or (with -shared) library from its text."""
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-x", "c", "-", "-o", str(target), "-D_GNU_SOURCE", "-Wno-deprecated"]
    if "-shared" in flags:
        command += ["-fPIC"]
    libraries = [flag for flag in flags if flag.startswith(("-l", "-L", "-Wl,"))]
    command[1:1] = [flag for flag in flags if flag not in libraries]
    done = subprocess.run(command + libraries, input=source, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return target


class World:
    """`tree` is the covered root, `stage` the staged folder. Both lie under `base`."""

    def __init__(self, base: Path) -> None:
        self.base = Path(os.path.realpath(base))
        self.tree = self.base / "shared"
        self.tree.mkdir(parents=True, exist_ok=True)
        self.stage = self.base / "node" / "stage"
        self.entries = 0

    # ---- the image and the staged folder ----

    def put(
        self,
        root: Path | None = None,
        *,
        absent: Iterable[str] = (),
        unlisted: Iterable[str] = (),
        snapshots: Iterable[str] = (),
        unread: Iterable[str] = (),
        forget: Iterable[str] = (),
        entered: Iterable[str] = (),
        stones: Iterable[Path] = (),
        trial: Trial | None = None,
        device: int | None = None,
    ) -> World:
        """Stage an image of everything below `root`.

        `unlisted` directories are known but not listed, `snapshots` of them keep their names;
        `unread` files have no content; `forget` leaves paths (and what is below them) out; paths
        are relative to the root. The trial was in folders that are `entered`. `stones` are links
        outside that lead into it. `device`: what the
        root's mount was called where the image was made.
        """
        root = root or self.tree
        gone = [f"{root}/{name}" for name in forget]
        image_file = self.base / "image"
        staged = self.stage / "root"
        with ImageWriter(image_file, level=0) as writer:
            writer.add_root(str(root))
            for path in [str(root), *_walk(str(root))]:
                if any(path == g or path.startswith(g + "/") for g in gone):
                    continue
                self._add(
                    writer,
                    path,
                    staged,
                    str(root),
                    set(unlisted),
                    set(unread),
                    set(snapshots),
                    set(entered),
                    device,
                )
            for name in absent:
                writer.add(f"{root}/{name}")
            _add_stones(writer, stones)
            if trial:
                for answer in answers(trial)[0]:
                    writer.add_answer(answer.context, answer.requester, answer.name, answer.path)
            writer.commit()
        with Image(image_file) as image:
            (self.stage / "index").write_bytes(bytes(image._index))
            self.entries = image.n_entries
        for place, name in (
            ("bin", "brigade-rank"),
            ("lib", "libbrigade-audit.so"),
            ("lib", "libbrigade-preload.so"),
        ):
            (staged / ".brigade" / place).mkdir(parents=True, exist_ok=True)
            shutil.copy2(native(name), staged / ".brigade" / place / name)
        self.reset()
        return self

    def _add(
        self, writer, path, staged, root, unlisted, unread, snapshots, entered, device
    ) -> None:
        info = _seen(path, device)
        there = device is not None
        name = os.path.relpath(path, root)
        copy = f"{staged}{path}"
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        if os.path.islink(path):
            target = os.readlink(path)
            writer.add(path, info, target=target, mount_dev=there)
            inside = f"{staged}{target}" if target.startswith("/") else target
            if os.path.realpath(path).startswith(root + "/") and not os.path.lexists(copy):
                os.symlink(inside, copy)
        elif os.path.isdir(path):
            own = name in unlisted
            order = 0 if name in entered else None
            snapshot = name in snapshots
            writer.add(path, info, listed=not own, snapshot=snapshot, order=order, mount_dev=there)
        elif os.path.isfile(path) and name not in unread:
            rights = Snapshot().has_capabilities(path)
            writer.add(path, info, source=path, mount_dev=there, own_rights=rights)
            shutil.copy2(path, copy)
        else:
            writer.add(path, info, mount_dev=there)

    # ---- running ----

    @property
    def rank(self) -> str:
        return str(self.stage / "root" / ".brigade" / "bin" / "brigade-rank")

    def run(
        self,
        *command: str | Path,
        strict: bool = False,
        view: str = "interpose",
        fork: str = "",
        **options,
    ):
        """Under a view of `VIEWS`; `fork`: what `brigade-rank --fork` is told, if it is."""
        options_of_rank = ["--job", JOB, "--view", VIEWS[view]] + ["--strict"] * strict
        options_of_rank += ["--fork", fork] if fork else []
        return run([self.rank, *options_of_rank, "--", *map(str, command)], **options)

    def plain(self, *command: str | Path, **options):
        return run([str(part) for part in command], **options)

    def record(self, *command: str | Path, **options) -> tuple[Trial, subprocess.CompletedProcess]:
        """Under the recorder."""
        folder = self.base / "records"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        wrapper = [str(native("brigade-rank")), "--record", str(folder), "--view", "interpose"]
        done = run([*wrapper, "--", *map(str, command)], **options)
        return load(folder), done

    # ---- the job's state ----

    @property
    def state(self) -> Path:
        return self.stage / "jobs" / JOB / "state"

    def reset(self) -> None:
        self.state.parent.mkdir(parents=True, exist_ok=True)
        dirty_bytes = (self.entries // 64 + 1) * 8
        slots = _HEADER.size
        dirty = slots + _N_SLOTS * _SLOT.size
        misses = dirty + dirty_bytes
        size = misses + _N_MISSES * _MISS.size
        header = _HEADER.pack(
            _STATE_MAGIC, 1, _N_SLOTS, _N_MISSES, self.entries, size, slots, dirty, misses, 0, 0, 0
        )
        self.state.write_bytes(header + bytes(size - len(header)))

    def number(self, devices: dict[int, int]) -> None:
        """As the stager does: what devices of the image are called on this node."""
        state = bytearray(self.state.read_bytes())
        struct.pack_into("<I", state, _N_DEVICES_OFF, len(devices))
        for i, pair in enumerate(devices.items()):
            struct.pack_into("<2Q", state, _DEVICES_OFF + 16 * i, *pair)
        self.state.write_bytes(state)

    @contextmanager
    def staged_by(self, user: int) -> Iterator[None]:
        """As if that user had staged it: a view believes only what is its own user's."""
        files = (self.stage / "index", self.state)
        for file in files:
            os.chown(file, user, -1)
        try:
            yield
        finally:
            for file in files:
                os.chown(file, os.geteuid(), -1)

    def slots(self) -> list[tuple[int, ...]]:
        """pid, rank, start_ns, last_load_ns, ready_ns, hits, 8 misses, loads, processes, forked."""
        data = self.state.read_bytes()
        header = _HEADER.unpack_from(data)
        taken = range(min(header[9], _N_SLOTS))
        return [_SLOT.unpack_from(data, header[6] + i * _SLOT.size) for i in taken]

    def counts(self) -> Counts:
        data = self.state.read_bytes()
        header = _HEADER.unpack_from(data)
        next_miss = header[10]
        hits = loads = processes = 0
        misses = dict.fromkeys(CAUSES, 0)
        for slot in self.slots():
            hits += slot[5]
            loads += slot[14]
            processes += slot[15]
            for cause, number in zip(CAUSES, slot[6:14]):
                misses[cause] += number
        log = []
        for i in range(min(next_miss, _N_MISSES)):
            cause, _, _, call, path = _MISS.unpack_from(data, header[8] + i * _MISS.size)
            log.append((CAUSES[cause], _text(call), _text(path)))
        return Counts(hits, {k: n for k, n in misses.items() if n}, loads, processes, log)

    def forked(self) -> tuple[int, str]:
        """What became of the first rank (brg_forked), and why the first that was refused was."""
        why = _FORK.unpack_from(self.state.read_bytes(), _FORK_OFF)[-1]
        return self.slots()[0][-1], _text(why)

    def hide(self) -> None:
        """Take the source tree away: only the staged copy can answer now."""
        os.rename(self.tree, self.base / "hidden")

    def show(self) -> None:
        os.rename(self.base / "hidden", self.tree)


def _add_stones(writer: ImageWriter, links: Iterable[Path]) -> None:
    on_the_way = {folder for link in links for folder in link.parents}
    for folder in sorted(on_the_way):
        writer.add(str(folder), os.lstat(folder))
    for link in links:
        writer.add(str(link), os.lstat(link), target=os.readlink(link))


def _seen(path: str, device: int | None) -> Any:
    """lstat, as on a host that calls the device otherwise."""
    info = os.lstat(path)
    if device is None:
        return info
    fields = {name: getattr(info, name) for name in dir(info) if name.startswith("st_")}
    return SimpleNamespace(**{**fields, "st_dev": device})


def _text(raw: bytes) -> str:
    return os.fsdecode(raw.split(b"\0", 1)[0])


def _walk(root: str) -> Iterable[str]:
    for folder, folders, files in os.walk(root):
        for name in sorted(folders + files):
            yield os.path.join(folder, name)


def grow(world: World) -> None:
    """A tree with everything a tree can have."""
    tree = world.tree
    (tree / "sub" / "deep" / "er").mkdir(parents=True)
    (tree / "open").mkdir()
    (tree / "empty").mkdir()
    (tree / "file").write_text("a file\n")
    (tree / "nothing").write_text("")
    (tree / "sub" / "script").write_text("#!/bin/sh\necho hello\n")
    (tree / "sub" / "script").chmod(0o755)
    (tree / "sub" / "deep" / "er" / "leaf").write_text("leaf\n")
    (tree / "open" / "known").write_text("known\n")
    (tree / "open" / "unknown").write_text("unknown\n")
    (tree / "private").write_text("private\n")
    (tree / "private").chmod(0o600)
    os.link(tree / "file", tree / "sub" / "twin")
    (tree / "name with space").write_text("x")
    (tree / "sub" / "uml\u00e4ut").write_text("y")
    for link, target in {
        "to_file": "file",
        "to_dir": "sub/deep",
        "sub/up": "..",
        "sub/loop": "loop",
        "dangling": "no/such",
        "absolute": str(tree / "sub" / "deep"),
        "chain": "sub/up/to_file",
        "outside": "/usr/bin/env",
        "out_dir": "/usr/lib",
    }.items():
        (tree / link).symlink_to(target)


def everything(world: World) -> list[str]:
    """The tree itself and all paths in it."""
    return [str(world.tree), *_walk(str(world.tree))]


#: Spellings, below the tree, that take some walking.
ODD = [
    ".", "", "sub/", "sub/.", "sub/..", "sub//deep", "file/", "file/x", "to_dir/er/leaf",
    "to_dir/../twin", "sub/up/sub/up/file", "sub/loop/x", "dangling/x", "to_file/", "outside/",
    "out_dir/", "out_dir/../bin/env", "../shared/file", "absolute/er/../../script", "missing",
    "sub/missing/more", "sub/absent", "open/absent", "empty/..", "n" * 255, "n" * 256, "x/" * 2100,
]  # fmt: skip
