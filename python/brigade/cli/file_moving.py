"""What export and import tell while they copy, and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from brigade.errors import BrigadeError
from brigade.job.progress import Progress


@contextmanager
def moving(step: str, quiet: bool) -> Iterator[tuple[Callable[[int, int], None], list[str]]]:
    """(progress, sentences): a line that redraws itself; afterwards what could not be carried."""
    line, left = Progress(quiet), list[str]()
    try:
        yield lambda done, total: line.show(step, done, total), left
    except BrigadeError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # what h5py and zarr raise
        raise BrigadeError(f"{step} failed: {error}") from error
    finally:
        line.close()
    for sentence in left:
        line.warn(f"not carried: {sentence}")
