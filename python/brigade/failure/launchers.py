"""A launcher that is not there, that refuses, or that is not the program's own.

What launchers say is matched by their own sentences (Slurm 20.11 to 24.05, Open MPI 3 to 5), from
the start of their line on: the same words of a program prove nothing. Where nothing was heard, what
certainly leads to a refusal is looked for.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from brigade.elf import closure
from brigade.elf import file as elf_file
from brigade.elf.file import NotElf
from brigade.failure import closest, libraries
from brigade.failure.diagnosis import Diagnosis
from brigade.failure.evidence import Evidence
from brigade.launch import slurm

_LAUNCHERS = ("srun", "mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.mpich", "mpiexec.hydra")
_IN_A_JOB = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "COBALT_JOBID", "OAR_JOBID")
_REFUSED_S = 120.0
_ANSWER_S = 2.0


# Where a line begins; those of a step of ours stand behind one another, in the sentence about it.
_LINE = r"(?:^|; |(?:said|nodes): )"
_SLURM = _LINE + r"(?:srun|salloc|sbatch): (?:error|fatal): (?:.*[ :])?"


class _Refusal(NamedTuple):
    by: str
    kind: str
    pattern: str
    what: str
    mend: tuple[str, ...]


_REFUSALS = [
    _Refusal(
        "mpirun",
        "launcher-root",
        _LINE + r"(?:mpirun|mpiexec|orterun|prterun)\S* has detected an attempt to run as root",
        "mpirun (Open MPI) does not start programs for root",
        ("become another user", "or: mpirun --allow-run-as-root …"),
    ),
    _Refusal(
        "mpirun",
        "launcher-slots",
        _LINE + r"There are not enough slots available in the system to satisfy the (\d+)",
        "mpirun (Open MPI) has fewer slots than the {0} ranks that are wanted",
        (
            "a host file with `slots=N` for each host: --hostfile FILE",
            "or more ranks than processors on purpose: --oversubscribe",
        ),
    ),
    _Refusal(
        "srun",
        "launcher-partition",
        _SLURM + r"(?:invalid partition specified: (\S+)|Invalid partition name specified)",
        "Slurm has no partition {0}",
        ("sinfo -s   lists those that there are",),
    ),
    _Refusal(
        "srun",
        "launcher-account",
        _SLURM + r"Invalid account or account/partition combination",
        "Slurm does not let you use that account in that partition",
        ("sacctmgr show assoc user=$USER format=account,partition,qos   lists what you may use",),
    ),
    _Refusal(
        "srun",
        "launcher-limits",
        _SLURM + r"(Job violates accounting/QOS policy|More processors requested than permitted"
        r"|Requested node configuration is not available|Memory specification can not be satisfied"
        r"|Requested partition configuration not available now|Requested time limit is invalid"
        r"|Node count specification invalid)",
        "Slurm refuses the job's shape: {0}",
        ("sinfo -o '%P %D %c %m %l'   shows nodes, processors, memory and time of each partition",),
    ),
    _Refusal(
        "srun",
        "launcher-unreachable",
        _SLURM + r"(Unable to contact slurm controller|Could not establish a configuration source"
        r"|Unable to establish controller machine)",
        "srun does not reach Slurm's controller ({0})",
        (
            "is this a login or compute node of the cluster? SLURM_CONF may name another one",
            "without Slurm: brigade run -n N -- PROGRAM, or mpirun -n N PROGRAM",
        ),
    ),
    _Refusal(
        "srun",
        "launcher-plugin",
        _SLURM
        + r"(?:Couldn't find the specified plugin name for|cannot find mpi plugin for) (\S+)",
        "Slurm has no MPI plugin {0}",
        ("srun --mpi=list   shows those that there are",),
    ),
    _Refusal(
        "srun",
        "launcher-pmi",
        _LINE + r"(?:\d+: )?The application appears to have been direct launched using \"srun\"",
        "the program's Open MPI does not understand how srun starts it",
        ("srun --mpi=pmix …   (srun --mpi=list shows what there is)", "or: mpirun PROGRAM"),
    ),
    _Refusal(
        "srun",
        "launcher-oom",
        _LINE + r"(?:slurmstepd|srun): error: .*(?:\boom[-_]kill|: Out Of Memory)",
        "a node had no memory left for the job, and a process was killed",
        ("more memory a node: --mem=0, --mem-per-cpu=…; or fewer ranks a node: -N …",),
    ),
]


def refused(said: str, launcher: str | None, killed: bool = False) -> Diagnosis | None:
    """What the words of that kind of launcher mean, if it refused, or, of a job that was `killed`,
    if it says so."""
    for refusal in _REFUSALS:
        if refusal.by != launcher or (refusal.kind == "launcher-oom" and not killed):
            continue
        match = re.search(refusal.pattern, said, re.MULTILINE)
        if match:
            words = next((one for one in match.groups() if one), "of that name")
            return Diagnosis(refusal.kind, refusal.what.format(words), mend=list(refusal.mend))
    return None


def absent(name: str, env: Mapping[str, str]) -> str:
    """What to do about a launcher that is not in PATH, as the hint of an error."""
    there = [one for one in _LAUNCHERS if one != name and closest.has(one, env)]
    modules = ["slurm"] if name == "srun" else ["openmpi", "mpich", "intel-mpi", "impi", "mpi"]
    loads = [text for one in modules for text in closest.module(one, env)]
    if loads:
        return f"{loads[0]}, which offers it"
    if there:
        which = ", ".join(there[:3])
        return f"load the module that offers it; {which} {'is' if len(there) == 1 else 'are'} there"
    return "load the module that offers it, or start without one: brigade run -n 4 -- …"


def examine(evidence: Evidence) -> Iterator[Diagnosis]:
    """Whether the launcher refused, or belongs to another MPI."""
    if evidence.launcher in (None, "local"):
        return
    killed = evidence.signal == signal.SIGKILL or evidence.status == signal.SIGKILL
    said = refused(evidence.said, evidence.launcher, killed)
    if said is not None:
        yield said
    elif evidence.launcher == "mpirun" and evidence.seconds < _REFUSED_S:
        yield from _open_mpi(evidence)
    elif evidence.launcher == "srun" and evidence.seconds < _REFUSED_S:
        yield from _slurm(evidence)


def _open_mpi(evidence: Evidence) -> Iterator[Diagnosis]:
    words, env = evidence.words, evidence.env
    allowed = env.get("OMPI_ALLOW_RUN_AS_ROOT") and env.get("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    if os.geteuid() == 0 and not allowed and "--allow-run-as-root" not in words:
        yield _plain("launcher-root")
    elif evidence.ranks and evidence.ranks > _slots(evidence):
        yield Diagnosis(
            "launcher-slots",
            f"mpirun (Open MPI) has fewer slots than the {evidence.ranks} ranks that are wanted: "
            f"{os.uname().nodename} has {os.cpu_count()} processors",
            mend=list(_refusal("launcher-slots").mend),
        )


def _refusal(kind: str) -> _Refusal:
    return next(one for one in _REFUSALS if one.kind == kind)


def _plain(kind: str) -> Diagnosis:
    found = _refusal(kind)
    return Diagnosis(kind, found.what, mend=list(found.mend))


def _slots(evidence: Evidence) -> float:
    """The most slots that Open MPI can have found; infinite where something may say more."""
    text = " ".join(_told(evidence))
    said = any(name in evidence.env for name in _IN_A_JOB)
    said = said or any(name.startswith(("OMPI_MCA", "PRTE_MCA")) for name in evidence.env)
    if _set_up(evidence.env):
        return float("inf")
    if said or re.search(r"-(-?host|H\b|-?machine|-?mca|-?oversub|-?map-by|-?am|-?tune)", text):
        return float("inf")
    return os.cpu_count() or float("inf")


def _told(evidence: Evidence) -> list[str]:
    """The launcher's own words: those before the first program. A file may name that."""
    words, program = evidence.words, evidence.program[:1]
    return words[: words.index(program[0])] if program and program[0] in words else words


