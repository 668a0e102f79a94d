"""tools/bootstrap: finds out what is needed with whatever reads TOML there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: as pip 22.0 of Ubuntu 22.04 has it: takes text, and no file of bytes
OLD_READER = """\
def loads(text):
    assert "scikit-build-core" in text.replace("\\r\\n", "\\n")
    return {"project": {"dependencies": ["one"], "optional-dependencies": {"dev": ["two>=2"]}}}


def load(file):
    return loads(file.read())
"""


def test_the_toml_reader_of_an_old_pip_will_do(tmp_path: Path) -> None:
    script = (ROOT / "tools/bootstrap").read_text()
    code = script.partition("<<'EOF'\n")[2].partition("\nEOF\n")[0]
    (tmp_path / "tomllib.py").write_text(OLD_READER)
    words = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{code}"]
    done = subprocess.run(words, cwd=ROOT, text=True, capture_output=True)
    assert done.stdout.splitlines() == ["one", "two>=2"], done.stderr
