"""An image that another user left in the cache is not believed: what it holds would be run."""

from __future__ import annotations

import os

import pytest
from project import Site


@pytest.fixture
def planted(site: Site) -> Site:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give a file away")
    assert site.brigade().returncode == 0
    image = next((site.base / "cache/images").glob("*.brg"))
    os.chown(image, 61002, 61002)
    return site


def test_an_image_of_another_user_in_the_cache_is_made_anew(planted: Site) -> None:
    again = planted.brigade()
    assert again.stdout == planted.plain().stdout
    assert "belongs to user 61002" in again.stderr and planted.report()["image"]["trial"]
    image = next((planted.base / "cache/images").glob("*.brg"))
    assert image.stat().st_uid == 0
    assert "making an image" not in planted.brigade().stderr
