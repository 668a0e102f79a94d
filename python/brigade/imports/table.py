"""Import tables: what a rank's import system needs to know, worked out once from the image.

    records --> Seen --+
                       +--> build() --> bytes: the index's Python section
    image   --> Tree --+

For every path entry that the trial searched (a string on `sys.path` or in a package's
`__path__`) a table says, by name, what `importlib.machinery.FileFinder` would find there: a
package, a module, an extension, a namespace portion, nothing, or "ask". The order of the
search is not in the table: each entry answers for itself, as in Python.

    section   = marshal({interpreter key: {path entry: blob}})
    blob      = marshal((folder, listed, mtime_ns, {name: kind | n << KIND_BITS}))
    folder    the path entry with its symbolic links resolved, a path of the image
    listed    a name that is not in the dict is known to be absent
    mtime_ns  of the folder, or -1
    n         SOURCE: bytes of the .pyc if it is valid and in the image; else SOURCE_ONLY if the
              source is in the image; else 0
              SOURCELESS: bytes of the .pyc if it is valid and in the image, else 0
              EXTENSION: 2 * number of the suffix + (1 if its bytes are in the image)

Blobs are decoded one by one, when a rank first searches their path entry. Marshal version 2 is
read by every CPython, so one section serves all interpreters of a job.

What must stay true: a table never says more than the image knows. Where the tree cannot tell
(a name that leads out of the image, a folder that was not listed) the kind is UNKNOWN, and the
rank asks the real file system through a real FileFinder. Whether a .pyc may be used is decided
here exactly as importlib decides it, for the interpreter of the job, not for this one.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from brigade.errors import TrialError

MARSHAL_VERSION = 2
KIND_BITS = 4

ABSENT = 0
UNKNOWN = 1
NAMESPACE = 2
SOURCE_MODULE = 3
SOURCE_PACKAGE = 4
EXTENSION_MODULE = 5
EXTENSION_PACKAGE = 6
SOURCELESS_MODULE = 7
SOURCELESS_PACKAGE = 8

SOURCE_ONLY = 1  # less than the size of any .pyc

SITE = Path(__file__).with_name("site")


class Tree(Protocol):
    """What the image will hold. Paths are absolute; existing ones may run through links.

    All answers are about what a rank will find under the staged folder; a tree that cannot tell
    answers None. `brigade.image.tree` has the one of an image.
    """

    def canonical(self, path: str) -> str | None:
        """`path` with every link followed, if it exists and the image has it; else None."""

    def is_dir(self, path: str) -> bool | None:
        """Of what `path` leads to: True for a folder, False for a regular file, None if the
        image does not know, or if it is neither."""

    def names(self, folder: str) -> Collection[str] | None:
        """All names that exist in a folder, or None when they are not all known."""

    def listed(self, folder: str) -> bool:
        """Whether `folder` is LISTED: its names are known and do not change in a job."""

    def stat(self, path: str) -> tuple[int, int]:
        """(mtime in ns, size) of what `path` leads to; only called where `is_dir` told."""

    def has_content(self, path: str) -> bool:
        """Whether the bytes of the file that `path` leads to go into the image."""

    def read(self, path: str) -> bytes:
        """The bytes of a file that has content."""


@dataclass(frozen=True)
class Interpreter:
    """What decides, besides the files, what an interpreter's import system finds."""

    executable: str
    cache_tag: str
    magic: bytes
    optimization: str
    extension_suffixes: tuple[str, ...]
    check_hash_pycs: str = "default"
    path: tuple[str, ...] = ()
    prefix: str = ""
    base_prefix: str = ""
    version: str = ""
    view: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def key(self) -> str:
        """Equal for interpreters that share a table; `_brigade_view.table_key` is its twin."""
        return "|".join(
            [
                self.magic.hex(),
                self.cache_tag,
                self.optimization,
                self.check_hash_pycs,
                *self.extension_suffixes,
            ]
        )

    @classmethod
    def from_json(cls, text: str) -> Interpreter:
        """From the `extra` field of an `interpreter` record."""
        try:
            d = json.loads(text)
            return cls(
                executable=d["executable"],
                cache_tag=d["cache_tag"],
                magic=bytes.fromhex(d["magic"]),
                optimization=d["optimization"],
                extension_suffixes=tuple(d["extension_suffixes"]),
                check_hash_pycs=d["check_hash_pycs"],
                path=tuple(d["path"]),
                prefix=d["prefix"],
                base_prefix=d["base_prefix"],
                version=d["version"],
                view=d.get("view", {}),
            )
        except (ValueError, KeyError, TypeError) as e:
            raise TrialError(
                f"the trial's record of a Python interpreter is damaged: {e}",
                hint="run the trial again (`brigade run --renew`)",
            ) from e

    def cached(self, source: str) -> str:
        """Where importlib looks for the .pyc of `source` (no PYTHONPYCACHEPREFIX)."""
        folder, name = source.rsplit("/", 1)
        stem = name[: -len(".py")]
        opt = f".opt-{self.optimization}" if self.optimization else ""
        return f"{folder}/__pycache__/{stem}.{self.cache_tag}{opt}.pyc"


