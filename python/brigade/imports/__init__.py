"""The import system: tables made from an image, the view of a rank, and the way in from a program.

    import brigade.imports
    brigade.imports.broadcast(comm)     # at the top of a script, before the large imports

What must stay true: importing this package costs a rank as few look-ups as can be.
"""

from __future__ import annotations

from brigade.imports.inside import Broadcast, broadcast, report

__all__ = ["Broadcast", "broadcast", "report"]
