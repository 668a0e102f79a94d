"""Where reports for people go: rich's console, at a width that shows them.

Every console of Brigade's is made here. rich takes COLUMNS at its word, also the 0 that a terminal
without a size has: then it prints nothing, and says so nowhere.
"""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console

NARROWEST = 20  #: columns; what is narrower is no terminal that anybody reads


def make_console(**settings: Any) -> Console:
    """A Console with rich's `settings`, of 20 columns at least. A COLUMNS that is less, or no
    number, counts as not set."""
    variables = dict(os.environ)
    columns = variables.get("COLUMNS", "")
    if not columns.isdecimal() or int(columns) < NARROWEST:
        variables.pop("COLUMNS", None)
    made = Console(_environ=variables, **settings)
    if made.width < NARROWEST:
        made.width = NARROWEST
    return made
