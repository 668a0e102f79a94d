"""What an ELF file says of itself: its machine, what it needs, and where to look for that.

Read with `pread` from the program headers on, as ld.so does; sections are not looked at. Files of
every class, byte order and machine are read, because the wrong one is a thing to be told.

What must stay true: nothing that stands in a file is believed to be in bounds; a file that is no
ELF file, or ends too early, is a `NotElf` that says so.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

# Numbers of e_machine that a cluster may meet, as `uname -m` says them.
MACHINES = {
    3: "i386", 8: "mips", 20: "ppc", 21: "ppc64", 22: "s390x", 40: "arm", 62: "x86_64",
    183: "aarch64", 243: "riscv64", 258: "loongarch64",
}  # fmt: skip
NODEFLIB = 0x800  # of flags_1: neither the cache's system directories nor the default path
INITFIRST = 0x20  # of flags_1: its constructors run before those of all others
_DF_1_NOW, _DF_BIND_NOW = 0x1, 0x8
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP, _PT_NOTE, _PT_GNU_PROPERTY = 1, 2, 3, 4, 0x6474E553
_NEEDED, _HASH, _STRTAB, _SYMTAB, _STRSZ, _SONAME, _RPATH = 1, 4, 5, 6, 10, 14, 15
_BIND_NOW, _INIT_ARRAYSZ, _RUNPATH, _FLAGS, _GNU_HASH = 24, 27, 29, 30, 0x6FFFFEF5
_VERSYM, _FLAGS_1 = 0x6FFFFFF0, 0x6FFFFFFB
_VERDEF, _VERDEFNUM, _VERNEED, _VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
_VER_WEAK = 2
_MOST_BYTES = 256 << 20  # of one table
_MOST_ENTRIES = 100_000  # of a chain of versions


class NotElf(ValueError):
    """The file is there, and no ELF file that could be loaded: the text says what it is."""


class Symbol(NamedTuple):
    """One name of the dynamic symbol table."""

    name: str
    version: str  # "" if it has none
    defined: bool
    weak: bool


@dataclass
class ElfFile:
    """One file. Lists are in the file's order."""

    path: str
    cls: int  # 32 or 64
    machine: str  # as `uname -m` says it, or "machine N"
    little: bool = True
    kind: int = 3  # e_type: 2 is an executable, 3 a library or a program that may lie anywhere
    interpreter: str | None = None
    dynamic: bool = False
    needed: list[str] = field(default_factory=list)
    soname: str | None = None
    rpath: str | None = None
    runpath: str | None = None
    versions_needed: dict[str, list[str]] = field(default_factory=dict)  # soname -> versions
    versions_defined: list[str] = field(default_factory=list)  # without the file's own name
    bind_now: bool = False
    flags_1: int = 0
    mapped_bytes: int = 0  # of address space that it takes
    constructors: int = 0  # entries of its table of them
    isa_level: int = 0  # of x86-64-v1 … v4 that its GNU property asks for; 0: it does not say

    def symbols(self) -> Iterator[Symbol]:
        """The dynamic symbols; the file is read again. Raises OSError or NotElf."""
        with _Reader(self.path) as reader:
            yield from reader.symbols()

    def undefined(self) -> list[Symbol]:
        """The names that another file has to define, without weak ones."""
        return [one for one in self.symbols() if not one.defined and not one.weak]

    def may_name(self, name: str) -> bool:
        """Whether a dynamic symbol may have that name; quick. Raises OSError or NotElf."""
        with _Reader(self.path) as reader:
            return reader.has_string(os.fsencode(name))


def read(path: str) -> ElfFile:
    """What `path` says of itself. Raises OSError, or NotElf."""
    with _Reader(path) as reader:
        return reader.file()


