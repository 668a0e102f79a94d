"""Worlds on disk: compiled in parallel, once, and then found again.

A world's folder is named after its settings and everything else that decides what is in it. It
appears by one `rename` when complete; what an interrupted generation has left (`.making-PID-…`) is
removed by itself, or by the next one on this host if it was killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import py_compile
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any, Callable, Optional

from brigade.bench.plan import FORMAT, Part, World, describe
from brigade.bench.sources import PADDING_FILE, cload_table, padding, part_source
from brigade.errors import BrigadeError

Progress = Optional[Callable[[int, int], None]]  # (parts done, parts in all)

DRIVERS = Path(__file__).parent / "drivers"
DESCRIPTION = "world.json"
_STUBS = "stubs"
_FLAGS = ["-O0", "-w", "-fPIC", "-fno-toplevel-reorder"]
# lazy binding, as Pynamic's and Python's own default: a function is looked up when it is called
_LINK = ["-shared", "-Wl,-z,lazy", "-Wl,--hash-style=gnu", "-Wl,--build-id=none"]


def world_folder(world: World, base: Path) -> Path:
    """Where the world is kept, whether or not it exists yet."""
    said = json.dumps(describe(world)["settings"], sort_keys=True)
    drivers = [(DRIVERS / name).read_text(encoding="utf-8") for name in ("pynamic.py", "cload.c")]
    text = "\0".join([str(FORMAT), said, platform.machine(), shlex.join(_compiler()), *drivers])
    digest = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
    return base / f"{world.settings.kind}-{len(world.parts)}-{digest}"


def generate(world: World, base: Path, jobs: int | None = None, progress: Progress = None) -> Path:
    """The folder of the compiled world below `base`; made if it is not there."""
    folder = world_folder(world, base)
    if (folder / DESCRIPTION).exists():
        return folder
    base.mkdir(parents=True, exist_ok=True)
    _remove_dead(base)
    making = base / f".making-{os.getpid()}-{platform.node()}-{folder.name}"
    shutil.rmtree(making, ignore_errors=True)
    try:
        making.mkdir()
        _make(world, making, jobs or len(os.sched_getaffinity(0)), progress)
        try:
            making.rename(folder)
        except OSError:  # another process was first
            if not (folder / DESCRIPTION).exists():
                raise
    except OSError as error:
        raise BrigadeError(f"{error.filename or making}: {error.strerror}") from error
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return folder


def read(folder: Path) -> dict[str, Any]:
    """The description that lies in a world's folder."""
    described: dict[str, Any] = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    return described


def _remove_dead(base: Path) -> None:
    """Remove what killed generations have left: those of this host whose process is gone."""
    for left in base.glob(f".making-*-{platform.node()}-*"):
        pid = left.name.split("-")[1]
        if not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(left, ignore_errors=True)


def _compiler() -> list[str]:
    return shlex.split(os.environ.get("CC") or "cc")


