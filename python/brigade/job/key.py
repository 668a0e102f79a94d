"""Which image belongs to a job.

The key covers what decides start-up look-ups and is known before the start: the program, for an
interpreter also the script, the variables that steer the search for libraries and modules, and what
the user asked to cover. Arguments after the script do not count: the same image serves other
inputs, and what they need beyond it is a miss, not an error.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Mapping

from brigade import __version__
from brigade.paths import cache_dir

_SEARCH_VARIABLES = (
    "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME", "PYTHONPYCACHEPREFIX",
    "PYTHONOPTIMIZE", "PYTHONNOUSERSITE", "PYTHONSAFEPATH",
)  # fmt: skip
# interpreter -> its options whose value is the next word
_INTERPRETERS = {
    "python": "WX", "pypy": "WX", "Rscript": "e", "R": "f", "perl": "I", "julia": "LJ", "bash": "O",
    "sh": "o",
}  # fmt: skip


def script_of(program: list[str]) -> list[str]:
    """The words that say what an interpreter is to run; empty if `program` is not a known
    interpreter.

    A script becomes an absolute path; `-m module` and `-c code` stay as they are.
    """
    name = re.sub(r"[\d.]+[a-z]*$", "", os.path.basename(program[0]))
    if name not in _INTERPRETERS:
        return []
    with_value = _INTERPRETERS[name]
    i = 1
    while i < len(program):
        word = program[i]
        if word == "--":
            i += 1
            break
        if not word.startswith("-") or word == "-":
            break
        if word[1] in "cm" and name in ("python", "pypy"):
            return [word[:2], word[2:] or "".join(program[i + 1 : i + 2])]
        if word[-1] in with_value and not word.startswith("--"):
            i += 1
        i += 1
    return [os.path.abspath(program[i])] if i < len(program) else []


def image_path(
    program: list[str], cover: Iterable[str], environment: Mapping[str, str] | None = None
) -> str:
    """Where the image of `program` is kept, whether or not it exists yet."""
    environment = os.environ if environment is None else environment
    executable = shutil.which(program[0], path=environment.get("PATH")) or program[0]
    script = script_of(program)
    parts = [
        __version__,
        os.path.abspath(executable),
        *script,
        *sorted(map(os.path.abspath, cover)),
    ]
    parts += [f"{name}={environment.get(name)}" for name in _SEARCH_VARIABLES]
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogateescape"), digest_size=8)
    words = [os.path.basename(executable), *(os.path.basename(word) for word in script)]
    label = re.sub(r"[^A-Za-z0-9._]+", "-", words[-1])[:40].strip("-") or "image"
    return str(cache_dir() / "images" / f"{label}-{digest.hexdigest()}.brg")
