"""What the tests of buffering share: programs compiled once, run plainly and buffered."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from brigade.paths import native

HERE = Path(__file__).parent


def compile_c(name: str, folder: Path) -> Path:
    """The driver `name`.c of this folder as a program in `folder`."""
    program = folder / name
    command = ["cc", "-O1", "-g", "-o", program, HERE / f"{name}.c", "-lpthread"]
    subprocess.run(command, check=True)
    return program


def buffered(rules: str, **more: str) -> dict[str, str]:
    """The environment of a buffered program; a library that is preloaded anyway stays."""
    given = os.environ.get("LD_PRELOAD")
    ours = str(native("libbrigade_buffer.so").absolute())
    preload = f"{ours}:{given}" if given else ours
    return {**os.environ, "LD_PRELOAD": preload, "BRIGADE_BUFFER": rules, **more}


def run(
    words: list[Any], folder: Path, env: dict[str, str] | None = None, limit: float = 60
) -> Any:
    """Run in `folder`; stdout and stderr as text."""
    return subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=limit,
    )


def counted(report: Path) -> Counter[str]:
    """The counters that processes have left in BRIGADE_BUFFER_REPORT, of all files together."""
    total: Counter[str] = Counter()
    for path in report.iterdir():
        for line in path.read_text().splitlines():
            for entry in json.loads(line)["files"]:
                total.update({name: n for name, n in entry.items() if isinstance(n, int)})
    return total


def contents(folder: Path) -> dict[str, bytes]:
    """Every regular file below a folder."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}