def _make(world: World, folder: Path, jobs: int, progress: Progress) -> None:
    (folder / PADDING_FILE).write_bytes(padding(world))
    for path in {os.path.dirname(part.path) for part in world.parts}:
        (folder / path).mkdir(parents=True, exist_ok=True)
    for path in world.search:
        (folder / path).mkdir(parents=True, exist_ok=True)
    for path, text in world.files.items():
        (folder / path).write_text(text, encoding="utf-8")
    needed = sorted({number for part in world.parts for number in part.needs})
    (folder / _STUBS).mkdir()
    _all(jobs, [partial(_stub, folder, world.parts[number]) for number in needed], None)
    _all(jobs, [partial(_compile, world, part, folder) for part in world.parts], progress)
    if world.settings.kind == "cload":
        _cload_drivers(world, folder)
    else:
        shutil.copyfile(DRIVERS / "pynamic.py", folder / "pynamic.py")
        _compile_python(folder, ["pynamic.py", *world.files])
    shutil.rmtree(folder / _STUBS)
    (folder / PADDING_FILE).unlink()
    size = sum((folder / part.path).stat().st_size for part in world.parts)
    text = json.dumps({**describe(world), "bytes": size})
    (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")


def _all(jobs: int, tasks: Iterable[Callable[[], None]], progress: Progress) -> None:
    """Run tasks in parallel; the first failure, or Ctrl-C, ends those that have not begun."""
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(task) for task in tasks]
        try:
            for done, future in enumerate(as_completed(waiting), 1):
                future.result()
                if progress:
                    progress(done, len(waiting))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _cc(folder: Path, words: list[str], source: str) -> None:
    command = [*_compiler(), *words]
    try:
        done = subprocess.run(command, cwd=folder, input=source, capture_output=True, text=True)
    except OSError as error:
        raise BrigadeError(
            f"{command[0]}: {error.strerror}",
            hint="generating needs a C compiler: load a module that has one, or set CC",
        ) from error
    if done.returncode:
        errors = [
            line for line in done.stderr.splitlines() if "rror" in line or "undefined" in line
        ]
        said = (errors or done.stderr.splitlines() or [f"status {done.returncode}"])[0]
        raise BrigadeError(f"{command[0]} could not make {words[-1]}: {said}")


def _stub(folder: Path, part: Part) -> None:
    """A library with nothing but the name: what others are linked with, before it is there."""
    name = os.path.basename(part.path)
    words = ["-shared", "-nostdlib", "-x", "c", "-", f"-Wl,-soname,{name}"]
    _cc(folder, [*words, "-o", f"{_STUBS}/{name}"], "")


def _compile(world: World, part: Part, folder: Path) -> None:
    name = os.path.basename(part.path)
    stubs = [f"{_STUBS}/{os.path.basename(world.parts[n].path)}" for n in part.needs]
    words = [*_FLAGS, *_LINK, "-x", "c", "-", "-x", "none", "-Wl,--no-as-needed", *stubs]
    if part.kind != "module":
        words.append(f"-Wl,-soname,{name}")
    words += _runpath(part.search, os.path.dirname(part.path)) if stubs else []
    _cc(folder, [*words, "-o", part.path], part_source(world, part))


def _runpath(search: Iterable[str], own: str) -> list[str]:
    """Linker words for a RUNPATH of folders of the world, for an object in folder `own`."""
    places = []
    for path in search:
        relative = os.path.relpath(path, own)
        places.append("$ORIGIN" if relative == "." else f"$ORIGIN/{relative}")
    return [f"-Wl,--enable-new-dtags,-rpath,{':'.join(places)}"] if places else []


def _cload_drivers(world: World, folder: Path) -> None:
    """bin/cload, which is started, and bin/cload-main, which it becomes."""
    settings = world.settings
    source = (DRIVERS / "cload.c").read_text(encoding="utf-8")
    (folder / "bin").mkdir()
    (folder / "table.h").write_text(cload_table(world), encoding="utf-8")
    by_variable = getattr(settings, "search", "") == "env"
    opened = getattr(settings, "dlopen", False)
    text = ["-O1", "-I.", "-x", "c", "-", "-x", "none"]
    define = [f'-DSEARCH="{":".join(world.search)}"'] if by_variable else []
    _cc(folder, ["-DSTART", *define, *text, "-o", "bin/cload"], source)
    libraries = [] if opened else ["-Wl,--no-as-needed", *(part.path for part in world.parts)]
    path = [] if by_variable else _runpath(world.search, "bin")
    flags = ["-DOPENED"] if opened else []
    words = [*flags, *text, *libraries, *path, "-Wl,--as-needed", "-ldl", "-o", "bin/cload-main"]
    _cc(folder, words, source)
    (folder / "table.h").unlink()


def _compile_python(folder: Path, files: Iterable[str]) -> None:
    """`.pyc` files that are never checked: copying the world changes nothing, no rank writes."""
    for path in files:
        py_compile.compile(
            str(folder / path),
            dfile=path,
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
