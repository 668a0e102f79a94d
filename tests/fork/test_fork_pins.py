"""What the user wishes reaches a template whole, in the one variable that it has room in."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from brigade.errors import UsageError
from brigade.fork.pins import ROOM, pins_text
from brigade.imports import table

READ = """\
import json, os, sys
sys.path.insert(0, sys.argv[1])
from _brigade_fork import _words
print(json.dumps(_words(dict(os.environb), b"BRIGADE_FORK_PINS")))
"""


def read_by_a_template(text: str) -> dict[str, str]:
    env = {**os.environ, "BRIGADE_FORK_PINS": text}
    command = [sys.executable, "-c", READ, str(table.SITE)]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    told: dict[str, str] = json.loads(done.stdout)
    return told


def modules(n: int) -> dict[str, str]:
    """As of a large package: long names, much of which is the same."""
    return {f"tensorflow.python.framework.part{i // 50}.module_{i}": "" for i in range(n)}


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"a": ""},
        {"p.b": "x, which is left", "p.a": "y, which is left", "p": ""},
        {"a" * 300 + "b": "w" * 400, "a" * 300 + "c": "w" * 400, "a" * 254: ""},
        {"größe.ä": "läuft", "größe.ö": "läufer", "größ": "l"},
        modules(3000),
    ],
)
def test_a_template_reads_what_was_told(told: dict[str, str]) -> None:
    text = pins_text(told)
    assert read_by_a_template(text) == told
    assert bool(text) == bool(told)


def test_what_no_variable_can_hold_is_an_error_that_says_so() -> None:
    with pytest.raises(UsageError, match="what becomes of 20,000 modules"):
        pins_text(modules(20_000))


def test_the_kernel_takes_as_long_a_variable_and_as_long_a_word() -> None:
    text = "0" * ROOM
    subprocess.run(["true", text], env={**os.environ, "BRIGADE_FORK_PINS": text}, check=True)
