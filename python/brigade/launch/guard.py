"""The shell that each rank is started by: it takes the wrapper where its node has it.

Every rank starts one, so it must not search the job's directories: where LD_LIBRARY_PATH is set,
its ld.so is told to search none, and the variable stays as it is for the program.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

# Start the wrapper ($1) if this node has it; else drop the words up to "--" and start the program
# plainly. A node without the staged folder thus still runs its ranks. A wrapper in a staged folder
# counts only if the user's own folder (a real one: nobody else can have put that there, in a sticky
# directory) holds it: on a node that was not staged, another user may have made one of its name.
_GUARD = (
    't=${1%/*/root/.brigade/*}; if [ -x "$1" ] && { [ "$t" = "$1" ] || '
    '{ [ -O "$t" ] && [ ! -L "$t" ]; }; }; then exec "$@"; fi; '
    'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'
)
_SHELL = "/bin/sh"


def guarded(wrapper: list[str], env: Mapping[str, str] = os.environ) -> list[str]:
    """The words to put before a program so that `wrapper` starts it where the wrapper exists."""
    return [*_shell(env), "-c", _GUARD, "brigade", *wrapper, "--"]


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
