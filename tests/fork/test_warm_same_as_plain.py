"""A rank of a template sees what it sees when it starts by itself: each program runs both ways."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pythons import need
from warm_world import Warm

# what a program can see of its imports, at a point that `tag` names
SHOW = """
import sys
def show(tag):
    import os
    print(tag, list(sys.modules), sys.path, [type(f).__name__ for f in sys.meta_path])
    print(len(sys.path_hooks), sorted(map(str, sys.path_importer_cache)))
    warnings = sys.modules.get('warnings')
    print(warnings and [(f[0], getattr(f[1], 'pattern', f[1]), f[2].__name__,
                         getattr(f[3], 'pattern', f[3]), f[4]) for f in warnings.filters])
    print(sorted((k, v) for k, v in os.environ.items() if k != '_'))
    for name, module in list(sys.modules.items()):
        if hasattr(module, '__path__'):
            print(name, sorted(vars(module)))
show('at the start')
"""

PROGRAMS = {
    "modules_one_after_the_other": SHOW
    + "\n".join(
        f"import {name}; show({name!r})"
        for name in ("logging.handlers", "json", "multiprocessing", "random", "uuid", "tempfile")
    ),
    "a_later_module_first": """
import sys
if len(sys.argv) < 3: import json, decimal
import decimal
print(list(sys.modules), 'json' in sys.modules)
""",
    "importing_again_after_removal": """
import sys, json
before = json
del sys.modules['json']
import json
print(before is json, before.decoder is json.decoder, json.loads('[1]'))
""",
    "a_module_of_the_program_s_own_in_its_place": """
import sys, types
mine = types.ModuleType('decimal'); mine.Decimal = 'mine'
sys.modules['decimal'] = mine
import statistics, decimal
print(decimal is mine, statistics.Decimal)
""",
    "none_in_its_place": """
import sys, traceback
sys.modules['_json'] = None
import json.decoder
print(json.decoder.c_scanstring)
sys.modules['decimal'] = None
try: import decimal
except ImportError: traceback.print_exc()
""",
    "a_finder_of_the_program_s_own": """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        print('asked', name, path is not None)
sys.meta_path.insert(0, Finder())
import json, csv
print(list(sys.modules))
""",
    "a_finder_that_finds_another_file": """
import importlib.util, os, sys
with open('other.py', 'w') as f: f.write('c_scanstring = None\\nwho = "other"\\n')
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == 'json.scanner':
            return importlib.util.spec_from_file_location(name, os.path.abspath('other.py'))
sys.meta_path.insert(0, Finder())
try: import json
except ImportError as e: print(type(e).__name__, e.name, os.path.basename(e.path))
import csv
print(list(sys.modules))
""",
    "tracebacks": """
import sys, traceback
for name in ('absent', 'json.absent', 'json.decoder.x', 'decimal.x'):
    try: __import__(name)
    except ImportError: traceback.print_exc()
class Loader:
    def create_module(self, spec): return None
    def exec_module(self, module): raise ValueError('in a loader')
class Finder:
    def find_spec(self, name, path=None, target=None):
        from importlib.machinery import ModuleSpec
        return ModuleSpec(name, Loader()) if name == 'made' else None
sys.meta_path.append(Finder())
try: import made
except ValueError: traceback.print_exc()
import json; json.loads('{')
""",
    "a_module_that_has_finders_asked_for_no_distributions": """
import os, sys
from importlib.machinery import PathFinder
from importlib.metadata import distributions
if not os.path.exists('forbids.py'):  # as the package importlib_metadata does
    with open('forbids.py', 'w') as f:
        f.write('from importlib.machinery import PathFinder\\ndel PathFinder.find_distributions\\n')
        f.write('import statistics\\n')
print(hasattr(PathFinder, 'find_distributions'), len(list(distributions())) > 3)
import forbids, csv
print(hasattr(PathFinder, 'find_distributions'), len(list(distributions())), list(sys.modules))
""",
    "questions_without_an_import": """
