"""What a template has is shown to a rank although something has changed, before the job or in it:
where nothing has, tables answer as before; where something has, it is searched for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from project import Site

# what is imported after a file was read that is another now would be left for that
WARM = [word for name in ("pkg", "mine", "other") for word in ("--fork-warm", name)]
FORK = ("--fork", "-n", "2", *WARM)
MODULES = 60  # of the installed package
APP = """\
import os, sys
with open(os.path.join(os.environ["BASE"], "do")) as stream: words = stream.read().split()
if words:
    path = os.path.join(os.environ["BASE"], words[1])
    if words[0] == "write":
        with open(path, "a") as stream: stream.write("")
    elif words[0] == "mark":  # whole, for the other rank may be reading it
        with open(f"{path}.{os.getpid()}", "w") as stream: stream.write("mark = 'marked'\\n")
        os.replace(stream.name, path)
    elif words[0] == "unseen":
        os.waitpid(os.posix_spawn(os.environ["BASE"] + "/tool", ["tool", path], os.environ), 0)
    elif not os.path.exists(path + "-moved"):
        try: os.rename(path, path + "-moved")
        except OSError: pass  # the other rank was first
import mine.tool
from pkg import user
files = [m.__file__ for name, m in sorted(sys.modules.items()) if name.partition(".")[0] in
         ("mine", "pkg", "other", "faster")]
mark = getattr(user.pkg.deep, "mark", None)
sys.stdout.write(f"{mine.tool.extra} {user.faster} {user.late} {mark} {files}\\n")
"""
TRIES = "try: from {0} import {1}\nexcept ImportError: {1} = None\n"


@pytest.fixture
def site(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """`pkg.user` imports much, asks for `faster` and `pkg.late` in vain, and needs `other`; so
    does `mine`, beside the program, for `mine.extra`."""
    for number in range(MODULES):
        (site.package / f"m{number}.py").write_text("")
    (site.package / "user.py").write_text(
        "".join(f"import pkg.m{number}\n" for number in range(MODULES))
        + "try: import faster\nexcept ImportError: faster = None\n"
        + TRIES.format("pkg", "late")
        + "import other, pkg.deep\n"
    )
    (site.package.parent / "other.py").write_text("")
    (site.app.parent / "mine").mkdir()
    (site.app.parent / "mine/__init__.py").write_text("")
    (site.app.parent / "mine/tool.py").write_text(TRIES.format("mine", "extra"))
    site.app.write_text(APP)
    monkeypatch.setenv("BASE", str(site.base))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (site.base / "do").touch()
    compiled = site.plain()
    assert compiled.stdout.count("None") == 4, compiled.stderr
    return site


def told_to(site: Site, *arguments: str) -> Site:
    """By a file, as with another command line than the trial's modules would be left for that."""
    (site.base / "do").write_text(" ".join(arguments))
    return site


def is_forked_as_plain(site: Site, *arguments: str) -> float:
    """How many look-ups of a rank were answered, if two forked ones say what plain ones do."""
    forked = told_to(site, *arguments).brigade(run=FORK)
    assert forked.returncode == 0, forked.stderr
    assert forked.stdout.splitlines() == site.plain().stdout.splitlines() * 2
    report = site.report()
    assert report["image"]["trial"] is None and report["fork"]["ranks"] == 2, report
    assert not report["fork"]["plain"] and report["fork"]["modules"] > MODULES
    return report["operations"]["answered_per_rank"]["min"]


def first_run(site: Site) -> float:
    assert site.brigade(run=FORK).returncode == 0
    return is_forked_as_plain(site)


def test_a_file_beside_the_program_leaves_what_is_installed_to_the_tables(site: Site) -> None:
    before = first_run(site)
    (site.app.parent / "output.txt").write_text("a result\n")
    after = is_forked_as_plain(site)
    assert site.report()["image"]["left_to_file_system"] == [str(site.app.parent)]
    assert after < before + MODULES / 2, "none of the package's modules is searched for"
    assert is_forked_as_plain(site, "write", "project/more.txt") < before + MODULES / 2


@pytest.mark.parametrize(
    ("new", "says"),
    [
        ("project/other.py", "project/other.py"),
        ("project/other/__init__.py", "project/other/__init__.py"),
        ("project/faster.py", "project/faster.py"),
        ("project/mine/extra.py", "project/mine/extra.py"),
    ],
)
@pytest.mark.parametrize("by", ["the user", "a rank"])
def test_what_has_come_is_found(site: Site, new: str, says: str, by: str) -> None:
    first_run(site)
    path = site.base / new
    path.parent.mkdir(exist_ok=True)
    if by == "the user":
        path.write_text("")
        assert is_forked_as_plain(site)
    else:
        assert is_forked_as_plain(site, "write", new)
    assert says in site.plain().stdout


def test_a_module_that_a_rank_adds_to_a_package_is_found(site: Site) -> None:
    first_run(site)
    late = str((site.package / "late.py").relative_to(site.base))
    is_forked_as_plain(site, "write", late)
    assert "late.py" in site.plain().stdout


def test_after_a_program_that_is_not_seen_only_the_users_own_is_searched_for(site: Site) -> None:
    source = b"#include <fcntl.h>\nint main(int n, char **v) { return creat(v[n - 1], 0600) < 0; }"
    command = ["cc", "-static", "-w", "-x", "c", "-", "-o", str(site.base / "tool")]
    subprocess.run(command, input=source, check=True)
    before = first_run(site)
    assert is_forked_as_plain(site, "unseen", "project/mine/extra.py") < before + MODULES / 2
    assert "extra.py" in site.plain().stdout


def test_a_package_behind_a_link_is_searched_for_when_it_has_changed(site: Site) -> None:
    real = site.package.parent / "packages/deep"
    real.parent.mkdir()
    os.rename(site.package / "deep", real)
    os.symlink(real, site.package / "deep")
    first_run(site)
    is_forked_as_plain(site, "mark", str((real / "__init__.py").relative_to(site.base)))
    assert "marked" in site.plain().stdout


def test_a_folder_that_was_moved_leaves_nothing_to_the_tables(site: Site) -> None:
    """Other paths may lead elsewhere then."""
    folder = site.app.parent / "data"
    folder.mkdir()
    before = first_run(site)
    for _ in range(2):
        forked = told_to(site, "move", "project/data").brigade(run=FORK)
        moved = Path(f"{folder}-moved")
        os.rename(moved, folder)
        plain = site.plain()
        os.rename(moved, folder)
        assert forked.stdout.splitlines() == plain.stdout.splitlines() * 2, forked.stderr
        assert site.report()["operations"]["answered_per_rank"]["min"] > before + MODULES
