"""`brigade explain --fork` says of each module whether it is warm, and why not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from brigade.cli.explain import command
from brigade.fork.explain import as_json, lines
from brigade.fork.trial_plan import make
from brigade.trial.modules import Event, Execution, RankModules


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "reads.py").write_text("import os\npid = os.getpid()\n")
    (tmp_path / "middle.py").write_text("import reads\n")
    (tmp_path / "top.py").write_text("import middle\n")
    (tmp_path / "app.py").write_text("import top, random, json\n")
    return tmp_path / "app.py"


def explain(*words: object) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "BRIGADE_CACHE": str(Path(str(words[-1])).parent / "cache")}
    return subprocess.run(
        [sys.executable, "-m", "brigade", "explain", "--fork", *map(str, words)],
        env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_a_left_module_is_explained_down_to_its_cause(program: Path) -> None:
    done = explain("-q", "top", "random", "-n", "2", "--", sys.executable, program)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert told[:5] == [
        "top: left to each rank",
        "  top imports middle, which is left",
        "  middle imports reads, which is left",
        "  reads: asks for the process's number",
        "  --fork-warm reads imports it once all the same",
    ]
    assert "random: warm, imported once per node" in told
    assert "  rule for its random: seeded again; each rank: random-seed" in told
    assert not list((program.parent / "cache").glob("explain-*"))


def test_without_a_name_all_that_is_left_is_listed_by_cause(program: Path) -> None:
    done = explain("-q", "--", sys.executable, program)
    assert "reads: asks for the process's number" in done.stdout
    assert "  and 2 that need it:\n    top\n    middle\n" in done.stdout
    told = json.loads(explain("-q", "--json", "--", sys.executable, program).stdout)
    left = set(told["left"]) - {"sitecustomize"}  # Debian's own, which each rank executes itself
    assert left == {"top", "middle", "reads"} and "random" in told["warm"]
    assert told["left"]["top"]["chain"] == ["top", "middle", "reads"]


def test_what_is_left_only_with_something_else_is_told_of_a_run_and_of_an_image(
    tmp_path: Path,
) -> None:
    (tmp_path / "early.py").write_text("")
    (tmp_path / "late.py").write_text("import settings\n")
    (tmp_path / "settings.py").write_text("digits = 8\n")
    app = tmp_path / "app.py"
    app.write_text(
        "import early, os, sys\nif '--double' in sys.argv:\n    os.digits = 15\nimport late\n"
    )
    words = ["--", sys.executable, app]
    why = "may depend on the program's arguments"
    late = f"warm, imported once per node\n  left to each rank with other arguments: it {why}\n"
    told = explain("-q", "early", "late", *words).stdout
    assert "early: warm, imported once per node\n  from" in told and f"late: {late}  from" in told

    made = ["-m", "brigade", "run", "-q", "--fork", "-n", "2", *map(str, words)]
    env = {**os.environ, "BRIGADE_CACHE": str(tmp_path / "cache")}
    subprocess.run([sys.executable, *made], env=env, timeout=120, check=True)
    [image] = (tmp_path / "cache" / "images").glob("*.brg")
    told = explain("early", "late", "--image", image).stdout
    assert "early: warm, imported once per node\n  from" in told and f"late: {late}  from" in told
    assert "with other arguments 2 more are" in explain("--image", image).stdout
    whole = json.loads(explain("--json", "late", "--image", image).stdout)
    assert whole["late"]["otherwise"] == {"other arguments": why}


def test_an_unknown_module_is_an_error_with_what_is_near() -> None:
    rank = RankModules(0, "n0", True, [Execution("numpy", "/n.py", "")])
    plan = make([rank])
    assert list(lines(plan, ["nunpy"])) == [
        "nunpy: the trial did not import it", "  it imported numpy",
    ]  # fmt: skip
    assert json.loads(as_json(plan, ["nunpy"])) == {"nunpy": None}
    assert not plan.knows("nunpy")


def test_what_cannot_be_warm_is_not_said_to_be() -> None:
    rank = RankModules(0, "n0", True, [Execution("a", "<memory>", "")])
    rank.events.append(Event("a", "pid", "", 1))
    assert not [line for line in lines(make([rank]), ["a"]) if "--fork-warm" in line]


@pytest.mark.parametrize(
    "words",
    [["--fork"], ["--fork", "a", "--image", "x", "--", "true"], ["--image", "x", "a"], []],
)
def test_one_thing_to_explain_it_with_is_needed(words: list[str]) -> None:
    assert CliRunner().invoke(command, words).exit_code != 0