@dataclass
class Seen:
    """What the import systems of a trial did: the sum of all its records."""

    interpreters: dict[str, Interpreter] = field(default_factory=dict)  # by key
    path_entries: dict[str, None] = field(default_factory=dict)  # ordered set
    names: set[str] = field(default_factory=set)  # every module name that was searched
    missing: set[str] = field(default_factory=set)  # those that no finder found
    origins: dict[str, str] = field(default_factory=dict)  # name -> spec.origin


def seen(records: Iterable[Sequence[str]]) -> Seen:
    """Sum up the records of kind `import`, `path-entry` and `interpreter`; others are ignored.

    A record is the contract's seven strings: kind, status, by, path, extra, time_ns, pid.
    """
    total = Seen()
    for kind, status, _by, path, extra, *_ in records:
        if kind == "import":
            total.names.add(path)
            if status != "0":
                total.missing.add(path)
            elif extra:
                total.origins[path] = extra
        elif kind == "path-entry":
            total.path_entries[path] = None
        elif kind == "interpreter":
            interpreter = Interpreter.from_json(extra)
            total.interpreters.setdefault(interpreter.key, interpreter)
    total.missing.difference_update(total.origins)
    return total


def build(tree: Tree, what: Seen) -> bytes:
    """The Python section of the index. Empty bytes if the trial saw no Python interpreter.

    A path entry for which `tree.canonical` answers None gets no table. For a folder that is not
    LISTED, only the names that `what` says were searched are in its table.
    """
    if not what.interpreters:
        return b""
    section: dict[str, dict[str, bytes]] = {}
    for key, interpreter in what.interpreters.items():
        tables = section[key] = {}
        for entry in what.path_entries:
            blob = _describe_entry(tree, interpreter, entry, what.names)
            if blob is not None:
                tables[entry] = marshal.dumps(blob, MARSHAL_VERSION)
    return marshal.dumps(section, MARSHAL_VERSION)


def _describe_entry(
    tree: Tree, interpreter: Interpreter, entry: str, searched: Collection[str]
) -> tuple[str, bool, int, dict[str, int]] | None:
    folder = tree.canonical(entry) if entry.startswith("/") else None
    if folder is None or not tree.is_dir(folder):
        return None
    names = tree.names(folder)
    if names is None:
        return None
    names = frozenset(names)
    listed = tree.listed(folder)
    stems = {name.split(".", 1)[0] for name in names}
    if listed:
        wanted: Iterable[str] = sorted(stems)
    else:
        wanted = sorted({name.rpartition(".")[2] for name in searched})
    table = {}
    for stem in wanted:
        kind = _find(tree, interpreter, folder, names, stem) if stem in stems else ABSENT
        if kind != ABSENT or not listed:
            table[stem] = kind
    return folder, listed, tree.stat(folder)[0], table


def _find(
    tree: Tree, interpreter: Interpreter, folder: str, names: Collection[str], stem: str
) -> int:
    """What FileFinder(folder) finds for `stem`, step by step as its find_spec does."""
    suffixes = [*interpreter.extension_suffixes, ".py", ".pyc"]
    namespace = False
    if stem in names:
        base = f"{folder}/{stem}"
        is_dir = tree.is_dir(base)
        inside = tree.names(base) if is_dir else ()
        if is_dir is None or inside is None:
            return UNKNOWN
        for number, suffix in enumerate(suffixes):
            if f"__init__{suffix}" in inside:
                path = f"{base}/__init__{suffix}"
                regular = tree.is_dir(path)
                if regular is None:
                    return UNKNOWN
                if regular is False:
                    return _describe_file(tree, interpreter, path, number, True)
        namespace = is_dir
    for number, suffix in enumerate(suffixes):
        if stem + suffix in names:
            path = f"{folder}/{stem}{suffix}"
            regular = tree.is_dir(path)
            if regular is None:
                return UNKNOWN
            if regular is False:
                return _describe_file(tree, interpreter, path, number, False)
    return NAMESPACE if namespace else ABSENT


