"""A warning of an import is shown in each rank as the rank's program has it shown, and does not
keep the module from being imported once a node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from warm_world import Warm

MODULES = {
    "pk/__init__.py": "from . import a, c\n",
    "pk/a.py": """
import os, warnings
from .kinds import Old
executions = os.open('executions', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(executions, b'.'); os.close(executions)
def old():
    warnings.warn('b is old', Old, stacklevel=3)
for _ in range(2): old()
warnings.warn(Old('a is old'))
warnings.warn('nobody sees this', DeprecationWarning)
with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    warnings.warn('nor this')
with warnings.catch_warnings(record=True) as kept:
    warnings.warn('seen here')
count = len(kept)
""",
    "pk/kinds.py": "class Old(FutureWarning): pass\n",
    "pk/c.py": """
from . import a
import decimal, warnings
warnings.warn_explicit('c', UserWarning, 'c.src', 3)
""",
    "fails.py": """
import pk.a, warnings
warnings.warn('before it fails')
raise ImportError('no')
""",
    "tries.py": "try:\n    import fails\nexcept ImportError:\n    pass\n",
}
SHOWN = "; import sys; print(pk.a.count, 'linecache' in sys.modules, len(sys.modules))"
#: programs, and whether the template's modules are shown: not where filters are others
PROGRAMS = {
    "by itself": ("import pk" + SHOWN, True),
    "twice": ("import pk.c, pk; pk.a.old(); pk.a.old()" + SHOWN, True),
    "to another stream": (
        "import contextlib, io; to = io.StringIO()\nwith contextlib.redirect_stderr(to):\n"
        "    import pk\nprint(repr(to.getvalue()))",
        True,
    ),
    "by a function of its own": (
        "import warnings; warnings.showwarning = lambda *a: print('own', *a[:4])\nimport pk",
        True,
    ),
    "into a list": (
        "import warnings\nwith warnings.catch_warnings(record=True) as kept:\n    import pk\n"
        "print([(str(w.message), w.category, w.filename, w.lineno) for w in kept])",
        True,
    ),
    "to a log": (
        "import logging, sys; logging.basicConfig(stream=sys.stdout); logging.captureWarnings(True)"
        "\nimport pk",
        True,
    ),
    "standard error is gone": ("import sys; sys.stderr = None\nimport pk" + SHOWN, True),
    "all are errors": (
        "import warnings; warnings.simplefilter('error')\ntry: import pk\n"
        "except Warning as error: print(repr(error))",
        False,
    ),
    "none is wanted": ("import warnings; warnings.filterwarnings('ignore')\nimport pk", True),
    "none of a module's": (
        "import warnings; warnings.filterwarnings('ignore', module='pk')\nimport pk",
        False,  # pk.c lays one to another place
    ),
    "none of these": (
        "import warnings; warnings.filterwarnings('ignore', 'a is|b is'); warnings.filterwarnings("
        "'ignore', module='(pk.)?c', category=UserWarning, lineno=3)\nimport pk" + SHOWN,
        False,
    ),
    "none of these, by their words": (
        "import warnings; warnings.filterwarnings('ignore', 'a is|b is|c')\nimport pk" + SHOWN,
        True,
    ),
    "all are wanted": ("import warnings; warnings.simplefilter('always')\nimport pk", False),
    "what fails": ("import tries" + "; import sys; print('fails' in sys.modules)", True),
}


@pytest.fixture
def world(warm: Warm) -> Warm:
    for name, text in MODULES.items():
        (warm.cwd / name).parent.mkdir(exist_ok=True)
        (warm.cwd / name).write_text(text)
    return warm


def executions(world: Warm) -> int:
    return len((world.cwd / "executions").read_text())


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_shown_as_by_itself(world: Warm, name: str) -> None:
    text, are_shown = PROGRAMS[name]
    (world.cwd / "app.py").write_text(text if are_shown else "import pk")
    world.trial(["app.py"])
    (world.cwd / "app.py").write_text(text)
    plain = world.plain(["app.py"])
    before = executions(world)
    ranks = world.ranks(["app.py"], {}, {})
    for rank in ranks:
        assert (rank.refused, rank.said()) == ("", plain.said())
    assert executions(world) - before == (1 if are_shown else 3)
    assert not world.report["left"]


HIDES = """
import os, warnings
executions = os.open('executions', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(executions, b'.'); os.close(executions)
warnings.warn('hidden', DeprecationWarning)
with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    warnings.warn('by itself')
def old():
    warnings.warn('hidden, too', PendingDeprecationWarning, stacklevel=2)
"""
COLLECTS = "import warnings\nwith warnings.catch_warnings(record=True) as kept:\n    {}\n"
COLLECTS += "    import uses\nprint([(str(w.message), w.filename, w.lineno) for w in kept])"
#: programs, and whether the template's `hides` is shown; `uses`, which is warned, may be executed
WANTS = {
    "nothing": ("import uses", True),
    "less": ("import warnings; warnings.simplefilter('ignore')\nimport uses", True),
    "what is hidden, in a list": (COLLECTS.format("warnings.simplefilter('always')"), False),
    "one of them": (COLLECTS.format("warnings.filterwarnings('once', 'hidden, too')"), True),
    "one of a module": (COLLECTS.format("warnings.filterwarnings('once', module='hides')"), False),
    "one of the module that asks": (
        COLLECTS.format("warnings.filterwarnings('once', module='uses')"),
        True,
    ),
    "others": (COLLECTS.format("warnings.filterwarnings('always', 'no such words')"), True),
    "others of a module": (
        COLLECTS.format("warnings.filterwarnings('always', module='another')"),
        True,
    ),
    "what is hidden, in a log": (
        "import io, logging, warnings; to = io.StringIO(); logging.basicConfig(stream=to)\n"
        "logging.captureWarnings(True); warnings.simplefilter('default')\nimport uses\n"
        "print(to.getvalue())",
        False,
    ),
    "none, as errors": (
        "import warnings; warnings.simplefilter('error')\ntry: import uses\n"
        "except Warning as error: print(repr(error))",
        False,
    ),
}


@pytest.mark.parametrize("name", WANTS)
def test_what_is_hidden_is_seen_by_who_wants_to_see_it(world: Warm, name: str) -> None:
    text, are_shown = WANTS[name]
    (world.cwd / "hides.py").write_text(HIDES)
    (world.cwd / "uses.py").write_text("import hides\nfor _ in range(9): hides.old()\n")
    (world.cwd / "app.py").write_text("import uses")
    world.trial(["app.py"])
    (world.cwd / "app.py").write_text(f"{text}\nimport warnings; print(warnings.filters)")
    plain = world.plain(["app.py"])
    before = executions(world)
    for rank in world.ranks(["app.py"], {}, {}):
        assert (rank.refused, rank.said()) == ("", plain.said())
    assert executions(world) - before == (1 if are_shown else 3)
    assert not world.report["left"]


def test_what_is_hidden_and_laid_to_who_imports_is_seen_where_that_is_another(world: Warm) -> None:
    (world.cwd / "lays.py").write_text(
        "import warnings\nwarnings.warn('on who asks', DeprecationWarning, stacklevel=2)\n"
    )
    (world.cwd / "above.py").write_text("import lays\n")
    (world.cwd / "app.py").write_text("import above")
    world.trial(["app.py"])
    (world.cwd / "app.py").write_text(
        COLLECTS.replace("uses", "above").format("warnings.filterwarnings('once', module='above')")
    )
    plain = world.plain(["app.py"])
    assert "on who asks" in plain.stdout
    for rank in world.ranks(["app.py"], {}, {}):
        assert (rank.refused, rank.said()) == ("", plain.said())


@pytest.mark.parametrize(
    "filters", ["simplefilter('ignore')", "simplefilter('ignore', UserWarning)"]
)
def test_what_is_hidden_and_laid_to_who_imports_stays_hidden_where_more_is(
    world: Warm, filters: str
) -> None:
    """As many programs begin. What it is laid to does not matter then: nothing is executed anew."""
    (world.cwd / "lays.py").write_text(
        "import os, warnings\nwarnings.warn('on who asks', DeprecationWarning, stacklevel=2)\n"
        "executions = os.open('executions', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "os.write(executions, b'.'); os.close(executions)\n"
    )
    (world.cwd / "above.py").write_text("import lays\n")
    (world.cwd / "app.py").write_text(f"import warnings; warnings.{filters}\nimport above")
    world.trial(["app.py"])
    (world.cwd / "executions").unlink()
    for rank in world.ranks(["app.py"], {}, {}):
        assert (rank.refused, rank.said()) == ("", ("", "", 0))
    assert (world.cwd / "executions").read_text() == "."


@pytest.mark.parametrize("program", [
    "import blames", "import asks", "import asks, pk", "import deep", "import blames\nimport asks",
])  # fmt: skip
def test_who_imports_is_warned_by_a_module_that_is_left(world: Warm, program: str) -> None:
    for name, text in {
        "blames.py": "import warnings, decimal\nwarnings.warn('not me', stacklevel=2)\n",
        "asks.py": "import blames\n",
        "deep.py": "import warnings\nwarnings.warn('whoever', stacklevel=9)\n",
    }.items():
        (world.cwd / name).write_text(text)
    (world.cwd / "app.py").write_text(f"{program}\nimport csv, sys; print(len(sys.modules))\n")
    world.trial(["app.py"])
    plain = world.plain(["app.py"])
    assert "UserWarning" in plain.stderr
    for rank in world.ranks(["app.py"], {}, {}):
        assert (rank.refused, rank.said()) == ("", plain.said())
    assert "warns whoever imports it" in world.report["left"].values()


def test_what_was_warned_of_once_is_not_warned_of_again_as_a_module_is_shown(world: Warm) -> None:
    (world.cwd / "app.py").write_text(
        "import warnings\nfor name in ('json', 'decimal', 'csv'):\n"
        "    warnings.warn('again', UserWarning)\n    __import__(name)\n"
    )
    world.trial(["app.py"])
    plain = world.plain(["app.py"])
    assert plain.stderr.count("UserWarning: again") == 1
    for rank in world.ranks(["app.py"], {}, {}):
        assert (rank.refused, rank.said()) == ("", plain.said())


def test_nor_as_a_module_is_not_shown_for_what_the_program_has_put_there(world: Warm) -> None:
    (world.cwd / "helper.py").write_text("")
    (world.cwd / "asks.py").write_text("import helper\n")
    lines = "import sys, types, warnings\n{}for _ in range(2):\n    warnings.warn('again')\n"
    lines += "    import asks\nprint(asks.helper.__spec__ is None)\n"
    (world.cwd / "app.py").write_text(lines.format(""))
    world.trial(["app.py"])
    own = "sys.modules['helper'] = types.ModuleType('helper')\n"
    (world.cwd / "app.py").write_text(lines.format(own))
    plain = world.plain(["app.py"])
    assert (plain.stdout, plain.stderr.count("UserWarning: again")) == ("True\n", 1)
    for rank in world.ranks(["app.py"], {}, {}):
        assert (rank.refused, rank.said()) == ("", plain.said())


@pytest.mark.parametrize("option", ["error", "ignore", "always", "once", "default::FutureWarning"])
def test_options_count_for_template_and_rank(world: Warm, option: str) -> None:
    (world.cwd / "app.py").write_text("import pk" + SHOWN)
    command = ["-W", option, "app.py"]
    world.trial(command)
    plain = world.plain(command)
    for rank in world.ranks(command, {}, {}):
        assert (rank.refused, rank.said()) == ("", plain.said())


class Site:
    """The modules, without what keeps a file, and what a real trial and job make of a program."""

    def __init__(self, base: Path) -> None:
        self.base = base
        (base / "node").mkdir()
        for name, text in MODULES.items():
            lines = [line for line in text.splitlines() if "executions" not in line]
            self.write(name, "\n".join(lines))
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
            "BRIGADE_CACHE": str(base / "cache"), "BRIGADE_NODE_DIR": str(base / "node"),
        }  # fmt: skip

    def write(self, name: str, text: str) -> None:
        (self.base / name).parent.mkdir(exist_ok=True)
        (self.base / name).write_text(text)

    def brigade(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "brigade", *words, "--", sys.executable, "app.py"], check=True,
            env=self.environment, cwd=self.base, capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    def run(self) -> subprocess.CompletedProcess[str]:
        """The second job of two ranks, of one template."""
        words = ["run", "-q", "--fork", "-n", "2", "--trial-quiet", "2", "--json", "report.json"]
        self.brigade(*words)
        done = self.brigade(*words)
        told = json.loads((self.base / "report.json").read_text())["fork"]
        assert told["ranks"] == 2 and len(set(done.stdout.split())) == 1
        return done


def test_a_trial_leaves_no_module_for_a_warning(tmp_path: Path) -> None:
    """One that prints by itself is left, and one that warns whoever imports it."""
    site = Site(tmp_path)
    site.write("prints.py", "import sys; sys.stderr.write('p\\n')\n")
    site.write("blames.py", "import warnings; warnings.warn('not me', stacklevel=2)\n")
    site.write("app.py", "import pk, prints, blames, os; print(os.getppid(), flush=True)\n")
    done = site.run()
    assert done.stderr.count("Old: b is old") == done.stderr.count("Old: a is old") == 2
    assert done.stderr.count("c.src:3: UserWarning: c") == 2
    assert done.stderr.count(f"{tmp_path}/app.py:1: UserWarning: not me") == 2
    plan = site.brigade("explain", "--fork").stdout
    assert "prints: writes output (2)" in plan and "blames: writes output (2)" in plan, plan
    assert "pk" not in plan


@pytest.mark.parametrize("action", ["always", "default"])
def test_what_only_the_program_wants_to_see_is_left(tmp_path: Path, action: str) -> None:
    site = Site(tmp_path)
    site.write("hides.py", "import warnings; warnings.warn('hidden', DeprecationWarning)\n")
    wants = f"import os, warnings; warnings.simplefilter('{action}')"
    site.write("app.py", f"{wants}\nimport hides; print(os.getppid(), flush=True)\n")
    assert site.run().stderr.count("DeprecationWarning: hidden") == 2
