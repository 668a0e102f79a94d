"""Each failure is made for real, and Brigade says what would mend it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import CASES, LAB, PAGE, rows
from failing import fail

from brigade.failure import asks_python


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_failure_is_explained(case, base):
    missing = case.needs()
    if missing:
        pytest.skip(missing)
    failed = fail(case, base)
    print(failed.text)
    assert [one.kind for one in failed.diagnoses][:1] == [case.kind]
    for words in case.tells:
        assert words.replace("{base}", str(base)) in failed.text
    assert len(failed.diagnoses[0].lines()) <= 12
    assert failed.diagnoses[0].mend or failed.diagnoses[0].closest


def test_the_page_has_each_failure_and_no_other():
    assert rows(PAGE.read_text()) == [*((case.title, case.kind) for case in CASES), *LAB]
    assert len({case.kind for case in CASES}) >= 20


def test_the_closest_module_is_one_that_can_be_imported(tmp_path: Path) -> None:
    for folder in ("solvers", "solver2.libs", "solver3-1.0.dist-info"):
        (tmp_path / folder).mkdir()
    for file in ("solvex.cpython-311-x86_64-linux-gnu.so", "solvey.py", "solvez.txt"):
        (tmp_path / file).touch()
    names = asks_python.first_names([str(tmp_path), "/nowhere"])
    assert set(names) == {"solvers", "solvex", "solvey"}
