"""Signals around the user's job: while it runs they are the job's, and its end is ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from brigade import interrupt

_PASSED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@contextmanager
def passing_on(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Signals to us are the job's while it runs; a terminal's Ctrl-C reaches it by itself, and what
    our caller had ignored (nohup) stays so, for us and for the job."""
    before = {s: signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGQUIT)}
    for signum in _PASSED:
        if signal.getsignal(signum) != signal.SIG_IGN:
            before[signum] = signal.signal(signum, lambda number, _: child.send_signal(number))
    early = interrupt.noted()  # between the caller's last look and now
    if early is not None:
        child.send_signal(early)
    try:
        yield
    finally:
        for signum, old in before.items():
            signal.signal(signum, old)


def die_of(signum: int) -> None:
    """End by the signal that ended the job, as a shell's caller expects; no second core file."""
    import resource

    # Of a limit of 1 byte the kernel makes no core, neither in a file nor for a pipe's reader.
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (1 if most else 0, most))
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        signal.signal(signum, signal.SIG_DFL)
    except OSError:  # SIGKILL and SIGSTOP have no other way
        pass
    os.kill(os.getpid(), signum)
