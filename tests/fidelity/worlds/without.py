"""What this machine's C library cannot do under any auditor is left out of worlds.

Before glibc 2.35, dlmopen into a new namespace ends a process in which an auditor is (bug 28062;
Red Hat's 2.28 and 2.34 have it mended). So does a library with TLS descriptors and `-z now` on
x86-64 before 2.32 or so. Whether they do is asked here with an auditor that does nothing.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from auditors import IDLE

from .describe import ElfWorld

_OPENS = """
#define _GNU_SOURCE
#include <dlfcn.h>
int main(void) { return !dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW); }
"""
_DESCRIBED = "__thread int here; int *where(void) { return &here; }"
_CALLS = "int *where(void); int main(void) { return *where(); }"


@lru_cache(maxsize=1)
def impossible() -> frozenset[str]:
    """`mopen`, `tls_desc`: what runs by itself, but not under an auditor."""
    found = set()
    with tempfile.TemporaryDirectory(prefix="brigade-audited-") as folder:
        auditor = _compile(folder, "auditor.so", IDLE, "-shared", "-fPIC", "-nostdlib")
        found |= {"mopen"} if _ends(auditor, _compile(folder, "opens", _OPENS, "-ldl")) else set()
        if os.uname().machine == "x86_64":
            flags = ("-shared", "-fPIC", "-mtls-dialect=gnu2", "-Wl,-z,now")
            library = _compile(folder, "libdescribed.so", _DESCRIBED, *flags)
            calls = _compile(folder, "calls", _CALLS, str(library), f"-Wl,-rpath,{folder}")
            found |= {"tls_desc"} if _ends(auditor, calls) else set()
    return frozenset(found)


def _compile(folder: str, name: str, text: str, *flags: str) -> Path:
    command = ["cc", "-w", "-x", "c", "-", "-x", "none", "-o", f"{folder}/{name}", *flags]
    subprocess.run(command, input=text, text=True, check=True)
    return Path(folder, name)


def _ends(auditor: Path, program: Path) -> bool:
    assert subprocess.run([program]).returncode == 0
    return subprocess.run([program], env={"LD_AUDIT": str(auditor)}).returncode != 0


def possible(world: ElfWorld) -> ElfWorld:
    """The world, without what this C library cannot do."""
    left_out = impossible()
    if not left_out:
        return world
    program = dataclasses.replace(world.program, script=_without(world.program.script, left_out))
    libraries = [
        dataclasses.replace(lib, features=[one for one in lib.features if one not in left_out])
        for lib in world.libraries
    ]
    return dataclasses.replace(world, program=program, libraries=libraries)


def _without(script: list[list], left_out: frozenset[str]) -> list[list]:
    return [
        [word[0], _without(word[1], left_out), *word[2:]] if word[0] in ("child", "fork") else word
        for word in script
        if word[0] not in left_out
    ]
