"""What an import view shares with the job: its settings, its counters, and what has changed.

    hit(), miss()    add to this rank's slot of the job's state file (src/view/state.h)
    counted()        what they added up to
    changed()        asks the dirty bits that the preloaded library sets there
    touched_folders()   where they say that something has changed, or may have

What must stay true: the rules of _brigade_view.py. Counters are read and written without lock, for
figures that people read; a job without a state file is not counted, and nothing fails for it.
"""

import sys

_posix = sys.modules["posix"]
_open, _pread, _pwrite, _close = _posix.open, _posix.pread, _posix.pwrite, _posix.close
_now_ns = sys.modules["time"].time_ns
_READ = _posix.O_RDONLY | _posix.O_CLOEXEC
_READ_WRITE = _posix.O_RDWR | _posix.O_CLOEXEC

_HEADER_BYTES = 136  # of struct brg_index, as far as it is needed here
_ENTRY_BYTES, _KIND_OFFSET, _DIR = 144, 16, 2
_FLAGS_OFFSET, _HAS_CONTENT = 17, 1
# struct brg_state, struct brg_slot, struct brg_miss, and enum brg_miss_cause
_N_ENTRIES, _SLOTS_OFF, _DIRTY_OFF, _MISSES_OFF, _NEXT_MISS, _DIRTY_ANY = 20, 32, 40, 48, 60, 64
_MOVED, _UNSEEN = 2, 4  # of dirty_any: src/view/look.h
_FEW_CHANGED = 64
_SLOT_BYTES, _LAST_LOAD, _HITS, _MISSES = 128, 16, 32, 40
_MISS_BYTES, _MISS_PATH_BYTES = 256, 240
CAUSE_UNKNOWN_NAME, CAUSE_NO_CONTENT, CAUSE_CHANGED, CAUSE_STAGE = 0, 1, 2, 6
_CAUSES = {
    CAUSE_UNKNOWN_NAME: "not looked up in the trial",
    CAUSE_NO_CONTENT: "known, but its contents are not in the image",
    CAUSE_STAGE: "the staged copy could not be used",
}  # those that end a strict process
_TALLY_EVERY_NS, _PAUSE_NS = 20_000_000, 2_000_000_000


class Settings:
    """What this process was told; set once by start()."""

    root = ""  # <stage>/root
    index = ""  # <stage>/index
    state = ""  # the job's state file, or ""
    slot = 0
    interposed = False
    strict = False
    tables = {}
    details = ()
    pyc_suffix = ""


def read_number(data, at, width):
    return int.from_bytes(data[at : at + width], "little")


def word(value):
    return (value & 0xFFFFFFFF).to_bytes(4, "little")


class _Tally:
    """Look-ups that were answered and not yet added to this rank's slot."""

    hits = 0
    written_ns = 0
    startup_over = False


def hit():
    """Count an answer. The slot is written now and then: the count is short by a few at the end."""
    _Tally.hits += 1
    now = _now_ns()
    since = now - _Tally.written_ns
    if since < _TALLY_EVERY_NS:
        return
    if _Tally.written_ns and since > _PAUSE_NS:
        _Tally.startup_over = True
    hits, _Tally.hits, _Tally.written_ns = _Tally.hits, 0, now
    try:
        fd = _open(Settings.state, _READ_WRITE)
        try:
            slot = read_number(_pread(fd, 8, _SLOTS_OFF), 0, 8) + _SLOT_BYTES * Settings.slot
            _add(fd, slot + _HITS, hits, 8)
            if not _Tally.startup_over:
                _pwrite(fd, now.to_bytes(8, "little"), slot + _LAST_LOAD)
        finally:
            _close(fd)
    except OSError:
        _Tally.startup_over = True  # nobody counts any more


def counted():
    """(answers, {cause in words: misses}) of this rank's slot, with what is not yet in it."""
    try:
        fd = _open(Settings.state, _READ)
        try:
            slot = read_number(_pread(fd, 8, _SLOTS_OFF), 0, 8) + _SLOT_BYTES * Settings.slot
            data = _pread(fd, _SLOT_BYTES, slot)
        finally:
            _close(fd)
    except OSError:
        return _Tally.hits, {}
    words = {**_CAUSES, CAUSE_CHANGED: "changed or not to be trusted any more"}
    misses = {words[c]: read_number(data, _MISSES + 8 * c, 8) for c in sorted(words)}
    return _Tally.hits + read_number(data, _HITS, 8), {w: n for w, n in misses.items() if n}


def _add(fd, at, value, width):
    """Add to a counter of the state file; its value before."""
    before = read_number(_pread(fd, width, at), 0, width)
    _pwrite(fd, (before + value).to_bytes(width, "little"), at)
    return before


def miss(cause, path):
    """Count a look-up that goes to the real file system; what strict mode forbids ends here.

    The preloaded library, where there is one, sees the calls that follow, and counts those.
    """
    if Settings.interposed and cause != CAUSE_STAGE:
        return
    try:
        fd = _open(Settings.state, _READ_WRITE)
        try:
            header = _pread(fd, 72, 0)
            slot = read_number(header, _SLOTS_OFF, 8) + _SLOT_BYTES * Settings.slot
            _add(fd, slot + _MISSES + 8 * cause, 1, 8)
            number = _add(fd, _NEXT_MISS, 1, 4)
            if number < read_number(header, 16, 4):
                text = path.encode("utf-8", "surrogateescape")
                record = bytes((cause, 0)) + len(text).to_bytes(2, "little")
                record += b"import".ljust(12, b"\0") + text[-(_MISS_PATH_BYTES - 1) :]
                _pwrite(
                    fd,
                    record.ljust(_MISS_BYTES, b"\0"),
                    read_number(header, _MISSES_OFF, 8) + _MISS_BYTES * number,
                )
        finally:
            _close(fd)
    except OSError:
        pass  # a job without a state file is not counted
    if Settings.strict and cause in _CAUSES:
        sys.stderr.write(f"brigade: strict: import {path}: {_CAUSES[cause]}\n")
        sys.stderr.flush()
        _posix._exit(125)


