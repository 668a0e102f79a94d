"""A plan for `--fork` holds for what its trial was given, arguments, variables and files: with
others, what may depend on them is left to each rank."""

from __future__ import annotations

from pathlib import Path

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
    assert run(tried, RUN_ID="abc") == [f"{PLAIN} abc False"] * 2
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


def test_a_variable_that_a_module_reads_is_what_it_is_now(tried: Site) -> None:
    assert run(tried, RUN_ID="other") == [f"{PLAIN} other False"] * 2
    assert "run_id" not in left(tried)


def test_a_variable_that_is_not_there_any_more_is_read_by_each_rank(tried: Site) -> None:
    first, second = run(tried)
    assert first != second
    assert "run_id" in left(tried)
    assert "loud" not in left(tried)


def test_a_variable_that_the_program_reads_counts_for_what_it_imports_then(tried: Site) -> None:
    wide = "[0.333333333333333, 0.142857142857143]"
    assert run(tried, RUN_ID="abc", DOUBLE="1") == [f"{wide} abc False"] * 2
    assert {"uses"} <= set(left(tried)) <= {"table", "uses"}


SETTINGS = {
    "settings.py": "digits = 8\n",
    "model.py": "import settings, csv\ndigits = settings.digits\n",
}
SAY = "import model, os\nos.write(1, f'{model.digits}\\n'.encode())\n"


def other_site(folder: Path, **files: str) -> Site:
    site = Site(folder).make()
    for name, text in {**SETTINGS, **files}.items():
        (site.app.parent / name.replace("_py", ".py")).write_text(text)
    return site


PARSED = """\
import argparse
p = argparse.ArgumentParser()
p.add_argument("--double", action="store_true")
"""


def test_arguments_that_a_module_has_parsed_count_for_what_the_program_does(tmp_path: Path) -> None:
    site = other_site(tmp_path, config_py=PARSED + "args = p.parse_args()\n")
    site.app.write_text(
        "from config import args\nimport settings\nif args.double:\n    settings.digits = 15\n"
        + SAY
    )
    assert run(site) == ["8", "8"]
    assert run(site, "--double") == ["15", "15"]


def test_and_for_what_that_module_does(tmp_path: Path) -> None:
    parse = PARSED + "if p.parse_args().double:\n    import settings\n    settings.digits = 15\n"
    site = other_site(tmp_path, config_py=parse)
    site.app.write_text("import config\n" + SAY)
    assert run(site) == ["8", "8"]
    assert run(site, "--double") == ["15", "15"]


STUDY = {
    "__init__.py": "",
    "config.py": """\
import argparse
from dataclasses import dataclass, field

@dataclass
class Config:
    rate: float = 0.1
    tags: list = field(default_factory=list)

def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--rate", type=float, default=0.1)
    return Config(rate=p.parse_args().rate)
""",
    "model.py": "import model, decimal\nclass Model: pass\n",
    "train.py": """\
import os
from app.config import parse
from app.model import Model

def main():
    os.write(1, f"{parse().rate}\\n".encode())

if __name__ == "__main__":
    main()
""",
}


@pytest.mark.parametrize(
    ("before", "word"),
    [
        ("import sys\nimport platform, uuid, calendar\n", "other"),
        ("import os\n" + PARSED + "args = p.parse_args()\n", "--double"),
    ],
)
def test_what_nothing_was_chosen_before_is_warm_with_other_arguments(
    tmp_path: Path, before: str, word: str
) -> None:
    site = other_site(tmp_path)
    site.app.write_text(before + "import model\n" + SAY)
    run(site)
    warm = site.report()["fork"]["modules"]
    assert run(site, word) == ["8", "8"]
    assert (left(site), site.report()["fork"]["modules"]) == ({}, warm)


def test_a_program_of_imports_and_functions_has_them_warm_with_other_arguments(
    tmp_path: Path,
) -> None:
    """A parameter study, as they are mostly laid out."""
    site = other_site(tmp_path)
    app = site.app.parent / "app"
    app.mkdir()
    for name, text in STUDY.items():
        (app / name).write_text(text)
    warm = []
    for rate in ("0.1", "0.2"):
        words = [str(site.python), "-m", "app.train", "--rate", rate]
        options = ("--fork", "-n", "2", "--cover", str(site.base))
        done = site.brigade_of(words, options, cwd=site.app.parent)
        assert done.stdout.splitlines() == [rate] * 2, done.stderr
        warm.append(site.report()["fork"]["modules"])
    # what parsing itself imports, when it is done, and no more
    late = {"app", "model", "settings", "csv", "decimal"}
    assert not late & {name.partition(".")[0] for name in left(site)}
    assert warm[1] > 0.8 * warm[0]


def test_what_the_user_has_warm_is_warm_with_other_arguments(tmp_path: Path) -> None:
    site = other_site(tmp_path)
    site.app.write_text("import sys\nsys.argv.reverse()\n" + SAY)
    run(site)
    run(site, "other")
    assert "model" in left(site)
    options = ("--fork", "--fork-warm", "model", "-n", "2", "--cover", str(site.base))
    assert site.brigade("other", run=options).returncode == 0
    assert "model" not in left(site)


