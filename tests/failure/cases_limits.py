"""Programs that meet a limit: of memory, of a file system, of the process, of the processor."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from failing import Case, Made
from world_of_c import library, program

CGROUPS = Path("/sys/fs/cgroup")


def small_tmpfs(base: Path) -> Path:
    folder = base / "mnt"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=True)
    return folder


def no_mount() -> str:
    return "" if os.geteuid() == 0 else "needs root, to mount a small tmpfs"


def group_of(controller: str, limit: dict[str, str]) -> Path:
    """A new control group with one of the limits, whatever the version."""
    for folder in (CGROUPS / controller, CGROUPS):
        group = folder / f"brigade-test-{os.getpid()}"
        for name, value in limit.items():
            if (folder / "cgroup.procs").exists():
                group.mkdir(exist_ok=True)
                if (group / name).exists():
                    (group / name).write_text(value)
                    return group
    raise OSError("no such controller")


def no_group(controller: str, limit: dict[str, str]) -> str:
    try:
        group_of(controller, limit).rmdir()
    except OSError as error:
        return f"needs a control group for {controller} ({error})"
    return ""


MEMORY = {"memory.limit_in_bytes": "32M", "memory.max": "32M"}
PIDS = {"pids.max": "1"}


def memory_of_the_group(base: Path) -> Made:
    source = "#include <stdlib.h>\n#include <string.h>\n"
    source += "int main(void) { for (;;) memset(malloc(1 << 20), 1, 1 << 20); }"
    app = program(base / "hungry", "-O0", source=source)
    return Made([str(app)], group=group_of("memory", MEMORY))


def no_memory_group() -> str:
    from brigade.job.failed import oom_kills

    return no_group("memory", MEMORY) if oom_kills() is not None else "needs oom_kill in vmstat"


def file_system_in_memory_is_full(base: Path) -> Made:
    folder = small_tmpfs(base)
    source = f"""
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{{
    int fd = open("{folder}/segment", O_RDWR | O_CREAT, 0600);
    if (ftruncate(fd, 4 << 20)) return 1;
    memset(mmap(0, 4 << 20, PROT_WRITE, MAP_SHARED, fd, 0), 1, 4 << 20);
    return 0;
}}
"""
    return Made([str(program(base / "app", source=source))])


def disk_is_full(base: Path) -> Made:
    folder = small_tmpfs(base)
    (base / "app.sh").write_text(f"#!/bin/sh\ncat /dev/zero > {folder}/out\n")
    (base / "app.sh").chmod(0o755)
    return Made([str(base / "app.sh")], {"TMPDIR": str(folder), "LC_ALL": "C"})


def address_space(base: Path) -> Made:
    lib = library(base / "libbig.so", source="char big[256 << 20];")
    app = program(base / "app", needs=[lib])
    return Made([str(app)], {"LD_LIBRARY_PATH": str(base)}, limits={"as": 128 << 20})


def open_files(base: Path) -> Made:
    return Made([str(program(base / "app"))], limits={"nofile": 3})


def stack(base: Path) -> Made:
    source = "#include <string.h>\nvolatile char sink;\n"
    source += "int main(void) { char a[4 << 20]; memset(a, 1, sizeof a); sink = a[99]; return 0; }"
    app = program(base / "app", "-O0", source=source)
    return Made([str(app)], limits={"stack": 1 << 20})


def threads(base: Path) -> Made:
    (base / "app.sh").write_text("#!/bin/sh\n/bin/true\n/bin/true\nexit 1\n")
    (base / "app.sh").chmod(0o755)
    return Made([str(base / "app.sh")], {"LC_ALL": "C"}, group=group_of("pids", PIDS))


def instruction(base: Path) -> Made:
    source = "int main(void) { __builtin_trap(); }"
    if os.uname().machine == "x86_64":
        source = 'int main(void) { __asm__ volatile("ud2"); return 0; }'
    return Made([str(program(base / "app", source=source))])


def static_tls(base: Path) -> Made:
    tls = '__thread char big[1 << 16] __attribute__((tls_model("initial-exec"))); '
    library(base / "libtls.so", source=tls + "char *f(void) { return big; }")
    source = f"""
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{{
    if (!dlopen("{base}/libtls.so", RTLD_NOW)) fprintf(stderr, "%s\\n", dlerror());
    return 1;
}}
"""
    return Made([str(program(base / "app", source=source))])


CASES = [
    Case("out-of-memory", "a process that was killed for want of memory", memory_of_the_group,
         ["ran out of memory", "1 process was killed"], needs=no_memory_group),
    Case("no-room-in-memory", "a file system in memory that is full (SIGBUS)",
         file_system_in_memory_is_full,
         ["ended by SIGBUS: {base}/mnt on", "of 1 MiB free", "BRIGADE_NODE_DIR"], needs=no_mount),
    Case("disk-full", "a file system that is full", disk_is_full,
         ["{base}/mnt has 0 B of 1 MiB free"], trial=True, needs=no_mount),
    Case("address-space", "a limit of address space (ulimit -v)", address_space,
         ["may use 128 MiB of address space", "alone take 2", "ulimit -v unlimited"]),
    Case("open-files", "a limit of open files (ulimit -n)", open_files,
         ["may have 3 files open", "ulimit -n"]),
    Case("stack", "a limit of the stack (ulimit -s)", stack,
         ["ended by SIGSEGV, and may use 1 MiB of stack", "ulimit -s unlimited"]),
    Case("threads", "a limit of processes", threads, ["could not start another thread or process"],
         trial=True, needs=lambda: no_group("pids", PIDS)),
    Case("illegal-instruction", "an instruction that the processor does not have", instruction,
         ["met an instruction that", "-march=native"]),
    Case("static-tls", "a library that comes too late for static TLS", static_tls,
         ["libtls.so came too late", "GLIBC_TUNABLES"], trial=True),
]  # fmt: skip
