"""A Python interpreter that does not come up, before any line of a script."""

from __future__ import annotations

import os

from brigade.failure.diagnosis import Diagnosis


def gone(path: str, root: str) -> Diagnosis:
    """The environment `root`, whose `path` leads to an interpreter that is not there any more."""
    home = settings(root).get("home", "?")
    version = settings(root).get("version_info") or settings(root).get("version", "")
    return Diagnosis(
        "environment-without-python",
        f"{path} leads to {os.path.join(home, 'python3')}, which is not there: "
        f"the Python that the environment {root} was made with is gone",
        closest="",
        mend=[
            f"load the module that was loaded when it was made (Python {version})".replace(
                " ()", ""
            ),
            f"or make it anew: python3 -m venv --upgrade {root}, and install its packages again",
        ],
    )


def settings(root: str) -> dict[str, str]:
    """What `pyvenv.cfg` says."""
    found = {}
    try:
        with open(os.path.join(root, "pyvenv.cfg"), encoding="utf-8", errors="replace") as text:
            for line in text:
                key, equals, value = line.partition("=")
                if equals:
                    found[key.strip().lower()] = value.strip()
    except OSError:
        pass
    return found
