"""Programs that people run, plain and under each view: the same output, errors and exit code."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from differential import Differential, assert_same


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


@pytest.fixture
def pair(tmp_path: Path, tree: Path) -> Differential:
    return Differential(tmp_path / "pair", covered=[tree])


@pytest.fixture
def python(tree: Path) -> Path:
    """A virtual environment on the covered tree, with one small package."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tree / "venv"], check=True)
    package = site_packages(tree) / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("def square(x):\n    return x * x\n")
    (package / "console.py").write_text("def main():\n    print('entry', __name__)\n    return 3\n")
    return tree / "venv/bin/python"


def site_packages(tree: Path) -> Path:
    return next((tree / "venv/lib").glob("python*/site-packages"))


def program(tree: Path, text: str) -> Path:
    path = tree / "app.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize("view", ["interpose", "python"])
def test_a_view_that_answered_nothing_is_seen(pair: Differential, view: str) -> None:
    pair.report = {"operations": {"answered_per_rank": {"min": 1.0}}}
    assert pair.without(view) == ""
    pair.report = {"operations": {"answered_per_rank": {"min": 0.0}}}
    with pytest.raises(AssertionError):
        pair.without(view)


def test_ranks_that_were_not_in_the_namespace_are_seen(pair: Differential) -> None:
    pair.report = {"ranks": 2, "namespace": {"ranks": 2, "without": {}}}
    assert pair.without("namespace") == ""
    pair.report["namespace"] = {"ranks": 0, "without": {"n0": "no user namespaces"}}
    assert pair.without("namespace") == "no user namespaces"
    for told in (None, {"ranks": 1, "without": {}}):
        pair.report["namespace"] = told
        with pytest.raises(AssertionError):
            pair.without("namespace")


POOL = """
import importlib.machinery, multiprocessing, os, sys
import pkg
def work(x):
    exact = type(pkg.__loader__) is importlib.machinery.SourceFileLoader
    return pkg.square(x), pkg.__file__, sys.path[0], exact
if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(pool.map(work, range(4)))
"""


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_a_multiprocessing_pool(pair: Differential, tree: Path, python: Path, start: str) -> None:
    assert_same(pair, [python, program(tree, POOL), start])


CHANGES = """
import importlib, os, sys
here = os.path.dirname(os.path.abspath(__file__))
for folder in ("late", "early"):
    os.makedirs(os.path.join(here, folder), exist_ok=True)
sys.path.append(os.path.join(here, "late"))
import pkg
try:
    import both
except ImportError as e:
    print(repr(e))
sys.path.insert(0, os.path.join(here, "second"))
import both
print(both.__file__, both.x)
del sys.modules["both"]
sys.path.insert(0, os.path.join(here, "first"))
import both
print(both.__file__, both.x, importlib.import_module("only").__spec__.origin)
sys.path.remove(os.path.join(here, "first"))
importlib.reload(both)
print(both.__file__, both.x, sys.path)
"""


def test_a_program_that_changes_sys_path(pair: Differential, tree: Path, python: Path) -> None:
    for folder in ("first", "second"):
        (tree / folder).mkdir()
        (tree / folder / "both.py").write_text(f"x = '{folder}'\n")
    (tree / "second/only.py").write_text("")
    assert_same(pair, [python, "-B", program(tree, CHANGES)])


def test_an_editable_install_and_an_entry_point(
    pair: Differential, tree: Path, python: Path
) -> None:
    source = tree / "source/edited"
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("from . import part\n")
    (source / "part.py").write_text("print(__file__, __spec__.origin)\n")
    site = site_packages(tree)
    (site / "__editable__.edited.pth").write_text("import edited_finder; edited_finder.install()\n")
    (site / "edited_finder.py").write_text(
        "import sys, importlib.util\n"
        "class Finder:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name == 'edited':\n"
        f"            return importlib.util.spec_from_file_location(name, '{source}/__init__.py')\n"
        "def install():\n"
        "    sys.meta_path.append(Finder)\n"
    )
    info = site / "edited-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: edited\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[console_scripts]\ncalled = pkg.console:main\n")
    script = tree / "venv/bin/called"
    script.write_text(
        f"#!{python}\n"
        "import sys, edited\n"
        "from importlib.metadata import entry_points, version\n"
        "points = [p for p in entry_points()['console_scripts']] if sys.version_info < (3, 10)"
        " else list(entry_points(group='console_scripts'))\n"
        "print(version('edited'), points)\n"
        "sys.exit(next(p for p in points if p.name == 'called').load()() - 3)\n"
    )
    script.chmod(0o755)
    assert_same(pair, [script])


