"""A program is stopped before main if nothing that its constructors did is one rank's own; before
them otherwise; and not at all if it was not watched, or has little to share."""

from __future__ import annotations

from pathlib import Path

import pytest
from world_of_c import library

from brigade.fork.explain import as_json, lines
from brigade.fork.program import (
    FEWEST,
    ProgramPlan,
    asks_to_be_first,
    from_json,
    of_programs,
    reads_environment,
)
from brigade.trial.record import Process, Record, Trial

MAIN = ("event", "", "main", "")


def process(
    *records: tuple[str, str, str, str], rank: int = 0, objects: int = FEWEST, watched: bool = True
) -> Process:
    """`records`: (kind, by, path, extra) in their order, after the objects are loaded."""
    all_records = [("load", "", f"/lib/{n}.so", "") for n in range(objects)]
    all_records += [("watch", "", "", "")] if watched else []
    return Process(
        "n0", 7 + rank, 1 + rank, exe="/bin/app", rank=rank,
        records=[
            Record(kind, 0, by, path, extra, time, 7)
            for time, (kind, by, path, extra) in enumerate([*all_records, *records])
        ],
    )  # fmt: skip


def plan_of(*processes: Process, uncertain: str = "", first: str = "") -> ProgramPlan:
    return of_programs(
        Trial("", list(processes)), lambda path: uncertain, lambda path: path == first
    )


def event(what: str, detail: str = "") -> tuple[str, str, str, str]:
    return ("event", "", what, detail)


@pytest.mark.parametrize(
    ("what", "detail", "kind"),
    [
        ("getenv", "HOME", "main"), ("getenv", "HOME!", "preinit"),
        ("getenv", "PMIX_RANK", "preinit"), ("getenv", "WORD", "preinit"),
        ("host", "", "main"), ("clock", "", "preinit"),
        ("pid", "", "preinit"), ("random", "", "preinit"), ("output", "1", "preinit"),
        ("thread", "/lib/libopenblas.so", "preinit"), ("cpus", "/lib/libgomp.so.1", "preinit"),
        ("socket", "2", "preinit"), ("device", "/dev/dri", "preinit"), ("write", "/x", "preinit"),
        ("unheard of", "", "preinit"),
    ],
)  # fmt: skip
def test_what_constructors_do_decides(what: str, detail: str, kind: str) -> None:
    """WORD differs between the ranks of the node."""
    ranks = [
        process(("digest", "", "WORD", str(rank)), event(what, detail), MAIN, rank=rank)
        for rank in range(2)
    ]
    plan = plan_of(*ranks)
    assert plan.kind == kind and bool(plan.why) == (kind == "preinit")
    again = [process(MAIN), process(MAIN, event(what, detail), rank=1)]
    assert plan_of(*again).kind == "main"
    assert plan_of(process(MAIN), process(event("clock"), MAIN, rank=1)).kind == "preinit"


def test_nobody_stops_before_constructors_where_a_librarys_come_first_of_all() -> None:
    """They would run in the template, and again in each rank."""
    own = process(event("output", "1"), MAIN)
    assert plan_of(own).kind == "preinit"
    plan = plan_of(own, first="/lib/3.so")
    assert plan.kind == "plain" and plan.why.endswith("constructors of 3.so run before all others")
    assert plan_of(process(MAIN), first="/lib/3.so").kind == "main"


def test_who_asks_to_be_first_is_told(tmp_path: Path) -> None:
    assert not asks_to_be_first(str(library(tmp_path / "one.so")))
    assert asks_to_be_first(str(library(tmp_path / "two.so", "-Wl,-z,initfirst")))
    assert not asks_to_be_first(str(tmp_path / "none.so"))


def test_what_no_trial_sees_is_not_shared() -> None:
    plan = plan_of(process(MAIN), uncertain="it may be anything")
    assert (plan.kind, plan.why) == ("preinit", "it may be anything")


@pytest.mark.parametrize(
    ("one", "word"),
    [
        (process(MAIN, rank=1, watched=False), "was not watched"),
        (process(rank=1), "as far as main"),
        (process(MAIN, rank=1, objects=FEWEST - 1), "libraries only"),
    ],
)
def test_what_cannot_be_known_or_is_not_worth_it_is_left_alone(one: Process, word: str) -> None:
    plan = plan_of(process(MAIN), one)
    assert plan.kind == "plain" and word in plan.why
    assert plan_of().kind == "plain"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["-I"], "with -I, looks at no variable"), (["-sE", "-u"], "with -E, looks at no variable"),
        (["-W", "I", "-S"], "with -S, imports no `site`"), ([], "did not import what PYTHONPATH"),
    ],
)  # fmt: skip
def test_a_python_that_lets_nobody_in_is_not_said_to_load_little(
    options: list[str], word: str
) -> None:
    one = process(MAIN, objects=4)
    one.exe, one.argv = "/usr/bin/python3.11", ["python3", *options, "app.py", "-I"]
    assert word in plan_of(one).why
    one.exe = "/usr/bin/pythons"
    assert "libraries only" in plan_of(one).why


def test_only_what_is_loaded_before_main_counts() -> None:
    late = [("load", "", f"/late/{n}.so", "") for n in range(FEWEST)]
    assert plan_of(process(MAIN, *late, objects=3)).objects == 3


def test_a_rank_is_the_process_that_the_launcher_started() -> None:
    child = process(event("clock"), MAIN)
    assert plan_of(process(MAIN), child).kind == "main"


def test_the_description_of_an_image_holds_it_and_words_tell_it() -> None:
    plan = plan_of(process(event("host"), event("clock"), MAIN))
    assert from_json(plan.as_json()) == plan
    told = "\n".join(lines(plan, []))
    assert "stopped before constructors" in told and "a constructor asks for the time" in told
    assert "constructors: host: a template serves one node" in told
    assert '"kind": "preinit"' in as_json(plan, [])


def test_constructors_that_may_read_all_of_the_environment_are_told(tmp_path: Path) -> None:
    reads = "extern char **environ; char *f(void) { return environ[0]; }"
    own = "int n; __attribute__((constructor)) static void c(void) { n = 1; }"
    both = library(tmp_path / "libboth.so", source=reads + own)
    assert "libboth.so" in reads_environment(str(both))
    assert not reads_environment(str(library(tmp_path / "libreads.so", source=reads)))
    assert not reads_environment(str(library(tmp_path / "libowns.so", source=own)))
    assert "looked at" in reads_environment(str(tmp_path / "none.so"))
