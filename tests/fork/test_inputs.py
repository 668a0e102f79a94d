"""Files by which a program may have chosen: which, and what tells them from others."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from brigade.fork.inputs import digest, inputs
from brigade.imports.table import SITE
from brigade.trial.modules import Execution, Look, RankModules

sys.path.append(str(SITE))
from _brigade_otherwise import digest_of_file, left

sys.path.remove(str(SITE))


def rank(folder: Path, *looks: Look) -> RankModules:
    """Of three executions."""
    executions = [Execution(name, f"/code/{name}.py", "") for name in "abc"]
    return RankModules(0, "n0", cwd=str(folder), executions=executions, looks=list(looks))


def test_what_was_looked_for_in_the_working_folder_is_of_the_program_s(tmp_path: Path) -> None:
    (tmp_path / "case").write_text("one")
    path = str(tmp_path / "case")
    found = inputs(
        rank(
            tmp_path,
            Look(path, opened=False, there=True, executed=1),
            Look(path, opened=True, there=True, executed=1),
            Look(str(tmp_path / "restart"), opened=False, there=False, executed=2),
            Look(str(tmp_path), opened=True, there=True, executed=2),
            Look("/code", opened=False, there=True, executed=2),
            Look("/nowhere/else", opened=True, there=False, executed=2),
            Look(str(tmp_path / "code.py"), opened=True, there=True, executed=2),
            Look(str(tmp_path / "last"), opened=False, there=False, executed=3),
            Look(str(tmp_path / "later"), opened=True, there=True, executed=4),
        )
    )
    assert found == {"case": digest(path, opened=True), "restart": "", "/nowhere/else": ""}


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "empty", "small", "large", "binary"])
def test_a_template_tells_a_file_as_the_plan_does(tmp_path: Path, kind: str, opened: bool) -> None:
    path = tmp_path / "file"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind != "missing":
        data = {"empty": b"", "small": b"{}", "large": bytes(2 << 20), "binary": b"\xff\0\xff\0"}
        path.write_bytes(data[kind])
    before = digest(str(path), opened)
    assert digest_of_file(str(path), opened) == before
    if opened and kind in ("small", "binary"):
        path.write_bytes(path.read_bytes() + b"\0")
        assert digest(str(path), opened) != before
        assert digest_of_file(str(path), opened) == digest(str(path), opened)


def test_who_is_left_follows_from_the_file(tmp_path: Path) -> None:
    called = {
        "names": ["a", "b", "c"], "imports": [[], [], [1]], "arguments": "", "late": [1],
        "varied": [1], "told": [], "looking": [], "variables": {}, "files": [("case", "")],
    }  # fmt: skip
    from _brigade_otherwise import digest as of_words

    called["arguments"] = of_words(["x"])

    def names(folder: Path, *warm: str) -> set[str]:
        return set(left(called, ["x"], {}, str(folder), set(warm)))

    assert names(tmp_path) == set()
    (tmp_path / "case").write_text("one")
    assert names(tmp_path) == {"b", "c"}
    assert names(tmp_path, "b") == set()
    assert names(tmp_path, "c") == {"b"}
    called["files"] = None
    assert names(tmp_path) == {"b", "c"}

    called.update(late=[0, 1], files=[("case", "")], variables={"DEBUG": ("1", False, False, [0])})
    assert names(tmp_path) == {"a", "b", "c"}, "what is left for a variable alone hides no file"