import importlib.util, pkgutil, sys
for name in ('json', 'decimal', 'absent'):
    spec = importlib.util.find_spec(name)
    print(name, spec and spec.origin, name in sys.modules)
module = importlib.util.module_from_spec(importlib.util.find_spec('csv'))
print(hasattr(module, 'reader'), 'csv' in sys.modules)
import csv
print(csv is module, hasattr(csv, 'reader'))
print([m.name for m in pkgutil.iter_modules(__import__('json').__path__)])
""",
    "submodules_are_absent_until_they_are_imported": """
import xml, sys
print(hasattr(xml, 'dom'))
import xml.dom
print(hasattr(xml, 'dom'), hasattr(xml.dom, 'minidom'), 'xml.etree' in sys.modules)
from xml.dom import minidom
print(hasattr(xml.dom, 'minidom'), hasattr(xml, 'etree'))
from xml.etree import *
import xml.etree.ElementTree
print(list(sys.modules))
""",
    "a_lazy_loader": """
import importlib.util as u, sys
s = u.find_spec('csv'); s.loader = u.LazyLoader(s.loader)
m = u.module_from_spec(s); sys.modules['csv'] = m; s.loader.exec_module(m)
print(list(sys.modules)); print(m.QUOTE_ALL, m.__file__); print(list(sys.modules))
""",
    "a_reload": """
import importlib, json
json.extra = 1; before = json
importlib.reload(json)
print(json is before, json.extra, json.loads('1'))
""",
    "threads_that_import_the_same": """
import sys, threading
found = []
def work():
    import decimal, json.tool
    found.append((decimal, json.tool))
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(set(map(id, [x for x, _ in found]))), found[0][0] is sys.modules['decimal'])
""",
    "what_happens_at_the_end": """
import atexit
atexit.register(print, 'mine, first')
import logging, weakref, sys
class Thing: pass
thing = Thing()
weakref.finalize(thing, print, 'the finalizer')
logging.getLogger('x').warning('said')
atexit.register(print, 'mine, last')
""",
    "what_is_left_in_cycles_at_the_end": """
import os
if not os.path.exists('leaves.py'):
    with open('leaves.py', 'w') as f:
        f.write("class Told:\\n    def __init__(self, name): self.name, self.me = name, self\\n"
                "    def __del__(self): print('end of', self.name)\\n"
                "told = Told('a module of another')\\n"
                "def counted():\\n    try: yield 1\\n    finally: print('end of a generator')\\n"
                "counting = counted(); next(counting)\\n")
def names_of_the_program(): pass
import leaves, json
mine = leaves.Told('the program')
json.mine = leaves.Told('a name that was put into json')
copy = open(os.dup(1), 'w')
copy.write('what is to be written yet')
""",
    "loggers_that_are_listed_silenced_and_disabled_before_they_are_made": """
import logging.config, os, sys
if not os.path.exists('logs.py'):
    for name, more in (
        ('logs', 'import logs_inner.part'), ('logs_inner/__init__', ''),
        ('logs_inner/part', 'log.addHandler(logging.NullHandler()); log.setLevel(15)'),
        ('logs_early', 'log.propagate = False'), ('logs_mine', ''), ('logs_last', ''),
        ('logs_class', 'class Mine(logging.Logger): pass\\nold = logging.getLoggerClass()\\n'
         'logging.setLoggerClass(Mine); mine = logging.getLogger("logs.mine")\\n'
         'logging.setLoggerClass(old)'),
        ('logs_root', 'logging.basicConfig(stream=sys.stdout, level=11)'),
    ):
        os.makedirs(os.path.dirname(name) or '.', exist_ok=True)
        with open(name + '.py', 'w') as f:
            dotted = name.replace('/__init__', '').replace('/', '.')
            f.write(f'import logging, sys\\nlog = logging.getLogger({dotted!r})\\n{more}\\n'
                    'def say(): log.warning("said by %s", __name__)\\n')
