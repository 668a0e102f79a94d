"""Searches that neither the dynamic loader nor Python's import system makes: a program in PATH,
locales and terminals, an interpreter's search for its own prefix; and what is left, as "other".

The rules stand in one table, each with its reason. They look at one call, its path and what the
process may search, so that a call is counted under one cause whatever came before it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Callable, NamedTuple

from brigade.profile.story import Search, Story
from brigade.profile.variables import folders
from brigade.trace.events import Event, TracedProcess

_LOCALE = re.compile(
    r".*/(?:locale(?:-archive|-langpack|\.alias)?|LC_[A-Z]+|gconv|gconv-modules(?:\.cache|\.d)?"
    r"|terminfo|nls|i18n)(?:/.*)?|.*\.mo"
)
_PREFIX = re.compile(
    r".*/(?:pyvenv\.cfg|pybuilddir\.txt|Setup\.local|python\d*\._pth|lib/python\d[\d.]*/os\.pyc?"
    r"|lib-dynload)"
)
_SITE = re.compile(r".*/(?:site-packages|dist-packages)|.*\.pth")
_LOADER = re.compile(r"/etc/ld\.so\.[a-z.]+|.*/lib[^/]*\.so[.\d]*")


class Reason(NamedTuple):
    cause: str  # of brigade.profile.profile.CAUSES
    place: str
    owner: str


def in_path(process: TracedProcess, event: Event) -> Reason | None:
    """A program is looked for: exec, or a shell's own stat, in a folder of PATH."""
    folder = os.path.dirname(event.path)
    if event.kind not in ("exec", "stat") or not folder:
        return None
    told = folders("PATH", process.env.get("PATH", ""), process.cwd)
    if os.path.normpath(folder) in told or (event.kind == "exec" and event.error):
        return Reason("PATH", folder, "PATH")
    return None


def in_links(process: TracedProcess, event: Event) -> Reason | None:
    """A path is resolved folder by folder: what is no link answers with an error."""
    if event.kind != "link" or not event.error:
        return None
    return Reason("other", os.path.dirname(event.path), "resolving links")


def in_locale(process: TracedProcess, event: Event) -> Reason | None:
    """The C library looks for the files of LANG and LC_*, of iconv, of TERM."""
    if not _LOCALE.fullmatch(event.path):
        return None
    kind = "TERM" if "/terminfo" in event.path else "iconv" if "gconv" in event.path else "LANG"
    return Reason("locale", os.path.dirname(event.path), kind)


def in_prefix(process: TracedProcess, event: Event) -> Reason | None:
    """Python looks for its own folder before it can import anything."""
    if not _PREFIX.fullmatch(event.path):
        return None
    return Reason("other", os.path.dirname(event.path), "python's search for its prefix")


def in_site(process: TracedProcess, event: Event) -> Reason | None:
    """Python's `site` tries folders of packages and reads their .pth files."""
    if not _SITE.fullmatch(event.path):
        return None
    folder = event.path if not event.path.endswith(".pth") else os.path.dirname(event.path)
    return Reason("sys.path", folder, "site")


def in_loader(process: TracedProcess, event: Event) -> Reason | None:
    """ld.so's own files, and libraries that a program looks for by itself."""
    if not _LOADER.fullmatch(event.path):
        return None
    if event.path == "/etc/ld.so.cache":
        return Reason("ld.so.cache", event.path, "ld.so")
    owner = "ld.so" if event.path.startswith("/etc/ld.so.") else "the program"
    return Reason("other", os.path.dirname(event.path), owner)


RULES: tuple[Callable[[TracedProcess, Event], Reason | None], ...] = (
    in_path,
    in_links,
    in_locale,
    in_prefix,
    in_site,
    in_loader,
)


def explain(story: Story) -> None:
    """Gives every call by path that nobody has claimed its cause, if it has one; a failed one has
    one always. A program that is started becomes a search."""
    for index, event in enumerate(story.process.events):
        if event.by_fd or story.marks[index].cause or (story.claimed(index) and not event.error):
            continue
        reason = next((r for rule in RULES for r in [rule(story.process, event)] if r), None)
        if reason is None and event.error:
            owner = os.path.basename(story.process.exe) or "the program"
            reason = Reason("other", os.path.dirname(event.path), owner)
        if reason is None:
            continue
        mark = story.marks[index]
        mark.cause, mark.place, mark.owner = reason
        mark.sought = os.path.basename(event.path)
    _programs(story)


def _programs(story: Story) -> None:
    """Each exec is a search: the tries that failed in PATH belong to the one that worked."""
    pending: list[int] = []
    for index, event in enumerate(story.process.events):
        mark = story.marks[index]
        if mark.cause != "PATH":
            continue
        if pending and story.marks[pending[0]].sought != mark.sought:
            _close(story, pending, "")
            pending = []
        pending.append(index)
        if event.kind == "exec" and not event.error:
            _close(story, pending, event.path)
            pending = []
    if pending:
        _close(story, pending, "")


def _close(story: Story, events: list[int], found: str) -> None:
    """A search out of calls whose marks have their causes already."""
    worked = [i for i in events if not story.process.events[i].error]
    found = found or (story.process.events[worked[-1]].path if worked else "")
    search = Search("process", story.marks[events[0]].sought, "exec", story.process.exe, found)
    search.events = list(events)
    number = story.open_search(search)
    for index in events:
        story.marks[index].search = number


def join_images(stories: Sequence[Story]) -> None:
    """An exec that works is the first call of the new image: the tries in PATH that came before, in
    the image before, were for it."""
    before: dict[tuple[str, int], Story] = {}
    for story in sorted(stories, key=lambda one: one.process.start_ns):
        key = (story.process.host, story.process.pid)
        old, before[key] = before.get(key), story
        first = story.process.events[0] if story.process.events else None
        own = next((search for search in story.searches if search.kind == "program"), None)
        if old is None or first is None or first.kind != "exec":
            continue
        if own is not None:
            own.asker = old.process.exe
        folder, _, name = first.path.rpartition("/")
        tries = [search for search in old.searches if search.kind == "process"]
        if tries and not tries[-1].found and tries[-1].name == name:
            tries[-1].found = first.path
            mark = story.marks[0]
            mark.cause, mark.place, mark.owner = "PATH", folder, "PATH"
