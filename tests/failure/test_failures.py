"""Each failure is made for real, and Brigade says what would mend it."""

from __future__ import annotations

import pytest
from cases_command import CASES as COMMAND
from cases_launchers import CASES as LAUNCHERS
from cases_libraries import CASES as LIBRARIES
from cases_limits import CASES as LIMITS
from cases_python import CASES as PYTHON
from failing import fail

CASES = [*COMMAND, *LIBRARIES, *PYTHON, *LIMITS, *LAUNCHERS]


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
