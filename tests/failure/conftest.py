"""Cases whose mounts and control groups are taken away."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    if os.path.ismount(tmp_path / "mnt"):
        subprocess.run(["umount", tmp_path / "mnt"], check=True)
    for group in Path("/sys/fs/cgroup").glob(f"**/brigade-test-{os.getpid()}"):
        group.rmdir()
    shutil.rmtree(f"/dev/shm/brigade-test-{os.getpid()}", ignore_errors=True)
