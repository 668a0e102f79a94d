"""The worked example of docs/format.md is what the writer writes."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "format.md"
DUMP = re.compile(r"^.{11}([0-9a-f]{8}): ((?:[0-9a-f]{4} ){8})", re.MULTILINE)


def test_every_byte_of_the_example_is_true(tmp_path, monkeypatch):
    page = PAGE.read_text()
    program = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
    monkeypatch.chdir(tmp_path)
    exec(compile(program, str(PAGE), "exec"), {})
    image = Path("example.brg").read_bytes()
    shown = DUMP.findall(page)
    assert len(shown) == 22
    for offset, digits in shown:
        at = int(offset, 16)
        assert image[at : at + 16].hex(" ", 2) == digits.strip(), f"at {offset}"


def test_the_id_in_the_example_is_its_id(tmp_path, monkeypatch):
    from brigade.image.reader import Image

    page = PAGE.read_text()
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1), {})
    with Image("example.brg") as image:
        assert f"writer.commit()  # {image.id}\n" in page
