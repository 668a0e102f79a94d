"""Start a variant and time it: to its end, or to the first line of output with a given text."""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from brigade import interrupt
from brigade.errors import BrigadeError, LauncherError
from brigade.job import child
from brigade.launch import parse
from brigade.launch.width import resized
from brigade.profile.clients import Client
from brigade.profile.counters import Sampler, find
from brigade.study.plan import Start, Variant, starts
from brigade.study.rewrite import moved
from brigade.study.samples import Sample, Study

Progress = Callable[[str, float, "float | None"], None]  # step, done, of how many
_LOOK_S = 0.002
_LEAVE_S = 15.0
_TAIL = 8


@dataclass(frozen=True)
class Timing:
    """How starts are timed."""

    until: str | None = None  # text that stands in the line which says that start-up is over
    limit_s: float = 600.0


def command_of(
    variant: Variant, ranks: int, prefix: Sequence[str] = (), report: str | None = None
) -> list[str]:
    """What is started; `prefix` goes before the program, `report` is where Brigade's goes."""
    words = resized(list(variant.words), ranks)
    if not variant.brigade:
        return parse(words).job(list(prefix)) if prefix else words
    run = [sys.executable, "-m", "brigade", "run", "--quiet"]
    if prefix:
        run += ["--outside", shlex.join(prefix)]
    if report:
        run += ["--json", report]
    if parse(list(variant.words)).kind == "local":
        return [*run, "-n", str(ranks), "--", *variant.words]
    return [*run, "--", *words]


def timed(start: Start, timing: Timing, clients: Sequence[Client] = ()) -> tuple[Sample, list[str]]:
    """One start, and what is to be known of its count. Raises BrigadeError if it fails, Interrupted
    if someone ends us."""
    with surroundings(start.variant):
        command = command_of(start.variant, start.ranks)
    with Sampler(clients) as sampler:
        seconds = run(command, start.variant, timing)
    counts = sampler.counts()
    asked = sum(count.requests for count in counts) if counts else None
    return Sample(start.variant.name, start.ranks, start.repeat, seconds, asked), sampler.notes


def moved_words(words: list[str], moves: dict[str, str]) -> list[str]:
    """The command with what lies in moved folders at its new place."""
    found = []
    for word in words:
        if not os.path.isabs(word) and "/" in word and os.path.exists(word):
            path = os.path.abspath(word)
            word = path if moved(path, moves) != path else word
        found.append(moved(word, moves))
    return found


def time_all(
    found: Study,
    variants: list[Variant],
    widths: list[int],
    repeats: int,
    timing: Timing,
    progress: Progress,
) -> None:
    """Start everything in turn; samples and labels go into the study. A variant that fails once is
    left out from then on, with its reason. Raises BrigadeError if that is the baseline."""
    found.labels.update({variant.name: variant.label for variant in variants})
    order, clients = starts(variants, widths, repeats), find()
    for number, start in enumerate(order):
        interrupt.check()
        progress("starts", number, len(order))
        if start.variant.name in found.left_out:
            continue
        try:
            sample, notes = timed(start, timing, clients)
        except BrigadeError as error:
            if start.variant.name == found.baseline:
                raise
            at = f"{start.ranks} rank{'s' if start.ranks > 1 else ''}"
            said = " ".join(error.message.split())
            found.left_out[start.variant.name] = f"a start of {at} failed: {said}"
            continue
        found.samples.append(sample)
        found.facts += [note for note in notes if note not in found.facts]


def run(command: list[str], variant: Variant, timing: Timing) -> float:
    """Seconds until it is over; its output is kept for the message of a failure."""
    with tempfile.TemporaryFile() as said, surroundings(variant):
        begin = time.monotonic()
        try:
            started = child.start(command, child.GIVE_UP, stdout=said, stderr=subprocess.STDOUT)
        except OSError as error:
            raise LauncherError(f"cannot start {command[0]}: {error.strerror}") from error
        try:
            with interrupt.promptly():
                seconds = _wait(started, said.fileno(), begin, timing)
                _leave(started)
        finally:
            child.end(started, undo=False)
        if seconds is not None:
            return seconds
        what = f"{variant.label}: `{' '.join(command)}`"
        if started.returncode:
            why = f"ended with {started.returncode}"
        else:
            why = f"ended without a line that has {timing.until!r}"
        raise BrigadeError(f"{what} {why}; it said:\n    {_tail(said.fileno())}")


def _wait(
    started: subprocess.Popen[bytes], said: int, begin: float, timing: Timing
) -> float | None:
    """Seconds until start-up was over, or None if it failed."""
    wanted = os.fsencode(timing.until) if timing.until else None
    seen, at, name = b"", 0, _name(started)
    while True:
        left = timing.limit_s - (time.monotonic() - begin)
        if left < 0:
            raise BrigadeError(
                f"`{name}` has not ended for {timing.limit_s:.0f} s",
                hint="--until TEXT ends it when start-up is over; --limit gives it longer",
            )
        over = _ended(started, min(left, _LOOK_S if wanted else 1.0))
        if wanted is None:
            if over:
                return None if started.returncode else time.monotonic() - begin
            continue
        new = os.pread(said, 1 << 20, at)
        at += len(new)
        seen = (seen + new)[-(1 << 20) :]
        if wanted in seen:
            return time.monotonic() - begin
        if over and not new:
            return None


def _ended(started: subprocess.Popen[bytes], within_s: float) -> bool:
    """Whether it ends within that time; told at once (Popen.wait looks every 50 ms only)."""
    try:
        watched = os.pidfd_open(started.pid)
    except (AttributeError, OSError):  # an old kernel, or it has been waited for
        time.sleep(min(within_s, _LOOK_S))
        return started.poll() is not None
    try:
        select.select([watched], [], [], within_s)
    finally:
        os.close(watched)
    return started.poll() is not None


def _leave(started: subprocess.Popen[bytes]) -> None:
    """What has said that its start-up is over may go, and take away what it has staged."""
    if started.poll() is None:
        started.terminate()
        with suppress(subprocess.TimeoutExpired):
            started.wait(timeout=_LEAVE_S)


@contextmanager
def surroundings(variant: Variant) -> Iterator[None]:
    """A variant's environment and folder as our own: children inherit them, PATH searches obey."""
    before = {name: os.environ.get(name) for name in variant.env}
    here = os.getcwd()
    os.environ.update(variant.env)
    try:
        os.chdir(variant.cwd or here)
        yield
    finally:
        os.chdir(here)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _tail(said: int) -> str:
    text = os.pread(said, 1 << 16, max(0, os.fstat(said).st_size - (1 << 16)))
    lines = text.decode(errors="replace").splitlines()
    return "\n    ".join(lines[-_TAIL:]) or "(nothing)"


def _name(started: subprocess.Popen[bytes]) -> str:
    words = started.args
    return os.path.basename(os.fsdecode(words[0])) if isinstance(words, list) else str(words)
