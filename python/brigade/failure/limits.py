"""A limit that was met: memory of the node, of a file system in it, or of the process itself.

A signal alone proves little, and a word less: programs say such things of what they got over, or of
what they test. A rule speaks when the signal, or the program's last words, and what can still be
seen (a file system that is full, a limit that is small, the kernel's own count of kills) agree.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

from brigade.elf import closure
from brigade.elf import file as elf_file
from brigade.elf.file import NotElf
from brigade.failure import groups, libraries
from brigade.failure.diagnosis import Diagnosis
from brigade.failure.evidence import Evidence
from brigade.trial import mounts

_MEMORY_TYPES = ("tmpfs", "ramfs", "hugetlbfs")
_USUAL_STACK = 8 << 20
_SMALL_SHM = 128 << 20
_FEW_FILES = 16  # with which nothing starts
_USUAL_FILES = 1024  # as systems have it, and as a rank of many, or a Python of many modules, meets
_MANY_THREADS = 4096  # as the smaller of usual limits; a node of ranks that start one a processor
_NO_MEMORY = re.compile(
    r"failed to map segment from shared object|[Cc]annot allocate memory|MemoryError|std::bad_alloc"
    r"|cannot create shared object descriptor|out of memory"
)
_NO_THREADS = re.compile(
    r"Cannot fork|can't start new thread|Thread creation failed|pthread_create.*failed"
    r"|(fork|pthread_create).*Resource temporarily unavailable"
)
_NO_FILES = re.compile(r"Too many open files|object file: Error 24")
_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded")
_STATIC_TLS = re.compile(r"(\S+): cannot allocate memory in static TLS block")


def size(number: float) -> str:
    """Bytes in words people use."""
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"


def examine(evidence: Evidence) -> Iterator[Diagnosis]:
    for rule in (_killed, _bus, _address_space, _files, _stack, _threads, _room, _static_tls):
        found = list(rule(evidence))
        yield from found
        if found:
            return


def _killed(evidence: Evidence) -> Iterator[Diagnosis]:
    """Ended by SIGKILL while the kernel counted a kill for want of memory."""
    killed = evidence.signal == signal.SIGKILL or evidence.status == 9  # the latter from MPICH
    if not killed or evidence.oom_kills < 1:
        return
    limit, whole = memory_limit(), _memory()
    of = f"{size(limit)} that it may use" if limit < whole else f"its {size(whole)}"
    image = f", {size(evidence.image_bytes)} of it the image" if evidence.image_bytes else ""
    mend = [
        "fewer ranks a node (-N …, --ntasks-per-node), or more memory (--mem=…)",
        "where is it used: `/usr/bin/time -v PROGRAM` of one rank",
    ]
    if evidence.image_bytes > whole // 10:
        mend.append(f"less for the image: --memory {max(1, evidence.image_bytes >> 21)}M")
    yield Diagnosis(
        "out-of-memory",
        f"{os.uname().nodename} ran out of memory ({of}{image}): "
        f"{evidence.oom_kills} process{'es were' if evidence.oom_kills > 1 else ' was'} killed",
        mend=mend,
    )


def _memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def memory_limit() -> int:
    """The smallest limit of our control group and those above it."""
    return min([_memory(), *groups.limits("memory", "memory.max", "memory.limit_in_bytes")])


def _bus(evidence: Evidence) -> Iterator[Diagnosis]:
    """SIGBUS: a page of a mapped file could not be had. Memory file systems that are full, or as
    small as containers have them, are the reason."""
    if evidence.signal != signal.SIGBUS or not evidence.is_local:
        return
    for mount in mounts.read():
        if mount.fstype not in _MEMORY_TYPES and mount.point != "/dev/shm":
            continue
        try:
            stat = os.statvfs(mount.point)
        except OSError:
            continue
        whole, free = stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize
        is_full = whole >= 1 << 19 and free < max(whole // 100, 1 << 16)
        is_small = mount.point == "/dev/shm" and 0 < whole < _SMALL_SHM
        if not (is_full or is_small) or mount.point.startswith(("/run", "/sys", "/dev/lock")):
            continue
        yield Diagnosis(
            "no-room-in-memory",
            f"the job was ended by SIGBUS: {mount.point} on {os.uname().nodename} has {size(free)} "
            f"of {size(whole)} free",
            mend=[
                f"make room: ls -la {mount.point}; what Brigade left: brigade clean",
                f"make it larger: mount -o remount,size=… {mount.point}; docker run --shm-size=…",
                "the image elsewhere, or less of it: BRIGADE_NODE_DIR=…, --memory SIZE",
            ],
        )
        return


def _address_space(evidence: Evidence) -> Iterator[Diagnosis]:
    """`ulimit -v`: smaller than what the program's files alone take, or it said so."""
    limit = evidence.limits.get("as")
    if limit is None or not evidence.is_local:
        return
    needed = _mapped(evidence)
    if needed < limit and not _NO_MEMORY.search(evidence.last_said):
        return
    more = f"; its program and libraries alone take {size(needed)}" if needed >= limit else ""
    yield Diagnosis(
        "address-space",
        f"the job may use {size(limit)} of address space a process (ulimit -v){more}",
        mend=["ulimit -v unlimited   (or a higher one, as far as `ulimit -Hv` lets you)"],
    )