def _set_up(env: Mapping[str, str]) -> bool:
    """Whether a file of the user's or the machine's tells Open MPI of hosts or slots."""
    files = ["/etc/openmpi/openmpi-mca-params.conf", "/etc/openmpi/openmpi-default-hostfile"]
    files += [f"{env.get('HOME', '')}/.{name}/mca-params.conf" for name in ("openmpi", "prte")]
    for path in files:
        try:
            with open(path, encoding="utf-8", errors="replace") as text:
                lines = [line for line in text if line.strip() and not line.startswith("#")]
        except OSError:
            continue
        if any("hostfile" in path or re.search("oversubscribe|hostfile", one) for one in lines):
            return True
    return False


def _slurm(evidence: Evidence) -> Iterator[Diagnosis]:
    """Ask Slurm whether it is there, and knows the partition; a step of a job needs neither."""
    tools = [shutil.which(name, path=evidence.env.get("PATH")) for name in ("sinfo", "scontrol")]
    if "SLURM_JOB_ID" in evidence.env or not all(tools):
        return
    match = re.search(r"(?:^| )(?:-p ?|--partition[= ])(\S+)", " ".join(_told(evidence)))
    partition = match[1] if match else evidence.env.get("SLURM_PARTITION", "")
    known = slurm.ask(["sinfo", "--noheader", "--format", "%R"], _ANSWER_S).split()
    if not known:
        if not slurm.ask(["scontrol", "ping"], _ANSWER_S):
            found = _refusal("launcher-unreachable")
            what = found.what.format("scontrol ping fails, too")
            yield Diagnosis(found.kind, what, mend=list(found.mend))
        return
    wrong = [one for one in partition.split(",") if one and one not in known]
    if wrong:
        near = closest.alike(wrong[0], known)
        yield Diagnosis(
            "launcher-partition",
            f"Slurm has no partition {wrong[0]}",
            known[:8],
            near[0] if near else "",
            ["sinfo -s   tells more about them"],
        )


