"""Jobs that start together make one image, and wait for nobody who has died."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from project import Site

from brigade.errors import TrialError
from brigade.job import prepare, turns
from brigade.job.course import Course, Settings
from brigade.job.progress import Progress
from brigade.launch import parse


def start(site: Site, report: Path, *run: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "BRIGADE_CACHE": str(site.base / "cache"),
        "BRIGADE_NODE_DIR": str(site.nodes),
        "BRIGADE_PATIENCE": "60",
    }
    words = ["brigade", "run", *run, "--json", str(report), "--", str(site.python), str(site.app)]
    return subprocess.Popen(
        [sys.executable, "-m", *words],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def image_of(site: Site) -> Path:
    """The image's path, and no image there."""
    assert site.brigade().returncode == 0
    (image,) = (site.base / "cache/images").glob("*.brg")
    image.unlink()
    return image


def test_jobs_that_start_together_make_one_trial(site: Site) -> None:
    reports = [site.base / f"report{i}" for i in range(3)]
    jobs = [start(site, report) for report in reports]
    for job in jobs:
        _, said = job.communicate(timeout=120)
        assert job.returncode == 0, said
    told = [json.loads(report.read_text()) for report in reports]
    assert [one["unstaged"] for one in told] == [None] * 3
    assert sum(one["image"]["trial"] is not None for one in told) == 1
    (image,) = (site.base / "cache/images").glob("*.brg")
    assert sorted(path.suffix for path in image.parent.iterdir()) == [".brg", ".records"]


@pytest.mark.parametrize("how", ["here", "elsewhere"])
def test_one_that_has_died_is_not_waited_for(site: Site, how: str) -> None:
    image = image_of(site)
    ended = subprocess.Popen(["true"])
    ended.wait()
    lock = Path(turns.file_of(str(image)))
    lock.write_text(f"{socket.gethostname() if how == 'here' else 'elsewhere'} {ended.pid}")
    os.utime(lock, None if how == "here" else (0, 0))
    done = site.brigade()
    assert done.returncode == 0 and "waiting" not in done.stderr
    assert site.report()["image"]["trial"] and not lock.exists()


def test_waiting_ends_by_a_signal(site: Site) -> None:
    image = image_of(site)
    lock = Path(turns.file_of(str(image)))
    lock.write_text("elsewhere 1")
    job = start(site, site.base / "report")
    said = ""
    while "waiting for the image" not in said:
        assert job.stderr
        said += job.stderr.readline()
    job.send_signal(signal.SIGINT)
    job.communicate(timeout=60)
    assert job.returncode == -signal.SIGINT and lock.exists()


def test_whoever_has_waited_in_vain_leaves_the_image_to_who_makes_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = image_of(site)
    lock = Path(turns.file_of(str(image)))
    lock.write_text("elsewhere 1")
    monkeypatch.setenv("BRIGADE_CACHE", str(site.base / "cache"))
    monkeypatch.setattr(prepare, "_MORE_S", 0.0)
    words = [str(site.python), str(site.app)]
    course = Course(Settings(words, trial_limit=0.5))
    with pytest.raises(TrialError, match="another job still makes the image after 1 s"):
        prepare.prepare(course, parse(words), Progress(quiet=True))
    assert lock.read_text() == "elsewhere 1" and not image.exists()


UNQUIET = """\
import glob, os, sys, time
for number in range(200):
    if glob.glob(os.path.join(os.environ["BRIGADE_CACHE"], "images", "*.brg")):
        break
    os.path.exists(f"{sys.argv[0]}.{number}")
    time.sleep(0.1)
"""


def test_jobs_wait_for_a_trial_that_uses_its_whole_limit(site: Site) -> None:
    site.app.write_text(UNQUIET)
    reports = [site.base / f"report{i}" for i in range(3)]
    jobs = [start(site, report, "--trial-limit", "3") for report in reports]
    for job in jobs:
        _, said = job.communicate(timeout=240)
        assert job.returncode == 0, said
    told = [json.loads(report.read_text()) for report in reports]
    (trial,) = [one["image"]["trial"] for one in told if one["image"]["trial"]]
    assert trial["ended"] == "limit" and trial["seconds"] >= 3


def test_a_job_does_not_wait_for_another_that_grows_the_image(site: Site) -> None:
    site.app.write_text("import sys, pkg\nif len(sys.argv) > 1:\n    __import__(sys.argv[1])\n")
    (site.package.parent / "other.py").write_text("")
    assert site.brigade().returncode == 0 and site.brigade("other").returncode == 0
    (image,) = (site.base / "cache/images").glob("*.brg")
    Path(turns.file_of(str(image))).write_text("elsewhere 1")
    done = site.brigade("other")
    assert done.returncode == 0 and "waiting" not in done.stderr
    assert site.report()["image"]["grown"] is None


@pytest.mark.parametrize("renew", [False, True])
def test_what_another_makes_between_our_look_and_our_turn_is_not_made_again(
    site: Site, monkeypatch: pytest.MonkeyPatch, renew: bool
) -> None:
    image = image_of(site)
    assert site.brigade().returncode == 0
    meanwhile, take = image.rename(site.base / "meanwhile"), turns._take

    def taken_late(path: str) -> bool:
        meanwhile.rename(image)
        return take(path)

    monkeypatch.setattr(turns, "_take", taken_late)
    monkeypatch.setenv("BRIGADE_CACHE", str(site.base / "cache"))
    words = [str(site.python), str(site.app)]
    course = Course(Settings(words, renew=renew))
    prepare.prepare(course, parse(words), Progress(quiet=True))
    assert course.image_id and bool(course.trial) is renew
