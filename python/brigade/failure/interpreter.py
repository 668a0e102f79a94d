"""A Python interpreter that does not come up, before any line of a script: its standard library is
not where it looks, or its environment has lost the Python that it was made with.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator

from brigade.failure.diagnosis import Diagnosis
from brigade.failure.evidence import Evidence, Suspect


def examine(suspect: Suspect, evidence: Evidence) -> Iterator[Diagnosis]:
    """Why the interpreter itself fails."""
    path = suspect.path
    status = evidence.status if suspect.status is None else suspect.status
    if path is None or status != 1:
        return
    python = path if _is_python(path) else of_script(path, suspect)
    if python is None:
        return
    for rule in (_home, _library_of_another):
        yield from rule(python, suspect)


def _is_python(path: str) -> bool:
    return re.fullmatch(r"python\d?(\.\d+)?", os.path.basename(path)) is not None


def of_script(path: str, suspect: Suspect) -> str | None:
    """The Python in a script's first line, if it is one."""
    try:
        _, python = suspect.script(path)
    except OSError:
        return None
    return python if python and _is_python(python) else None


def version_of(python: str) -> str | None:
    """3.11, from its names; None if they do not say."""
    for name in (python, os.path.realpath(python)):
        match = re.search(r"python(3\.\d+)", os.path.basename(name))
        if match:
            return match[1]
    return None


def _home(python: str, suspect: Suspect) -> Iterator[Diagnosis]:
    home, version = suspect.env.get("PYTHONHOME", ""), version_of(python)
    if not home or version is None:
        return
    prefix = home.split(":")[0]
    place = f"{prefix}/lib/python{version}"
    if os.path.isfile(f"{place}/os.py") or os.path.isfile(f"{prefix}/lib64/python{version}/os.py"):
        return
    there = sorted(
        os.path.basename(one) for one in glob.glob(f"{glob.escape(prefix)}/lib/python3*")
    )
    yield Diagnosis(
        "wrong-pythonhome",
        f"PYTHONHOME={home} has no standard library for {python} (Python {version})",
        [place],
        f"{', '.join(there)} in {prefix}/lib" if there else "",
        ["unset PYTHONHOME", "an environment needs no PYTHONHOME: activate it, or run its python"],
    )


def _library_of_another(python: str, suspect: Suspect) -> Iterator[Diagnosis]:
    """A standard library on PYTHONPATH, which then hides the interpreter's own."""
    version = version_of(python)
    if version is None:
        return
    for place in suspect.env.get("PYTHONPATH", "").split(":"):
        if not place or not os.path.isfile(os.path.join(place, "os.py")):
            continue
        theirs = re.search(r"python(3\.\d+)", place)
        if os.path.isfile(os.path.join(place, "site.py")) and theirs and theirs[1] != version:
            yield Diagnosis(
                "library-of-another-python",
                f"PYTHONPATH has {place}, the standard library of Python {theirs[1]}; "
                f"{python} is Python {version}",
                mend=[
                    "unset PYTHONPATH, or take that entry out of it",
                    f"or run python{theirs[1]}",
                ],
            )
            return


def gone(path: str, root: str) -> Diagnosis:
    """The environment `root`, whose `path` leads to an interpreter that is not there any more."""
    home = settings(root).get("home", "?")
    version = settings(root).get("version_info") or settings(root).get("version", "")
    return Diagnosis(
        "environment-without-python",
        f"{path} leads to {os.path.join(home, 'python3')}, which is not there: "
        f"the Python that the environment {root} was made with is gone",
        closest="",
        mend=[
            f"load the module that was loaded when it was made (Python {version})".replace(
                " ()", ""
            ),
            f"or make it anew: python3 -m venv --upgrade {root}, and install its packages again",
        ],
    )


def settings(root: str) -> dict[str, str]:
    """What `pyvenv.cfg` says."""
    found = {}
    try:
        with open(os.path.join(root, "pyvenv.cfg"), encoding="utf-8", errors="replace") as text:
            for line in text:
                key, equals, value = line.partition("=")
                if equals:
                    found[key.strip().lower()] = value.strip()
    except OSError:
        pass
    return found
