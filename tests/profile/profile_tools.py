"""What several tests of profiles use: a compiler, and the command itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def compile_c(source: str, target: Path, *flags: str) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    shared = ["-shared", "-fPIC", f"-Wl,-soname,{target.name}"] if ".so" in target.name else []
    command = ["cc", "-x", "c", "-", "-o", str(target), *shared, "-x", "none", *flags]
    subprocess.run(command, input=source, text=True, check=True)
    return target


def brigade(*words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "brigade", *words],
        env={**os.environ, **env}, cwd=cwd, capture_output=True, text=True,
    )  # fmt: skip
