"""Python extension modules that ld.so does not load: a library or a symbol is missing.

What a `dlopen` of each would search and find is worked out with everything that the interpreter
itself is loaded with.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from brigade.elf import closure
from brigade.elf import file as elf_file
from brigade.elf.closure import Closure
from brigade.elf.file import NotElf
from brigade.failure import closest, libraries
from brigade.failure.diagnosis import Diagnosis
from brigade.failure.evidence import Suspect

_MOST_S = 0.4
# What packages say that open their libraries themselves, before ld.so is asked for them.
_OPENS_ITSELF = re.compile(rb"CDLL\(|\bLoadLibrary|setdlopenflags\(|RTLD_GLOBAL|preload_")
_LIBRARY = re.compile(r"ImportError: (\S+\.so[.\d]*): cannot open shared object file")


def examine(
    found: list[dict[str, Any]], python: str, suspect: Suspect, said: str
) -> Iterator[Diagnosis]:
    """The first extension module that cannot be loaded. `found`: those that must be imported."""
    try:
        elf = elf_file.read(os.path.realpath(python))
    except (OSError, NotElf):
        return
    search = libraries.search_for(elf, suspect)
    if search is None:
        return
    whole = closure.close(elf, search)
    defined: set[str] | None = None
    patience = closest.Patience(_MOST_S)
    for one in found:
        if patience.is_over:
            return
        try:
            loaded = closure.close(elf_file.read(one["path"]), search, whole)
        except NotElf as error:
            yield _no_extension(one, str(error))
            return
        except OSError:
            continue
        if _opens_itself(one["path"]) and not _said_so(loaded, said):
            continue
        defined = whole.defined() if defined is None else defined
        new = Closure(loaded.objects[len(whole.objects) :])
        for diagnosis in libraries.lacks(loaded, search, partial(new.undefined, defined)):
            file, line = one["steps"][-1]
            diagnosis.what += f"; {one['name']} is imported by {file}:{line}"
            yield diagnosis
            return


def _said_so(loaded: Closure, said: str) -> bool:
    """Whether its absence was what the program ended with."""
    return bool({one.name for one in loaded.missing} & set(_LIBRARY.findall(said)))


def _opens_itself(path: str) -> bool:
    """Whether a package around an extension module looks as if it opened libraries itself."""
    folder = os.path.dirname(path)
    while os.path.isfile(f"{folder}/__init__.py"):
        for name in ("__init__.py", "_distributor_init.py"):
            try:
                with open(f"{folder}/{name}", "rb") as source:
                    text = source.read()
            except OSError:
                continue
            if _OPENS_ITSELF.search(text):
                return True
        folder = os.path.dirname(folder)
    return False


def _no_extension(one: dict[str, Any], why: str) -> Diagnosis:
    file, line = one["steps"][-1]
    return Diagnosis(
        "no-library",
        f"{one['path']}, which {file}:{line} imports, is {why}",
        mend=["install its package again: was the disk full?"],
    )
