"""What `brigade bench ior` plans and makes of samples: no MPI."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from brigade.bench.ior import compare, measure, options, presets
from brigade.errors import UsageError

PUBLISHED = Path(__file__).parents[2] / "bench/published/ior_one_sided.csv"


def sample(variant: str, number: int, seconds: float, size: int = 8 << 20) -> dict:
    where = {"variant": variant, "component": "", "round": number, "ranks": 4, "nodes": 2}
    accesses = {"write": {"total": seconds}, "read": {"total": seconds / 2}}
    return {**where, "bytes": size, **{a: {"bytes": size, **t} for a, t in accesses.items()}}


def test_a_row_compares_with_the_fastest_of_mpi_io_by_medians():
    samples = []
    for number, seconds in enumerate((2.0, 1.0, 1.5)):
        samples += [sample("LAMINAR", number, seconds), sample("MPIIO", number, 9.0)]
        samples += [sample("MPIIO:view", number, 2 * seconds), sample("POSIX", number, 0.1)]
    names = ["POSIX", "MPIIO", "MPIIO:view", "LAMINAR"]
    write, read = compare.rows(samples, names)
    assert (write["access"], read["access"]) == ("write", "read")
    assert list(write["variants"]) == names
    assert write["variants"]["LAMINAR"]["median"] == (8 << 20) / 1.5
    assert write["best"] == "MPIIO:view", "POSIX does not count beside MPI-IO"
    assert write["ratios"]["LAMINAR"]["ratio"] == 2.0
    assert write["ratios"]["LAMINAR"]["low"] <= 2.0 <= write["ratios"]["LAMINAR"]["high"]


def test_rates_and_ratios_are_of_the_bytes_that_were_moved_until_a_deadline():
    samples = [sample(name, n, 1.0) for n in range(3) for name in ("MPIIO", "LAMINAR")]
    for one in samples:
        one["write"]["bytes"] = (3 if one["variant"] == "LAMINAR" else 1) << 20
    write, read = compare.rows(samples, ["MPIIO", "LAMINAR"])
    assert write["bytes"] == read["bytes"] == 8 << 20, "the file's"
    assert [v["median"] / 2**20 for v in write["variants"].values()] == [1, 3]
    found = write["ratios"]["LAMINAR"]
    assert [round(found[key], 9) for key in ("ratio", "low", "high")] == [3, 3, 3]
    assert read["ratios"]["LAMINAR"]["ratio"] == 1


def test_without_a_back_end_of_brigades_the_first_is_compared():
    samples = [sample(name, 0, seconds) for name, seconds in (("POSIX", 1.0), ("MPIIO", 3.0))]
    row = compare.rows(samples, ["POSIX", "MPIIO"])[0]
    assert (row["best"], row["ratios"]["POSIX"]["ratio"]) == ("MPIIO", 3.0)


def test_csv_is_in_the_published_form():
    samples = [sample("MPIIO", 0, 1.0), sample("LAMINAR", 0, 2.0, 8 << 20)]
    rows = compare.rows(samples, ["MPIIO", "LAMINAR"])
    assert compare.as_csv(rows, "here").splitlines() == [
        "system,ranks,nodes,file_gib,op,MPIIO,LAMINAR",
        "here,4,2,0.0078125,write,8.0,4.0",
        "here,4,2,0.0078125,read,16.0,8.0",
    ]


def test_ompio_and_romio_are_mpiio_with_a_component_each():
    found = measure.ways("ompio:view,ROMIO:cb_nodes=1,LAMINAR", {"ompio": "ompio", "romio": "r321"})
    assert [(way.name, way.word, way.component) for way in found] == [
        ("OMPIO:view", "MPIIO:view", "ompio"),
        ("ROMIO", "MPIIO:cb_nodes=1", "r321"),
        ("LAMINAR", "LAMINAR", ""),
    ]
    with pytest.raises(UsageError, match="no such component"):
        measure.ways("OMPIO", {})


def test_two_ways_of_one_back_end_keep_their_hints_as_names():
    found = measure.ways("LAMINAR:checksums=no,LAMINAR:checksums=yes", {})
    assert [way.name for way in found] == ["LAMINAR:checksums=no", "LAMINAR:checksums=yes"]


def test_hints_are_names_of_what_the_user_called_a_way_and_not_of_what_it_is_done_with():
    words = "ompio:cb_nodes=1,OMPIO:cb_nodes=2,mpiio:cb_nodes=1,laminar:sync=no,Laminar:view=no"
    found = measure.ways(words, {"ompio": "ompio"})
    assert [(way.name, way.word, way.component) for way in found] == [
        ("OMPIO:cb_nodes=1", "MPIIO:cb_nodes=1", "ompio"),
        ("OMPIO:cb_nodes=2", "MPIIO:cb_nodes=2", "ompio"),
        ("MPIIO", "MPIIO:cb_nodes=1", ""),
        ("LAMINAR:sync=no", "LAMINAR:sync=no", ""),
        ("LAMINAR:view=no", "LAMINAR:view=no", ""),
    ]
    assert {compare._kind(way.name) for way in found} == {"OMPIO", "MPIIO", "LAMINAR"}


@pytest.mark.parametrize("words", ["LAMINAR,laminar", "MPIIO:view:a=1,LAMINAR,MPIIO:view:a=1"])
def test_ways_of_one_name_are_refused(words):
    with pytest.raises(UsageError, match="more than once"):
        measure.ways(words, {})


def test_a_preset_is_scaled_in_ranks_and_in_what_each_writes():
    titan = presets.PRESETS["titan-1024"]
    assert presets.scaled(titan, 1) == (1024, [4 << 30])
    assert presets.scaled(titan, 64) == (16, [64 << 20])
    assert presets.scaled(titan, 10**6) == (2, [1 << 20])
    assert all(field in {o.field for o in options.options()} for field in presets.VALUES)


def test_every_option_has_its_row_on_the_page_of_options():
    page = (Path(__file__).parents[2] / "docs/reference/ior.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `-")]
    assert len(rows) == len(options.options())
    for option, row in zip(options.options(), rows):
        names = [option.said, f"--{option.name}", *([f"--{option.other}"] if option.other else [])]
        assert row.startswith("| " + ", ".join(f"`{name}`" for name in dict.fromkeys(names)) + " |")
        assert row.endswith(f"| {option.help} |")


def test_options_are_said_as_ior_has_them():
    values = {"write": 1, "read": 0, "random_offset": 2, "block": "1m", "random_seed": "7"}
    said = options.words({**values, "directives": ("a=1", "b=2"), "path": None})
    assert " ".join(said) == "-b 1m -w -z -z --random-offset-seed 7 -O a=1 -O b=2"


def test_directives_are_options_and_the_last_that_is_said():
    given = {"block": "1m", "keep": 0, "segments": None, "path": None}
    said = (
        "blockSize = 4m, keepfile=1 # and",
        "segmentCount=3,colour=red,fsync=0,checkRead=much",
        "k",
    )
    found = options.folded({**given, "directives": said})
    assert (found["block"], found["keep"], found["segments"]) == ("4m", 1, "3")
    assert found["directives"] == ("colour=red", "fsync=0", "checkRead=much", "k"), "the program's"
    assert options.folded(given) == {**given, "directives": ()}


@pytest.mark.parametrize(
    ("said", "read", "left"),
    [
        ("readFile=0,readFile=1", 1, ()),
        ("readFile=1,readFile=0", 0, ("readFile=0",)),
        ("readFile=0,fsync=0,readFile=1", 1, ("fsync=0",)),
        ("readFile=0,readfile=much,readFile=1", 1, ("readfile=much",)),
    ],
)
def test_of_directives_for_one_option_the_last_wins(said, read, left):
    found = options.folded({"read": 0, "directives": (said,)})
    assert (found["read"], found["directives"]) == (read, left)


def test_published_rows_are_those_of_the_published_file():
    with PUBLISHED.open() as file:
        expected = {
            (row["system"], int(row["ranks"]), int(row["file_gib"]), row["op"]): tuple(
                int(row[f"{api}_{view}"])
                for view in ("no_view", "view")
                for api in ("mpiio", "shmem")
            )
            for row in csv.DictReader(file)
        }
    found = {
        (preset.system.lower(), row.ranks, row.file_gib, row.access): row.rates
        for preset in presets.PRESETS.values()
        for row in preset.published
    }
    assert found == expected
