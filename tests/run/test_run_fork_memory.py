"""A node without memory while ranks are to be forked: the job does what it did without, or says
what is wrong; nothing hangs and nothing is left."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from processes import until
from project import Site

RANKS = 3
RUN = ("--fork", "-n", str(RANKS))
APP = """\
import json, os
import pkg
os.write(1, (json.dumps({"word": pkg.data(), "parent": os.getppid()}) + "\\n").encode())
"""
# what whoever comes first does while it imports: that is the template, and after it nobody
FIRST = """
if os.path.exists({flag!r}):
    os.unlink({flag!r})
    {act}
"""
# once a fork has been tried for nothing
NO_FORK = """def fork_fails():
        raise OSError(12, "Cannot allocate memory")
    os.register_at_fork(before=lambda: setattr(os, "fork", fork_fails))"""
ACTS = {
    "the kernel kills the template": ("os.kill(os.getpid(), 9)", "the template ended"),
    "no memory for an import": ("bytearray(1 << 40)", None),
    "no memory for the fork": (NO_FORK, "no process could be forked"),
}


@pytest.fixture
def flag(site: Site) -> Path:
    """A file; when it is there, the first import of the package that comes fails in some way."""
    site.app.write_text(APP)
    return site.base / "flag"


def break_first(site: Site, flag: Path, act: str) -> None:
    init = site.package / "__init__.py"
    init.write_text(init.read_text() + FIRST.format(flag=str(flag), act=act))


def nothing_is_left(site: Site) -> bool:
    """No process of this job: each has the folder in its environment."""
    mark = f"BRIGADE_CACHE={site.base}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in Path(f"/proc/{name}/environ").read_bytes():
                return False
        except OSError:
            continue
    return True


def all_said(done: subprocess.CompletedProcess[str]) -> list[dict]:
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["word"] for one in said] == ["forty-two\n"] * RANKS
    return said


@pytest.mark.parametrize("name", ACTS)
def test_ranks_do_without_when_there_is(site: Site, flag: Path, name: str) -> None:
    act, why = ACTS[name]
    break_first(site, flag, act)
    all_said(site.brigade(run=RUN))
    assert site.report()["fork"]["ranks"] == RANKS
    flag.write_text("")
    said = all_said(site.brigade(run=RUN))
    fork = site.report()["fork"]
    assert not flag.exists()
    if why:
        assert fork["ranks"] == 0 and why in str(fork["why"]), fork
    else:  # it starts itself again, without the module
        assert fork["ranks"] == RANKS and "MemoryError" in fork["dropped"]["pkg"], fork
        assert len({one["parent"] for one in said}) == 1
    until(lambda: nothing_is_left(site))


LIMITED = """#!/bin/sh
# as many ranks as -n says; those of the job, which are more than the trial's, have a limit
while [ "${{1#-}}" != "$1" ]; do [ "$1" != -n ] || n=$2; [ "$1" != --version ] || exit 0; shift 2
done
[ "$n" != {ranks} ] || ulimit -v {kilobytes}
for rank in $(seq 0 $((n - 1))); do
    MPI_LOCALNRANKS=$n PMI_RANK=$rank "$@" & pids="$pids $!"
done
for pid in $pids; do wait $pid || status=$?; done
exit $status
"""


def starts_within(python: Path, megabytes: int) -> bool:
    """Python without memory may also go round for ever, in its own search for some."""
    command = f"ulimit -v {megabytes << 10}; exec '{python}' -c 'import json'"
    words = ["timeout", "20", "sh", "-c", command]
    return subprocess.run(words, stderr=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize("more", [-4, 3, 6, 20, 300])
def test_whatever_fits_into_a_limit_the_job_ends_and_leaves_nothing(
    site: Site, flag: Path, more: int
) -> None:
    """So many megabytes more than Python needs. The limit is that of rank processes, template and
    ranks; where a rank can start by itself, it does."""
    megabytes = more + next(n for n in range(6, 200) if starts_within(site.python, n))
    launcher = site.base / "mpirun"
    launcher.write_text(LIMITED.format(ranks=RANKS, kilobytes=megabytes << 10))
    launcher.chmod(0o755)
    words = [str(launcher), "-n", str(RANKS), str(site.python), str(site.app)]
    plain = subprocess.run(words, capture_output=True, text=True, timeout=60)
    done = site.brigade_of(words, run=("--fork",))
    assert (done.returncode == 0) == (plain.returncode == 0), (plain, done)
    if plain.returncode == 0:
        all_said(done)
    else:
        assert done.stderr
    until(lambda: nothing_is_left(site))
