"""What programs and ld.so say when they fail, read back: the trial's output is the one place where
Brigade has a program's words without having touched its streams.

What was said only points to the file or name; what is told of it is looked up anew, so that a
message that happens to be printed proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from brigade.failure.evidence import Evidence, Suspect

_LD_SO = re.compile(r"^(\S.*?): error while loading shared libraries: ", re.MULTILINE)
_VERSION = re.compile(r"^(\S.*?): \S+: version [`'].*?' not found", re.MULTILINE)
_SYMBOL = re.compile(r"^(\S.*?): symbol lookup error: ", re.MULTILINE)
# "sh: 1: gmx: not found", "./job.sh: line 3: gmx: command not found"
_SHELL = re.compile(r"^.+?: (?:line )?\d+: (\S+): (?:command )?not found$", re.MULTILINE)


def suspects(evidence: Evidence) -> Iterator[Suspect]:
    """The programs that ld.so, or a shell at the end, named in the trial: those that the command
    line's program started."""
    seen = set()
    for pattern in (_LD_SO, _VERSION, _SYMBOL):
        for match in pattern.finditer(evidence.said):
            if match[1] not in seen:
                seen.add(match[1])
                yield Suspect([match[1]], evidence.cwd, evidence.env, 127, before_main=True)
    for name in dict.fromkeys(_SHELL.findall(evidence.last_said)):
        yield Suspect([name], evidence.cwd, evidence.env, 127)
