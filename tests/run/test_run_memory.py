"""`brigade run --memory`: what is left out is answered for by name, and read where it lies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from project import Site

BIG = 400_000


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A program that reads a large file of its package. Without byte code: sources beside it, which
    nobody reads, would be left out first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        site = Site(tmp_path_factory.mktemp("big")).make()
        (site.package / "data.txt").write_text("x" * BIG)
        assert site.brigade(run=("--memory", "1G")).returncode == 0
        yield site


def test_what_does_not_fit_is_read_from_the_file_system(big: Site) -> None:
    big.brigade(run=("--memory", "1G"))
    whole = big.report()["staging"]["memory"]["whole"]
    under = big.brigade(run=("--memory", str(whole - 1)))
    assert under.returncode == 0 and under.stdout == big.plain().stdout
    memory = big.report()["staging"]["memory"]
    assert memory["left_out_files"] == 1 and memory["left_out_bytes"] == BIG
    assert memory["largest"][0].endswith("pkg/data.txt")
    misses = big.report()["misses"]
    assert misses["by_cause"] == {"NO_CONTENT": 1}, "its stat is answered, its open is not"
    assert misses["paths"][0]["path"].endswith("pkg/data.txt")
    assert "1 file (390.6 KiB) left on the file system" in " ".join(under.stderr.split())
    assert not list(big.nodes.glob("brigade-*/[0-9a-f]*"))


def test_the_variable_says_it_too_and_nonsense_is_refused(big: Site) -> None:
    big.brigade(env={"BRIGADE_MEMORY": "2G"})
    assert big.report()["staging"]["memory"]["allowed"] == 2 << 30
    under = big.brigade(run=("--memory", "much"))
    assert under.returncode == 2 and "'much' is not a size" in under.stderr


def test_too_little_for_anything_runs_the_job_unstaged(big: Site) -> None:
    under = big.brigade(run=("--memory", "10k"))
    assert under.returncode == 0 and under.stdout == big.plain().stdout
    assert "--memory allows 10 KiB" in big.report()["unstaged"]


@pytest.mark.parametrize("view", ["auto", "python"])
def test_a_module_that_does_not_fit_is_imported_all_the_same(big: Site, view: str) -> None:
    """The smallest cap that holds anything: byte code and sources are left out, too."""
    big.brigade(run=("--memory", "10k"))
    least = int(big.report()["unstaged"].split(" KiB")[0].split()[-1]) + 1
    under = big.brigade(run=("--memory", f"{least}k", "--view", view))
    assert under.returncode == 0, under.stderr
    assert under.stdout == big.plain().stdout
    report = big.report()
    assert report["unstaged"] is None and report["staging"]["memory"]["left_out_files"] >= 5
    assert set(report["misses"]["by_cause"]) == {"NO_CONTENT"}, report["misses"]
