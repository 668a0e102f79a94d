"""What fails on one PE fails on all, in the same words; what is published is whole or not there."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from pgas_world import OSHRUN, program
from shmemio_world import Job, job_environment, run_job

from brigade.paths import native_dir

#: every rank owns windows, and moves nothing by itself
SPREAD = "segment=64K:stripe=64K:writers=3:transport=simple"
OLD = b"what was there before\n"
#: what was said by step, and the folder of their folders
Sound = tuple[dict[str, list[str]], Path]
JOBS: list[Job] = [("shmem", 3), ("openmpi", 3)]
QUICK = ("shmem", 3)


def told(job: Job, folder: Path, step: str, **more: str) -> list[str]:
    """What calls that failed said: each line once, as all ranks must say the same."""
    return told_by(job, folder, [step], **more)[step]


def told_by(job: Job, folder: Path, steps: list[str], **more: str) -> dict[str, list[str]]:
    """The same of several steps in one job; each has a folder of its own."""
    lines = run_job(job, "shmemio_steps", folder, *steps, hints=SPREAD, **more)
    counts = Counter(lines)
    assert all(n % job[1] == 0 for n in counts.values()), counts
    said = {step: [] for step in steps}
    for line in counts:
        step, _, rest = line.partition(" ")
        said[step].append(rest)
    return said


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    """What was said in steps in which nothing breaks, and where their folders are."""
    folder = tmp_path_factory.mktemp("steps")
    steps = [
        "one-errs",
        "refused",
        "grows",
        "turns",
        "update",
        "shorter",
        "longer",
        "deleted",
        "kept",
    ]
    for step in steps:
        (folder / step).mkdir()
    for step in ("turns", "update", "shorter", "longer"):
        (folder / step / "file").write_bytes(OLD)
    return told_by(QUICK, folder, steps), folder


FAULTS = [
    # what breaks; which call says so: code (SHMEM_ERR_*) and errno, rank, offset
    ("io.write:30000@1", r"write: 15 \(-28\) rank 1 offset 95536 /file: .*No space left"),
    ("io.quota:0@0", r"write: 16 \(-122\) rank 0 offset 0 /file: "),
    ("io.eio:1@2", r"write: 18 \(-5\) rank 2 offset \d+ /file: "),
    ("io.open:0@1", r"write: 13 \(-13\) rank 1 offset -1 /file: cannot open"),
    ("io.read:60000@1", r"write: 18 \(-5\) rank 1 offset \d+ /file: cannot read"),
    ("io.short:100", None),
    ("io.eintr", None),
]


@pytest.mark.parametrize(
    ("job", "fault", "said"),
    [
        *((QUICK, *fault) for fault in (FAULTS[0], FAULTS[4])),
        *(
            pytest.param(job, *fault, marks=pytest.mark.all, id=f"{job[0]}-{fault[0]}")
            for job in JOBS
            for fault in FAULTS
        ),
    ],
    ids=str,
)
def test_a_failure_of_one_owner_is_told_alike_by_every_pe(
    job: Job, fault: str, said: str | None, tmp_path: Path
) -> None:
    lines = told(job, tmp_path, "write", BRIGADE_FAULT=fault)
    assert len(lines) == (said is not None), lines
    assert said is None or re.match(said, lines[0]), lines


def test_a_sync_that_fails_fails_everywhere(tmp_path: Path) -> None:
    hints = {"BRIGADE_FAULT": "io.fsync:0@2", "BRIGADE_IO": f"*:{SPREAD}"}
    lines = told(QUICK, tmp_path, "write", **hints)
    assert len(lines) == 1 and re.match(r"sync: 18 \(-5\) rank 2 offset -1 /file: ", lines[0])


def test_what_one_pe_does_wrong_is_everybodys_error_and_the_file_stays_usable(sound: Sound) -> None:
    lines = sound[0]["one-errs"]
    assert [re.sub(r" offset.*?/file:", "", line).partition(" /")[0] for line in lines] == [
        "not committed: 2 (-91) rank 2 the datatype is not committed: call SHMEM_Type_commit first",
        "count: 1 (-57) rank 2 cannot write -1 elements of",
        "offset: 4 (-22) rank 2 cannot read",
        "null type: 2 (-91) rank 2 0 is no datatype: it is SHMEM_DATATYPE_NULL",
        'datarep: 8 (-56) rank 2 there is no data representation "external32" here: there is '
        '"native"',
        "etype: 7 (-76) rank -1 the etypes of the view of",
        "size: 7 (-76) rank -1",
        "name: 7 (-76) rank 2",
        "amode: 7 (-76) rank 2",
    ]
    assert (sound[1] / "one-errs/file").read_bytes() == b"ddd"


def test_what_cannot_be_is_refused_with_a_code_and_one_text(sound: Sound) -> None:
    lines = sound[0]["refused"]
    assert [line.partition(" (")[0] for line in lines] == [
        "open: 10",  # no such file
        "open: 5",  # amode
        "open: 5",
        "open: 9",  # sequential
        "folder: 12",
        "group: 3",
        "hint: 21",
        "read: 13",
        "get_view: 6",
        "twice: 6",
        "free: 4",
        "exists: 11",
        "write: 14",
    ]
    assert "writers=none: it takes a number from 1" in lines[6]
    assert list((sound[1] / "refused").iterdir()) == []


def test_a_file_that_is_deleted_leaves_no_checksums(sound: Sound) -> None:
    assert sound[0]["deleted"] == []
    assert list((sound[1] / "deleted").iterdir()) == []


def test_a_file_that_is_deleted_takes_no_other_jobs_along(sound: Sound) -> None:
    """Where one in place has lost its name that is told, as where it is not there any more."""
    lines = sound[0]["kept"]
    assert len(lines) == 1 and re.match(
        r"close: 10 \(-2\) rank 0 offset -1 /file: cannot delete .* another file has its name",
        lines[0],
    )
    assert list((sound[1] / "kept").iterdir()) == []


def is_whole(path: Path) -> bool:
    command = [native_dir() / "brigade-file", "verify", path]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        ("", []),
        ("io.write:30000@1", ["write", "sync", "close"]),
        pytest.param("io.fsync:0@1", ["sync", "close"], marks=pytest.mark.all),
        pytest.param("io.rename:0", ["close"], marks=pytest.mark.all),
        pytest.param("io.rename:1", ["close"], marks=pytest.mark.all),
    ],
)
def test_a_published_file_is_the_new_one_or_the_old_one(
    fault: str, calls: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(OLD)
    hints = {"BRIGADE_FAULT": fault, "BRIGADE_IO": f"*:{SPREAD}"}
    lines = told(QUICK, tmp_path, "publish", **hints)
    assert [line.partition(":")[0] for line in lines] == calls
    left = {path.name for path in tmp_path.iterdir()}
    if calls:
        assert file.read_bytes() == OLD and left <= {"file", "file.sums"}
    else:
        assert file.read_bytes() == b"b" * 180_000 and left == {"file", "file.sums"}
        assert is_whole(file)


def test_a_sync_that_failed_keeps_the_old_file_although_the_next_ones_end_well(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_bytes(OLD)
    lines = told(QUICK, tmp_path, "one-sync", BRIGADE_IO=f"*:{SPREAD}")
    assert [re.sub(r"/file: .*", "", line) for line in lines] == [
        f"{call}: 18 (-5) rank 1 offset -1 " for call in ("sync", "close")
    ]
    assert (tmp_path / "file").read_bytes() == OLD


def test_a_published_file_cannot_be_cut_where_any_pe_wrote_and_the_old_one_stays(
    sound: Sound,
) -> None:
    lines, folder = sound[0]["shorter"], sound[1] / "shorter"
    assert [re.sub(r"\).*", "", line) for line in lines] == ["set_size: 9 (-95", "close: 9 (-95"]
    assert all("publish=new begins" in line for line in lines)
    assert (folder / "file").read_bytes() == OLD
    assert sound[0]["longer"] == []
    assert (sound[1] / "longer/file").read_bytes() == bytes(9) + b"l" + bytes(10)
    assert is_whole(sound[1] / "longer/file")


def test_a_file_that_grows_elsewhere_is_read_and_kept_as_it_is(sound: Sound) -> None:
    assert sound[0]["grows"] == []


@pytest.mark.parametrize(
    "job", [QUICK, pytest.param(("openmpi", 3), marks=pytest.mark.all)], ids=str
)
def test_ranks_that_have_one_run_each_move_it_themselves_and_fail_alike(
    job: Job, tmp_path: Path
) -> None:
    hints = {"BRIGADE_IO": "*:sync=no:transport=direct:stripe=64K:segment=64K"}
    assert told(job, tmp_path, "runs", **hints) == []
    data = (tmp_path / "file").read_bytes()
    assert len(data) == 3 * 60_000 + 1 and data[-1:] == b"B"
    assert data[:30_000] == b"A" * 30_000 and data[120_000:180_000] == b"C" * 60_000
    assert {data[i : i + 30_000] for i in (30_000, 60_000)} <= {
        letter * 30_000 for letter in (b"A", b"B", b"C")
    }
    lines = told(job, tmp_path, "runs", BRIGADE_FAULT="io.write:100@1", **hints)
    assert re.match(r"write: 15 \(-28\) rank 1 offset 60100 /file: ", lines[0])


def test_ranks_of_a_node_keep_their_windows_for_the_next_file(tmp_path: Path) -> None:
    assert run_job(("openmpi", 3), "shmemio_steps", tmp_path, "again") == []


def test_what_carries_a_group_is_asked_for_or_chosen_and_said(tmp_path: Path) -> None:
    hints = {"BRIGADE_IO": "*:sync=no:share=no:segment=64K"}
    assert run_job(("openmpi", 2), "shmemio_steps", tmp_path, "seams", **hints) == []
    assert (tmp_path / "file").read_bytes() == b"c" * 120_000


@pytest.mark.parametrize("seam", ["messages", pytest.param("windows", marks=pytest.mark.all)])
def test_ranks_that_share_no_memory_fail_alike(seam: str, tmp_path: Path) -> None:
    hints = f"share=no:segment=64K:stripe=64K:writers=3:seam={seam}:transport="
    for transport, step in (("simple", "write"), ("direct", "runs")):
        lines = told(
            ("openmpi", 3),
            tmp_path,
            step,
            BRIGADE_IO=f"*:sync=no:{hints}{transport}",
            BRIGADE_FAULT="io.write:100@1",
        )
        assert len(lines) == 1, lines
        assert re.match(r"write: 15 \(-28\) rank 1 offset \d+ /file: .*No space left", lines[0])


def test_checksums_are_right_where_pes_write_alone_in_turn(sound: Sound) -> None:
    file = sound[1] / "turns/file"
    assert sound[0]["turns"] == []
    assert file.read_bytes() == b"0" * 1000 + b"1" * 500 + b"0" * (31_268) + b"2" * (32 << 10)
    assert is_whole(file)


def test_a_published_change_keeps_the_bytes_that_nobody_wrote(sound: Sound) -> None:
    file = sound[1] / "update/file"
    assert sound[0]["update"] == []
    assert file.read_bytes() == OLD[:5] + b"c" + OLD[6:]
    assert is_whole(file)


def test_random_calls_on_files_that_are_published_leave_whole_files(tmp_path: Path) -> None:
    hints = "publish=yes:segment=64K:stripe=64K:writers=3"
    assert run_job(QUICK, "shmemio_random_calls", tmp_path, 7, 20, hints=hints) == []
    files = [path for path in tmp_path.iterdir() if path.suffix != ".sums"]
    assert len(files) > 1 and all(is_whole(path) for path in files)


@pytest.mark.all
@pytest.mark.parametrize("fault", ["io.slot:3@1", "io.slot:1@0", "io.kill:1@2"])
def test_a_killed_pe_ends_the_job_and_the_old_file_stays(fault: str, tmp_path: Path) -> None:
    if not shutil.which("oshrun"):
        pytest.skip("needs Debian package openmpi-bin: oshrun")
    file = tmp_path / "file"
    file.write_bytes(OLD)
    command = [*OSHRUN, "3", str(program("shmemio_steps_shmem")), "shmem", "liboshmem.so.40"]
    done = subprocess.run(
        [*command, str(tmp_path), "publish"],
        capture_output=True,
        timeout=60,
        env=job_environment(SPREAD, BRIGADE_FAULT=fault),
    )
    assert done.returncode != 0
    assert file.read_bytes() == OLD


@pytest.mark.parametrize(
    "job",
    [
        ("shmem", 4),
        *(
            pytest.param(job, marks=pytest.mark.all)
            for job in (("shmem", 32), ("openmpi", 4), ("openmpi", 32))
        ),
    ],
    ids=str,
)
def test_memory_is_that_of_the_windows_however_many_pes_there_are(job: Job, tmp_path: Path) -> None:
    """Of 2 MiB that each moves, a PE touches the two windows of each of two owners, and its own
    three more at most."""
    hints = "segment=256K:stripe=256K:transport=simple:writers=2"
    grown = [int(line) for line in run_job(job, "shmemio_lean", tmp_path, hints=hints)]
    assert len(grown) == job[1]
    assert max(grown) < 7 * 256 + 1024
    assert max(grown) >= 256  # it went through windows