@pytest.mark.parametrize("name", ["case.json", "restart"])
def test_a_file_that_is_another_counts_for_what_comes_after_it_was_read(
    tmp_path: Path, name: str
) -> None:
    """In the folder of each case, and in one of which it changes."""
    choice = {
        "case.json": "json.load(open('case.json'))['double']",
        "restart": "os.path.exists('restart')",
    }[name]
    site = other_site(tmp_path)
    site.app.write_text(
        f"import json, os, settings\nif {choice}:\n    settings.digits = 15\n" + SAY
    )
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, double in ((first, "false"), (second, "true")):
        folder.mkdir()
        (folder / "case.json").write_text(f'{{"double": {double}}}')
    (second / "restart").write_text("")
    for folder in (first, first, second):
        found = run_in(site, folder)
        assert found == ["15" if folder is second else "8"] * 2
        assert ("model" in left(site)) is (folder is second)
    (first / "restart").write_text("")
    (first / "case.json").write_text('{"double": true}')
    assert run_in(site, first) == ["15"] * 2


def run_in(site: Site, folder: Path) -> list[str]:
    options = ("--fork", "-n", "2", "--cover", str(site.base))
    done = site.brigade(run=options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_choice_by_a_variable_that_a_module_has_read_counts(tmp_path: Path) -> None:
    site = other_site(tmp_path, config_py="import os\nprecision = os.environ['PRECISION']\n")
    site.app.write_text(
        "from config import precision\nimport settings\n"
        "if precision == 'double':\n    settings.digits = 15\n" + SAY
    )
    assert run(site, PRECISION="single") == ["8", "8"]
    assert run(site, PRECISION="double") == ["15", "15"]


def test_a_choice_by_the_number_of_a_task_or_of_a_rank_counts(tmp_path: Path) -> None:
    site = other_site(tmp_path)
    for name in ("SLURM_ARRAY_TASK_ID", "BRIGADE_RANK"):
        choice = f"if os.environ.get('{name}') == '1':\n    settings.digits = 15\n"
        site.app.write_text("import os, settings\n" + choice + SAY)
        found = [run(site, SLURM_ARRAY_TASK_ID=task) for task in "01"]
        expected = ["8", "15"] if name == "BRIGADE_RANK" else []
        assert [sorted(one, key=int) for one in found] == [
            expected or ["8"] * 2,
            expected or ["15"] * 2,
        ]


def test_a_folder_is_a_program_whose_text_is_in_it(tmp_path: Path) -> None:
    site = other_site(tmp_path)
    text = "import sys, settings\nif '--double' in sys.argv:\n    settings.digits = 15\n" + SAY
    program = site.app.parent / "program"
    program.mkdir()
    for name, content in {**SETTINGS, "__main__.py": text}.items():
        (program / name).write_text(content)
    site.app.unlink()
    for arguments, digits in (((), "8"), (("--double",), "15")):
        words = [str(site.python), str(program), *arguments]
        done = site.brigade_of(words, ("--fork", "-n", "2", "--cover", str(site.base)))
        assert done.stdout.splitlines() == [digits] * 2, done.stderr


def test_what_a_module_that_is_left_changes_is_read_by_who_comes_then(tmp_path: Path) -> None:
    """Given the same."""
    config = "import settings, time\nNOW = time.time()\nsettings.digits = 15\n"
    site = other_site(tmp_path, config_py=config)
    site.app.write_text("import settings, config\n" + SAY)
    assert [run(site) for _ in range(2)] == [["15", "15"]] * 2


@pytest.mark.parametrize("how", ["another", "new"])
def test_a_module_of_the_program_that_the_trial_did_not_import_may_set_anything(
    tmp_path: Path, how: str
) -> None:
    """A case in the working folder is a module; or there are settings of this place alone."""
    site = other_site(tmp_path)
    site.app.write_text(
        "import sys\nsys.path.insert(0, '.')\nimport settings\n"
        "try:\n    import case\nexcept ImportError:\n    pass\n" + SAY
    )
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    if how == "another":
        (first / "case.py").write_text("n = 1\n")
    (second / "case.py").write_text("import settings\nsettings.digits = 15\n")
    for folder, digits in ((first, "8"), (second, "15"), (first, "8")):
        assert run_in(site, folder) == [digits] * 2


def test_what_a_program_sets_in_objects_of_others_is_read_by_who_comes_then(tmp_path: Path) -> None:
    """Given the same, in the first run."""
    settings = (
        "import contextvars, functools, types\ncfg = types.SimpleNamespace(digits=8)\n"
        "table = {}\nclass Config: digits = 8\nprecision = contextvars.ContextVar('p', default=8)\n"
        "@functools.singledispatch\ndef cost(x): return 8\n"
    )
    model = (
        "import settings as s\ndigits = [s.cfg.digits, s.Config.digits, s.table.get('x', 8),"
        " s.precision.get(), s.cost(1)]\n"
    )
    site = other_site(tmp_path, settings_py=settings, model_py=model)
    site.app.write_text(
        "import settings\nfrom settings import Config, cost\n"
        "held = settings.cfg\nheld.digits = 15\nConfig.digits = 15\nsettings.table['x'] = 15\n"
        "settings.precision.set(15)\n@cost.register\ndef _(x: int): return 15\n" + SAY
    )
    assert run(site) == [str([15] * 5)] * 2


def test_a_branch_that_only_some_ranks_take_counts_whatever_the_trial_took(tmp_path: Path) -> None:
    site = other_site(tmp_path, where_py="import os\nRANK = int(os.environ['BRIGADE_RANK'])\n")
    site.app.write_text(
        "import settings\nfrom where import RANK\nif RANK >= 2:\n    settings.digits = 15\n" + SAY
    )
    done = site.brigade(run=("--fork", "-n", "4", "--cover", str(site.base)))
    assert sorted(done.stdout.split()) == ["15", "15", "8", "8"], done.stderr
