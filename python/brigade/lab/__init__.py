"""The lab: a cluster in a box, made of real parts on one machine.

lab = Lab.up(nodes=4, fs="moosefs")
lab.run(["srun", "-N4", "-n8", "hostname"])
lab.stats().total.requests
lab.down()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brigade.lab.debian import packages as packages
    from brigade.lab.lab import Lab as Lab

__all__ = ["Lab", "packages"]


def __getattr__(name: str) -> Any:
    """Import on first use: `brigade lab exec` needs none of it, and shall add little time."""
    if name == "Lab":
        from brigade.lab.lab import Lab

        return Lab
    if name == "packages":
        from brigade.lab.debian import packages

        return packages
    raise AttributeError(f"module {__name__} has no attribute {name}")
