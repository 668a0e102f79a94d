"""What is known of a job that failed: its status, its words, what its trial said, who was seen to
end how. Rules look at this and at files; they run nothing of the user's.

A job's status comes through a launcher, and every launcher has its own way with it: `signals`
and `codes` say what may be meant.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field

from brigade.failure import groups

_LAST_LINES = 8


@dataclass
class Suspect:
    """A program that may have failed."""

    argv: list[str]
    cwd: str
    env: Mapping[str, str]
    status: int | None = None  # exit status or -signal; None: nobody saw it end
    before_main: bool = False  # it was seen to end before its own first instruction

    @property
    def path(self) -> str | None:
        """The file that is executed, or None: there is none that could be."""
        if not self.argv:
            return None
        name = self.argv[0]
        if "/" in name:
            path = os.path.join(self.cwd, name)
            return path if os.path.isfile(path) else None
        return shutil.which(name, path=self.env.get("PATH", os.defpath))

    def script(self, path: str) -> tuple[bool, str | None]:
        """Whether a file begins with #!, and the interpreter that it names, if that is there.
        `/usr/bin/env` is looked through. Raises OSError if the file cannot be read."""
        with open(path, "rb") as file:
            head = file.read(256)
        if not head.startswith(b"#!"):
            return False, None
        words = os.fsdecode(head[2:].split(b"\n")[0]).split()
        if words and os.path.basename(words[0]) == "env":
            words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return True, Suspect(words[:1], self.cwd, self.env).path if words else None


@dataclass
class Evidence:
    """A job that ended other than with 0."""

    words: list[str]  # as the user wrote them
    program: list[str]  # of them, program and arguments
    status: int  # as subprocess gives it
    seconds: float
    launcher: str | None = None  # "srun", "mpirun", "mpiexec", "local"; None: it was not understood
    ranks: int | None = None
    nodes: int = 1
    cwd: str = field(default_factory=os.getcwd)
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    said: str = ""  # what its trial, or a step of ours under the same launcher, said
    seen: list[Suspect] = field(default_factory=list)  # processes that were seen to fail
    oom_kills: int = 0  # on this machine, while it ran
    exec_error: int = 0  # errno of starting the first word
    image_bytes: int = 0  # of a node's memory that the image takes
    limits: Mapping[str, int | None] = field(default_factory=lambda: own_limits())
    mpi_library: str | None = None  # that its trial has loaded

    @property
    def signal(self) -> int:
        """The signal that ended it or one of its processes, as far as the status can say; or 0."""
        if self.status < 0:
            return -self.status
        if 128 < self.status < 128 + 32:
            return self.status - 128
        return 0

    @property
    def is_local(self) -> bool:
        """Whether all of it ran on this machine, so that its files are those that we see."""
        if self.launcher == "srun":
            return self.nodes == 1 and self.env.get("SLURMD_NODENAME") == os.uname().nodename
        return self.launcher in (None, "local") or self.nodes == 1

    @property
    def suspects(self) -> list[Suspect]:
        """Those that were seen to fail, then the program itself."""
        words = self.program or self.words
        front = self.words[: len(self.words) - len(words)]
        program = Suspect(words, self.cwd, self.env)
        return [*self.seen, unwrapped(_given(program, front))]

    def hint(self, text: str) -> bool:
        return text in self.said

    @property
    def last_said(self) -> str:
        """The last lines of what was said: where a program says what it ends of."""
        return "\n".join(self.said.splitlines()[-_LAST_LINES:])


def own_limits() -> dict[str, int | None]:
    """The soft limits that a job of ours inherits, and how many tasks its control group may have
    (`pids`); None: unlimited."""
    found: dict[str, int | None] = {}
    for name in ("as", "nofile", "nproc", "stack"):
        soft, _ = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))
        found[name] = None if soft == resource.RLIM_INFINITY else soft
    found["pids"] = min(groups.limits("pids", "pids.max", "pids.max"), default=None)
    return found


def _given(program: Suspect, front: list[str]) -> Suspect:
    """With the variables and the directory that the words of its launcher give a program."""
    env, cwd = dict(program.env), program.cwd
    for at, word in enumerate(front):
        name, equals, value = word.partition("=")
        after = [value] if equals else front[at + 1 : at + 3]
        if name in ("-x", "--export"):
            pairs = after[0].split(",") if after else []
            env.update(_pair(one) for one in pairs if "=" in one)
        elif name in ("-env", "-genv", "--env", "--genv") and len(after) == 2:
            env[after[0]] = after[1]
        elif name in ("-wdir", "--wdir", "-wd", "--wd", "--chdir", "-D") and after:
            cwd = os.path.join(cwd, after[0])
    return Suspect(program.argv, cwd, env)


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def unwrapped(suspect: Suspect) -> Suspect:
    """The program behind `env`, `nice` and the like; as it is where that is not plain to see."""
    words, env = suspect.argv, dict(suspect.env)
    while len(words) > 1 and os.path.basename(words[0]) in _FRONTS:
        front = os.path.basename(words[0])
        at = 1
        while at < len(words) and re.match(r"-|\w+=", words[at]):
            if words[at].startswith("--") and "=" not in words[at]:
                return suspect  # the next word may be its value
            if front == "env":
                _set(env, words, at)
            at += 2 if words[at] in _FRONTS[front] else 1
        if front == "taskset":
            at += 1  # the mask
        if at >= len(words):
            return suspect
        words = words[at:]
    return Suspect(words, suspect.cwd, env)


def _set(env: dict[str, str], words: list[str], at: int) -> None:
    """What one word of `env` does."""
    if words[at] in ("-", "-i"):
        env.clear()
    elif words[at] == "-u" and at + 1 < len(words):
        env.pop(words[at + 1], None)
    elif not words[at].startswith("-"):
        env.update([_pair(words[at])])


# Programs that become another one, and their options that have a value in a word of its own.
_FRONTS: dict[str, tuple[str, ...]] = {
    "env": ("-u", "-C", "-S"),
    "nice": ("-n",),
    "ionice": ("-c", "-n"),
    "nohup": (),
    "setsid": (),
    "stdbuf": ("-i", "-o", "-e"),
    "numactl": ("-N", "-m", "-C", "-i", "-p"),
    "taskset": (),
}