def _find_entry(path):
    """(number, bytes) of the entry of `path` in the index, or None. Linear probing, FNV-1a
    (index.h)."""
    key = path.encode("utf-8", "surrogateescape")
    mixed = 0xCBF29CE484222325
    for byte in key:
        mixed = ((mixed ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    fd = _open(Settings.index, _READ)
    try:
        header = _pread(fd, _HEADER_BYTES, 0)
        buckets = read_number(header, 36, 4)
        entries_at, buckets_at, strings_at = (read_number(header, at, 8) for at in (56, 64, 104))
        for step in range(buckets):
            slot = (mixed + step) & (buckets - 1)
            number = read_number(_pread(fd, 4, buckets_at + 4 * slot), 0, 4)
            if number == 0xFFFFFFFF:
                return None
            entry = _pread(fd, _ENTRY_BYTES, entries_at + _ENTRY_BYTES * number)
            size = read_number(entry, 4, 4)
            if size == len(key) and _pread(fd, size, strings_at + read_number(entry, 0, 4)) == key:
                return number, entry
    finally:
        _close(fd)
    return None


def _entry_number(path):
    """The number of the entry of folder `path`, or None."""
    found = _find_entry(path)
    return found[0] if found and found[1][_KIND_OFFSET] == _DIR else None


def cause_of(staged):
    """Why the staged file `staged` could not be used: with --memory its contents may have been
    left out, which the tables do not know and the index does."""
    try:
        found = _find_entry(staged[len(Settings.root) :])
    except OSError:
        found = None
    left_out = found and not found[1][_FLAGS_OFFSET] & _HAS_CONTENT
    return CAUSE_NO_CONTENT if left_out else CAUSE_STAGE


def touched_folders():
    """(Folders in which something has changed, or of which a name has: all that the state's dirty
    bits name, and what those are in; whether more may have in the user's own, unseen.) None if that
    is not known, or of little use: a folder or link was moved, so that paths may lead elsewhere, or
    much has changed."""
    try:
        fd = _open(Settings.state, _READ)
        try:
            kinds = _pread(fd, 8, _DIRTY_ANY)
            if kinds == bytes(8):
                return frozenset(), False
            if not kinds or kinds[0] & _MOVED:
                return None
            size = (read_number(_pread(fd, 4, _N_ENTRIES), 0, 4) // 64 + 1) * 8
            bits = _pread(fd, size, read_number(_pread(fd, 8, _DIRTY_OFF), 0, 8))
        finally:
            _close(fd)
        dirty = read_number(bits, 0, size)
        if len(bits) != size or bin(dirty).count("1") > _FEW_CHANGED:
            return None
        numbers = []
        while dirty:
            numbers.append(dirty.bit_length() - 1)
            dirty ^= 1 << numbers[-1]
        paths = _paths_of(numbers)
    except OSError:
        return None
    folders = frozenset(paths) | {path.rpartition("/")[0] for path in paths}
    return folders, bool(kinds[0] & _UNSEEN)


def _paths_of(numbers):
    """The paths of entries of the index."""
    fd = _open(Settings.index, _READ)
    try:
        header = _pread(fd, _HEADER_BYTES, 0)
        entries_at, strings_at = read_number(header, 56, 8), read_number(header, 104, 8)
        strings = [_pread(fd, 8, entries_at + _ENTRY_BYTES * number) for number in numbers]
        return [
            _pread(fd, read_number(string, 4, 4), strings_at + read_number(string, 0, 4)).decode(
                "utf-8", "surrogateescape"
            )
            for string in strings
        ]
    finally:
        _close(fd)


_entry_numbers = {}


def changed(spelled, folder, package=None):
    """Whether the state's dirty bits name `folder`, or `package` in it; or `spelled`, by which the
    program knows the folder, may lead elsewhere since a link or a folder was moved.

    A change is marked on the entry and on its parent, so a folder's bit stands for its files.
    Unknown counts as changed.
    """
    try:
        fd = _open(Settings.state, _READ)
        try:
            kinds = _pread(fd, 8, _DIRTY_ANY)
            if kinds == b"\0\0\0\0\0\0\0\0":
                return False
            if not kinds or (kinds[0] & _MOVED and spelled != folder):
                return True
            bits_at = read_number(_pread(fd, 8, _DIRTY_OFF), 0, 8)
            for path in (folder, package) if package else (folder,):
                if path not in _entry_numbers:
                    _entry_numbers[path] = _entry_number(path)
                number = _entry_numbers[path]
                if number is None:
                    return True
                byte = _pread(fd, 1, bits_at + number // 8)
                if not byte or byte[0] >> number % 8 & 1:
                    return True
            return False
        finally:
            _close(fd)
    except OSError:
        return True
