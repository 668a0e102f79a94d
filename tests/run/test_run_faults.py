"""Whatever fails under `brigade run`: the job runs, or one clear error; nothing stays in memory."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from project import Site

SOON_S = 40.0  #: a quiet machine needs less than 10 (docs/design/0011-faults.md)
LONG = pytest.mark.all
STOPS = [signal.SIGINT, signal.SIGTERM, pytest.param(signal.SIGHUP, marks=LONG)]
REST = [signal.SIGINT, signal.SIGHUP]
WAITS = """\
import os, sys, time
import pkg
os.write(1, b"started %d\\n" % os.getpid())  # in one piece, beside other ranks
while os.path.exists(os.environ.get("BRIGADE_TEST_WAIT", "/nowhere")):
    time.sleep(0.02)
"""


def environment(site: Site, **more: str) -> dict[str, str]:
    cache, nodes = str(site.base / "cache"), str(site.nodes)
    own = {"BRIGADE_CACHE": cache, "BRIGADE_NODE_DIR": nodes, "BRIGADE_PATIENCE": "60"}
    return {**os.environ, **own, **more}


def start(site: Site, *run: str, launcher: tuple[str, ...] = (), **more: str) -> subprocess.Popen:
    words = [*launcher, str(site.python), str(site.app)]
    return subprocess.Popen(
        [sys.executable, "-m", "brigade", "run", *run, "--", *words],
        env=environment(site, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for(what: Callable[[], object]) -> None:
    until = time.monotonic() + SOON_S
    while not what():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.02)


def in_memory(site: Site) -> list[str]:
    return sorted(path.name for path in site.nodes.glob("brigade-*/[0-9a-f]*"))


def trials(site: Site) -> list[Path]:
    return list((site.base / "cache").glob("images/*.trial-*"))


def trial_runs(site: Site) -> bool:
    logs = [trial / "output.log" for trial in trials(site)]
    return any("started" in log.read_text() for log in logs if log.exists())


def holds(site: Site) -> list[str]:
    """Processes that name a path of this site."""
    found = []
    for name in os.listdir("/proc"):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(site.base) in words and name.isdigit():
            found.append(words.replace(b"\0", b" ").decode())
    return found


def stop(job: subprocess.Popen, number: int) -> str:
    begin = time.monotonic()
    job.send_signal(number)
    _, said = job.communicate(timeout=SOON_S)
    print(f"ended {time.monotonic() - begin:.2f} s after the signal")
    assert job.returncode == -number, said
    assert "Traceback" not in said
    return said


@pytest.fixture
def waiting(site: Site) -> Site:
    """A program that waits as long as the file `wait` is there; its image is made."""
    site.app.write_text(WAITS)
    made = site.brigade()
    assert made.returncode == 0, made.stderr
    (site.base / "wait").touch()
    return site


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_during_the_trial_ends_its_processes(site: Site, number: int) -> None:
    site.app.write_text(WAITS)
    (site.base / "wait").touch()
    job = start(site, "-n", "2", BRIGADE_TEST_WAIT=str(site.base / "wait"))
    wait_for(lambda: trial_runs(site))
    assert "stopped by" in stop(job, number)
    wait_for(lambda: not holds(site))
    assert in_memory(site) == [] and trials(site) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, *(pytest.param(s, marks=LONG) for s in REST)])
def test_a_signal_while_staging_frees_the_memory(made: Site, number: int) -> None:
    job = start(made, BRIGADE_FAULT="stage.slow:3000000")
    wait_for(lambda: in_memory(made))
    assert "stopped by" in stop(job, number)
    assert in_memory(made) == [] and holds(made) == []


def test_a_signal_at_the_end_waits_for_the_memory_to_be_freed(waiting: Site) -> None:
    job = start(waiting, BRIGADE_TEST_WAIT=str(waiting.base / "wait"))
    assert job.stdout and job.stdout.readline().startswith("started")
    with open(next(waiting.nodes.glob("brigade-*/lock")), "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # so the step that frees it has to wait
        (waiting.base / "wait").unlink()
        wait_for(lambda: any("brigade-stage drop" in words for words in holds(waiting)))
        job.send_signal(signal.SIGTERM)
        job.send_signal(signal.SIGTERM)  # impatience changes nothing
    _, said = job.communicate(timeout=SOON_S)
    assert job.returncode == -signal.SIGTERM, said
    assert in_memory(waiting) == []


def test_a_killed_run_takes_its_staging_with_it(made: Site) -> None:
    job = start(made, BRIGADE_FAULT="stage.slow:3000000")
    wait_for(lambda: in_memory(made))
    job.kill()
    job.communicate(timeout=SOON_S)
    wait_for(lambda: not in_memory(made) and not holds(made))


def test_a_killed_run_takes_its_trial_with_it_and_the_next_its_records(site: Site) -> None:
    site.app.write_text(WAITS)
    (site.base / "wait").touch()
    job = start(site, BRIGADE_TEST_WAIT=str(site.base / "wait"))
    wait_for(lambda: trial_runs(site))
    job.kill()
    job.communicate(timeout=SOON_S)
    wait_for(lambda: not holds(site))
    assert len(trials(site)) == 1
    assert site.brigade().returncode == 0
    assert trials(site) == []


def test_the_ranks_of_a_killed_run_keep_working_and_clean_removes_the_rest(waiting: Site) -> None:
    job = start(waiting, "-n", "2", BRIGADE_TEST_WAIT=str(waiting.base / "wait"))
    assert job.stdout
    ranks = [int(job.stdout.readline().split()[1]) for _ in range(2)]
    job.kill()
    job.wait(timeout=SOON_S)
    clean = [sys.executable, "-m", "brigade", "clean", "--idle", "0"]
    env = environment(waiting)
    assert "stays: process" in subprocess.run(clean, env=env, capture_output=True, text=True).stdout
    assert all(os.path.exists(f"/proc/{rank}") for rank in ranks)
    (waiting.base / "wait").unlink()
    job.communicate(timeout=SOON_S)
    wait_for(lambda: subprocess.run(clean, env=env).returncode == 0 and not in_memory(waiting))


def test_a_killed_staging_process_starts_the_job_unstaged(made: Site) -> None:
    under = made.brigade(env={"BRIGADE_FAULT": "stage.kill:0"})
    assert under.returncode == 0 and under.stdout == made.plain().stdout
    assert "ended by signal 9" in made.report()["unstaged"]
    assert in_memory(made) == []


VANISHES = """\
import os, sys, time, subprocess
import pkg
print("started", flush=True)
while os.path.exists(os.environ.get("BRIGADE_TEST_WAIT", "/nowhere")):
    time.sleep(0.02)
