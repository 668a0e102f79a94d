"""A Python script that imports what cannot be imported.

The script's own interpreter is asked (`asks_python.py`, which executes nothing of the user's); what
it does not find is explained here: a name that is alike, the environment that has it, the package
of another name, the file that hides it, the library that an extension module lacks.
"""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from brigade.failure import closest, extensions, interpreter
from brigade.failure.diagnosis import Diagnosis
from brigade.failure.evidence import Evidence, Suspect
from brigade.failure.packages import PIP

_ASKS = os.path.join(os.path.dirname(__file__), "asks_python.py")
_WALK_S = 0.7
_ANSWER_S = 5.0
_START_S = 600.0  # later than that, the script may be another one by now
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_RUN_NO_MODULE = re.compile(r": No module named ([\w.]+)$", re.MULTILINE)
_RUNS_A_SCRIPT = ("mpi4py", "mpi4py.run", "mpi4py.futures")
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")


@dataclass
class Script:
    """How Python was started."""

    python: str
    flags: str = ""
    file: str | None = None
    module: str | None = None
    code: str | None = None
    first: str = ""  # sys.path[0]
    name: str = ""  # as the user wrote it


@dataclass
class Answer:
    """What the interpreter said."""

    version: str = ""
    prefix: str = ""
    base_prefix: str = ""
    path: list[str] = field(default_factory=list)
    suffixes: list[str] = field(default_factory=list)
    found: list[dict[str, Any]] = field(default_factory=list)
    late: bool = False
    extensions: list[dict[str, Any]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    stdlib: str = ""


def script_of(suspect: Suspect) -> Script | None:
    """The Python script that a process runs; None if it runs none."""
    path = suspect.path
    if path is None:
        return None
    if os.path.basename(path).startswith(("python", "pypy")):
        return _by_words(path, suspect)
    wanted = interpreter.of_script(path, suspect)
    if wanted is None:
        return None
    real = os.path.realpath(path)
    return Script(wanted, "", real, first=os.path.dirname(real), name=suspect.argv[0])


def _by_words(python: str, suspect: Suspect) -> Script | None:
    flags, words = "", suspect.argv[1:]
    while words:
        word, words = words[0], words[1:]
        if word in _WITH_VALUE:
            words = words[1:]
        elif word in ("-m", "-c"):
            if not words:
                return None
            if word == "-m" and words[0] in _RUNS_A_SCRIPT and words[1:]:
                words = words[1:]
                continue
            if word == "-m":
                return Script(
                    python, flags, module=words[0], first=suspect.cwd, name=f"-m {words[0]}"
                )
            return Script(python, flags, code=words[0], first=suspect.cwd, name="-c")
        elif word.startswith("-") and len(word) > 1 and not word.startswith("--"):
            flags += word[1:]
        elif word == "-" or word.startswith("--"):
            return None
        else:
            file = os.path.join(suspect.cwd, word)
            if os.path.isdir(file):
                return Script(python, flags, f"{file}/__main__.py", first=file, name=word)
            real = os.path.realpath(file)
            return Script(python, flags, real, first=os.path.dirname(real), name=word)
    return None


def ask(script: Script, suspect: Suspect, said: list[str]) -> Answer | None:
    """Ask the interpreter; None if it gives no answer."""
    asked = {
        "flags": script.flags, "env": dict(suspect.env), "first": script.first,
        "script": script.file, "module": script.module, "code": script.code,
        "said": said, "seconds": _WALK_S,
    }  # fmt: skip
    try:
        done = subprocess.run(
            [script.python, "-I", "-S", _ASKS],
            input=json.dumps(asked), capture_output=True, text=True, errors="replace", check=False,
            timeout=_ANSWER_S, cwd=suspect.cwd, env=dict(suspect.env),
        )  # fmt: skip
        return Answer(**json.loads(done.stdout))
    except (OSError, subprocess.TimeoutExpired, ValueError, TypeError):
        return None


def examine(suspect: Suspect, evidence: Evidence) -> Iterator[Diagnosis]:
    """What it cannot import."""
    status = evidence.status if suspect.status is None else suspect.status
    script = script_of(suspect) if status in (1, 2) else None
    if script is None or (not suspect.status and evidence.seconds > _START_S):
        return
    if script.file and not os.path.exists(script.file):
        yield _no_script(script)
        return
    said = _NO_MODULE.findall(evidence.said)[-1:] + _RUN_NO_MODULE.findall(evidence.said)[-1:]
    answer = ask(script, suspect, said)
    if answer is None:
        return
    sure = [one for one in answer.found if one["sure"]]
    for one in sure[:1]:
        rule = _no_module if one["what"] == "module" else _no_name
        yield rule(one, script, answer, suspect)
    told = {one["name"] for one in sure}
    for name in [] if sure else answer.said[:1]:
        if name not in told:
            lost = {"name": name, "steps": [], "places": answer.path}
            yield _no_module(lost, script, answer, suspect)
    if not sure and not answer.said:
        yield from extensions.examine(answer.extensions, script.python, suspect, evidence.said)


def _no_script(script: Script) -> Diagnosis:
    folder, name = os.path.split(script.file or "")
    near = closest.alike(name, closest.listing(folder))
    path = os.path.join(folder, near[0]) if near else ""
    return Diagnosis(
        "no-script",
        f"{script.name}, which Python is to run, is not there",
        [folder],
        path,
        [f"is {path} meant?" if path else "is the path right? are you in the right directory?"],
    )


def _who(one: dict[str, Any], script: Script) -> str:
    """The line that imports it, and the lines that led there."""
    steps = one["steps"]
    if not steps:
        return script.name
    lines = [f"{file}:{line}" for file, line in steps]
    via = f" (imported from {lines[0]})" if len(lines) > 1 else ""
    return lines[-1] + via


def _owner(place: str, script: Script, suspect: Suspect, answer: Answer) -> str:
    """A directory of sys.path with what made it one."""
    python_path = [p for p in suspect.env.get("PYTHONPATH", "").split(":") if p]
    gone = "" if os.path.exists(place) else ", is not there"
    if place == script.first:
        return f"{place} ({'working directory' if script.module else 'the script'})"
    if place in python_path:
        return f"{place} (PYTHONPATH{gone})"
    return place


def _no_module(one: dict[str, Any], script: Script, answer: Answer, suspect: Suspect) -> Diagnosis:
    name = one["name"]
    top, _, last = name.rpartition(".")
    what = f"module {name} is imported by {_who(one, script)}, and was not found"
    if script.module == name and not one["steps"]:
        what = f"module {name}, which Python is to run, was not found"
    places = [p for p in one["places"] if not p.startswith(answer.stdlib) and ".zip" not in p]
    searched = [_owner(p, script, suspect, answer) for p in places]
    searched.append(f"{answer.stdlib} (Python {answer.version})") if not top else None
    other = _of_another_python(last, one["places"], answer)
    if other:
        return _extension_of_another(name, other, what, searched, script, answer)
    if name in _GONE:
        return Diagnosis("no-module", what, searched, mend=[_GONE[name]])
    near = closest.alike(last, answer.names) if not top else []
    mend = _elsewhere(name, script, suspect)
    if near and not mend:
        mend.append(f"is {near[0]} meant?")
    base = name.split(".")[0]
    pip = PIP.get(base, base)
    if not top and not (mend and mend[0].startswith("export")):
        package = f"   (the package of {base})" if pip != base else ""
        mend.append(f"{script.python} -m pip install {pip}{package}")
    shown = [f"{one} ({answer.names[one]})" for one in near]
    return Diagnosis("no-module", what, searched, ", ".join(shown), mend)


_GONE = {
    "distutils": "Python 3.12 has it no more: pip install setuptools",
    "imp": "Python 3.12 has it no more: the program needs an older Python, or a newer version",
    "asyncore": "Python 3.12 has it no more: pip install pyasyncore",
    "cgi": "Python 3.13 has it no more: pip install legacy-cgi",
    "ConfigParser": "the program is for Python 2: run it with python2, or get a newer version",
    "Queue": "the program is for Python 2: run it with python2, or get a newer version",
    "urllib2": "the program is for Python 2: run it with python2, or get a newer version",
    "cPickle": "the program is for Python 2: run it with python2, or get a newer version",
    "StringIO": "the program is for Python 2: run it with python2, or get a newer version",
}


def _of_another_python(last: str, places: list[str], answer: Answer) -> list[str]:
    """Extension modules of that name that this interpreter passes over."""
    pattern = re.compile(rf"{re.escape(last)}\.(cpython-|cp|pypy)\S*\.so")
    return [
        os.path.join(place, name)
        for place in places
        for name in closest.listing(place)
        if pattern.fullmatch(name) and name[len(last) :] not in answer.suffixes
    ]


def _extension_of_another(
    name: str, other: list[str], what: str, searched: list[str], script: Script, answer: Answer
) -> Diagnosis:
    tag = re.search(r"\.(cpython-|pypy)(\d)(\d+)", os.path.basename(other[0]))
    version = f"{tag[2]}.{tag[3]}" if tag else "another version"
    place = max((p for p in answer.path if other[0].startswith(p + "/")), key=len, default="")
    mend = [f"run it with Python {version}, or install it for {answer.version}:"]
    mend.append(
        f"{script.python} -m pip install --force-reinstall {PIP.get(name, name).split('.')[0]}"
    )
    if place:
        mend.append(f"is {place} in PYTHONPATH, or in an environment of another Python?")
    return Diagnosis(
        "extension-of-another-python",
        f"{what}: it is there for Python {version} alone, this is {answer.version}",
        searched,
        other[0],
        mend,
    )


def _no_name(one: dict[str, Any], script: Script, answer: Answer, suspect: Suspect) -> Diagnosis:
    module, name, file = one["module"], one["name"], one["file"]
    who = _who(one, script)
    other = _of_another_python(name, one["places"], answer)
    if other:
        what = f"{module}.{name} is imported by {who}, and was not found"
        return _extension_of_another(f"{module}.{name}", other, what, one["places"], script, answer)
    if one["hidden"]:
        base = os.path.basename(file)
        return Diagnosis(
            "hidden-module",
            f"{file} hides the module {module} ({one['hidden']}): {who} wants {module}.{name}, "
            "which it does not have",
            closest=one["hidden"],
            mend=[f"mv {file} {os.path.join(os.path.dirname(file), 'my_' + base)}"],
        )
    near = closest.alike(name, one["names"])
    return Diagnosis(
        "no-name",
        f"{name} is imported by {who} from {module}, which has no such name",
        [file or ", ".join(one["places"])],
        near[0] if near else "",
        [f"is {near[0]} meant?" if near else f"is it another version of {module} that is wanted?"],
    )


def _elsewhere(name: str, script: Script, suspect: Suspect) -> list[str]:
    """Where else it is: beside the script, or in another environment."""
    relative = name.replace(".", "/")

    def has(folder: str) -> bool:
        return any(os.path.exists(f"{folder}/{relative}{end}") for end in (".py", "/__init__.py"))

    up = os.path.dirname(script.first)
    for folder in (suspect.cwd, script.first, f"{script.first}/src", up, f"{up}/src"):
        if folder != script.first and has(folder):
            return [closest.export("PYTHONPATH", folder, suspect.env)]
    for packages in _site_packages(script, suspect):
        if has(packages) or glob.glob(f"{glob.escape(packages)}/{relative}.*.so"):
            root = packages.split("/lib/")[0]
            if os.path.exists(f"{root}/bin/activate"):
                return [f"source {root}/bin/activate   (it has {name})"]
            python = os.path.join(root, "bin", os.path.basename(os.path.dirname(packages)))
            if os.access(python, os.X_OK):
                return [f"{python} has it: {python} {script.name} …"]
            return [f"it is in {packages}, which belongs to another Python"]
    return []


def _site_packages(script: Script, suspect: Suspect) -> list[str]:
    """Folders of installed packages, of other interpreters than this."""
    env = suspect.env
    roots = [env.get("VIRTUAL_ENV", ""), env.get("CONDA_PREFIX", "")]
    for folder in dict.fromkeys((suspect.cwd, script.first, os.path.dirname(script.first))):
        roots += [f"{folder}/{name}" for name in (".venv", "venv", "env", ".env")]
        roots += sorted(os.path.dirname(p) for p in glob.glob(f"{folder}/*/pyvenv.cfg"))[:8]
    roots += [os.path.dirname(p) for p in env.get("PATH", "").split(":") if p.startswith("/")]
    roots += [env.get("HOME", "") + "/.local", "/usr/local", "/usr"]
    own = os.path.realpath(os.path.dirname(os.path.dirname(script.python)))
    found: dict[str, None] = {}
    for root in dict.fromkeys(roots):
        if root and os.path.realpath(root) != own:
            for place in ("lib/python3*/site-packages", "lib/python3*/dist-packages"):
                found.update(dict.fromkeys(sorted(glob.glob(f"{glob.escape(root)}/{place}"))))
    return list(found)
