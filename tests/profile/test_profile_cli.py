"""brigade profile: a run is the program's own, and a profile comes of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from profile_tools import brigade

from brigade.profile.profile import load
from brigade.trace.events import KINDS

WORDS = "import sys; print('out'); print('err', file=sys.stderr); print(sys.stdin.read())"


def surroundings(folder: Path) -> dict[str, str]:
    """What Brigade writes beside its outputs goes to `folder`/cache."""
    (folder / "cache").mkdir(exist_ok=True)
    cache = str(folder / "cache")
    return {**os.environ, "BRIGADE_CACHE": cache, "TMPDIR": cache}


def profiled(folder: Path, *words: str, **more) -> subprocess.CompletedProcess[bytes]:
    """`brigade profile` in a folder of its own; bytes, because streams are compared."""
    environment = surroundings(folder)
    return subprocess.run(
        [sys.executable, "-m", "brigade", "profile", *words],
        cwd=folder, env=environment, capture_output=True, **more,
    )  # fmt: skip


def test_output_input_and_exit_code_are_the_programs_own(tmp_path):
    program = [sys.executable, "-c", WORDS + "; sys.exit(7)"]
    plain = subprocess.run(program, input=b"in", capture_output=True)
    seen = profiled(tmp_path, "-q", "--html", "none", "--", *program, input=b"in")
    assert (seen.returncode, seen.stdout, seen.stderr) == (7, plain.stdout, plain.stderr)
    assert not list(tmp_path.glob("*.html")) and not list((tmp_path / "cache").iterdir())


def test_the_signal_that_ends_the_program_ends_the_profile(tmp_path):
    program = [sys.executable, "-c", "import os; os.kill(os.getpid(), 15)"]
    assert profiled(tmp_path, "--", *program).returncode == -15
    assert (tmp_path / "profile.html").exists()


def test_a_page_json_and_a_report_are_written(tmp_path):
    seen = profiled(tmp_path, "--json", "p.json", "--", sys.executable, "-c", "import json")
    assert seen.returncode == 0 and seen.stdout == b""
    assert b"<html" in (tmp_path / "profile.html").read_bytes()
    profile = load(tmp_path / "p.json")
    assert {node.name for node in profile.tree} >= {"json", "json.decoder", "encodings"}
    assert profile.total(phase="interpreter") > 0 < profile.total(before_main=True)
    assert profile.insights and b"profile.html is written" in seen.stderr
    again = profiled(tmp_path, "--from", "p.json", "--html", "again.html")
    assert again.returncode == 0
    assert (tmp_path / "again.html").stat().st_size > 10_000


def test_the_profile_lies_beside_the_page_for_what_reads_it_next(tmp_path):
    profiled(tmp_path, "-q", "--html", "page.html", "--", "true")
    assert load(tmp_path / "page.json").total() > 0
    before = (tmp_path / "page.json").stat().st_mtime_ns
    profiled(tmp_path, "-q", "--from", "page.json", "--html", "page.html")
    assert (tmp_path / "page.json").stat().st_mtime_ns == before
    profiled(tmp_path, "-q", "--html", "none", "--", "true")
    assert not (tmp_path / "profile.json").exists()


def test_ranks_are_counted_apart_and_compared(tmp_path):
    profiled(tmp_path, "-q", "-n", "2", "--json", "p.json", "--", sys.executable, "-c", "0")
    profile = load(tmp_path / "p.json")
    assert [rank.rank for rank in profile.ranks] == [0, 1]
    assert profile.total(rank=0) == profile.total(rank=1) > 50
    assert profile.identical is not None


def test_a_program_that_goes_on_is_ended_when_it_is_quiet(tmp_path):
    program = [sys.executable, "-c", "import time; time.sleep(60)"]
    words = ["--until-quiet", "0.5", "--json", "p.json"]
    assert profiled(tmp_path, *words, "--", *program).returncode == 0
    found = load(tmp_path / "p.json")
    assert found.total() > 50 and found.ranks[0].status is None
    assert not [one for one in found.insights if "ended with" in one.title]


def test_a_helper_that_failed_does_not_make_a_program_failed_that_we_ended(tmp_path):
    words = ["--limit", "2", "--json", "p.json", "--", "sh", "-c", "/bin/false; sleep 100"]
    assert profiled(tmp_path, *words).returncode == 0
    found = load(tmp_path / "p.json")
    assert not [one for one in found.insights if "ended with" in one.title]


@pytest.mark.parametrize("ranks", ["1", "2"])
def test_nothing_that_a_shell_has_started_runs_on(tmp_path, ranks):
    """The shell ends at the signal, and what it waits for does not hear of it. (That would hold
    what it writes to, too.)"""
    mark = f"{os.getpid()}{ranks}"
    script = f"sleep 60.{mark} & sleep 70.{mark}; true"
    words = ["-n", ranks, "--limit", "1", "--json", "p.json", "--", "sh", "-c", script]
    assert profiled(tmp_path, *words, timeout=50).returncode == 0
    assert not running(mark)
    assert load(tmp_path / "p.json").ranks[0].status is None


def test_what_heeds_no_signal_is_killed(tmp_path):
    mark = f"{os.getpid()}9"
    code = (
        "import subprocess, time\nfrom brigade.job.orphans import orphans\n"
        "early = subprocess.Popen(['sleep', '3'])\nwith orphans() as left:\n"
        "    subprocess.run(['sh', '-c', \"trap '' TERM; sleep 60.%s & sleep 61.%s &\"])\n"
        "    left.end(0.3)\nassert early.poll() is None\nearly.kill()\n"
    )
    subprocess.run([sys.executable, "-c", code % (mark, mark)], check=True, timeout=30)
    assert not running(mark)


def running(mark: str) -> list[str]:
    def words(pid: str) -> str:
        try:
            return Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            return ""

    found = [words(pid) for pid in os.listdir("/proc") if pid.isdigit()]
    return [one for one in found if mark in one]


def test_a_rank_that_failed_before_we_ended_the_others_is_no_success(tmp_path):
    script = '[ "$BRIGADE_RANK" = 1 ] && exit 3; exec sleep 100'
    words = ["-n", "2", "--until-quiet", "2", "--json", "p.json", "--", "sh", "-c", script]
    assert profiled(tmp_path, *words).returncode != 0
    assert [rank.status for rank in load(tmp_path / "p.json").ranks] == [None, 3]


def test_a_kept_trace_explains_later(tmp_path):
    profiled(tmp_path, "--keep-trace", "kept", "--", sys.executable, "-c", "import json.decoder")
    done = brigade("explain", "json.decoder", "--trace", str(tmp_path / "kept"))
    assert done.returncode == 0 and "package path of json" in done.stdout
    again = profiled(tmp_path, "--keep-trace", "kept", "--", sys.executable, "-c", "0")
    assert again.returncode == 1 and b"has a trace already" in again.stderr
    (tmp_path / "alone").mkdir()
    shutil.copy(tmp_path / "kept/profile.json", tmp_path / "alone")
    for given in ("alone", "alone/profile.json", "other.json", "nowhere"):
        done = brigade("explain", "--trace", given, "json", cwd=tmp_path)
        assert done.returncode == 1 and f"brigade: {given}: there is no kept trace" in done.stderr
        assert "a profile alone" in done.stderr and "--keep-trace" in done.stderr


def test_before_and_after_stand_in_one_profile(tmp_path):
    venv = tmp_path / "soft"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    words = ["--after", "--overhead", "--json", "p.json", "--cover", str(venv)]
    seen = profiled(tmp_path, *words, "--", str(venv / "bin/python"), "-c", "import json")
    profile = load(tmp_path / "p.json")
    assert profile.after is not None, seen.stderr.decode()
    assert profile.after.total(place="shared") < profile.total(place="shared") / 2
    assert profile.overhead.plain_s is not None and profile.overhead.traced_s is not None


def test_before_and_after_of_a_program_that_goes_on_is_ended_both_times(tmp_path):
    program = [sys.executable, "-c", "import json, time; time.sleep(500)"]
    words = ["--until-quiet", "2", "--after", "--json", "p.json", "--", *program]
    assert profiled(tmp_path, *words, timeout=200).returncode == 0
    found = load(tmp_path / "p.json")
    assert found.after is not None and found.after.total() > 50, found.lost
    assert [one.ranks[0].status for one in (found, found.after)] == [None, None]


def test_what_tracing_costs_is_told_by_two_runs_that_find_the_same_caches(tmp_path):
    program = ["sh", "-c", "[ -e warm ] || { touch warm; sleep 6; }"]
    profiled(tmp_path, "-q", "--overhead", "--json", "p.json", "--", *program)
    cost = load(tmp_path / "p.json").overhead
    assert cost.plain_s is not None and cost.plain_s < 6 and cost.traced_s < 6


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_output_of_strace_gives_the_same_counts_as_a_run(tmp_path):
    program = [sys.executable, "-S", "-E", "-B", "-c", "import json"]
    strace = ["strace", "-f", "-y", "-ttt", "-T", "-o", str(tmp_path / "s.txt"), *program]
    subprocess.run(strace, check=True, cwd=tmp_path)
    profiled(tmp_path, "-q", "--from-strace", "s.txt", "--json", "strace.json")
    profiled(tmp_path, "-q", "--json", "own.json", "--", *program)
    one, two = load(tmp_path / "strace.json"), load(tmp_path / "own.json")
    for kind in ("open", "list", "exec"):
        assert one.total(kind=kind) == two.total(kind=kind)
    failed = [p.total(failed=True, by_path=True) for p in (one, two)]
    assert failed[0] == failed[1] > 10
    assert [(e.cause, e.place, e.wasted) for e in one.searches if e.wasted and e.cause != "other"]


def test_every_call_leaves_as_a_line_and_as_a_slice(tmp_path):
    words = ["-q", "--csv", "c.csv", "--perfetto", "p.json", "--json", "j.json"]
    profiled(tmp_path, *words, "--", sys.executable, "-c", "0")
    total = load(tmp_path / "j.json").total()
    assert len((tmp_path / "c.csv").read_text().splitlines()) == total + 1
    slices = json.loads((tmp_path / "p.json").read_text())["traceEvents"]
    assert sum(1 for one in slices if one.get("cat") in KINDS) == total
    profiled(tmp_path, "-q", "--from", "j.json", "--csv", "again.csv")
    assert not (tmp_path / "again.csv").exists()


def test_import_times_make_who_imports_what_exact(tmp_path):
    times = tmp_path / "times"
    program = [sys.executable, "-X", "importtime", "-c", "import json.decoder"]
    times.write_bytes(subprocess.run(program, capture_output=True, check=True).stderr)
    words = ["-q", "--importtime", str(times), "--json", "p.json"]
    profiled(tmp_path, *words, "--", sys.executable, "-c", "import json.decoder")
    nodes = {node.name: node for node in load(tmp_path / "p.json").tree}
    assert nodes["json.decoder"].certain and nodes["json.decoder"].import_us is not None
    (tmp_path / "empty").touch()
    seen = profiled(tmp_path, "--importtime", "empty", "--", "true")
    assert seen.returncode == 1 and b"no import times" in seen.stderr


def test_a_program_that_cannot_start_ends_with_why(tmp_path):
    seen = profiled(tmp_path, "--", sys.executable, "-c", "import no_such_module_at_all")
    said = seen.stderr.decode()
    assert seen.returncode == 1
    assert "no_such_module_at_all" in said.rpartition("brigade:")[2]
    nothing = profiled(tmp_path, "--html", "no.html", "--", "./not-there")
    assert nothing.returncode == 127 and not (tmp_path / "no.html").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "one thing to look at"),
        (["--from", "x", "--", "true"], "one thing to look at"),
        (["--from", "nothing.json"], "nothing.json"),
        (["--limit", "1", "--overhead", "--", "sleep", "900"], "compares whole runs"),
        (["--json", "no/such/folder", "--", "true"], "no/such/folder cannot be written"),
    ],
)
def test_bad_input_is_one_clear_error(tmp_path, words, said):
    seen = profiled(tmp_path, *words)
    assert seen.returncode in (1, 2)
    assert said in seen.stderr.decode() and b"Traceback" not in seen.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--importtime", "nope"], "nope: No such file"),
        (["--keep-trace", "/dev/null/kept"], "/dev/null/kept: Not a directory"),
    ],
)
def test_what_cannot_be_read_or_kept_is_said_before_the_program_runs(tmp_path, words, said):
    seen = profiled(tmp_path, *words, "--", "touch", "ran")
    assert seen.returncode == 1 and not (tmp_path / "ran").exists()
    assert said in seen.stderr.decode() and b"Traceback" not in seen.stderr


@pytest.mark.parametrize(
    "command", ["profile", "explain json", "explain --fork json", "budget --max-ops 9"]
)
def test_a_folder_to_cover_that_is_none_is_said_before_the_program_runs(tmp_path, command):
    (tmp_path / "file").touch()
    for folder in ("missing", "file"):
        words = [*command.split(), "--cover", folder, "--", "touch", "ran"]
        done = brigade(*words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"--cover {folder}: there is no such folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_cannot_be_written_costs_neither_the_report_nor_the_others(tmp_path):
    words = ["--html", "p.html", "--json", "/dev/full", "--csv", "p.csv"]
    seen = profiled(tmp_path, *words, "--", "sh", "-c", "exit 4")
    said = seen.stderr.decode()
    assert seen.returncode == 4 and "/dev/full: No space left" in said
    assert said.count("is written") == 2 and (tmp_path / "p.csv").stat().st_size > 0
    assert "look-ups" in said or "calls" in said


@pytest.mark.parametrize(
    ("ruin", "said"),
    [("echo other > $T/x.trace", "another format"), ("rm -f $T/*.trace", "left a trace")],
)
def test_a_trace_that_tells_nothing_leaves_the_program_its_status(tmp_path, ruin, said):
    script = f"T=$(echo $TMPDIR/brigade-trace-*); {ruin}; exit 4"
    seen = profiled(tmp_path, "--", "sh", "-c", script)
    assert seen.returncode == 4
    assert said in seen.stderr.decode() and b"Traceback" not in seen.stderr


def test_ctrl_c_reaches_the_program_and_its_profile_is_still_made(tmp_path):
    program = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
    child = subprocess.Popen(
        [sys.executable, "-m", "brigade", "profile", "--after", "--", *program],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        env=surroundings(tmp_path),
    )  # fmt: skip
    assert child.stdout.readline() == b"up\n"
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGINT
    assert (tmp_path / "profile.html").exists()
    assert not list((tmp_path / "cache").iterdir())


def test_a_signal_in_a_further_run_ends_it_and_leaves_nothing(tmp_path):
    mark = tmp_path / "mark"  # the first run makes it, the second waits
    source = f"import os, time; m = {str(mark)!r}; late = os.path.exists(m); open(m, 'w').close()"
    program = [sys.executable, "-c", source + "\nif late: open(m + '2', 'w'); time.sleep(60)"]
    child = subprocess.Popen(
        [sys.executable, "-m", "brigade", "profile", "--overhead", "--", *program],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        env=surroundings(tmp_path),
    )  # fmt: skip
    while not Path(f"{mark}2").exists():
        assert child.poll() is None
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGTERM)
    _, said = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGTERM and b"stopped by SIGTERM" in said
    assert not list((tmp_path / "cache").iterdir())


def test_a_profile_goes_to_standard_error_for_a_dash(tmp_path):
    seen = profiled(tmp_path, "-q", "--html", "none", "--json", "-", "--", "true")
    assert json.loads(seen.stderr)["schema"] == 1
