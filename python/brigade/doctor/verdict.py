"""What follows from a node's answers: which views it allows, what `auto` chooses, what to do. Pure.

An answer is `true`, `null` (could not be tried), or what went wrong, in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from brigade.printable import size

# What the namespace view cannot do without, in the order in which it needs it.
_NEEDED = (
    ("user_namespaces", "no user namespaces for this user"),
    ("ids", "the user's id cannot be given to a user namespace"),
    ("mounts", "no mounts in a user namespace"),
    ("overlay", "no overlay mounts in a user namespace"),
)
_HINTS = {
    "user_namespaces": "the site may allow user namespaces: sysctl user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone (Debian), kernel.apparmor_restrict_unprivileged_userns "
    "(Ubuntu); in a container: its seccomp profile",
    "overlay": "overlay mounts for users need Linux 5.11 or later, and its overlay module loaded",
}


@dataclass(frozen=True)
class View:
    """One view on a node: `why` it is not possible, or None; `notes` on what it is without."""

    name: str
    why: str | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    views: tuple[View, ...]
    memory: str | None  # why nothing could be staged, or None
    auto: tuple[str, ...]  # what `--view auto` is for a Python program here
    auto_static: tuple[str, ...]  # and for a static one
    why: str
    hints: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether a job on this node would start from an image."""
        return self.memory is None  # there is always a view


def judge(node: dict[str, Any]) -> Verdict:
    space = namespace(node)
    interpose = _interpose(node)
    python = View("python", None)
    memory = _memory(node.get("memory") or {})
    auto = ("interpose", "python") if interpose.why is None else ("python",)
    if space.why is None:
        static = ("namespace", *auto)
        why = (
            "namespace is for static programs: it makes software read-only and shows other owners"
            " as nobody, which some programs notice"
        )
    else:
        static = auto
        why = "static programs will go to the file system: " + space.why
    hints = [_HINTS[key] for key, _ in _NEEDED if key in _HINTS and _refused(node.get(key))]
    if interpose.why is not None:
        hints.append("are Brigade's native parts whole? run `brigade doctor` where it is installed")
    if memory is not None:
        hints.append("name another folder in node memory with BRIGADE_NODE_DIR")
    if _refused(node.get("cma")):
        hints.append(
            f"ranks cannot read each other's memory ({node['cma']}), with or without Brigade: MPI "
            "copies twice within a node"
        )
    if _refused(node.get("trace")):
        hints.append(
            f"programs cannot be traced ({node['trace']}): `brigade profile` would see nothing; "
            "sysctl kernel.yama.ptrace_scope, or the container's seccomp profile"
        )
    return Verdict((space, interpose, python), memory, auto, static, why, tuple(hints))


def namespace(node: dict[str, Any]) -> View:
    for key, words in _NEEDED:
        if node.get(key) is None:
            return View("namespace", "it could not be tried: no folder can be made for that")
        if node[key] is not True:
            return View("namespace", f"{words} ({node[key]})")
    notes = []
    if node.get("whiteouts") is not True:
        notes.append("no whiteouts: known absences are asked of the file system")
    if node.get("opaque") is not True:
        notes.append("no opaque folders: complete folders are asked of the file system, too")
    if node.get("all_ids") is not True:
        notes.append("owners other than you show as nobody")
    return View("namespace", None, tuple(notes))


def _interpose(node: dict[str, Any]) -> View:
    notes = []
    if _refused(node.get("binds_calls")):
        notes.append(
            "calls between libraries take some 10 ns more, as with any auditor of this C library"
            f" ({node['binds_calls']}): LD_BIND_NOW=1 keeps them fast"
        )
    if _refused(node.get("new_namespaces")):
        notes.append(
            "programs that call dlmopen crash, as with any auditor of this C library"
            f" ({node['new_namespaces']}): start those without Brigade"
        )
    return View(
        "interpose", None if node["interpose"] is True else str(node["interpose"]), tuple(notes)
    )


def same(node: dict[str, Any]) -> tuple[object, ...]:
    """What makes two nodes' answers one: all but the host's name and how much is free, if that is
    enough on both or too little on both."""
    memory = {key: value for key, value in (node.get("memory") or {}).items() if key != "free"}
    rest = {key: value for key, value in node.items() if key not in ("host", "memory")}
    rest["room"] = _memory(node.get("memory") or {}) is None
    return tuple(sorted((key, str(value)) for key, value in [*rest.items(), *memory.items()]))


def free(node: dict[str, Any]) -> int:
    """Bytes that are free in a node's memory; 0 where that is not known."""
    return int((node.get("memory") or {}).get("free", 0))


def _refused(answer: object) -> bool:
    return answer is not True and answer is not None


def _memory(memory: dict[str, Any]) -> str | None:
    if "error" in memory or not memory:
        return f"there is no such folder ({memory.get('error', 'not asked')})"
    if not memory["writable"]:
        return "you may not write there"
    if not memory["exec"]:
        return "programs may not be executed there (mounted noexec)"
    if memory["free"] < 64 << 20:
        return f"only {size(memory['free'])} free"
    return None
