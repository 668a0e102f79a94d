"""A language that has a comma where numbers have their decimal point."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NAME = "de_DE.UTF-8"


def decimal_comma(folder: Path) -> dict[str, str]:
    """Made in `folder`: what a program's environment must have, for setlocale(LC_ALL, "")."""
    if not shutil.which("localedef"):
        pytest.skip("needs Debian package libc-bin: localedef")
    folder.mkdir(exist_ok=True)
    words = ["localedef", "-i", "de_DE", "-f", "UTF-8", folder / NAME]
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip("needs Debian package locales")
    return {"LOCPATH": str(folder), "LC_ALL": NAME}
