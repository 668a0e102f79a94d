"""`brigade bench ior` and its program as they run: small, with Open MPI."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mpi_world import needs_romio

from brigade.bench.checkpoint.program import open_mpi
from brigade.bench.ior import options, program
from brigade.cli.bench_checkpoint import launcher_words

MPIRUN = ["mpirun.openmpi", "--oversubscribe", "-n"]
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
pytestmark = pytest.mark.skipif(not shutil.which("mpicc.openmpi"), reason="no Open MPI")
Done = subprocess.CompletedProcess


def execute(command: list[object], folder: Path, **variables: str) -> Done[str]:
    return subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **ENVIRONMENT, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def bench(cache, tmp_path):
    """bench(WORDS): `brigade bench ior WORDS`."""

    def run(*words: object) -> Done[str]:
        command = [sys.executable, "-m", "brigade", "bench", "ior", "--mpicc", "mpicc.openmpi"]
        return execute([*command, *words], tmp_path, BRIGADE_CACHE=str(cache))

    return run


@pytest.fixture(scope="module")
def made(cache) -> Path:
    return program.prepare(cache / "bench", "mpicc.openmpi")


@pytest.fixture
def ior(made, tmp_path):
    """ior(RANKS, WORDS): the program itself; one rank needs no launcher."""

    def run(ranks: int, *words: object) -> Done[str]:
        launcher = [*MPIRUN, ranks] if ranks > 1 else []
        return execute([*launcher, made, *words], tmp_path)

    return run


WAYS = ["POSIX", "MPIIO", "MPIIO:view", "ONESIDED", "ONESIDED:view", "LAMINAR"]


def test_every_back_end_writes_and_reads_words_that_another_task_finds_right(bench, tmp_path):
    words = ["-a", ",".join(WAYS), "-b", "64k", "-t", "16k", "-s", "3", "-i", "2", "-wrWRC", "-c"]
    done = bench(*words, "-n", "3", "--json", "--", *MPIRUN, "{n}")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["wrong"], report["status"]) == ([], 0)
    kinds = [(s["api"], s["access"], s["iteration"]) for s in report["samples"]]
    assert sorted(kinds) == sorted(
        (w, a, i) for w in WAYS for a in ("read", "write") for i in (0, 1)
    )
    assert [kind[0] for kind in kinds[::2]] == [*WAYS, *WAYS[::-1]], "they take turns"
    assert {sample["bytes"] for sample in report["samples"]} == {3 * 3 << 16}
    assert report["tests"][0]["tasks"] == 3
    assert list(tmp_path.iterdir()) == [], "nothing is left"


@pytest.mark.all
@pytest.mark.skipif(not shutil.which("oshcc"), reason="needs Debian package liboshmem-dev: oshcc")
def test_one_sided_calls_go_over_openshmem_where_the_program_has_it(bench, tmp_path):
    ways = "ONESIDED:seam=shmem,ONESIDED:view:seam=shmem,ONESIDED:seam=windows"
    for words in (["-c", "-n", "3"], ["-F", "-z", "-n", "2"]):
        wanted = ways if "-c" in words else ways.replace(":view", "")
        done = bench("-a", wanted, "-b", "64k", "-t", "16k", "-s", "3", "-wrWRC", *words, "--json")
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert (report["wrong"], len(report["samples"])) == ([], 6)
    assert list(tmp_path.iterdir()) == []


def test_hdf5_is_there_where_a_parallel_one_is(ior, tmp_path):
    if "  HDF5 " not in ior(1, "--help").stdout:
        pytest.skip("no parallel HDF5 for Open MPI (Debian: libhdf5-openmpi-dev)")
    for words in (["-c", "-C", "-e"], ["-F"]):
        done = ior(2, "-a", "HDF5", *words, *SHAPE, "-wrWR", "-o", tmp_path / "file")
        assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_tasks_have_files_of_their_own_in_random_order(ior, tmp_path):
    words = ["-a", "POSIX,LAMINAR", "-F", "-z", "-ZZ", "-m", "-b", "64k", "-t", "8k", "-s", "2"]
    done = ior(3, *words, "-i", "2", "-wrWR", "-o", tmp_path / "file", "-k")
    assert done.returncode == 0, done.stderr
    names = {path.name for path in tmp_path.iterdir() if not path.name.endswith(".sums")}
    assert names == {f"file.a{w}.0000000{r}.{i}" for w in (0, 1) for r in range(3) for i in (0, 1)}


def test_files_of_a_list_are_taken_in_turn_and_a_doubled_at_is_of_a_name(ior, tmp_path):
    done = ior(3, "-F", "-w", "-k", "-b", "8", "-t", "8", "-o", "one@@here@two")
    assert done.returncode == 0, done.stderr
    names = ["one@here.00000000", "one@here.00000002", "two.00000001"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert ior(1, "-w", "-b", "8", "-t", "8", "-o", "one@@here@two").returncode == 0


MICROSECOND = 1e-6


def test_the_table_has_iors_columns_and_figures_that_follow_from_its_seconds(bench):
    done = bench("-b", "256k", "-t", "64k", "-s4", "-i", "3", "-v", "-n", "1", "--", "env")
    assert done.returncode == 0, done.stderr
    head = (
        "access bw(MiB/s) IOPS Latency(s) block(KiB) xfer(KiB) open(s) wr/rd(s) close(s) total(s)"
    )
    assert f"{head} iter" in " ".join(done.stdout.split())
    rows = re.findall(r"^(write|read) ((?: *[\d.]+){9}) +(\d)\s*$", done.stdout, re.MULTILINE)
    assert [(row[0], row[2]) for row in rows] == [
        (access, str(i)) for i in range(3) for access in ("write", "read")
    ]
    for _, figures, _ in rows:
        rate, iops, latency, block, transfer, _, moving, _, total = map(float, figures.split())
        assert (block, transfer) == (256, 64)
        # seconds are printed to the microsecond, which of 40 is more than a percent
        assert 1 / rate == pytest.approx(total, rel=0.001, abs=MICROSECOND)
        assert 16 / iops == pytest.approx(moving, rel=0.001, abs=MICROSECOND)
        assert latency == pytest.approx(moving / 16, rel=0.001, abs=MICROSECOND)
    assert len(re.findall("^remove ", done.stdout, re.MULTILINE)) == 3
    rates = [float(figures.split()[0]) for access, figures, _ in rows if access == "write"]
    summary = re.search(
        r"^write +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) ", done.stdout[-900:], re.M
    )
    assert summary
    most, least, mean, _ = map(float, summary.groups())
    assert (most, least) == pytest.approx((max(rates), min(rates)), rel=1e-3)
    assert mean == pytest.approx(sum(rates) / 3, rel=1e-3)


def test_csv_has_a_line_for_each_sample(bench):
    words = ["-b", "64k", "-t", "64k", "-a", "POSIX,LAMINAR", "-i", "2", "--csv"]
    done = bench(*words, "-n", "1", "--", "env")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s)")
    assert len(lines) == 1 + 2 * 2 * 2
    assert {len(line.split(",")) for line in lines} == {14}


SHAPE = ["-b", "64k", "-t", "16k", "-s", "2"]


@pytest.fixture
def damaged(ior, tmp_path):
    """damaged(RANKS, CHANGE, WORDS): writes blocks of 64 KiB in transfers of 16 KiB, 2 segments,
    lets CHANGE alter the file's bytes, and reads them, comparing; the exit code must be 1."""

    def run(
        ranks: int, change: Callable[[bytearray], None], *words: object, signature: str = "5"
    ) -> Done[str]:
        path = tmp_path / "file"
        written = ior(ranks, "-wk", "-G", "5", *SHAPE, *words, "-o", path)
        assert written.returncode == 0, written.stderr
        data = bytearray(path.read_bytes())
        change(data)
        path.write_bytes(data)
        done = ior(ranks, "-R", "-k", "-G", signature, *SHAPE, *words, "-o", path)
        assert done.returncode == 1, done.stdout
        return done

    return run


