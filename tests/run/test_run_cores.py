"""A program that crashes leaves one core: neither the process that stands for its rank nor `brigade
run`, which end by the same signal, leaves another where a pipe takes cores, whatever the limit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from project import Site

PATTERN = Path("/proc/sys/kernel/core_pattern")
TAKES = """\
#!/bin/sh
echo $1 $(tr '\\0' ' ' < /proc/$1/cmdline) >> {taken}
exec cat > /dev/null
"""


@pytest.fixture
def cores() -> Iterator[Callable[[str], list[int]]]:
    """Gives the pids of processes that left a core and had the word in their command line."""
    if not os.access(PATTERN, os.W_OK):
        pytest.skip("needs root, to have cores written to a pipe")
    before = PATTERN.read_text()
    folder = Path(tempfile.mkdtemp(prefix="cores", dir="/tmp"))  # a pattern has 127 letters
    takes, taken = folder / "takes", folder / "taken"
    takes.write_text(TAKES.format(taken=taken))
    takes.chmod(0o755)

    def left(word: str) -> list[int]:
        lines = taken.read_text().splitlines() if taken.exists() else []
        return sorted(int(line.split()[0]) for line in lines if word in line)

    try:
        PATTERN.write_text(f"|{takes} %P")
        subprocess.run(["sh", "-c", "kill -ABRT $$", str(folder)], check=False)
        if not left(str(folder)):
            pytest.skip("cores of this system's processes are not written here")
        yield left
    finally:
        PATTERN.write_text(before)
        shutil.rmtree(folder)


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_crash_leaves_the_programs_core_alone(
    site: Site, cores: Callable[[str], list[int]], ranks: int
) -> None:
    """The only rank of a node is not forked, and `brigade run` ends as it did."""
    site.app.write_text(
        "import os, sys\nimport pkg\n"
        "print(os.getpid(), flush=True)\nif sys.argv[1:]: os.kill(os.getpid(), 11)\n"
    )
    run = ("--fork", "-n", str(ranks))
    site.brigade(run=run)
    done = site.brigade("crash", run=run)
    crashed = sorted(map(int, done.stdout.split()))
    assert len(crashed) == ranks and cores(str(site.app)) == crashed
    assert done.returncode == (-signal.SIGSEGV if ranks == 1 else 128 + signal.SIGSEGV)
    assert ranks == 1 or site.report()["fork"]["ranks"] == ranks
