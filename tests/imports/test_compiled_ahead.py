"""What an image has compiled of Brigade's own parts is what a process of a job loads."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path
from typing import Any

import brigade.imports

SITE = Path(brigade.imports.__file__).parent / "site"


def constant(name: str) -> Any:
    """One of _brigade_record.py, which can only be imported by a recorder."""
    for node in ast.parse((SITE / "_brigade_record.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return eval(compile(ast.Expression(node.value), name, "eval"))
    raise LookupError(name)


def test_each_part_that_a_process_loads_is_compiled_ahead():
    loaded = runpy.run_path(str(SITE / "sitecustomize.py"), run_name="not started")
    ahead = constant("_COMPILED_AHEAD")
    assert sorted(ahead) == sorted(["sitecustomize", *loaded["_VIEW"]])
    to_fork = constant("_COMPILED_AHEAD_TO_FORK")
    assert sorted([*loaded["_VIEW"], *to_fork]) == sorted(loaded["_TEMPLATE"])
