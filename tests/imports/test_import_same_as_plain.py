"""Under the import view a program sees what it sees without: each program runs both ways."""

from __future__ import annotations

import shutil

import pytest
from staged import Staged

DESCRIBE = """
import importlib.util, sys
def describe(name):
    m = sys.modules[name]
    s, l = m.__spec__, m.__spec__.loader
    print(name, sorted(k for k in vars(m) if k.startswith('__') and k != '__builtins__'))
    print([repr(getattr(m, k, None)) for k in ('__name__', '__file__', '__cached__', '__package__',
           '__doc__')], list(getattr(m, '__path__', ())))
    print([s.name, s.origin, s.cached, s.parent, s.has_location, s.loader_state,
           s.submodule_search_locations and list(s.submodule_search_locations)])
    print(repr(m).split(' at 0x')[0], repr(s).split(' at 0x')[0], type(l).__name__,
          type(l).__module__)
    if s.origin:
        print(vars(l), l.is_package(name), l.get_filename(name), len(l.get_data(s.origin)))
        print(l.get_source(name))
        code = l.get_code(name)
        print(code and (code.co_filename, code.co_code, code.co_names, len(code.co_consts)))
        if hasattr(l, 'path_stats'):
            print(l.path_stats(s.origin))
        plain = importlib.util.spec_from_file_location(
            name, s.origin, submodule_search_locations=s.submodule_search_locations)
        print(plain == s, s == plain, plain.loader == l, l == plain.loader,
              hash(l) == hash(plain.loader))
"""

