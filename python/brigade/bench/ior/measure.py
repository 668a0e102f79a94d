"""Runs brigade-ior: as it is; with what it finds gathered; or again and again, to compare."""

from __future__ import annotations

import random
import signal
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional

from brigade.bench.component import PRELOADED
from brigade.bench.component import job as component_job
from brigade.bench.ior import options
from brigade.bench.run import end, gather
from brigade.errors import BrigadeError, LauncherError, UsageError
from brigade.report.host import host

Progress = Optional[Callable[[int, int], None]]  # (samples, samples in all)
_FILES_A_JOB = 3  # of a way: what only the first costs is not all there is to see
# MPI-IO's, where the MPI has both
_COMPONENTS = {"OMPIO": "ompio", "ROMIO": "romio", "PRELOADED": PRELOADED}


@dataclass(frozen=True)
class Way:
    """What stands beside others: a word of -a, and what does a job's MPI-IO for it, or "": see
    python/brigade/bench/component.py."""

    name: str
    word: str
    component: str = ""


@dataclass(frozen=True)
class Case:
    """A file of a width: `values` are options by field, without those of measuring itself."""

    launcher: tuple[str, ...]
    ranks: int
    values: Mapping[str, options.Value]


def show(command: Sequence[str]) -> int:
    """The exit status of a command that prints where this process does. Ctrl-C reaches it through
    the terminal, and it removes its file; so it does when a signal that is raised here ends it."""
    try:
        child = subprocess.Popen(command, text=True)
    except OSError as error:
        raise LauncherError(f"{command[0]}: {error.strerror}") from error
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return child.wait()
    except BaseException:
        end(child)
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def ways(text: str, components: Mapping[str, str]) -> list[Way]:
    """The ways of -a; OMPIO and ROMIO are MPIIO with a component of Open MPI's own, PRELOADED is
    MPIIO beneath `brigade mpiio`. Their names have no hints where they are different without."""
    components = {**components, PRELOADED: PRELOADED}
    made: list[tuple[str, Way]] = []
    for word in text.split(","):
        name, colon, rest = word.partition(":")
        kind = name.upper()
        short = ":".join([kind, *(["view"] if "view" in rest.split(":") else [])])
        wanted = _COMPONENTS.get(kind)
        if wanted and wanted not in components:
            raise UsageError(f"-a: {name}: this MPI has no such component of MPI-IO")
        back, component = ("MPIIO", components[wanted]) if wanted else (kind, "")
        made.append((short, Way(f"{kind}{colon}{rest}", f"{back}{colon}{rest}", component)))
    alike = Counter(short for short, _ in made)
    found = [way if alike[short] > 1 else replace(way, name=short) for short, way in made]
    doubled = [name for name, times in Counter(way.name for way in found).items() if times > 1]
    if doubled:
        raise UsageError(f"-a: {doubled[0]} is there more than once")
    return found


def compare(
    program: str, cases: Sequence[Case], ways: Sequence[Way], rounds: int, progress: Progress = None
) -> list[dict[str, Any]]:
    """Samples {"variant", "component", "round", "ranks", "nodes", "bytes", "write", "read"} of all
    cases, the last two as far as they were asked for; BrigadeError if a word was wrong. "bytes" is
    the file's; that of "write" and of "read" what was moved, with -D less, by minTimeDuration more.

    All ways take turns in one job. What does MPI-IO is chosen when a job starts: with several of
    them a job of each has a few rounds, and all other ways run in each."""
    chance = random.Random(1)
    components = list(dict.fromkeys(w.component for w in ways if w.component)) or [""]
    repetitions = min(rounds, _FILES_A_JOB) if len(components) > 1 else rounds
    jobs = [
        (case, component, number)
        for case in cases
        for number in range(0, rounds, repetitions)
        for component in chance.sample(components, len(components))
    ]
    samples: list[dict[str, Any]] = []
    for done, (case, component, number) in enumerate(jobs):
        mine = [way for way in ways if way.component in ("", component)]
        mine = chance.sample(mine, len(mine))
        if progress:
            progress(done, len(jobs))
        some = min(repetitions, rounds - number)
        samples += _job(program, case, mine, component, number, some)
    return samples


def _job(
    program: str, case: Case, ways: Sequence[Way], component: str, number: int, repetitions: int
) -> list[dict[str, Any]]:
    values = {**case.values, "api": ",".join(way.word for way in ways), "repetitions": repetitions}
    words = [program, *options.words(values)]
    report = gather_report(*component_job(case.launcher, words, component))
    if report["wrong"]:
        raise BrigadeError(report["wrong"][0]["text"])
    (test,) = report["tests"]
    if test["tasks"] != case.ranks:
        raise BrigadeError(f"{test['tasks']} ranks were started, not {case.ranks}")
    made: dict[tuple[int, int], dict[str, Any]] = {}
    for said in report["samples"]:
        sample = made.setdefault(
            (said["way"], said["iteration"]),
            {
                "variant": ways[said["way"]].name,
                "component": component,
                "round": number + said["iteration"],
                "ranks": case.ranks,
                "nodes": test["nodes"],
                "bytes": test["block"] * test["segments"] * case.ranks,
            },
        )
        kept = ("bytes", "open", "move", "close", "total")
        sample[said["access"]] = {name: said[name] for name in kept}
    return list(made.values())


def gather_report(
    command: Sequence[str], environment: dict[str, str] | None = None
) -> dict[str, Any]:
    """{"host", "job", "tests", "samples", "wrong", "status"} of one run; BrigadeError where a call
    failed. Wrong words are no exception: they are in the report, and `status` is 1."""
    lists: dict[str, list[dict[str, Any]]] = {"job": [], "test": [], "sample": [], "wrong": []}

    def heard(said: dict[str, Any]) -> None:
        kind = said.pop("event")
        if kind == "failed":
            raise BrigadeError(f"rank {said['rank']}: {said['text']}")
        lists[kind].append(said)

    words = [*command, "-O", "summaryFormat=events"]
    status = gather(words, heard, environment)
    if status and not lists["wrong"]:
        raise BrigadeError(f"{command[0]} ended with status {status}")
    if not lists["job"]:
        raise BrigadeError(
            f"{command[0]} ended well, but no rank has said anything",
            hint="its standard output must come back: `srun --output=FILE` keeps it away",
        )
    return {
        "host": host(),
        "job": lists["job"][0],
        "tests": lists["test"],
        "samples": lists["sample"],
        "wrong": lists["wrong"],
        "status": 1 if lists["wrong"] else 0,
    }
