"""JSON of anybody's, with one way to fail."""

from __future__ import annotations

import json
from typing import Any


def load_json(text: str | bytes) -> Any:
    """What a text says. ValueError if it is no JSON, or lists in it are nested so deeply that
    Python gives up."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
