"""How an interpreter was called: its options, and what it is to run.

invocation(["python3", "-u", "-X", "dev", "app.py", "x"])
    -> Invocation([("u", ""), ("X", "dev")], ["/where/app.py"])
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

# interpreter -> its options that have a value
_INTERPRETERS = {
    "python": "WX", "pypy": "WX", "Rscript": "e", "R": "f", "perl": "I", "julia": "LJ",
    "bash": "oO", "sh": "o", "dash": "o", "ksh": "o", "zsh": "o", "csh": "", "tcsh": "",
}  # fmt: skip
_LONG_WITH_VALUE = ("--rcfile", "--init-file")  # of bash
_PYTHONS = ("python", "pypy")
SHELLS = frozenset("sh dash bash zsh ksh tcsh csh busybox".split())
#: Commands that start another one as a shell does, in a project's environment or as a container's
#: first process.
STARTERS = frozenset(
    "asdf catatonit direnv dumb-init micromamba mise pixi rye tini tini-static uv".split()
)
#: Of Python's launchers that start one process a GPU, known even where a node has several.
LAUNCHERS = frozenset(
    "torchrun torch.distributed.run torch.distributed.launch accelerate deepspeed"
    " deepspeed.launcher.launch accelerate.commands.launch".split()
)


class Invocation(NamedTuple):
    """`options`: (letter, value), or (word, "") of one with two dashes, in their order. `script`:
    the words that say what it runs: a script's absolute path, ["-m", module] or ["-c", code], of a
    shell, too."""

    options: list[tuple[str, str]]
    script: list[str]


def interpreter_of(path: str) -> str:
    """What an interpreter is called without its version; "" if it is none that is known."""
    name = re.sub(r"[\d.]+[a-z]*$", "", os.path.basename(path))
    return name if name in _INTERPRETERS else ""


def is_python(path: str) -> bool:
    return interpreter_of(path) in _PYTHONS


def invocation(program: list[str], cwd: str = "") -> Invocation:
    """Of a program and its arguments, in the folder `cwd` ("": this process's); nothing of one
    that is no known interpreter."""
    found = as_called(program)
    if len(found.script) == 1:
        found.script[:] = [os.path.abspath(os.path.join(cwd, found.script[0]))]
    return found


def as_called(program: list[str]) -> Invocation:
    """The same with a script's path as it was given."""
    name = interpreter_of(program[0])
    found = Invocation([], [])
    i = 1 if name else len(program)
    while i < len(program):
        word = program[i]
        i += 1
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            i -= 1
            break
        if word.startswith("--"):
            found.options.append((word, ""))
            i += name == "bash" and word in _LONG_WITH_VALUE
            continue
        for at, letter in enumerate(word[1:], 2):
            rest = word[at:]
            if letter in "cm" and name in _PYTHONS:
                found.script[:] = ["-" + letter, rest or "".join(program[i : i + 1])]
                return found
            takes = letter in _INTERPRETERS[name]
            found.options.append((letter, (rest or "".join(program[i : i + 1])) if takes else ""))
            if takes:
                i += not rest
                break
    if i < len(program) and name in SHELLS and ("c", "") in found.options:
        found.script[:] = ["-c", program[i]]
    elif i < len(program):
        found.script.append(program[i])
    return found
