"""What runs have missed of an image and it does not have yet: what it is to grow by.

Apart from the growing (`grow.py`), because every run asks, and nearly every answer is nothing: a
job must not wait for the modules that build an image.

    IMAGE.missed    [[call, path], ...] (JSON)
"""

from __future__ import annotations

import json

from brigade.whose import open_ours

Miss = tuple[str, str]  # call, path


def missed_of(image: str) -> str:
    return image + ".missed"


def pending(image: str) -> list[Miss]:
    """What was missed and not added yet."""
    try:
        with open_ours(missed_of(image)) as stream:
            return [(op, path) for op, path in json.load(stream)]
    except (OSError, ValueError):
        return []
