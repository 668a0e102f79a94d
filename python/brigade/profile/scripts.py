"""Which script an interpreter was given, as its command line says.

What stands there may be the value of an option, the program itself (`perl -e`), or a word for
standard input; of each interpreter a table says what its options are. Python and shells are known
to `trial/invocation.py`.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from brigade.trace.events import TracedProcess
from brigade.trial.invocation import SHELLS, as_called, interpreter_of, is_python


class _Options(NamedTuple):
    """Letters, and words with two dashes, that matter."""

    values: str = ""  # have a value: what follows in the word, else the next one
    attached: str = ""  # what follows in the word is theirs
    program: str = ""  # their value is the program, or part of it
    script: str = ""  # their value is the script
    long_values: tuple[str, ...] = ()
    long_program: tuple[str, ...] = ()
    is_given: bool = True  # a script as the first word that is no option


_LUA = _Options("elj")  # code before the script, which may follow
_KNOWN = {
    "perl": _Options("I", ":CDFimMVx", "eE"),
    "ruby": _Options("CEIrX", ":FKTix", "e"),
    "Rscript": _Options("g", "", "e"),
    "R": _Options("dg", "", "e", "f", is_given=False),
    "julia": _Options(
        *("CHJLpt", "Og", "eE", ""),
        ("--threads", "--procs", "--load", "--sysimage", "--home", "--cpu-target"),
        ("--eval", "--print"),
    ),
    "node": _Options(
        *("Cr", "", "ep", ""),
        ("--conditions", "--import", "--loader", "--experimental-loader", "--require"),
        ("--eval", "--print"),
    ),
    "lua": _LUA,
    "luajit": _LUA,
    "tclsh": _Options(),
    "php": _Options("cdz", "", "BEFRr", "f"),
    "octave": _Options("p", long_values=("--path", "--exec-path"), long_program=("--eval",)),
    "guile": _Options("Lelx", "", "c", "s"),
}
_VERSION = re.compile(r"[\d.]+$")
_BOX = "busybox"  # one program, many names: that of the shell is the word it was called by


def is_shell(exe: str) -> bool:
    return os.path.basename(exe) in SHELLS


def interprets(exe: str) -> bool:
    """Whether a program is one that is given a script to run."""
    return is_shell(exe) or bool(interpreter_of(exe)) or _name(exe) in _KNOWN


def script_of(process: TracedProcess) -> str:
    """The script that an interpreter was given, as an absolute path; "" if there is none. Of a
    program that is not known, which may be one, the first argument that is no option."""
    exe, words = process.exe or "".join(process.argv[:1]), process.argv[1:]
    if os.path.basename(exe) == _BOX:
        exe, words = _in_box(process.argv)
        if not is_shell(exe):
            return ""
    if is_python(exe) or is_shell(exe):
        called = as_called([exe, *words])
        by_input = is_shell(exe) and ("s", "") in called.options
        script = called.script if len(called.script) == 1 and not by_input else []
    elif _name(exe) in _KNOWN:
        script = _by_options(words, _KNOWN[_name(exe)])
    else:
        script = _first(words)
    return _absolute(process, script[0]) if script and script[0] != "-" else ""


def _name(exe: str) -> str:
    return _VERSION.sub("", os.path.basename(exe))


def _in_box(argv: list[str]) -> tuple[str, list[str]]:
    """What a box of programs was called as, and its arguments."""
    words = argv[1:] if os.path.basename("".join(argv[:1])) == _BOX else argv
    name = os.path.basename("".join(words[:1])).lstrip("-")
    return ("sh" if name == "ash" else name), words[1:]


def _by_options(words: list[str], options: _Options) -> list[str]:
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        if word == "--" or word == "-" or not word.startswith("-"):
            at -= word != "--"
            break
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if name in options.long_program:
                return []
            if name == "--file" and options.script and value:
                return [value]
            at += name in options.long_values and not equals
            continue
        for end, letter in enumerate(word[1:], 2):
            if letter in options.program:
                return []
            if letter in options.script:
                return [word[end:]] if word[end:] else words[at : at + 1]
            if letter in options.values:
                at += not word[end:]
            if letter in options.values or letter in options.attached:
                break
    return words[at : at + 1] if options.is_given else []


def _first(words: list[str]) -> list[str]:
    for number, word in enumerate(words):
        if not word.startswith("-"):
            return words[number : number + 1]
        if word in ("-c", "-m"):
            break
    return []


def _absolute(process: TracedProcess, word: str) -> str:
    """Where no working folder is known, an open that worked tells it."""
    if word.startswith("/") or process.cwd:
        return os.path.normpath(os.path.join(process.cwd, word))
    end = "/" + word.lstrip("./")
    opened = (e.path for e in process.events if e.kind == "open" and not e.error)
    return next((path for path in opened if path.endswith(end)), "")


def is_script(path: str, script: str) -> bool:
    """Whether a call is about the script: an argument ./app.py leaves its "." in the path."""
    return path == script or ("/./" in path and os.path.normpath(path) == script)
