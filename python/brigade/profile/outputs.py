"""What a profile is written as: a page, JSON, CSV, a Perfetto trace, a report in the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from brigade.errors import BrigadeError
from brigade.profile.profile import Profile, save
from brigade.trace.events import Trace


@dataclass
class Outputs:
    """Files that are wanted; None: not."""

    html: str | None = None
    json: str | None = None
    csv: str | None = None
    perfetto: str | None = None

    def check(self) -> None:
        """Raise BrigadeError now if a file could not be written after the run."""
        for path in (self.html, self.json, self.csv, self.perfetto):
            if not path or path == "-":
                continue
            folder = os.path.dirname(os.path.abspath(path))
            writable = os.access(path if os.path.exists(path) else folder, os.W_OK)
            if not os.path.isdir(folder) or os.path.isdir(path) or not writable:
                raise BrigadeError(
                    f"{path} cannot be written", hint=f"is {folder} a folder that is yours?"
                )

    def write(self, profile: Profile, trace: Trace | None) -> tuple[list[str], list[str]]:
        """Write all that is wanted; returns the files, and what went wrong with others."""
        wanted: list[tuple[str | None, Callable[[str], object]]] = [
            (self.html, lambda path: _page(profile, path)),
            (self.json, lambda path: save(profile, "/dev/stderr" if path == "-" else path)),
            (self.csv, lambda path: _export("csv", trace, path)),
            (self.perfetto, lambda path: _export("perfetto", trace, path)),
        ]
        written, failed = [], []
        for path, write in wanted:
            if path is None:
                continue
            try:
                write(path)
                written.append(path)
            except BrigadeError as error:
                failed.append(f"{error.message}; {error.hint}" if error.hint else error.message)
            except OSError as error:
                failed.append(f"{path}: {error.strerror}")
        return written, failed


def _page(profile: Profile, path: str) -> None:
    from brigade.page import html

    html.write(profile, path)


def _export(kind: str, trace: Trace | None, path: str) -> None:
    from brigade.trace import export

    if trace is None:
        raise BrigadeError(
            f"a profile has no single calls: {path} needs a trace",
            hint="--csv and --perfetto go with a run, or with --from-strace",
        )
    write = {"csv": export.write_csv, "perfetto": export.write_perfetto}[kind]
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as out:
        write(trace, out)


def show(profile: Profile) -> None:
    """The report on standard error."""
    from brigade.console import make_console
    from brigade.page import terminal

    terminal.show(profile, make_console(file=sys.stderr))
