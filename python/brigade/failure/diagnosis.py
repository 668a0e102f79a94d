"""One explained failure, and how it is told: at most a dozen lines, after the program's own."""

from __future__ import annotations

import dataclasses
import textwrap
from dataclasses import dataclass, field
from typing import IO, Any

from brigade.printable import printable

_MOST_SEARCHED = 6
_MOST_LINES = 12
_WIDTH = 100


@dataclass
class Diagnosis:
    """What failed and what would mend it. Only what is certain is made into one."""

    kind: str  # the rule's name, for machines: "missing-library"
    what: str  # one sentence: what, where
    searched: list[str] = field(default_factory=list)  # in order
    closest: str = ""  # what is there instead
    mend: list[str] = field(default_factory=list)  # commands or sentences, best first

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def lines(self) -> list[str]:
        """For people."""
        found = [self.what]
        if self.searched:
            shown = self.searched[:_MOST_SEARCHED]
            more = len(self.searched) - len(shown)
            found.append("  searched: " + shown[0])
            found += [f"            {one}" for one in shown[1:]]
            found += [f"            and {more} more"] if more else []
        if self.closest:
            found.append(f"  closest:  {self.closest}")
        if self.mend:
            found.append(f"  to mend:  {self.mend[0]}")
            found += [f"            {one}" for one in self.mend[1:]]
        return [printable(line) for line in found]


def tell(diagnoses: list[Diagnosis], out: IO[str]) -> None:
    """Print them: the first in full, further ones while they fit."""
    left = _MOST_LINES
    for number, diagnosis in enumerate(diagnoses):
        lines = _wrapped(diagnosis.lines())
        if number and len(lines) > left:
            out.write(f"brigade: {len(diagnoses) - number} more of the kind\n")
            return
        left -= len(lines)
        out.write("brigade: " + "\n".join(lines) + "\n")


def _wrapped(lines: list[str]) -> list[str]:
    """The sentence in lines that a terminal holds; commands and paths stay whole, to be copied."""
    first = textwrap.wrap(
        lines[0], _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return [*first, *lines[1:]]
