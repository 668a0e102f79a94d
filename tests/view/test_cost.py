"""What the view may cost: counted where it can be counted."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest
from auditors import TRACER
from libc_version import sound_under_auditors
from world import JOB, World, compile_c, grow, run

BOUND = """
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
/* Whether, after a first call, the program's own slot for getppid holds getppid itself. */
int main(void)
{
    const char *strings = 0;
    const Elf64_Sym *symbols = 0;
    const Elf64_Rela *slots = 0;
    size_t bytes = 0;
    struct link_map *me = dlopen(0, RTLD_NOW);
    for (Elf64_Dyn *d = me->l_ld; d->d_tag; d++) {
        if (d->d_tag == DT_STRTAB) strings = (char *)d->d_un.d_ptr;
        if (d->d_tag == DT_SYMTAB) symbols = (Elf64_Sym *)d->d_un.d_ptr;
        if (d->d_tag == DT_JMPREL) slots = (Elf64_Rela *)d->d_un.d_ptr;
        if (d->d_tag == DT_PLTRELSZ) bytes = d->d_un.d_val;
    }
    getppid();
    for (size_t i = 0; i < bytes / sizeof *slots; i++)
        if (!strcmp(strings + symbols[ELF64_R_SYM(slots[i].r_info)].st_name, "getppid"))
            printf("bound %d\\n", *(void **)(me->l_addr + slots[i].r_offset)
                                == dlsym(RTLD_DEFAULT, "getppid"));
    return 0;
}
"""


@sound_under_auditors
def test_a_call_is_bound_to_the_function_itself(world: World) -> None:
    """Under an auditor that traces calls the slot would lead into ld.so for ever."""
    exe = compile_c(BOUND, world.tree / "p", "-Wl,-z,lazy")
    world.put()
    assert world.plain(exe).stdout == world.run(exe).stdout == "bound 1\n"
    if platform.machine() != "x86_64":
        return  # the counterpart below is written for one machine
    tracer = compile_c(TRACER, world.base / "tracer.so", "-shared")
    assert world.plain(exe, env={"LD_AUDIT": str(tracer)}).stdout == "bound 0\n"


CALLS = {
    "stat(p, &s)": 0,
    "stat(n, &s)": 0,
    "access(p, R_OK)": 0,
    "lstat(p, &s)": 0,
    "closedir(opendir(d))": 0,
    "readlink(l, b, sizeof b)": 0,
    "realpath(p, b)": 0,
    "close(open(p, O_RDONLY))": 2,
    'stat("/usr", &s)': 1,
    'chdir(d) + stat("leaf", &s)': 2,
}


@pytest.mark.parametrize("call", CALLS)
def test_system_calls_of_an_answered_look_up(world: World, call: str, tmp_path: Path) -> None:
    grow(world)
    world.put()
    source = """
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void)
{
    struct stat s; char b[PATH_MAX]; const char *d = "T/sub/deep/er", *p = "T/sub/deep/er/leaf";
    const char *n = "T/sub/none", *l = "T/to_file";
    (void)s, (void)b, (void)d, (void)p, (void)n, (void)l;
    for (int i = 0; i < 3; i++) { (void)!(CALL); }
    write(-1, "", 0);
    for (int i = 0; i < 100; i++) { (void)!(CALL); }
    write(-1, "", 0);
}
""".replace("CALL", call).replace("T/", f"{world.tree}/")
    exe = compile_c(source, tmp_path / "p", "-Wno-unused-result")
    trace = tmp_path / "trace"
    run(["strace", "-o", str(trace), world.rank, "--job", JOB, "--", str(exe)])
    between = trace.read_text().split('write(-1, "", 0)')[1].splitlines()[1:-1]
    calls = [line for line in between if not re.match(r"(brk|mmap|munmap|getrandom)\(", line)]
    assert len(calls) <= 100 * (CALLS[call] + ("chdir" in call))


def loader_calls(world: World, libraries: int, answered: bool, trace: Path) -> dict[str, int]:
    """System calls by name of a program with so many libraries in ../lib, under the view."""
    world.tree.joinpath("bin").mkdir(exist_ok=True)
    for i in range(libraries):
        library = world.tree / f"lib/libnumber{i}.so"
        compile_c(f"int f{i}(void) {{ return {i}; }}", library, "-shared")
    exe = compile_c(
        "int main(void) { return 0; }",
        world.tree / f"bin/p{libraries}",
        "-Wl,--no-as-needed",
        f"-L{world.tree}/lib",
        *(f"-lnumber{i}" for i in range(libraries)),
        "-Wl,-rpath,$ORIGIN/../lib",
    )
    world.put(trial=world.record(exe)[0] if answered else None)
    run(["strace", "-o", str(trace), world.rank, "--job", JOB, "--", str(exe)])
    text = trace.read_text()
    assert text.count("libnumber") >= libraries
    names = re.findall(r"^(\w+)\(", text[text.rindex("execve(") :], re.MULTILINE)
    return {name: names.count(name) for name in names}


@pytest.mark.parametrize(
    "answered, opens, accesses", [(True, 1, 1), (False, 2, 0)], ids=["answered", "searched"]
)
def test_system_calls_of_one_more_library_in_a_folder(
    world: World, answered: bool, opens: int, accesses: int, tmp_path: Path
) -> None:
    """ld.so opens each; the folder is placed once for all of them."""
    few = loader_calls(world, 2, answered, tmp_path / "few")
    many = loader_calls(world, 12, answered, tmp_path / "many")
    more = {name: many[name] - few.get(name, 0) for name in many}
    assert more.pop("openat") == 10 * opens
    assert more.pop("faccessat", 0) + more.pop("access", 0) == 10 * accesses
    assert more.pop("mkdirat", 0) == 0
    assert more.pop("madvise", 0) <= 10
    assert sum(more.get(name, 0) for name in ("newfstatat", "stat", "fstat", "statx")) <= 10


MAPPED = """
#include <stdio.h>
#include <string.h>
int big(void);
/* KiB of the big library's code that have a page in this process. */
int main(void)
{
    char line[8192]; int inside = 0, kib;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, maps)) {
        if (strchr(line, '-') && strstr(line, " r"))
            inside = strstr(line, "libbig.so") && strstr(line, " r-xp ");
        if (inside && sscanf(line, "Rss: %d kB", &kib) == 1)
            printf("%d\\n", kib);
    }
    return big();
}
"""


def test_the_start_of_a_staged_library_is_mapped_at_once_and_not_all_of_a_large_one(
    world: World,
) -> None:
    big = 'int big(void) { return 0; } __asm__(".text\\n.skip 4 << 20\\n");'
    compile_c(big, world.tree / "libbig.so", "-shared")
    # loaded before it: one whose data lies far from its code, with a gap that cannot be mapped
    far = ("-Wl,-z,max-page-size=0x200000", "-Wl,-z,noseparate-code")
    compile_c("int gap(void) { return 0; }", world.tree / "libgap.so", "-shared", *far)
    linked = (f"-L{world.tree}", "-Wl,--no-as-needed", "-lgap", "-lbig", "-Wl,-rpath,$ORIGIN")
    exe = compile_c(MAPPED, world.tree / "p", *linked)
    world.put()
    mapped = int(world.run(exe).stdout)
    if tuple(map(int, re.findall(r"\d+", platform.release())[:2])) < (5, 14):
        pytest.skip("MADV_POPULATE_READ needs Linux 5.14")
    assert 240 <= mapped < 1024  # KiB
