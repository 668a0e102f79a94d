"""The shell that each rank is started by: it takes the wrapper where its node has it.

Every rank starts one, so it must not search the job's directories: where LD_LIBRARY_PATH is set,
its ld.so is told to search none, and the variable stays as it is for the program.

A shell may drop variables whose names it could give to none of its own (dash: bash's exported
functions, names with a dot). Those travel in a variable of Brigade's as well, which the wrapper
takes apart (`src/base/kept.h`), as the guard does itself where there is no wrapper.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

# Start the wrapper ($1) if this node has it; else drop the words up to "--" and start the program
# plainly. A node without the staged folder thus still runs its ranks. A wrapper in a staged folder
# counts only if the user's own folder (a real one: nobody else can have put that there, in a sticky
# directory) holds it: on a node that was not staged, another user may have made one of its name.
# No variable is set: the program may have one of that name.
_GUARD = (
    'set -- "${1%/*/root/.brigade/*}" "$@"; if [ -x "$2" ] && { [ "$1" = "$2" ] || '
    '{ [ -O "$1" ] && [ ! -L "$1" ]; }; }; then shift; exec "$@"; fi; '
    'while [ "$1" != -- ] && [ "$1" != --search-last ]; do shift; done; '
    'if [ "$1" != -- ]; then shift 3; '
    'command -v "$1" >/dev/null || [ ! -x "./$1" ] || set -- "./$@"; else shift; fi; '
    'if [ "$BRIGADE_KEPT" ] && [ -x /usr/bin/env ]; then '
    'eval "unset BRIGADE_KEPT; exec /usr/bin/env $BRIGADE_KEPT \\"\\$@\\""; fi; '
    'unset BRIGADE_KEPT; exec "$@"'
)
_SHELL = "/bin/sh"
_KEPT = "BRIGADE_KEPT"
_KEPT_BYTES = 96 << 10  # the kernel takes no longer string than 128 KiB, and then starts nothing
_OWN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def guarded(
    wrapper: list[str],
    env: Mapping[str, str] = os.environ,
    *,
    searches_last: str = "",
    keeps_pwd: bool = False,
) -> list[str]:
    """The words to put before a program so that `wrapper` starts it where the wrapper exists.
    `searches_last`, `keeps_pwd`: where the launcher looks for the program, and that it passes PWD
    on (`Launch`)."""
    last = ["--search-last", searches_last] if searches_last else []
    script = (_pwd(env) if keeps_pwd else "") + _GUARD
    return [*_shell(env), "-c", script, "brigade", *wrapper, *last, "--"]


def environment(env: Mapping[str, str] = os.environ) -> dict[str, str] | None:
    """What the launcher of guarded programs is to be started with: `env`, and once more what the
    shell would lose of it; None if that is nothing. A variable without room is lost."""
    if _keeps_all():
        return None
    words, room = [], _KEPT_BYTES
    for name, value in env.items():
        if _OWN_NAME.fullmatch(name) or "=" in name:  # with that, no process can be given it
            continue
        word = _quoted(f"{name}={value}")
        room -= len(os.fsencode(word)) + 1
        if room < 0:
            break
        words.append(word)
    if not words:
        return None
    return {**passable(env), _KEPT: " ".join(words)}


def passable(env: Mapping[str, str]) -> dict[str, str]:
    """What of `env` a process can be given: no name with `=` in it."""
    return {name: value for name, value in env.items() if "=" not in name}


def _pwd(env: Mapping[str, str]) -> str:
    """What gives PWD its value again: a shell sets it where it is missing, or names another folder
    than the shell's."""
    return f"PWD={_quoted(env['PWD'])}; " if "PWD" in env else "unset PWD; "


def _quoted(text: str) -> str:
    """Text as one word of a shell, and of BRIGADE_KEPT."""
    return "'" + text.replace("'", "'\\''") + "'"


def _keeps_all() -> bool:
    """Whether the shell passes on what it cannot name: bash does, by whichever name."""
    return os.path.basename(os.path.realpath(_SHELL)).startswith("bash")


def _shell(env: Mapping[str, str]) -> list[str]:
    """The shell, without the search of LD_LIBRARY_PATH if that is safe: what is preloaded may need
    it, and only a loader at the place that every node has is taken."""
    if not env.get("LD_LIBRARY_PATH") or env.get("LD_PRELOAD") or env.get("LD_AUDIT"):
        return [_SHELL]
    from brigade.elf import file as elf_file  # for few jobs only

    try:
        loader = elf_file.read(_SHELL).interpreter or ""
    except (OSError, elf_file.NotElf):
        return [_SHELL]
    folder, name = os.path.split(loader)
    if folder not in ("/lib", "/lib64") or not name.startswith("ld-linux"):
        return [_SHELL]
    return [loader, "--library-path", "", _SHELL]
