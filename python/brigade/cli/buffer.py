"""`brigade buffer`: an unmodified program's file I/O through buffers in its own memory."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from brigade.cli.completing import FILE, WORDS
from brigade.cli.size import Size
from brigade.errors import LauncherError


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  brigade buffer -- ./app                                all files that it opens
  brigade buffer --files '*.dat:size=4M,*.log:off' -- srun -n 64 ./solver input.nml
  brigade buffer --report -- mpirun -n 8 ./solver        what was done, what would help
  brigade buffer --safe -- python analysis.py            only reads are buffered
  brigade buffer --explain --files '*.h5:size=8M:count=8'
  srun -n 64 brigade buffer -- ./solver input.nml        inside the launcher: the same""",
)
@click.option(
    "--files",
    metavar="RULES",
    help="Which files, and how: PATTERN[:OPTION]..., the first that fits decides. Options: "
    "size=1M, count=4 (buffers), prefetch=1, delay=0.2 and fresh=1 (seconds), safe, off, verbose.  "
    "[default: BRIGADE_BUFFER, else IOBUF_PARAMS, else '*']",
)
@click.option("--safe", is_flag=True, help="Writes go to the file system at once, for all files.")
@click.option(
    "--memory", type=Size(), metavar="SIZE", help="Most memory of one process.  [default: 256M]"
)
@click.option("--report", is_flag=True, help="Say at the end what was done, and what would help.")
@click.option("--json", "json_path", type=FILE, help="That for machines; - is standard error.")
@click.option("--explain", is_flag=True, help="Say how the rules are understood; start nothing.")
@click.argument("words", nargs=-1, type=WORDS, metavar="COMMAND")
def command(
    words: tuple[str, ...],
    files: str | None,
    safe: bool,
    memory: int | None,
    report: bool,
    json_path: str | None,
    explain: bool,
) -> None:
    """Run COMMAND, a program with or without its launcher, with its file I/O buffered.

    Nothing is rebuilt: a library is preloaded. Small writes are gathered and written in the
    background, reads that go on and on are read ahead. What the program sees stays the same; what
    is done otherwise with a file (mapped, locked, shared with a child) ends its buffering.
    """
    from brigade.buffer.rules import as_text, parse

    text = files or os.environ.get("BRIGADE_BUFFER") or os.environ.get("IOBUF_PARAMS") or "*"
    rules = parse(text)
    if safe:
        for rule in rules:
            rule.be_safe()
    text = as_text(rules)
    if explain:
        for rule in rules:
            click.echo(f"{rule.pattern}: {rule.words()}")
        return
    if not words:
        raise click.UsageError("Missing argument 'COMMAND'.")
    settings = {"BRIGADE_BUFFER": text}
    if memory is not None:
        settings["BRIGADE_BUFFER_MEMORY"] = str(memory)
    if not report and json_path is None:
        job = _job(words, settings)
        try:
            os.execvp(job[0], job)
        except OSError as error:
            raise LauncherError(f"cannot start {job[0]}: {error.strerror}") from error
    _reported(words, settings, report, json_path)


def _job(words: tuple[str, ...], settings: dict[str, str]) -> list[str]:
    from brigade.launch import parse
    from brigade.launch.preload import preloaded

    said = {"LD_PRELOAD": preloaded("libbrigade_buffer.so"), **settings}
    # before each program, as not every launcher passes its own environment on
    prefix = ["env", *(f"{name}={value}" for name, value in said.items())]
    return parse(list(words)).job(prefix)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Where every process, on whatever node, leaves its counters: below the working folder."""
    from brigade.scratch import scratch

    with scratch(
        os.getcwd(), "buffer", 0o700, "run it where you may write, or without --report"
    ) as f:
        yield f


def _reported(
    words: tuple[str, ...], settings: dict[str, str], report: bool, json_path: str | None
) -> None:
    from brigade.buffer.advice import advice, merge
    from brigade.buffer.table import print_files
    from brigade.job.signals import die_of, passing_on
    from brigade.report.summary import write_json

    with _folder() as folder:
        job = _job(words, {**settings, "BRIGADE_BUFFER_REPORT": str(folder)})
        try:
            child = subprocess.Popen(job)
        except OSError as error:
            raise LauncherError(f"cannot start {job[0]}: {error.strerror}") from error
        with passing_on(child):
            status = child.wait()
        processes = _read(folder)
    found = merge(processes)
    if report:
        print_files(found, len(processes))
    if json_path is not None:
        for entry in found:
            entry["advice"] = advice(entry)
        try:
            write_json({"rules": settings["BRIGADE_BUFFER"], "files": found}, json_path)
        except OSError as error:  # the job's own status is worth more
            print(f"brigade: {json_path}: {error.strerror}", file=sys.stderr)
    if status < 0:
        die_of(-status)
    sys.exit(status)


def _read(folder: Path) -> list[dict[str, Any]]:
    processes, unread = [], 0
    for path in sorted(folder.glob("*.json")):
        # whoever was killed while writing its line has not ended it
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                processes.append(json.loads(line))
            except ValueError:
                unread += 1
    if unread:
        print(
            f"brigade: the counters of {unread} processes cannot be read: the report lacks them",
            file=sys.stderr,
        )
    return processes
