"""What became of every single test of a suite, plain, under each view and in a rank that was
forked, compared by name.

    compare(pair, command, lines, at_least=1000)   -> Counter; AssertionError where they differ

`command` runs a suite and writes `lines`, one JSON object a test (unittest_lines.py,
pytest_lines.py). What must stay true: each result is compared, skips and their reasons too; nothing
is compared with a list of ours. What is known to differ is named, with why, by who calls.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from differential import FORK, RANKS, WAYS, Differential

#: Test id -> what became of it; a test that ran twice has two results, in order.
Results = dict[str, list[tuple[str, str]]]
SHARED = 50  #: modules at least, of suites
#: Way -> parts of the ids of tests that are known to differ there, or of how they end there.
Known = Mapping[str, tuple[str, ...]]


def results(lines: Path) -> Results:
    """Of `lines`, or of the `lines.0`, `lines.1`, ... of ranks; all are removed."""
    found: Results = defaultdict(list)
    for file in sorted(lines.parent.glob(f"{lines.name}*")):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            found[row["id"] + file.suffix].append((row["outcome"], row["why"]))
        file.unlink()
    return found


def differences(plain: Results, viewed: Results, known: Sequence[str] = ()) -> dict[str, tuple]:
    return {
        name: (plain.get(name), viewed.get(name))
        for name in sorted({*plain, *viewed})
        if plain.get(name) != viewed.get(name)
        and not any(part in f"{name} {viewed.get(name)}" for part in known)
    }


def compare(
    pair: Differential,
    command: Sequence[str | Path],
    lines: Path,
    at_least: int,
    known: Known | None = None,
    ranks: int | None = 1,
    ways: Sequence[str] = WAYS,
    imports: Sequence[str | Path] | None = None,
    **environment: str,
) -> Counter[str]:
    """How many tests ended in each way, the same each way. `ranks`: as of `under`.

    Of two ranks that are forked, where the command has no launcher of its own, the second imports
    the tests and runs none: both would write into the same folders. `imports` is a command that
    only imports, too: a trial of that is what decides which modules are shared."""
    # what a first run leaves, such as byte code of the tests, must not be a difference
    for _ in range(2):
        done = pair.plain(command, **environment)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        plain = results(lines)
    assert len(plain) >= at_least
    found, without = {}, ""
    for way in ways:
        if way != FORK:
            runs = [pair.under(way, command, ranks, **environment)]
        elif ranks:
            runs = pair.forked(command, imports, **environment)
        else:
            runs = [pair.under_fork(command, **environment)]
        for done in runs:
            assert done.returncode == 0, (way, done.stdout[-3000:], done.stderr[-3000:])
        assert pair.report["unstaged"] is None
        if way == FORK:
            assert pair.why_not_forked() == ""
            assert pair.report["fork"]["ranks"] == RANKS, pair.report["fork"]
            assert pair.report["fork"]["modules"] >= SHARED, pair.report["fork"]
        else:
            without = pair.without(way) or without
        found[way] = differences(plain, results(lines), (known or {}).get(way, ()))
    assert not any(found.values()), found
    if without:
        pytest.skip(f"the namespace was not in effect: {without}")
    return Counter(outcome for one in plain.values() for outcome, _ in one)
