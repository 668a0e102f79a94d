"""Commands that must stand elsewhere than after `brigade run --`.

A trial runs what stands there. Of a command that submits a job, that runs a launcher in its turn,
or that is one unknown to Brigade, it would run the whole job, and stage nothing of use.
"""

from __future__ import annotations

import os
import re
import shutil

from brigade.errors import UsageError
from brigade.launch.here import is_program
from brigade.trial.invocation import SHELLS, interpreter_of, invocation

_MPI_NAME = re.compile(
    r"(?:mpirun|mpiexec|orterun|prterun)(?:[._-]?(?:openmpi|ompi|mpich|hydra|lsf|real|intel))*"
    r"|oshrun|shmemrun"  # the same, of Open MPI
)
# What launchers of a site's own name are links to.
_BEHIND = re.compile(r"(?:orterun|prterun|prte|mpirun|mpiexec)(?:\.(?:openmpi|mpich|hydra))?")
_SUBMIT = frozenset({"sbatch", "salloc", "qsub", "bsub", "msub", "oarsub"})
_AROUND = frozenset({
    "apptainer", "chrt", "env", "flock", "gdb", "ionice", "ltrace", "ncu", "nice", "nohup",
    "nsys", "numactl", "perf", "rocprof", "rocprof-compute", "rocprof-sys-run", "rocprofv2",
    "rocprofv3", "script", "setsid", "singularity", "stdbuf", "strace", "sudo", "taskset",
    "time", "timeout", "unbuffer", "valgrind", "vtune", "xargs", "xvfb-run",
})  # fmt: skip
# Of these, what name a file before the program: an image, a lock.
_WITH_FILE = frozenset({"apptainer", "flock", "singularity"})
# Launchers of other systems, none of which could be tried.
_FOREIGN = frozenset({
    "aprun", "blaunch", "ccc_mprun", "charmrun", "flux", "ibrun", "jsrun", "lrun", "mpiexec_mpt",
    "mpirun_rsh", "oshexec", "palsrun", "pbsdsh", "poe", "prun", "yhrun",
})  # fmt: skip
_STARTS = re.compile(
    r"^[ \t]*(?:(?:exec|time|env|nohup|timeout[ \t]+\w+|\w+=\S*)[ \t]+)*"
    r"(srun|oshrun|shmemrun|(?:mpirun|mpiexec|orterun|prterun)[\w.]*)(?=\s)",
    re.M,
)
_OF_A_SHELL = re.compile(r"#! *\S*?(?:\benv +|/)(?:{})\b".format("|".join(SHELLS)))
_HEAD_CHARACTERS = 1 << 16


def is_launcher(word: str) -> bool:
    """Whether the program of that name or path starts ranks, in a way that Brigade understands.

    `mpirun-4.1` may be one, `mpirun_job.sh` is a job's script: what has a name of its own is told
    by its file.
    """
    if _is_named_launcher(word):
        return True
    name = os.path.basename(word)
    is_named_so = name.startswith(("mpirun", "mpiexec", "orterun", "prterun"))
    file = shutil.which(word)
    if file is None:
        return is_named_so and os.sep not in word  # it is missed under that name
    behind = os.path.basename(os.path.realpath(file))
    return bool(_BEHIND.fullmatch(behind)) or (is_named_so and is_program(file))


def refuse_misplaced(words: list[str]) -> None:
    """UsageError, with the right order, if the words cannot mean one start of one program."""
    name = os.path.basename(words[0])
    if name in _FOREIGN:
        raise UsageError(
            f"{name} is a launcher that Brigade does not know",
            hint="where srun, mpirun or mpiexec start the same job, give it one of those",
        )
    if name in _SUBMIT:
        raise UsageError(
            f"{name} submits a job: `brigade run` goes inside it",
            hint=f"{name} … brigade run -- srun …, or before `srun` in the job's script",
        )
    at = _inner(words) if name in _AROUND else None
    if at is not None:
        raise UsageError(
            f"{name} goes before brigade, not before {words[at]}",
            hint=f"{' '.join(words[:at])} brigade run -- {words[at]} …",
        )


def _inner(words: list[str]) -> int | None:
    """Where the launcher stands that `words[0]` goes around, told by names alone. What follows the
    program is the program's; what follows an option may be its value."""
    has_file = os.path.basename(words[0]) in _WITH_FILE
    for at, (before, word) in enumerate(zip(words, words[1:]), 1):
        is_option = word.startswith("-") or "=" in word
        may_be_value = before.startswith("-") and before != "--" and "=" not in before
        if not (may_be_value and before.startswith("--")) and _is_named_launcher(word):
            return at
        if is_option or may_be_value:
            continue
        if interpreter_of(word) or (os.sep in word and not has_file):
            return None
    return None


def _is_named_launcher(word: str) -> bool:
    name = os.path.basename(word)
    return name == "srun" or bool(_MPI_NAME.fullmatch(name))


def refuse_script(words: list[str]) -> None:
    """UsageError if what is to start without a launcher is a shell's script that has one inside."""
    named, text = _script(words)
    found = _STARTS.search(text)
    if found:
        raise UsageError(
            f"{named} starts {found[1]} itself",
            hint=f"put `brigade run --` before {found[1]} there",
        )


def _script(words: list[str]) -> tuple[str, str]:
    """What a shell is to run: its name, and its text, as far as one need look."""
    file = shutil.which(words[0]) or words[0]
    by_shell = os.path.basename(file) in SHELLS
    if by_shell:
        called = invocation(words).script
        if len(called) != 1:
            return (f"{words[0]} -c", called[1]) if called else ("", "")
        file = called[0]
    try:
        with open(file, encoding="utf-8", errors="replace") as script:
            text = script.read(_HEAD_CHARACTERS)
    except OSError:
        return "", ""
    return (os.path.basename(file), text) if by_shell or _OF_A_SHELL.match(text) else ("", "")
