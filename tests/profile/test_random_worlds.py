"""Random programs and libraries: each file that ld.so tries has the cause that ld.so itself names.

LD_DEBUG=libs says before each list of folders where that list is from; strace says which files were
opened. The profile sees the second only, and has to arrive at the first.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from brigade.profile.build import build
from brigade.trace import strace

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
FOLDERS = ("a", "b", "c", "gone")
WORDS = {"RPATH": "RPATH", "RUNPATH": "RUNPATH", "LD_LIBRARY_PATH": "LD_LIBRARY_PATH",
         "system search path": "default path"}  # fmt: skip


def compiled(source: str, target: Path, *flags: str) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-x", "c", "-", "-o", str(target), "-Wl,--no-as-needed", "-x", "none", *flags]
    subprocess.run(command, input=source, text=True, check=True)
    return target


def search_path(rng: random.Random, base: Path, owner: str, origin: str) -> list[str]:
    """Flags that give an object an RPATH or a RUNPATH of some folders, or neither. The folders are
    its own: ld.so names one that stands in two lists after the list that it read first."""
    kind = rng.choice(("--disable-new-dtags", "--enable-new-dtags", ""))
    some = [f"{owner}-{name}" for name in rng.sample(FOLDERS, rng.randint(1, 3))]
    shown = [f"{origin}/{one}" if rng.random() < 0.5 else f"{base}/{one}" for one in some]
    return [f"-Wl,{kind},-rpath,{':'.join(shown)}"] if kind else []


def world(seed: int, base: Path) -> dict[str, str]:
    """Builds `base`/app; returns the environment that it is to be started in."""
    rng = random.Random(seed)
    made: dict[Path, str] = {}  # library -> the kind of folder that has it
    for number in range(rng.randint(3, 5)):
        needs = rng.sample(list(made), rng.randint(0, min(2, len(made))))
        name = f"lib{number}.so.1"
        flags = ["-shared", "-fPIC", f"-Wl,-soname,{name}", "-Wl,--allow-shlib-undefined"]
        flags += [*search_path(rng, base, name, "$ORIGIN/.."), *map(str, needs)]
        path = compiled(f"int v{number};", base / "built" / name, *flags)
        made[path] = rng.choice(FOLDERS[:3])
    needs = rng.sample(list(made), rng.randint(1, len(made)))
    flags = [*search_path(rng, base, "app", "$ORIGIN"), "-Wl,--allow-shlib-undefined"]
    compiled("int main(void) { return 0; }", base / "app", *flags, *map(str, needs))
    for owner in ("app", "env", *(path.name for path in made)):
        for folder in FOLDERS[:3]:
            (base / f"{owner}-{folder}").mkdir()
            for path, where in made.items():
                if where == folder:
                    shutil.copy(path, base / f"{owner}-{folder}")
    told = [f"{base}/env-{name}" for name in rng.sample(FOLDERS, rng.randint(0, 3))]
    return {"LD_LIBRARY_PATH": ":".join(told)} if told else {}


def named_by_ld_so(base: Path, env: dict[str, str]) -> list[tuple[str, str, str]]:
    """(file, cause, owner) in the order of the tries. A second list of the same search has its
    own line; what the cache leads to has none of its own."""
    done = subprocess.run(
        [base / "app"], env={**env, "LD_DEBUG": "libs"}, capture_output=True, text=True
    )
    found, cause, owner = [], "", ""
    for line in done.stderr.splitlines():
        match = re.search(r"search path=\S*\s+\((.*?)(?: from file (.*))?\)", line)
        if match:
            cause, owner = WORDS[match[1]], match[2] or ""
        elif "search cache=" in line:
            cause, owner = "ld.so.cache", ""
        elif "trying file=" in line:
            found.append((line.rpartition("trying file=")[2].strip(), cause, owner))
    return found


def told_by_the_profile(base: Path, env: dict[str, str]) -> list[tuple[str, str, str]]:
    out = base / "strace.out"
    subprocess.run(
        [shutil.which("strace"), "-f", "-y", "-ttt", "-o", str(out), str(base / "app")],
        env=env, capture_output=True,
    )  # fmt: skip
    trace = strace.load(out)
    trace.processes[0].env = env or {"PATH": ""}
    built = build(trace, command=["app"], program=["app"], launcher=None)
    (story,) = built.stories
    told = []
    for event, mark in zip(story.process.events, story.marks):
        library = mark.search >= 0 and story.searches[mark.search].kind == "library"
        if library and event.kind == "open" and event.path != "/etc/ld.so.cache":
            owned = mark.cause in ("RPATH", "RUNPATH")
            told.append((event.path, mark.cause, mark.owner if owned else ""))
    return told


def same(seed: int, base: Path) -> None:
    env = world(seed, base)
    expected = named_by_ld_so(base, env)
    told = told_by_the_profile(base, env)
    assert expected and [one[:2] for one in told] == [one[:2] for one in expected]
    for (_, cause, owner), (_, _, named) in zip(told, expected):
        if cause in ("RPATH", "RUNPATH"):
            assert os.path.realpath(owner) == os.path.realpath(named)


@pytest.mark.parametrize("seed", range(8))
def test_each_file_that_is_tried_has_the_cause_that_ld_so_names(seed, tmp_path):
    same(seed, Path(os.path.realpath(tmp_path)))


@pytest.mark.all
@pytest.mark.parametrize("seed", range(100, 200))
def test_so_it_is_in_many_more_worlds(seed, tmp_path):
    same(seed, Path(os.path.realpath(tmp_path)))
