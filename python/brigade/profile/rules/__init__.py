"""The rules behind the insights: each a generator that looks at `Sums` and yields what it found.

A rule states its evidence in numbers of this profile, and a command only where one mends it. The
thresholds stand beside the rules and are those of one rank, so that they do not change with width.
"""

from __future__ import annotations
