from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import missing, process, record

from brigade.errors import TrialError
from brigade.trial.record import load, name_parts, parse


def test_a_record_comes_back_as_it_was_written() -> None:
    written = record("open", "/a b/ü", by="/bin/x", extra="100", time_ns=7, pid=9)
    (read,) = parse(io.BytesIO(written))
    assert read is not None
    assert read == ("open", 0, "/bin/x", "/a b/ü", "100", 7, 9, 1)


def test_a_record_says_how_often_it_happened() -> None:
    written = record("stat", "/a").replace(b"\x00100\0", b"\x00100*00001000\0")
    (read,) = parse(io.BytesIO(written))
    assert read is not None
    assert (read.pid, read.times) == (100, 1000)


@given(st.lists(st.integers(min_value=0, max_value=3 << 19), max_size=3))
def test_room_that_was_taken_and_not_filled_means_nothing(room: list[int]) -> None:
    data = b"".join(bytes(n) + record("end") for n in room) + bytes(70_000)
    assert list(parse(io.BytesIO(data))) == list(parse(io.BytesIO(record("end") * len(room))))


@given(st.integers(min_value=0, max_value=100))
def test_a_record_whose_first_byte_is_missing_is_none(kept: int) -> None:
    torn = (b"\0" + record("open", "/torn", by="/bin/x")[1:])[: kept + 1]
    data = record("stat", "/a") + torn.ljust(104, b"\0") + record("stat", "/b")
    paths = [r.path for r in parse(io.BytesIO(data)) if r is not None]
    assert paths == ["/a", "/b"]


def test_a_path_that_is_no_text_survives() -> None:
    written = record("stat", b"/\xff\xfe".decode(errors="surrogateescape"))
    (read,) = parse(io.BytesIO(written))
    assert read is not None
    assert read.path.encode(errors="surrogateescape") == b"/\xff\xfe"


@given(st.integers(min_value=1, max_value=10_000))
def test_a_torn_last_record_is_counted_and_the_rest_kept(cut: int) -> None:
    last = record("open", "/last")
    whole = record("stat", "/a") + record("stat", "/b")
    cut = cut % len(last)
    read = list(parse(io.BytesIO(whole + last[:cut])))
    good = [r.path for r in read if r is not None]
    assert good == ["/a", "/b"]
    assert read.count(None) == (1 if cut else 0)


def test_a_record_torn_in_the_middle_of_a_file_does_not_hide_those_after_it() -> None:
    torn = record("open", "/torn")[:9]
    read = list(parse(io.BytesIO(record("stat", "/a") + torn + record("stat", "/b") * 2)))
    assert None in read
    assert [r.path for r in read if r is not None][-1] == "/b"


@given(st.binary(max_size=300))
def test_any_bytes_can_be_read_without_an_exception(noise: bytes) -> None:
    list(parse(io.BytesIO(noise)))


def test_processes_know_their_rank_parent_arguments_and_environment(tmp_path: Path) -> None:
    process(
        tmp_path, [missing("stat", "/x")], rank=3, pid=41, parent=40, cwd="/w",
        argv=["python", "a b.py"], env={"LD_LIBRARY_PATH": "/l"},
    )  # fmt: skip
    (one,) = load(tmp_path).processes
    assert (one.rank, one.pid, one.parent, one.cwd) == (3, 41, 40, "/w")
    assert one.argv == ["python", "a b.py"]
    assert one.ld_library_path == "/l"
    assert one.exit_status == 0


def test_one_file_with_two_programs_is_two_processes(tmp_path: Path) -> None:
    after_exec = record("process", "/bin/b", status=100) + record("stat", "/late")
    process(tmp_path, [record("stat", "/early")], exe="/bin/a", tail=after_exec)
    first, second = load(tmp_path).processes
    assert (first.exe, second.exe) == ("/bin/a", "/bin/b")
    assert [r.path for r in second.records] == ["/late"]


def test_an_empty_folder_says_that_nothing_was_recorded(tmp_path: Path) -> None:
    (tmp_path / "output.log").write_text("hello")
    with pytest.raises(TrialError, match="no records"):
        load(tmp_path)


def test_a_host_name_may_hold_dots() -> None:
    assert name_parts("n0.cluster.org.12.34.rec") == ("n0.cluster.org", 12, 34, False)
    assert name_parts("n0.12.34.py.rec") == ("n0", 12, 34, True)
    assert name_parts("n0.rec") is None


def test_imports_join_the_process_they_happened_in(tmp_path: Path) -> None:
    process(tmp_path, [record("stat", "/a", time_ns=5), record("stat", "/c", time_ns=900)])
    later = record("process", "/bin/sh", status=100)
    (tmp_path / "n0.100.9000.rec").write_bytes(later)  # the same pid after an exec
    (tmp_path / "n0.100.1110.py.rec").write_bytes(record("import", "b", time_ns=7))
    (tmp_path / "n0.200.1.py.rec").write_bytes(record("import", "alone"))
    alone, first, second = load(tmp_path).processes
    assert [r.path for r in first.records] == ["/a", "b", "/c"]
    assert first.records[1].time_ns == 17
    assert second.records == []
    assert [r.path for r in alone.records] == ["alone"]


def test_brigades_own_wrapper_is_no_part_of_the_program(tmp_path: Path) -> None:
    process(tmp_path, [record("exec", "/bin/a")], exe="/opt/brigade/bin/brigade-rank", pid=7)
    (tmp_path / "n0.7.2000.rec").write_bytes(record("process", "/bin/a", status=7))
    (program,) = load(tmp_path).processes
    assert program.exe == "/bin/a"


def test_what_was_tried_before_a_traced_program_was_found_is_its_own(tmp_path: Path) -> None:
    """brigade-rank's file has no program in it then; without one, it is all there is."""
    (tmp_path / "n0.7.1000.rec").write_bytes(
        record("exec", "/bin/a", status=2, time_ns=9) + b"torn"
    )
    (tmp_path / "n0.9.2000.rec").write_bytes(
        record("process", "/bin/a", status=7) + record("exec", "/bin/a", time_ns=3)
    )
    (tmp_path / "n0.7.3000.rec").write_bytes(record("process", "/bin/b", status=7))
    (tmp_path / "n0.8.1000.rec").write_bytes(record("exec", "/bin/none", status=2))
    alone, first, second = load(tmp_path).processes
    assert (alone.exe, first.exe, second.exe) == ("", "/bin/a", "/bin/b")
    assert [(r.status, r.time_ns) for r in first.records] == [(2, 0), (0, 3)]
    assert (first.damaged, second.records) == (1, [])
