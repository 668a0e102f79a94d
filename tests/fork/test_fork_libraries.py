"""Modules that bring a library that names `environ` are left: it may read what no trial sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from warm_world import Warm

from brigade.fork.libraries import look, note
from brigade.fork.rules import Rule
from brigade.fork.trial_plan import make
from brigade.trial.modules import Event, Execution, RankModules

NAMES = "extern char **%s;\nchar **own(void) { return %s; }\n"
USES = "char **own(void);\nchar **other(void) { return own(); }\n"


def library(path: Path, text: str, *more: str) -> str:
    build = ["cc", "-x", "c", "-", "-shared", "-fPIC", "-o", str(path), "-xnone", *more]
    subprocess.run(build, input=text, text=True, check=True)
    return str(path)


@pytest.mark.parametrize("name", ["environ", "_environ", "__environ"])
def test_a_library_that_names_it_is_found(tmp_path: Path, name: str) -> None:
    assert look(library(tmp_path / "libx.so", NAMES % (name, name))) == ("library", ("libc.so.6",))


def test_other_names_are_none_and_what_cannot_be_read_is_in_doubt(tmp_path: Path) -> None:
    text = 'int my_environ;\nchar *getenv(const char *);\nchar *f(void) { return getenv("X"); }\n'
    assert look(library(tmp_path / "libx.so", text))[0] == ""
    (tmp_path / "none.so").write_text("no library\n")
    assert look(str(tmp_path / "none.so"))[0] == look(str(tmp_path / "gone.so"))[0] == "unread"


def test_the_c_library_may(tmp_path: Path) -> None:
    maps = Path("/proc/self/maps").read_text().split()
    (libc,) = {word for word in maps if word.rpartition("/")[2].startswith("libc.so")}
    assert look(libc)[0] == ""


WARM = (Rule("first", "clock", "for this test"),)
OBJECTS = {
    "/l/libnames.so": ("library", ()),
    "/l/libuses.so": ("", ("libnames.so", "libc.so.6")),
    "/m/ext.so": ("", ("libuses.so",)),
    "/m/other.so": ("", ("libc.so.6",)),
    "/m/unread.so": ("unread", ()),
}


def trial(*loads: tuple[str, str], **variables: str) -> RankModules:
    """Modules `first`, `ext` (of /m/ext.so), `other`; `loads` are (module, object)."""
    origins = {"first": "/first.py", "ext": "/m/ext.so", "other": "/m/other.so"}
    executions = [Execution(name, origin, "") for name, origin in origins.items()]
    rank = RankModules(0, "n0", True, executions, loaded=list(loads), variables=variables)
    note([rank], lambda path: OBJECTS.get(path, ("", ())))
    return rank


def test_who_loads_it_or_needs_it_brings_it_whoever_was_first() -> None:
    rank = trial(
        ("", "/l/libc.so.6"), ("first", "/l/libnames.so"), ("ext", "/m/ext.so"),
        ("ext", "/l/libuses.so"), ("other", "/m/other.so"), ("other", "/m/unread.so"),
    )  # fmt: skip
    assert make([rank]).left.keys() == {"first", "ext", "other"}
    assert make([rank]).left["ext"].why == (
        "brings a library that may read all of the environment unseen (/l/libnames.so)"
    )
    assert make([rank]).left["other"].why == (
        "brings a library that could not be looked at (/m/unread.so)"
    )


def packaged(*loads: tuple[str, str], needs: str) -> RankModules:
    """`first` executes before `second`, whose object needs what `first` has loaded."""
    folder = needs.rpartition("/")[0]
    origins = {"first": "/first.py", "second": f"{folder}/second.so"}
    executions = [Execution(name, origin, "") for name, origin in origins.items()]
    events = [Event("first", "clock", "", 1)]
    rank = RankModules(0, "n0", True, executions, events=events, loaded=list(loads))
    rank.loaded.append(("second", origins["second"]))
    note([rank], lambda path: ("", (needs,) if path == origins["second"] else ()))
    return rank


def test_who_brings_a_library_of_a_package_is_left_with_who_loaded_it_first() -> None:
    library = "/v/site-packages/p.libs/libx.so"
    left = make([packaged(("first", library), needs=library)]).left
    assert left["second"].why == "brings libx.so as does first, which is left"
    assert make([packaged(("first", library), needs=library)], rules=WARM).left == {}
    for loads in ([("", library)], [("second", library)], [("", library), ("first", library)]):
        assert make([packaged(*loads, needs=library)]).left.keys() == {"first"}


def test_libraries_of_the_system_bind_nobody() -> None:
    library = "/usr/lib/libx.so"
    assert make([packaged(("first", library), needs=library)]).left.keys() == {"first"}


def test_what_the_program_itself_loads_is_no_modules() -> None:
    rank = trial(("", "/l/libnames.so"), ("other", "/m/other.so"))
    assert not rank.events and not make([rank]).left


RULES = (Rule("*", "library", "of its own", detail="*/libnames*", names=("MINE_*",)),)
LOADS = ("ext", "/m/ext.so"), ("ext", "/l/libuses.so"), ("ext", "/l/libnames.so")


def test_by_a_rule_only_its_variables_count_and_a_template_compares_them() -> None:
    same = [trial(*LOADS, MINE_A="1", OTHER=str(number)) for number in range(2)]
    plan = make(same, rules=RULES)
    assert not plan.left
    assert b"MINE_*" in plan.packed()
    differ = [trial(*LOADS, MINE_A=str(number)) for number in range(2)]
    why = "reads MINE_A, which differed between the ranks of the trial"
    assert make(differ, rules=RULES).left["ext"].why == why
    same[0].events.append(Event("first", "setenv", "MINE_B", 1))
    why = "reads MINE_B, which the program had changed"
    assert make(same, rules=RULES).left["ext"].why == why


def test_a_rank_with_another_variable_of_a_rules_is_refused(warm: Warm) -> None:
    program = ["-c", "import csv, os; print(os.environ.get('MINE_A'))"]
    warm.trial(program)
    warm.plan["names"] = {"library": [("csv", ("MINE_*",)), ("not_warm", ("OTHER",))]}
    one, also, other, more = warm.ranks(
        program, {"MINE_A": "1"}, {"MINE_A": "1", "OTHER": "2"}, {"MINE_A": "2"},
        {"MINE_A": "1", "MINE_B": ""},
    )  # fmt: skip
    assert (one.refused, also.refused) == ("", "")
    assert other.refused == "variable MINE_A differs"
    assert more.refused == "variable MINE_B differs"


def test_it_is_seen_in_a_trial_and_explained(tmp_path: Path) -> None:
    names = library(tmp_path / "libnames.so", NAMES % ("environ", "environ"))
    uses = library(tmp_path / "libuses.so", USES, names, f"-Wl,-rpath,{tmp_path}")
    for module, path in (("names", names), ("uses", uses), ("free", "libm.so.6")):
        # what is loaded after an import within is not that import's
        text = f"import ctypes, colorsys_{module}\nctypes.CDLL({path!r})\n"
        (tmp_path / f"{module}.py").write_text(text)
        (tmp_path / f"colorsys_{module}.py").write_text("")
    (tmp_path / "app.py").write_text("import names, uses, free\n")
    words = ["names", "uses", "free", "-n", "2", "--", sys.executable, str(tmp_path / "app.py")]
    done = subprocess.run(
        [sys.executable, "-m", "brigade", "explain", "--fork", "-q", *words],
        env={**os.environ, "BRIGADE_CACHE": str(tmp_path / "cache")},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    why = f"brings a library that may read all of the environment unseen ({names})"
    assert f"  names: {why}" in told
    assert f"  uses: {why}" in told
    assert "free: warm, imported once per node" in told
