"""One start that fails, or a study that ends before its time, loses nothing that was measured."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time

import pytest

from brigade.cli import study
from brigade.errors import BrigadeError, UsageError
from brigade.study import report
from brigade.study.conclude import conclude
from brigade.study.plan import Variant
from brigade.study.run import Timing, time_all
from brigade.study.samples import Sample, Study, save


def made(tmp_path, weak: str) -> Study:
    """Three repeats of three variants, of which the weak one fails from its second start on."""
    program = tmp_path / "app"
    program.write_text(
        '#!/bin/sh\nif [ "$WEAK" ]; then\n  [ -e "$WEAK" ] && echo no license && exit 3\n'
        '  : > "$WEAK"\nfi\nexit 0\n'
    )
    program.chmod(0o755)
    flag = {"WEAK": str(tmp_path / "started")}
    variants = [
        Variant(name, name.upper(), (str(program),), flag if name == weak else {})
        for name in ("base", "first", "second")
    ]
    found = Study("paths", [str(program)], {}, "base", None)
    time_all(found, variants, [1], 3, Timing(limit_s=300), lambda *_: None)
    return found


def test_a_variant_whose_start_fails_is_left_out_and_the_others_go_on(tmp_path, capsys):
    found = made(tmp_path, "first")
    assert [len(found.seconds(name, 1)) for name in ("base", "first", "second")] == [3, 1, 3]
    assert found.variants == ["base", "second"]
    assert "a start of 1 rank failed" in found.left_out["first"]
    assert "no license" in found.left_out["first"]
    said = conclude(found)
    assert any(line.startswith("FIRST was left out: a start of 1 rank failed") for line in said)
    assert any("SECOND" in line and "BASE" in line for line in said)
    report.print_study(found, said)
    assert "FIRST was left out" in capsys.readouterr().out


def test_a_baseline_that_fails_ends_the_study(tmp_path):
    with pytest.raises(BrigadeError, match="ended with 3"):
        made(tmp_path, "base")


def test_what_was_measured_before_a_signal_is_kept(tmp_path):
    """The second timed start never ends."""
    program, raw = tmp_path / "bin/app", tmp_path / "raw.json"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\necho >> "$STARTS"\n[ "$(wc -l < "$STARTS")" -lt 3 ] || exec sleep 600\n'
    )
    program.chmod(0o755)
    words = ["--variants", "plain", "--widths", "1", "--repeats", "3", "--json", str(raw)]
    starts = tmp_path / "starts"
    job = subprocess.Popen(
        [sys.executable, "-m", "brigade", "study", "paths", *words, "--", str(program)],
        env={**os.environ, "STARTS": str(starts)}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    while not (starts.exists() and starts.read_text().count("\n") >= 3):
        assert job.poll() is None
        time.sleep(0.02)
    job.send_signal(signal.SIGINT)
    assert job.wait() == -signal.SIGINT
    kept = json.loads(raw.read_text())
    assert len(kept["samples"]) == 1
    assert kept["conclusions"] == ["The study ended after 1 start: nothing is concluded."]


@pytest.mark.parametrize(
    ("option", "name", "said"),
    [
        ("--figure", "it.foo", "no figure of that kind"),
        ("--figure", "nowhere/it.png", "no such folder"),
        ("--json", ".", "Is a directory"),
        ("--json", "nowhere/it.json", "No such file"),
    ],
)
def test_results_that_cannot_be_written_are_refused_before_anything_starts(
    tmp_path, option, name, said
):
    program = tmp_path / "bin/app"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n: > started\n")
    program.chmod(0o755)
    words = ["study", "paths", "--variants", "plain", option, name, "--", str(program)]
    command = [sys.executable, "-m", "brigade", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode in (1, 2)
    assert said in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "started").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin"]


def test_looking_whether_samples_can_be_written_leaves_everything_as_it_was(tmp_path):
    link, fifo = tmp_path / "link", tmp_path / "fifo"
    link.symlink_to("raw.json")
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    gone = select.poll()
    gone.register(reader, 0)
    for path in (link, fifo, tmp_path / "new"):
        study._check_json(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "link"]
    assert os.readlink(link) == "raw.json" and not gone.poll(0), "nobody has written, and gone"
    os.close(reader)
    link.unlink()
    link.symlink_to("nowhere/raw.json")
    with pytest.raises(UsageError, match="No such file"):
        study._check_json(link)


def test_samples_that_cannot_be_kept_hide_neither_the_error_nor_the_signal(tmp_path, capsys):
    shown = {"figure": None, "json_file": str(tmp_path / "shut/raw.json"), "widths": None}
    shown |= {"repeats": 1, "until": None, "limit": 1.0}
    begun = Study("paths", ["a"], {}, "base", None, samples=[Sample("base", 1, 0, 1.0)])

    def ended(common, progress):
        common["begun"](begun)
        (tmp_path / "shut").rename(tmp_path / "moved")
        raise BrigadeError("the program ended with 3")

    (tmp_path / "shut").mkdir()
    with pytest.raises(BrigadeError, match="ended with 3"):
        study._make(("a",), shown, ended)
    assert f"{shown['json_file']}: No such file" in capsys.readouterr().err
    with pytest.raises(BrigadeError, match=r"shut/raw\.json: No such file"):
        save(begun, tmp_path / "shut/raw.json", [])