class _Reader:
    """An open ELF file. `dyn` maps a tag to its first value."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            self._header()
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def _bytes(self, size: int, offset: int) -> bytes:
        """At most so many; none where no file reaches."""
        if offset >= 1 << 62:
            return b""
        return os.pread(self._fd, min(size, _MOST_BYTES), offset)

    def _header(self) -> None:
        ident = self._bytes(64, 0)
        if len(ident) == 0:
            raise NotElf("an empty file")
        if ident[:4] != b"\x7fELF":
            raise NotElf("not an ELF file")
        if len(ident) < 52 or ident[4] not in (1, 2) or ident[5] not in (1, 2):
            raise NotElf("an ELF file with a damaged header")
        self.cls = 32 * ident[4]
        self.little = ident[5] == 1
        self._end = "<" if self.little else ">"
        self._word, self._word_bytes = ("I", 4) if self.cls == 32 else ("Q", 8)
        kind, machine = self._unpack("HH", ident, 16)
        self.kind, self.machine = kind, MACHINES.get(machine, f"machine {machine}")
        place, sizes = (28, 42) if self.cls == 32 else (32, 54)
        (offset,) = self._unpack(self._word, ident, place)
        size, number = self._unpack("HH", ident, sizes)
        self._segments = list(self._program_headers(offset, size, number))
        reach = max((s.offset + s.filesz for s in self._segments if s.kind == _PT_LOAD), default=0)
        there = os.fstat(self._fd).st_size
        if reach > there:
            raise NotElf(f"cut off: {there:,} bytes of at least {reach:,}")
        self.tags = list(self._dynamic())
        self.dyn: dict[int, int] = {}
        for tag, value in self.tags:
            self.dyn.setdefault(tag, value)
        self._strings = self._table(_STRTAB, self.dyn.get(_STRSZ, 0))

    def _unpack(self, form: str, data: bytes, at: int = 0) -> tuple[int, ...]:
        try:
            return struct.unpack_from(self._end + form, data, at)
        except struct.error as error:
            raise NotElf("cut off: a table ends too early") from error

    def _program_headers(self, offset: int, size: int, number: int) -> Iterator[_Segment]:
        table = self._bytes(size * number, offset)
        for i in range(number):
            if self.cls == 64:
                kind, _, off, vaddr, _, filesz, memsz = self._unpack("IIQQQQQ", table, i * size)
            else:
                kind, off, vaddr, _, filesz, memsz = self._unpack("IIIIII", table, i * size)
            yield _Segment(kind, off, vaddr, filesz, memsz)

    def _of(self, *kinds: int) -> Iterator[bytes]:
        for segment in self._segments:
            if segment.kind in kinds:
                yield self._bytes(segment.filesz, segment.offset)

    def _dynamic(self) -> Iterator[tuple[int, int]]:
        step = 2 * self._word_bytes
        for table in self._of(_PT_DYNAMIC):
            for at in range(0, len(table) - step + 1, step):
                tag, value = self._unpack(2 * self._word, table, at)
                if tag == 0:
                    return
                yield tag, value

    def _at(self, address: int, size: int) -> bytes:
        """`size` bytes of what will lie at an address, fewer at the end of its segment."""
        for segment in self._segments:
            inside = address - segment.vaddr
            if segment.kind == _PT_LOAD and 0 <= inside < segment.filesz:
                return self._bytes(min(size, segment.filesz - inside), segment.offset + inside)
        return b""

    def _table(self, tag: int, size: int) -> bytes:
        return self._at(self.dyn[tag], size) if tag in self.dyn else b""

    def _text(self, at: int) -> str:
        end = self._strings.find(b"\0", at)
        return os.fsdecode(self._strings[at : end if end >= 0 else None])

    def has_string(self, ending: bytes) -> bool:
        """Whether a string of the dynamic ones ends so: linkers let strings share their ends."""
        return ending + b"\0" in self._strings

    def file(self) -> ElfFile:
        def text(tag: int) -> str | None:
            return self._text(self.dyn[tag]) if tag in self.dyn else None

        interpreter = next(self._of(_PT_INTERP), None)
        flags_1 = self.dyn.get(_FLAGS_1, 0)
        return ElfFile(
            path=self.path,
            cls=self.cls,
            machine=self.machine,
            little=self.little,
            kind=self.kind,
            interpreter=None if interpreter is None else os.fsdecode(interpreter.rstrip(b"\0")),
            dynamic=bool(self.tags),
            needed=[self._text(value) for tag, value in self.tags if tag == _NEEDED],
            soname=text(_SONAME),
            rpath=text(_RPATH),
            runpath=text(_RUNPATH),
            versions_needed=self._versions_needed(),
            versions_defined=[name for index, name in self._defined_versions() if index != 1],
            bind_now=_BIND_NOW in self.dyn
            or bool(self.dyn.get(_FLAGS, 0) & _DF_BIND_NOW)
            or bool(flags_1 & _DF_1_NOW),
            flags_1=flags_1,
            mapped_bytes=self._mapped_bytes(),
            constructors=self.dyn.get(_INIT_ARRAYSZ, 0) // (self.cls // 8),
            isa_level=max(
                (self._isa_level(note) for note in self._of(_PT_GNU_PROPERTY)), default=0
            ),
        )

    def _mapped_bytes(self) -> int:
        loads = [one for one in self._segments if one.kind == _PT_LOAD]
        ends = [one.vaddr + one.memsz for one in loads]
        return max(ends, default=0) - min((one.vaddr for one in loads), default=0)

    def _chain(self, tag: int, number: int, head: str) -> Iterator[tuple[int, tuple[int, ...]]]:
        """(address, fields) of a chain whose members' last field leads to the next one."""
        address = self.dyn.get(tag, 0)
        for _ in range(min(self.dyn.get(number, 0), _MOST_ENTRIES)):
            fields = self._unpack(head, self._at(address, struct.calcsize("<" + head)))
            yield address, fields
            if not fields[-1]:
                return
            address += fields[-1]

    def _auxiliary(self, address: int, number: int) -> Iterator[tuple[int, int, str]]:
        """(flags, index, name) of the versions that are wanted of one file."""
        for _ in range(min(number, _MOST_ENTRIES)):
            _, flags, index, name, following = self._unpack("IHHII", self._at(address, 16))
            yield flags, index, self._text(name)
            if not following:
                return
            address += following

    def _versions_needed(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for address, (_, number, file, first, _) in self._chain(_VERNEED, _VERNEEDNUM, "HHIII"):
            wanted = self._auxiliary(address + first, number)
            names = [name for flags, _, name in wanted if not flags & _VER_WEAK]
            found.setdefault(self._text(file), []).extend(names)
        return found

    def _defined_versions(self) -> Iterator[tuple[int, str]]:
        for address, fields in self._chain(_VERDEF, _VERDEFNUM, "HHHHIII"):
            (name,) = self._unpack("I", self._at(address + fields[5], 4))
            yield fields[2], self._text(name)

    def symbols(self) -> Iterator[Symbol]:
        names = dict(self._defined_versions())
        for address, (_, number, _, first, _) in self._chain(_VERNEED, _VERNEEDNUM, "HHIII"):
            names.update(
                (index, name) for _, index, name in self._auxiliary(address + first, number)
            )
        number = self._n_symbols()
        step = 24 if self.cls == 64 else 16
        table = self._table(_SYMTAB, number * step)
        versions = self._table(_VERSYM, number * 2)
        for i in range(1, len(table) // step):
            if self.cls == 64:
                name, info, _, section = self._unpack("IBBH", table, i * step)
            else:
                name, _, _, info, _, section = self._unpack("IIIBBH", table, i * step)
            if info >> 4 not in (1, 2, 10):  # global, weak, unique
                continue
            index = self._unpack("H", versions, i * 2)[0] & 0x7FFF if versions else 0
            version = names.get(index, "") if index > 1 else ""
            yield Symbol(self._text(name), version, section != 0, info >> 4 == 2)

    def _n_symbols(self) -> int:
        """How many dynamic symbols there are; only the hash tables say it."""
        if _HASH in self.dyn:
            return self._unpack("II", self._at(self.dyn[_HASH], 8))[1]
        if _GNU_HASH not in self.dyn:
            return 0
        address = self.dyn[_GNU_HASH]
        buckets, first, bloom, _ = self._unpack("IIII", self._at(address, 16))
        address += 16 + bloom * self._word_bytes
        table = self._at(address, 4 * buckets)
        last = max(self._unpack(f"{len(table) // 4}I", table), default=0)
        if last < first:
            return first
        chain = address + 4 * buckets
        while True:
            block = self._at(chain + 4 * (last - first), 4)
            if not block or self._unpack("I", block)[0] & 1:
                return last + 1
            last += 1

    def _isa_level(self, note: bytes) -> int:
        """The x86-64 level of a .note.gnu.property: bits of GNU_PROPERTY_X86_ISA_1_NEEDED."""
        if len(note) < 16 or self.machine != "x86_64":
            return 0
        name_size, size, kind = self._unpack("III", note)
        at, end = 12 + name_size, min(12 + name_size + size, len(note))
        while kind == 5 and at + 12 <= end:
            what, length, value = self._unpack("III", note, at)
            if what == 0xC0008002:
                return value.bit_length()
            at += 8 + (length + 7 & ~7)
        return 0


class _Segment(NamedTuple):
    kind: int
    offset: int
    vaddr: int
    filesz: int
    memsz: int
