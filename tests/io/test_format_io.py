"""docs/format-io.md is the format: the reader that stands there reads what Brigade writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy
import pytest

import brigade.io
from brigade.io import _lib

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/format-io.md").read_text()


@pytest.fixture(scope="module")
def read() -> Any:
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert code
    namespace: dict[str, Any] = {}
    exec(code.group(1), namespace)
    return namespace["read"]


def test_the_reader_on_the_page_reads_every_type_and_attribute(read: Any, tmp_path: Path) -> None:
    path = tmp_path / "f"
    arrays = {f"types/{name}": numpy.arange(6).reshape(2, 3).astype(name) for name in _lib.NUMBERS}
    arrays.update(
        {"large": numpy.arange(400_000.0), "none": numpy.zeros((0, 4)), "ä": numpy.int8(5)}
    )
    with brigade.io.open(None, path, "w") as f:
        f.attrs["title"], f.attrs["time"] = "Prüfung", 1.5
        for name, array in arrays.items():
            f.write_array(name, array)
            f[name].attrs["type"] = str(array.dtype)
        f["ä"].attrs["list"] = numpy.array([1, 2, 3], "u2")
    found = read(path)
    assert list(found) == ["", *arrays]
    assert found[""][1] == {"title": "Prüfung", "time": 1.5}
    for name, array in arrays.items():
        values, attributes = found[name]
        assert values.dtype == array.dtype and (values == array).all()
        assert values.shape == array.shape and attributes["type"] == str(array.dtype)
    assert found["ä"][1]["list"].tolist() == [1, 2, 3]


def test_the_page_names_the_types_by_their_numbers() -> None:
    named = {
        name: int(n) for n, name in re.findall(r"\| (\d+) (\w+)", PAGE.partition("### Types")[2])
    }
    assert {**_lib.NUMBERS, "text": _lib.TEXT} == named


def test_the_reader_on_the_page_notices_damage(read: Any, tmp_path: Path) -> None:
    path = tmp_path / "f"
    with brigade.io.open(None, path, "w") as f:
        f.write_array("a", numpy.arange(5))
    good = path.read_bytes()
    for at in (3, 30, len(good) - 1):
        data = bytearray(good)
        data[at] ^= 1
        path.write_bytes(data)
        with pytest.raises(ValueError):
            read(path)
