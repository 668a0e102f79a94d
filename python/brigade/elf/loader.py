"""What a dynamic loader has by itself: its default directories, the subdirectories of every
directory that it tries first on this processor, and what $LIB and $PLATFORM stand for.

These differ from one glibc, distribution and processor to the next, so ld.so is asked: it is run
on a program of the system's, told to list that and to say how it searches (`LD_DEBUG=libs`).
Nothing of a user's is loaded.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass

_ASKED_S = 5.0
_A, _B, _C = "/brigade-asks", "/brigade-lib", "/brigade-platform"  # must not be there
_LINE = re.compile(r"search path=(\S*)\s+\((LD_LIBRARY_PATH|system search path)\)")


@dataclass(frozen=True)
class Loader:
    """The values of one ld.so. `subdirs`: those tried before a directory itself, best first."""

    path: str
    system: tuple[str, ...] = ("/lib64", "/usr/lib64")
    subdirs: tuple[str, ...] = ()
    lib: str = "lib64"
    platform: str = "x86_64"

    @property
    def hwcaps(self) -> tuple[str, ...]:
        """The names below `glibc-hwcaps` among the subdirectories."""
        return tuple(s[13:] for s in self.subdirs if s.startswith("glibc-hwcaps/"))


def ask(path: str) -> Loader | None:
    """What the ld.so `path` answers, or None: it is not there, or no glibc that runs here."""
    for program in ("/bin/true", "/usr/bin/true", sys.executable):
        said = _said(path, program)
        found = {whose: folders.split(":") for folders, whose in reversed(_LINE.findall(said))}
        if len(found) == 2:
            return _loader(path, found["LD_LIBRARY_PATH"], found["system search path"])
    return None


def _said(path: str, program: str) -> str:
    environment = {
        "LD_DEBUG": "libs",
        "LD_LIBRARY_PATH": f"{_A}:{_B}/$LIB:{_C}/$PLATFORM",
        "PATH": os.defpath,
    }
    try:
        return subprocess.run(
            [path, "--inhibit-cache", "--list", program],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_ASKED_S,
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _loader(path: str, asked: list[str], system: list[str]) -> Loader:
    subdirs = [one[len(_A) + 1 :] for one in asked if one.startswith(_A + "/")]
    endings = tuple(f"/{one}" for one in subdirs)

    def plain(prefix: str) -> str:
        ours = [one[len(prefix) + 1 :] for one in asked if one.startswith(prefix + "/")]
        return ours[-1] if ours else ""

    return Loader(
        path=path,
        system=tuple(one for one in system if not one.endswith(endings)),
        subdirs=tuple(subdirs),
        lib=plain(_B),
        platform=plain(_C),
    )
