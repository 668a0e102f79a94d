"""tools/check.py: counts what the test runners report, and sees what is left behind."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def check():
    spec = importlib.util.spec_from_file_location("check", ROOT / "tools/check.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["check"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["check"]


@pytest.fixture
def report(tmp_path: Path):
    def write(cases: str) -> Path:
        path = tmp_path / "report.xml"
        path.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
        return path

    return write


def test_passed_failed_and_skipped_are_told_apart(check, report):
    path = report(
        '<testcase classname="a" name="good"/>'
        '<testcase classname="a" name="bad"><failure/></testcase>'
        '<testcase classname="a" name="broken"><error/></testcase>'
        '<testcase classname="a" name="left"><skipped message="needs root"/></testcase>'
    )
    tally = check.read_report("pytest", path, 1)
    assert tally.passed == 1
    assert tally.failures == ["pytest: a::bad", "pytest: a::broken"]
    assert tally.skips == ["pytest: a::left: needs root"]


@pytest.mark.parametrize(("step", "status"), [("pytest", 5), ("pytest", 0), ("ctest", 0)])
def test_a_step_in_which_no_test_took_part_is_a_failure(check, report, step, status):
    tally = check.read_report(step, report(""), status)
    assert tally.failures == [f"{step}: ended with status {status} and no test"]


def test_a_ctest_skip_gives_the_last_line_that_the_test_printed(check, report):
    path = report(
        '<testcase classname="t" name="t" status="notrun">'
        '<skipped message="SKIP_RETURN_CODE=77"/>'
        "<system-out>x\nskip: no MPI\n</system-out></testcase>"
    )
    assert check.read_report("ctest", path, 0).skips == ["ctest: t::t: skip: no MPI"]


def test_a_ctest_program_that_is_missing_is_a_failure(check, report):
    why = '<skipped message="Unable to find executable"/>'
    path = report(f'<testcase name="t" status="notrun">{why}</testcase>')
    assert len(check.read_report("ctest", path, 8).failures) == 1


def test_a_runner_that_fails_without_a_failed_test_is_a_failure(check, report):
    path = report('<testcase name="good"/>')
    assert check.read_report("pytest", path, 3).failures == ["pytest: ended with status 3"]
    assert len(check.read_report("pytest", path.with_name("none.xml"), 139).failures) == 1


def test_only_what_passed_when_run_again_is_unsteady(check, tmp_path):
    reruns = tmp_path / "reruns.txt"
    assert check.read_reruns(reruns, []) == []
    again = [
        "tests/a.py::shaky",
        "tests/a.py::bad[x::y.z]",
        "tests/a.py::Of::bad",
        "tests/b.py::bad",
    ]
    reruns.write_text("".join(f"{name}\tassert 0\n" for name in again))
    failures = ["pytest: tests.a::bad[x::y.z]", "pytest: tests.a.Of::bad"]
    told = check.read_reruns(reruns, failures)
    assert told == [
        f"pytest: {name}\n  assert 0" for name in ("tests/a.py::shaky", "tests/b.py::bad")
    ]


SHAKY = """
import pathlib
def test_shaky():
    mark = pathlib.Path(__file__).with_name('mark')
    again = mark.exists()
    mark.touch()
    assert again, 'not\\n  yet'
