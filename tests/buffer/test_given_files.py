"""A file that a program gives to another one, by whatever way, holds what both wrote, in order."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from buffer_world import buffered, compile_c, contents, run

#: programs that use a file before, while and after another process has it
PROGRAMS = {
    "standard output": """
import subprocess
f = open("log.txt", "wb", buffering=0)
for i in range(3):
    f.write(b"start\\n")
    subprocess.run(["/bin/echo", "hi"], stdout=f)
f.write(b"end\\n")
""",
    "standard output and error, of a stream": """
import subprocess
f = open("log.txt", "w")
f.write("start\\n"); f.flush()
subprocess.run(["/bin/sh", "-c", "echo hi; echo there >&2"], stdout=f, stderr=subprocess.STDOUT)
f.write("end\\n")
""",
    "standard input": """
import subprocess
open("in.txt", "w").write("".join(f"line {i}\\n" for i in range(1000)))
f = open("in.txt", "rb", buffering=0)
for i in range(3): f.read(8)
print(subprocess.run(["/usr/bin/head", "-c", "8"], stdin=f, capture_output=True).stdout)
print(f.read(8), f.tell())
""",
    "a descriptor by its number": """
import subprocess
f = open("p.txt", "wb", buffering=0); f.write(b"A\\n")
subprocess.run(["/bin/sh", "-c", "echo B >&%d" % f.fileno()], pass_fds=[f.fileno()])
f.write(b"C\\n")
""",
    "by posix_spawn": """
import os
f = os.open("q.txt", os.O_CREAT | os.O_TRUNC | os.O_WRONLY); os.write(f, b"A\\n")
p = os.posix_spawn("/bin/echo", ["echo", "B"], os.environ,
                   file_actions=[(os.POSIX_SPAWN_DUP2, f, 1)])
os.waitpid(p, 0); os.write(f, b"C\\n")
""",
    "by fork": """
import os
f = os.open("r.txt", os.O_CREAT | os.O_TRUNC | os.O_WRONLY); os.write(f, b"A\\n")
if os.fork() == 0: os.write(f, b"B\\n"); os._exit(0)
os.wait(); os.write(f, b"C\\n")
""",
    "by system": """
import os
f = os.open("s.txt", os.O_CREAT | os.O_TRUNC | os.O_WRONLY); os.set_inheritable(f, True)
os.write(f, b"A\\n")
os.system("echo B >&%d" % f); os.write(f, b"C\\n")
""",
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_python_program_that_gives_a_file_away_goes_on_behind_it(tmp_path, what):
    found = []
    for env in (None, buffered("*:delay=1000")):
        folder = tmp_path / ("buffered" if env else "plain")
        folder.mkdir()
        done = run([sys.executable, "-c", PROGRAMS[what]], folder, env)
        assert done.returncode == 0, done.stderr
        found.append((done.stdout, contents(folder)))
    assert found[0] == found[1]
    assert any(found[0][1].values())


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c("vfork_driver", tmp_path_factory.mktemp("vfork"))


def test_a_child_of_vfork_may_give_any_file_on(driver, tmp_path):
    plain = run([driver], tmp_path)
    found = run([driver], tmp_path, buffered("*:delay=1000"))
    assert plain.returncode == 0 and plain.stdout.count("given") == 5
    assert (found.returncode, found.stdout) == (plain.returncode, plain.stdout)


def test_a_thread_that_writes_while_another_one_gives_the_file_on_loses_nothing(driver, tmp_path):
    done = run([driver, "threads"], tmp_path, buffered("*:size=4K"))
    assert (done.returncode, done.stdout) == (0, "lost 0\n")


def test_by_system_files_that_the_program_does_not_inherit_stay_buffered(tmp_path):
    report = tmp_path / "report"
    report.mkdir()
    code = """
import os
f = os.open("s.dat", os.O_CREAT | os.O_WRONLY)
for i in range(50): os.write(f, b"A"); os.system("true")
"""
    env = buffered("*.dat", BRIGADE_BUFFER_REPORT=str(report))
    assert run([sys.executable, "-c", code], tmp_path, env).returncode == 0
    files = [entry for path in report.iterdir() for entry in json.loads(path.read_text())["files"]]
    assert [(entry["left"], entry["writes"]) for entry in files] == [(None, 50)]
