"""`brigade bench checkpoint` and `align` as they run: small, with the MPI that is here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_world import ENVIRONMENT, has_romio, needs_romio

from brigade.bench.checkpoint import program, rival
from brigade.errors import BrigadeError

SMALL = ["--record", "1k", "--rounds", "2", "-n", "4", "--mpicc", "mpicc.openmpi"]
LAUNCHER = ["--", "mpirun.openmpi", "--oversubscribe", "-n", "{n}"]
MPIIO = ("ompio", "romio") if has_romio() else ("ompio",)
needs_mpi = pytest.mark.skipif(not shutil.which("mpicc.openmpi"), reason="no Open MPI")
pytestmark = needs_mpi


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


def bench(cache: Path, folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess:
    """`brigade bench KIND --dir FOLDER WORDS`."""
    return subprocess.run(
        [sys.executable, "-m", "brigade", "bench", words[0], "--dir", str(folder), *words[1:]],
        env={**os.environ, **ENVIRONMENT, "BRIGADE_CACHE": str(cache), **variables},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_every_variant_writes_and_reads_every_cell_right(cache, tmp_path):
    few = ["--rounds", "1", "-n", "2"]
    done = bench(cache, tmp_path, "checkpoint", *SMALL, *few, "--json", *LAUNCHER)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    variants = {sample["variant"] for sample in report["samples"]}
    assert {"brigade", *MPIIO, "posix-shared", "posix-fpp"} <= variants
    for cell in report["cells"]:
        for name, ways in cell["variants"].items():
            jobs = 1 if name in MPIIO else len(MPIIO)
            assert (ways["write"]["n"], ways["read"]["n"]) == (jobs, jobs), name
            assert ways["write"]["q1"] <= ways["write"]["median"] <= ways["write"]["q3"]
    assert report["cells"][0]["ratios"].keys() == variants - {"brigade"}
    assert [cell["pattern"] for cell in report["cells"]] == ["4d", "4d", "contiguous", "strided"]
    assert report["host"]["cpus"] and report["settings"]["nodes"] == 1
    assert list(tmp_path.iterdir()) == [], "nothing is left"


def test_the_table_names_the_cells_the_ratios_and_what_is_absent(cache, tmp_path):
    words = ["checkpoint", *SMALL, "--pattern", "strided", "--variants", "brigade,posix-fpp"]
    done = bench(cache, tmp_path, *words, *LAUNCHER, COLUMNS="110")
    assert done.returncode == 0, done.stderr
    assert re.search(r"4 +strided +1 KiB +4\.0 +brigade +[\d.]+ +[\d.]+-[\d.]+", done.stdout)
    assert re.search(r"posix-fpp .* [\d.]+ \[[\d.]+, [\d.]+\]", done.stdout)
    assert max(map(len, done.stdout.splitlines()[:8])) <= 110


@needs_romio
def test_ours_of_mpi_io_are_measured_beside_it(cache, tmp_path):
    words = ["--pattern", "strided", "--rounds", "1", "-n", "2", "--json"]
    words += ["--variants", "romio,preloaded,onesided"]
    done = bench(cache, tmp_path, "checkpoint", *SMALL, *words, *LAUNCHER, BRIGADE_MPIIO="verbose")
    assert done.returncode == 0, done.stderr
    samples = json.loads(done.stdout)["samples"]
    found = sorted((s["component"].rstrip("0123456789"), s["variant"]) for s in samples)
    assert found == [
        ("preloaded", "onesided"),
        ("preloaded", "preloaded"),
        ("romio", "onesided"),
        ("romio", "romio"),
    ]
    taken = re.findall(r"writes: (\d+) calls taken over", done.stderr)
    assert taken == ["1"], "the MPI-IO of one job"


def test_published_files_of_peers_are_whole_under_their_names(cache, tmp_path):
    words = ["--pattern", "strided", "--rounds", "1", "-n", "2", "--publish", "--json"]
    done = bench(cache, tmp_path, "checkpoint", *SMALL, *words, *LAUNCHER)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["settings"]["publish"] is True
    assert list(tmp_path.iterdir()) == [], "nothing is left"


def test_only_what_was_published_is_found_by_the_check(wrong_program, tmp_path):
    made = wrong_program("main.c", "rename(from, to)", "0")
    said = run(made, tmp_path, STRIDED.replace("read=1", "publish=1"))
    assert '"failed": "the file that was written is not there"' in said, said


OWN_PUBLISHED = "back=posix-fpp seed=1 grid=2 count=64 sync=1 publish=1"


def test_a_file_of_a_ranks_own_that_cannot_be_renamed_is_a_failure(wrong_program, tmp_path):
    failing = "(rank == 1 ? (errno = EDQUOT, -1) : rename(from, to))"
    said = run(wrong_program("main.c", "rename(from, to)", failing), tmp_path, OWN_PUBLISHED)
    assert re.search(r"\"failed\": \".*/file\.[01]: Disk quota exceeded", said), said


def test_one_rank_syncs_the_folder_when_all_have_renamed_their_files(wrong_program, tmp_path):
    opened = "    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;"
    counted = f'    printf("synced by %d\\n", rank);\n{opened}'
    said = run(wrong_program("main.c", opened, counted), tmp_path, OWN_PUBLISHED)
    assert re.findall(r"synced by (\d)", said) == ["0"], said
    assert '"id": 0, "write"' in said


@pytest.fixture
def wrong_program(tmp_path, monkeypatch):
    """Makes the program of sources in which one line is another."""

    def make(file: str, line: str, other: str) -> Path:
        sources = tmp_path / "sources"
        shutil.copytree(program.SOURCES, sources)
        text = (sources / file).read_text()
        assert text.count(line) == 1
        (sources / file).write_text(text.replace(line, other))
        monkeypatch.setattr(program, "SOURCES", sources)
        return program.prepare(tmp_path / "made", "mpicc.openmpi").path

    return make


def run(path: Path, folder: Path, line: str, **variables: str) -> str:
    schedule = folder / "schedule"
    schedule.write_text(f"id=0 {line}\n")
    words = [str(path), str(schedule), str(folder / "file")]
    command = ["mpirun.openmpi", "--oversubscribe", "-n", "2", *words]
    done = subprocess.run(
        command,
        env={**os.environ, **ENVIRONMENT, **variables},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.stdout


def test_a_rank_that_begins_when_others_have_ended_is_waited_for(wrong_program, tmp_path):
    begin = "    outcome->begin = outcome->last = now();"
    made = wrong_program("main.c", begin, f"    usleep(!rank * 300000);{begin}")
    said = run(made, tmp_path, "back=posix-fpp seed=1 grid=2 count=64 read=1")
    [sample] = [json.loads(line) for line in re.findall(r'{"id": 0, .*}', said)]
    for way in ("write", "read"):
        seconds = sample[way]
        # 0.3, less what the other waits for a processor when both may begin
        assert 0.25 <= seconds["total"] < 1
        assert max(seconds["open"], seconds["move"], seconds["close"]) < 0.2


STRIDED = "back=posix-shared seed=1 grid=1,2 count=4,64 read=1 check=1"


def test_a_byte_that_is_read_wrong_is_found(wrong_program, tmp_path):
    made = wrong_program(
        "posix.c",
        "    return move(cell, &t, cell->path, buf, 0, outcome);",
        "    int rc = move(cell, &t, cell->path, buf, 0, outcome); buf[100] ^= 1; return rc;",
    )
    said = run(made, tmp_path, STRIDED)
    assert re.search(r'"failed": "wrong byte at (160|224) of the file read"', said), said


CACHED = """
import ctypes, mmap, sys

