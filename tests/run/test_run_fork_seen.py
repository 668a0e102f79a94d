"""How a rank that was forked looks from outside, and to tools: names, a debugger, profilers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project import Site

RANKS = 2
WAITS = """\
import json, os, sys
import pkg
def waits_for_the_test():
    os.read(int(os.environ["HOLD"]), 1)
def own(name):
    with open(f"/proc/self/{name}", "rb") as file:
        return file.read().decode()
says = {"pid": os.getpid(), "rank": os.environ["BRIGADE_RANK"], "comm": own("comm"),
        "cmdline": own("cmdline").split("\\0")[:-1], "exe": os.readlink("/proc/self/exe"),
        "rank below": [v for v in own("environ").split("\\0") if v.startswith("BRIGADE_RANK=")],
        "argv": sys.argv, "orig": getattr(sys, "orig_argv", None), "executable": sys.executable}
os.write(1, (json.dumps(says) + "\\n").encode())
waits_for_the_test()
"""


def started(site: Site, read: int, prefix: list[str]) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "HOLD": str(read),
        "BRIGADE_CACHE": str(site.base / "cache"),
        "BRIGADE_NODE_DIR": str(site.nodes),
        "BRIGADE_RANK": "0",
    }
    command = [*prefix, str(site.python), str(site.app), "an argument", ""]
    return subprocess.Popen(
        command, env=environment, pass_fds=[read], stdout=subprocess.PIPE, text=True
    )


def test_it_has_the_program_s_own_name_and_arguments_and_a_debugger_can_attach(site: Site) -> None:
    site.app.write_text(WAITS)
    read, write = os.pipe()
    run = [sys.executable, "-m", "brigade", "run", "-q", "--trial-quiet", "1", "--fork"]
    report = ["--json", str(site.base / "report.json"), "-n", str(RANKS), "--"]
    job = started(site, read, [*run, *report])
    plain = started(site, read, [])
    os.close(read)
    assert job.stdout and plain.stdout
    try:
        alone = json.loads(plain.stdout.readline())
        ranks = [json.loads(job.stdout.readline()) for _ in range(RANKS)]
        for one in ranks:
            pid = one["pid"]
            # under every view a program is executed by its file's own name, behind links
            assert one["comm"] == f"{Path(alone['exe']).name[:15]}\n"
            for name in ("cmdline", "exe", "argv", "orig", "executable"):
                assert one[name] == alone[name], name
            assert one["rank below"] == [f"BRIGADE_RANK={one['rank']}"]
            assert _ps(pid) == _ps(alone["pid"])
        # where nobody may attach, a debugger says so of the plain program as well
        if shutil.which("gdb") and _frames(alone["pid"]):
            assert "read" in _frames(ranks[0]["pid"])[0]
    finally:
        os.close(write)
        job.communicate(timeout=60)
        plain.communicate(timeout=60)
    assert job.returncode == 0
    assert site.report()["fork"]["ranks"] == RANKS


def _ps(pid: int) -> str:
    words = ["ps", "-o", "args=", "-p", str(pid)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def _frames(pid: int) -> list[str]:
    """Those of a process's stack that a debugger names."""
    words = ["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "backtrace"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    frames = [line for line in done.stdout.splitlines() if line.startswith("#")]
    return [line for line in frames if " in ?? ()" not in line]


# what each says of the program's own functions; of a module's import it may say less: a module that
# was warm is not executed
TOOLS = {
    "settrace": "seen = []\n"
    "def trace(frame, event, arg):\n"
    "    if 'app.py' in frame.f_code.co_filename: seen.append((event, frame.f_code.co_name))\n"
    "    return trace\n"
    "sys.settrace(trace); work(); sys.settrace(None); print(seen)",
    "setprofile": "seen = []\n"
    "sys.setprofile(lambda f, e, a: seen.append((e, f.f_code.co_name)))\n"
    "work(); sys.setprofile(None); print(seen)",
    "cProfile": "import cProfile, pstats\np = cProfile.Profile(); p.runcall(work)\n"
    "print(sorted((k[2], v[0]) for k, v in pstats.Stats(p).stats.items()))",
    "faulthandler": "import faulthandler\nfrom_it, to_us = os.pipe()  # it writes word by word\n"
    "faulthandler.dump_traceback(to_us, False)\n"
    "import signal; faulthandler.register(signal.SIGUSR1, to_us, False)\n"
    "os.kill(os.getpid(), signal.SIGUSR1); os.write(1, os.read(from_it, 4096))",
    "tracemalloc": "import tracemalloc\ntracemalloc.start(); x = [work() for _ in range(99)]\n"
    "print(len(tracemalloc.take_snapshot().filter_traces(\n"
    "    [tracemalloc.Filter(True, '*app.py')]).traces) > 0)",
}


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_of_python_says_the_same_of_the_program(site: Site, name: str) -> None:
    site.app.write_text(
        f"import os, sys\nimport pkg\ndef work():\n    return pkg.data()\n{TOOLS[name]}\n"
    )
    plain = site.plain()
    done = site.brigade(run=("--fork", "-n", str(RANKS)), env={"PYTHONHASHSEED": "1"})
    assert (plain.returncode, done.returncode) == (0, 0), done.stderr
    assert plain.stdout and sorted(done.stdout.splitlines()) == sorted(
        plain.stdout.splitlines() * RANKS
    )
    assert site.report()["fork"]["ranks"] == RANKS


def test_a_job_in_a_folder_that_is_gone_has_an_image_and_forked_ranks(site: Site) -> None:
    def gone() -> None:
        folder = site.base / "gone"
        folder.mkdir()
        os.chdir(folder)
        folder.rmdir()

    system = "/usr/bin/python3"  # of whose own folders there is no image
    if not os.path.exists(system):
        pytest.skip(f"needs {system}")
    site.app.write_text("import json\nprint('here')\n")
    done = site.brigade_of([system, str(site.app)], run=("--fork", "-n", "2"), preexec_fn=gone)
    assert (done.returncode, done.stdout) == (0, "here\n" * 2), done.stderr
    assert site.report()["fork"]["ranks"] == 2
