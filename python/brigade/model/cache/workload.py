"""What is done to files, as lines of text: both the study and the simulator follow them.

    # anything after this sign is a comment
    write a bytes=160M size=1M every=16M sleep=100ms
    look a
    [reader] read a bytes=160M size=128k

A line is a step: an operation, mostly a file, and settings. Steps of one client, named in brackets,
follow one another; clients go on at once. docs/how-to/bench-cache.md has the table of operations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from brigade.cli.duration import duration
from brigade.cli.size import size
from brigade.errors import UsageError

MOVES = ("write", "read")
OPERATIONS = {
    "file": "there is a file of so many bytes, of which nothing is cached",
    "write": "write `bytes` from `at` on, in calls of `size`",
    "read": "read them",
    "fsync": "wait until the file is on the device",
    "drop": "fsync, then take the file out of the cache",
    "remove": "remove the file",
    "sleep": "do nothing for `sleep`",
    "look": "which part of the file is cached?",
    "probe": "time reads of `count` single pages, all over the file",
}
_SIZES = ("bytes", "size", "at", "every", "fsync")
_TIMES = ("sleep", "limit")
_FILE = re.compile(r"[\w.-]{1,60}")


@dataclass(frozen=True)
class Step:
    operation: str
    file: str = "-"
    bytes: int = 0
    size: int = 1 << 20  # of a call
    at: int = 0  # where the first call begins
    every: int = 0  # after so many bytes, it sleeps
    sleep: float = 0.0  # seconds
    fsync: int = 0  # after so many bytes, it waits for fsync
    direct: bool = False  # O_DIRECT
    limit: float = 0.0  # seconds after which no further call is begun; 0: none
    count: int = 256  # pages that `probe` reads
    client: str = ""
    label: str = ""  # what a person calls it

    @property
    def name(self) -> str:
        return self.label or f"{self.operation} {self.file}"


def parse(text: str, source: str = "workload") -> list[Step]:
    """The steps of a text. Raises UsageError, which says which line, for one that is none."""
    steps = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            try:
                steps.append(_step(words))
            except (UsageError, ValueError) as error:
                said = error.message if isinstance(error, UsageError) else str(error)
                raise UsageError(
                    f"{source}, line {number}: {said}",
                    hint="a step is such as `write a bytes=64M size=1M`: brigade model cache -h",
                ) from error
    if not steps:
        raise UsageError(f"{source}: no step", hint="write one a line: write a bytes=64M size=1M")
    return steps


def load(path: str) -> list[Step]:
    """The steps of a file. Raises UsageError as `parse` does, and where it is no text."""
    try:
        return parse(Path(path).read_text("utf-8"), path)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text", hint="a workload has a step a line") from error


def _step(words: list[str]) -> Step:
    client = ""
    if words[0].startswith("["):
        client, words = words[0].strip("[]"), words[1:]
    operation = words[0] if words else ""
    if operation not in OPERATIONS:
        raise UsageError(f"'{operation}' is no operation ({', '.join(OPERATIONS)})")
    step = Step(operation, client=client)
    for word in words[1:]:
        key, sign, value = word.partition("=")
        if not sign and key == "direct":
            step = replace(step, direct=True)
        elif not sign and step.file == "-" and _FILE.fullmatch(key):
            step = replace(step, file=key)
        else:
            step = replace(step, **{key: _value(key, value)})
    return _checked(step)


def _value(key: str, value: str) -> Any:
    if key in _SIZES:
        return size(value)
    if key in _TIMES:
        return duration(value)
    if key == "count":
        return int(value)
    if key == "label":
        return value.replace("_", " ")
    raise UsageError(f"'{key}' is no setting of a step")


def _checked(step: Step) -> Step:
    if step.operation != "sleep" and step.file == "-":
        raise UsageError(f"{step.operation} of which file?")
    if step.operation in MOVES or step.operation == "file":
        if step.bytes <= 0:
            raise UsageError(f"how many bytes? {step.operation} {step.file} bytes=64M")
        if not 0 < step.size:
            raise UsageError("a call has at least one byte")
    return replace(step, size=min(step.size, step.bytes)) if step.operation in MOVES else step


def text(steps: list[Step]) -> str:
    """The lines that `parse` makes these steps of."""
    return "".join(_line(step) + "\n" for step in steps)


def _line(step: Step) -> str:
    words = [f"[{step.client}]"] if step.client else []
    words += [step.operation, *([step.file] if step.file != "-" else [])]
    for field in fields(Step):
        value = getattr(step, field.name)
        if field.name in ("operation", "file", "client") or value == field.default:
            continue
        if field.name == "direct":
            words.append("direct")
        elif field.name == "label":
            words.append(f"label={value.replace(' ', '_')}")
        else:
            words.append(f"{field.name}={value!r}")
    return " ".join(words)
