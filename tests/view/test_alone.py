"""Programs that Brigade's libraries would break, or that ask the kernel where they lie, notice
nothing: they are started by their own path, and where needed without the libraries."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from world import World, compile_c

LOADER = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}

#: Prints where the kernel says it lies, past any hook, and whose libraries are mapped.
WHERE = """
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    char exe[4096] = "", line[5000];
    syscall(SYS_readlinkat, -100, "/proc/self/exe", exe, sizeof exe - 1);
    int ours = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) ours |= strstr(line, "libbrigade") != NULL;
    printf("%s ours %d\\n", exe, ours);
    return 3;
}
"""

GO_NOTE = """
__asm__(".section .note.go.buildid,\\"a\\",@note\\n.balign 4\\n.long 4,4,4\\n"
        ".ascii \\"Go\\\\0\\\\0abcd\\"\\n.previous\\n");
"""


def same(world: World, *command: str | Path, **options) -> str:
    """What the program prints, started by the wrapper, by a shell and plainly."""
    plain = world.plain(*command, **options)
    for words in (command, ("/bin/sh", "-c", '"$@"', "sh", *command)):
        viewed = world.run(*words, **options)
        assert (viewed.stdout, viewed.stderr, viewed.returncode) == (
            plain.stdout,
            plain.stderr,
            plain.returncode,
        )
    return plain.stdout


@pytest.mark.parametrize("flag", ["-static", "-static-pie"])
def test_a_static_program_finds_itself_by_its_own_path(world: World, flag: str) -> None:
    exe = compile_c(WHERE, world.tree / "static", flag)
    world.put()
    assert same(world, exe) == f"{exe} ours 0\n"


def test_a_static_programs_children_keep_the_view(world: World) -> None:
    source = '#include <unistd.h>\nint main(void) { return execl("CHILD", "c", (char *)0); }'
    child = compile_c(WHERE, world.tree / "child")
    parent = compile_c(source.replace("CHILD", str(child)), world.tree / "parent", "-static")
    world.put()
    assert world.run(parent).stdout == f"{child} ours 1\n"


def test_a_go_program_finds_itself_and_its_look_ups_are_answered(world: World) -> None:
    exe = compile_c(GO_NOTE + WHERE, world.tree / "go")
    world.put()
    assert world.plain(exe).stdout == f"{exe} ours 0\n"
    assert world.run(exe).stdout == f"{exe} ours 1\n"


def test_a_script_of_a_static_interpreter(world: World) -> None:
    exe = compile_c(WHERE, world.tree / "static", "-static")
    script = world.tree / "script"
    script.write_text(f"#!{exe} -x\n")
    script.chmod(0o755)
    world.put()
    assert same(world, script) == f"{exe} ours 0\n"


def test_a_program_with_a_loader_of_its_own_starts_alone(world: World) -> None:
    own = Path(shutil.copy(LOADER[os.uname().machine], world.tree / "ld.so"))
    exe = compile_c(WHERE, world.tree / "p", f"-Wl,--dynamic-linker={own}")
    world.put()
    assert same(world, exe) == f"{exe} ours 0\n"


@pytest.mark.parametrize("sanitizer", ["address", "leak", "thread", "undefined"])
def test_programs_built_with_a_sanitizer(world: World, sanitizer: str) -> None:
    exe = compile_c(
        "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { void *p = malloc(9); "
        'FILE *f = fopen("/etc/passwd", "r"); printf("%d\\n", p && f); fclose(f); free(p); }',
        world.tree / "checked",
        f"-fsanitize={sanitizer}",
    )
    world.put()
    # a sanitized process and ptrace or a randomised address space need not go together
    assert same(world, "setarch", "-R", exe) == "1\n"


def test_ldd_lists_what_it_lists_plainly(world: World) -> None:
    exe = compile_c(WHERE, world.tree / "p")
    world.put()
    listed = [re.sub(r"0x\w+", "", by("ldd", exe).stdout) for by in (world.plain, world.run)]
    assert listed[0] == listed[1]
    assert "libc.so" in listed[0]


def test_what_valgrind_starts_has_no_library_of_ours(world: World) -> None:
    world.put()
    env = {**os.environ, "VALGRIND_LAUNCHER": "/usr/bin/valgrind", "LD_PRELOAD": ""}
    assert "libbrigade" not in world.run("/usr/bin/env", env=env).stdout
    del env["VALGRIND_LAUNCHER"]
    assert "libbrigade" in world.run("/usr/bin/env", env=env).stdout


def test_the_users_own_preload_stays_in_a_program_started_alone(world: World) -> None:
    world.put()
    lib = compile_c("int nothing;", world.base / "libmine.so", "-shared")
    env = {"PATH": "/usr/bin:/bin", "VALGRIND_LAUNCHER": "x", "LD_PRELOAD": f"{lib}:{lib}"}
    env["GLIBC_TUNABLES"] = "glibc.malloc.check=0"
    seen = world.run("/usr/bin/env", env=env).stdout.splitlines()
    assert f"LD_PRELOAD={lib}:{lib}" in seen
    assert "GLIBC_TUNABLES=glibc.malloc.check=0" in seen
    assert not any(line.startswith("LD_AUDIT=") for line in seen)


def test_a_child_of_another_user_starts_without_a_word_of_ld_so(world: World) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    world.put()
    world.stage.chmod(0o700)
    script = "import os\nos.setgid(65534)\nos.setuid(65534)\nos.execv('/bin/echo', ['echo', 'hi'])"
    done = world.run("/usr/bin/python3", "-S", "-c", script)
    assert (done.stdout, done.stderr, done.returncode) == ("hi\n", "", 0)


@pytest.mark.parametrize("name", ["srun", "mpirun.openmpi", "sbatch"])
def test_a_launcher_passes_nothing_of_ours_on_to_other_nodes(world: World, name: str) -> None:
    launcher = world.tree / name
    launcher.write_text("#!/usr/bin/env -S sh -c env\n")
    launcher.chmod(0o755)
    world.put()
    env = {"PATH": f"{world.tree}:/usr/bin:/bin", "LD_PRELOAD": ""}
    calls = ("os.system(n)", "os.execvp(n, [n])", "os.posix_spawnp(n, [n], os.environ); os.wait()")
    for call in calls:
        script = f"import os; n = {name!r}; {call}"
        seen = world.run("/usr/bin/python3", "-S", "-c", script, env=env).stdout
        assert f"PATH={world.tree}" in seen
        assert "libbrigade" not in seen and "glibc.rtld" not in seen
        assert "BRIGADE_STAGE=" not in seen and "BRIGADE_STATE=" not in seen


THREADS = """
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *run(void *arg) { return arg; }
int main(void)
{
    for (long size = PTHREAD_STACK_MIN; size <= 1 << 20; size *= 4) {
        pthread_attr_t a; pthread_t t; void *got = 0; size_t after = 0;
        pthread_attr_init(&a);
        int e = pthread_attr_setstacksize(&a, size);
        int c = pthread_create(&t, &a, run, &got);
        if (!c) pthread_join(t, &got);
        pthread_attr_getstacksize(&a, &after);
        printf("%ld %d %d %d %zu\\n", size, e, c, got != 0, after);
    }
    pthread_attr_t a; pthread_t t; void *got = 0;
    size_t size = 1 << 18;
    pthread_attr_init(&a);
    pthread_attr_setstack(&a, aligned_alloc(4096, size), size);
    int c = pthread_create(&t, &a, run, &got);
    if (!c) pthread_join(t, &got);
    printf("own %d %d\\n", c, got != 0);
    return 0;
}
"""


def test_threads_with_the_smallest_stack_start(world: World) -> None:
    exe = compile_c(THREADS, world.tree / "threads", "-pthread")
    world.put()
    assert "16384 0 0 1 16384" in same(world, exe)