manager = logging.Logger.manager
def tell(tag):
    print(tag, [(n, type(x).__name__, getattr(x, 'level', ''), str(getattr(x, 'handlers', '')),
                 getattr(x, 'propagate', ''), getattr(x, 'disabled', ''),
                 str(getattr(x, 'parent', '')), list(map(str, getattr(x, 'loggerMap', ()))))
                for n, x in manager.loggerDict.items()], manager.root, manager.root.handlers,
          flush=True)
tell('at the start')
early = logging.getLogger('logs_early')
child = logging.getLogger('logs_inner.part.child')
tell('two of the program')
logging.config.dictConfig({'version': 1, 'root': {'level': 'INFO', 'handlers': ['out']},
    'handlers': {'out': {'class': 'logging.StreamHandler', 'stream': 'ext://sys.stdout'}}})
tell('disabled')
import logs
tell('one is shown'); logs.say(); logs.logs_inner.part.say()
import logs_early
logs_early.say(); print(logs_early.log is early)
tell('another')
manager.loggerDict['logs_mine'] = logging.Logger('logs_mine'); import logs_mine
logs_mine.say(); print(logs_mine.log is manager.loggerDict['logs_mine'])
import logs_class; print(type(logs_class.mine), logs_class.mine.parent)
logging.setLoggerClass(logs_class.Mine)
import logs_last; print(type(logs_last.log)); logs_last.say()
import logs_root; tell('the last')
""",
    "functions_that_modules_put_in_the_place_of_others": """
import os
if not os.path.exists('gives.py'):
    with open('given.py', 'w') as f:
        f.write('def f(): return 0\\nclass C: pass\\nnumber = 0\\ndef g(): return f()\\n')
    with open('gives.py', 'w') as f:
        f.write('import base64, given\\nold = given.f\\ngiven.f = lambda: (1, old())\\n'
                'base64.b64encode = len\\nimport gives_too\\n')
    with open('gives_too.py', 'w') as f:
        f.write('import given\\nbefore = given.f\\ngiven.f = lambda: (2, before())\\n'
                'class C(given.C): pass\\ngiven.C = C\\n')
import base64, given
print(given.g(), given.C, base64.b64encode.__name__, flush=True)
import gives
print(given.g(), given.C, base64.b64encode.__name__, given.C.__mro__)
""",
    "what_sysconfig_reads_when_it_is_first_asked": """
import os, sys
if not os.path.exists('asks.py'):
    with open('asks.py', 'w') as f:
        f.write('import sysconfig\\nsaid = sysconfig.get_config_var("SOABI")\\n')
import sysconfig
print(list(sys.modules), sysconfig._CONFIG_VARS is None)
print(sysconfig.get_config_var('SOABI'), len(sysconfig.get_config_vars()))
print(list(sys.modules))
import asks
print(list(sys.modules), asks.said)
""",
    "a_module_that_configures_the_root_logger": """
import logging, os
if not os.path.exists('configures.py'):
    with open('configures.py', 'w') as f:
        f.write('import logging, sys\\nlogging.basicConfig(stream=sys.stdout, level=11)\\n')
print(logging.root, logging.root.handlers, flush=True)
import configures
print(logging.root, len(logging.root.handlers), flush=True); logging.warning('said')
""",
    "errors_of_warnings": """
import warnings
warnings.simplefilter('error')
import json, logging, multiprocessing
print([f[:3:2] for f in warnings.filters])
try: warnings.warn('x', DeprecationWarning)
except DeprecationWarning as e: print('raised', e)
""",
    "children_of_every_kind": """
import multiprocessing, os, subprocess, sys
def work(q): q.put((sorted(k for k in os.environ), list(sys.path)))
if __name__ == '__main__':
    for method in ('fork', 'spawn'):
        context = multiprocessing.get_context(method)
        q = context.SimpleQueue(); p = context.Process(target=work, args=(q,)); p.start()
        print(q.get()); p.join()
    code = 'import os, sys; print(sorted(os.environ), sys.path)'
    print(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True))
