"""Running commands inside a node: a step into its namespaces, then the command itself.

Nothing stands between the caller and the command: the process that steps in becomes the command, so
signals, exit code, terminal and process id are its own.
"""

from __future__ import annotations

import errno
import os
import pwd
import subprocess
from typing import Any

from brigade.errors import LabError
from brigade.lab import namespaces, state
from brigade.lab.debian import search_path
from brigade.lab.plan import LabPlan

# set for the nodes by the lab, or by a launcher that the lab itself runs under: must not leak in
_FOREIGN = ("SLURM_", "PMIX_", "PMI_", "OMPI_", "HYDRA_", "HYDI_")


def environment(plan: LabPlan, user: str | None = None) -> dict[str, str]:
    """The caller's environment, with what the lab's launchers need; a user's own HOME and names."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN) and k != "TMPDIR"}
    env["PATH"] = search_path()
    env.setdefault("BRIGADE_PATIENCE", "60")  # the nodes share the processors of one machine
    env.update(plan.environment())
    if user is not None:
        account = _account(user)
        env.update(HOME=account.pw_dir, USER=user, LOGNAME=user, SHELL=account.pw_shell)
    return env


class Step:
    """A callable that moves the calling process into a node, as `user`, in folder `cwd`.

    Made to be a `preexec_fn`, or called just before exec; ends the process with a message and exit
    code 126 when it cannot. The network stays the host's with `host_network`.
    """

    def __init__(
        self,
        plan: LabPlan,
        node: str,
        user: str | None = None,
        cwd: str | None = None,
        host_network: bool = False,
    ) -> None:
        if node not in plan.members:
            raise LabError(
                f"lab '{plan.name}' has no node '{node}'", hint=f"it has {', '.join(plan.members)}"
            )
        state.require_root()
        state.require_outside(plan.name)
        self.folder = plan.pins(node)
        if not namespaces.is_pinned(self.folder):
            raise LabError(
                f"node {node} of lab '{plan.name}' is gone",
                hint=f"brigade lab down --name {plan.name}, then up again",
            )
        self.node = node
        self.account = _account(user) if user is not None else None
        self.groups = os.getgrouplist(user, self.account.pw_gid) if user and self.account else []
        self.cwd = cwd or os.getcwd()
        self.kinds = tuple(k for k in namespaces.KINDS if not (host_network and k == "net"))

    def __call__(self) -> None:
        try:
            namespaces.enter(self.folder, self.kinds)
            if self.account is not None:
                os.setgroups(self.groups)
                os.setgid(self.account.pw_gid)
                os.setuid(self.account.pw_uid)
            os.chdir(self.cwd)
        except OSError as error:
            os.write(2, f"brigade: cannot go to {self.cwd} on {self.node}: {error}\n".encode())
            if error.filename == self.cwd:
                os.write(2, _WHAT_TO_DO.get(error.errno or 0, b""))
            os._exit(126)


_WHAT_TO_DO = {
    errno.ENOENT: b"  nodes have their own /tmp and /dev/shm; see `brigade lab up --bind DIR`\n",
    errno.EACCES: b"  start it from a folder that this user may enter\n",
}


def popen(
    plan: LabPlan,
    node: str,
    argv: list[str],
    *,
    user: str | None = None,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    host_network: bool = False,
    **more: Any,
) -> subprocess.Popen[Any]:
    """Start a command on a node; `env` is added to its environment, `more` goes to Popen."""
    step = Step(plan, node, user, cwd, host_network)
    whole = {**environment(plan, user), **(env or {})}
    return subprocess.Popen(argv, preexec_fn=step, env=whole, **more)


def become(
    plan: LabPlan,
    node: str,
    argv: list[str],
    *,
    user: str | None = None,
    host_network: bool = False,
) -> None:
    """Turn this process into the command on a node; returns only by LabError."""
    step = Step(plan, node, user, None, host_network)
    env = environment(plan, user)
    step()
    try:
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        os.write(2, f"brigade: cannot run {argv[0]} on {node}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _account(user: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(user)
    except KeyError:
        raise LabError(f"this machine has no user '{user}'", hint="useradd makes one") from None