"""


def test_what_pytest_runs_again_is_written_down_and_counted_once(check, tmp_path):
    shaky = tmp_path / "test_shaky.py"
    shaky.write_text(SHAKY)
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    reruns, report = tmp_path / "reruns.txt", tmp_path / "pytest.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--reruns", "1"]

    def run_again(*more: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*command, f"--junitxml={report}", shaky, *more],
            env={**os.environ, "BRIGADE_TEST_RERUNS": str(reruns)}, capture_output=True,
            cwd=tmp_path, check=False,
        )  # fmt: skip

    done = run_again()
    assert done.returncode == 0, done.stdout
    (line,) = reruns.read_text().splitlines()
    assert line.startswith("test_shaky.py::test_shaky\tAssertionError: not yet assert")
    assert check.read_report("pytest", report, 0) == check.Tally(passed=1)

    (tmp_path / "mark").unlink()
    shaky.write_text(SHAKY + "def test_bad(): assert 0\ndef test_good(): pass\n")
    done = run_again()
    assert b"1 failed, 2 passed, 2 rerun" in done.stdout, done.stdout
    told = check.read_report("pytest", report, 1)
    assert (
        check.read_reruns(reruns, told.failures)
        == ["pytest: test_shaky.py::test_shaky\n  AssertionError: not yet assert False"] * 2
    )  # of both runs
    assert told == check.Tally(passed=2, failures=["pytest: test_shaky::test_bad"])
    done = run_again("-k", "nothing_of_that_name")
    assert done.returncode == 5, done.stdout
    assert check.read_report("pytest", report, 5).failures


@pytest.mark.parametrize("everything", [False, True])
def test_the_seed_that_tests_are_given_is_printed(check, monkeypatch, tmp_path, capsys, everything):
    given = {}
    monkeypatch.setattr(check, "BUILD", tmp_path)
    monkeypatch.setattr(check, "as_root", lambda: ())
    monkeypatch.setattr(check, "run", lambda *words, **more: given.update(more) or 0)
    check.pytest(everything)
    assert capsys.readouterr().out == f"BRIGADE_TEST_SEED={given['BRIGADE_TEST_SEED']}\n"


def test_a_commit_draws_the_same_wherever_it_is_checked(check, monkeypatch):
    monkeypatch.delenv("BRIGADE_TEST_SEED", raising=False)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    if not commit:
        pytest.skip("no git repository")
    assert check.seed_of_tests() == check.seed_of_tests() == str(int(commit, 16) % 10**9)
    assert len({check.seed_of_tests(anew=True) for _ in range(3)}) > 1
    monkeypatch.setenv("BRIGADE_TEST_SEED", "5")
    assert check.seed_of_tests() == check.seed_of_tests(anew=True) == "5"


def test_a_process_that_the_tests_left_running_is_a_failure(check, monkeypatch):
    monkeypatch.setattr(check.time, "sleep", lambda seconds: None)
    before = check.machine_state()
    child = subprocess.Popen(["sleep", "60"], env={"BRIGADE_TEST_RUN": check.TOKEN})
    environment = Path(f"/proc/{child.pid}/environ")
    while not environment.read_bytes():  # the kernel shows it a moment after exec
        assert child.poll() is None
    try:
        left = check.leftovers(before).failures
        assert [line for line in left if f"process {child.pid} sleep 60" in line]
    finally:
        child.kill()
        child.wait()
    assert not [line for line in check.leftovers(before).failures if "process" in line]


def test_a_step_begun_ahead_counts_and_shows_its_output_when_its_turn_comes(check, capsys):
    def step(output):
        print("wrong here", file=output)
        check.run("echo", "and there", output=output)
        return check.Tally(failures=["lint: two"])

    ahead = check.Ahead(step)
    assert ahead._future.exception() is None and capsys.readouterr().out == ""
    assert ahead().failures == ["lint: two"]
    assert sorted(capsys.readouterr().out.splitlines()) == ["and there", "wrong here"]


def test_one_failing_step_does_not_stop_the_others_and_the_counts_come_last(
    check, monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr(check, "BUILD", tmp_path)
    steps = {
        "first": lambda: check.Tally(failures=["first: broke"]),
        "second": lambda: check.Tally(passed=3, skips=["second: t: needs FUSE"]),
    }
    monkeypatch.setattr(check, "STEPS", steps)
    monkeypatch.setattr(check, "leftovers", lambda before: check.Tally())
    assert check.main([]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "3 passed, 1 failed, 1 skipped"
    assert "second: t: needs FUSE" in lines


def test_no_two_test_files_have_one_name():
    """pytest imports them by it, and would not take the second."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) > 100
    assert sorted({name for name in names if names.count(name) > 1}) == []
