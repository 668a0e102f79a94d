"""A plan for `--fork` holds for the arguments and variables of its trial: with others, what may
depend on them is left to each rank."""

from __future__ import annotations

import pytest
from project import Site

FILES = {
    "conf.py": "digits = 3\n",
    "table.py": "import conf\nVALUES = [round(1 / n, conf.digits) for n in (3, 7)]\n",
    "uses.py": "import table\n",
    "loud.py": "import os, sys\nLOG = os.getpid() if '--verbose' in sys.argv else 0\n",
    "run_id.py": "import os, uuid\nRUN = os.environ.get('RUN_ID') or uuid.uuid4().hex\n",
    "early.py": "import conf\n",
}
APP = """\
import os, sys
import conf, early, loud, run_id
if "--digits" in sys.argv:
    conf.digits = int(sys.argv[2])
if os.environ.get("DOUBLE"):
    conf.digits = 15
import uses
text = f"{uses.table.VALUES} {run_id.RUN} {loud.LOG == os.getpid()}"
sys.stdout.write(text + "\\n")
"""
PLAIN = "[0.333, 0.143]"


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site with an image, whose trial had no arguments, and RUN_ID."""
    site = Site(tmp_path_factory.mktemp("otherwise")).make()
    for name, text in FILES.items():
        (site.app.parent / name).write_text(text)
    site.app.write_text(APP)
    assert run(site, RUN_ID="abc") == [f"{PLAIN} abc False"] * 2
    return site


def run(site: Site, *arguments: str, **variables: str) -> list[str]:
    options = ("--fork", "-n", "2", "--cover", str(site.base))
    done = site.brigade(*arguments, run=options, env=variables)
    assert done.returncode == 0, done.stderr
    assert site.report()["fork"]["ranks"] == 2
    return done.stdout.splitlines()


def left(site: Site) -> dict[str, str]:
    """Modules that were left here, and why: as many as there is room for."""
    return site.report()["fork"]["dropped"]


def test_with_the_same_nothing_more_is_left(tried: Site) -> None:
    assert run(tried, RUN_ID="other") == [f"{PLAIN} other False"] * 2
    assert left(tried) == {}
    assert tried.report()["fork"]["modules"] >= len(FILES)


def test_with_other_arguments_what_comes_after_a_choice_is_left_and_what_looks_at_them(
    tried: Site,
) -> None:
    assert run(tried, "--digits", "8", RUN_ID="abc") == ["[0.33333333, 0.14285714] abc False"] * 2
    assert {"table"} <= set(left(tried)) <= {"table", "uses", "loud"}
    assert "arguments" in left(tried)["table"]


def test_a_module_that_looks_at_the_arguments_is_a_ranks_own(tried: Site) -> None:
    assert run(tried, "--verbose", RUN_ID="abc") == [f"{PLAIN} abc True"] * 2


def test_a_variable_that_is_not_there_any_more_is_read_by_each_rank(tried: Site) -> None:
    first, second = run(tried)
    assert first != second
    assert set(left(tried)) == {"run_id"}


def test_a_variable_that_the_program_reads_counts_for_what_it_imports_then(tried: Site) -> None:
    wide = "[0.333333333333333, 0.142857142857143]"
    assert run(tried, RUN_ID="abc", DOUBLE="1") == [f"{wide} abc False"] * 2
    assert {"uses"} <= set(left(tried)) <= {"table", "uses"}
