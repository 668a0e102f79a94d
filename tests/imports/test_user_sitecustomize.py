"""The user's own sitecustomize runs as it would without Brigade."""

from __future__ import annotations

import glob
import os
from pathlib import Path

import pytest
from module_tree import write
from staged import Staged

SHOW = (
    "import sys; m = sys.modules.get('sitecustomize');"
    "print(m and m.__file__, m and repr(m.__spec__.loader).split(' at 0x')[0],"
    " [p for p in sys.path if 'brigade' in p])"
)

TEXTS = {
    "that_works": "print('own', __name__, __file__, sorted(globals())[:3])",
    "that_imports_covered_modules": "import pkg.mod; print(pkg.mod.value)",
    "that_lacks_a_module": "import not_there_at_all",
    "that_raises": "raise RuntimeError('on purpose')",
    "that_raises_import_error_about_itself": "raise ImportError('no', name='sitecustomize')",
    "that_has_a_syntax_error": "def (",
    "that_changes_the_path": "import sys; sys.path.append('/added')",
    "that_exits": "import os; print('bye', flush=True); os._exit(7)",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_sitecustomize(world: Staged, name: str) -> None:
    own = write(world.folder / name / "sitecustomize.py", TEXTS[name]).parent
    env = {"PYTHONPATH": f"{own}:{world.lib}"}
    plain, view = world.plain(["-c", SHOW], env), world.run(["-c", SHOW], env)
    assert (view.stdout, view.stderr, view.returncode) == (
        plain.stdout,
        plain.stderr,
        plain.returncode,
    )
    assert plain.stdout


def test_without_one_the_interpreter_s_own_or_none_is_there(world: Staged) -> None:
    plain, view = world.plain(["-c", SHOW], world.env), world.run(["-c", SHOW], world.env)
    assert view.stdout == plain.stdout and not view.stderr


OLD = ["2.7", "3.6", "3.7"]


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("version", OLD)
def test_a_python_too_old_for_the_view_says_nothing(
    world: Staged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, own: bool
) -> None:
    """A child of a rank: the system's own tools, beside a newer Python of the user's."""
    found = glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python{version}"))
    if not found:
        pytest.skip(f"needs Python {version}")
    if own:
        write(tmp_path / "sitecustomize.py", "import sys; sys.own = __file__")
    show = "import sys, os; print((getattr(sys, 'own', 0), sorted(os.environ.items()), sys.path))"
    program = ["-c", show + "; print(sorted(name for name in sys.modules if sys.modules[name]))"]
    environ = {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    monkeypatch.setattr(world, "python", found[0])
    plain = world.plain(program, environ)
    assert plain.returncode == 0 and (str(tmp_path / "sitecustomize.py") in plain.stdout) is own
    for seen in (world.run(program, environ), world.trial(program, environ)):
        assert (seen.stdout, seen.stderr) == (plain.stdout, plain.stderr)


def test_its_search_is_that_of_a_module_not_yet_imported(own_world: Staged) -> None:
    """Brigade's own module of that name is gone by then: it would make this the search of a reload,
    which no finder of the view answers, and which other finders may treat as one."""
    own = write(own_world.lib / "sitecustomize.py", "print('staged')")
    own_world.trial(["-c", "pass"], own_world.env)
    own_world.stage()
    write(own, "print('from the shared file system')")
    assert own_world.run(["-c", "pass"], own_world.env).stdout == "staged\n"