""",
    "standard_streams": """
import io, os, sys
for s in (sys.stdin, sys.stdout, sys.stderr):
    print(s, s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.newlines,
          s.isatty(), s.seekable(), type(s.buffer).__name__, s.buffer.raw.mode, s.buffer.raw.name,
          s.buffer.raw.closefd, s is getattr(sys, f'__{s.name[1:-1]}__'))
print(sys.stdout.tell() if sys.stdout.seekable() else '')
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rank_sees(warm: Warm, name: str) -> None:
    script = warm.cwd / "script.py"
    script.write_text(PROGRAMS[name])
    arguments = [str(script), "x"]
    warm.trial(arguments)
    plain = warm.plain(arguments)
    ranks = warm.ranks(arguments, {}, {})
    assert warm.report["refused"] == "", warm.report
    assert not warm.template_said
    for rank in ranks:
        assert rank.refused == ""
        assert rank.said() == plain.said()
    assert plain.stdout or plain.stderr


def test_a_rank_of_python_3_8_sees_its_streams(tmp_path: Path) -> None:
    """There stderr goes by lines only if it is a terminal."""
    test_a_rank_sees(Warm(tmp_path, need(8)), "standard_streams")


@pytest.mark.parametrize("there", [False, True])
def test_what_two_modules_try_in_vain_each_rank_tries_as_often(warm: Warm, there: bool) -> None:
    """`there`: it has come between the trial and the rank."""
    (warm.cwd / "optional.py").write_text("import colorsys\nimport absent\n")
    for name in ("one", "two"):
        (warm.cwd / f"{name}.py").write_text(
            "try: import optional\nexcept ImportError as e: found = str(e)\nelse: found = 'it'\n"
        )
    (warm.cwd / "script.py").write_text(
        SHOW + "import one, two\nshow('then')\nprint(one.found, two.found)\n"
        "try: import optional\nexcept ImportError as e: print(e, e.name)\n"
    )
    warm.trial(["script.py"])
    if there:
        (warm.cwd / "absent.py").write_text("")
    plain = warm.plain(["script.py"])
    (rank,) = warm.ranks(["script.py"])
    assert (warm.report["refused"], rank.refused) == ("", "")
    assert rank.said() == plain.said() and ("No module" in plain.stdout) is not there


def test_what_the_program_does_not_import_has_no_end(warm: Warm) -> None:
    (warm.cwd / "told.py").write_text(
        "import atexit, os\nclass Told:\n    def __init__(self): self.me = self\n"
        "    def __del__(self, write=os.write): write(1, b'end of a module')\n"
        "told = Told()\n"
    )
    (warm.cwd / "script.py").write_text("import os\nif 'TRIAL' in os.environ: import told\n")
    warm.trial(["script.py"], {"TRIAL": "1"})
    assert "told" in dict(warm.plan["warm"])
    (rank,) = warm.ranks(["script.py"])
    assert int(warm.report["warm"]) == len(warm.plan["warm"])
    assert (rank.refused, rank.said()) == ("", warm.plain(["script.py"]).said())


GIVES = """
import os, given
if 'FIRST' in os.environ: given.f = lambda: 'the program'
import gives
print(given.f(), gives.old())
"""


def test_a_function_that_the_program_has_put_in_first_is_the_one_that_is_replaced(
    warm: Warm,
) -> None:
    (warm.cwd / "given.py").write_text("def f(): return 0\n")
    (warm.cwd / "gives.py").write_text(
        "import given\nold = given.f\ndef f(): return 1, old()\ngiven.f = f\n"
    )
    (warm.cwd / "script.py").write_text(GIVES)
    warm.trial(["script.py"])
    for env in ({}, {"FIRST": "1"}):
        (rank,) = warm.ranks(["script.py"], env)
        assert (rank.refused, rank.said()) == ("", warm.plain(["script.py"], env).said())


