"""The text of BRIGADE_BUFFER (and of IOBUF_PARAMS) checked before a job is started with it.

`src/buffer/rules.c` reads the same text in every rank; there, what is wrong is left out, as nothing
may stop a program that runs. Here it is an error, and says what to write.
"""

from __future__ import annotations

import difflib
import math
import os
from dataclasses import dataclass, field

from brigade.cli.size import number
from brigade.errors import UsageError

LEAST, MOST = 4096, 1 << 30
RULES_MOST = 32
PATTERN_MOST, TEXT_MOST = 255, 4095  # bytes that the library has room for
VALUES = ("size", "count", "delay", "fresh")
WORDS = ("off", "safe", "verbose", "synchronous", "prefetch", "direct")
# IOBUF's options that change nothing here -> why
WITHOUT_MEANING = {
    "ignore_flush": "an fsync is never ignored",
    "noflush": "an fsync is never ignored",
    "lazyflush": "written bytes leave within `delay` seconds anyway",
    "preflush": "buffers are written as soon as they are full",
    "line_merge": "lines are merged into buffers anyway",
    "vbuffer_count": "buffers are not divided",
    "vbuffer_size": "buffers are not divided",
}
EXAMPLE = "write it as '*.dat:size=4M:count=4,*.log:off'"


@dataclass
class Rule:
    pattern: str
    size: int = 1 << 20
    count: int = 4
    prefetch: int = 1
    delay: float = 0.2
    fresh: float = 1.0
    direct: bool = False
    off: bool = False
    safe: bool = False
    verbose: bool = False
    ignored: list[str] = field(default_factory=list)
    given: list[str] = field(default_factory=list)  # options as the library reads them

    def text(self) -> str:
        """What the library understands in the same way."""
        return ":".join([self.pattern, *self.given])

    def be_safe(self) -> None:
        self.safe = True
        self.given.append("safe")

    def words(self) -> str:
        """What the rule does, for a person."""
        if self.off:
            return "left alone"
        text = (
            f"{self.count} buffers of {_bytes(self.size)}, "
            f"{self.prefetch} read ahead, written within {self.delay:g} s"
        )
        if self.safe:
            text += "; writes go to the file system at once"
        if self.direct:
            text += "; on FUSE, read past the page cache"
        return text + "".join(f"; {name}: {WITHOUT_MEANING[name]}" for name in self.ignored)


def _bytes(number: int) -> str:
    for shift, unit in ((30, "G"), (20, "M"), (10, "K")):
        if number % (1 << shift) == 0:
            return f"{number >> shift}{unit}"
    return str(number)


def parse(text: str) -> list[Rule]:
    """The rules of a text. Raises UsageError for what cannot be meant as written."""
    rules = [_rule(one.strip()) for one in text.split(",") if one.strip()]
    if not rules:
        raise UsageError("there is no rule of which files to buffer", hint=EXAMPLE)
    if len(rules) > RULES_MOST:
        raise UsageError(f"there are more than {RULES_MOST} rules of which files to buffer")
    return rules


def as_text(rules: list[Rule]) -> str:
    """The text of BRIGADE_BUFFER. Raises UsageError if the library has no room for it."""
    text = ",".join(rule.text() for rule in rules)
    if len(os.fsencode(text)) > TEXT_MOST:
        raise UsageError(f"the rules of which files to buffer have more than {TEXT_MOST} bytes")
    return text


def _rule(text: str) -> Rule:
    pattern, *options = text.split(":")
    if not pattern:
        raise UsageError(f"{text!r} has no pattern of file names", hint=EXAMPLE)
    if len(os.fsencode(pattern)) > PATTERN_MOST:
        raise UsageError(f"the pattern {pattern!r} has more than {PATTERN_MOST} bytes")
    rule = Rule(pattern)
    for option in options:
        _set(rule, option, text)
    return rule


def _set(rule: Rule, option: str, text: str) -> None:
    name, equals, value = option.partition("=")
    if name in WITHOUT_MEANING:
        rule.ignored.append(name)
    elif name in ("delay", "fresh"):
        setattr(rule, name, _seconds(option, value))
        rule.given.append(f"{name}={_seconds(option, value)!r}")
    elif name in VALUES or (name in ("prefetch", "direct") and equals):
        if not value:
            raise UsageError(f"{name!r} in {text!r} needs a value", hint=f"write it as {name}=4")
        found = number(value)
        setattr(rule, name, found != 0 if name == "direct" else found)
        rule.given.append(f"{name}={min(found, MOST)}")
    elif name == "prefetch":
        rule.prefetch = 1
        rule.given.append("prefetch=1")
    elif name in WORDS:
        setattr(rule, "safe" if name == "synchronous" else name, True)
        rule.given.append(name)
    else:
        known = [*VALUES, *WORDS, *WITHOUT_MEANING]
        close = difflib.get_close_matches(name, known, 1)
        raise UsageError(
            f"{option!r} in {text!r} is no option",
            hint=f"do you mean {close[0]}?" if close else f"options: {', '.join(VALUES + WORDS)}",
        )
    if not LEAST <= rule.size <= MOST:
        raise UsageError(f"{option!r} in {text!r}: a buffer has from 4K to 1G")
    if rule.count < 1:
        raise UsageError(f"{option!r} in {text!r}: a file has 1 buffer at least")


def _seconds(option: str, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < 1e6:
        raise UsageError(f"{option!r} has no number of seconds", hint="write it as delay=0.2")
    return seconds
