"""What `brigade image` prints: facts about an image, lines of a listing, lines of a comparison."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from brigade.errors import UsageError
from brigade.image import compare
from brigade.image.layout import ABSENT, FILE, KIND_NAMES, Entry
from brigade.image.reader import Image
from brigade.printable import is_terminal, printable
from brigade.trial.summary import Difference, told

_META_SHOWN = (("program", "for"), ("created", "made"), ("host", "made on"), ("brigade", "made by"))


def describe(image: Image) -> dict[str, Any]:
    """Everything `brigade image info` says, ready for JSON."""
    kinds: Counter[str] = Counter()
    listed = held = held_bytes = 0
    for entry in image.entries():
        kinds[entry.kind_name] += 1
        listed += entry.listed
        if entry.content is not None:
            held += 1
            held_bytes += entry.size
    return {
        "file": os.path.abspath(image.path),
        "id": image.id,
        "format": image.version,
        "bytes": image.total_bytes,
        "index_bytes": image.index_bytes,
        "raw_bytes": image.raw_bytes,
        "block_bytes": image.block_bytes,
        "blocks": image.n_blocks,
        "entries": {name: kinds[name] for name in KIND_NAMES.values() if kinds[name]},
        "listed": listed,
        "files_held": held,
        "files_held_bytes": held_bytes,
        "contents": image.n_contents,
        "answers": image.n_answers,
        "import_table_bytes": len(image.python_table),
        "roots": image.roots,
        "meta": image.meta,
    }


def print_facts(facts: dict[str, Any]) -> None:
    """The facts as a table on standard output. Only a terminal has a width: elsewhere each fact is
    one line, which a program can search."""
    rows = [(label, printable(text)) for label, text in _rows(facts)]
    if not is_terminal(sys.stdout):
        room = max(len(label) for label, _ in rows)
        print("\n".join(f"{label:{room}}  {text}".rstrip() for label, text in rows))
        return
    from rich.table import Table
    from rich.text import Text

    from brigade.console import make_console

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in rows:
        table.add_row(label, Text(text))
    make_console(highlight=False).print(table)


def _rows(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    meta = facts["meta"]
    yield "file", facts["file"]
    yield "id", facts["id"]
    yield "size", f"{_size(facts['bytes'])}, of which the index {_size(facts['index_bytes'])}"
    yield "entries", ", ".join(f"{n} {name}" for name, n in facts["entries"].items()) or "none"
    yield "listed folders", str(facts["listed"])
    yield "files with contents", f"{facts['files_held']}, {_size(facts['files_held_bytes'])}"
    yield "stored", _stored(facts)
    if meta.get("bare"):
        yield "other contents", "none: files are opened where they lie (brigade run --fork -n N)"
    yield "ld.so's answers", str(facts["answers"])
    yield "import tables", _size(facts["import_table_bytes"])
    for root in facts["roots"] or ["nothing"]:
        yield "answers for", root
    for key, label in _META_SHOWN:
        value = meta.get(key)
        if value:
            yield label, " ".join(map(str, value)) if isinstance(value, list) else str(value)
    found = [Difference(**one) for one in meta.get("trial", {}).get("differences", ())]
    for line in told(found):
        yield "the trial's ranks", line


def _stored(facts: dict[str, Any]) -> str:
    text = f"{facts['contents']} contents, {_size(facts['raw_bytes'])}"
    if facts["blocks"]:
        share = facts["bytes"] / facts["raw_bytes"]
        text += f" in {facts['blocks']} blocks of {_size(facts['block_bytes'])}"
        text += f"; the file is {share:.0%} of that"
    return text


def _size(number: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"


def select(image: Image, kinds: Iterable[str], paths: tuple[str, ...]) -> list[Entry]:
    """The entries of these kinds, at or below one of the paths if there are any."""
    wanted = set(kinds)
    tops = []
    for path in paths:
        if not os.path.isabs(path):
            raise UsageError(f"{path} is not absolute", hint="an image knows absolute paths only")
        tops.append(os.path.normpath(path).rstrip("/") + "/")
    chosen = [entry for entry in image.entries() if entry.kind_name in wanted]
    if not tops:
        return chosen
    return [entry for entry in chosen if any((entry.path + "/").startswith(top) for top in tops)]


def entry_line(entry: Entry) -> str:
    """One line of a listing."""
    path = printable(entry.path)
    if entry.kind == ABSENT:
        return f"-- {_error_name(entry.err)} {path}"
    holds = ("C" if entry.content is not None else "-") + ("L" if entry.listed else "-")
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.mtime_ns // 10**9))
    owner = f"{entry.uid:>5} {entry.gid:>5}"
    line = f"{holds} {stat.filemode(entry.mode)} {owner} {entry.size:>12} {when} {path}"
    return f"{line} -> {printable(entry.target)}" if entry.target else line


def entry_facts(image: Image, entry: Entry) -> dict[str, Any]:
    """One entry of a listing, ready for JSON."""
    facts: dict[str, Any] = {"path": entry.path, "kind": entry.kind_name, "order": entry.order}
    if entry.kind == ABSENT:
        return {**facts, "error": _error_name(entry.err)}
    facts.update(
        mode=entry.mode, uid=entry.uid, gid=entry.gid, size=entry.size, mtime_ns=entry.mtime_ns
    )
    if entry.target:
        facts["target"] = entry.target
    if entry.kind == FILE:
        content = entry.content
        facts["content"] = None if content is None else image.content(content).hash
    else:
        facts["listed"] = entry.listed
    return facts


def difference_lines(difference: compare.Difference) -> Iterator[tuple[str, str | None]]:
    """Lines of a comparison, each with its colour."""
    for root in difference.roots_removed:
        yield f"- covered root {printable(root)}", "red"
    for root in difference.roots_added:
        yield f"+ covered root {printable(root)}", "green"
    for path in difference.removed:
        yield f"- {printable(path)}", "red"
    for path in difference.added:
        yield f"+ {printable(path)}", "green"
    for change in difference.changed:
        what = ", ".join(f"{name} {old} -> {new}" for name, old, new in change.what)
        yield f"~ {printable(change.path)}: {printable(what)}", "yellow"
    if difference.answers:
        yield f"~ {difference.answers} of ld.so's answers are in one image only", "yellow"
    if difference.import_tables:
        yield "~ the import tables differ", "yellow"
    yield summary(difference), None


def summary(difference: compare.Difference) -> str:
    """The last line of a comparison."""
    if not difference:
        return "both images give the same answers"
    return (
        f"{len(difference.removed)} only in the first, {len(difference.added)} only in the second, "
        f"{len(difference.changed)} changed"
    )


def _error_name(number: int) -> str:
    return errno.errorcode.get(number, str(number))