import pkg.deep.leaf, json, decimal, ctypes
child = [sys.executable, "-c", "import pkg.deep.leaf as leaf; print(leaf.x)"]
print(pkg.data(), pkg.deep.leaf.x, subprocess.run(child, capture_output=True, text=True).stdout)
"""


def test_a_program_whose_staged_folder_vanishes_goes_on_from_the_file_system(site: Site) -> None:
    """Removed by a hand, or by a node's epilog: at worst, somebody takes a live job for dead."""
    site.app.write_text(VANISHES)
    assert site.brigade().returncode == 0
    (site.base / "wait").touch()
    job = start(site, BRIGADE_TEST_WAIT=str(site.base / "wait"))
    assert job.stdout and job.stdout.readline().startswith("started")
    for folder in site.nodes.glob("brigade-*/[0-9a-f]*"):
        shutil.rmtree(folder)
    (site.base / "wait").unlink()
    out, said = job.communicate(timeout=SOON_S)
    assert job.returncode == 0, said
    assert "started\n" + out == site.plain().stdout


# ---- a launcher that hangs ----

HANGS = """\
#!/bin/sh
[ "$1" = --version ] && { echo "mpirun (Open MPI) 4.1.4"; exit; }
case "$*" in *%s*) %s; exec sleep 1000;; esac
while [ "${1#-}" != "$1" ]; do case "$1" in -n|--map-by|--bind-to) shift;; esac; shift; done
exec "$@"
"""


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[Callable[[str, str], tuple[str, ...]]]:
    """Makes a launcher that hangs, after `first`, when it is to start `word`."""

    def make(word: str, first: str = ":") -> tuple[str, ...]:
        path = tmp_path / "bin/mpirun"
        path.parent.mkdir(exist_ok=True)
        path.write_text(HANGS % (word, first))
        path.chmod(0o755)
        return (str(path), "-n", "1")

    yield make


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("brigade-rank", ":"),
        ("brigade-stage", "trap '' TERM USR1"),
        pytest.param("brigade-rank", "trap '' TERM USR1", marks=LONG),
        pytest.param("brigade-stage", ":", marks=LONG),
    ],
)
def test_a_launcher_that_starts_nothing_is_ended_and_the_job_runs(
    site: Site, hanging: Callable[[str, str], tuple[str, ...]], word: str, first: str
) -> None:
    begin = time.monotonic()
    job = start(
        site, "--json", str(site.base / "report.json"), BRIGADE_PATIENCE="1.5",
        launcher=hanging(word, first),
    )  # fmt: skip
    out, said = job.communicate(timeout=SOON_S)
    assert job.returncode == 0 and out, said
    assert time.monotonic() - begin < SOON_S
    why = site.report()["unstaged"]
    assert "silent" in why or "has started nothing" in why
    assert in_memory(site) == [] and holds(site) == []


