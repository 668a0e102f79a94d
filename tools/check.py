"""Run the linters and all tests, and end with one line of counts.

    tools/check.py [--all] [STEP...]    steps: native, ctest, lint, pytest; all unless named

With --all, pytest also runs the tests marked `all`, which take long. What is random in tests comes
from a seed that is printed, and BRIGADE_TEST_SEED, set beforehand, is it: else it follows from the
commit, so that each commit draws anew and the same one fails here as it fails elsewhere; with --all
it is another one each time.

Several processes share pytest's test files. A test that fails is run once more: other people's
machines stop for seconds. One that passes then counts as passed and is named at the end, as
unsteady: look at it if it returns.

Each step runs even if one before it failed, so that one run shows everything. Test counts are read
from the JUnit files that ctest and pytest write, never from their text; a step that is no test
counts as one failure when it fails. After the tests nothing of them may be left: no process, mount,
network namespace or link. The exit status is 0 only if nothing failed.

Not as root, pytest runs through sudo where that works: the lab needs root.
"""

from __future__ import annotations

import functools
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "check"  # what the steps write
TREE = ROOT / "build" / "wheel"  # where the wheel's native parts were built: half the work is done
BIN = Path(sys.executable).parent
WORKERS = min(os.cpu_count() or 1, 4) + 1  # one more than processors: many tests wait
STEP_LIMIT_S = 2700  # the same machine has been seen to take 15 and 30 minutes
STEP_LIMIT_ALL_S = 7200
TEST_LIMIT_S = 120  # ctest; pytest's own is in pyproject.toml
TOKEN = secrets.token_hex(8)  # marks every process that the tests start, in its environment


@dataclass
class Tally:
    """What became of the tests of a step, or of several."""

    passed: int = 0
    failures: list[str] = field(default_factory=list)
    skips: list[str] = field(default_factory=list)
    unsteady: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.passed += other.passed
        self.failures += other.failures
        self.skips += other.skips
        self.unsteady += other.unsteady


def run(
    *command: object,
    prefix: tuple[str, ...] = (),
    limit_s: float = STEP_LIMIT_S,
    output: IO[str] | None = None,
    **variables: object,
) -> int:
    """Run a command in the working tree, its output shown as it comes unless a file is to take it.
    Returns its exit status."""
    words = [*prefix, *(f"{name}={value}" for name, value in variables.items() if prefix)]
    words += [str(word) for word in command]
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    sys.stdout.flush()
    try:
        return subprocess.run(
            words,
            cwd=ROOT,
            env=environment,
            stdin=None if prefix else subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=limit_s,
        ).returncode
    except subprocess.TimeoutExpired:
        print(f"{words[0]} did not end within {limit_s} s", file=output, flush=True)
        return 124
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=output, flush=True)
        return 127


class Ahead:
    """A step on one processor, begun early beside steps that leave one idle; its output is kept
    until its turn comes."""

    def __init__(self, step: Callable[[IO[str]], Tally]) -> None:
        self._output = tempfile.TemporaryFile("w+")
        self._future = ThreadPoolExecutor(1).submit(step, self._output)

    def __call__(self) -> Tally:
        tally = self._future.result()
        self._output.seek(0)
        print(self._output.read(), end="", flush=True)
        return tally


def lint(output: IO[str] | None = None) -> Tally:
    """Formatters, linter and types."""
    sources = [
        path
        for folder in ("src", "include", "examples", "tests", "bench")
        for path in sorted((ROOT / folder).rglob("*.[ch]"))
    ]
    checks: dict[str, list[object]] = {
        "ruff check": [
            BIN / "ruff",
            "check",
            "--quiet",
            "--no-cache",
            "--output-format=concise",
            ".",
        ],
        "ruff format": [BIN / "ruff", "format", "--quiet", "--no-cache", "--diff", "."],
        "mypy": [BIN / "mypy", "--no-error-summary", "--cache-dir", BUILD / "mypy"],
        "clang-format": [BIN / "clang-format", "--dry-run", "-Werror", *sources],
    }
    tally = Tally()
    for name, command in checks.items():
        if run(*command, output=output) != 0:
            tally.failures.append(f"{name}: see above (`make format` mends layout)")
    wide = [line for path in sources for line in too_wide(path)]
    if wide:
        print("\n".join(wide), file=output, flush=True)
        tally.failures.append(f"width: {len(wide)} lines of C past column 100")
    return tally


