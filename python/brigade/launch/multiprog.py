"""The file of `srun --multi-prog`: which ranks of a step run which program.

    # coupled.conf
    0-3     ./atmosphere --grid %t
    4,6-7   python ocean.py
    *       ./idle

Understood as Slurm's own reader does (src/slurmd/slurmstepd/multi_prog.c, 20.11 to 26.05): a line
is a range and a command; `\\` keeps the next character, or joins the next line; `'` quotes; `%t` is
the rank, `%o` its place in the range; `#` begins a line that does not count. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from brigade.errors import UsageError

#: Words of a command that Slurm passes on at most (MAX_ARGC, with the pointer that ends them).
MOST_WORDS = 127


@dataclass(frozen=True)
class Entry:
    """One line that counts."""

    ranks: str  # "3", "0-3,7" or "*"
    command: str  # as written, with the lines that it is continued on

    def words(self) -> list[str]:
        """The command of the first of its ranks."""
        first = re.match(r"\d*", self.ranks)
        return split(self.command, int(first.group() or 0) if first else 0, 0)

    @property
    def end(self) -> int:
        """One more than its highest rank; 0 of `*`."""
        return max((int(number) + 1 for number in re.findall(r"\d+", self.ranks)), default=0)


def read(text: str) -> list[Entry]:
    """The entries of a file. Raises UsageError for what Slurm refuses, too."""
    entries = []
    for number, line in _lines(text):
        ranks, *command = line.split(None, 1)
        if not command or not re.fullmatch(r"\*|\d+(-\d+)?(,\d+(-\d+)?)*", ranks):
            raise UsageError(f"line {number} is not `RANKS PROGRAM [ARGUMENTS]`")
        entries.append(Entry(ranks, command[0]))
    if not entries:
        raise UsageError("no line names a program")
    return entries


def written(entries: Iterable[Entry], prefix: Iterable[str]) -> str:
    """The file with the words of `prefix` before each command; they have a line of their own, for
    Slurm refuses long ones."""
    front = " ".join(map(quoted, prefix))
    return "".join(f"{entry.ranks} {front} \\\n{entry.command}\n" for entry in entries)


def one_after_another(programs: Iterable[list[str]], share: int) -> list[Entry]:
    """Entries that give each program `share` ranks."""
    return [
        Entry(f"{at * share}-{(at + 1) * share - 1}", " ".join(map(quoted, program)))
        for at, program in enumerate(programs)
    ]


def quoted(word: str) -> str:
    """A word as a command of the file has it."""
    if re.fullmatch(r"[^\s\\%'#]+", word):
        return word
    return "\\'".join(f"'{part}'" for part in word.split("'"))


def split(command: str, rank: int, offset: int) -> list[str]:
    """The words that Slurm starts for one rank."""
    words: list[str] = []
    word: str | None = None
    i = 0
    while i < len(command):
        letter, after = command[i], command[i + 1 : i + 2]
        i += 1
        if letter.isspace():
            words += [] if word is None else [word]
            word = None
            continue
        word = word or ""
        if letter == "'":
            close = command.find("'", i)
            if close < 0:
                raise UsageError(f"a quote is not closed: {command}")
            word += command[i:close]
            i = close + 1
        elif letter == "%":
            word += {"t": str(rank), "o": str(offset)}.get(after, "")
            i += 1
        elif letter == "\\":
            word += after.replace("\n", "")
            i += 1
        else:
            word += letter
    return words + ([] if word is None else [word])


def _lines(text: str) -> Iterable[tuple[int, str]]:
    """(number, line) of those that count; one with those that it is continued on."""
    whole, begun = "", 0
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        begun = begun if whole else number
        whole += line
        if line.endswith("\\") and number < len(lines):
            whole += "\n"
            continue
        if whole.strip() and not whole.lstrip().startswith("#"):
            yield begun, whole.lstrip().removesuffix("\\\n")
        whole = ""
