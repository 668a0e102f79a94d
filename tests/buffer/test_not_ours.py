"""A call on a file that no rule fits costs a few instructions more, which are counted."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from buffer_world import buffered, compile_c, run

CALLS = ("pwrite", "pread", "read", "write", "lseek")


def instructions(program: Path, rules: str | None, *more: str) -> float:
    """Instructions of a round of the five calls."""
    env = None if rules is None else buffered(rules)
    said = []
    for rounds in (100, 1100):
        words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, rounds]
        done = run([*words, *more], program.parent, env)
        assert done.returncode == 0, done.stderr
        said.append(int(re.findall(r"Collected : (\d+)", done.stderr)[0]))
    return (said[1] - said[0]) / 1000


@pytest.mark.skipif(not shutil.which("valgrind"), reason="counts instructions with valgrind")
@pytest.mark.parametrize(
    "rules, more, most",
    [("*.none", [], 4), ("*.dat", ["and another file is buffered"], 9)],
)
def test_a_call_costs_a_few_instructions_more(tmp_path, rules, more, most):
    program = compile_c("not_ours_driver", tmp_path)
    plain, with_rules = instructions(program, None, *more), instructions(program, rules, *more)
    assert plain > 10 * len(CALLS), "the calls were not counted"
    assert 0 < with_rules - plain < most * len(CALLS) + 1  # what starts and ends differs a little
