"""`brigade run --fork` on one machine of a program that lies on its own disk: the image says which
files there are and holds none, and the one process that opens them opens them where they lie."""

from __future__ import annotations

import shutil
from pathlib import Path

import mpi_world
import pytest
from click.testing import CliRunner
from project import Site

from brigade.cli.image import info
from brigade.image.reader import Image

FORK = ("--fork", "-n", "2")
BIG = 12_000_000


@pytest.fixture
def site(site: Site) -> Site:
    """Its program reads a large file."""
    (site.package / "large.txt").write_text("x" * BIG)
    init = site.package / "__init__.py"
    init.write_text(
        init.read_text() + "with open(__file__.replace('__init__.py', 'large.txt')) as large:\n"
        "    SIZE = len(large.read())\n"
    )
    return site


def image_of(site: Site) -> Path:
    return next((site.base / "cache/images").glob("*.brg"))


def is_forked_as_plain(site: Site, *run: str) -> dict:
    """The report of a forked start that said what two plain ones say."""
    forked = site.brigade(run=(*FORK, *run))
    assert forked.returncode == 0, forked.stderr
    assert forked.stdout.splitlines() == site.plain().stdout.splitlines() * 2
    report = site.report()
    assert report["unstaged"] is None and report["fork"]["ranks"] == 2, report
    return report


#: as they would be used, without what `mpi_world` sets, which could say where ranks start
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def test_nothing_is_copied_and_what_is_opened_is_no_miss(site: Site) -> None:
    first, second = is_forked_as_plain(site), is_forked_as_plain(site)
    assert image_of(site).stat().st_size < BIG
    with Image(image_of(site)) as image:
        held = [entry.path for entry in image.entries() if entry.content is not None]
    assert held and all(path.startswith("/.brigade/") for path in held)
    assert first["image"]["renewed"] == "first run" and second["image"]["renewed"] is None
    for report in (first, second):
        assert report["staging"]["stays_on_disk"] and report["misses"]["total"] == 0, report
        assert report["staging"]["bytes_per_node"] < BIG
        assert report["operations"]["after_per_rank"]["max"] == 0
    said = " ".join(site.brigade(run=FORK).stderr.split())
    assert "nothing is on a shared file system: files are opened where they lie" in said
    told = CliRunner().invoke(info, [str(image_of(site))])
    assert told.exit_code == 0 and "none: files are opened where they lie" in told.output


@pytest.mark.parametrize(
    "asked", [("--memory", "1G"), ("--strict",), ("--cover", "venv")], ids=lambda run: run[0]
)
def test_what_is_asked_for_is_copied(site: Site, asked: tuple[str, ...]) -> None:
    if asked[0] == "--cover":
        asked = ("--cover", str(site.base))
    is_forked_as_plain(site)
    report = is_forked_as_plain(site, *asked)
    assert not report["staging"]["stays_on_disk"]
    assert report["staging"]["bytes_per_node"] > BIG
    if asked[0] != "--cover":  # that is another image
        assert report["image"]["renewed"].startswith("it holds no contents")


def test_other_starts_have_an_image_with_contents_that_serves_forked_ones(site: Site) -> None:
    is_forked_as_plain(site)
    unforked = site.brigade(run=("-n", "2"))
    assert unforked.stdout.splitlines() == site.plain().stdout.splitlines() * 2
    report = site.report()
    assert report["image"]["renewed"].startswith("it holds no contents")
    assert report["misses"]["total"] == 0 and not report["staging"]["stays_on_disk"]
    report = is_forked_as_plain(site)  # its plan was made anew, too
    assert report["image"]["renewed"] is None
    assert report["staging"]["stays_on_disk"] and report["misses"]["total"] == 0
    assert report["staging"]["bytes_per_node"] < BIG
    assert site.brigade(run=("-n", "2")).returncode == 0
    assert site.report()["image"]["renewed"] is None


def test_what_it_grows_by_is_not_copied_either(site: Site) -> None:
    site.app.write_text(
        "import sys, pkg\n"
        "text = open(sys.argv[1]).read() if sys.argv[1:] else pkg.data()\n"
        "sys.stdout.write(f'{len(text)}\\n')\n"
    )
    late = site.base / "venv/late.txt"
    late.write_text("y" * (BIG + 1))
    is_forked_as_plain(site)
    for grown in (None, {"paths": 1}):
        forked = site.brigade(str(late), run=FORK)
        assert forked.stdout == f"{BIG + 1}\n" * 2, forked.stderr
        report = site.report()
        found = report["image"]["grown"]
        assert (found and {"paths": found["paths"]}) == grown
        assert report["misses"]["total"] == (0 if grown else 2), report["misses"]
    assert image_of(site).stat().st_size < BIG


@pytest.mark.parametrize("mpi", mpi_world.MPIS)
def test_nor_is_it_under_a_launcher_that_stays_on_this_machine(site: Site, mpi: str) -> None:
    launcher = mpi_world.LAUNCHERS[mpi]
    if not shutil.which(launcher[0]):
        pytest.skip(f"needs {launcher[0]}")
    words = [*launcher, "2", str(site.python), str(site.app)]
    said = site.plain().stdout.splitlines() * 2

    def report(*run: str) -> dict:
        done = site.brigade_of(words, (*run, "--fork"), ROOT)
        assert done.returncode == 0 and done.stdout.splitlines() == said, done.stderr
        found = site.report()
        assert found["fork"]["ranks"] == 2 and found["misses"]["total"] == 0, found
        return found

    for renewed in ("first run", None):
        found = report()
        assert found["image"]["renewed"] == renewed
        assert found["staging"]["stays_on_disk"] and found["staging"]["transport"] == "alone"
        assert found["staging"]["bytes_per_node"] < BIG
    assert image_of(site).stat().st_size < BIG
    found = report("--transport", "mpi")  # asked for: through the launcher, which may go anywhere
    assert found["image"]["renewed"].startswith("it holds no contents")
    assert found["staging"]["transport"] == "mpi" and found["staging"]["bytes_per_node"] > BIG
    assert not list(site.nodes.glob("brigade-*/[0-9a-f]*"))
