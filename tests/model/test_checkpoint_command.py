"""`brigade model checkpoint` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from brigade.cli.model_checkpoint import command
from brigade.errors import BrigadeError, UsageError
from brigade.model.checkpoint import advise

ROOT = Path(__file__).resolve().parents[2]
CASE = ["--nodes", "1024", "--node-size", "64G", "--rate", "500G", "--mtbf", "24h"]


def model(*words: object) -> str:
    result = CliRunner().invoke(command, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_words_say_interval_writers_and_rate():
    text = model(*CASE, "--writer-rate", "2G", "--interval", "8h")
    for part in (
        "Interval:",
        "at most 1% longer",
        "Writers: 250",
        "Rate:",
        "Daly",
        "At an interval",
    ):
        assert part in text
    assert "ASSUMED" not in text
    assert "ASSUMED" in model(*CASE[:-2])


def test_json_has_the_ways_the_advice_and_every_swept_value():
    found = json.loads(model(*CASE, "--sweep", "nodes=256,4096", "--simulate", "20", "--json"))
    assert [one["plan"]["way"] for one in found["ways"]] == ["sync", "partial", "full"]
    few, many = found["sweep"]["rows"]
    assert (few["value"], many["value"]) == (256, 4096)
    for less, more in zip(few["ways"], many["ways"]):
        assert less["overhead"] < more["overhead"], "more nodes fail more often, and write more"
    assert [one["agrees"] for one in found["simulated"]] == [True, True, True]
    assert found["advice"]["words"]


@pytest.mark.parametrize("writers", [[], ["--writers", "64"]])
def test_a_swept_number_of_nodes_is_what_a_call_with_it_gives(writers):
    words = ["--node-size", "64G", "--rate", "500G", "--writer-rate", "1G", *writers, "--json",
             "--spread", "lognormal:0.3"]  # fmt: skip
    swept = json.loads(model("--nodes", 1024, *words, "--sweep", "nodes=64,2048"))["sweep"]["rows"]
    for row in swept:
        direct = json.loads(model("--nodes", int(row["value"]), *words))["ways"]
        for one, other in zip(row["ways"], direct):
            for name in ("wall_s", "write_s", "peak_rate", "overhead"):
                assert one[name] == pytest.approx(other[name], rel=1e-4), name


def test_writers_are_advised_only_where_something_is_known_of_them(tmp_path):
    assert json.loads(model(*CASE, "--json"))["advice"]["writers"] is None
    path = tmp_path / "seconds"
    path.write_text("\n".join(str(1 + 0.1 * (i % 7) + 0.01 * i) for i in range(40)))
    words = [*CASE, "--samples", path, "--slowest-of", 96, "--writer-rate", "500G"]
    advice = json.loads(model(*words, "--json"))["advice"]
    assert advice["writers"] == 96, "one could fill the rate, but only 96 were measured"
    assert "times as long as the slowest of 96 does in the mean" in model(*words)


def test_an_interval_with_which_the_job_never_ends_is_said_to():
    words = ["--nodes", 1024, "--node-size", "64G", "--rate", "500G", "--mtbf", "2h"]
    text = model(*words, "--interval", "3d", "--work", "30d")
    assert "sync never ends" in text and "inf" not in text and "nan" not in text


@pytest.mark.parametrize(
    ("number", "text"),
    [(2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (21, "21st"), (22, "22nd"),
     (23, "23rd"), (32, "32nd"), (48, "48th"), (64, "64th")],
)  # fmt: skip
def test_an_ordinal_is_one(number, text):
    assert advise._nth(number) == text


def test_a_simulation_that_met_no_failure_does_not_judge():
    text = model("--nodes", 4, "--size", "1T", "--rate", "10G", "--work", "1d", "--simulate", 5)
    assert text.count("too few failures to tell") == 3 and "DISAGREES" not in text


def test_everything_that_is_swept_can_be_swept(tmp_path):
    values = {"mtbf": "6h,2d", "writers": "1,64", "rate": "50G,1T", "slowdown": "1,2",
              "interval": "10min,8h"}  # fmt: skip
    for name, text in values.items():
        path = tmp_path / f"{name}.png"
        given = ["--writer-rate", "1G", "--sweep", f"{name}={text}", "--figure", path]
        out = model(*CASE, *given)
        assert path.stat().st_size > 10_000 and str(path) in out


def test_published_samples_are_fitted_and_used():
    text = model(*CASE, "--samples", ROOT / "bench/results/checkpoint-disk.json",
                 "--writer-rate", "2G")  # fmt: skip
    assert "KS distance" in text and "writes of 'brigade' with 16 ranks" in text
    assert "the slowest of them takes" in text


def test_a_plain_file_of_seconds_is_enough(tmp_path):
    path = tmp_path / "seconds"
    path.write_text("\n".join(str(1 + 0.1 * (i % 7) + 0.01 * i) for i in range(40)))
    found = json.loads(model(*CASE, "--samples", path, "--slowest-of", "16", "--json"))
    assert found["fits"][0]["of"] == 16
    assert found["job"]["spread"]["kind"] == found["fits"][0]["kind"]
    whole = json.loads(model(*CASE, "--samples", path, "--spread", "empirical", "--json"))
    assert len(whole["job"]["spread"]["values"]) == 40


@pytest.mark.parametrize(
    "words",
    [
        ["--nodes", "4", "--rate", "1G"],
        [*CASE, "--size", "1G"],
        [*CASE, "--node-mtbf", "5y"],
        [*CASE, "--spread", "normal:1"],
        [*CASE, "--spread", "lognormal:x"],
        [*CASE, "--sweep", "cores=1,2"],
        [*CASE, "--sweep", "nodes=1.5"],
        [*CASE, "--sweep", "nodes="],
        [*CASE, "--sweep", "slowdown=0.5"],
        [*CASE, "--interval", "30d"],
        [*CASE[:-4], "--rate", "0"],
    ],
)
def test_what_cannot_be_meant_is_said(words):
    with pytest.raises(UsageError):
        model(*words)


def test_a_job_that_would_not_end_is_told_so(tmp_path):
    with pytest.raises(BrigadeError, match="would not end"):
        model("--nodes", "100000", "--node-size", "640G", "--rate", "1G")
    with pytest.raises(BrigadeError, match="No such file"):
        model(*CASE, "--samples", tmp_path / "none")
