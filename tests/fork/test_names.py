"""Names that are new in sys.modules: what a look at all of them finds, found by looking at few."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from brigade.imports import table

SAME = """\
import random, sys
sys.path.insert(0, sys.argv[1])
import _brigade_names
from _brigade_names import Names

looked_at = 0

class Counted(dict):
    def __reversed__(self):
        global looked_at
        for name in super().__reversed__():
            looked_at += 1
            yield name

modules = _brigade_names._modules = Counted({f"m{i}": i for i in range(100)})
draw = random.Random(int(sys.argv[2]))
names, known, number = Names(), set(modules), 0

def fresh():
    global number
    number += 1
    return f"n{number}"

def put():
    modules[fresh()] = None

def loaded(depth=0):  # as importlib does it: in its place at once, and once more at the end
    name = fresh()
    names.expect(name)
    known.add(name)
    modules[name] = None
    for _ in range(draw.randrange(4)):
        act(depth + 1)
    if draw.random() < 0.1:
        modules.pop(name, None)  # it failed
    else:
        modules[name] = modules.pop(name, None)

def taken():
    modules.pop(draw.choice(list(modules)), None)

def put_again():
    few = draw.sample(list(modules)[-12:], draw.randrange(1, 3))
    held = {name: modules.pop(name) for name in few}
    if draw.random() < 0.5:
        put()
    modules.update(held)

def look():
    expected = [name for name in modules if name not in known]
    found = names.new()
    assert found == expected, (found, expected)
    known.update(found)

def act(depth=0):
    if depth > 5:
        return look()
    draw.choice([put, lambda: loaded(depth), lambda: loaded(depth), taken, put_again, look])()

for _ in range(400):
    act()
    look()

looked_at = 0
for _ in range(1000):  # imports as they are nearly always: one within the other, none fails
    stack = []
    for _ in range(4):
        stack.append(fresh())
        names.expect(stack[-1])
        modules[stack[-1]] = None
        assert not names.are_otherwise()
    while stack:
        name = stack.pop()
        modules[name] = modules.pop(name)
        assert names.new() == []
print(looked_at // 4000)
"""


@pytest.mark.parametrize("seed", range(6))
def test_what_is_found_is_what_is_new_and_few_are_looked_at(seed: int) -> None:
    command = [sys.executable, "-c", SAME, str(table.SITE), str(seed or random.randrange(10**6))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (command[-1], done.stderr)
    assert int(done.stdout) < 100, "of thousands of names, for each import"
