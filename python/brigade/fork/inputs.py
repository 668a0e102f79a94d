"""The files by which a program may have chosen what it sets before it imports more.

    inputs(a rank) -> {path: digest}   what it looked for itself before it had imported all

A template compares them (imports/site/_brigade_otherwise.py): in another folder, or on another day,
`case.json` may say something else, and `restart` be there or not. Paths in the folder in which the
trial was started are relative: they are of the folder in which a program is. Who only lists a
folder is not noticed.
"""

from __future__ import annotations

import os
import stat

from brigade.trial.modules import RankModules

#: More files than that are not compared: then they count as others.
MOST = 64
_CODE = (".py", ".pyc", ".so", ".pth", ".zip", ".egg-link")  # what imports look for
# as in _brigade_otherwise.py, which cannot be imported here
_WHOLE_BYTES = 1 << 20
_PRIME = 2**521 - 1


def inputs(rank: RankModules) -> dict[str, str] | None:
    """None: there are more than `MOST`, and none of them was looked at."""
    found: dict[str, tuple[bool, bool]] = {}  # path -> whether it was opened, and there
    folder = rank.cwd.rstrip("/") + "/"
    of_code = {os.path.dirname(execution.origin) for execution in rank.executions}
    for look in rank.looks:
        if look.executed >= len(rank.executions) or look.path.endswith(_CODE):
            continue
        if look.path + "/" == folder or look.path in of_code:
            continue
        opened = look.opened and look.there
        if opened or look.path not in found:
            found[look.path] = opened, look.there
    if len(found) > MOST:
        return None
    return {
        path.removeprefix(folder) if rank.cwd else path: digest(path, opened) if there else ""
        for path, (opened, there) in found.items()
    }


def digest(path: str, opened: bool) -> str:
    """What tells a file from others: "" if it is not there, its kind alone if it was not opened."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return "d" if stat.S_ISDIR(status.st_mode) else "o"
        if not opened:
            return "f"
        if status.st_size > _WHOLE_BYTES:
            return f"{status.st_size} {status.st_mtime_ns}"
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return ""
    return f"{len(data)}:{int.from_bytes(data, 'little') % _PRIME:x}"
