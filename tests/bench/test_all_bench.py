"""`brigade bench all`: every benchmark's turn, failures that stay their own, and the page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from mpi_world import ENVIRONMENT

from brigade.bench.all import plan, run
from brigade.bench.all.plan import Entry
from brigade.cli.bench import command as group
from brigade.page import laboratory
from brigade.report.host import host

needs_mpi = pytest.mark.skipif(not shutil.which("mpicc.openmpi"), reason="no Open MPI")
SETTINGS = {"quick": True, "ranks": 2, "folder": "/scratch", "machine": "n0", "launcher": []}


def entry(name: str, *words: str, show: str = "builtins:print") -> Entry:
    return Entry(name, f"The {name}", "What it is.", words, (), show, mpi=False)


class Page(HTMLParser):
    """The ids of a page, and what it would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href") and not (value or "").startswith(("#", "data:")):
                self.fetched.append(value or "")


def test_every_benchmark_of_the_project_has_its_turn() -> None:
    assert {one.name for one in plan.ENTRIES} == set(group.commands) - {"all"}


def test_words_go_where_each_benchmark_takes_them() -> None:
    by_name = {one.name: one for one in plan.ENTRIES}
    launcher = ("srun", "-n", "{n}")
    made = plan.words(by_name["overlap"], True, 8, "D", "F.svg", launcher)
    assert made[:3] == ["overlap", "-n", "8"] and made[-4:] == ["--", *launcher]
    assert made[made.index("--dir") + 1] == "D" and made[made.index("--figure") + 1] == "F.svg"
    made = plan.words(by_name["cload"], True, 8, "D", "F.svg", launcher)
    assert made[-4:] == ["--", "srun", "-n", "8"] and "--figure" not in made
    assert plan.words(by_name["cload"], True, 8, "D", None, ())[-2:] == ["-n", "8"]
    assert "--" not in plan.words(by_name["cache"], True, 8, "D", None, launcher)


def test_a_table_is_named_by_the_sizes_of_its_report() -> None:
    (align,) = [one for one in plan.ENTRIES if one.name == "align"]
    sides = ("read_offset", "read_plain", "write_offset", "write_plain")
    row = {"variant": "brigade", "system": "n0", "ranks": 2, "iteration": 0, "header": 256}
    report = {"rows": [{**row, **dict.fromkeys(sides, 1.0)}], "settings": {"block": 64 << 20}}
    assert "header 256 B, block 64 MiB" in run._printed(align, report)


def test_what_fails_or_takes_too_long_is_said_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    programs = {
        "good": "print('{\"answer\": 42}')",
        "bad": "import sys; sys.exit('no <compiler> & no library')",
        "long": "import time; time.sleep(60)",
        "odd": "print('[]')",
    }
    real = run._command

    def command(asked: list[str], limit_s: float) -> tuple[int | None, str, str]:
        return real([sys.executable, "-c", programs[asked[4]]], limit_s)

    monkeypatch.setattr(run, "_command", command)
    entries = [entry("good"), entry("bad"), entry("long"), entry("odd", show="nowhere:print")]
    good, bad, long, odd = run.run(entries, True, 2, tmp_path, (), 2.0)
    assert good.report == {"answer": 42} and good.table == "{'answer': 42}" and not good.failure
    assert bad.failure == "exit code 1\nno <compiler> & no library"
    assert bad.why == "no <compiler> & no library"
    told = run.Outcome(entries[0], (), 0.0, failure="exit code 2\nbrigade: no such\n  do that")
    assert told.why == "no such", "what failed, and not the hint below it"
    assert "longer than 2 s" in long.failure and long.seconds < 20
    assert "cannot be shown" in odd.failure
    text = laboratory.render([good, bad, long, odd], host(), SETTINGS)
    assert "1 of 4 benchmarks measured; 3 failed" in text
    assert "no &lt;compiler&gt; &amp; no library" in text and "<compiler>" not in text


def test_figures_of_one_page_keep_to_their_own_ids() -> None:
    svg = (
        '<?xml version="1.0"?><!DOCTYPE svg><svg width="9pt" height="9pt" viewBox="0 0 9 9">'
        '<defs><path id="p1"/></defs><use href="#p1" clip-path="url(#c)"/>'
        '<rect width="3" height="4"/></svg>'
    )
    made = str(laboratory._inline(svg, "cache"))
    assert 'id="cache-p1"' in made and 'href="#cache-p1"' in made and "url(#cache-c)" in made
    assert made.startswith('<svg viewBox="0 0 9 9">'), "as wide as the page"
    assert '<rect width="3" height="4"/>' in made


@needs_mpi
def test_a_page_with_real_measurements_needs_nothing_else(tmp_path: Path) -> None:
    folder, page = tmp_path / "files", tmp_path / "lab.html"
    folder.mkdir()
    words = ["--quick", "--only", "cload,overlap,ior", "-o", str(page), "--dir", str(folder)]
    launcher = ["--", "mpirun.openmpi", "--oversubscribe", "-n", "{n}"]
    cache = {"BRIGADE_CACHE": str(tmp_path / "cache"), "MPICC": "mpicc.openmpi"}
    done = subprocess.run(
        [sys.executable, "-m", "brigade", "bench", "all", *words, *launcher],
        env={**os.environ, **ENVIRONMENT, **cache}, cwd="/", capture_output=True, text=True,
        timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("measured") == 3, done.stdout
    found = json.loads((tmp_path / "lab.json").read_text())
    assert [one["name"] for one in found["benchmarks"]] == ["cload", "overlap", "ior"]
    assert found["benchmarks"][1]["report"]["samples"] and found["host"]["cpus"]
    text = page.read_text()
    seen = Page(text)
    assert not seen.fetched and "@import" not in text and "<script" not in text
    assert len(seen.ids) == len(set(seen.ids)), "ids are unique, also those of figures"
    used = set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text))
    assert used <= set(seen.ids), "what is referred to is there"
    assert "yielding" in text and "brigade bench overlap -n 2" in text
    assert list(folder.iterdir()) == [], "nothing is left"


def test_a_page_that_cannot_be_written_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    for words in (["-o", "/nowhere/lab.html"], ["-o", "lab.json"], ["--only", "cload,other"]):
        done = subprocess.run(
            [sys.executable, "-m", "brigade", "bench", "all", "--quick", *words],
            cwd=tmp_path, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 2 and done.stderr.startswith("brigade: "), done.stderr
