"""What a rule with the word `direct` reads from a file system of FUSE goes past the page cache, and
nobody can tell but by the clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from buffer_world import HERE, buffered, compile_c, contents, counted, run

from brigade.paths import native

SIZE = (12 << 20) + 777  # its end is not aligned
RULE = "*.dat:direct"
START = """
import fcntl, mmap, os, signal, sys, threading, time, zlib
fd, sum = os.open("a.dat", os.O_RDONLY), 0
def go_on(calls=-1):
    global sum
    while calls and (data := os.read(fd, 5000)): sum, calls = zlib.crc32(data, sum), calls - 1
"""
READ = START + "go_on(); print(sum)"
# reads on while its own flags are looked at
LOOK = (
    START
    + """
reader = threading.Thread(target=go_on)
reader.start()
seen = set()
while reader.is_alive(): seen.add(fcntl.fcntl(fd, fcntl.F_GETFL))
print(seen)
"""
)
# becomes another program while the background reads
EXEC = (
    START
    + """
fcntl.fcntl(fd, fcntl.F_SETFD, 0)
go_on(int(sys.argv[1]))
time.sleep(int(sys.argv[2]) / 1e6)
code = "import fcntl; print(fcntl.fcntl(%d, fcntl.F_GETFL) & %d)" % (fd, os.O_DIRECT)
os.execv(sys.executable, [sys.executable, "-c", code])
"""
)
#: what is done while blocks are on their way: each ends as it does without a library
MEANWHILE = {
    "a write by another descriptor": """
other = os.open("a.dat", os.O_RDWR)
for at in range(100000, 3 << 20, 70001): os.pwrite(other, b"new", at)
""",
    "an end that is cut off": "os.truncate('a.dat', (1 << 20) + 5)",
    "an end that is moved back, then on": """
os.truncate("a.dat", 200000)
with open("a.dat", "ab", buffering=0) as more: more.write(b"more" * 100000)
""",
    "a write to a mapping": """
other = os.open("a.dat", os.O_RDWR)
with mmap.mmap(other, 0) as pages: pages[150000:900000] = b"m" * 750000
""",
    "a fork": """
if os.fork() == 0:
    go_on(100)
    os._exit(0)
os.wait()
""",
    "a close": "os.close(fd); fd = os.open('a.dat', os.O_RDONLY)",
    "a copy that outlives it": "fd, old = os.dup(fd), fd; os.close(old)",
    "another place": "os.lseek(fd, 777777, 0); go_on(50); os.lseek(fd, 100, 0)",
    "a program that is run": "print(os.waitstatus_to_exitcode(os.system('true')))",
    "signals": """
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
""",
}
# reads pieces that are too large for a buffer beside a thread that reads small ones
BESIDE = (
    START
    + """
