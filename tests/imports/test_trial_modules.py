"""A trial for `--fork` records what each module does in its own execution, and who asked for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from brigade.imports import table
from brigade.paths import native
from brigade.trial.modules import rank_modules
from brigade.trial.record import Process, load

TREE = {
    "home.py": "import os\nHOME = os.environ.get('HOME')\n",
    "below.py": "import home\nimport json\n",
    "late.py": "import home, os\nos.getpid()\n",
    "pkg/__init__.py": "",
    "pkg/part.py": "import os\nos.urandom(4)\n",
    "asks.py": "from pkg import part\n",
    "everything.py": "import os\ndict(os.environ)\n",
    "counts.py": "import os\nlen(os.environ)\n",
    "copies.py": "import os\nos.environ.copy()\n",
    "contains.py": "import os\n'HOME' in os.environ, os.environ.setdefault('HOME', '')\n",
    "bytes_.py": "import os\nos.environb.get(b'HOME'), os.getenv('NONE')\n",
    "clock.py": "import time\nT = time.time()\n",
    "processor.py": "import time\nSTART = time.process_time()\n",
    "thread_s.py": "import time\nSTART = time.thread_time()\n",
    "uses.py": "import resource\nUSED = resource.getrusage(resource.RUSAGE_SELF)\n",
    "sleeps.py": "import threading\nthreading.Lock().acquire()\nthreading.Event().set()\n",
    "thread.py": "import threading\nt = threading.Thread(target=int)\nt.start()\nt.join()\n",
    "child.py": "import subprocess\nsubprocess.run(['/bin/true'])\n",
    "says.py": "print('said', flush=True)\n",
    "seeds.py": "import random\nrandom.seed(1)\n",
    "masks.py": "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n",
    "masks_and_back.py": "import signal\nold = signal.pthread_sigmask(signal.SIG_BLOCK, {1})\n"
    "signal.pthread_sigmask(signal.SIG_SETMASK, old)\n",
    "settings.py": "TABLE = {}\nx = 1\ndef setup(x): TABLE['x'] = x\n",
    "calls.py": "import settings\nsettings.setup(\n2)\nimport home\n",
    "gauss.py": "import seeds, random\nrandom.gauss(0, 1)\n",
    "binds.py": "import os\nos.sched_setaffinity(0, {max(os.sched_getaffinity(0))})\n",
    "counts_cores.py": "import os\nall_ = os.sched_getaffinity(0)\nfor one in all_:\n"
    "  os.sched_setaffinity(0, {one})\nos.sched_setaffinity(0, all_)\n",
    "fails.py": "import os\nos.getpid()\nraise ImportError('no')\n",
    "tries.py": "try:\n  import fails\nexcept ImportError: pass\n",
    "dynamic.py": "import importlib\nimportlib.import_module('home')\n",
    "function.py": "def f():\n  import home\nf()\n",
    "loads.py": "import sys\nfrom importlib.machinery import PathFinder, SourceFileLoader\n"
    "class Loader(SourceFileLoader): pass\n"
    "class Finder:\n"
    "  def __init__(self, loader): self.loader = loader\n"
    "  def find_spec(self, name, path=None, target=None):\n"
    "    spec = PathFinder.find_spec(name, path)\n"
    "    spec.loader = self.loader(name, spec.origin)\n"
    "    return spec\n"
    "def begin(loader=Loader): sys.meta_path.insert(0, Finder(loader))\n",
}


class Tree:
    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.python = folder, python
        for name, text in TREE.items():
            path = folder / "lib" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def environment(self) -> dict[str, str]:
        gone = ("BRIGADE_", "PYTHON", "COLUMNS", "LINES")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(gone)}
        return {**kept, "PYTHONPATH": str(self.folder / "lib"), "PYTHONDONTWRITEBYTECODE": "1"}

    def plain(self, code: str) -> subprocess.CompletedProcess[str]:
        return self._run([], code)

    def watch(self, code: str) -> Process:
        """What was recorded of the process."""
        records = self.folder / "records"
        records.mkdir()
        done = self.watched(code, records)
        assert done.returncode == 0, done.stderr
        trial = load(records)
        return next(p for p in trial.processes if any(r.kind == "watch" for r in p.records))

    def watched(self, code: str, records: Path) -> subprocess.CompletedProcess[str]:
        wrapper = [str(native("brigade-rank")), "--record", str(records), "--watch", "salt"]
        return self._run([*wrapper, "--python-view", str(table.SITE), "--"], code)

    def _run(self, wrapper: list[str], code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*wrapper, self.python, "-c", code], env=self.environment(), cwd=self.folder,
            text=True, capture_output=True, timeout=120, check=False,
        )  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path, python: str) -> Tree:
    return Tree(tmp_path, python)


def events(process: Process, *modules: str) -> set[tuple[str, str, str]]:
    return {
        (r.by, r.path, r.extra)
        for r in process.records
        if r.kind == "event" and r.by in (modules or (r.by,))
    }


def asked(process: Process, by: str) -> set[str]:
    return {r.path for r in process.records if r.kind == "imported" and r.by == by}


@pytest.mark.parametrize(
    ("module", "what", "detail"),
    [
        ("home", "getenv", "HOME"),
        ("contains", "getenv", "HOME"),
        ("bytes_", "getenv", "NONE"),
        ("everything", "environ", ""),
        ("counts", "environ", ""),
        ("copies", "environ", ""),
        ("late", "pid", ""),
        ("pkg.part", "random", ""),
        ("clock", "clock", ""),
        ("seeds", "generator", "random"),
        ("gauss", "generator", "random"),
        ("masks", "mask", ""),
        ("calls", "called", "settings.setup"),
        ("processor", "clock", "processor"),
        ("thread_s", "clock", "processor"),
        ("uses", "clock", "processor"),
        ("child", "child", "/bin/true"),
        ("says", "output", "1"),
        ("fails", "pid", ""),
    ],
)
def test_what_a_module_does_is_its_own(tree: Tree, module: str, what: str, detail: str) -> None:
    asks = "tries" if module == "fails" else module
    done = tree.watch(f"import {asks}")
    if what == "child":  # a forked child that becomes a program is not watched any more
        found = {e[:2] for e in events(done, module)}
        assert (module, what) in found
    else:
        assert (module, what, detail) in events(done, module)
    assert (what, detail) not in {(w, d) for by, w, d in events(done) if by == "home" != module}


def test_the_file_of_a_module_that_is_run_is_no_call_of_the_program_s(tree: Tree) -> None:
    (tree.folder / "lib" / "app.py").write_text(
        "import home, sys\nsys.argv[1:] = []\nimport late\n"
    )
    records = tree.folder / "records"
    records.mkdir()
    wrapper = [str(native("brigade-rank")), "--record", str(records), "--watch", "salt"]
    wrapper += ["--python-view", str(table.SITE), "--"]
    subprocess.run(
        [*wrapper, tree.python, "-m", "app", "x"], env=tree.environment(), cwd=tree.folder,
        timeout=120, check=True,
    )  # fmt: skip
    (rank,) = rank_modules(load(records))
    assert rank.main == str(tree.folder / "lib/app.py")
    (called,) = [e.executed for e in rank.events if (e.what, e.detail) == ("called", "sys")]
    names = [execution.module for execution in rank.executions]
    assert names.index("home") < called <= names.index("late")


def test_what_neither_sets_nor_calls_another_module_has_done_nothing_to_it(tree: Tree) -> None:
    done = tree.watch("import below, dynamic, function, masks_and_back, settings")
    assert not [e for e in events(done) if e[1] in ("called", "mask")]


HOOKS = "sys.excepthook = sys.unraisablehook = sys.displayhook = threading.excepthook = print\n"


def test_what_a_program_sets_that_others_look_at_when_they_use_it_is_no_change(tree: Tree) -> None:
    done = tree.watch(
        f"import sys, threading\nimport below\n{HOOKS}"
        "sys.dont_write_bytecode, sys.tracebacklimit = True, 0\nimport late"
    )
    assert not [e for e in events(done) if e[1] == "called"]


GLOBALLY = "import os, sys\nsys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)\n"
BACK = "sys.setdlopenflags(os.RTLD_NOW)\n"


def test_a_library_that_the_program_has_loaded_with_other_flags_is_told(tree: Tree) -> None:
    """Whoever sets them for its own libraries alone does so in a template, too."""
    installed = tree.folder / "site-packages"
    installed.mkdir()
    (installed / "sets.py").write_text(f"{GLOBALLY}import _ctypes\n{BACK}")
    (tree.folder / "lib" / "own.py").write_text(f"{GLOBALLY}import _elementtree\n{BACK}")
    done = tree.watch(
        f"import sys\nsys.path.append('{installed}')\nimport sets, own, _bz2\n"
        f"{GLOBALLY}import _lzma\n{BACK}import _lsprof"
    )
    libraries = {r.path for r in done.records if r.extra.endswith(".so") and r.kind == "imported"}
    assert {"_ctypes", "_lzma"} <= libraries
    found = {by for by, what, _ in events(done) if what == "dlopen"}
    assert found >= libraries & {"_elementtree", "_lzma"}
    assert not found & {"_ctypes", "_bz2", "_lsprof"}


def test_a_parser_that_a_module_makes_asks_for_no_terminal_but_to_show_its_help(tree: Tree) -> None:
    makes = "import argparse\np = argparse.ArgumentParser()\np.add_argument('-x', help='it')\n"
    keeps = "import shutil\nWIDTH = shutil.get_terminal_size()\n"
    for name, more in (("adds", ""), ("formats", "HELP = p.format_help()\n"), ("keeps", keeps)):
        (tree.folder / "lib" / f"{name}.py").write_text(makes + more)
    tree.watch("import adds, formats, keeps, argparse\nargparse.ArgumentParser()")
    (rank,) = rank_modules(load(tree.folder / "records"))
    asking = {event.module for event in rank.events if event.what == "terminal"}
    assert asking - {""} == {"formats", "keeps"}  # Python itself asks when it starts


def test_where_a_module_of_the_program_imports_is_told(tree: Tree) -> None:
    (tree.folder / "app.py").write_text("import home\n\ndef f():\n    import calls\n\nf()\n")
    records = tree.folder / "records"
    records.mkdir()
    wrapper = [str(native("brigade-rank")), "--record", str(records), "--watch", "salt"]
    wrapper += ["--python-view", str(table.SITE), "--"]
    subprocess.run(
        [*wrapper, tree.python, "app.py"], env=tree.environment(), cwd=tree.folder,
        timeout=120, check=True,
    )  # fmt: skip
    (rank,) = rank_modules(load(records))
    places = [(e.module, e.detail) for e in rank.events if e.what == "asks"]
    calls = f"{tree.folder}/lib/calls.py"
    app = next(detail[2:] for _, detail in places if detail.endswith("app.py"))
    assert app in ("app.py", str(tree.folder / "app.py"))  # Python 3.8 gives it as it was given
    expected = [("", f"1:{app}"), ("", f"6 f 4:{app}"), ("calls", f"1:{calls}")]
    assert [place for place in places if place in expected] == expected, places
    assert rank.ends["calls"] >= rank.ends["settings"] > 0


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
@pytest.mark.parametrize(("module", "expected"), [("binds", {"bind"}), ("counts_cores", set())])
def test_who_binds_the_process_for_good_is_told_from_who_counts_cores(
    tree: Tree, module: str, expected: set[str]
) -> None:
    """MKL counts them so as PyTorch is imported."""
    records = tree.folder / "records"
    records.mkdir()
    assert tree.watched(f"import {module}", records).returncode == 0
    (rank,) = rank_modules(load(records))
    found = {event.what for event in rank.events if event.module == module}
    assert found - {"cpus"} == expected


def test_locks_of_the_interpreter_are_no_look_at_the_clock(tree: Tree) -> None:
    done = events(tree.watch("import sleeps, home"), "sleeps")
    assert {what for _, what, _ in done} <= {"asks"}


def test_a_thread_is_recorded_with_what_runs_in_it(tree: Tree) -> None:
    ((_, _, detail),) = [
        e for e in events(tree.watch("import thread"), "thread") if e[1] == "thread"
    ]
    assert "python" in os.path.basename(detail)


def test_a_value_that_the_program_has_changed_is_marked(tree: Tree) -> None:
    done = tree.watch("import os\nos.environ['HOME'] = '/other'\nimport home, everything")
    said = {event: detail for _, event, detail in events(done, "home")}
    assert said.pop("variable").startswith("HOME=")  # what it was at the start, as a digest
    assert said == {"getenv": "HOME!"}
    assert ("everything", "environ", "!") in events(done, "everything")


def test_executions_are_in_order_with_who_asked_and_from_where(tree: Tree) -> None:
    done = tree.watch("import below, asks")
    mine = [r for r in done.records if r.kind == "imported" and r.status > 0]
    assert [r.status for r in mine] == sorted({r.status for r in mine})
    told = {r.path: (r.by, r.extra) for r in mine}
    lib = tree.folder / "lib"
    assert told["below"] == ("", f"{lib}/below.py")
    assert told["home"] == ("below", f"{lib}/home.py")
    assert told["pkg"] == ("asks", f"{lib}/pkg/__init__.py")
    assert told["pkg.part"] == ("asks", f"{lib}/pkg/part.py")


@pytest.mark.parametrize(
    ("first", "module", "expected"),
    [
        ("home", "late", "home"),
        ("pkg.part", "asks", "pkg.part"),
        ("home", "dynamic", "home"),
        ("home", "function", "home"),
        ("pkg.part", "pkg", None),
    ],
)
def test_a_module_that_is_there_already_is_asked_for(
    tree: Tree, first: str, module: str, expected: str | None
) -> None:
    found = asked(tree.watch(f"import {first}\nimport {module}"), module)
    assert expected is None or expected in found


def test_a_module_asks_for_the_one_that_made_a_module_without_a_spec_of_which_it_has_classes(
    tree: Tree,
) -> None:
    lib = tree.folder / "lib"
    (lib / "makes.py").write_text(
        "import sys, types\nm = types.ModuleType('makes.inner.most')\n"
        "m.C = type('C', (), {'__module__': m.__name__}); sys.modules[m.__name__] = m\n"
        "sys.modules['makes.inner'] = types.ModuleType('makes.inner')\n"
    )
    (lib / "takes.py").write_text("import sys\nC = sys.modules['makes.inner.most'].C\n")
    done = tree.watch("import makes, takes")
    assert "makes" in asked(done, "takes")


def test_nothing_is_asked_of_what_a_module_without_a_spec_has(tree: Tree) -> None:
    """`torch.distributed.reduce_op` warns whoever asks it for anything."""
    (tree.folder / "lib" / "warns.py").write_text(
        "import sys, types\n"
        "class Warns:\n  def __getattribute__(self, name): print('asked for', name)\n"
        "m = types.ModuleType('warns.one'); m.warns = Warns(); sys.modules[m.__name__] = m\n"
    )
    (tree.folder / "lib" / "has.py").write_text("import sys\nw = sys.modules['warns.one'].warns\n")
    records = tree.folder / "records"
    records.mkdir()
    done = tree.watched("import warns, has; print('end')", records)
    assert done.stdout == "end\n"


def test_a_module_asks_for_the_one_in_which_its_loader_s_class_lies(tree: Tree) -> None:
    done = tree.watch("import below, loads\nloads.begin()\nfrom pkg import part")
    assert all("loads" in asked(done, name) for name in ("pkg", "pkg.part"))
    assert not [name for name in asked(done, "below") if "importlib" in name]  # of Python's own
    assert not [e for e in events(done) if e[1] == "loader"]


def test_a_loader_of_the_program_s_own_is_told_of_each_module(tree: Tree) -> None:
    text = "import loads\nclass Own(loads.Loader): pass\nloads.begin(Own)\nimport pkg, home"
    told = [e for e in events(tree.watch(text)) if e[1] == "loader"]
    assert sorted(told) == [("home", "loader", "Own"), ("pkg", "loader", "Own")]


def test_who_makes_a_generator_or_reads_its_state_does_not_move_it(tree: Tree) -> None:
    lib = tree.folder / "lib"
    (lib / "reads.py").write_text("import random\nrandom.setstate(random.getstate())\n")
    (lib / "own.py").write_text("import reads, random\nrandom.Random(1).random()\n")
    done = tree.watch("import own, random\nrandom.seed(1)\nimport home")
    assert not [e for e in events(done) if e[1] == "generator"]
    assert not [by for by in ("bisect", "math", "itertools") if "random" in asked(done, by)]


@pytest.mark.parametrize(
    ("who", "text"),
    [
        ("", "import home\n{}\nimport late"),
        ("changes", "open('lib/changes.py', 'w').write({!r})\nimport changes, home"),
    ],
)
def test_who_changes_how_modules_are_imported_is_told(tree: Tree, who: str, text: str) -> None:
    change = (
        "import builtins\nfrom importlib.machinery import PathFinder, SourceFileLoader\n"
        "real, builtins.__import__ = __import__, lambda *given: real(*given)\n"
        "PathFinder.find_spec = PathFinder.find_spec\nSourceFileLoader.mine = 1\n"
        "del PathFinder.find_distributions"
    )
    told = {e for e in events(tree.watch(text.format(change))) if e[1] == "imports"}
    parts = "builtins.__import__", "PathFinder.find_spec", "SourceFileLoader.mine"
    assert told == {(who, "imports", part) for part in parts}


def test_an_execution_that_fails_has_begun_once_and_has_ended(tree: Tree) -> None:
    done = tree.watch("import tries")
    began = [r.status for r in done.records if r.kind == "imported" and r.path == "fails"]
    ended = [r.status for r in done.records if r.kind == "executed" and r.path == "fails"]
    assert began == ended
    assert [order > 0 for order in began] == [True]


def test_the_program_sees_no_difference_when_modules_are_watched(tree: Tree) -> None:
    code = (
        "import sys, os, traceback, pickle, copy\n"
        "print(sorted(sys.modules), sys.path, sorted(os.environ), type(os.environ))\n"
        "print(dict(os.environ) == os.environ.copy(), len(os.environ), 'HOME' in os.environ)\n"
        "os.environ['NEW'] = 'x'; print(os.system('test x$NEW = xx'), os.environ.pop('NEW'))\n"
        "print(repr(os.environ).startswith('environ('), os.environ == dict(os.environ))\n"
        "for n in ('fails', 'none', 'pkg.none'):\n"
        "  try: __import__(n)\n"
        "  except Exception: traceback.print_exc()\n"
        "from pkg import part; import pkg.part, home\n"
        "print(home.__spec__.origin, home.__spec__._initializing)\n"
    )
    records = tree.folder / "records"
    records.mkdir()
    plain, watched = tree.plain(code), tree.watched(code, records)
    assert (watched.stdout, watched.stderr) == (plain.stdout, plain.stderr)
