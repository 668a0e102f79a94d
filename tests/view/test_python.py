"""A real scientific stack runs from the staged copy alone, and answers as it does without."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from world import World

QUESTIONS = """
import importlib.util, inspect, os, pkgutil, sys, traceback
import numpy, numpy.linalg
for m in (numpy, numpy.linalg, os):
    print(m.__file__, m.__spec__.cached, m.__spec__.origin)
print(sys.executable, sys.prefix, sys.path)
print(numpy.linalg.det(numpy.arange(9.).reshape(3, 3) + numpy.eye(3)))
print(len(inspect.getsource(numpy.linalg.det)))
print(sorted(m.name for m in pkgutil.iter_modules(numpy.__path__)))
print(os.path.realpath('/proc/self/exe'), os.readlink('/proc/self/exe'))
import importlib.metadata, importlib.resources
print(importlib.metadata.version('numpy'))
print(sorted(e.name for e in importlib.resources.files('numpy').iterdir()))
try: numpy.zeros((2, 2)).dot(numpy.zeros((3, 3)))
except ValueError: traceback.print_exc()
with open(numpy.__file__) as f:
    print(os.path.samestat(os.fstat(f.fileno()), os.stat(numpy.__file__)))
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The numpy of this interpreter, in a virtual environment of its own that is all links."""
    numpy = pytest.importorskip("numpy")
    world = World(tmp_path_factory.mktemp("stack"))
    os.system(f"{sys.executable} -m venv --without-pip {world.tree}/venv")
    site = next((world.tree / "venv" / "lib").glob("python*/site-packages"))
    source = Path(numpy.__file__).parents[1]
    for name in source.glob("numpy*"):
        os.system(f"cp -a {name} {site}/")
    return world.put()


def test_numpy_answers_the_same(stack: World) -> None:
    python = stack.tree / "venv" / "bin" / "python"
    plain = stack.plain(python, "-c", QUESTIONS)
    assert plain.returncode == 0, plain.stderr
    stack.put(trial=stack.record(python, "-c", QUESTIONS)[0])
    viewed = stack.run(python, "-c", QUESTIONS)
    assert (viewed.stdout, viewed.stderr) == (plain.stdout, plain.stderr)
    stack.hide()
    try:
        hidden = stack.run(python, "-c", QUESTIONS, strict=True)
    finally:
        stack.show()
    assert (hidden.stdout, hidden.stderr) == (plain.stdout, plain.stderr)
    counts = stack.counts()
    assert counts.misses == {}
    assert counts.loads >= 5


# A whole scientific stack is tried where somebody names one: it takes a minute.
if VENV := os.environ.get("BRIGADE_TEST_VENV"):

    def test_a_scientific_stack_runs_from_its_staged_copy(tmp_path: Path) -> None:
        program = (
            "import numpy, scipy.stats, scipy.sparse.linalg, scipy.optimize, pandas, "
            "matplotlib.pyplot as p; print(numpy.__file__, p.__file__)"
        )
        world = World(tmp_path)
        trial, recorded = world.record(f"{VENV}/bin/python", "-c", program)
        world.put(Path(VENV), trial=trial)
        viewed = world.run(f"{VENV}/bin/python", "-c", program, strict=True)
        assert (viewed.stdout, viewed.stderr) == (recorded.stdout, recorded.stderr)
        assert world.counts().misses == {}
