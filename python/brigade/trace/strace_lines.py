"""The lines of strace's output: which thread, when, which call, which arguments, what it gave.

A call that others interrupted (`<unfinished ...>`, later `resumed`) comes out whole, at the place
where it started.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass
class Line:
    """One call, or one end of a thread. `call` is "+++" for an end."""

    tid: int
    when: str  # as strace wrote it: "", "12:34:56.123456", "1712.25" or "+0.000012"
    call: str
    arguments: str
    result: str = ""  # the text behind "= "
    took_ns: int = 0
    whole: bool = True  # False: its end is not in the text

    @property
    def value(self) -> int | None:
        """What it returned; None if the text does not say."""
        word = self.result.split(" ", 1)[0].split("<", 1)[0]
        try:
            return int(word, 0)
        except ValueError:
            return None

    @property
    def error(self) -> int:
        """errno; 0: it worked. One that the kernel restarts (ERESTARTSYS) gives 512 and more."""
        found = _ERROR.match(self.result)
        if not found:
            return 0
        name = found[1]
        return RESTARTS.get(name) or int(getattr(errno, name, 0)) or errno.EIO


RESTARTS = {
    "ERESTARTSYS": 512,
    "ERESTARTNOINTR": 513,
    "ERESTARTNOHAND": 514,
    "ERESTART_RESTARTBLOCK": 516,
}

_HEAD = re.compile(
    r"""(?:\[pid\s+(?P<pid>\d+)\]\ +|(?P<tid>\d+)\ +)?
        (?P<when>\d+:\d+:\d+(?:\.\d+)?|\d+\.\d+)?\ *
        (?:\(\+\ *(?P<step>\d+\.\d+)\)\ +)?
        (?:\[[\ 0-9a-fx?]+\]\ +)*""",
    re.VERBOSE,
)
_LONE_STEP = re.compile(r"^\s+(\d+\.\d+)\s")
_WHOLE = re.compile(
    r"(\w+)\((.*)\)\s*=\s(-?\d+\b.*?|0x[0-9a-f]+.*?|\?.*?)(?: <(\d+\.\d+)>)?$", re.DOTALL
)
_STARTS = re.compile(r"(\w+)\((.*?)(?:\s*<unfinished \.\.\.>|strace: Process \d+ attached)$")
_RESUMES = re.compile(r"<\.\.\. (\w+) resumed>\s?(.*)$", re.DOTALL)
_ENDS = re.compile(r"\+\+\+ (.*) \+\+\+$")
_ERROR = re.compile(r"(?:-1|\?) (E[A-Z0-9_]+)")
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_PLAIN = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b"a": b"\a", b"b": b"\b"}
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"(?:\.{3})?'  # a string
    r"|(?<=[\dD])<(?!<)(?:[^<>]|->|<[^<>]*>)*>"  # what a descriptor refers to
    r"|/\*.*?\*/|[\[({]|[\])}]|,|[^\"\[\](){},<]+|<|\"",
    re.DOTALL,
)


def lines(text: Iterable[str], tid: int = 0) -> Iterator[Line]:
    """The calls and ends in `text`; `tid` is that of lines which name none."""
    open_calls: dict[int, Line] = {}
    out: list[Line] = []
    dangling: Line | None = None
    for raw in text:
        line, rest = _head(raw.rstrip("\n"), tid)
        if dangling is not None and rest.startswith(", "):
            rest = f"<... {dangling.call} resumed>{rest}"
            line.tid = dangling.tid
        dangling = _take(line, rest, open_calls, out)
        if not open_calls:
            yield from out
            out.clear()
    for left in open_calls.values():
        left.whole = False
    yield from out


def _head(raw: str, tid: int) -> tuple[Line, str]:
    """Splits off who and when."""
    head = _HEAD.match(raw)
    assert head is not None  # every part of it is optional
    when, rest = head["when"] or "", raw[head.end() :]
    who = head["pid"] or head["tid"]
    if not when and (alone := _LONE_STEP.match(raw[(head.end("tid") if who else 0) :])):
        when, rest = alone[1], raw[(head.end("tid") if who else 0) + alone.end() :].lstrip()
    if head["tid"] and not when and rest[:1] == ".":  # -r without a thread: "0.000092 execve"
        who = None
    if "." in when and ":" not in when and float(when) < 1e8:
        when = "+" + when
    return Line(int(who or tid), when, "", ""), rest


def _take(line: Line, rest: str, open_calls: dict[int, Line], out: list[Line]) -> Line | None:
    """Adds what `rest` says to `out`. Returns the call if it stopped in the middle of its line."""
    if resumed := _RESUMES.match(rest):
        begun = open_calls.pop(line.tid, None)
        if begun is not None:
            _finish(begun, f"{begun.call}({begun.arguments}{resumed[2]}")
    elif whole := _WHOLE.match(rest):
        out.append(line)
        _finish(line, rest, whole)
    elif starts := _STARTS.match(rest):
        line.call, line.arguments = starts[1], starts[2]
        out.append(line)
        open_calls[line.tid] = line
        return line if rest.endswith("attached") else None
    elif ends := _ENDS.match(rest):
        line.call, line.arguments = "+++", ends[1]
        cut = open_calls.pop(line.tid, None)
        if cut is not None:
            cut.whole = False
        out.append(line)
    return None


def _finish(line: Line, text: str, whole: re.Match[str] | None = None) -> None:
    whole = whole or _WHOLE.match(text.replace(" <unfinished ...>", ""))
    if not whole:
        line.whole = False
        return
    line.call, line.arguments, line.result = whole[1], whole[2], whole[3]
    line.took_ns = round(float(whole[4]) * 1e9) if whole[4] else 0


def arguments(text: str) -> list[str]:
    """The arguments of a call, split at its own commas."""
    found, depth, start, at = [], 0, 0, 0
    for token in _TOKEN.finditer(text):
        word, at = token[0], token.end()
        if word in ("[", "(", "{"):
            depth += 1
        elif word in ("]", ")", "}"):
            depth -= 1
        elif word == "," and depth == 0:
            found.append(text[start : token.start()].strip())
            start = at
    last = text[start:].strip()
    return [*found, last] if last or found else found


def string(word: str) -> str | None:
    """The value of a string in quotes; one that strace cut ("...") keeps the dots. None if `word`
    is no string (an address, NULL)."""
    if not word.startswith('"'):
        return None
    end = word.rindex('"')
    inside, cut = word[1:end], word[end + 1 : end + 4] == "..."
    if "\\" in inside:
        inside = os.fsdecode(_ESCAPE.sub(_unescape, os.fsencode(inside)))
    return inside + "..." if cut else inside


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found[1]
    if code[:1] == b"x" and len(code) == 3:
        return bytes([int(code[1:], 16)])
    if code[:1].isdigit() and code[:1] < b"8":
        return bytes([int(code, 8) & 255])
    return _PLAIN.get(code, code)


def descriptor(word: str) -> tuple[int | None, str]:
    """A descriptor's number (None: AT_FDCWD or unreadable), and what -y says that it refers to."""
    number, _, rest = word.partition("<")
    refers = rest[: rest.rindex(">")] if ">" in rest else ""
    if refers.startswith("/") and refers.endswith(">"):  # </dev/null<char 1:3>>
        refers = refers[: refers.rindex("<")]
    if "\\" in refers:
        refers = os.fsdecode(_ESCAPE.sub(_unescape, os.fsencode(refers)))
    if refers.startswith("/memfd:"):  # memory: no file
        refers = refers[1:]
    try:
        return int(number), refers
    except ValueError:
        return None, refers
