"""Raw samples of a study, with what is needed to judge them; kept as JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from brigade import __version__
from brigade.errors import BrigadeError
from brigade.load_json import load_json

SCHEMA = 1


@dataclass(frozen=True)
class Sample:
    """One start."""

    variant: str
    ranks: int
    repeat: int
    seconds: float
    requests: int | None = None  # that the file system's clients sent; None: not counted


@dataclass
class Study:
    """A study that was made. `operations`: calls of one rank by path, of a traced start of each
    variant: {"calls": …, "failed": …, and kinds}. `facts`: sentences on how it was made."""

    kind: str  # "storage" or "paths"
    command: list[str]
    labels: dict[str, str]  # variant -> for people
    baseline: str  # variant
    until: str | None
    samples: list[Sample] = field(default_factory=list)
    operations: dict[str, dict[str, int]] = field(default_factory=dict)
    facts: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # variant -> why
    host: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA

    @property
    def widths(self) -> list[int]:
        return sorted({sample.ranks for sample in self.samples})

    @property
    def variants(self) -> list[str]:
        """Those that were measured at every width; a start of one that is left out may be among
        the samples."""
        seen = {sample.variant for sample in self.samples}
        return [name for name in self.labels if name in seen and name not in self.left_out]

    def seconds(self, variant: str, ranks: int) -> list[float]:
        """In the order of repeats."""
        found = [s for s in self.samples if (s.variant, s.ranks) == (variant, ranks)]
        return [s.seconds for s in sorted(found, key=lambda s: s.repeat)]

    def median(self, variant: str, ranks: int) -> float:
        return statistics.median(self.seconds(variant, ranks))

    def requests(self, variant: str, ranks: int) -> float | None:
        """Median of what was counted."""
        found = [
            s.requests
            for s in self.samples
            if (s.variant, s.ranks) == (variant, ranks) and s.requests is not None
        ]
        return statistics.median(found) if found else None


def host() -> dict[str, Any]:
    """The machine and the time."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
        models = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "host": platform.node(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "cpus": os.cpu_count(),
        "cpu": models[0] if models else platform.machine(),
        "brigade": __version__,
        "load": os.getloadavg()[0],
    }


def text_of(study: Study, conclusions: list[str]) -> str:
    """A study as JSON."""
    return json.dumps({**asdict(study), "conclusions": conclusions}, indent=1) + "\n"


def save(study: Study, path: Path, conclusions: list[str]) -> None:
    """Raises BrigadeError if it cannot be written."""
    try:
        path.write_text(text_of(study, conclusions), encoding="utf-8")
    except OSError as error:
        raise BrigadeError(f"{path}: {error.strerror}") from error


def load(path: Path) -> Study:
    """Read a study again. Raises BrigadeError if it is none."""
    try:
        data = load_json(path.read_text(encoding="utf-8"))
        data.pop("conclusions", None)
        if data.get("schema") != SCHEMA:
            raise TypeError("another schema")
        data["samples"] = [Sample(**one) for one in data["samples"]]
        return Study(**data)
    except OSError as error:
        raise BrigadeError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrigadeError(f"{path} holds no study of this version ({error})") from error