def test_one_flipped_bit_is_found_in_its_word(damaged, tmp_path):
    def flip(data: bytearray) -> None:
        data[(64 << 10) + 1234] ^= 4

    said = damaged(1, flip).stderr
    assert "1 of 16384 words are wrong" in said
    place = f"{tmp_path / 'file'}: offset {(64 << 10) + 1232}"
    found = re.search(rf"{place}: expected (\w+), the word of task 0, found (\w+)", said)
    assert found, said
    assert bin(int(found[1], 16) ^ int(found[2], 16)).count("1") == 1


def test_transfers_that_change_places_are_found_with_where_they_belong(damaged):
    def swap(data: bytearray) -> None:
        first, second = slice(0, 16 << 10), slice(64 << 10, 80 << 10)
        data[first], data[second] = data[second], data[first]

    lines = damaged(2, swap, "-O", "summaryFormat=JSON").stdout.splitlines()
    wrong = [said for said in map(json.loads, lines) if said["event"] == "wrong"]
    assert [(w["rank"], w["offset"], w["words"]) for w in wrong] == [(0, 0, 2048), (1, 65536, 2048)]
    assert "that of task 1 at offset 65536" in wrong[0]["text"]
    assert "that of task 0 at offset 0" in wrong[1]["text"]


@pytest.mark.parametrize("packet", ["timestamp", "random"])
def test_a_transfer_of_another_segment_is_found_whatever_the_bytes_look_like(packet, damaged):
    def move(data: bytearray) -> None:
        data[: 8 << 10] = data[64 << 10 : 72 << 10]

    said = damaged(1, move, "-l", packet).stderr
    assert ", that of offset 65536; rank 0 found 1024 wrong words" in said, said


