"""When a program's own entry point is reached is known, and the program does not notice."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest
from tracing import compile_c, traced

#: A library whose constructor forks, starts a thread, and sums up the program's text.
LIBRARY = """
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>
static void *thread(void *none) { access("/in/thread", F_OK); return none; }
static unsigned sum(void)
{
    const unsigned char *entry = (const unsigned char *)getauxval(AT_ENTRY);
    unsigned total = 0;
    for (int i = 0; i < 64; i++) total = total * 31 + entry[i];
    return total;
}
__attribute__((constructor)) static void start(void)
{
    pthread_t t;
    int status;
    access("/in/constructor", F_OK);
    pthread_create(&t, NULL, thread, NULL);
    pthread_join(t, NULL);
    pid_t child = fork();
    if (child == 0) { ((void (*)(void))getauxval(AT_ENTRY))(); _exit(1); }
    waitpid(child, &status, 0);
    dprintf(1, "%u %d\\n", sum(), status);
}
unsigned text_sum(void) { return sum(); }
"""
#: Its forked child jumps to the entry point: a breakpoint that was inherited would kill it there.
PROGRAM = """
#include <stdio.h>
#include <unistd.h>
unsigned text_sum(void);
int main(void) { access("/in/main", F_OK); printf("%u\\n", text_sum()); return 0; }
"""

STARTED = '#include <unistd.h>\nint main(){return access("/in/main", F_OK) != -1;}'


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("entry")
    library = compile_c(LIBRARY, folder / "libstart.so", "-shared", "-fPIC", "-pthread")
    return compile_c(PROGRAM, folder / "p", str(library), f"-Wl,-rpath,{folder}", "-pthread")


@pytest.mark.parametrize("options", [(), ("--all-stops",)], ids=["filter", "all-stops"])
def test_it_lies_between_the_constructors_and_main_and_changes_nothing(
    tmp_path: Path, program: Path, options: tuple[str, ...]
) -> None:
    plain = subprocess.run([program], capture_output=True, text=True)
    trace, done = traced(tmp_path, program, options=options)
    assert (done.stdout, done.returncode) == (plain.stdout, plain.returncode)
    assert len(set(done.stdout.split())) == 2, "one sum, and the child's status"
    first = trace.processes[0]
    if first.entry_ns is None:
        pytest.skip(f"no hardware breakpoints on this machine ({platform.machine()})")
    at = {e.path: e.time_ns for e in first.events if e.path.startswith("/in/")}
    assert at["/in/constructor"] < at["/in/thread"] < first.entry_ns < at["/in/main"]


def test_of_a_static_program_it_is_the_start(tmp_path: Path) -> None:
    trace, done = traced(tmp_path, compile_c(STARTED, tmp_path / "p", "-static"))
    (process,) = trace.processes
    assert done.returncode == 0
    if process.entry_ns is None:
        pytest.skip("no hardware breakpoints on this machine")
    execute, own = process.events[:2]
    assert execute.time_ns + execute.took_ns <= process.entry_ns < own.time_ns


def test_of_a_script_it_is_the_interpreters(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\ncat /in/script\n")
    script.chmod(0o755)
    process = traced(tmp_path, script)[0].processes[0]
    if process.entry_ns is None:
        pytest.skip("no hardware breakpoints on this machine")
    read = next(e for e in process.events if e.path == str(script) and e.call == "openat")
    assert process.entry_ns < read.time_ns


def test_where_the_program_ignores_sigtrap_it_is_not_known(tmp_path: Path) -> None:
    """The kernel would undo that for a breakpoint."""
    script = "trap '' TRAP; exec sh -c 'grep SigIgn /proc/self/status; kill -TRAP $$; echo here'"
    plain = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    trace, done = traced(tmp_path, "sh", "-c", script)
    assert (done.stdout, done.returncode) == (plain.stdout, plain.returncode)
    assert "here" in done.stdout
    assert trace.processes[1].entry_ns is None
    assert any("had loaded their libraries" in text for text in trace.mechanism.lost)


def test_of_a_program_started_through_ld_so_itself_it_is_not_known(tmp_path: Path) -> None:
    """The entry point that the kernel tells is ld.so's, before anything is loaded."""
    program = compile_c(STARTED, tmp_path / "p")
    headers = subprocess.check_output(["readelf", "-l", program], text=True)
    loader = headers.partition("interpreter: ")[2].partition("]")[0]
    trace, done = traced(tmp_path, loader, program)
    assert done.returncode == 0 and "/in/main" in [e.path for e in trace.processes[0].events]
    assert trace.processes[0].entry_ns is None
    assert any("through ld.so itself" in text for text in trace.mechanism.lost)
