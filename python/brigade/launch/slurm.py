"""Questions to Slurm's own commands. None raises, or waits for long: Slurm may be elsewhere,
or away."""

from __future__ import annotations

import re
import subprocess

_SHORT_S = 10.0


def ask(command: list[str], wait_s: float = _SHORT_S) -> str:
    """Output of a short Slurm command, or '' if it failed."""
    status, out, _ = _asked(command, wait_s)
    return out if status == 0 else ""


def count_nodes(hosts: str) -> int:
    """How many nodes a host list (`n[0-3],m1`) names; 0 if that cannot be found out."""
    return len(ask(["scontrol", "show", "hostnames", hosts]).split())


def nodes_of(job: str) -> int:
    """How many nodes a job has, all its components; 0 if that cannot be found out."""
    out = ask(["squeue", "--noheader", "--jobs", job, "--format", "%D"])
    return sum(int(line) for line in out.split() if line.isdigit())


def options_with_value(command: str) -> set[str]:
    """Long options that have a value in the next word, as the command's own help shows them: a
    site's plug-ins add some (SPANK: --container-image=IMAGE of Pyxis)."""
    return set(re.findall(r"^ +(?:-\w, )?--([\w-]+)=", ask([command, "--help"]), re.M))


def job_is_over(job: str) -> bool:
    """Whether Slurm says that a job has ended; no word from Slurm is no."""
    status, out, said = _asked(["squeue", "--noheader", "--jobs", job, "--format", "%T"])
    if status == 0:
        return not out.strip()
    return "Invalid job id" in said


def _asked(command: list[str], wait_s: float = _SHORT_S) -> tuple[int, str, str]:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            check=False, timeout=wait_s,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return -1, "", str(error)
    return done.returncode, done.stdout, done.stderr