def test_a_hole_is_found_as_zeros(damaged):
    def punch(data: bytearray) -> None:
        data[64 << 10 : 65 << 10] = bytes(1 << 10)

    said = damaged(1, punch).stderr
    assert "128 of 16384 words are wrong" in said
    assert ", zeros;" in said


def test_a_file_of_another_run_is_nobodys(damaged):
    said = damaged(1, lambda data: None, signature="6").stderr
    assert "16384 of 16384 words are wrong" in said
    assert "which no task of this test wrote" in said


def test_words_are_counted_of_what_was_compared(damaged):
    said = damaged(1, lambda data: None, "--stoneWallingWearOutIterations", "2", signature="6")
    assert "4096 of 4096 words are wrong" in said.stderr


def test_tests_of_one_file_of_tests_have_signatures_of_their_own(ior, tmp_path):
    script = tmp_path / "script"
    test = "writeFile=1, checkWrite=1, keepFile=1, blockSize=8, transferSize=8, testFile"
    script.write_text(f"IOR START\n{test}=one\nRUN\ntestFile=two\nRUN\nIOR STOP\n")
    assert ior(1, "-f", script).returncode == 0
    assert (tmp_path / "one").read_bytes() != (tmp_path / "two").read_bytes()


def test_a_file_that_ends_early_is_an_error_that_says_where(damaged, tmp_path):
    def cut(data: bytearray) -> None:
        del data[(96 << 10) + 100 :]

    said = damaged(1, cut).stderr
    assert f"rank 0: {tmp_path / 'file'}: ends at {(96 << 10) + 100}; " in said, said


