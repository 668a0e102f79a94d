"""A lab as an object: bring it up, run things in it, read its counters, take it down."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brigade import paths
from brigade.errors import BrigadeError, LabError, UsageError
from brigade.lab import (
    caches,
    configs,
    counters,
    debian,
    inside,
    moosefs,
    namespaces,
    nodes,
    slowfs,
    slurm,
    state,
    teardown,
)
from brigade.lab.counters import Stats
from brigade.lab.plan import HUB, LOCAL, PRIVATE, SHARED, FileSystem, LabPlan

Progress = Callable[[str], None]

# each kind of file system: start_servers, mount, prepare_root, HUB_DAEMONS, NODE_DAEMONS
_DRIVERS = {"moosefs": moosefs, "slow": slowfs}


@dataclass(frozen=True)
class Lab:
    """One cluster in a box. `Lab.up` makes one, `Lab.find` finds one that is up."""

    plan: LabPlan

    shared = SHARED
    local = LOCAL

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def nodes(self) -> list[str]:
        return self.plan.nodes

    @classmethod
    def up(
        cls,
        name: str = "lab",
        nodes: int = 4,
        fs: str = "moosefs",
        binds: Iterable[str] = (),
        progress: Progress = lambda step: None,
    ) -> Lab:
        """Bring a lab up; a half-dead one of the same name is cleared away first.

        `binds` are host folders below /tmp or /dev/shm that the nodes, whose own /tmp and /dev/shm
        are fresh, shall see; the running Python and Brigade itself are always among them.
        """
        plan = LabPlan(name, nodes, FileSystem.parse(fs), binds=_visible(binds))
        state.require_root()
        debian.require(plan.fs.kind)
        with _open_to_all(), state.locked(name):
            old = state.load(name)
            if old is not None and not cls(old).faults():
                raise LabError(f"lab '{name}' is up", hint=f"brigade lab down --name {name}")
            teardown.clear(name)
            try:
                _build(plan, progress)
            except BaseException:
                teardown.clear(name)
                raise
        return cls(plan)

    @classmethod
    def find(cls, name: str = "lab") -> Lab:
        """The lab of that name; LabError if none is up."""
        return cls(state.find(name))

    @staticmethod
    def take_down(name: str = "lab") -> bool:
        """Remove a lab in whatever state it is; True if there was anything to remove."""
        with state.locked(name):
            return teardown.clear(name)

    def down(self) -> None:
        """Remove the lab and all that runs in it."""
        self.take_down(self.name)

    def run(self, argv: list[str], **options: Any) -> subprocess.CompletedProcess[Any]:
        """Run a launcher from inside the first node; like `exec`."""
        return self.exec(self.nodes[0], argv, **options)

    def exec(
        self,
        node: str,
        argv: list[str],
        *,
        timeout: float | None = None,
        check: bool = False,
        **options: Any,
    ) -> subprocess.CompletedProcess[Any]:
        """Run a command on a node and wait for it.

        Options: `user`, `cwd` (default: the caller's), `env` (additions), `host_network`, and
        those of subprocess.Popen (`stdout`, `text`, ...).
        """
        with self.popen(node, argv, **options) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except BaseException:
                process.kill()
                raise
        done = subprocess.CompletedProcess(argv, process.returncode, out, err)
        if check:
            done.check_returncode()
        return done

    def popen(self, node: str, argv: list[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a command on a node."""
        return inside.popen(self.plan, node, argv, **options)

    def host_path(self, node: str, path: str) -> Path:
        """The path by which root on the host reaches `path` of a node.

        Absolute symbolic links on the way lead back to the host's own folders.
        """
        pid = (self.plan.state / "pid" / node).read_text().strip()
        return Path(f"/proc/{pid}/root{path}")

    def stats(self) -> Stats:
        """What the nodes asked of the shared file system since the lab came up or was reset."""
        return counters.stats(self.plan)

    def reset(self) -> None:
        """Let `stats` count from now."""
        counters.reset(self.plan)

    def drop_caches(self) -> None:
        """Make the next access to the shared file system a cold one on every node; counters go on.

        LabError if a process on a node still uses the file system.
        """
        with state.locked(self.name):
            caches.drop(self.plan, _DRIVERS[self.plan.fs.kind].mount)

    def faults(self) -> list[str]:
        """What is not as it should be: one line each; nothing if the lab is whole."""
        state.require_root()
        state.require_outside(self.name)
        if not (self.plan.state / "ready").exists():
            return ["it did not come up to the end"]
        pins = {member: self.plan.pins(member) for member in self.plan.members}
        where = namespaces.processes(pins.values())
        found = []
        for member, folder in pins.items():
            names = [namespaces.command_name(pid) for pid, pin in where.items() if pin == folder]
            for program, wanted in _daemons(self.plan, member).items():
                if names.count(program) < wanted:
                    found.append(f"{member}: {program} is not running")
        return found


def _daemons(plan: LabPlan, member: str) -> dict[str, int]:
    """The programs that must run on a member, and how many of each."""
    driver = _DRIVERS[plan.fs.kind]
    if member == HUB:
        return {"sleep": 1, "munged": 1, "slurmctld": 1, **driver.HUB_DAEMONS}
    return {"sleep": 1, "slurmd": 1, **driver.NODE_DAEMONS}


def _visible(binds: Iterable[str]) -> tuple[str, ...]:
    """The folders to keep visible: those asked for, Python's, and Brigade's, without repetition."""
    wanted = [Path(bind).resolve() for bind in binds]
    for folder in wanted:
        if not folder.is_dir():
            raise LabError(f"--bind {folder}: no such folder")
        if any(Path(private).is_relative_to(folder) for private in PRIVATE):
            raise UsageError(
                f"--bind {folder}: the nodes have {' and '.join(PRIVATE)} of their own",
                hint="name a folder below one of these",
            )
    wanted += [Path(sys.prefix), Path(sys.base_prefix), Path(__file__).resolve().parents[2]]
    try:
        wanted.append(paths.native_dir().resolve())
    except BrigadeError:
        pass  # nothing was built
    chosen: list[str] = []
    for folder in sorted(set(wanted)):
        hidden = any(Path(private) in folder.parents for private in PRIVATE)
        if hidden and not any(folder.is_relative_to(outer) for outer in chosen):
            chosen.append(str(folder))
    return tuple(chosen)


@contextmanager
def _open_to_all() -> Iterator[None]:
    """What is made meanwhile may be read by every user, whatever the caller's umask."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def _make_data(plan: LabPlan) -> None:
    try:
        plan.data.mkdir(mode=0o755)
    except FileExistsError:
        raise LabError(
            f"{plan.data} is there, and is not the lab's",
            hint="give the lab another --name, or remove what is there",
        ) from None
    (plan.data / "local").mkdir()


def _build(plan: LabPlan, progress: Progress) -> None:
    """Carry a plan out, on a machine that has nothing of that name."""
    progress("folders")
    plan.state.mkdir(mode=0o755)
    state.save(plan)
    for folder in (plan.log, plan.state / "stage", plan.state / "counters"):
        folder.mkdir()
    _make_data(plan)
    for node in plan.nodes:
        (plan.data / "local" / node).mkdir()
        (plan.data / "local" / node).chmod(0o1777)
    for name, text in configs.all_files(plan, slurm.has_switches()).items():
        path = plan.etc / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (plan.etc / "rsh").chmod(0o755)

    progress(f"{plan.n_nodes} nodes and their network")
    nodes.start(plan)
    progress("munge and Slurm")
    slurm.start(plan)
    progress(f"shared file system ({plan.fs})")
    driver = _DRIVERS[plan.fs.kind]
    driver.start_servers(plan)
    for node in plan.nodes:  # by this thread: one that forks while another begins may wait for ever
        driver.mount(plan, node)
    driver.prepare_root(plan)
    progress("Slurm's nodes")
    slurm.wait_idle(plan)
    counters.reset(plan)
    (plan.state / "ready").touch()
