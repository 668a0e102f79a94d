"""What tests of the lab need of the machine they run on."""

from __future__ import annotations

import os

from brigade.lab.debian import missing_packages


def missing() -> str:
    """Why the lab cannot be brought up here; "" if it can."""
    if os.geteuid() != 0:
        return "the lab needs root"
    lacking = missing_packages("moosefs")
    return " ".join(["packages missing:", *lacking]) if lacking else ""
