"""Which image belongs to a job.

The key covers what decides start-up look-ups and is known before the start: the program, for an
interpreter also the script, the variables and options that steer the search for libraries and
modules, what the user asked to cover, and the build of Brigade: parts of it lie in the image, and
its trial decided what else does. Arguments after the script do not count: the same image
serves other inputs; what they need beyond it is a miss, not an error, and what --fork may not
import with others it knows (brigade.fork.otherwise). Behind a wrapper or a
launcher the program itself counts, as far as the command line shows it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Mapping

from brigade.paths import cache_dir, native
from brigade.trial.invocation import LAUNCHERS, invocation, is_python

_SEARCH_VARIABLES = (
    "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME", "PYTHONPYCACHEPREFIX",
    "PYTHONOPTIMIZE", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PYENV_VERSION",
)  # fmt: skip
# options of Python's that steer it, as those variables do, or keep Brigade's code out of it
_SEARCH_OPTIONS = "EIOPSs"
_SEARCH_DETAILS = ("frozen_modules", "pycache_prefix")  # of -X


def image_path(
    programs: list[list[str]],
    cover: Iterable[str],
    environment: Mapping[str, str] | None = None,
    folders: Iterable[str] = (),
) -> str:
    """Where the image of `programs` (several in an MPMD job) is kept, whether or not it exists.
    `folders`: those that its ranks start in, where that is not this process's."""
    environment = os.environ if environment is None else environment
    called = [_called(program, environment) for program in programs]
    parts = [native("build-id").read_text()]
    parts += list(dict.fromkeys("\0".join([*words, *options]) for words, options in called))
    parts += sorted(map(os.path.abspath, cover))
    parts += [f"in {folder}" for folder in map(os.path.abspath, folders)]
    parts += [f"{name}={environment.get(name)}" for name in _SEARCH_VARIABLES]
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogateescape"), digest_size=8)
    name = os.path.basename(called[0][0][-1])
    label = re.sub(r"[^A-Za-z0-9._]+", "-", name)[:40].strip("-") or "image"
    return str(cache_dir() / "images" / f"{label}-{digest.hexdigest()}.brg")


def _called(program: list[str], environment: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """What a command runs, outermost first, and the options of Python's that count."""
    executable = shutil.which(program[0], path=environment.get("PATH")) or program[0]
    called = invocation(program)
    wrapped = _wrapped(program, called.script, environment)
    options = [
        f"-{letter}{value}"
        for letter, value in sorted(called.options)
        if letter in _SEARCH_OPTIONS or letter == "X" and value.startswith(_SEARCH_DETAILS)
    ]
    words = [os.path.abspath(executable), *called.script, *wrapped]
    return words, options if is_python(program[0]) else []


def _wrapped(program: list[str], script: list[str], environment: Mapping[str, str]) -> list[str]:
    """What a wrapper is to execute, with the script of that, if it shows: the first word behind it
    that is a program, or a file of Python."""
    if is_python(program[0]) and not any(os.path.basename(word) in LAUNCHERS for word in script):
        return []
    for at, word in enumerate(program[1:], 1):
        if word.startswith("-") or "=" in word or os.path.abspath(word) in script:
            continue
        if word.endswith(".py") and os.path.isfile(word):
            return [os.path.abspath(word)]
        found = shutil.which(word, path=environment.get("PATH"))
        if found:
            return [os.path.abspath(found), *invocation(program[at:]).script]
    return []
