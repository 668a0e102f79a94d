"""The lab: a cluster in a box, made of real parts on one machine.

lab = Lab.up(nodes=4, fs="moosefs")
lab.run(["srun", "-N4", "-n8", "hostname"])
lab.stats().total.requests
lab.down()
"""

from __future__ import annotations

from brigade.lab.debian import packages
from brigade.lab.lab import Lab

__all__ = ["Lab", "packages"]
