"""What export and import tell while they copy, and after."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from brigade import interrupt, shut
from brigade.errors import BrigadeError
from brigade.job.progress import Progress


@contextmanager
def moving(step: str, quiet: bool) -> Iterator[tuple[Callable[[int, int], None], list[str]]]:
    """(progress, sentences): a line that redraws itself; afterwards what could not be carried. Ends
    the command if a signal asks for that, when what was begun has been taken back."""
    line, left = Progress(quiet), list[str]()

    def show(done: int, total: int) -> None:
        interrupt.check()
        line.show(step, done, total)

    try:
        with interrupt.listening(), interrupt.promptly():
            yield show, left
    except interrupt.Interrupted as stop:
        sys.exit(128 + stop.signum)
    except BrigadeError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # what h5py and zarr raise
        hint = shut.advice(error.filename) if isinstance(error, PermissionError) else None
        raise BrigadeError(f"{step} failed: {error}", hint=hint) from error
    finally:
        line.close()
    for sentence in left:
        line.warn(f"not carried: {sentence}")
