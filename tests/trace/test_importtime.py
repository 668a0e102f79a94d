"""What -X importtime says becomes a list of imports that know who asked for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from brigade.trace.importtime import Import, read

WRITTEN = """import time: self [us] | cumulative | imported package
import time:       100 |        100 | zipimport
hello from the program
import time:        10 |         10 |     leaf
import time:        20 |         20 |       deep
import time:        30 |         50 |     other
import time:        40 |        100 |   package.part
import time:         5 |        105 | package
"""


def test_an_import_comes_after_what_it_imported() -> None:
    assert read(WRITTEN) == [
        Import("zipimport", 100, 100, 0, -1),
        Import("leaf", 10, 10, 2, 4),
        Import("deep", 20, 20, 3, 3),
        Import("other", 30, 50, 2, 4),
        Import("package.part", 40, 100, 1, 5),
        Import("package", 5, 105, 0, -1),
    ]
    assert read("nothing of the kind\n") == []


def test_what_python_writes_adds_up(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("import two\nimport three\n")
    (tmp_path / "two.py").write_text("import three\n")
    (tmp_path / "three.py").write_text("")
    words = [sys.executable, "-I", "-X", "importtime", "-c"]
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import one"
    text = subprocess.run([*words, script], capture_output=True, text=True, check=True).stderr
    imports = read(text)
    by_name = {one.name: (index, one) for index, one in enumerate(imports)}
    at = {name: index for name, (index, _) in by_name.items()}
    assert by_name["three"][1].parent == at["two"]
    assert by_name["two"][1].parent == at["one"]
    assert by_name["one"][1].parent == -1
    assert len(imports) > 20
    for index, one in enumerate(imports):
        below = sum(child.cumulative_us for child in imports if child.parent == index)
        assert abs(one.cumulative_us - one.self_us - below) <= 2 + below // 100, one
