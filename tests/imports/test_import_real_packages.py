"""Real packages: every module of click, rich and NumPy is the same module under the view."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from staged import Staged

PACKAGES = ("click", "rich", "numpy")

WALK = """
import importlib, pkgutil, sys, warnings
warnings.simplefilter('ignore')
names = []
for package in PACKAGES:
    root = importlib.import_module(package)
    names.append(package)
    for info in pkgutil.walk_packages(root.__path__, package + '.', onerror=lambda n: None):
        if not any(part in info.name for part in ('.tests', '__main__', '.f2py', 'distutils',
                                                  'conftest', '_pyinstaller', 'testing')):
            names.append(info.name)
            try:
                importlib.import_module(info.name)
            except Exception as e:
                print(info.name, type(e).__name__, e)
print(len(names))
for name in names:
    m = sys.modules.get(name)
    s = getattr(m, '__spec__', None)
    if s is None:
        continue
    l = s.loader
    print(name, m.__file__, getattr(m, '__cached__', None), s.cached, s.origin, s.parent,
          type(l).__name__, l.is_package(s.name), s.submodule_search_locations)
    print(hash(l.get_source(s.name)) == hash(l.get_source(s.name)), l.get_filename(s.name))
import importlib.metadata as md
print([md.version(p) for p in PACKAGES], len(list(md.files('click'))))
print(sorted(md.packages_distributions()) if hasattr(md, 'packages_distributions') else '')
maps = open('/proc/self/maps').read()
print(sum('/stage/root/' in line for line in maps.splitlines()) > 0, file=sys.stderr)
import numpy; print(numpy.arange(10).sum(), numpy.linalg.eigvals(numpy.eye(3)))
""".replace("PACKAGES", repr(PACKAGES))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Staged:
    where = subprocess.run(
        [sys.executable, "-c", "import numpy; print(numpy.__file__)"],
        capture_output=True,
        text=True,
        check=False,
    )
    if where.returncode:
        pytest.skip("NumPy is not installed beside the tests")
    site = Path(where.stdout.strip()).parents[1]
    world = Staged(tmp_path_factory.mktemp("real"), sys.executable, roots=[site], listed=[site])
    parts = tuple(f"{site}/{name}" for name in (*PACKAGES, "numpy.libs"))
    world.content = lambda path: path.startswith(parts) and "/tests/" not in path
    world.env = {"BRIGADE_STRICT": "0"}  # the content of other packages is not staged
    world.trial(["-c", WALK])
    world.stage()
    return world


def test_all_modules_and_metadata_are_the_same(real: Staged) -> None:
    plain, view = real.plain(["-c", WALK], real.env), real.run(["-c", WALK], real.env)
    assert view.stdout == plain.stdout
    assert plain.returncode == view.returncode == 0
    assert int(next(n for n in plain.stdout.split() if n.isdigit())) > 150


def test_alone_extensions_are_mapped_from_the_staged_folder(real: Staged) -> None:
    assert real.run(["-c", WALK], real.env).stderr == "True\n"
    assert real.plain(["-c", WALK], real.env).stderr == "False\n"


def test_interposed_extensions_keep_their_path_for_the_auditor(real: Staged, preload: str) -> None:
    assert real.run(["-c", WALK], real.env, interposed=preload).stderr == "False\n"


def test_an_extension_that_cannot_be_loaded_fails_as_without_the_view(
    tmp_path: Path,
) -> None:
    lib = tmp_path / "lib"
    lib.mkdir()
    (lib / "bad.abi3.so").write_bytes(b"not an ELF file")
    world = Staged(tmp_path, sys.executable, roots=[lib], listed=[lib])
    world.env = {"PYTHONPATH": str(lib)}
    code = "import bad"
    world.trial(["-c", code], world.env)
    world.stage()
    plain, view = world.plain(["-c", code], world.env), world.run(["-c", code], world.env)
    assert (view.stderr, view.returncode) == (plain.stderr, plain.returncode)
    assert "bad.abi3.so" in plain.stderr and plain.returncode == 1


# A module with one-phase initialisation, whose layout every CPython from 3.9 on shares.
EXTENSION = """
static struct {
    long head[2]; void *init; long index; void *copy;
    const char *name, *doc; long size; void *rest[5];
} def = {{1}, .name = "ext", .size = -1};
void *PyModule_Create2(void *, int);
void *PyInit_ext(void) { return PyModule_Create2(&def, 3); }
"""
LOADED_AGAIN = """
import importlib.util, sys
from importlib.machinery import ExtensionFileLoader
print(type(importlib.util.find_spec("ext").loader) is ExtensionFileLoader)
import ext
spec = importlib.util.spec_from_file_location("ext", ext.__file__)
again = importlib.util.module_from_spec(spec)
print(again is ext, importlib.reload(ext) is ext, ext.__file__)
print(type(ext.__loader__), vars(spec.loader))
print(ExtensionFileLoader.create_module.__qualname__, sorted(n for n in sys.modules if "brig" in n))
print(sum("/ext." in line and " r-xp " in line for line in open("/proc/self/maps")))
"""


def test_alone_an_extension_that_is_loaded_again_is_the_same_library(
    tmp_path: Path, python: str
) -> None:
    lib = tmp_path / "lib"
    lib.mkdir()
    build = ["cc", "-x", "c", "-", "-shared", "-fPIC", "-o", str(lib / "ext.abi3.so")]
    subprocess.run(build, input=EXTENSION, text=True, check=True)
    world = Staged(tmp_path, python, roots=[lib], listed=[lib])
    world.env = {"PYTHONPATH": str(lib)}
    world.trial(["-c", LOADED_AGAIN], world.env)
    world.stage()
    plain = world.plain(["-c", LOADED_AGAIN], world.env)
    view = world.run(["-c", LOADED_AGAIN], world.env)
    assert (view.stdout, view.stderr) == (plain.stdout, plain.stderr)
    assert plain.stdout.splitlines()[0] == "True" and plain.stdout.endswith("\n1\n")