def test_where_no_step_can_be_started_any_more_this_host_is_freed(
    site: Site, hanging: Callable[[str, str], tuple[str, ...]]
) -> None:
    """As when Slurm has ended the allocation: the launcher refuses, and says so."""
    launcher = hanging('"brigade-stage drop"', "exit 1")
    job = start(site, "--json", str(site.base / "report.json"), launcher=launcher)
    out, said = job.communicate(timeout=SOON_S)
    assert job.returncode == 0 and out, said
    report = site.report()
    assert report["unstaged"] is None and report["startup"]["ranks"] == 1
    assert in_memory(site) == []


@pytest.mark.parametrize("run", [(), pytest.param(("--strict",), marks=LONG)])
def test_a_job_of_a_launcher_that_does_not_say_what_it_is_starts_as_it_is(
    site: Site, tmp_path: Path, run: tuple[str, ...]
) -> None:
    launcher = tmp_path / "mpirun"
    launcher.write_text('#!/bin/sh\n[ "$1" = --version ] && exec sleep 1000\necho job "$@"\n')
    launcher.chmod(0o755)
    job = start(site, *run, launcher=(str(launcher), "-n", "1"))
    told, said = job.communicate(timeout=SOON_S)
    assert "has not answered" in said and "Traceback" not in said
    assert job.returncode == (3 if run else 0) and told.startswith("job -n 1 ") != bool(run)


@pytest.mark.parametrize("name", ["mpirun_job.sh", "mpiexec.py", "mpirun-4", "orterun.d"])
def test_a_script_with_a_launchers_name_in_its_own_is_a_program(site: Site, name: str) -> None:
    script = site.base / name
    script.write_text('#!/bin/sh\necho "<$*>" >> "$0.log"\n')
    script.chmod(0o755)
    assert site.brigade_of([str(script), "a"]).returncode == 0
    assert set((site.base / f"{name}.log").read_text().split()) == {"<a>"}, "never asked who it is"


# ---- images and their folder ----


def flip(image: Path, offset: int) -> None:
    with image.open("r+b") as file:
        file.seek(offset, os.SEEK_SET if offset >= 0 else os.SEEK_END)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))


DAMAGES = {  # the first two are tried each time
    "content": lambda image: flip(image, image.stat().st_size - 5000),
    "index": lambda image: flip(image, 5000),
    "truncated": lambda image: os.truncate(image, image.stat().st_size - 100),
    "empty": lambda image: os.truncate(image, 0),
    "version": lambda image: flip(image, 8),
    "no file": lambda image: (image.unlink(), image.mkdir()),
}


@pytest.mark.parametrize(
    "damage", [*list(DAMAGES)[:2], *(pytest.param(d, marks=LONG) for d in list(DAMAGES)[2:])]
)
def test_a_damaged_image_is_made_anew_and_the_report_says_so(site: Site, damage: str) -> None:
    site.brigade()
    image = next((site.base / "cache/images").glob("*.brg"))
    DAMAGES[damage](image)
    again = site.brigade()
    assert again.returncode == 0 and again.stdout == site.plain().stdout, again.stderr
    report = site.report()
    if damage == "no file":  # which we did not make, and do not remove
        assert str(image) in report["unstaged"]
    else:
        assert report["unstaged"] is None
        assert str(image) in report["image"]["renewed"], report["image"]
        assert site.brigade().returncode == 0 and site.report()["image"]["renewed"] is None
    assert "Traceback" not in again.stderr and in_memory(site) == []


