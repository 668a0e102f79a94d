"""Start N copies of a command on this machine and wait: `python spawn.py N COMMAND…`.

Each copy gets BRIGADE_RANK and BRIGADE_SIZE. The exit code is the first failure's, a signal
counting 128 more, as a shell says it. SIGTERM and SIGHUP are passed on to all copies, and a SIGINT
of the process that started this one: a terminal's reaches them by itself. A signal that was ignored
(nohup, a shell's background job) is ignored by all.
Imports as little as possible: it starts in the time of a bare interpreter.
"""

from __future__ import annotations

import os
import signal
import sys

_PASSED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_OF_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)  # that it ignores, and no copy is to
_BY_KERNEL = 0x80  # si_code of what a terminal sends


def spawn(ranks: int, command: list[str]) -> int:
    """Run `command` `ranks` times at once; returns the exit code for the whole."""
    heard = [signum for signum in _PASSED if signal.getsignal(signum) != signal.SIG_IGN]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, none would be told of
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [*heard, signal.SIGCHLD])
    children: set[int] = set()
    for rank in range(ranks):
        environment = {**os.environ, "BRIGADE_RANK": str(rank), "BRIGADE_SIZE": str(ranks)}
        try:
            pid = os.posix_spawnp(
                command[0],
                command,
                environment,
                setsigmask=before,
                setsigdef=[*heard, *_OF_PYTHON],
            )
        except OSError as error:
            _say(f"brigade: {command[0]}: {error.strerror}\n")
            _send(signal.SIGTERM, children)
            return 127 if isinstance(error, FileNotFoundError) else 126
        children.add(pid)
    result = 0
    while children:
        info = signal.sigwaitinfo([*heard, signal.SIGCHLD])
        if info.si_signo == signal.SIGCHLD:
            result = _reap(children, result)
        elif info.si_signo != signal.SIGINT or info.si_pid == os.getppid():
            if info.si_code != _BY_KERNEL:
                _send(info.si_signo, children)
    return result


def _say(text: str) -> None:
    """On standard error, if that takes it: the status is what matters."""
    try:
        os.write(2, text.encode(errors="surrogateescape"))
    except OSError:
        pass


def _send(signum: int, children: set[int]) -> None:
    for pid in children:
        try:
            os.kill(pid, signum)
        except ProcessLookupError:
            pass


def _reap(children: set[int], result: int) -> int:
    """Takes those that have ended out of `children`; the first failure by now."""
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid not in children:
            if not pid:
                break
            continue
        children.remove(pid)
        code = os.waitstatus_to_exitcode(status)
        result = result or (code if code >= 0 else 128 - code)
    return result


if __name__ == "__main__":
    sys.exit(spawn(int(sys.argv[1]), sys.argv[2:]))
