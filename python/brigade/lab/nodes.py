"""Bringing up the members of a lab: namespaces, a network between them, private folders.

Each member is born as a shell in fresh namespaces. It waits until they are pinned and wired, makes
its mounts, and becomes a sleeping *holder* process, by whose pid the remote shell finds the member.
If `lab up` dies first, the shell reads end-of-file and goes away with everything it made.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from pathlib import Path

from brigade.errors import LabError
from brigade.lab import namespaces
from brigade.lab.debian import search_path
from brigade.lab.plan import HUB, INSIDE, LOCAL, PRIVATE, SHARED, STATE_ROOT, LabPlan

# the script of a member's shell: birth, mounts (_mount_script), farewell
_BIRTH = """
set -e
taskset --pid --cpu-list {processors} $$ >/dev/null
echo $$
read -r go
"""
_FAREWELL = """
echo ready
exec </dev/null >/dev/null 2>&1
exec -a {title} sleep infinity
"""


def start(plan: LabPlan) -> None:
    """Start every member of the lab, with network and mounts, and pin its namespaces."""
    namespaces.prepare_pins(plan.state / "ns")
    (plan.state / "pid").mkdir()
    processor = namespaces.processor_for_pins(plan.state / "ns")
    born = {}
    pids = {}
    try:
        for member in plan.members:
            born[member] = _give_birth(plan, member, processor)
            if member == HUB:  # the nodes need its IPC namespace
                pids[member] = _pin(plan, member, born[member])
        for node in plan.nodes:
            pids[node] = _pin(plan, node, born[node])
        _wire(plan, pids)
        for shell in born.values():
            assert shell.stdin is not None
            shell.stdin.write("go\n")
            shell.stdin.flush()
        for member, shell in born.items():
            _line(shell, member)
    finally:
        for shell in born.values():
            shell.communicate()


def _go_first() -> None:
    """Before all ordinary processes, this one and its children; where that is not allowed, not."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def run_in(
    plan: LabPlan,
    member: str,
    argv: list[str],
    what: str,
    env: dict[str, str] | None = None,
    *,
    goes_first: bool = False,
) -> str:
    """Run a command of the lab's own inside a member; returns what it printed.

    goes_first: a daemon that stands for another machine, whose processors the ranks on this one do
    not take."""
    folder = plan.pins(member)

    def enter() -> None:
        namespaces.enter(folder)
        if goes_first:
            _go_first()

    done = subprocess.run(
        argv,
        preexec_fn=enter,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PATH": search_path(), **(env or {})},
    )
    if done.returncode != 0:
        raise LabError(
            f"{what} failed on {member} (exit {done.returncode}): {done.stdout.strip()[-600:]}",
            hint=f"logs are in {plan.log}; `brigade lab down --name {plan.name}` cleans up",
        )
    return done.stdout


def _give_birth(plan: LabPlan, member: str, processor: int) -> subprocess.Popen[str]:
    """Start the shell that becomes a member. Its namespaces are made on the given processor.

    All members share the hub's IPC namespace. Where nodes had their own, UCX would connect them by
    TCP, and Debian's MPICH 4.0.2 hangs in MPI_Finalize over that; sharing System V memory, its
    ranks do not. On the host nothing of it can be left behind.
    """
    script = (
        _BIRTH.format(processors=",".join(map(str, sorted(os.sched_getaffinity(0)))))
        + _mount_script(plan, member)
        + _FAREWELL.format(title=shlex.quote(f"brigade-lab {plan.name} {member}"))
    )
    unshare = ["unshare", "--net", "--mount", "--uts", "--propagation", "private"]
    if member == HUB:
        unshare.append("--ipc")

    def prepare() -> None:
        if member != HUB:
            namespaces.enter(plan.pins(HUB), ("ipc",))
        os.sched_setaffinity(0, {processor})

    return subprocess.Popen(
        ["setsid", "--fork", *unshare, "bash", "-c", script],
        preexec_fn=prepare,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        env={"PATH": search_path()},
    )


