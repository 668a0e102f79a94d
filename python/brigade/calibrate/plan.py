"""What a calibration will ask of a file system: steps, and their number of requests. Pure.

The order: make a few files; look-ups under rising load until throughput no longer grows; bursts of
look-ups; how long are answers remembered; one request of each kind at rest; reading a file; remove
the files. All numbers are upper bounds: what a client's cache answers is not asked.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

CLIENTS = (1, 2, 4, 8, 16, 32, 64)
DELAYS = (0.05, 0.5, 0.9, 1.4, 2.5, 4.5)
PROBES = 4  # names for each delay
FILES = 40
FOLDERS = 20
LINKS = 20
BURSTS = 8  # of each size
STEP_S = 1.0
STEP_OPS = 1500
CLIENT = (
    5  # requests at most for finding and opening a folder by its path, at each start of a client
)
OPENED = 3  # for a file that is read
MADE = 4  # for making, or for removing, a file: a look-up, it, its attributes, the closing
ANSWER = 2 * MADE + CLIENT  # for a file with a rank's answers, and for reading it
READERS = 4  # clients that read at once, at most


@dataclass(frozen=True)
class Limits:
    """What the user allows."""

    seconds: float = 20.0
    requests: int = 20_000
    rate: float | None = None  # requests a second
    read_bytes: int = 32 << 20
    clients: int = CLIENTS[-1]


@dataclass(frozen=True)
class Plan:
    """Everything a calibration may do, in numbers."""

    limits: Limits
    clients: tuple[int, ...]
    delays: tuple[float, ...]
    files: dict[str, list[str]] = field(default_factory=dict)  # names by what they are for
    ranks: int = 0  # of a launcher, if there is one

    @property
    def made(self) -> int:
        """Files, folders and links that are made, and removed again."""
        return sum(len(names) for names in self.files.values()) + max(self.clients) + 2

    @property
    def fixed(self) -> int:
        """Requests at most, without what clients ask under rising load and in bursts."""
        starts = sum(map(self.start, self.clients)) + self.start(max(self.clients))
        return 2 * MADE * self.made + starts + self.at_rest

    @property
    def at_rest(self) -> int:
        """Requests at most of what comes after the bursts, without removing files."""
        readers = (1, self.readers) if self.limits.read_bytes else ()
        reading = sum(self.start(n) + OPENED * n for n in readers)
        return self.memory(len(self.delays)) + self.kinds + reading

    @property
    def kinds(self) -> int:
        """Requests at most of the step that asks one of each kind."""
        return 5 * FILES + 5 * FOLDERS + 4 * LINKS + self.start(1)

    @property
    def readers(self) -> int:
        return min(READERS, max(self.clients))

    def memory(self, delays: int) -> int:
        """Requests at most of the step that finds out what is remembered."""
        return 4 * PROBES * delays + self.start(1)

    def start(self, clients: int) -> int:
        """Requests at most of starting so many clients: their folders, and their ranks' answers."""
        return CLIENT * clients + ANSWER * min(self.ranks, clients)

    @property
    def requests(self) -> int:
        """Requests at most, in all."""
        return min(self.limits.requests, self.fixed + STEP_OPS * len(self.clients) + self._bursts)

    @property
    def _bursts(self) -> int:
        return BURSTS * sum(burst_sizes(max(self.clients)))

    @property
    def seconds(self) -> float:
        return self.limits.seconds

    @property
    def pause_s(self) -> float:
        """What one request takes of the time, by the rate that is allowed; 0 without one."""
        return 1 / self.limits.rate if self.limits.rate else 0.0

    @property
    def lacks(self) -> str | None:
        """Why the limits leave no room for the files and one step, or None."""
        needed, limits = self.fixed + STEP_OPS, self.limits
        if needed > limits.requests:
            given = f"--max-requests {limits.requests} is"
        elif limits.rate and needed > limits.rate * limits.seconds:
            given = f"--max-rate {limits.rate:g} for --seconds {limits.seconds:g} is"
        else:
            return None
        ranks = f" of {self.ranks} ranks" if self.ranks else ""
        return (
            f"{given} too little: {needed:,} requests are needed for the files and one step{ranks}"
        )


def plan(limits: Limits, seed: int = 0) -> Plan:
    """The plan that keeps within `limits`."""
    clients = tuple(n for n in CLIENTS if n <= limits.clients) or (1,)
    delays = tuple(d for d in DELAYS if d <= limits.seconds / 4)
    names = random.Random(seed)

    def some(kind: str, number: int) -> list[str]:
        return [f"{kind}-{names.getrandbits(40):010x}" for _ in range(number)]

    files = {
        "files": some("f", FILES),
        "folders": some("d", FOLDERS),
        "links": some("l", LINKS),
        "remembered": some("r", PROBES * len(delays)),
    }
    return Plan(limits, clients, delays, files)


def burst_sizes(most: int) -> list[int]:
    """How many clients ask at the same moment, in turn."""
    return [n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64) if n <= most]


def burst_times(
    sizes: list[int], throughput: float, rest_s: float, pause_s: float = 0.0
) -> list[list[float]]:
    """[seconds after the beginning, size] of each burst, so that each finds the server at rest, and
    that on average no request comes within `pause_s` of another."""
    found, at = [], 0.0
    for _ in range(BURSTS):
        for size in sizes:
            found.append([round(at, 6), size])
            at += max(2 * rest_s + 1.5 * size / throughput + 0.004, size * pause_s)
    return found


def memory_step(made: Plan) -> dict[str, Any]:
    """The step that finds out how long answers are remembered."""
    names = iter(made.files["remembered"])
    return {
        "do": "memory",
        "delays": list(made.delays),
        "files": {str(d): [next(names) for _ in range(PROBES)] for d in made.delays},
        "absent": {
            str(d): [f"absent-{i}-{number}" for number in range(PROBES)]
            for i, d in enumerate(made.delays)
        },
    }


def describe(made: Plan, where: str, launcher: list[str]) -> list[str]:
    """What will be done, in sentences, before it is done."""
    limits = made.limits
    start = f"started with `{' '.join(launcher)}`" if launcher else "processes of this machine"
    requests = limits.requests if launcher else made.requests  # ranks ask a little by themselves
    rate = f", never more than {limits.rate:,.0f} a second" if limits.rate else ""
    return [
        f"in a folder of its own below {where} (removed again): {made.made} files, folders and "
        f"links, and one file of {limits.read_bytes / 2**20:.0f} MiB",
        f"at most {requests:,} metadata requests{rate}; up to {max(made.clients)} clients at "
        f"once, {start}",
        "the load rises step by step, and stops when throughput no longer grows or answers take "
        "four times as long as at rest",
        f"begins nothing that it does not expect to end within {limits.seconds:.0f} s",
    ]
