from __future__ import annotations

from pathlib import Path

import pytest
from made import missing, process, record

from brigade.trial.answers import answers
from brigade.trial.record import Trial, load
from brigade.trial.summary import Summary, by_rank, summarise


def under_s(path: str) -> bool:
    return path.startswith("/s/")


def summary(trial: Trial) -> Summary:
    return summarise(trial, under_s, answers(trial)[1])


START = [record("load", "/s/liba.so"), record("load", "/s/libb.so"),
         record("open", "/s/a.py", time_ns=2 * 10**9), missing("stat", "/s/b.py"),
         record("stat", "/etc/x"), record("load", "/s/libc.so"),
         record("import", "a", extra="/s/a.py")]  # fmt: skip


def test_look_ups_are_counted_under_the_covered_roots_only(tmp_path: Path) -> None:
    process(tmp_path, START)
    (rank,) = summary(load(tmp_path)).ranks
    assert (rank.lookups, rank.found, rank.failed, rank.distinct) == (2, 1, 1, 2)
    assert rank.by_kind == {"open": 1, "stat": 1}
    assert rank.last_lookup_s == 2.0


def test_look_ups_are_counted_as_often_as_they_were_made(tmp_path: Path) -> None:
    again = record("stat", "/s/a").replace(b"\x00100\0", b"\x00100*00000998\0")
    process(tmp_path, [again, again, record("probe", "/s/liba.so", status=2), *START])
    found = summary(load(tmp_path))
    (rank,) = found.ranks
    assert (rank.lookups, rank.distinct, rank.by_kind["stat"]) == (1999, 5, 1997)
    assert (rank.libraries_at_start, rank.libraries_opened_later) == (0, 3)
    assert found.as_json()["lookups_per_rank"] == 1999.0


def test_libraries_loaded_before_the_program_begins_are_those_of_the_start(tmp_path: Path) -> None:
    process(tmp_path, START)
    (rank,) = summary(load(tmp_path)).ranks
    assert (rank.libraries_at_start, rank.libraries_opened_later) == (2, 1)


def test_data_files_are_told_from_code_and_libraries(tmp_path: Path) -> None:
    names = ("a.py", "b.dat", "c.so", "libd.so.1")
    opened = [record("open", f"/s/{name}") for name in names]
    process(tmp_path, [*opened, record("load", "/s/libd.so.1"), record("open", "/etc/e.dat")])
    assert summary(load(tmp_path)).ranks[0].data_files_read == 1


def test_children_belong_to_the_rank_that_started_them(tmp_path: Path) -> None:
    process(tmp_path, START, rank=1, pid=10)
    process(tmp_path, START, rank=None, pid=11, parent=10)
    process(tmp_path, START, rank=None, pid=12, parent=11)
    process(tmp_path, START, rank=0, pid=10, host="n1")
    ranks = by_rank(load(tmp_path))
    assert {rank: len(processes) for rank, processes in ranks.items()} == {0: 1, 1: 3}


def test_ranks_that_do_the_same_agree(tmp_path: Path) -> None:
    for rank in (0, 1):
        process(tmp_path, START, rank=rank, pid=10 + rank)
    found = summary(load(tmp_path))
    assert found.agreed
    assert found.text().startswith(
        "The 2 ranks agreed: 2 look-ups a rank (1 found nothing, 2 different)"
    )
    assert found.as_json()["agreed"] is True
    assert found.lookups_per_rank == 2.0


def test_one_rank_alone_does_not_claim_agreement_in_words(tmp_path: Path) -> None:
    process(tmp_path, START)
    assert summary(load(tmp_path)).text().startswith("One rank was recorded")


def test_a_path_that_one_rank_alone_asked_for_is_named_with_its_rank(tmp_path: Path) -> None:
    process(tmp_path, START, rank=0, pid=10)
    process(tmp_path, [*START, record("open", "/s/only.dat")], rank=1, pid=11)
    found = summary(load(tmp_path))
    assert not found.agreed
    assert "/s/only.dat: looked up by some ranks only" in found.text()
    assert found.differences[0].ranks == {"not asked": [0], "found": [1]}


def test_a_path_that_only_some_ranks_found_is_named(tmp_path: Path) -> None:
    process(tmp_path, [record("stat", "/s/x")], rank=0, pid=10)
    process(tmp_path, [missing("stat", "/s/x")], rank=1, pid=11)
    (difference,) = summary(load(tmp_path)).differences
    assert (difference.what, difference.ranks) == ("result", {"found": [0], "missing": [1]})


