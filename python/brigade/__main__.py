"""`python -m brigade` and the `brigade` command; the one place that catches BrigadeError, what the
system refuses, and a Ctrl-C that no command had a use for."""

from __future__ import annotations

import errno
import signal
import sys

from brigade import streams
from brigade.errors import BrigadeError
from brigade.interrupt import Interrupted


def main() -> int:
    """Run the command line; returns the exit code of an error, and otherwise exits by itself."""
    streams.settle()
    try:
        try:
            return _command()
        finally:
            sys.stdout.flush()  # what was printed may fail only now
    except OSError as error:
        said = streams.lost(error)
        if error.errno != errno.EPIPE:  # who has seen enough need not be told
            print(f"brigade: {said}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, Interrupted) as stop:
        return _stopped(getattr(stop, "signum", signal.SIGINT))


def _stopped(signum: int) -> int:
    """Ends as the signal would have ended a program that does not hear it."""
    from brigade.job.signals import die_of

    print(f"brigade: stopped by {signal.Signals(signum).name}", file=sys.stderr)
    die_of(signum)
    return 128 + signum


def _command() -> int:
    from brigade.cli import cli

    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        # As whoever started us has it: then the kernel keeps how children ended from us.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        cli.main(prog_name="brigade")
    except BrigadeError as error:
        print(f"brigade: {error.message}", file=sys.stderr)
        hint = error.hint or _who_shuts(error)
        if hint:
            print(f"  {hint}", file=sys.stderr)
        return error.exit_code


def _who_shuts(error: BrigadeError) -> str | None:
    """Of permission denied, the folder that may not be entered."""
    if not isinstance(error, OSError) or error.errno != errno.EACCES:
        return None
    from brigade import shut

    return shut.advice(error.filename)


if __name__ == "__main__":
    sys.exit(main())