def test_a_damaged_image_that_the_user_named_is_one_clear_error(site: Site) -> None:
    site.brigade()
    image = next((site.base / "cache/images").glob("*.brg")).rename(site.base / "mine.brg")
    DAMAGES["content"](image)
    under = site.brigade(run=("--image", str(image)))
    assert under.returncode == 4 and under.stdout == ""
    assert "mine.brg" in under.stderr and "Traceback" not in under.stderr
    assert in_memory(site) == []


def test_a_cache_that_is_no_folder_starts_the_job_unstaged(site: Site) -> None:
    (site.base / "cache").touch()
    under = site.brigade()
    assert under.returncode == 0 and under.stdout == site.plain().stdout
    assert "cannot keep an image" in site.report()["unstaged"]
    assert "Traceback" not in under.stderr


@pytest.fixture
def small_cache(site: Site) -> Iterator[Callable[[str], None]]:
    """Makes the cache a file system of the size given."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a tmpfs")
    cache = site.base / "cache"
    cache.mkdir()

    def mount(size: str) -> None:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "small", str(cache)]
        subprocess.run(command, check=True)

    yield mount
    subprocess.run(["umount", "-l", str(cache)], check=True)


@pytest.mark.parametrize(
    "size", ["64k", "256k", *(pytest.param(s, marks=LONG) for s in ("4k", "400k"))]
)
def test_a_full_disk_for_records_or_image_starts_the_job_unstaged(
    site: Site, small_cache: Callable[[str], None], size: str
) -> None:
    """Too small for the folders, for the trial's records, for the image."""
    small_cache(size)
    under = site.brigade()
    assert under.returncode == 0 and under.stdout == site.plain().stdout, under.stderr
    assert site.report()["unstaged"], "there was room"
    print(site.report()["unstaged"])
    assert "Traceback" not in under.stderr
    assert in_memory(site) == [] and trials(site) == []
    assert list((site.base / "cache").glob("images/*.brg*")) == []


def test_a_report_that_cannot_be_written_does_not_change_the_jobs_status(made: Site) -> None:
    under = made.brigade("exit", "7", run=("--json", "/nowhere/report.json"))
    assert under.returncode == 7 and "/nowhere/report.json" in under.stderr


DEAD = {
    "closed": "2>&-",
    "on a full disk": "2>/dev/full",
    "read by nobody": "",
    "closed as all others are": "<&- >&- 2>&-",
}


@pytest.mark.parametrize("how", DEAD)
def test_a_standard_error_that_takes_nothing_changes_neither_the_job_nor_its_status(
    site: Site, how: str
) -> None:
    ran = site.base / "ran"
    program = f"import pkg, sys; open({str(ran)!r}, 'a').write('x'); sys.exit(3)"
    job = [str(site.python), "-c", program]
    reader, nobody = os.pipe()
    os.close(reader)

    def start_job(*run: str) -> tuple[int, bytes]:
        words = ["sh", "-c", f'exec "$@" {DEAD[how]}', "sh", sys.executable, "-m", "brigade", "run"]
        done = subprocess.run(
            [*words, "--json", *run],
            env=environment(site), cwd=site.base, stdout=subprocess.PIPE, stderr=nobody,
        )  # fmt: skip
        return done.returncode, done.stdout

    for options, times in (("-",), "xx"), (("-",), "x"), (("r", "--view", "none"), "x"):
        assert start_job(*options, "--", *job) == (3, b""), options
        assert ran.read_text() == times, "the trial, the job"
        ran.unlink()
    assert start_job("r", "-n", "2", "--view", "none", "--", "./is-not-there") == (127, b"")
    os.close(nobody)


def test_an_unreadable_source_stays_on_the_file_system(site: Site) -> None:
    """Readable in the trial, gone when the image is made: the program finds what is there."""
    hidden = site.package / "deep" / "leaf.py"
    site.app.write_text(
        "import os, sys, pkg\n"
        "try:\n    import pkg.deep.leaf\nexcept ImportError as e:\n    print('no leaf')\n"
        f"if 'BRIGADE_RECORD' in os.environ:\n    os.unlink({str(hidden)!r})\n"
    )
    under = site.brigade()
    assert under.returncode == 0 and "Traceback" not in under.stderr
    assert under.stdout == site.plain().stdout