PROGRAMS = {
    "every_attribute_of_modules_and_specs": DESCRIBE
    + """
import pkg.mod, pkg.sub, space.one, solo, both, bare
for name in ('pkg', 'pkg.mod', 'pkg.sub', 'pkg.sub.leaf', 'space', 'space.one', 'solo', 'both',
             'bare'):
    describe(name)
""",
    "the_program_s_own_modules_and_paths": """
import sys
print(sorted(sys.modules), sys.path, sys.argv, sys.flags)
print([str(f).split(' at 0x')[0] for f in sys.meta_path])
print(sorted(sys.path_importer_cache), [str(f) for f in sys.path_importer_cache.values()])
""",
    "its_environment": """
import os, posix
print(sorted((k, v) for k, v in os.environ.items() if k != '_'))
print(sorted(posix.environ) == sorted(os.environb))
""",
    "tracebacks": """
import traceback
for name in ('raises', 'needs', 'broken', 'absent', 'pkg.absent', 'solo.x', 'pkg.mod.x'):
    try:
        __import__(name)
    except Exception as e:
        traceback.print_exc()
import pkg.mod
pkg.mod.f()
""",
    "an_uncaught_syntax_error": "import broken",
    "an_uncaught_error_in_a_module": "import raises",
    "source_by_inspect_and_linecache": """
import inspect, linecache, pkg.mod, pkg
print(inspect.getsource(pkg.mod.f), inspect.getsourcefile(pkg.mod), inspect.getfile(pkg),
      inspect.getmodule(pkg.mod.f), inspect.getdoc(pkg))
print(linecache.getlines(pkg.mod.__file__), linecache.getlines('pkg/mod.py', vars(pkg.mod)))
""",
    "resources": """
import pkgutil, pkg
print(pkgutil.get_data('pkg', 'data.txt'))
import importlib.resources as r
if hasattr(r, 'files'):
    print(r.files('pkg') / 'data.txt', (r.files('pkg') / 'data.txt').read_text(),
          sorted(p.name for p in r.files('pkg').iterdir()), list(r.files('space').iterdir()))
print(type(pkg.__loader__.get_resource_reader('pkg')).__name__)
try:
    pkg.__loader__.get_resource_reader('other')
except ImportError as e:
    print(e)
""",
    "pkgutil": """
import pkgutil, pkg, sys
print([(str(i.module_finder), i.name, i.ispkg) for i in pkgutil.iter_modules()][:8])
print([tuple(i)[1:] for i in pkgutil.walk_packages(pkg.__path__, 'pkg.')])
print([str(f) for f in pkgutil.iter_importers('pkg.sub')])
print(pkgutil.resolve_name('pkg.sub.leaf:value') if hasattr(pkgutil, 'resolve_name') else '')
""",
    "find_spec_for_what_is_not_imported": """
import importlib.util as u
for name in ('pkg', 'pkg.mod', 'solo', 'absent', 'space', 'dir_only', 'both', 'pkg.nothing'):
    s = u.find_spec(name)
    print(name, s and (s.origin, s.cached, s.has_location, type(s.loader).__name__,
                       list(s.submodule_search_locations or ())))
""",
    "lazy_loader": """
import importlib.util as u, sys
s = u.find_spec('solo'); s.loader = u.LazyLoader(s.loader)
m = u.module_from_spec(s); sys.modules['solo'] = m; s.loader.exec_module(m)
print(m.value, m.__file__)
""",
    "reload_runs_the_module_again": """
import importlib, pkg.mod
pkg.mod.value = 1; importlib.reload(pkg.mod); print(pkg.mod.value, pkg.mod.__spec__.origin)
""",
    "import_twice_after_removal": """
import sys, pkg.sub.leaf
a = pkg.sub.leaf
for n in [n for n in sys.modules if n.startswith('pkg')]: del sys.modules[n]
import pkg.sub.leaf
print(a is pkg.sub.leaf, a.value == pkg.sub.leaf.value)
""",
    "pickled_loaders": """
import pickle, pkg.mod
l = pickle.loads(pickle.dumps(pkg.mod.__loader__))
print(type(l).__name__, l == pkg.mod.__loader__, vars(l))
""",
    "runpy": """
import runpy, sys
sys.argv = ['x', 'a']
print(sorted(k for k in runpy.run_module('solo')))
runpy.run_module('pkg', run_name='__main__', alter_sys=True)
try:
    runpy.run_module('space.absent')
except ImportError as e:
    print(e)
""",
    "a_namespace_package_over_covered_and_other_folders": """
import os, sys
os.makedirs('other/space', exist_ok=True)
with open('other/space/two.py', 'w') as f: f.write('value = 2')
sys.path.append(os.path.abspath('other'))
import space.one, space.two
print(space.__path__, space.one.value, space.two.value, space.__file__, space.__spec__.origin)
""",
    "a_folder_that_shadows_from_the_front": """
import os, sys
os.makedirs('front', exist_ok=True)
with open('front/solo.py', 'w') as f: f.write('value = "front"')
sys.path.insert(0, os.path.abspath('front'))
import solo, both
print(solo.value, both.which)
""",
    "subprocesses": """
import subprocess, sys, os
for env in (None, os.environ.copy()):
    print(subprocess.run([sys.executable, '-c',
        'import os, sys, pkg.mod; print(pkg.mod.__file__, sys.path, sorted(os.environ))'],
        env=env, capture_output=True, text=True).stdout.replace("'_', ", ""))
""",
    "fork": """
import os
pid = os.fork()
if not pid:
    import pkg.sub; print(pkg.sub.leaf.value, flush=True); os._exit(0)
os.waitpid(pid, 0)
import pkg.sub; print(pkg.sub.leaf.value)
""",
    "a_hook_of_the_program_comes_first": """
import sys
def hook(path):
    if path.endswith('pkg'): print('asked', path)
    raise ImportError
sys.path_hooks.insert(len(sys.path_hooks) - 1, hook)
sys.path_importer_cache.clear()
import pkg.mod; print(pkg.mod.value)
""",
    "a_path_entry_spelt_otherwise": """
import os, sys
lib = os.environ['PYTHONPATH']
sys.path[:] = [lib + '/../lib/' if p == lib else p for p in sys.path]
import pkg.mod, solo; print(pkg.mod.__file__, pkg.__path__, solo.__file__)
os.chdir(lib); sys.path[:] = ['.' if 'lib/' in p else p for p in sys.path]
import both; print(both.__file__)
""",
    "an_archive_on_the_path": """
import os, sys, zipfile
with zipfile.ZipFile('mods.zip', 'w') as z: z.writestr('zipped.py', 'value = __file__')
sys.path.insert(0, os.path.abspath('mods.zip'))
import zipped, solo; print(zipped.value, type(zipped.__loader__).__name__, solo.value)
""",
    "prefix_for_bytecode_set_at_run_time": """
import sys
sys.pycache_prefix = sys.path[0] and '/nowhere' or '/nowhere'
import pkg.mod; print(pkg.mod.__cached__ if hasattr(pkg.mod, '__cached__') else '')
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_sees(world: Staged, name: str) -> None:
    script = world.folder / "script.py"
    script.write_text(PROGRAMS[name])
    plain, view = world.plain([str(script)], world.env), world.run([str(script)], world.env)
    assert (view.stdout, view.stderr, view.returncode) == (
        plain.stdout,
        plain.stderr,
        plain.returncode,
    )
    assert plain.stdout or plain.returncode


def test_tracebacks_where_the_view_was_not_compiled_ahead(own_world: Staged) -> None:
    shutil.rmtree(own_world.stage_folder / "root/.brigade/python/__pycache__")
    script = own_world.folder / "script.py"
    script.write_text(PROGRAMS["tracebacks"])
    plain, view = (f([str(script)], own_world.env) for f in (own_world.plain, own_world.run))
    assert view.stderr == plain.stderr and "SyntaxError" in view.stderr


OPTIONS = [
    ["-c", "import pkg.mod; print(pkg.mod.__cached__, __name__)"],
    ["-m", "pkg", "a", "b"],
    ["-m", "solo"],
    ["-m", "pkg.nothing"],
    ["-O", "-c", "import pkg.mod, sys; print(pkg.mod.__spec__.cached)"],
    ["-OO", "-c", "import pkg; print(pkg.__spec__.cached, pkg.__doc__)"],
    ["-B", "-c", "import pkg.mod; print(pkg.mod.value)"],
    ["-s", "-c", "import pkg.mod; print(pkg.mod.value)"],
    ["-X", "pycache_prefix=/nowhere", "-c", "import pkg.mod; print(pkg.mod.__spec__.cached)"],
    ["-X", "dev", "-c", "import pkg.mod; print(pkg.mod.value)"],
    ["-W", "error", "-c", "import pkg.mod, broken"],
    ["--check-hash-based-pycs", "always", "-c", "import pkg.mod; print(pkg.mod.value)"],
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: " ".join(o)[:24])
def test_option(world: Staged, options: list[str]) -> None:
    plain, view = world.plain(options, world.env), world.run(options, world.env)
    assert (view.stdout, view.stderr, view.returncode) == (
        plain.stdout,
        plain.stderr,
        plain.returncode,
    )


@pytest.mark.parametrize("option", ["-S", "-E", "-I", "-P"])
def test_without_site_or_environment_nothing_is_harmed(world: Staged, option: str) -> None:
    code = f"import sys; sys.path.append({str(world.lib)!r}); import pkg.mod; print(pkg.mod.value)"
    plain, view = (f([option, "-c", code], world.env) for f in (world.plain, world.run))
    assert (view.stdout, view.returncode) == (plain.stdout, plain.returncode)


def test_importtime_and_verbose_run(world: Staged) -> None:
    for option in (["-X", "importtime"], ["-v"]):
        done = world.run([*option, "-c", "import pkg.mod; print(pkg.mod.value)"], world.env)
        assert done.returncode == 0 and "mod" in done.stdout and "pkg.mod" in done.stderr


SPAWN = """
import multiprocessing, os, sys
def work(q):
    import pkg.mod
    q.put((pkg.mod.__file__, type(pkg.mod.__loader__).__name__, sorted(os.environ), sys.path))
if __name__ == '__main__':
    for method in ('spawn', 'fork', 'forkserver'):
        context = multiprocessing.get_context(method)
        q = context.SimpleQueue(); p = context.Process(target=work, args=(q,)); p.start()
        print(q.get()); p.join()
"""


def test_multiprocessing_by_every_method(world: Staged) -> None:
    script = world.folder / "spawn.py"
    script.write_text(SPAWN)
    plain, view = world.plain([str(script)], world.env), world.run([str(script)], world.env)
    assert (view.stdout, view.stderr) == (plain.stdout, plain.stderr)
    assert plain.stdout.count("pkg/mod.py") == 3
