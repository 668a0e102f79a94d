"""Free memory is written to before a start, no more than is free, and given back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"
SETTLE = f"""
import os, sys
sys.path.insert(0, {str(BENCH)!r})
from support import memory
memory.free = lambda: memory.LEFT + {{free}}
peak = lambda: memory._bytes_in("/proc/self/status", "VmHWM")
before = peak()
print(memory.settle({{most}}), peak() - before, memory.pss_of(os.getpid(), "Pss_Anon"))
"""
MIB = 1 << 20


def settled(most: int, free: int) -> tuple[int, int, int]:
    """What settle() returns, what it had of memory, and what is left of that."""
    code = SETTLE.format(most=most, free=free)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    result, had, left = map(int, done.stdout.split())
    return result, had, left


def test_as_much_memory_as_is_asked_for_is_written_to_and_given_back() -> None:
    result, had, left = settled(most=200 * MIB, free=300 * MIB)
    assert result == 200 * MIB
    assert had > 190 * MIB
    assert left < 100 * MIB


def test_no_more_is_written_to_than_is_free() -> None:
    result, had, _left = settled(most=200 * MIB, free=70 * MIB)
    assert result == 70 * MIB
    assert had < 100 * MIB
    assert settled(most=200 * MIB, free=-5)[0] == 0
    assert settled(most=0, free=MIB)[0] == 0
