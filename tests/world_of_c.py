"""Programs and libraries from one line of C."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path


def compile_c(source: str, target: Path, *flags: str, needs: Sequence[Path] = ()) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-x", "c", "-", "-o", str(target), "-Wl,--no-as-needed", *flags]
    command += ["-fPIC"] if "-shared" in flags else ["-Wl,--allow-shlib-undefined"]
    command += ["-x", "none", *map(str, needs)]
    done = subprocess.run(command, input=source, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return target


def program(path: Path, *flags: str, needs: Sequence[Path] = (), source: str = "") -> Path:
    return compile_c(source or "int main(void) { return 0; }", path, *flags, needs=needs)


def library(path: Path, *flags: str, needs: Sequence[Path] = (), source: str = "") -> Path:
    name = re.sub(r"\W", "_", path.name)
    soname = f"-Wl,-soname,{path.name}"
    return compile_c(source or f"int {name};", path, "-shared", soname, *flags, needs=needs)


def patch(path: Path, at: int, data: bytes) -> Path:
    old = path.read_bytes()
    path.write_bytes(old[:at] + data + old[at + len(data) :])
    return path
