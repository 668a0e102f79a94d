"""Which entry made a call be in vain, and who loaded what."""

from __future__ import annotations

import os

import pytest
from made_traces import PYTHON, built, process, python
from profile_tools import brigade

from brigade.profile.insights import find
from brigade.profile.profile import load


def entry(profile, place, hwcaps=False):
    return next(e for e in profile.searches if e.place == place and e.hwcaps == hwcaps)


def wasted(profile) -> int:
    return sum(e.wasted for e in profile.searches)


def test_every_failed_call_by_path_has_one_cause():
    text = PYTHON + "stat ENOENT /scratch/run/.config\nexec ENOENT /usr/bin/ls\nlink EINVAL /a\n"
    profile = built(python(text)).profile
    assert wasted(profile) == profile.total(failed=True, by_path=True) == 8


def test_entries_of_sys_path_are_told_with_their_owner():
    profile = built(python()).profile
    site = entry(profile, "/mnt/soft/site")
    assert (site.cause, site.owner, site.found, site.wasted) == ("sys.path", "PYTHONPATH", 0, 0)
    assert site.calls == 4
    own = entry(profile, "/mnt/soft/py/lib/python3.11")
    assert (own.cause, own.owner, own.found) == ("sys.path", "python", 2)
    assert own.names == {"encodings": 2, "json": 1}
    assert entry(profile, "/mnt/soft/py/lib/python311.zip").owner == "python"


def test_submodules_are_looked_for_on_the_path_of_their_package():
    text = (
        PYTHON
        + """
stat ENOENT /mnt/soft/site/pkg/__init__.so
stat 0 /mnt/soft/site/pkg/__init__.py
stat 0 /mnt/soft/site/pkg
stat ENOENT /mnt/soft/site/pkg/part.abi3.so
stat 0 /mnt/soft/site/pkg/part.py
"""
    )
    profile = built(python(text)).profile
    package = entry(profile, "/mnt/soft/site/pkg")
    assert (package.cause, package.owner, package.wasted) == ("package path", "pkg", 1)
    names = {node.name: node for node in profile.tree}
    assert {"pkg", "pkg.part", "json", "encodings"} <= set(names)
    assert profile.tree[names["pkg.part"].loader].name == "pkg"
    assert not names["pkg.part"].certain


def test_a_pth_file_that_names_an_entry_is_its_owner(tmp_path):
    site, extra = tmp_path / "site-packages", tmp_path / "extra"
    site.mkdir(), extra.mkdir()
    pth = site / "more.pth"
    pth.write_text(f"import sys\n{extra}\n")
    text = PYTHON + f"open 3 {pth}\nstat 0 {extra}\nstat 0 {extra}/mod.py\n"
    profile = built(python(text)).profile
    assert entry(profile, str(extra)).owner == str(pth)


@pytest.mark.parametrize(
    ("line", "cause", "owner"),
    [
        ("exec ENOENT /usr/bin/tool", "PATH", "PATH"),
        ("stat ENOENT /usr/bin/tool", "PATH", "PATH"),
        ("open ENOENT /usr/lib/locale/C.UTF-8/LC_CTYPE", "locale", "LANG"),
        ("open ENOENT /usr/share/locale/de/LC_MESSAGES/git.mo", "locale", "LANG"),
        ("open ENOENT /usr/share/terminfo/x/xterm", "locale", "TERM"),
        ("open ENOENT /usr/lib/x86_64-linux-gnu/gconv/gconv-modules", "locale", "iconv"),
        ("access ENOENT /etc/ld.so.preload", "other", "ld.so"),
        ("link EINVAL /scratch/run", "other", "resolving links"),
        ("stat ENOENT /mnt/soft/py/bin/pyvenv.cfg", "other", "python's search for its prefix"),
        ("stat ENOENT /mnt/soft/lib/python3/dist-packages", "sys.path", "site"),
        ("open ENOENT /scratch/run/restart.h5", "other", "app"),
    ],
)
def test_what_neither_loader_nor_imports_explain_has_its_cause(line, cause, owner):
    found = built(process("exec 0 /mnt/soft/app/bin/app\n" + line)).profile.searches
    assert [(e.cause, e.owner, e.wasted) for e in found if e.wasted] == [(cause, owner, 1)]


def test_entries_are_medians_over_ranks():
    once = "exec 0 /mnt/soft/app/bin/app\nopen ENOENT /scratch/x\n"
    ranks = [process(once, rank=r, pid=100 + r) for r in range(2)]
    ranks.append(process(once + "open ENOENT /scratch/x\n" * 3, rank=2, pid=102))
    assert entry(built(*ranks).profile, "/scratch").wasted == 1