# Whose library it is, by its soname, and by whom its programs have to be started.
_FAMILIES = {
    r"libmpi\.so\.(40|20)": ("Open MPI", "mpirun.openmpi", "bin/mpirun"),
    r"lib(mpi|mpich)\.so\.12": ("MPICH", "mpiexec.mpich", "bin/mpiexec.hydra"),
}


def examine_mpi(evidence: Evidence) -> Iterator[Diagnosis]:
    """A program of one MPI under the launcher of another: every rank believes it is alone."""
    library = _mpi_of(evidence)
    if library is None or evidence.launcher not in ("mpirun", "mpiexec"):
        return
    name = os.path.basename(library)
    for pattern, (family, program, beside) in _FAMILIES.items():
        if not re.match(pattern, name):
            continue
        theirs = "Open MPI" if evidence.launcher == "mpirun" else "MPICH"
        if theirs == family or (theirs == "Open MPI" and _speaks_pmix(library)):
            return
        prefix = os.path.dirname(os.path.dirname(library))
        own = shutil.which(program, path=evidence.env.get("PATH")) or f"{prefix}/{beside}"
        there = os.access(own, os.X_OK)
        yield Diagnosis(
            "launcher-of-another-mpi",
            f"{evidence.program[0]} was built with {family} ({library}); {evidence.words[0]} is "
            f"{theirs}'s: every rank is rank 0 of 1, or waits for another",
            closest=own if there else "",
            mend=[
                f"{own if there else program} -n {evidence.ranks or 'N'} {evidence.program[0]} …",
                f"or build it with {theirs}'s mpicc",
            ],
        )


def _speaks_pmix(library: str) -> bool:
    """Whether an MPI is one that mpirun of Open MPI starts, too: the MPICH of Ubuntu 24.04 is."""
    try:
        return any(name.startswith("libpmix.so") for name in elf_file.read(library).needed)
    except (OSError, NotElf):
        return False


def _mpi_of(evidence: Evidence) -> str | None:
    """The MPI library of the program; of a Python program, the one that its trial has loaded."""
    suspect = evidence.suspects[-1]
    path = libraries.program_of(suspect)
    try:
        elf = elf_file.read(path) if path else None
    except (OSError, NotElf):
        elf = None
    search = libraries.search_for(elf, suspect) if elf else None
    if elf and search:
        for loaded in closure.close(elf, search).objects:
            name = loaded.elf.soname or ""
            if any(re.match(pattern, name) for pattern in _FAMILIES):
                return os.path.join(os.path.dirname(loaded.elf.path), name)
    return evidence.mpi_library