reader = threading.Thread(target=go_on)
reader.start()
other = 0
for at in range(0, 10 << 20, 190000): other = zlib.crc32(os.pread(fd, 190000, at), other)
reader.join()
print(sum, other)
"""
)


@contextmanager
def mounted(folder: Path, **settings: int) -> Iterator[Path]:
    """A folder of a file system of FUSE whose reads are slow, or fail; see reads_faulty.c."""
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("needs root and /dev/fuse: a file system is mounted")
    try:
        program = native("brigade-slowfs")
    except Exception as error:
        pytest.skip(f"the lab's slow file system was not built: {error}")
    faulty = folder / "faulty.so"
    source = HERE / "reads_faulty.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", faulty, source], check=True)
    behind, front = folder / "behind", folder / "fuse"
    behind.mkdir()
    front.mkdir()
    pages = [f"--queue={folder / 'queue'}", f"--counters={folder / 'counters'}"]
    env = {"LD_PRELOAD": str(faulty), **{name: str(value) for name, value in settings.items()}}
    subprocess.run(
        [program, *pages, "--service-us=0", behind, front], check=True, env={**os.environ, **env}
    )
    try:
        yield front  # it serves in the background, until it is not mounted any more
    finally:
        subprocess.run(["umount", "-l", front], check=True)


@pytest.fixture
def fuse(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path) as folder:
        yield folder


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path, READS_US=3000) as folder:
        yield folder


def fill(fuse: Path) -> None:
    """a.dat, of which the page cache of the mount has nothing."""
    (fuse / "a.dat").unlink(missing_ok=True)
    block = bytes(range(256)) * 257  # no two pieces alike
    (fuse.parent / "behind" / "a.dat").write_bytes((block * (SIZE // len(block) + 1))[:SIZE])


def entries(fuse: Path, rules: str, code: str, **more: str) -> tuple[list[dict[str, Any]], str]:
    """What the report says of each file, and what was said."""
    report = fuse.parent / "report"
    report.mkdir(exist_ok=True)
    env = buffered(rules, BRIGADE_BUFFER_REPORT=str(report), **more)
    done = run([sys.executable, "-c", code], fuse, env)
    assert done.returncode == 0, done.stderr
    files = [entry for path in report.iterdir() for entry in json.loads(path.read_text())["files"]]
    for path in report.iterdir():
        path.unlink()
    return files, str(done.stdout)


def past_cache(fuse: Path, rules: str, code: str = READ, **more: str) -> tuple[int, str]:
    """How many blocks were read past the cache, and what was said."""
    files, said = entries(fuse, rules, code, **more)
    return sum(entry["fills_past_cache"] for entry in files), said


def plainly(fuse: Path, code: str = READ) -> str:
    """What it says without the library, on a file of its own."""
    fill(fuse)
    done = run([sys.executable, "-c", code], fuse)
    assert done.returncode == 0, done.stderr
    fill(fuse)
    return str(done.stdout)


def test_a_cold_file_is_read_past_the_cache_and_has_the_same_bytes(fuse):
    plain = plainly(fuse)
    n, said = past_cache(fuse, RULE)
    assert said == plain
    assert n >= SIZE >> 20


@pytest.mark.parametrize("rules", ["*.dat", "*.dat:direct=0", "*.dat:size=4M:count=8"])
def test_without_the_word_the_next_process_finds_the_file_in_the_cache(fuse, rules):
    fill(fuse)
    assert past_cache(fuse, rules)[0] == 0
    assert past_cache(fuse, RULE)[0] == 0  # it has come to the cache, so it comes from there


def test_through_the_cache_the_kernel_reads_ahead_alone(fuse):
    fill(fuse)
    entry = entries(fuse, "*.dat", READ)[0][0]
    assert entry["fills"] > 0 and entry["ahead"] == 0


def test_what_can_be_written_is_read_through_the_cache(fuse):
    fill(fuse)
    assert past_cache(fuse, RULE, READ.replace("O_RDONLY", "O_RDWR"))[0] == 0


def test_on_a_disk_the_word_changes_nothing(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "behind").mkdir()
    fill(tmp_path / "disk")
    assert past_cache(tmp_path / "behind", RULE)[0] == 0


@pytest.mark.parametrize("what", MEANWHILE)
@pytest.mark.parametrize("rules", [RULE, "*.dat:direct:size=64K:count=8", "*.dat"])
def test_what_is_done_while_blocks_are_on_their_way_ends_as_ever(slow, what, rules):
    code = (
        START
        + "go_on(40)\n"
        + MEANWHILE[what]
        + "\ngo_on(); signal.setitimer(signal.ITIMER_REAL, 0); print(sum)"
    )
    plain = plainly(slow, code)
    n, said = past_cache(slow, rules, code)
    assert said == plain
    assert (n > 0) == ("direct" in rules)


@pytest.mark.parametrize(
    "change",
    [
        lambda file: os.ftruncate(file, (6 << 20) + 3),
        lambda file: os.pwrite(file, b"others" * 100000, 7 << 20),
        lambda file: os.pwrite(file, b"at the end" * 50000, SIZE),
    ],
    ids=["cut", "changed", "longer"],
)
def test_what_another_process_does_to_the_file_is_seen_when_blocks_are_old(slow, change):
    code = START + "go_on(900); print(flush=True); input(); time.sleep(0.4); go_on(); print(sum)"
    said = []
    for env in (None, buffered("*.dat:direct:fresh=0.2")):
        fill(slow)
        words, pipe = [sys.executable, "-c", code], subprocess.PIPE
        with subprocess.Popen(words, cwd=slow, env=env, stdin=pipe, stdout=pipe) as program:
            assert program.stdout and program.stdout.readline() == b"\n"
            file = os.open(slow / "a.dat", os.O_RDWR)
            change(file)
            os.close(file)
            said.append(program.communicate(b"\n", timeout=60)[0])
    assert said[0] == said[1]


def test_a_file_system_that_refuses_is_read_through_the_cache(tmp_path):
    with mounted(tmp_path, READS_MOST=131072) as fuse:
        plain = plainly(fuse)
        n, said = past_cache(fuse, RULE)
        assert said == plain
        assert n < 2  # the first, of 64 KiB, is not refused


def test_a_read_beside_one_that_needs_the_flag_is_not_refused_for_it(tmp_path):
    with mounted(tmp_path, READS_US=1000, READS_MOST=131072) as fuse:
        plain = plainly(fuse, BESIDE)
        n, said = past_cache(fuse, "*.dat:size=128K:direct", BESIDE)
        assert said == plain
        assert n > 0


def test_a_failing_server_is_told_of_at_the_same_byte(tmp_path):
    code = START + "\ntry: go_on()\nexcept OSError as e: print(e.errno)\nprint(os.lseek(fd, 0, 1))"
    with mounted(tmp_path, READS_BAD=7 << 20) as fuse:
        plain = plainly(fuse, code)
        assert plain.startswith("5\n")
        n, said = past_cache(fuse, RULE, code)
        assert said.startswith("5\n")
        # the kernel gives the pages before the one that failed, which are fewer the less is asked
        assert abs(int(said.split()[1]) - int(plain.split()[1])) <= 131072
        assert n > 0


def test_no_more_memory_is_taken_than_is_allowed(slow):
    code = READ + "\nprint(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    most = {}
    for bound in (2 << 20, 64 << 20):
        fill(slow)
        rules = "*.dat:direct:size=1M:count=8"
        said = past_cache(slow, rules, code, BRIGADE_BUFFER_MEMORY=str(bound))[1]
        most[bound] = int(said.split()[1])
    assert most[64 << 20] - most[2 << 20] > 2048, "without the bound it would be more"


def test_the_flag_is_not_seen_by_the_program(fuse):
    plain = plainly(fuse, LOOK)
    n, said = past_cache(fuse, RULE, LOOK)
    assert said == plain
    assert n > 0


def test_another_program_that_takes_its_place_does_not_find_the_flag(fuse):
    fill(fuse)
    env = buffered("*.dat:direct:size=4M")  # read ahead at about the 14th and the 67th read
    found = [
        run([sys.executable, "-c", EXEC, n, wait_us], fuse, env).stdout
        for n in (14, 67)
        for wait_us in range(0, 2000, 150)
    ]
    assert found == ["0\n"] * len(found)


@pytest.mark.parametrize("first", range(30000, 30024, 6))
def test_random_programs_see_the_same(fuse, first):
    driver = compile_c("calls_driver", fuse.parent)
    for seed in range(first, first + 6):
        rules = ["*.dat:direct", "*:size=16K:count=3:direct", "*.dat"][seed % 3]
        report = fuse.parent / f"report{seed}"
        report.mkdir()
        seen = []
        for name, env in (
            ("p", None),
            ("b", buffered(rules, BRIGADE_BUFFER_REPORT=str(report))),
        ):
            folder = fuse / f"{name}{seed}"
            folder.mkdir()
            done = run([driver, seed, 300, 1 + seed % 2], folder, env)
            seen.append((done.returncode, done.stdout.splitlines(), contents(folder)))
        assert seen[0][0] == 0 and len(seen[0][1]) > 300
        assert seen[0] == seen[1], f"seed {seed}, {rules}"
        total = counted(report)
        assert total["reads"] > 0 and total["writes"] > 0, "nothing was buffered"
