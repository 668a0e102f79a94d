"""Programs that cannot be executed."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from failing import Case, Made
from world_of_c import compile_c, patch, program

OTHER = {"x86_64": 183, "aarch64": 62}[os.uname().machine]


def script(path: Path, text: str, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    path.chmod(mode)
    return path


def typo_in_path(base: Path) -> Made:
    script(base / "bin/my-solver", "#!/bin/sh\n")
    return Made(["my-slover"], {"PATH": f"{base}/bin:{os.environ['PATH']}"})


def not_loaded_in_a_script(base: Path) -> Made:
    (base / "modules/gromacs").mkdir(parents=True)
    job = script(base / "job.sh", "#!/bin/sh\ngromacs mdrun\n")
    return Made([str(job)], {"MODULEPATH": f"{base}/modules"})


def in_the_working_directory(base: Path) -> Made:
    program(base / "solver-of-mine")
    return Made(["solver-of-mine"])


def typo_in_a_name(base: Path) -> Made:
    program(base / "build/solver")
    return Made(["build/sovler"])


def link_to_nothing(base: Path) -> Made:
    program(base / "v2/solver")
    (base / "solver").symlink_to("v1/solver")
    return Made(["./solver"])


def a_directory(base: Path) -> Made:
    program(base / "build/solver")
    return Made(["./build"])


def without_the_bit(base: Path) -> Made:
    return Made([str(script(base / "job.sh", "#!/bin/sh\n", 0o644))])


def on_a_noexec_mount(base: Path) -> Made:
    shm = Path("/dev/shm")
    folder = shm / f"brigade-test-{os.getpid()}"
    if not os.statvfs(shm).f_flag & os.ST_NOEXEC:
        folder = base / "mnt"
        folder.mkdir()
        os.system(f"mount -t tmpfs -o noexec none {folder}")
    return Made([str(program(folder / "solver"))])


def cannot_mount() -> str:
    return "" if os.geteuid() == 0 else "needs root, to mount noexec"


def being_written(base: Path) -> Made:
    path = program(base / "solver")
    return Made([str(path)], hold=path.open("r+b"))


def windows_line_ends(base: Path) -> Made:
    return Made([str(script(base / "job.sh", "#!/bin/sh\r\necho hello\r\n"))])


def interpreter_that_is_not_there(base: Path) -> Made:
    return Made([str(script(base / "plot", "#!/opt/perl-5.30/bin/perl\n"))])


def interpreter_not_in_path(base: Path) -> Made:
    return Made([str(script(base / "app", "#!/usr/bin/env pyhton3\n"))])


def environment_that_was_moved(base: Path) -> Made:
    old, new = base / "old", base / "new"
    script(old / "bin/tool", f"#!{old}/bin/python\n")
    (old / "bin/python").symlink_to(sys.executable)
    (old / "pyvenv.cfg").write_text("home = /usr/bin\n")
    old.rename(new)
    return Made([str(new / "bin/tool")])


def empty(base: Path) -> Made:
    return Made([str(script(base / "solver", ""))])


def cut_off(base: Path) -> Made:
    path = program(base / "solver")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 4])
    return Made([str(path)])


def no_program(base: Path) -> Made:
    path = base / "solver"
    path.write_bytes(b"PK\3\4\0\0\0\0 an archive")
    path.chmod(0o755)
    return Made([str(path)])


def no_first_line(base: Path) -> Made:
    return Made([str(script(base / "app.py", "print(1)\n"))])


def for_another_machine(base: Path) -> Made:
    return Made([str(patch(program(base / "solver"), 18, OTHER.to_bytes(2, "little")))])


def loader_of_another_system(base: Path) -> Made:
    flag = "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"
    return Made([str(compile_c("int main(void){return 0;}", base / "solver", flag))])


def python_with_its_base_gone(base: Path) -> Made:
    """A virtual environment, after the Python that it was made with is gone."""
    (base / "venv/bin").mkdir(parents=True)
    (base / "venv/bin/python").symlink_to("/opt/python-3.9/bin/python3")
    (base / "venv/pyvenv.cfg").write_text("home = /opt/python-3.9/bin\nversion = 3.9.18\n")
    return Made([f"{base}/venv/bin/python", "app.py"])


CASES = [
    Case("not-on-path", "a misspelt name", typo_in_path,
         ["my-slover is in no directory of PATH", "{base}/bin/my-solver"]),
    Case("not-on-path", "a program of a script, whose module is not loaded",
         not_loaded_in_a_script,
         ["gromacs is in no directory of PATH", "module load gromacs"], trial=True),
    Case("not-on-path", "a program of the working directory", in_the_working_directory,
         ["./solver-of-mine is here"]),
    Case("not-there", "a misspelt path", typo_in_a_name,
         ["build/sovler is not there", "{base}/build/solver"]),
    Case("dangling-link", "a link to nothing", link_to_nothing,
         ["./solver is a link to v1/solver, which is not there"]),
    Case("directory", "a directory", a_directory, ["./build is a directory", "in it: solver"]),
    Case("not-executable", "a file without the executable bit", without_the_bit,
         ["job.sh may not be executed: its mode is -rw-r--r--", "chmod +x"]),
    Case("noexec", "a program on a file system mounted noexec", on_a_noexec_mount,
         ["from which nothing may be executed"], needs=cannot_mount),
    Case("text-busy", "a program that is still being written", being_written,
         ["is being written"]),
    Case("dos-lines", "a script with the line ends of Windows", windows_line_ends,
         ["has the line ends of Windows", "sed -i"]),
    Case("no-interpreter", "a script whose interpreter is not there", interpreter_that_is_not_there,
         ["/opt/perl-5.30/bin/perl, the interpreter in the first line of {base}/plot",
          str(shutil.which("perl") or "/bin/perl")]),
    Case("no-interpreter", "a script whose `env` finds no interpreter", interpreter_not_in_path,
         ["pyhton3, which {base}/app asks for", "python3"]),
    Case("no-interpreter", "a script of an environment that was moved", environment_that_was_moved,
         ["{base}/old/bin/python", "closest:  {base}/new/bin/python"]),
    Case("empty", "an empty file", empty, ["is an empty file"]),
    Case("damaged", "a program that was cut off", cut_off, ["is damaged: cut off:"]),
    Case("no-program", "a file that is no program", no_program, ["neither a program nor a script"]),
    Case("no-shebang", "a script that does not say what runs it", no_first_line,
         ["#!/usr/bin/env python3"]),
    Case("wrong-machine", "a program for another machine", for_another_machine,
         ["solver is a program for", f"this machine is {os.uname().machine}"]),
    Case("no-loader", "a program linked for another system", loader_of_another_system,
         ["/lib/ld-musl-x86_64.so.1, the dynamic loader", "musl"]),
    Case("environment-without-python", "an environment whose Python is gone",
         python_with_its_base_gone,
         ["the Python that the environment {base}/venv was made with is gone", "3.9.18"]),
]  # fmt: skip