def test_an_import_that_finds_nothing_ends_where_the_next_begins():
    stdlib = "/mnt/soft/py/lib/python3.11"
    once = f"stat 0 /mnt/soft/site\nstat 0 {stdlib}\n"
    late = f"stat 0 {stdlib}/late.py\nopen 3 {stdlib}/__pycache__/late.cpython-311.pyc\n"
    story = built(python(PYTHON + once + once + late)).ranks[0].program
    found = next(search for search in story.searches if search.name == "late")
    assert len(found.events) == 4
    lost = story.searches[story.searches.index(found) - 1]
    assert (lost.name, lost.found, len(lost.events)) == ("", "", 2)


def test_nodes_and_the_unattributed_make_the_ranks_total():
    from brigade.profile.tree import unattributed

    made = built(python())
    nodes = made.profile.tree
    rest = unattributed(made.ranks[0], nodes)
    assert sum(node.calls for node in nodes) + rest == made.profile.total()
    assert 0 < rest < made.profile.total() / 2
    assert [node.kind for node in nodes if node.loader == -1] == ["program"]


def test_import_times_make_the_module_tree_certain():
    class Line:
        def __init__(self, name, self_us, parent):
            self.name, self.self_us, self.parent = name, self_us, parent

    lines = [Line("json", 900, 1), Line("encodings", 30, -1)]
    nodes = built(python(), importtimes=lines).profile.tree
    json = next(node for node in nodes if node.name == "json")
    assert (nodes[json.loader].name, json.certain, json.import_us) == ("encodings", True, 900)


def test_statements_in_functions_count_after_those_that_run_at_once():
    from brigade.profile.askers import Mentions

    said = Mentions(
        "import a.b, c as d\nfrom . import near\nfrom ..up import (one,\n  two as three)\n"
        "try:\n    import early\nexcept ImportError:\n    pass\n"
        "def later():\n    import late\n\nclass X:\n    import inclass\n",
        "pkg.sub",
    )
    wanted = {"a", "a.b", "c", "pkg.sub.near", "pkg.up.one", "pkg.up.two", "early"}
    assert wanted <= set(said.at_once)
    assert "inclass" in said.at_once and "late" not in said.at_once
    assert set(said.later) == {"late"}


def test_a_place_is_told_without_dots_where_that_is_the_same_folder(tmp_path):
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real/deep")
    text = f"stat ENOENT {tmp_path}/real/deep/../a\nstat ENOENT {tmp_path}/link/../b\n"
    places = {e.place for e in built(process(text)).profile.searches}
    assert places == {f"{tmp_path}/real", f"{tmp_path}/link/.."}


@pytest.mark.parametrize("end", ["", "/"])  # a slash: glibc 2.39 and later
def test_a_look_for_a_folder_of_libraries_belongs_to_the_search(end):
    text = "exec 0 /bin/true\nopen ENOENT /soft/lib/libc.so.6\nstat ENOENT /soft/lib" + end
    profile = built(process(text, exe="/bin/true", env={"LD_LIBRARY_PATH": "/soft/lib"})).profile
    found = [(e.place, e.cause, e.wasted) for e in profile.searches if e.wasted]
    assert found == [("/soft/lib", "LD_LIBRARY_PATH", 2)]


@pytest.mark.parametrize("path", ["/mnt/soft/bin/:sub", "/mnt/soft/bin//::sub/.:"])
def test_entries_of_a_variable_are_known_however_they_are_written(path):
    text = "stat ENOENT /mnt/soft/bin/tool\nstat ENOENT /mnt/soft/run/sub/tool\n"
    text += "exec 0 /usr/bin/tool\n"
    profile = built(process(text, env={"PATH": path}, cwd="/mnt/soft/run")).profile
    found = {e.place: e.relative for e in profile.searches if e.cause == "PATH"}
    assert found == {"/mnt/soft/bin": False, "/mnt/soft/run/sub": True}
    assert any("relative entry" in one.title for one in find(profile))


def test_an_empty_entry_is_told_of_a_real_program(tmp_path):
    """The loader looks into the working folder first."""
    env = {"LD_LIBRARY_PATH": "/usr/lib/no-such:"}
    out = tmp_path / "p.json"
    words = ["profile", "-q", "--html", "none", "--json", str(out), "--", "/usr/bin/env", "true"]
    assert brigade(*words, **env).returncode == 0
    found = [e for e in load(out).searches if e.cause == "LD_LIBRARY_PATH" and e.relative]
    assert {e.place for e in found if not e.hwcaps} == {os.getcwd()}
