"""What a template leaves because the program is called otherwise than in the trial.

    digest(value)                   tells a value from others, and not what it is
    left(called, arguments, environ)    {module: why}; `called` is of the plan (fork/otherwise.py)

What must stay true: the rules of _brigade_view.py.
"""

import sys

_hash = sys.modules["_imp"].source_hash
_ARGUMENTS = "the trial had others"


def digest(words):
    """Of a list of texts."""
    return _hash(0, "\0".join(words).encode("utf-8", "surrogateescape")).hex()


def digest_of_value(value):
    """Of a variable's bytes; "" of one that is not there."""
    return "" if value is None else _hash(0, value).hex()


def left(called, arguments, environ):
    names, causes = called["names"], {}
    if not called["arguments"] or called["arguments"] != digest(arguments):
        late = "is imported when the program may have looked at its arguments"
        causes.update(dict.fromkeys(called["late"], f"{late}: {_ARGUMENTS}"))
        looking = "may look at the program's arguments"
        causes.update(dict.fromkeys(called["looking"], f"{looking}: {_ARGUMENTS}"))
    for name, (then, of_job, after, by) in called["variables"].items():
        now = digest_of_value(environ.get(name.encode("utf-8", "surrogateescape")))
        if now == then or now and then and of_job:
            continue
        why = f"variable {name}, which was otherwise in the trial"
        for number in range(after, len(names)):
            causes.setdefault(number, f"is imported after the program has read {why}")
        if not (now and then):
            for number in by:
                causes.setdefault(number, f"reads {why}")
    return {names[number]: why for number, why in _with_importers(called, causes).items()}


def _with_importers(called, causes):
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
            if number not in found:
                found[number] = f"imports {called['names'][one]}, which is left"
                front.append(number)
    return found