def _pin(plan: LabPlan, member: str, shell: subprocess.Popen[str]) -> int:
    """Pin the namespaces of a member that was just born; returns its pid."""
    pid = int(_line(shell, member))
    namespaces.pin(pid, plan.pins(member))
    (plan.state / "pid" / member).write_text(f"{pid}\n")
    return pid


def _line(shell: subprocess.Popen[str], member: str) -> str:
    assert shell.stdout is not None
    line = shell.stdout.readline().strip()
    if line != "ready" and not line.isdigit():
        raise LabError(f"node {member} could not be set up: {line or 'it ended without a word'}")
    return line


def _mount_script(plan: LabPlan, member: str) -> str:
    """The shell commands that give a member its own view of the host's folders."""
    quote = shlex.quote
    stage = quote(str(plan.state / "stage"))
    pins = quote(str(plan.state / "ns"))
    lines = [
        # a copy of a pin would keep its namespace alive: neither this lab's nor another's stay
        f"for pins in {STATE_ROOT}/*/ns; do ! mountpoint -q $pins || umount -l $pins; done",
        f"mount -t tmpfs -o size=4k,mode=755 brigade-lab {pins} && touch {pins}/{INSIDE}",
        f"hostname {member}",
        f"mount --bind {quote(str(plan.etc / 'hosts'))} /etc/hosts",
        f"mount --bind {quote(str(plan.etc / 'slurm'))} /etc/slurm",
    ]
    for folder in PRIVATE:
        lines.append(f"mount -t tmpfs -o mode=1777 brigade-lab {stage}")
        for bind in plan.binds:
            if bind.startswith(folder + "/"):
                inside = stage + quote(bind[len(folder) :])
                lines.append(f"mkdir -p {inside} && mount --rbind {quote(bind)} {inside}")
        lines.append(f"mount --move {stage} {folder}")
    if member != HUB:
        lines.append(_mnt_script(plan, member, stage))
    return "\n".join(lines)


def _mnt_script(plan: LabPlan, member: str, stage: str) -> str:
    """Add mount points to /mnt without touching the host's: a tmpfs that shows what /mnt holds."""
    own = shlex.quote(str(plan.data / "local" / member))
    return f"""
mount -t tmpfs -o mode=755 brigade-lab {stage}
shopt -s nullglob dotglob
for entry in /mnt/*; do
    new={stage}/${{entry##*/}}
    if [ -L "$entry" ]; then cp -P "$entry" "$new"
    elif [ -d "$entry" ]; then mkdir "$new" && mount --rbind "$entry" "$new"
    else touch "$new" && mount --bind "$entry" "$new"; fi
done
mkdir -p {stage}/{Path(SHARED).name} {stage}/{Path(LOCAL).name}
mount --move {stage} /mnt
mount --bind {own} {LOCAL}
"""


def _wire(plan: LabPlan, pids: dict[str, int]) -> None:
    """One bridge in the hub's network, one cable to each node; no link ever exists on the host."""
    hub = [
        "link set lo up",
        "link add br0 type bridge",
        f"address add {plan.address(HUB)}/24 dev br0",
        "link set br0 up",
    ]
    for node in plan.nodes:
        hub.append(f"link add v-{node} type veth peer name eth0 netns {pids[node]}")
        hub.append(f"link set v-{node} master br0 up")
    _ip_batch(plan, HUB, hub)
    for node in plan.nodes:
        _ip_batch(
            plan,
            node,
            ["link set lo up", f"address add {plan.address(node)}/24 dev eth0", "link set eth0 up"],
        )


def _ip_batch(plan: LabPlan, member: str, lines: list[str]) -> None:
    folder = plan.pins(member)
    done = subprocess.run(
        ["ip", "-batch", "-"],
        input="\n".join(lines) + "\n",
        preexec_fn=lambda: namespaces.enter(folder, ("net",)),
        capture_output=True,
        text=True,
        env={"PATH": search_path()},
    )
    if done.returncode != 0:
        raise LabError(f"the network of {member} could not be made: {done.stderr.strip()}")