@pytest.mark.all  # the program is compiled again
def test_what_is_not_read_does_not_look_right_because_it_was_just_written(tmp_path, monkeypatch):
    sources = tmp_path / "sources"
    shutil.copytree(options.SOURCES, sources)
    text = (sources / "posix.c").read_text()
    line = "    struct file *f = file;\n    while (bytes) {"
    assert line in text
    nothing = f"    if (!writing)\n        return 0;\n{line}"
    (sources / "posix.c").write_text(text.replace(line, nothing))
    monkeypatch.setattr(program, "SOURCES", sources)
    made = program.prepare(tmp_path / "made", "mpicc.openmpi")
    words = ["-w", "-W", "-b", "64k", "-t", "64k", "-o", tmp_path / "file"]
    done = execute([made, *words], tmp_path)
    assert (done.returncode, "8192 of 8192 words are wrong" in done.stderr) == (1, True), (
        done.stderr
    )


def test_a_file_that_no_rank_finds_is_said_to_be_missing_once(ior, tmp_path):
    done = ior(3, "-r", "-o", tmp_path / "nowhere")
    assert done.returncode == 1
    assert done.stderr.count("nowhere: opening: No such file") == 1, done.stderr


def test_a_file_of_tests_is_run_test_by_test(ior, tmp_path):
    script = tmp_path / "script"
    script.write_text(
        "not yet: api=nothing\nIOR START\n  api=POSIX # plain\n blockSize=64k, transferSize=32k\n"
        "writeFile=1\nrun\n\nsegmentCount=3\nRUN\ncheckWrite=1\nior stop\napi=nothing\n"
    )
    done = ior(1, "-f", script, "-O", "summaryFormat=JSON")
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["segments"] for one in said if one["event"] == "test"] == [1, 3, 3]
    assert [one["bytes"] >> 16 for one in said if one["event"] == "sample"] == [1, 3, 3]