def _mapped(evidence: Evidence) -> int:
    suspect = evidence.suspects[-1]
    path = libraries.program_of(suspect)
    try:
        elf = elf_file.read(path) if path else None
    except (OSError, NotElf):
        return 0
    search = libraries.search_for(elf, suspect) if elf else None
    if elf is None or search is None:
        return 0
    return sum(one.elf.mapped_bytes for one in closure.close(elf, search).objects)


def _files(evidence: Evidence) -> Iterator[Diagnosis]:
    limit = evidence.limits.get("nofile")
    said = _NO_FILES.search(evidence.last_said) is not None
    if limit is None or limit > (_USUAL_FILES if said else _FEW_FILES - 1):
        return
    yield Diagnosis(
        "open-files",
        f"the job may have {limit} files open a process (ulimit -n)",
        mend=["ulimit -n 65536   (or as far as `ulimit -Hn` lets you)"],
    )


def _stack(evidence: Evidence) -> Iterator[Diagnosis]:
    limit = evidence.limits.get("stack")
    if evidence.signal != signal.SIGSEGV or limit is None or limit >= _USUAL_STACK:
        return
    yield Diagnosis(
        "stack",
        f"the job was ended by SIGSEGV, and may use {size(limit)} of stack (ulimit -s; "
        f"{size(_USUAL_STACK)} is usual): large local arrays end so",
        mend=[
            "ulimit -s unlimited   (and export OMP_STACKSIZE=256M for threads)",
            "under Slurm: srun --propagate=STACK …",
        ],
    )


def _threads(evidence: Evidence) -> Iterator[Diagnosis]:
    if not _NO_THREADS.search(evidence.last_said):
        return
    kinds = {"nproc": "ulimit -u", "pids": "its control group"}
    most = {what: evidence.limits.get(kind) for kind, what in kinds.items()}
    given = {what: number for what, number in most.items() if number is not None}
    if not given or min(given.values()) > _MANY_THREADS:
        return
    yield Diagnosis(
        "threads",
        "the job could not start another thread or process "
        f"({', '.join(f'{what}: {number}' for what, number in given.items())})",
        mend=[
            "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1   (each rank starts one a processor)",
            "ulimit -u $(ulimit -Hu)",
        ],
    )


def _room(evidence: Evidence) -> Iterator[Diagnosis]:
    """A disk that was full, and still is."""
    if not _NO_ROOM.search(evidence.said):
        return
    env = evidence.env
    for place in dict.fromkeys((evidence.cwd, env.get("TMPDIR", "/tmp"), env.get("HOME", "/"))):
        try:
            stat = os.statvfs(place)
        except OSError:
            continue
        whole, free = stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize
        if stat.f_files and not stat.f_favail:
            yield Diagnosis(
                "disk-full", f"{place} has no room for another file", mend=[f"df -i {place}"]
            )
            return
        if whole and free < 1 << 20:
            yield Diagnosis(
                "disk-full",
                f"{place} has {size(free)} of {size(whole)} free",
                mend=["make room, or write elsewhere: TMPDIR=…, another working directory"],
            )
            return


def _static_tls(evidence: Evidence) -> Iterator[Diagnosis]:
    """ld.so's own words about a library that is there."""
    match = _STATIC_TLS.search(evidence.last_said)
    if match and os.path.isfile(os.path.join(evidence.cwd, match[1])):
        name = os.path.basename(match[1])
        older = _libc_version() < (2, 32)  # no such tunable, and 1.5 KiB where an auditor is
        yield Diagnosis(
            "static-tls",
            f"{name} came too late for the room that ld.so keeps for thread-local variables",
            mend=[
                "glibc before 2.32 has no more of it where an auditor is: start it without Brigade"
                if older
                else "export GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384",
                f"or load it first: export LD_PRELOAD={match[1]}",
            ],
        )


def _libc_version() -> tuple[int, ...]:
    """That of the GNU C library."""
    text = os.confstr("CS_GNU_LIBC_VERSION") or ""  # glibc 2.28
    return tuple(map(int, re.findall(r"\d+", text)))


def examine_processor(evidence: Evidence) -> Iterator[Diagnosis]:
    """SIGILL. Open MPI's own status for a program that is not there is that of this signal."""
    said = "Illegal instruction" in evidence.said or "signal 4" in evidence.said
    if evidence.signal != signal.SIGILL or (evidence.launcher == "mpirun" and not said):
        return
    model = _model()
    yield Diagnosis(
        "illegal-instruction",
        f"{' '.join(evidence.program[:1])} met an instruction that {os.uname().nodename} does not "
        f"have{f' ({model})' if model else ''}: it, or a library of it, was built for another "
        "processor, or ended itself so (a trap)",
        mend=[
            "build it on the kind of node that it runs on (-march=native: the building machine)",
            "or ask for that kind of node: srun --constraint=…",
        ],
    )


def _model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as text:
            match = re.search(r"^model name\s*: (.*)$", text.read(), re.MULTILINE)
    except OSError:
        return ""
    return match[1] if match else ""
