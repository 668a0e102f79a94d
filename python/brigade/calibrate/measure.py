"""Carry a calibration out: a scratch folder, one start of the clients a step, and stopping early.

The clients (`client.py`) are started by the user's launcher, or here. Requests are counted as they
are planned and issued; before each step the rest of the allowance, the time and the answers so far
decide whether it is made.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from brigade import interrupt
from brigade.calibrate import client, plan
from brigade.errors import BrigadeError, LauncherError, UsageError
from brigade.job import child
from brigade.launch import parse
from brigade.model import calibration
from brigade.model.calibration import Point, Request
from brigade.scratch import scratch

OVERLOAD = 4.0  # times the answer time at rest: more is not asked for
_LEAD_S = 0.25
_OPENING_S = 0.004  # between two clients that open their folders
_LEAST_READING_S = 0.25
_STEP_LIMIT_S = 60.0


@dataclass
class Measured:
    """What was measured, as raw as a report needs it."""

    points: list[Point] = field(default_factory=list)
    bursts: list[list[Request]] = field(default_factory=list)
    kinds: dict[str, list[float]] = field(default_factory=dict)  # seconds at rest
    files_again: dict[float, list[float]] = field(default_factory=dict)
    absent_again: dict[float, list[float]] = field(default_factory=dict)
    read: dict[int, float] = field(default_factory=dict)  # clients -> bytes a second, together
    nodes: dict[int, int] = field(default_factory=dict)  # clients -> nodes on which they read
    requests: int = 0  # issued
    seconds: float = 0.0
    hosts: list[str] = field(default_factory=list)
    ranks: int = 1  # of the launcher
    busy: float = 0.0  # part of the clients' processors that was in use, at the most
    stopped: str = ""  # why load did not rise further
    held_down: bool = False  # by the rate that is allowed

    def fitted(self) -> calibration.Fit:
        """What it says of the server so far."""
        return calibration.fit(self.points, self.bursts, self.held_down)


def measure(
    made: plan.Plan, base: str, launcher: list[str], progress: Callable[[str], None]
) -> Measured:
    """Do what the plan says in a scratch folder below `base`, which is removed in any case."""
    start = [*launcher, sys.executable]
    hint = "name a folder with --at that you may write to"
    with scratch(base, "calibrate", 0o700, hint) as folder, parse(start).session():
        return _Calibration(made, folder, launcher, progress).run()


class _Calibration:
    """One calibration that runs."""

    def __init__(
        self,
        made: plan.Plan,
        folder: Path,
        launcher: list[str],
        progress: Callable[[str], None],
    ) -> None:
        self._plan = made
        self._folder = folder
        self._launcher = launcher
        self._progress = progress
        self._start = time.monotonic()
        self._lead_s = _LEAD_S
        self._opening_s = max(_OPENING_S, plan.CLIENT * made.pause_s)
        self._next = self._start  # no request of our own before
        self._found = Measured()
        self._hosts: list[str] = []  # of the ranks
        self._n_answers = 0  # files that ranks have left in the folder

    def run(self) -> Measured:
        found = self._found
        self._progress("making files")
        self._say_hello()
        self._make()
        self._rise()
        if found.points and found.fitted().reached:
            self._burst()
        self._remember()
        self._kinds()
        self._read()
        self._unmake()
        found.seconds = time.monotonic() - self._start
        return found

    def _left_s(self) -> float:
        """Seconds that are left until what was made must be removed."""
        removing_s = plan.MADE * (self._plan.made + self._n_answers) * self._plan.pause_s
        return self._plan.limits.seconds - (time.monotonic() - self._start) - removing_s

    def _fits(self, clients: int, seconds: float) -> bool:
        """Whether a step of so many seconds is expected to end in time."""
        answers_s = self._answers_s(clients)
        return self._lead_s + self._opening_s * clients + seconds + answers_s <= self._left_s()

    def _answers_s(self, clients: int) -> float:
        """What writing and reading the answers of ranks with so many clients takes."""
        return 2 * plan.ANSWER * min(self._plan.ranks, clients) * self._plan.pause_s

    def _too_slow(self) -> UsageError:
        took_s = time.monotonic() - self._start
        return UsageError(
            f"--seconds {self._plan.limits.seconds:g} is too little: {took_s:.1f} s were needed to "
            f"try the launcher and to make files, and starting clients takes {self._lead_s:.1f} s"
        )

    def _pace(self, requests: int) -> None:
        """Wait until so many requests may be issued, by the rate that is allowed."""
        now = time.monotonic()
        if self._next > now:
            time.sleep(self._next - now)
        self._next = max(self._next, now) + requests * self._plan.pause_s

    def _left(self) -> int:
        return self._plan.limits.requests - self._found.requests - plan.MADE * self._plan.made

    def _say_hello(self) -> None:
        """How many ranks there are, where, and how long starting them takes."""
        if not self._launcher:
            self._hosts = self._found.hosts = [socket.gethostname()]
            return
        begin = time.monotonic()
        said = self._started([])
        self._lead_s = 0.3 + 1.5 * (time.monotonic() - begin)
        self._found.ranks = len(said)
        self._plan = replace(self._plan, ranks=len(said))
        if sorted(one["rank"] for one in said) != list(range(len(said))):
            raise LauncherError(
                f"{self._launcher[0]} started {len(said)} processes that do not know their ranks",
                hint=f"one of {', '.join(client.RANKS)} must be set",
            )
        self._hosts = [one["host"] for one in sorted(said, key=lambda one: int(one["rank"]))]
        self._found.hosts = sorted(set(self._hosts))
        if self._plan.lacks:
            raise UsageError(self._plan.lacks)

    def _make(self) -> None:
        """Folders of the clients, and the files that kinds of requests need."""
        for number in range(max(self._plan.clients)):
            self._timed("mkdir", os.mkdir, self._folder / f"c{number:04d}")
        names = self._plan.files
        for name in names["files"] + names["remembered"]:
            self._timed("create", self._write, name, b"brigade")
        for name in names["folders"]:
            self._timed("mkdir", os.mkdir, self._folder / name)
        for name in names["links"]:
            self._timed("symlink", os.symlink, "target", self._folder / name)
        self._found.requests += plan.MADE * self._plan.made

    def _write(self, name: str, content: bytes) -> None:
        (self._folder / name).write_bytes(content)

    def _timed(self, kind: str, call: Callable[..., Any], *words: Any) -> None:
        interrupt.check()
        if self._left_s() <= 0:
            raise self._too_slow()
        self._pace(plan.MADE)
        start = time.perf_counter()
        try:
            call(*words)
        except OSError as error:
            raise BrigadeError(f"{self._folder}: {kind}: {error.strerror}") from error
        self._found.kinds.setdefault(kind, []).append(time.perf_counter() - start)

    def _unmake(self) -> None:
        """Remove what was made. After a signal all goes with the folder, at once."""
        if self._plan.pause_s:
            for path in sorted(self._folder.iterdir()):
                interrupt.check()
                self._pace(plan.MADE)
                remove = os.rmdir if path.is_dir() and not path.is_symlink() else os.unlink
                with suppress(OSError):  # gone, or held by another: it goes with the folder
                    remove(path)
        self._found.requests += plan.MADE * self._plan.made

    def _rise(self) -> None:
        """Look-ups under rising load, as long as that gives more."""
        found, rate = self._found, self._plan.limits.rate
        for clients in self._plan.clients:
            rest_s = found.points[0].median_s if found.points else 0.0
            left = self._left() - self._plan.at_rest - self._plan.start(clients)
            ops = min(plan.STEP_OPS, left)
            if found.points:  # no more than a second's worth of what can be hoped for
                ops = min(ops, max(20 * clients, int(2 * found.points[-1].throughput)))
            kept_s = 0.25 * self._plan.limits.seconds if found.points else 0.0
            fits = self._fits(clients, plan.STEP_S + kept_s)  # the rest is for what comes after
            if not fits and not found.points:
                raise self._too_slow()
            if ops < 8 * clients or not fits:
                found.stopped = "the allowance of requests or time was used up"
                return
            self._progress(f"{clients} clients at once")
            step = {
                "do": "load",
                "clients": clients,
                "ops": ops // clients,
                "seconds": plan.STEP_S,
                "gap_s": clients / rate if rate else 0.0,
                "limit_s": OVERLOAD * rest_s if rest_s else 1e9,
            }
            answers = self._run([step])[0]
            busy, ticks = (sum(parts) for parts in zip(*(one[client.BUSY][0] for one in answers)))
            found.busy = max(found.busy, busy / ticks if ticks else 0.0)
            found.points.append(calibration.point([one["absent"] for one in answers]))
            self._count(answers)
            last = found.points[-1]
            if rate and last.throughput > 0.9 * rate:
                found.held_down = True
                found.stopped = f"the allowed rate of {rate:,.0f} requests a second was reached"
            elif calibration.knee(found.points) and calibration.knee(found.points[:-1]):
                found.stopped = "throughput no longer grew"
            elif last.median_s > OVERLOAD * found.points[0].median_s:
                found.stopped = f"answers took {OVERLOAD:.0f} times as long as at rest"
            if found.stopped:
                return
        found.stopped = "the largest number of clients was reached"

    def _burst(self) -> None:
        """Requests at one moment, from a server at rest."""
        found = self._found
        fitted = found.fitted()
        most = 2 * int(1.1 * fitted.throughput * fitted.rest_s) + 2
        sizes = plan.burst_sizes(min(max(self._plan.clients), max(4, most)))
        times = plan.burst_times(sizes, fitted.throughput, fitted.rest_s, self._plan.pause_s)
        left = self._left() - self._plan.at_rest - self._plan.start(max(sizes))
        allowed = min(left, self._plan.limits.requests // 4)
        while times and sum(size for _, size in times) > allowed:
            times.pop()
        times = [one for one in times if one[0] < 0.3 * max(1.0, self._left_s())]
        while times and not self._fits(max(sizes), times[-1][0]):
            times.pop()
        if not times:
            return
        self._progress("bursts")
        answers = self._run(
            [{"do": "bursts", "clients": int(max(s for _, s in times)), "at": times}]
        )
        self._count(answers[0])
        for number in range(len(times)):
            burst = [tuple(r) for one in answers[0] for r in one.get(str(number), [])]
            found.bursts.append(burst)

    def _remember(self) -> None:
        """How long a client answers by itself."""
        step = plan.memory_step(self._plan)
        paced_s = self._plan.memory(len(step["delays"])) * self._plan.pause_s
        after_s = self._lead_s + 1.0  # for a request of each kind
        step["delays"] = [d for d in step["delays"] if self._fits(1, d + paced_s + after_s)]
        if not step["delays"] or self._left() < self._plan.memory(len(step["delays"])):
            return
        self._progress("how long are answers remembered?")
        answers = self._run([{**step, "clients": 1}])[0]
        self._found.requests += self._plan.memory(len(step["delays"]))
        for delay in step["delays"]:
            for kind, into in (
                ("files", self._found.files_again),
                ("absent", self._found.absent_again),
            ):
                into[delay] = [took / 1e9 for _, took in answers[0][f"{kind} {delay}"]]

    def _kinds(self) -> None:
        each_s = max(self._plan.pause_s, self._found.points[0].median_s)
        if not self._fits(1, self._plan.kinds * each_s) or self._left() < self._plan.kinds:
            return
        self._progress("one request of each kind")
        files = {kind: self._plan.files[kind] for kind in ("files", "folders", "links")}
        answers = self._run([{"do": "kinds", "clients": 1, **files}])[0]
        self._found.requests += self._plan.kinds
        for kind, requests in answers[0].items():
            self._found.kinds[kind] = [took / 1e9 for _, took in requests]

    def _read(self) -> None:
        """Bytes a second of one client and of several, from a file just written."""
        counts = (1, self._plan.readers)
        reading_s = self._left_s() - sum(self._lead_s + self._opening_s * n for n in counts)
        if not self._plan.limits.read_bytes or reading_s < _LEAST_READING_S:
            return
        self._progress("reading")
        size = self._written(self._folder / "bytes", reading_s / 3)
        for clients in counts:
            asked = self._plan.start(clients) + plan.OPENED * clients
            if not self._fits(clients, reading_s / 3) or self._left() < asked:
                return
            self._found.requests += asked
            step = {"do": "reading", "clients": clients, "file": "bytes", "bytes": size}
            answers = self._run([{**step, "seconds": reading_s / 3}])[0]
            every = [request for one in answers for request in one["bytes"]]
            took = max(at + ns for at, ns, _ in every) - min(at for at, _, _ in every)
            self._found.nodes[clients] = len(set(self._hosts[:clients]))
            self._found.read[clients] = sum(n for _, _, n in every) / (took / 1e9)

    def _written(self, path: Path, limit_s: float) -> int:
        """Write the file that is read, as much of it as that time allows; its bytes."""
        block, size, end = os.urandom(1 << 20), 0, time.monotonic() + limit_s
        try:
            with open(path, "wb", buffering=0) as out:
                while size < self._plan.limits.read_bytes and (not size or time.monotonic() < end):
                    interrupt.check()
                    size += out.write(block)
                    os.fdatasync(out.fileno())  # or the time would say nothing
        except OSError as error:
            raise BrigadeError(f"{path}: {error.strerror}") from error
        return size

    def _count(self, answers: list[dict[str, list[Request]]]) -> None:
        """Look-ups of a step, and what starting its clients took."""
        asked = sum(len(r) for one in answers for kind, r in one.items() if kind != client.BUSY)
        self._found.requests += asked + self._plan.start(len(answers))

    def _run(self, steps: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
        """What the clients of each step found, by client."""
        lead_s = self._lead_s + self._opening_s * max(step["clients"] for step in steps)
        more = {
            "begin": time.time() + lead_s,
            "pause_s": self._plan.pause_s,
            "opening_s": self._opening_s,
        }
        steps = [{**step, "name": str(i), **more} for i, step in enumerate(steps)]
        answers = [answer for one in self._started(steps) for answer in one["answers"]]
        wrong = [answer["error"] for answer in answers if "error" in answer]
        if wrong:
            raise BrigadeError(f"a client failed: {wrong[0]}")
        by_step = {step["name"]: {} for step in steps}  # type: dict[str, dict[int, Any]]
        for answer in answers:
            by_step[answer["step"]][answer["client"]] = answer["found"]
        return [[found[i] for i in sorted(found)] for found in by_step.values()]

    def _started(self, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Start the clients once; what each rank said."""
        answers = str(self._folder / f"answers-{time.monotonic_ns()}") if self._launcher else None
        script = {
            "folder": str(self._folder),
            "ranks": self._found.ranks,
            "steps": steps,
            "answers": answers,
            "answer_s": plan.ANSWER * self._plan.pause_s,
        }
        clients = max((step["clients"] for step in steps), default=0)
        limit_s = _STEP_LIMIT_S + self._lead_s + self._answers_s(clients)
        word = base64.b64encode(json.dumps(script).encode()).decode()
        command = [*self._launcher, sys.executable, "-S", "-E", client.__file__, word]
        try:
            started = child.start(
                command, child.GIVE_UP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise LauncherError(f"cannot start {command[0]}: {error.strerror}") from error
        try:
            with interrupt.promptly():
                out, err = started.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            raise BrigadeError(
                f"the clients have not answered for {_STEP_LIMIT_S:.0f} s",
                hint="is the file system in trouble?",
            ) from error
        finally:
            child.end(started, undo=False)
        said = [line.partition(client.MARK)[2] for line in out.splitlines() if client.MARK in line]
        if started.returncode or not said:
            tail = "\n    ".join(err.splitlines()[-6:])
            raise LauncherError(f"{command[0]} ended with {started.returncode}:\n    {tail}")
        found = [json.loads(text) for text in said]
        return [self._fetched(one) if isinstance(one, str) else one for one in found]

    def _fetched(self, name: str) -> dict[str, Any]:
        """What a rank wrote to a file."""
        self._n_answers += 1
        self._pace(plan.ANSWER)
        with open(name, encoding="utf-8") as file:
            answer: dict[str, Any] = json.load(file)
        return answer
