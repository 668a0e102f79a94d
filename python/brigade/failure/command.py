"""A program that cannot be executed at all: is it there, is it one, is it for this machine?

Looked at as the kernel does, in its order, with what `execvp` adds: PATH, and a shell for what has
no format that the kernel knows.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator

from brigade.elf import file as elf_file
from brigade.elf.file import ElfFile, NotElf
from brigade.failure import closest
from brigade.failure.diagnosis import Diagnosis
from brigade.failure.evidence import Evidence, Suspect
from brigade.trial import mounts

# How launchers end that could not execute a program: srun, a shell, Open MPI, MPICH.
_NOT_EXECUTED = (2, 126, 127, 132, 134, 141, 255)
_SYSTEM = ("/usr/", "/bin/", "/lib", "/sbin/")
_PYTHONS = ("python3", "python")


def examine(suspect: Suspect, evidence: Evidence) -> Iterator[Diagnosis]:
    """Why it could not be executed; nothing if it could."""
    if not suspect.argv:
        return
    path = suspect.path
    if path is None:
        yield from _absent(suspect, evidence)
        return
    for rule in (_not_executable, _busy, _content, _local_disk):
        found = list(rule(path, suspect, evidence))
        if found:
            yield from found
            return


def _absent(suspect: Suspect, evidence: Evidence) -> Iterator[Diagnosis]:
    name = suspect.argv[0]
    if "/" not in name:
        yield _not_on_path(name, suspect, evidence)
        return
    path = os.path.join(suspect.cwd, name)
    if os.path.isdir(path):
        inside = [one for one in sorted(closest.listing(path)) if _is_program(path, one)]
        near = f"in it: {', '.join(inside[:3])}" if inside else ""
        yield Diagnosis("directory", f"{name} is a directory, not a program", closest=near)
    elif os.path.islink(path):
        yield from _dangling(name, path)
    else:
        yield _not_there(name, path, evidence)


def _is_program(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _not_on_path(name: str, suspect: Suspect, evidence: Evidence) -> Diagnosis:
    folders = [one for one in dict.fromkeys(suspect.env.get("PATH", "").split(":")) if one]
    here = os.path.join(suspect.cwd, name)
    near = closest.on_path(name, suspect.env)
    mend = closest.module(name, suspect.env)
    if os.path.isfile(here):
        text = "here" if os.access(here, os.X_OK) else "here, but not executable (chmod +x)"
        return Diagnosis(
            "not-on-path", f"{name} is not in PATH", folders, f"./{name} is {text}", [f"./{name} …"]
        )
    if name == "python" and closest.has("python3", suspect.env):
        mend.append("python3 …, or activate the environment that has `python`")
    elif near and not mend:
        mend.append(f"is {os.path.basename(near[0])} meant?")
    mend = mend or ["give its whole path, or load the module that has it"]
    where = "" if evidence.is_local else f" on {os.uname().nodename}"
    return Diagnosis(
        "not-on-path", f"{name} is in no directory of PATH{where}", folders, ", ".join(near), mend
    )


def _dangling(name: str, path: str) -> Iterator[Diagnosis]:
    """A link to nothing; an environment whose Python is gone is told by another rule."""
    root, target = os.path.dirname(os.path.dirname(path)), os.readlink(path)
    if os.path.basename(path).startswith("python") and os.path.isfile(f"{root}/pyvenv.cfg"):
        from brigade.failure.interpreter import gone

        yield gone(path, root)
        return
    yield Diagnosis(
        "dangling-link",
        f"{name} is a link to {target}, which is not there",
        closest=_first_there(os.path.join(os.path.realpath(os.path.dirname(path)), target)),
        mend=[f"ln -sfn THE-FILE {name}"],
    )


def _first_there(path: str) -> str:
    """How far a path is there, and what its next name may be."""
    folder = os.path.dirname(path)
    while not os.path.isdir(folder) and folder != "/":
        path, folder = folder, os.path.dirname(folder)
    near = closest.alike(os.path.basename(path), closest.listing(folder))
    folder = os.path.normpath(folder)
    return os.path.join(folder, near[0]) if near else f"{folder} is there, the rest is not"


def _not_there(name: str, path: str, evidence: Evidence) -> Diagnosis:
    where = "" if evidence.is_local else f" on {os.uname().nodename}"
    found = _first_there(path)
    installed = shutil.which(os.path.basename(name), path=evidence.env.get("PATH"))
    if installed:
        return Diagnosis(
            "not-there",
            f"{name} is not there{where}",
            [os.path.dirname(os.path.normpath(path))],
            f"{installed} (in PATH)",
            [f"{os.path.basename(name)} …, without a path"],
        )
    mend = f"is {found} meant?" if os.path.isfile(found) else "is it built? is the path right?"
    return Diagnosis(
        "not-there", f"{name} is not there{where}", [os.path.dirname(os.path.normpath(path))],
        found, [mend],
    )  # fmt: skip


def _not_executable(path: str, suspect: Suspect, evidence: Evidence) -> Iterator[Diagnosis]:
    name = suspect.argv[0]
    mode = os.stat(path).st_mode
    if mode & 0o111 and os.statvfs(path).f_flag & os.ST_NOEXEC:
        yield Diagnosis(
            "noexec",
            f"{name} lies on {_mount_point(path)}, from which nothing may be executed "
            "(mounted noexec)",
            mend=["copy it to another file system: your home or a scratch directory"],
        )
    elif not os.access(path, os.X_OK):
        mend = [f"chmod +x {name}"]
        if path.endswith(".py"):
            mend.append(f"or: python {name} …")
        yield Diagnosis(
            "not-executable",
            f"{name} may not be executed: its mode is {stat.filemode(mode)}",
            mend=mend,
        )


def _mount_point(path: str) -> str:
    path = os.path.realpath(path)
    while not os.path.ismount(path):
        path = os.path.dirname(path)
    return path


def _busy(path: str, suspect: Suspect, evidence: Evidence) -> Iterator[Diagnosis]:
    """A program that somebody is still writing cannot be executed."""
    if evidence.exec_error == errno.ETXTBSY or evidence.hint("Text file busy"):
        writers = _writers(path)
        yield Diagnosis(
            "text-busy",
            f"{suspect.argv[0]} is being written, and cannot be executed until that is over",
            closest=f"written by {', '.join(writers)}" if writers else "",
            mend=["wait until it is built or copied; put new ones there by `mv`"],
        )


def _writers(path: str) -> list[str]:
    """Own processes that have the file open."""
    found = []
    for pid in filter(str.isdigit, closest.listing("/proc")):
        for fd in closest.listing(f"/proc/{pid}/fd"):
            try:
                same = os.path.samefile(f"/proc/{pid}/fd/{fd}", path)
                if same and pid != str(os.getpid()):
                    with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as name:
                        found.append(f"{name.read().strip()} (process {pid})")
                        break
            except OSError:
                continue
    return found[:2]


def _content(path: str, suspect: Suspect, evidence: Evidence) -> Iterator[Diagnosis]:
    name = suspect.argv[0]
    try:
        with open(path, "rb") as file:
            head = file.read(512)
    except OSError:  # may be executed and not read
        return
    if head.startswith(b"\x7fELF"):
        yield from _elf(path, name)
    elif head.startswith(b"#!"):
        yield from _script(path, name, head, suspect)
    elif not head:
        yield Diagnosis(
            "empty",
            f"{name} is an empty file",
            mend=["copy or build it again: was the disk full?"],
        )
    elif b"\0" in head:
        yield Diagnosis(
            "no-program",
            f"{name} is neither a program nor a script: it starts with {head[:4]!r}",
            mend=["copy or build it again; is it an archive?"],
        )
    elif evidence.exec_error == errno.ENOEXEC or evidence.hint("Exec format error"):
        interpreter = "#!/usr/bin/env python3" if path.endswith(".py") else "#!/bin/sh"
        yield Diagnosis(
            "no-shebang",
            f"{name} is a script without a first line that says what runs it",
            mend=[f"put {interpreter} into its first line"],
        )


def _script(path: str, name: str, head: bytes, suspect: Suspect) -> Iterator[Diagnosis]:
    line = os.fsdecode(head.split(b"\n", 1)[0][2:])
    words = line.split()
    if not words:
        return
    if line.endswith("\r"):
        yield Diagnosis(
            "dos-lines",
            f"{name} has the line ends of Windows: its interpreter would be {line.strip(' ')!r}",
            mend=[f"sed -i 's/\\r$//' {name}"],
        )
        return
    interpreter = os.path.join(suspect.cwd, words[0])
    if not os.path.exists(interpreter):
        yield _no_interpreter(path, name, words[0], suspect)
    elif os.path.basename(words[0]) == "env":
        wanted = next((w for w in words[1:] if not w.startswith("-") and "=" not in w), None)
        if wanted and not closest.has(wanted, suspect.env):
            diagnosis = _not_on_path(wanted, suspect, Evidence([], [], 0, 0, env=suspect.env))
            diagnosis.kind = "no-interpreter"
            diagnosis.what = f"{wanted}, which {name} asks for in its first line, is not in PATH"
            yield diagnosis


def _no_interpreter(path: str, name: str, wanted: str, suspect: Suspect) -> Diagnosis:
    folder = os.path.dirname(os.path.dirname(wanted))
    if os.path.islink(wanted) and os.path.isfile(f"{folder}/pyvenv.cfg"):
        from brigade.failure.interpreter import gone

        return gone(wanted, folder)
    base = os.path.basename(wanted)
    there = shutil.which(base, path=suspect.env.get("PATH", os.defpath))
    near = [there] if there else closest.on_path(base, suspect.env)
    beside = os.path.join(os.path.dirname(path), base)
    mend = []
    own = os.path.dirname(os.path.dirname(path))
    if os.access(beside, os.X_OK) and os.path.isfile(f"{own}/pyvenv.cfg"):
        near = [beside]
    if near and os.path.basename(near[0]).startswith(_PYTHONS):
        mend.append(f"{near[0]} {name} …")
        mend.append(
            "an environment that was moved or copied has to be made anew: `python3 -m venv`"
        )
    elif near:
        mend.append(f"put #!{near[0]} into its first line")
    else:
        mend += closest.module(base, suspect.env) or [f"install {base}, or load its module"]
    return Diagnosis(
        "no-interpreter",
        f"{wanted}, the interpreter in the first line of {name}, is not there",
        closest=", ".join(near),
        mend=mend,
    )


def _elf(path: str, name: str) -> Iterator[Diagnosis]:
    try:
        elf = elf_file.read(path)
    except NotElf as error:
        yield Diagnosis(
            "damaged",
            f"{name} is damaged: {error}",
            mend=["copy or build it again: was the disk full, or the copy not yet over?"],
        )
        return
    except OSError:
        return
    if not _runs_here(elf):
        yield _other_machine(elf, name)
    elif elf.interpreter and not os.path.exists(elf.interpreter):
        yield _no_loader(elf, name)


def _runs_here(elf: ElfFile) -> bool:
    machine = os.uname().machine
    if elf.machine == machine:
        return True
    if (machine, elf.machine) in (("x86_64", "i386"), ("aarch64", "arm")):
        return True  # if its loader is there
    handlers = closest.listing("/proc/sys/fs/binfmt_misc")
    return any(elf.machine in one for one in handlers)


def _other_machine(elf: ElfFile, name: str) -> Diagnosis:
    machine = os.uname().machine
    folder, base = os.path.split(elf.path)
    other = [
        os.path.join(up, where, base)
        for up in (folder, os.path.dirname(folder))
        for where in (machine, machine.replace("_", "-"))
    ]
    twins = [path for path in other if os.access(path, os.X_OK)]
    return Diagnosis(
        "wrong-machine",
        f"{name} is a program for {elf.machine} ({elf.cls} bit); this machine is {machine}",
        closest=twins[0] if twins else "",
        mend=[
            f"{twins[0]} …" if twins else f"build it on {machine}, or get the build for {machine}"
        ],
    )


_LOADERS = {
    r".*/ld-musl-.*": "it was built for musl (Alpine): get the build for glibc",
    r"/lib/ld-linux\.so\.2": "it is a 32 bit program: apt install libc6-i386, or build for 64 bit",
    r"/nix/.*|/gnu/.*": "it belongs to Nix or Guix, whose store is not here",
    r"/home/linuxbrew/.*": "it belongs to Homebrew, which is not here",
}


def _no_loader(elf: ElfFile, name: str) -> Diagnosis:
    wanted = elf.interpreter or ""
    own = elf_file.read("/bin/sh").interpreter or ""
    said = next((text for pattern, text in _LOADERS.items() if re.fullmatch(pattern, wanted)), None)
    return Diagnosis(
        "no-loader",
        f"{wanted}, the dynamic loader that {name} was linked for, is not there",
        closest=own if os.path.exists(own) else "",
        mend=[said or f"patchelf --set-interpreter {own} {name}, or build it on this system"],
    )


def _local_disk(path: str, suspect: Suspect, evidence: Evidence) -> Iterator[Diagnosis]:
    """A program in a place that every node has for itself, and perhaps none but this one has it."""
    if evidence.is_local or evidence.seen:
        return
    if evidence.status not in _NOT_EXECUTED and not evidence.hint("No such file or directory"):
        return
    real = os.path.realpath(path)
    mount = mounts.read().of(real)
    if mount and not mount.shared and not real.startswith(_SYSTEM):
        yield Diagnosis(
            "local-disk",
            f"{path} lies on {mount.point} ({mount.fstype}) of {os.uname().nodename} alone, "
            "and the job's nodes do not have it",
            mend=[
                "put it onto a file system that all nodes see, as your home or scratch directory"
            ],
        )