def too_wide(path: Path) -> list[str]:
    """Lines of a C file past column 100: comments, which clang-format leaves as they are."""
    lines = path.read_text().splitlines()
    return [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} columns"
        for number, line in enumerate(lines, 1)
        if len(line) > 100
    ]


def native() -> Tally:
    """Configure and build everything in C, tests too."""
    configure = ["cmake", "-S", ROOT, "-B", TREE, "-G", "Ninja", "--log-level=WARNING"]
    if run(*configure, "-DBRIGADE_TESTS=ON", "-DSKBUILD=") != 0:
        return Tally(failures=["native: cmake could not configure the build"])
    if run("cmake", "--build", TREE) != 0:
        return Tally(failures=["native: the build failed"])
    return Tally()


def ctest() -> Tally:
    """Tests of the C parts."""
    report = BUILD / "ctest.xml"
    report.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", TREE, "-j2", "--output-on-failure"]
    command += ["--timeout", str(TEST_LIMIT_S), "--output-junit", report]
    status = run(*command, BRIGADE_TEST_RUN=TOKEN, BRIGADE_NATIVE=TREE / "native")
    return read_report("ctest", report, status)


def pytest(everything: bool = False) -> Tally:
    """Tests of everything else, the lab among it; those marked `all` only if `everything`."""
    report, reruns = BUILD / "pytest.xml", BUILD / "reruns.txt"
    for file in (report, reruns):
        file.unlink(missing_ok=True)
    command = [sys.executable, "-B", "-m", "pytest", "-q", "--durations=10", f"--junitxml={report}"]
    command += ["--reruns", "1", "-n", WORKERS, "--dist", "loadfile", "--no-loadscope-reorder"]
    if everything:
        command += ["-m", ""]
    seed = seed_of_tests(anew=everything)
    command += [f"--hypothesis-seed={seed}"]
    print(f"BRIGADE_TEST_SEED={seed}", flush=True)
    prefix = as_root()
    status = run(
        *command,
        prefix=prefix,
        limit_s=STEP_LIMIT_ALL_S if everything else STEP_LIMIT_S,
        BRIGADE_TEST_SEED=seed,
        BRIGADE_TEST_RERUNS=reruns,
        BRIGADE_TEST_RUN=TOKEN,
        BRIGADE_NATIVE=TREE / "native",
        HYPOTHESIS_STORAGE_DIRECTORY=BUILD / "hypothesis",
        OPENBLAS_THREAD_TIMEOUT=10,  # its idle threads spin for 0.1 s in every process otherwise
    )
    if prefix:
        run("chown", "-R", f"{os.getuid()}:{os.getgid()}", BUILD, prefix=prefix)
    tally = read_report("pytest", report, status)
    tally.unsteady = read_reruns(reruns, tally.failures)
    return tally


def seed_of_tests(anew: bool = False) -> str:
    """What random tests draw from: given, of the commit that is checked, or drawn."""
    if given := os.environ.get("BRIGADE_TEST_SEED"):
        return given
    commit = ""
    if not anew and shutil.which("git"):
        words = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
        commit = subprocess.run(words, capture_output=True, text=True).stdout.strip()
    return str(int(commit, 16) % 10**9 if commit else secrets.randbelow(10**9))


def read_reruns(file: Path, failures: list[str]) -> list[str]:
    """The tests that failed at first and passed when they were run again, and why they failed."""
    lines = file.read_text().splitlines() if file.exists() else []
    failed = set(failures)
    found = [line.partition("\t") for line in lines]
    return [
        f"pytest: {name}" + (f"\n  {why}" if why else "")
        for name, _, why in found
        if name and f"pytest: {reported_name(name)}" not in failed
    ]


def reported_name(test: str) -> str:
    """What a test that pytest calls tests/io/test_a.py::Class::test_x[a::b] is in its report."""
    path, bracket, parameters = test.partition("[")
    file, *names = path.split("::")
    places = [file.removesuffix(".py").replace("/", "."), *names[:-1]]
    return "::".join([".".join(places), *names[-1:]]) + bracket + parameters


def as_root() -> tuple[str, ...]:
    """The words that make a command run as root: none for root, or where sudo does not work."""
    if os.geteuid() == 0:
        return ()
    ask = () if sys.stdin.isatty() else ("-n",)
    if shutil.which("sudo") and subprocess.run(["sudo", *ask, "true"]).returncode == 0:
        return ("sudo", *ask, "-E")
    print("sudo does not work here: tests that need root will skip", flush=True)
    return ()


