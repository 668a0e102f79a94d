"""What a template leaves because the program is given something else than in the trial.

    digest(value)       tells a value from others, and not what it is
    left(called, arguments, environ, folder, warm)
                        {module: why}; `called` is of the plan (fork/otherwise.py), `folder` is
                        where the program works, `warm` are modules that the user has warm all
                        the same
    with_followers(called, left)    the same, of {module: why}, and who may read what those set

What must stay true: the rules of _brigade_view.py.
"""

import sys

from _brigade_common import read_whole

_posix = sys.modules["posix"]
_hash = sys.modules["_imp"].source_hash
_ARGUMENTS = "the trial had others"
_KIND, _REGULAR, _FOLDER = 0o170000, 0o100000, 0o040000
_WHOLE_BYTES = 1 << 20
_PRIME = 2**521 - 1


def digest(words):
    """Of a list of texts."""
    return _hash(0, "\0".join(words).encode("utf-8", "surrogateescape")).hex()


def digest_of_value(value):
    """Of a variable's bytes; "" of one that is not there."""
    return "" if value is None else _hash(0, value).hex()


def digest_of_file(path, opened):
    """As fork/inputs.py has it."""
    try:
        status = _posix.stat(path)
        kind = status.st_mode & _KIND
        if kind != _REGULAR:
            return "d" if kind == _FOLDER else "o"
        if not opened:
            return "f"
        if status.st_size > _WHOLE_BYTES:
            return f"{status.st_size} {status.st_mtime_ns}"
        data = read_whole(path)
    except OSError:
        return ""
    return f"{len(data)}:{int.from_bytes(data, 'little') % _PRIME:x}"


def left(called, arguments, environ, folder, warm):
    names, causes = called["names"], {}
    same = called["arguments"] and called["arguments"] == digest(arguments)
    if not same:
        late = "is imported when the program may have chosen by its arguments"
        causes.update(dict.fromkeys([*called["late"], *called["told"]], f"{late}: {_ARGUMENTS}"))
        looking = "may look at the program's arguments"
        causes.update(dict.fromkeys(called["looking"], f"{looking}: {_ARGUMENTS}"))
    for name, (then, of_job, chosen, by) in called["variables"].items():
        now = digest_of_value(environ.get(name.encode("utf-8", "surrogateescape")))
        if now == then or now and then and of_job:
            continue
        why = f"variable {name}, which was otherwise in the trial"
        for number in called["varied"] if chosen else ():
            causes.setdefault(number, f"is imported when the program may have chosen by {why}")
        if not (now and then):
            for number in by:
                causes.setdefault(number, f"reads {why}")
    if not causes.keys() >= set(called["late"]):
        changed = _another_file(called["files"], folder)
        for number in called["late"] if changed else ():
            causes.setdefault(number, f"is imported when the program may have chosen by {changed}")
    pinned = {number for number in causes if names[number] in warm}
    causes = {number: why for number, why in causes.items() if number not in pinned}
    return {names[number]: why for number, why in _with_importers(called, causes, warm).items()}


def with_followers(called, left):
    number = {name: number for number, name in enumerate(called["names"])}
    causes = {number[name]: why for name, why in left.items() if name in number}
    found = _with_importers(called, causes, ())
    return {**left, **{called["names"][number]: why for number, why in found.items()}}


def _another_file(files, folder):
    """What differs, in words, or ""."""
    if files is None:
        return "one of many files"
    for path, then in files:
        where = path if path.startswith("/") else f"{folder}/{path}"
        if digest_of_file(where, then[:1] not in ("", "d", "f", "o")) != then:
            return f"{path}, which was otherwise in the trial"
    return ""


def _with_importers(called, causes, warm):
    if not causes:
        return causes
    importers = {}
    for number, imports in enumerate(called["imports"]):
        for one in imports:
            importers.setdefault(one, []).append(number)
    found, front = dict(causes), list(causes)
    while front:
        one = front.pop()
        for number in importers.get(one, ()):
            if number not in found and called["names"][number] not in warm:
                found[number] = f"imports {called['names'][one]}, which is left"
                front.append(number)
    return found
