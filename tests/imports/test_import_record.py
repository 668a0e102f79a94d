"""The trial's recorder: everything that is searched is written, and nothing else changes."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from module_tree import TRIAL_S, make_tree
from staged import Staged, read_records


@pytest.fixture
def tried(tmp_path: Path, python: str) -> Staged:
    make_tree(tmp_path / "lib")
    world = Staged(tmp_path, python, roots=[tmp_path / "lib"])
    world.env = {"PYTHONPATH": str(tmp_path / "lib")}
    return world


def imports(world: Staged) -> dict[str, tuple[str, str, str]]:
    """name -> (status, by, origin)"""
    return {r[3]: (r[1], r[2], r[4]) for r in read_records(world.records) if r[0] == "import"}


def test_found_and_missing_names_are_recorded_with_who_asked(tried: Staged) -> None:
    code = "import pkg.sub\ntry:\n  import needs\nexcept ImportError:\n  pass"
    assert tried.trial(["-c", code], tried.env).returncode == 0
    found, lib = imports(tried), tried.folder / "lib"
    assert found["pkg"] == ("0", "__main__", f"{lib}/pkg/__init__.py")
    assert found["pkg.sub.leaf"] == ("0", "pkg.sub", f"{lib}/pkg/sub/leaf.py")
    assert found["not_there"] == ("2", "needs", "")


def test_path_entries_and_interpreter_are_recorded(tried: Staged) -> None:
    tried.trial(["-c", "import pkg.sub"], tried.env)
    what, lib = tried.seen(), tried.folder / "lib"
    assert {str(lib), f"{lib}/pkg", f"{lib}/pkg/sub"} <= set(what.path_entries)
    (interpreter,) = what.interpreters.values()
    assert interpreter.extension_suffixes and str(lib) in interpreter.path


@pytest.mark.parametrize("last", ["os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_nothing_is_lost_when_a_process_ends_at_once(tried: Staged, last: str) -> None:
    done = tried.trial(["-c", f"import os, pkg.mod; {last}"], tried.env)
    assert done.returncode in (3, -signal.SIGKILL)
    assert imports(tried)["pkg.mod"][0] == "0"


def test_a_forked_child_writes_its_own_file(tried: Staged) -> None:
    code = "import os, pkg\nif not os.fork():\n  import solo; os._exit(0)\nos.wait()"
    tried.trial(["-c", code], tried.env)
    files = sorted(tried.records.glob("*.py.rec"))
    assert len(files) == 2
    pids = {f.name.split(".")[-4] for f in files}
    assert {r[6] for r in read_records(tried.records)} == pids
    assert "solo" in imports(tried)


def test_the_program_sees_no_difference(tried: Staged) -> None:
    code = (
        "import sys, os, traceback\nprint(sorted(sys.modules), sys.path, sorted(os.environ))\n"
        "for n in ('broken', 'needs', 'raises', 'pkg.nothing'):\n"
        "  try: __import__(n)\n"
        "  except Exception: traceback.print_exc()\n"
        "print(os.listdir('/proc/self/fd'))\n"
    )
    plain, trial = tried.plain(["-c", code], tried.env), tried.trial(["-c", code], tried.env)
    assert (trial.stdout, trial.stderr) == (plain.stdout, plain.stderr)


def test_odd_names_do_not_break_a_record(tried: Staged) -> None:
    code = (
        "import sys, importlib\nsys.path.append('/n\\0ul'); sys.path.append('/\\udcff\"\\\\')\n"
        "sys.executable = '/q\"\\u20ac'\n"
        "for n in ('x\\ny', '\\u00e4', 'q\"'):\n"
        "  try: importlib.import_module(n)\n"
        "  except (ImportError, ValueError): pass\n"
    )
    done = tried.trial(["-c", code], tried.env)
    assert done.returncode == 0, done.stderr
    assert imports(tried)["\u00e4"][0] == "2"


def test_a_recorder_without_a_folder_stays_silent(tried: Staged) -> None:
    tried.records = tried.folder / "gone" / "deep"
    tried.records.parent.mkdir()
    tried.records.mkdir()
    tried.records.rmdir()
    env = {**tried.env}
    done = tried.plain(
        ["-c", "import pkg; print(1)"],
        {
            **env,
            "BRIGADE_RECORD": str(tried.records),
            "PYTHONPATH": f"{_site()}:{env['PYTHONPATH']}",
            "BRIGADE_SAVED_PYTHONPATH": "x",
        },
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


def _site() -> str:
    from brigade.imports import table

    return str(table.SITE)


def test_the_interpreter_record_has_the_code_of_the_whole_view(tried: Staged) -> None:
    tried.trial(["-c", "pass"], {**tried.env, "BRIGADE_RECORD_FORK": "1"})
    (text,) = [r[4] for r in read_records(tried.records) if r[0] == "interpreter"]
    files = {path.stem for path in Path(_site()).glob("*.py")}
    assert json.loads(text)["view"].keys() == files - TRIAL_S
