"""What became of every single test of a suite, plain and under each view, compared by name.

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

from differential import VIEWS, Differential

#: Test id -> what became of it; a test that ran twice has two results, in order.
Results = dict[str, list[tuple[str, str]]]
#: View -> parts of the ids of tests that are known to differ there, or of how they end there.
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
    views: Sequence[str] = VIEWS,
    **environment: str,
) -> Counter[str]:
    """How many tests ended in each way, the same under each view. `ranks`: as of `under`."""
    # what a first run leaves, such as byte code of the tests, must not be a difference
    for _ in range(2):
        done = pair.plain(command, **environment)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        plain = results(lines)
    assert len(plain) >= at_least
    found = {}
    for view in views:
        done = pair.under(view, command, ranks, **environment)
        assert done.returncode == 0, (view, done.stdout[-3000:], done.stderr[-3000:])
        assert pair.report["unstaged"] is None
        found[view] = differences(plain, results(lines), (known or {}).get(view, ()))
    assert not any(found.values()), found
    return Counter(outcome for one in plain.values() for outcome, _ in one)