def read_report(step: str, report: Path, status: int) -> Tally:
    """Count a JUnit file. A test that was run again stands there once a run: the last one counts.
    A step in which no test took part, or that failed without saying which did, is one failure."""
    tally = Tally()
    try:
        cases = {case_name(case): case for case in ET.parse(report).getroot().iter("testcase")}
    except (OSError, ET.ParseError) as error:
        return Tally(failures=[f"{step}: ended with status {status} and no report ({error})"])
    for name, case in cases.items():
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            tally.failures.append(f"{step}: {name}")
        elif skipped is None:
            tally.passed += 1
        elif step == "ctest" and not skip_is_meant(skipped.get("message", "")):
            tally.failures.append(f"{step}: {name}: {skipped.get('message')}")
        else:
            tally.skips.append(f"{step}: {name}: {skip_reason(case, skipped)}")
    if not cases:
        tally.failures.append(f"{step}: ended with status {status} and no test")
    elif status != 0 and not tally.failures:
        tally.failures.append(f"{step}: ended with status {status}")
    return tally


def case_name(case: ET.Element) -> str:
    """The one name of a test in a report."""
    return "::".join(filter(None, (case.get("classname"), case.get("name"))))


def skip_is_meant(message: str) -> bool:
    """ctest also reports a test whose program is missing as skipped; that is a failure."""
    return message.startswith(("SKIP_", "Disabled"))


def skip_reason(case: ET.Element, skipped: ET.Element) -> str:
    """What the test said: pytest's message, or the last line that a C test printed."""
    output = (case.findtext("system-out") or "").split("\n") if case.get("status") else []
    said = [line.strip() for line in output if line.strip()]
    return said[-1] if said else skipped.get("message", "no reason given")


def machine_state() -> set[str]:
    """Every mount, network namespace and network link of the machine, as text."""
    mounts = Path("/proc/self/mounts").read_text(errors="replace").splitlines()
    state = {"mount " + " ".join(line.split()[1:3]) for line in mounts}
    for kind, folder in (("network namespace", "/run/netns"), ("link", "/sys/class/net")):
        if os.path.isdir(folder):
            state |= {f"{kind} {name}" for name in os.listdir(folder)}
    return state


def processes_of_tests() -> set[str]:
    """Processes that carry the token, which is all that the tests started."""
    mark = f"BRIGADE_TEST_RUN={TOKEN}".encode()
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                words = (
                    (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
                found.add(f"process {folder.name} {words.strip()[:80]}")
        except OSError:
            continue  # it ended, or is not ours to look at
    return found


def leftovers(before: set[str]) -> Tally:
    """What the tests left behind, given what there was before. The kernel gets 5 s to clean up."""
    for _ in range(50):
        left = (machine_state() - before) | processes_of_tests()
        if not left:
            return Tally()
        time.sleep(0.1)
    return Tally(failures=[f"left behind: {thing}" for thing in sorted(left)])


STEPS: dict[str, Callable[[], Tally]] = {
    "native": native,
    "ctest": ctest,
    "lint": lint,
    "pytest": pytest,
}


def main(names: list[str]) -> int:
    if "--all" in names:
        names = [name for name in names if name != "--all"]
        STEPS["pytest"] = functools.partial(pytest, everything=True)
    unknown = [name for name in names if name not in STEPS]
    if unknown:
        print(f"no step {unknown[0]}; there are: {', '.join(STEPS)}", file=sys.stderr)
        return 2
    BUILD.mkdir(parents=True, exist_ok=True)
    before = machine_state()
    total = Tally()
    steps = {name: STEPS[name] for name in names or STEPS}
    if steps.get("lint") is lint and len(steps) > 1:
        steps["lint"] = Ahead(lint)
    for name, step in steps.items():
        print(f"== {name}", flush=True)
        start = time.monotonic()
        tally = step()
        total.add(tally)
        outcome = "FAILED" if tally.failures else "ok"
        print(f"-- {name}: {outcome}, {time.monotonic() - start:.1f} s", flush=True)
    total.add(leftovers(before))

    unsteady = "unsteady: failed, and passed when run again"
    for title, lines in (
        ("skipped", total.skips),
        (unsteady, total.unsteady),
        ("failed", total.failures),
    ):
        if lines:
            print(f"== {title}")
            print("\n".join(lines))
    print(f"{total.passed} passed, {len(total.failures)} failed, {len(total.skips)} skipped")
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
