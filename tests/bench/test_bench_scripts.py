"""The scripts of bench/ say what they do, and each published result can be traced to one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
SCRIPTS = sorted(path.name for path in BENCH.glob("*.py"))
RESULTS = sorted(path.name for path in (BENCH / "results").glob("*.json"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_shows_its_help(script: str) -> None:
    command = [sys.executable, "-B", BENCH / script, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert f"bench/{script}" in done.stdout, "an example with its name"


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_has_its_raw_samples_host_and_script(result: str) -> None:
    content = json.loads((BENCH / "results" / result).read_text())
    assert content["samples"] and content["settings"]
    assert content["host"]["commit"] and content["host"]["cpus"]
    assert f"{content['benchmark']}.py" in SCRIPTS
