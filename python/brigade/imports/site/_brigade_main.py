"""The program's own module and name while a template warms, as the program's imports find them.

    with_main(path, first_entry, blame)
                                for a while; what puts all back is returned. `path`: what `-m` was
                                found to be in the trial, "" if that is not known; `first_entry`:
                                what sys.path begins with; blame(why) of who asks `__main__` for
                                what it may have in the program alone

Python puts a script's name into `__main__` just before its first line, and the file of `-m MODULE`
into sys.argv, too: modules look there whether somebody sits at a prompt, and what to call the
program.

What must stay true: the rules of _brigade_view.py; afterwards all is as it was.
"""

import sys

from _brigade_common import working_folder

_ADDED = "__file__", "__cached__", "__getattr__"


def _file(path, first_entry):
    """What `__file__` will be; None if there will be none, "" if that is not known."""
    name = sys.argv[0] if sys.argv else ""
    if name in ("", "-", "-c"):
        return None
    if name == "-m":
        return path
    if first_entry == sys.modules["os"].path.abspath(name):
        return ""  # a folder or an archive: of what is in it
    return (
        name if name.startswith("/") or sys.version_info < (3, 9) else f"{working_folder()}/{name}"
    )


def with_main(path, first_entry, blame):
    main, file, name = sys.modules["__main__"], _file(path, first_entry), sys.argv[:1]

    def __getattr__(asked):
        if asked == "__file__" and file is not None or not asked.startswith("__"):
            blame(f"asks the program for {asked}")
        raise AttributeError(f"module '__main__' has no attribute {asked!r}")

    by_m, added = name == ["-m"], {"__getattr__": __getattr__}
    if file:
        cached = sys.modules["_frozen_importlib_external"]._get_cached(file) if by_m else None
        added.update(__file__=file, __cached__=cached)
    held = {key: main.__dict__[key] for key in _ADDED if key in main.__dict__}
    main.__dict__.update({key: value for key, value in added.items() if key not in held})
    if by_m and file:
        sys.argv[0] = file

    def put_back():
        sys.argv[:1] = name
        for key in _ADDED:
            if key not in held:
                main.__dict__.pop(key, None)

    return put_back