# `python -c` and friends: what sys.path begins with, and the module beside the script
OPTIONS = {
    "a_command": ["-c", "import beside, sys; print(beside.x, sys.path, sys.argv)", "a"],
    "a_script": ["script.py"],
    "a_script_by_a_link": ["link.py"],
    "a_folder": ["folder"],
    "a_module": ["-m", "inside", "a"],
    "a_module_of_a_package": ["-m", "package.leaf"],
    "unbuffered": ["-u", "script.py"],
    "optimised": ["-OO", "script.py"],
    "with_errors_of_warnings": ["-W", "error", "script.py"],
}


@pytest.mark.parametrize("name", OPTIONS)
def test_however_the_program_is_named(warm: Warm, name: str) -> None:
    text = "import beside, sys; print(beside.x, sys.path, sys.argv, list(sys.modules))\n"
    for path in ("script.py", "inside.py", "package/__init__.py", "package/leaf.py"):
        (warm.cwd / path).parent.mkdir(exist_ok=True)
        (warm.cwd / path).write_text(text)
    (warm.cwd / "package/__init__.py").write_text("import beside\n")
    (warm.cwd / "beside.py").write_text("x = __file__\n")
    (warm.cwd / "folder").mkdir()
    (warm.cwd / "folder/__main__.py").write_text(text)
    (warm.cwd / "folder/beside.py").write_text("x = __file__\n")
    (warm.cwd / "elsewhere").mkdir()
    (warm.cwd / "elsewhere/real.py").write_text(text)
    (warm.cwd / "elsewhere/beside.py").write_text("x = __file__\n")
    (warm.cwd / "link.py").symlink_to("elsewhere/real.py")
    warm.trial(OPTIONS[name])
    plain = warm.plain(OPTIONS[name])
    (rank,) = warm.ranks(OPTIONS[name])
    assert (rank.refused, rank.said()) == ("", plain.said())
    assert int(warm.report["warm"]) == len(warm.plan["warm"]) > 0
    assert plain.returncode == 0


@pytest.mark.parametrize("env", [{"LANG": "C"}, {"LANG": ""}, {"LC_ALL": "C"}, {"LANG": "nowhere"}])
def test_the_locale_that_python_puts_in_the_place_of_c(
    warm: Warm, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LC_CTYPE", raising=False)  # as it is put into the tests' own, without LANG
    text = "import os, sys, subprocess as s; print(list(os.environ), sys.stdout.encoding, flush=1)"
    program = ["-c", f"{text}; s.run(['env']); print(sys.flags.utf8_mode)"]
    warm.trial(program, env)
    plain = warm.plain(program, env)
    ranks = warm.ranks(program, env, {**env, "MINE": "1"}, {**env, "LC_CTYPE": "C.UTF-8"})
    differs = "variable LC_CTYPE differs"
    assert [rank.refused for rank in ranks] == ["", "", differs]
    own = ("BRIGADE_", "PYTHONPATH=", "_=")
    lines = [
        [x for x in done.stdout.splitlines() if not x.startswith(own)] for done in (plain, ranks[0])
    ]
    assert lines[0] == lines[1]
    assert ("LC_CTYPE=C.UTF-8" in plain.stdout) == ("LC_CTYPE=C.UTF-8" in ranks[1].stdout)


PACKAGES = ("numpy", "h5py", "matplotlib.pyplot", "zarr", "hypothesis", "rich.console", "jinja2")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_real_package(tmp_path: Path, package: str) -> None:
    pytest.importorskip(package.partition(".")[0])
    warm = Warm(tmp_path, sys.executable)
    program = ["-c", f"{SHOW}\nimport {package}; show(1)\nimport decimal, csv; show(2)"]
    warm.trial(program)
    plain = warm.plain(program)
    for rank in warm.ranks(program, {}, {}):
        assert (rank.refused, rank.said()) == ("", plain.said())
    assert int(warm.report["warm"]) > 50