@pytest.mark.all  # takes its seconds
def test_a_deadline_limits_what_is_read_to_what_was_written(ior):
    words = ["-D", "1", "-O", "minTimeDuration=2", "-b", "8m", "-t", "8", "-wRC", "-e"]
    done = ior(2, *words)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-b", "7"], "multiples of 8"),
        (["-b", "100k", "-t", "64k"], "multiple of transfer size"),
        (["-a", "TAPE"], "no back end 'TAPE'"),
        (["-t", "much"], "transferSize: 'much' is no size"),
        (["-R", "-r"], "give both its signature: -G"),
        (["-W", "-k"], "give both its signature: -G"),
        (["-w", "-k", "-D", "1", "--stoneWallingStatusFile", "f"], "a write needs both"),
        (["-C", "-Z"], "not both"),
        (["-a", "POSIX,LAMINAR:view"], "LAMINAR has no view"),
        (["-a", "POSIX:fast=yes"], "POSIX has no hints"),
        (["-a", "LAMINAR", "-Y"], "synced as a whole"),
        (["-a", "MPIIO", "-c", "-z"], "cannot be collective"),
        (["-c", "-z", "-D", "10", "-b", "4m", "-t", "1m"], "different numbers of transfers"),
        (["-a", "POSIX,LAMINAR", "-z", "-g", "-b", "4m", "-t", "1m"], "-D, minTimeDuration or -g"),
        (["-a", "LAMINAR", "-z", "--minTimeDuration", "1", "-b", "4m", "-t", "1m"], "LAMINAR"),
        (["-Z", "--numNodes", "2", "--numTasksOnNode0", "1"], "no task is as far"),
        (["-a", "ONESIDED:view", "-z"], "do not go through a view"),
        (["-a", "ONESIDED:seam=shmem"], "build it with oshcc"),
        (["-O", "colour=red"], "'colour': there is no such option"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_exit_code_2_and_one_message(words, said, ior):
    done = ior(1, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(f"brigade-ior: .*{re.escape(said)}.*", done.stderr, re.DOTALL), done.stderr


def test_a_task_for_which_no_transfers_were_drawn_does_not_wear_out(ior):
    """Of the 4 transfers of a segment task 0 has none with this seed."""
    words = ["-w", "-z", "--random-offset-seed", "7", "-b", "16k", "-t", "8k", "-s", "2"]
    done = ior(2, *words, "-D", "30", "--stoneWallingWearOut", "-O", "summaryFormat=JSON")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["bytes"] == 8 * 8192


@pytest.mark.parametrize("words", [["-D", "1", "-g"], ["-D", "1", "--stoneWallingWearOut"]])
def test_tasks_of_a_back_end_that_is_always_collective_stop_together(words, ior):
    done = ior(3, "-a", "LAMINAR", *words, "-w", "-b", "8k", "-t", "8", "-s", "1000000")
    assert (done.returncode, "a deadline, -D" in done.stderr) == (0, True), done.stderr


def test_what_all_tasks_came_to_is_kept_for_a_later_read(ior, tmp_path):
    file, status = tmp_path / "file", tmp_path / "status"
    words = ["-k", "-b", "16k", "-t", "8k", "-o", file, "--stoneWallingStatusFile"]
    write = ["-w", "-D", "30", "--stoneWallingWearOut", "-z", "--random-offset-seed", "7"]
    done = ior(2, *write, "-s", "2", *words, status)
    assert (done.returncode, status.read_text()) == (0, "8"), done.stderr
    done = ior(1, *write[:-3], *words, tmp_path / "nowhere/status")
    assert (done.returncode, "nowhere/status: No such file" in done.stderr) == (1, True)


def test_a_program_that_is_ended_removes_its_file(made, tmp_path):
    file = tmp_path / "file"
    words = ["-w", "-b", "64m", "-t", "8", "-s", "1000", "-o", str(file)]
    job = subprocess.Popen(
        [str(made), *words], env={**os.environ, **ENVIRONMENT}, stdout=subprocess.DEVNULL
    )
    while not file.exists() and job.poll() is None:
        time.sleep(0.01)
    job.terminate()
    assert job.wait(60) == -signal.SIGTERM
    assert not file.exists()


@pytest.mark.parametrize(
    ("mpicc", "opened", "launcher"),
    [
        ("mpicc", "Open MPI 4", "mpirun --oversubscribe -n 3"),
        ("/usr/bin/mpicc.openmpi -g", "Open MPI 4", "mpirun.openmpi --oversubscribe -n 3"),
        ("mpicc.mpich", "", "mpiexec.mpich -n 3"),
        ("mpicc.other", "", "mpiexec -n 3"),
        ("cc", "", "mpiexec -n 3"),
    ],
)
def test_the_launcher_is_of_the_compilers_mpi(mpicc, opened, launcher, monkeypatch):
    there = ("mpirun.openmpi", "mpiexec.mpich")
    monkeypatch.setattr("brigade.bench.checkpoint.program.says", lambda words: opened)
    monkeypatch.setattr("shutil.which", lambda name: name if name in there else None)
    assert " ".join(launcher_words([], 3, mpicc)) == launcher


@pytest.mark.parametrize(
    ("said", "major"),
    [
        ("mpicc.openmpi: Open MPI 4.1.4 (Language: C)", 4),
        ("oshcc: Open SHMEM 5.0.7 (Language: C)", 5),
        ("gcc: error: unrecognized command-line option '--showme:version'", 0),
    ],
)
def test_open_mpi_is_known_by_its_compiler(said, major, monkeypatch):
    monkeypatch.setattr("brigade.bench.checkpoint.program.says", lambda words: said)
    assert open_mpi("mpicc") == major


@pytest.mark.parametrize("words", [["-k"], ["-O", "keepFile=1"]])
def test_a_kept_file_needs_a_name(words, bench):
    done = bench("-w", *words)
    assert (done.returncode, "-o FILE" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--json", "--summaryFile", "f"], "summaryFile"),
        (["--compare", "-O", "summaryFile=f"], "summaryFile"),
        (["--compare", "-f", "script"], "one test"),
        (["--sizes", "1M", "-O", "segmentCount=2"], "leave -s out"),
        (["--compare", "-T", "abc"], "-T: 'abc' is not a number"),
        (["--compare", "-O", "maxTimeDuration=abc"], "-T: 'abc' is not a number"),
        (["--compare", "-i", "abc"], "-i: 'abc' is not a number"),
    ],
)
def test_options_that_the_command_itself_needs_are_refused(words, said, bench, tmp_path):
    done = bench(*words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_sizes_are_of_the_block_that_is_in_force_and_a_preset_does_what_is_asked_for(bench):
    words = ["--preset", "sgi", "--sizes", "8M", "-a", "POSIX", "-w", "-i", "1", "--json"]
    done = bench(*words, "-O", "blockSize=2m,collective=0", "-n", "2", "--", *MPIRUN, "{n}")
    assert done.returncode == 0, done.stderr
    (sample,) = json.loads(done.stdout)["samples"]
    assert (sample["bytes"], "read" in sample) == (8 << 20, False)


def test_the_command_has_every_option_of_the_program(ior):
    listed = {option.said for option in options.options()}
    text = (options.SOURCES / "options.def").read_text()
    assert len(listed) == text.count("\nOPTION(") > 40
    said = ior(1, "--help").stdout
    assert set(re.findall(r"^ +(--?[\w-]+)", said, re.MULTILINE)) == listed


def test_a_comparison_has_every_back_end_in_every_row_and_the_published_rows_beside(
    bench, tmp_path
):
    words = ["--preset", "sgi", "--scale", "4096", "-a", "LAMINAR,MPIIO:view", "-i", "2", "-C"]
    done = bench(*words, "--json", "--", *MPIRUN, "{n}")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [(r["ranks"], r["bytes"] >> 20, r["access"]) for r in report["rows"]] == [
        (2, size, access) for size in (2, 128) for access in ("write", "read")
    ]
    for row in report["rows"]:
        assert row["best"] == "MPIIO:view"
        assert list(row["variants"]) == ["LAMINAR", "MPIIO:view"]
        assert {spread["n"] for spread in row["variants"].values()} == {2}
        assert row["ratios"].keys() == {"LAMINAR"}
    assert {s["round"] for s in report["samples"]} == {0, 1}
    assert list(tmp_path.iterdir()) == []


def test_a_comparison_with_a_deadline_is_of_what_was_moved(bench):
    words = ["-a", "POSIX,LAMINAR", "-i", "1", "-b", "8m", "-t", "8", "-s", "1000", "-w", "-D", "1"]
    done = bench(*words, "--compare", "--json", "-n", "1", "--", "env")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (row,) = report["rows"]
    for one in report["samples"]:
        assert 0 < one["write"]["bytes"] < one["bytes"] == 8000 << 20
        rate = one["write"]["bytes"] / one["write"]["total"]
        assert row["variants"][one["variant"]]["median"] == rate


@pytest.mark.parametrize("words", [["-T", "1"], ["-O", "maxTimeDuration=1"]])
def test_a_comparison_leaves_no_phase_out(words, bench):
    done = bench("--compare", *words)
    assert (done.returncode, "needs every phase" in done.stderr) == (2, True)


@needs_romio
def test_components_of_open_mpi_are_two_jobs_in_which_all_others_run(bench):
    words = ["-a", "LAMINAR,OMPIO,ROMIO", "-i", "1", "-b", "64k", "-t", "64k", "-c", "-w"]
    done = bench(*words, "--compare", "--json", "-n", "1", "--", "env")
    assert done.returncode == 0, done.stderr
    samples = json.loads(done.stdout)["samples"]
    seen = [(s["variant"], s["component"][:5], s["round"]) for s in samples]
    expected = {(v, c, 0) for c in ("ompio", "romio") for v in ("LAMINAR", c.upper())}
    assert (len(seen), set(seen)) == (4, expected)
