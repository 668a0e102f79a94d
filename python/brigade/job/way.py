"""What a job wants of how its image comes into the nodes' memory."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Way:
    """How a job wants its image brought."""

    transport: str = "auto"  # or "mpi", "sbcast"
    mpi: str = "auto"  # the library, "auto" or "none"
    readers: int | None = None
    memory: int | None = None
    topology: str | None = None  # a file, "none", or what Slurm tells
    changed: list[int] = field(default_factory=list)
