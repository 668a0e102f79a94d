"""A program that needs more on other inputs grows its image; nothing that was in it is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from project import Site

from brigade.image import grow
from brigade.image.missed import missed_of
from brigade.image.reader import Image

APP = """\
import sys
import pkg
if len(sys.argv) > 1:
    import importlib
    print(importlib.import_module(sys.argv[1]).__file__)
else:
    print(pkg.data())
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path).make()
    site.app.write_text(APP)
    other = site.package.parent / "other"
    other.mkdir()
    (other / "__init__.py").write_text("from other import part\n")
    (other / "part.py").write_text("y = 2\n")
    first = site.brigade()
    assert first.returncode == 0, first.stderr
    return site


def image_of(site: Site) -> Path:
    return next((site.base / "cache/images").glob("*.brg"))


def facts(path: Path) -> dict[str, tuple[int, bool, bool]]:
    with Image(path) as image:
        return {e.path: (e.kind, e.content is not None, e.listed) for e in image.entries()}


def update(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "brigade", "image", "update", *words, str(path)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_what_one_run_missed_the_next_one_has(site: Site) -> None:
    before = facts(image_of(site))
    missing = site.brigade("other")
    assert missing.stdout == site.plain("other").stdout
    assert site.report()["misses"]["total"] > 0 and site.report()["image"]["grown"] is None
    growing = site.brigade("other")
    assert growing.stdout == missing.stdout
    report = site.report()
    assert report["image"]["grown"]["paths"] > 0 and report["image"]["trial"] is None
    assert report["misses"]["total"] == 0, report["misses"]
    assert "grown by" in growing.stderr
    after = facts(image_of(site))
    for path, (kind, content, listed) in before.items():
        assert after[path][0] == kind, path
        assert after[path][1] >= content and after[path][2] >= listed, path
    assert after[str(site.package.parent / "other/part.py")][1]
    assert site.brigade().returncode == 0
    assert site.report()["misses"]["total"] == 0, "the first input is answered as before"
    assert site.report()["image"]["grown"] is None, "nothing more to add"


def test_two_jobs_may_grow_an_image_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert site.brigade("other").returncode == 0
    image = str(image_of(site))

    def build(*given: Any, **named: Any) -> Any:
        os.unlink(missed_of(image))  # as the other one does when it is done
        return real(*given, **named)

    real = grow.build
    monkeypatch.setattr(grow, "build", build)
    grown = grow.grow(image)
    assert grown is not None and grown.paths > 0


def test_growing_can_be_left_out(site: Site) -> None:
    before = image_of(site).read_bytes()
    for _ in range(2):
        site.brigade("other", run=("--no-grow",))
    assert image_of(site).read_bytes() == before
    assert site.report()["misses"]["total"] > 0


def test_a_new_trial_keeps_what_was_added(site: Site) -> None:
    site.brigade("other")
    site.brigade("other")
    (site.package / "data.txt").write_text("forty-three\n")
    assert site.brigade().stdout == "forty-three\n\n"
    assert site.report()["image"]["trial"] and "data.txt" in site.report()["image"]["renewed"]
    site.brigade("other")
    assert site.report()["misses"]["total"] == 0, site.report()["misses"]


def contents_of(image: Path) -> tuple[int, int]:
    """How many an image holds, and of how many of them some file is."""
    with Image(image) as opened:
        named = {e.content for e in opened.entries() if e.content is not None}
        return opened.n_contents, len(named)


def test_a_new_image_has_of_the_old_one_what_has_not_changed(site: Site) -> None:
    image = image_of(site)
    held, named = contents_of(image)
    assert held == named
    (site.package / "data.txt").write_text("forty-three\n")
    assert site.brigade().stdout == "forty-three\n\n"
    assert contents_of(image) == (held + 1, named), "the old contents, and one new one"
    site.brigade("other")
    assert site.brigade("other").returncode == 0 and site.report()["image"]["grown"]
    held_now, named_now = contents_of(image)
    assert held_now - named_now == 1 and named_now > named, "growing, too, takes it over"
    site.brigade(run=("--renew",))
    held, named = contents_of(image)
    assert held == named, "--renew believes nothing"


def test_nothing_is_taken_from_an_image_of_somebody_else(site: Site) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give a file away")
    image = image_of(site)
    os.chown(image, 1234, -1)
    (site.package / "data.txt").write_text("forty-three\n")
    assert site.brigade().stdout == "forty-three\n\n"
    held, named = contents_of(image)
    assert held == named


def test_an_image_of_the_users_own_grows_when_asked(site: Site, tmp_path: Path) -> None:
    own = tmp_path / "own.brg"
    for end in ("", ".records"):
        own.with_name(own.name + end).write_bytes(Path(f"{image_of(site)}{end}").read_bytes())
    for _ in range(2):
        site.brigade("other", run=("--image", str(own)))
        assert site.report()["misses"]["total"] > 0, "brigade run leaves it as it is"
    done = json.loads(update(own, "--json").stdout)
    with Image(own) as image:
        assert done["grown"]["id"] == image.id
    site.brigade("other", run=("--image", str(own)))
    assert site.report()["misses"]["total"] == 0, site.report()["misses"]
    again = update(own)
    assert again.returncode == 0 and "missed nothing" in again.stdout


def test_an_image_without_records_says_what_to_do(site: Site) -> None:
    image = image_of(site)
    site.brigade("other")
    before = image.read_bytes()
    os.unlink(f"{image}.records")
    done = update(image)
    assert done.returncode == 4 and "brigade run --renew" in done.stderr
    assert image.read_bytes() == before
    assert site.brigade("other").returncode == 0


def test_a_path_that_cannot_be_held_does_not_make_every_run_grow(site: Site) -> None:
    pipe = site.package / "pipe"
    os.mkfifo(pipe)
    site.app.write_text(
        "import pkg, os\nos.stat(os.path.join(os.path.dirname(pkg.__file__), 'pipe'))\n"
    )
    site.brigade()
    grown = []
    for _ in range(3):
        assert site.brigade().returncode == 0
        grown.append(site.report()["image"]["grown"] is not None)
    assert grown[-1] is False, "tried once is enough"