def test_another_order_of_loading_is_named(tmp_path: Path) -> None:
    a, b = record("load", "/s/a.so"), record("load", "/s/b.so")
    process(tmp_path, [a, b], rank=0, pid=10)
    process(tmp_path, [b, a], rank=1, pid=11)
    found = summary(load(tmp_path))
    assert [difference.what for difference in found.differences] == ["order"]
    assert "loaded in another order" in found.text()


def test_byte_code_that_only_the_first_rank_missed_is_no_difference(tmp_path: Path) -> None:
    pyc = "/s/__pycache__/a.cpython-311.pyc"
    process(tmp_path, [missing("stat", pyc)], rank=0, pid=10)
    process(tmp_path, [record("stat", pyc)], rank=1, pid=11)
    assert summary(load(tmp_path)).agreed


def found_at(path: str) -> bytes:
    return record("search", "liba.so", by="/bin/x", extra=path)


def test_a_search_that_ended_in_two_places_is_named_and_not_answered(tmp_path: Path) -> None:
    process(tmp_path, [found_at("/s/1/liba.so")], rank=0, pid=10)
    process(tmp_path, [found_at("/s/2/liba.so")], rank=1, pid=11)
    trial = load(tmp_path)
    good, conflicts = answers(trial)
    assert good == []
    assert conflicts[0].paths == ("/s/1/liba.so", "/s/2/liba.so")
    assert "liba.so: found in different places (/s/1/liba.so: rank 0; /s/2" in summary(trial).text()


def test_the_same_search_under_another_ld_library_path_is_another_question(tmp_path: Path) -> None:
    process(tmp_path, [found_at("/s/1/liba.so")], rank=0, pid=10)
    process(tmp_path, [found_at("/s/2/liba.so")], rank=1, pid=11, env={"LD_LIBRARY_PATH": "/s/2"})
    good, conflicts = answers(load(tmp_path))
    assert (len(good), conflicts) == (2, [])
    assert good[0].context != good[1].context


def test_a_search_that_found_nothing_is_an_answer(tmp_path: Path) -> None:
    process(tmp_path, [record("search", "libno.so", status=2, by="/bin/x")])
    ((answer,), _) = answers(load(tmp_path))
    assert (answer.name, answer.path) == ("libno.so", "")


BUILDS = {  # folders, and what is in them
    "/s/first": ["glibc-hwcaps"],
    "/s/first/glibc-hwcaps": ["x86-64-v3"],
    "/s/first/glibc-hwcaps/x86-64-v3": ["libb.so"],
    "/s/lib": ["liba.so", "libb.so", "haswell", "libc.so"],
    "/s/lib/haswell": ["avx512_1"],
    "/s/lib/haswell/avx512_1": ["libc.so"],
}


@pytest.mark.parametrize(
    ("name", "found", "answered"),
    [
        ("liba.so", "/s/lib/liba.so", True),
        ("libb.so", "/s/lib/libb.so", False),
        ("libb.so", "/s/first/glibc-hwcaps/x86-64-v3/libb.so", False),
        ("libc.so", "/s/lib/libc.so", False),
        ("libc.so", "/s/lib/haswell/avx512_1/libc.so", False),
        ("libd.so", "", True),
        ("/s/lib/libb.so", "/s/lib/libb.so", True),
    ],
)
def test_a_library_with_builds_for_processors_where_it_was_searched_is_not_answered(
    tmp_path: Path, name: str, found: str, answered: bool
) -> None:
    base = name.rpartition("/")[2]
    tried = [record("probe", f"/s/{d}/{base}", by="/bin/x") for d in ("first", "lib")]
    process(tmp_path, [*tried, record("search", name, status=0 if found else 2, by="/bin/x",
                                      extra=found)])  # fmt: skip
    good, conflicts = answers(load(tmp_path), BUILDS.get)
    assert [answer.path for answer in good] == [found] * answered
    assert conflicts == []


def test_many_differences_are_cut_in_the_text_and_whole_in_the_json(tmp_path: Path) -> None:
    process(tmp_path, [], rank=0, pid=10)
    process(tmp_path, [record("stat", f"/s/{i}") for i in range(50)], rank=1, pid=11)
    found = summary(load(tmp_path))
    assert "and 45 more like it" in found.text()
    assert len(found.as_json()["differences"]) == 50
