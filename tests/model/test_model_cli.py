"""`brigade predict` as a user calls it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from test_model_demand import profile

from brigade.cli.duration import duration
from brigade.cli.predict import command
from brigade.errors import UsageError
from brigade.model import demand, system
from brigade.model.demand import Demand
from brigade.model.system import System
from brigade.profile.profile import save

COUNTS = ["--lookups", "1343", "--absent", "3677", "--opens", "495", "--bytes", "200M"]


def predict(*words: str):
    result = CliRunner().invoke(command, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_table_has_both_ways_and_names_what_was_assumed():
    text = predict(*COUNTS, "--ranks", "64,40960", "--nodes", "1707")
    assert "40,960" in text and "direct" in text and "Brigade" in text
    assert "ASSUMED, not measured" in text and "metadata server" in text
    assert "launcher's own time is not in it" in text


def test_json_has_every_value_and_what_it_rests_on():
    found = json.loads(predict(*COUNTS, "--ranks", "40960", "--nodes", "1707", "--json"))
    one = found["predictions"][0]
    assert (one["ranks"], one["nodes"]) == (40960, 1707)
    for way in ("direct", "brigade"):
        assert one[way]["low"] <= one[way]["seconds"] <= one[way]["high"]
    assert "service time of a request" in found["assumed"]
    assert found["demand"]["first"]["open"] == 495


def test_what_is_given_is_not_assumed_and_counts(tmp_path):
    words = [*COUNTS, "--ranks", "4096", "--nodes", "512", "--json", "--no-node-cache"]
    slow, fast = (
        json.loads(predict(*words, "--service-time", time, "--servers", "1"))
        for time in ("1ms", "0.1ms")
    )
    seconds = [run["predictions"][0]["direct"]["seconds"] for run in (slow, fast)]
    assert seconds[0] == pytest.approx(10 * seconds[1], rel=0.05)
    assert seconds[0] == pytest.approx(4096 * 5515 * 1e-3, rel=0.05)
    assert "service time of a request" not in slow["assumed"]


def test_what_nodes_remember_and_their_processors_are_named_where_they_were_assumed():
    words = [*COUNTS, "--ranks", "64", "--nodes", "8", "--json"]
    assumed = json.loads(predict(*words))["assumed"]
    guessed = {"that nodes remember names", "that nodes remember absent names",
               "processors of a node", "number of data servers"}  # fmt: skip
    assert guessed <= set(assumed)
    told = json.loads(predict(*words, "--no-node-cache", "--cores", "8"))["assumed"]
    assert guessed & set(told) == {"number of data servers"}


def test_files_of_a_system_and_a_demand_are_taken(tmp_path):
    system.save(System(name="ours", service_s=1e-3, servers=1), tmp_path / "system.json")
    wanted = Demand(name="app", first={"lookup": 1000.0}, further={"lookup": 1000.0}, fixed_s=1.0)
    (tmp_path / "demand.json").write_text(json.dumps(demand.to_json(wanted)))
    text = predict(
        "--system", str(tmp_path / "system.json"), "--demand", str(tmp_path / "demand.json"),
        "--ranks", "100", "--nodes", "10", "--explain",
    )  # fmt: skip
    assert "app (given) on ours" in text and "101 s" in text
    assert "ASSUMED" not in text and "least possible" in text


def test_a_profile_is_taken_with_its_processor_time_unless_told_another(tmp_path):
    path = tmp_path / "profile.json"
    save(profile(), path)
    words = ["--profile", str(path), "--ranks", "64", "--nodes", "8", "--json", "--no-node-cache"]
    found = json.loads(predict(*words))
    assert found["predictions"][0]["direct"]["requests"] == 64 * (30 + 50 + 15 + 2 + 30 + 2)
    assert "requests, taken from system calls by the rules of caches" in found["assumed"]
    told = json.loads(predict(*words, "--cpu", "7s"))
    assert told["predictions"][0]["direct"]["seconds"] > 7 > found["demand"]["cpu_s"]


def test_what_is_said_of_a_program_has_no_spread_of_its_profile(tmp_path):
    path = tmp_path / "profile.json"
    save(profile(), path)
    words = ["--profile", str(path), "--ranks", "64", "--nodes", "8", "--json"]
    assert "cpu_s" in json.loads(predict(*words))["demand"]["spread"]
    assert "cpu_s" not in json.loads(predict(*words, "--cpu", "7s"))["demand"]["spread"]


def test_without_a_word_on_the_program_the_last_profile_of_this_folder_is_taken(
    tmp_path, monkeypatch
):
    save(profile(), tmp_path / "profile.json")
    monkeypatch.chdir(tmp_path)
    words = ["--ranks", "64", "--nodes", "8", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "brigade", "predict", *words],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "profile.json" in done.stderr
    named = predict(*words, "--profile", "profile.json")
    assert json.loads(done.stdout) == json.loads(named)


def test_as_many_ranks_a_node_at_every_width():
    found = json.loads(predict(*COUNTS, "--ranks", "8,100,1024", "--nodes", "64", "--json"))
    assert [(one["ranks"], one["nodes"]) for one in found["predictions"]] == [
        (8, 1), (100, 7), (1024, 64),
    ]  # fmt: skip


@pytest.mark.parametrize(("ranks", "nodes"), [(96, 7), (49, 49), (40960, 1707), (3, 1)])
def test_the_nodes_that_were_asked_for_are_those_of_the_widest(ranks, nodes):
    words = [*COUNTS, "--cpu", "1s", "--ranks", str(ranks), "--nodes", str(nodes), "--json"]
    (found,) = json.loads(predict(*words))["predictions"]
    assert (found["ranks"], found["nodes"]) == (ranks, nodes)


def test_a_figure_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "start.svg"
    predict(*COUNTS, "--ranks", "8", "--nodes", "2", "--figure", str(path))
    drawn = path.read_text()
    for words in ("shared file system", "Brigade", "ranks", "seconds of start-up"):
        assert f"<!-- {words} -->" in drawn, "what Matplotlib says of a text that it draws"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--ranks", "8"], "what does the program ask"),
        ([*COUNTS, "--demand", "x.json", "--ranks", "8"], "once"),
        ([*COUNTS, "--ranks", "eight"], "no list of widths"),
        ([*COUNTS, "--ranks", "0"], "no list of widths"),
        ([*COUNTS, "--ranks", "8", "--nodes", "9"], "cannot be"),
        ([*COUNTS, "--ranks", "8", "--service-time", "fast"], "length of time"),
        ([*COUNTS, "--ranks", "8", "--system", "/nowhere.json"], "/nowhere.json"),
        (["--profile", "/nowhere.json", "--ranks", "8"], "/nowhere.json"),
        ([*COUNTS, "--ranks", "8", "--figure", "start.bmp"], "no figure of that kind"),
        ([*COUNTS, "--ranks", "8", "--figure", "/nowhere/start.png"], "/nowhere/start.png"),
    ],
)
def test_bad_input_is_one_clear_error_that_says_what_to_do(words, named, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "brigade", "predict", *words],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode in (1, 2), done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 2 and lines[0].startswith("brigade: ") and lines[1].startswith("  ")
    assert named in lines[0]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("80us", 8e-5), ("0.5ms", 5e-4), ("2s", 2), ("1.5", 1.5), ("3min", 180), ("100ns", 1e-7)],
)
def test_a_length_of_time_is_read(text, seconds):
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "ms", "-1s", "nan", "inf", "1 hour or so"])
def test_no_length_of_time_is_refused(text):
    with pytest.raises(UsageError, match="length of time"):
        duration(text)


def test_brigade_run_does_not_load_the_model():
    code = "import sys, brigade.cli.run; sys.exit(any('brigade.model' in m for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
