"""What a trial saw, in words: the end of a sentence about who did it."""

from __future__ import annotations

from brigade.fork.variables import of_ranks
from brigade.trial.modules import Event

_WORDS = {
    "clock": "asks for the time",
    "pid": "asks for the process's number",
    "process": "reads what is known of this process",
    "host": "asks for the host's name",
    "cpus": "asks which processors it may use",
    "terminal": "asks whether it has a terminal",
    "random": "asks for random numbers",
    "generator": "seeds, or draws from, a generator of random numbers that all share",
    "thread": "starts a thread",
    "child": "starts a child",
    "socket": "opens a socket",
    "output": "writes output",
    "device": "opens a device",
    "write": "writes to the file system",
    "limits": "sets limits or priorities of this process",
    "bind": "binds this process to processors or memory",
    "folder": "changes the working directory",
    "dlopen": "is a library, and the program has set how those are loaded (sys.setdlopenflags)",
    "mask": "changes which signals are blocked",
    "imports": "changes how modules are imported",
    "loader": "is loaded by a loader of the program's own",
    "library": "brings a library that may read all of the environment unseen",
    "unread": "brings a library that could not be looked at",
}


def event_words(event: Event) -> str:
    """What was done."""
    words = _WORDS.get(event.what, event.what)
    if event.what == "socket":
        return words
    return f"{words} ({event.detail})" if event.detail else words


def variable_words(detail: str, names: set[str]) -> str | None:
    """Why a variable that was read may not be the same for all ranks; None if it is. `names`:
    those that differed in the trial."""
    name = detail.rstrip("!")
    who = of_ranks(name)
    if detail.endswith("!"):
        return f"reads {name}, which the program had changed" if name else "reads a variable"
    if who:
        return f"reads {name}, with which {who} tells ranks apart"
    return f"reads {name}, which differed between the ranks of the trial" if name in names else None
