"""Which processes are a rank, which of them is the program, and when each rank was where.

A rank's program is the last image of its first process: what came before in the same process are
wrappers (sh, env, numactl), which replaced themselves. A shell that stays is a wrapper too if it
started something: the program is then the image below it that made most calls.
"""

from __future__ import annotations

from brigade.profile import phases, scripts
from brigade.profile.profile import RankTimes
from brigade.profile.story import Story
from brigade.trace.events import Trace, TracedProcess

_NS = 1e-9
_DEPTH = 64


def numbers(trace: Trace) -> list[int]:
    """The rank of each process, in the trace's order. A child has its parent's; where nobody has
    a number, there is one rank, 0; a process outside all ranks has -1."""
    if all(process.rank is None for process in trace.processes):
        return [0] * len(trace.processes)
    known: dict[tuple[str, int], TracedProcess] = {}
    for process in trace.processes:
        if process.rank is not None or (process.host, process.pid) not in known:
            known[process.host, process.pid] = process
    return [_number(process, known) for process in trace.processes]


def _number(process: TracedProcess, known: dict[tuple[str, int], TracedProcess]) -> int:
    above: TracedProcess | None = process
    for _ in range(_DEPTH):
        if above is None:
            break
        if above.rank is not None:
            return above.rank
        same = known.get((above.host, above.pid))
        above = same if same and same.rank is not None else known.get((above.host, above.parent))
    return -1


class Rank:
    """The stories of one rank, in the order of their start."""

    def __init__(self, number: int, stories: list[Story]) -> None:
        self.number = number
        self.stories = sorted(stories, key=lambda story: story.process.start_ns)
        pids = {story.process.pid for story in self.stories}
        roots = [s for s in self.stories if s.process.parent not in pids] or self.stories
        pid = roots[0].process.pid
        last = [story for story in self.stories if story.process.pid == pid][-1]
        self.first = last.process  # which the launcher started: its last image
        self.program = self._program(last)

    def _program(self, last: Story) -> Story:
        below = [s for s in self.stories if s.process.pid != self.first.pid and s.process.exe]
        below = [s for s in below if s.process.exe != last.process.exe]
        if scripts.is_shell(last.process.exe) and below:
            return max(below, key=lambda story: len(story.process.events))
        return last

    def assign_phases(self, software: list[str]) -> None:
        """The phase of each call of the rank."""
        phases.assign(self.program, software)
        begin = self.program.process.start_ns
        families = {self.program.process.pid: self.program}
        for story in self.stories:
            if story is self.program:
                continue
            parent = families.get(story.process.parent)
            if parent is None or story.process.start_ns < begin:
                for event, mark in zip(story.process.events, story.marks):
                    mark.phase = "launch" if event.time_ns <= begin else "user"
                continue
            phase = _phase_at(parent, story.process.start_ns)
            for mark in story.marks:
                mark.phase = phase
            families.setdefault(story.process.pid, story)

    def times(self) -> RankTimes:
        """When the rank was where."""
        program, process = self.program, self.program.process
        first = self.stories[0].process
        ends = [s.process.end_ns for s in self.stories if s.process.end_ns is not None]
        mpi = [
            event
            for event, mark in zip(process.events, program.marks)
            if mark.phase == "mpi"
        ]  # fmt: skip
        return RankTimes(
            rank=self.number,
            host=process.host,
            processes=len({story.process.pid for story in self.stories}),
            program=process.exe or (process.argv[0] if process.argv else ""),
            start_s=first.start_ns * _NS,
            main_s=None if program.main_ns is None else program.main_ns * _NS,
            ready_s=self._ready_s(),
            mpi_s=(mpi[0].time_ns * _NS, (mpi[-1].time_ns + mpi[-1].took_ns) * _NS)
            if mpi
            else None,
            end_s=max(ends) * _NS if ends else None,
            status=self.first.status and (process.status or self.first.status),
        )

    def _ready_s(self) -> float | None:
        """The end of the last look-up that is not the user's own."""
        found = [
            event.time_ns + event.took_ns
            for story in self.stories
            for event, mark in zip(story.process.events, story.marks)
            if not event.by_fd and mark.phase != "user"
        ]
        return max(found) * _NS if found else None


def _phase_at(story: Story, time_ns: int) -> str:
    """The phase that a process was in: that of its last call until then."""
    phase = story.marks[0].phase if story.marks else "user"
    for event, mark in zip(story.process.events, story.marks):
        if event.time_ns > time_ns:
            break
        phase = mark.phase
    return phase or "user"
