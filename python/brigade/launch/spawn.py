"""Start N copies of a command on this machine and wait: `python spawn.py N COMMAND…`.

Each copy gets BRIGADE_RANK and BRIGADE_SIZE. The exit code is the first failure's, a signal
counting 128 more, as a shell says it. SIGINT, SIGTERM and SIGHUP are passed on to all copies.
Imports as little as possible: it starts in the time of a bare interpreter.
"""

from __future__ import annotations

import os
import signal
import sys


def spawn(ranks: int, command: list[str]) -> int:
    """Run `command` `ranks` times at once; returns the exit code for the whole."""
    children: dict[int, int] = {}

    def forward(signum: int, _frame: object) -> None:
        for pid in children:
            try:
                os.kill(pid, signum)
            except ProcessLookupError:
                pass

    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, forward)
    for rank in range(ranks):
        environment = {**os.environ, "BRIGADE_RANK": str(rank), "BRIGADE_SIZE": str(ranks)}
        try:
            pid = os.posix_spawnp(
                command[0],
                command,
                environment,
                setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
            )
        except OSError as error:
            print(f"brigade: {command[0]}: {error.strerror}", file=sys.stderr)
            forward(signal.SIGTERM, None)
            return 127 if isinstance(error, FileNotFoundError) else 126
        children[pid] = rank
    result = 0
    while children:
        try:
            pid, status = os.wait()
        except InterruptedError:
            continue
        if children.pop(pid, None) is None:
            continue
        code = os.waitstatus_to_exitcode(status)
        result = result or (code if code >= 0 else 128 - code)
    return result


if __name__ == "__main__":
    sys.exit(spawn(int(sys.argv[1]), sys.argv[2:]))
