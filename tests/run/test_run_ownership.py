"""What another user left in the cache is not believed: what it holds would be run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from project import Site

from brigade.errors import ImageError
from brigade.image import grow
from brigade.image.missed import missed_of, pending
from brigade.imports import inside_image
from brigade.job import prepare
from brigade.job.leftovers import remove_trials


@pytest.fixture
def planted(site: Site) -> Site:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give a file away")
    assert site.brigade().returncode == 0
    os.chown(image_of(site), 61002, 61002)
    return site


def image_of(site: Site) -> Path:
    return next((site.base / "cache/images").glob("*.brg"))


def test_an_image_of_another_user_in_the_cache_is_made_anew(planted: Site) -> None:
    again = planted.brigade()
    assert again.stdout == planted.plain().stdout
    assert "belongs to user 61002" in again.stderr and planted.report()["image"]["trial"]
    assert image_of(planted).stat().st_uid == 0
    assert "making an image" not in planted.brigade().stderr


def test_records_and_misses_of_another_user_are_as_if_they_were_not_there(planted: Site) -> None:
    image = str(image_of(planted))
    miss = ("open", "/trap")
    Path(missed_of(image)).write_text(json.dumps([miss]))
    grow.keep_records(str(planted.base), image, ["/trap"], [miss])
    assert pending(image) == grow.carried(image) == [miss]
    os.chown(grow.records_of(image), 61002, 61002)
    with pytest.raises(ImageError, match="belongs to user 61002"):
        grow.grow(image)
    os.chown(missed_of(image), 61002, 61002)
    assert pending(image) == grow.carried(image) == []
    assert planted.brigade().returncode == 0
    assert os.stat(grow.records_of(image)).st_uid == 0


def test_an_image_of_another_user_is_not_broadcast(
    planted: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inside_image, "image_path", lambda *_: str(image_of(planted)))
    with pytest.raises(ImageError, match="belongs to user 61002"):
        inside_image.offer(None, [])


def trial_folder(image: Path) -> Path:
    return Path(f"{image}.trial-{os.uname().nodename}-{os.getpid()}")


def test_a_folder_that_lies_where_a_trial_would_write_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "remove_trials", lambda _: None)  # as if it were another's
    trial_folder(tmp_path / "x.brg").mkdir()
    course = SimpleNamespace(settings=SimpleNamespace(trial_command=None))
    with pytest.raises(FileExistsError):
        prepare._make_image(course, None, str(tmp_path / "x.brg"), None, False)


def test_a_trial_folder_of_a_killed_run_with_the_same_number_is_removed(tmp_path: Path) -> None:
    trial_folder(tmp_path / "x.brg").mkdir()
    remove_trials(str(tmp_path / "x.brg"))
    assert not trial_folder(tmp_path / "x.brg").exists()


def test_files_beside_an_image_are_written_through_no_link(site: Site, tmp_path: Path) -> None:
    """Neither under their own name nor under one that could be foreseen."""
    image, victim = str(tmp_path / "x.brg"), tmp_path / "victim"
    victim.write_text("kept")
    records = grow.records_of(image)
    for name in (records, f"{records}.{os.uname().nodename}-{os.getpid()}"):
        os.symlink(victim, name)
    grow.keep_records(str(tmp_path), image)
    assert victim.read_text() == "kept" and not os.path.islink(records)
    assert os.stat(records).st_mode & 0o777 == 0o600
