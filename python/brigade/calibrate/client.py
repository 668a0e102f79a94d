"""The clients of a calibration: `python -S client.py SCRIPT`, once a rank; needs only Python.

SCRIPT is JSON in base64: the scratch folder, the number of ranks, and steps. Client i is a process
of rank i modulo ranks, with a folder of its own (`c<i>`), so that no lock on a folder is measured.
It waits for the step's time of beginning (seconds since the epoch), issues requests one after
another, and notes when each began and how long it took. Each rank prints one line of JSON after
MARK; under a launcher, which may mix long lines, one that had clients writes it to a file and
prints the name. Ranks that end together write one after another, `answer_s` apart.

What must stay true: no client issues more requests than its step says, and it ends by itself. A
step's `pause_s` is the time that one request is allowed to take of the user's rate, or 0.
"""

from __future__ import annotations

import base64
import ctypes
import heapq
import json
import os
import random
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any, Callable

MARK = "BRIGADE-CALIBRATE "
RANKS = ("BRIGADE_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
BUSY = "busy"  # beside kinds of requests: [[busy, in all]] ticks of the client's processors
_PR_SET_TIMERSLACK = 29
_KINDS = ("stat", "open", "read", "opendir", "list", "link")
_MOST_A_NAME = 5  # requests that a name costs among the kinds
_RECENT = 16  # answers over which a client judges that the file system is overloaded


def rank() -> int:
    for name in RANKS:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def _until(when: float) -> None:
    left = when - time.time()
    if left > 0:
        time.sleep(left)


def _absent(folder: int) -> None:
    """One look-up of a name that never was: no client can know the answer."""
    try:
        os.stat(f"{random.getrandbits(64):016x}", dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        pass


def _timed(into: list[list[int]], call: Callable[..., Any], *words: Any, **named: Any) -> Any:
    """Call, and note when that began and how long it took."""
    begin = time.time_ns()
    start = time.perf_counter_ns()
    result = call(*words, **named)
    into.append([begin, time.perf_counter_ns() - start])
    return result


def _processors() -> tuple[int, int]:
    """(busy, in all): the time in ticks of the processors of this node that we may use."""
    ours = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    busy = in_all = 0
    with open("/proc/stat") as text:
        for name, *words in map(str.split, text):
            if name in ours:
                ticks = [int(word) for word in words[:8]]
                busy += sum(ticks) - ticks[3] - ticks[4]
                in_all += sum(ticks)
    return busy, in_all


def load(step: dict[str, Any], folder: int) -> dict[str, list[list[int]]]:
    """Look-ups one after another, until their number or the time is reached, or answers take
    longer than `limit_s` (the median of the last few: one hiccup is no load)."""
    found: list[list[int]] = []
    _until(step["begin"])
    before = _processors()
    end = step["begin"] + step["seconds"]
    for number in range(step["ops"]):
        if step["gap_s"]:
            _until(step["begin"] + number * step["gap_s"])
        _timed(found, _absent, folder)
        recent = sorted(took for _, took in found[-_RECENT:])
        slow = len(recent) == _RECENT and recent[_RECENT // 2] > step["limit_s"] * 1e9
        if slow or time.time() > end:
            break
    busy, all_of = (after - at for after, at in zip(_processors(), before))
    return {"absent": found, BUSY: [[busy, all_of]]}


def bursts(step: dict[str, Any], folder: int) -> dict[str, list[list[int]]]:
    """One look-up at each of the step's times, together with the other clients of that burst."""
    found: dict[str, list[list[int]]] = {}
    for number, (after, size) in enumerate(step["at"]):
        if step["client"] < size:
            _until(step["begin"] + after)
            _timed(found.setdefault(str(number), []), _absent, folder)
    return found


def kinds(step: dict[str, Any], folder: int) -> dict[str, list[list[int]]]:
    """One request of each kind on files that the conductor made, and that nobody has looked at."""
    found: dict[str, list[list[int]]] = {kind: [] for kind in _KINDS}
    _until(step["begin"])
    os.stat(".", dir_fd=folder)
    pause_s = _MOST_A_NAME * step["pause_s"]
    for name in _paced(step["files"], pause_s):
        _timed(found["stat"], os.stat, name, dir_fd=folder)
        file = _timed(found["open"], os.open, name, os.O_RDONLY, dir_fd=folder)
        _timed(found["read"], os.pread, file, 4096, 0)
        os.close(file)
    for name in _paced(step["folders"], pause_s):
        os.stat(name, dir_fd=folder)
        inner = _timed(found["opendir"], os.open, name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        _timed(found["list"], os.listdir, inner)
        os.close(inner)
    for name in _paced(step["links"], pause_s):
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        _timed(found["link"], os.readlink, name, dir_fd=folder)
    return found


def _paced(names: list[str], pause_s: float) -> Iterator[str]:
    """The names, no two within the pause."""
    for name in names:
        following = time.time() + pause_s
        yield name
        _until(following)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def memory(step: dict[str, Any], folder: int) -> dict[str, list[list[int]]]:
    """Names are asked for, and again after the step's delays: is the answer remembered?

    Each kind is named after what was asked and the delay: "files 0.3".
    """
    found: dict[str, list[list[int]]] = {}
    pause_s = step["pause_s"]
    due = [
        (step["begin"] + pause_s * number, name, 0.0, f"{kind} {delay}")
        for number, (delay, kind, name) in enumerate(
            (delay, kind, name)
            for delay in step["delays"]
            for kind in ("files", "absent")
            for name in step[kind][str(delay)]
        )
    ]
    begin = 0.0
    while due:
        when, name, before, label = heapq.heappop(due)
        _until(max(when, begin + pause_s))
        begin = time.time()
        if before:
            _timed(found.setdefault(label, []), _exists, folder, name)
        else:
            _exists(folder, name)
            heapq.heappush(due, (time.time() + float(label.split()[1]), name, begin, label))
    return found


def reading(step: dict[str, Any], folder: int) -> dict[str, list[list[int]]]:
    """The client's part of a file, until it is read or the time is over: [begin, took, bytes]."""
    found: list[list[int]] = []
    file = os.open(step["file"], os.O_RDONLY, dir_fd=folder)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    share = step["bytes"] // step["clients"]
    at = share * step["client"]
    _until(step["begin"])
    end = step["begin"] + step["seconds"]
    for offset in range(at, at + share, 1 << 20):
        if found and time.time() > end:
            break
        read = _timed(found, os.pread, file, min(1 << 20, at + share - offset), offset)
        found[-1].append(len(read))
    os.close(file)
    return {"bytes": found}


STEPS = {"load": load, "bursts": bursts, "kinds": kinds, "memory": memory, "reading": reading}


def _client(script: dict[str, Any], step: dict[str, Any], number: int, out: int) -> None:
    """A forked client: does its step and writes what it found."""
    try:
        # "." is the scratch folder itself: there lies what the conductor made
        own = f"c{number:04d}" if step["do"] in ("load", "bursts") else "."
        # finding it costs requests, too: one client after another, and all before the step begins
        _until(step["begin"] - (step["clients"] - number) * step["opening_s"])
        folder = os.open(os.path.join(script["folder"], own), os.O_RDONLY | os.O_DIRECTORY)
        found = STEPS[step["do"]]({**step, "client": number}, folder)
        answer = {"client": number, "step": step["name"], "found": found}
    except Exception as error:
        answer = {"client": number, "step": step["name"], "error": f"{error}"}
    with os.fdopen(out, "w") as pipe:
        json.dump(answer, pipe)
    os._exit(0)


def main(argument: str) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)  # wake when it is time
    script = json.loads(base64.b64decode(argument))
    here = rank() if script["ranks"] > 1 else 0
    pipes = []
    for step in script["steps"]:
        for number in range(here, step["clients"], script["ranks"]):
            ours, theirs = os.pipe()
            if os.fork() == 0:
                os.close(ours)
                _client(script, step, number, theirs)
            os.close(theirs)
            pipes.append(ours)
    answers = [json.loads(_all_of(pipe)) for pipe in pipes]
    text = json.dumps({"rank": rank(), "host": socket.gethostname(), "answers": answers})
    if script["answers"] and answers:
        time.sleep(here * script["answer_s"])
        name = f"{script['answers']}.{rank()}"
        with open(name, "w") as file:
            file.write(text)
        text = json.dumps(name)
    sys.stdout.write(f"{MARK}{text}\n")


def _all_of(pipe: int) -> str:
    with os.fdopen(pipe) as stream:
        return stream.read() or json.dumps({"client": -1, "step": "", "error": "a client was lost"})


if __name__ == "__main__":
    main(sys.argv[1])
