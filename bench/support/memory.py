"""What processes have of memory."""

from __future__ import annotations

from pathlib import Path


def pss_of(pid: int) -> int:
    """Bytes of a process, shared pages divided among those that share them (PSS)."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(row.split()[1]) for row in text.splitlines() if row.startswith("Pss:")) << 10
