"""An image of a whole tree, without a trial: an environment, or any folder of software.

Every directory is read, a few at a time, and every regular file goes in with its bytes;
nothing is left out, not even a `.git`, because only the user knows what a program opens.
All directories are LISTED. If the tree has a Python of its own, it is asked for what
decides its imports, and every folder of modules on its `sys.path` gets an import table.

What must stay true: the tree is only read; its Python runs isolated and writes nothing.
"""

from __future__ import annotations

import os
import subprocess
from typing import Callable

from brigade.errors import TrialError
from brigade.image.assemble import Assembled
from brigade.image.plan import LeftOut, Plan
from brigade.image.snapshot import Snapshot, is_dir, is_file
from brigade.image.tree import EntryTree
from brigade.imports.table import SITE, Interpreter, Seen, package_entries
from brigade.trial.mounts import Coverage, is_under

_ASK = """
import sys
sys.path.insert(0, {site!r})
import _brigade_common, _brigade_record
del sys.path[0]
print(_brigade_common.json(_brigade_record._interpreter({{}}, {site!r})))
"""
_PYTHONS = ("python3", "python")
_TIMEOUT_S = 60


def assemble_prefix(
    prefix: str | os.PathLike[str],
    *,
    python: str | None = None,
    jobs: int = 4,
    max_file: int | None = None,
    progress: Callable[[int], None] = lambda entries: None,
) -> Assembled:
    """Take in the whole tree at `prefix`. `python`: the interpreter to make import tables for,
    by default `bin/python3` or `bin/python` of the tree; `progress` counts paths seen.

    Raises TrialError if there is no such folder, or if `python` cannot be asked.
    """
    given = os.path.abspath(prefix)
    root = os.path.realpath(given)
    snapshot = Snapshot()
    if not is_dir(snapshot.lstat(root)):
        raise TrialError(
            f"{given} is not a folder", hint="--prefix takes a folder of installed software"
        )
    coverage = Coverage([root], [], {root: "asked"})
    plan = Plan(snapshot, coverage, coverage.covers)
    plan.resolve(given)
    left_out = _take_tree(plan, root, jobs, progress)
    entries = plan.finish(max_file, None)
    tree = EntryTree((e for e in entries if coverage.covers(e.path)), plan.resolve, snapshot)
    return Assembled(
        coverage=coverage,
        entries=entries,
        answers=[],
        left_out=left_out + plan.left_out,
        summary=None,
        python=_python(tree, root, python),
        tree=tree,
        program=[],
        own_folders=[],
        requests=snapshot.requests,
    )


def _take_tree(plan: Plan, root: str, jobs: int, progress: Callable[[int], None]) -> list[LeftOut]:
    """Look everything up, one level of the tree after the other."""
    left_out = []
    level, seen = [root], 0
    while level:
        plan.snapshot.read_ahead(level, jobs)
        below = []
        for folder in sorted(level):
            names = plan.snapshot.names(folder)
            if isinstance(names, int):
                left_out.append(LeftOut(folder, f"cannot be read ({os.strerror(names)})"))
                continue
            for name, metadata in sorted(names.items()):
                path = f"{folder.rstrip('/')}/{name}"
                plan.look_up(path, 0, follow=False, content=is_file(metadata))
                if is_dir(metadata):
                    below.append(path)
            seen += len(names)
        progress(seen)
        level = below
    return left_out


def _python(tree: EntryTree, root: str, chosen: str | None) -> Seen:
    """What the import tables are to hold; nothing if there is no interpreter."""
    candidates = [chosen] if chosen else [f"{root}/bin/{name}" for name in _PYTHONS]
    for python in candidates:
        if chosen or os.access(python, os.X_OK):
            interpreter = ask(python)
            break
    else:
        return Seen()
    entries: dict[str, None] = {}
    for folder in interpreter.path:
        if is_under(os.path.realpath(folder), root):
            entries.update(dict.fromkeys(package_entries(tree, folder)))
    return Seen(interpreters={interpreter.key: interpreter}, path_entries=entries)


def ask(python: str) -> Interpreter:
    """What an interpreter says about how it imports. Raises TrialError if it does not answer."""
    command = [python, "-I", "-B", "-c", _ASK.format(site=str(SITE))]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TrialError(
            f"{python} cannot be started: {error}", hint="name the interpreter with --python"
        ) from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise TrialError(
            f"{python} did not say how it imports: {lines[-1] if lines else 'it failed'}",
            hint="name another interpreter with --python",
        )
    return Interpreter.from_json(done.stdout)