for path in sys.argv[1:]:
    with open(path, "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    found = (ctypes.c_ubyte * -(-len(mapped) // mmap.PAGESIZE))()
    place = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
    assert not ctypes.CDLL(None).mincore(
        ctypes.c_void_p(place), ctypes.c_size_t(len(mapped)), found
    )
    print("cached", sum(page & 1 for page in found), "of", len(found))
"""


def test_reading_begins_at_the_file_system_also_where_a_file_is_in_parts(wrong_program, tmp_path):
    forgotten = "        memset(back_buf, 0, cell_bytes(cell));"
    look = '        if (rank == 0) system(getenv("LOOK"));\n        MPI_Barrier(cell->comm);\n'
    made = wrong_program("main.c", forgotten, look + forgotten)
    script = tmp_path / "cached.py"
    script.write_text(CACHED)
    cell = "seed=1 grid=1,2 count=64,4096 sync=1 read=1"
    found = {}
    for back, files in (
        ("posix-shared", "file"),
        ("brigade hints=layout=parts:writers=2", ".file.brg-*.parts/*"),
    ):
        command = f"{sys.executable} {script} {tmp_path}/{files}"
        said = run(made, tmp_path, f"back={back} {cell}", LOOK=command)
        found[back[:5]] = re.findall(r"cached (\d+) of (\d+)", said)
        assert sum(int(pages) for _, pages in found[back[:5]]) >= 128, said
    if found["posix"] != [("0", "128")]:
        pytest.skip("this file system keeps in memory what a program asks it to forget")
    assert {cached for cached, _ in found["briga"]} == {"0"}, found


def test_records_that_change_places_both_ways_are_found_in_the_file(wrong_program, tmp_path):
    made = wrong_program(
        "posix.c",
        "    return whole(t, offset, t->memory + at, bytes);",
        "    return whole(t, offset ^ 128, t->memory + at, bytes);",
    )
    said = run(made, tmp_path, STRIDED)
    assert re.search(r'"failed": "wrong byte at (0|256) of the file written"', said), said


def test_a_back_end_that_fails_names_cell_rank_and_reason(cache, tmp_path):
    words = ["checkpoint", *SMALL, "--variants", "brigade:no-such-hint=1"]
    done = bench(cache, tmp_path, *words, *LAUNCHER)
    assert done.returncode == 1
    assert re.search(r"brigade:no-such-hint=1, .*, 4 ranks, rank \d: .*no-such-hint", done.stderr)
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_launcher_that_starts_another_number_of_ranks_is_an_error(cache, tmp_path):
    words = ["checkpoint", *SMALL, "--pattern", "contiguous", "--variants", "posix-fpp"]
    launcher = ["--", "mpirun.openmpi", "--oversubscribe", "-n", "2"]
    done = bench(cache, tmp_path, *words, *launcher)
    assert (done.returncode, "2 ranks were started, not 4" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["checkpoint", "--variants", "tape"], "no back end 'tape'"),
        (["checkpoint", "--pattern", "spiral"], "no pattern 'spiral'"),
        (["checkpoint", "--record", "100"], "multiples of 8"),
        (["checkpoint", "-n", "0"], "not a list of numbers"),
        (["align", "--place", "tape"], "there are shared and own"),
    ],
)
def test_wrong_options_are_refused_with_exit_code_2(words, said, cache, tmp_path):
    done = bench(cache, tmp_path, *words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_no_mpi_compiler_says_what_to_do(cache, tmp_path):
    done = bench(cache, tmp_path, "checkpoint", "--mpicc", "no-such-mpicc")
    assert done.returncode == 1
    assert "no-such-mpicc" in done.stderr and "MPICC" in done.stderr


def test_a_peer_that_is_not_there_is_said_to_be_absent(cache, tmp_path):
    words = ["checkpoint", *SMALL, "--variants", "adios2", "--python", "no-such-python"]
    done = bench(cache, tmp_path, *words)
    assert (done.returncode, "no-such-python has no ADIOS2" in done.stderr) == (2, True)


def test_align_prints_the_published_columns_for_both_places(cache, tmp_path):
    words = ["align", "-n", "2", "--block", "64k", "--rounds", "2", "--system", "here", "--csv"]
    more = ["--back-end", "posix", "--mpicc", "mpicc.openmpi", *LAUNCHER]
    done = bench(cache, tmp_path, *words, *more)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].endswith("iteration,read_offset,read_plain,write_offset,write_plain")
    keys = [line.split(",")[:5] for line in lines[1:]]
    assert keys == [
        ["here", place, header, "2", number]
        for place in ("posix-fpp", "posix-shared")
        for header in ("256", "4096")
        for number in ("0", "1")
    ]


def test_a_neighbour_on_the_file_system_ends_with_the_measurement(cache, tmp_path):
    words = ["checkpoint", *SMALL, "--pattern", "contiguous", "--variants", "brigade"]
    done = bench(cache, tmp_path, *words, "--rival", "2", "--json", *LAUNCHER)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["settings"]["rival_mib"] == 2
    assert list(tmp_path.iterdir()) == []


def test_a_neighbour_that_died_makes_the_measurement_an_error(tmp_path, monkeypatch):
    with rival.rival(tmp_path, 1):
        pass
    monkeypatch.setattr(rival.sys, "executable", shutil.which("false"))
    with pytest.raises(BrigadeError, match="ended with status 1"), rival.rival(tmp_path, 1):
        pass
    with pytest.raises(KeyError), rival.rival(tmp_path, 1):
        raise KeyError("what fails beside it is what is said")


def test_a_neighbour_that_cannot_write_says_where(tmp_path):
    command = [sys.executable, "-m", rival.__name__, str(tmp_path / "nowhere"), "1", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        said = child.stderr.read().decode()
    assert child.returncode == 1
    assert said == f"the neighbour (--rival): {tmp_path / 'nowhere'}: No such file or directory\n"
