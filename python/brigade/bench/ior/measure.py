"""Runs brigade-ior: as it is, or with what it finds gathered."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from brigade.bench.run import gather
from brigade.errors import BrigadeError, LauncherError
from brigade.report.host import host


def show(command: Sequence[str]) -> int:
    """The exit status of a command that prints where this process does. Ctrl-C reaches it through
    the terminal, and it removes its file."""
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        raise LauncherError(f"{command[0]}: {error.strerror}") from error
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return child.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def gather_report(command: Sequence[str]) -> dict[str, Any]:
    """{"host", "job", "tests", "samples", "wrong", "status"} of one run; BrigadeError where a call
    failed. Wrong words are no exception: they are in the report, and `status` is 1."""
    lists: dict[str, list[dict[str, Any]]] = {"job": [], "test": [], "sample": [], "wrong": []}

    def heard(said: dict[str, Any]) -> None:
        kind = said.pop("event")
        if kind == "failed":
            raise BrigadeError(f"rank {said['rank']}: {said['text']}")
        lists[kind].append(said)

    words = [*command, "-O", "summaryFormat=events"]
    status = gather(words, heard)
    if status and not lists["wrong"]:
        raise BrigadeError(f"{command[0]} ended with status {status}")
    if not lists["job"]:
        raise BrigadeError(
            f"{command[0]} ended well, but no rank has said anything",
            hint="its standard output must come back: `srun --output=FILE` keeps it away",
        )
    return {
        "host": host(),
        "job": lists["job"][0],
        "tests": lists["test"],
        "samples": lists["sample"],
        "wrong": lists["wrong"],
        "status": 1 if lists["wrong"] else 0,
    }