OWN_LOADER = """
class Loader:
    def __init__(self, spec):
        self.spec = spec
    def load_module(self, name):
        module = importlib.util.module_from_spec(self.spec)
        module.__loader__ = self
        sys.modules[name] = module
        exec(self.spec.loader.get_code(name), module.__dict__)
        return module
class Finder:
    def find_spec(self, name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None or spec.loader.get_code(name) is None:
            return None
        places = spec.submodule_search_locations
        own = importlib.machinery.ModuleSpec(
            name, Loader(spec), origin=spec.origin, is_package=places is not None)
        if places is not None:
            own.submodule_search_locations += places
        return own
sys.meta_path.insert(0, Finder())
"""
# a module as those of Cython: it makes its only object again, and executes that once
ONLY_ONCE = """
#include <Python.h>
static PyObject *only;
static PyObject *fails(PyObject *module, PyObject *none)
{
    (void)none;
    PyErr_SetString(PyObject_GetAttrString(module, "Failed"), "of itself");
    return NULL;
}
static PyMethodDef methods[] = {{"fails", fails, METH_NOARGS, 0}, {0}};
static PyObject *create(PyObject *spec, PyModuleDef *definition)
{
    (void)definition;
    if (only) { Py_INCREF(only); return only; }
    PyObject *module = PyModule_NewObject(PyObject_GetAttrString(spec, "name"));
    PyModule_AddFunctions(module, methods);
    return module;
}
static int execute(PyObject *module)
{
    if (module == only) return 0;
    only = module;
    Py_INCREF(only);
    PyObject *errors = PyImport_ImportModule("whole.errors");
    if (!errors) return -1;
    return PyModule_AddObject(module, "Failed", PyObject_GetAttrString(errors, "Failed"));
}
static PyModuleDef_Slot slots[] = {{Py_mod_create, create}, {Py_mod_exec, execute}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "fast", 0, 0, 0, slots, 0, 0, 0};
PyMODINIT_FUNC PyInit_fast(void) { return PyModuleDef_Init(&definition); }
"""
CATCHES = """
import whole.fast, whole.errors
try:
    whole.fast.fails()
except whole.errors.Failed as error:
    print("caught", error)
print(list(sys.modules))
"""


@pytest.mark.parametrize("of", ["the program's", "a package's"])
def test_modules_in_c_of_a_package_whose_others_are_loaded_by_a_loader_like_gpaw_s(
    pair: Differential, tree: Path, python: Path, of: str
) -> None:
    """Its loader executes the package anew in each rank; what is in C is executed there, too."""
    site = site_packages(tree)
    (site / "whole").mkdir()
    (site / "whole/__init__.py").write_text("")
    (site / "whole/errors.py").write_text("class Failed(Exception): pass\n")
    include = sysconfig.get_path("include")
    build = ["cc", "-x", "c", "-", "-shared", "-fPIC", f"-I{include}", "-o", site / "whole/fast.so"]
    subprocess.run(build, input=ONLY_ONCE, text=True, check=True)
    loader = f"import importlib.machinery, importlib.util, sys\n{OWN_LOADER}"
    if of == "a package's":  # which is left
        (site / "loads.py").write_text(f"import os; os.getpid()\n{loader}")
        loader = "import loads, sys\n"
    assert_same(pair, [python, program(tree, loader + CATCHES)])


PLUGIN = """
#include <stdexcept>
#include <string>
extern "C" void run(const char *how)
{
    throw std::runtime_error(std::string(NAME) + " was told " + how);
}
"""
HOST = """
#include <cstdio>
#include <dirent.h>
#include <dlfcn.h>
#include <exception>
#include <set>
#include <string>
int main(int argc, char **argv)
{
    std::string folder = std::string(argv[1]) + "/plugins";
    std::set<std::string> names;
    DIR *dir = opendir(folder.c_str());
    while (struct dirent *entry = readdir(dir))
        if (entry->d_name[0] != '.') names.insert(entry->d_name);
    closedir(dir);
    for (const std::string &name : names) {
        void *plugin = dlopen((folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!plugin) { std::printf("%s\\n", dlerror()); continue; }
        void *call = dlsym(plugin, "run");
        Dl_info info;
        dladdr(call, &info);
        std::printf("%s from %s\\n", info.dli_sname, info.dli_fname);
        try {
            reinterpret_cast<void (*)(const char *)>(call)("to throw");
        } catch (const std::exception &e) {
            std::printf("caught %s\\n", e.what());
        }
    }
}
"""


def test_a_cxx_program_with_plugins_that_throw(pair: Differential, tree: Path) -> None:
    for folder in ("bin", "lib/plugins"):  # as it is installed, or no namespace would cover it
        (tree / folder).mkdir(parents=True)
    for name in ("one", "two"):
        library = tree / f"lib/plugins/{name}.so"
        build = ["c++", "-x", "c++", "-", "-shared", "-fPIC", f'-DNAME="{name}"', "-o", library]
        subprocess.run(build, input=PLUGIN, text=True, check=True)
    (tree / "lib/plugins/wrong.so").write_text("no library\n")
    build = ["c++", "-x", "c++", "-", "-ldl", "-o", tree / "bin/host"]
    subprocess.run(build, input=HOST, text=True, check=True)
    assert_same(pair, [tree / "bin/host", tree / "lib"], not_forked="libraries only")


PERL = """
use strict; use warnings;
use lib "%(tree)s/lib";
use POSIX (); use List::Util qw(sum); use Data::Dumper; use File::Spec;
use Own::Module;
$Data::Dumper::Sortkeys = 1;
print Own::Module::name(), " ", sum(1 .. 4), " ", POSIX::floor(2.5), "\\n";
print Dumper({ map { $_ => $INC{$_} } grep { /Own|POSIX/ } keys %%INC });
eval { require Own::Missing }; print $@;
opendir(my $d, "%(tree)s/lib/Own") or die; print join(",", sort readdir $d), "\\n";
open(my $f, "<", "%(tree)s/lib/Own/Module.pm") or die; print -s $f, " ", scalar(<$f>);
"""


@pytest.mark.all
def test_perl(pair: Differential, tree: Path) -> None:
    (tree / "lib/Own").mkdir(parents=True)
    (tree / "lib/Own/Module.pm").write_text("package Own::Module; sub name { __FILE__ } 1;\n")
    (tree / "bin").mkdir()
    (tree / "bin/app.pl").write_text(PERL % {"tree": tree})
    assert_same(pair, ["/usr/bin/perl", tree / "bin/app.pl"], not_forked="libraries only")