def _describe_file(
    tree: Tree, interpreter: Interpreter, path: str, number: int, package: bool
) -> int:
    if path.endswith(".py"):
        kind, n = SOURCE_MODULE, _valid_pyc_bytes(tree, interpreter, path)
        if not n and tree.has_content(path):
            n = SOURCE_ONLY
    elif path.endswith(".pyc"):
        kind, n = SOURCELESS_MODULE, _valid_sourceless_bytes(tree, interpreter, path)
    else:
        kind, n = EXTENSION_MODULE, 2 * number + tree.has_content(path)
    return kind + package | n << KIND_BITS


def _valid_sourceless_bytes(tree: Tree, interpreter: Interpreter, path: str) -> int:
    if not tree.has_content(path):
        return 0
    data = tree.read(path)
    return len(data) if _flags(interpreter, data) is not None else 0


def _flags(interpreter: Interpreter, pyc: bytes) -> int | None:
    """The flags word of a .pyc that this interpreter can read; None if it cannot."""
    if len(pyc) <= 16 or pyc[:4] != interpreter.magic:
        return None
    flags = int.from_bytes(pyc[4:8], "little")
    return flags if flags <= 0b11 else None


def _valid_pyc_bytes(tree: Tree, interpreter: Interpreter, source: str) -> int:
    """Size of the .pyc that importlib would use for `source`, or 0 if it would compile."""
    cached = interpreter.cached(source)
    if tree.is_dir(cached) is not False or not tree.has_content(cached):
        return 0
    data = tree.read(cached)
    flags = _flags(interpreter, data)
    if flags is None:
        return 0
    if flags & 0b1:
        valid = _hash_is_valid(tree, interpreter, source, data, bool(flags & 0b10))
    else:
        mtime_ns, size = tree.stat(source)
        valid = data[8:16] == _uint32(mtime_ns // 10**9) + _uint32(size)
    return len(data) if valid else 0


def _uint32(value: int) -> bytes:
    return (value & 0xFFFFFFFF).to_bytes(4, "little")


def _hash_is_valid(
    tree: Tree, interpreter: Interpreter, source: str, pyc: bytes, checked: bool
) -> bool:
    mode = interpreter.check_hash_pycs
    if mode == "never" or (not checked and mode != "always"):
        return True
    if not tree.has_content(source):
        return False
    import _imp

    # importlib keys its SipHash with the magic number read as a little-endian word
    key = int.from_bytes(interpreter.magic, "little")
    return pyc[8:16] == _imp.source_hash(key, tree.read(source))


def package_entries(tree: Tree, folder: str) -> list[str]:
    """`folder` and every folder below it: the path entries of an image made without a trial."""
    found, todo = [], [folder]
    while todo:
        here = todo.pop()
        names = tree.names(here)
        if names is None:
            continue
        found.append(here)
        todo += [
            f"{here}/{name}"
            for name in sorted(names, reverse=True)
            if name.isidentifier() and name != "__pycache__" and tree.is_dir(f"{here}/{name}")
        ]
    return found


def site_files(what: Seen) -> dict[str, bytes]:
    """The view's folder `.brigade/python/`: relative path -> bytes.

    For every interpreter of the trial it holds compiled code too, as .pyc files that are never
    checked against their source, so that a rank compiles nothing.
    """
    files = {p.name: p.read_bytes() for p in sorted(SITE.glob("*.py"))}
    for interpreter in what.interpreters.values():
        header = interpreter.magic + _uint32(0b1) + bytes(8)
        for name, code in interpreter.view.items():
            if f"{name}.py" in files:
                path = interpreter.cached(f"/{name}.py").lstrip("/")
                files[path] = header + bytes.fromhex(code)
    return files
