"""JSON that nobody can have meant is an error like any other, wherever a file of it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from brigade.cli import cli
from brigade.errors import BrigadeError
from brigade.load_json import load_json

GIVEN = [
    "predict --ranks 8 --profile FILE", "predict --ranks 8 --demand FILE",
    "predict --ranks 8 --lookups 1 --system FILE", "budget --max-ops 1 --profile FILE",
    "profile --html none --from FILE", "model cache --machine FILE", "model cache --compare FILE",
    "model checkpoint --nodes 1 --size 1G --rate 1G --samples FILE",
]  # fmt: skip


@pytest.mark.parametrize("start", ["[", '{"a":'])
@pytest.mark.parametrize("words", GIVEN)
def test_json_nested_too_deeply_is_refused_by_its_name(
    words: str, start: str, tmp_path: Path
) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text(start * 100_000)
    with pytest.raises(BrigadeError, match="deep.json"):
        cli.main([word.replace("FILE", str(deep)) for word in words.split()], standalone_mode=False)


def test_text_that_is_no_json_is_one_kind_of_error() -> None:
    for text in ("[" * 100_000, "[1,", b"\xff", ""):
        with pytest.raises(ValueError):
            load_json(text)
    assert load_json('{"a": [1]}') == {"a": [1]}
