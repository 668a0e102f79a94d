"""A Python rank ends as it does by itself: what the program has left comes to its end, in the same
order, whatever of what it shares with other ranks refers to it."""

from __future__ import annotations

import pytest
from warm_world import Warm

# modules of the program's own, one that registers and others that know it
MODULES = {
    "registry": "class Registry:\n    items = []\n    def __init__(self): self.me = self\n",
    "knows": "from registry import Registry\nclass Known(Registry): pass\nknown = Known()\n",
    # code in C keeps what it finds, as Cython's modules do: nothing gives it back
    "keeps": "import builtins, ctypes\n"
    "ctypes.pythonapi.Py_IncRef(ctypes.py_object(builtins.__import__))\n",
}
SAYS = """
import os
class Says:
    def __init__(self, what): self.what, self.me = what, self
    def __del__(self, write=os.write): write(1, self.what.encode() + b'\\n')
"""
PROGRAMS = {
    "what_a_class_refers_to": SAYS + "import registry\nregistry.Registry.items.append(Says('a'))",
    "what_a_class_refers_to_and_code_in_c_keeps_what_imports": SAYS
    + "import keeps, registry\nregistry.Registry.items.append(Says('a'))",
    "what_nothing_refers_to": SAYS + "Says('before'); print('said', flush=True)",
    "what_the_program_s_names_refer_to": SAYS + "one, two = Says('one'), Says('two')\n"
    "def function(): return one\nfunction.at = Says('of a function')",
    "without_collections": SAYS + "import gc, registry\ngc.disable()\nSays('left')\n"
    "registry.Registry.items.append(Says('a'))",
    "a_file_in_a_cycle": "import registry\nclass Holds: pass\nholds = Holds(); holds.me = holds\n"
    "holds.file = open(1, 'w', closefd=False); holds.file.write('to be written')\n"
    "registry.Registry.holds = holds; del holds",
    "functions_at_exit": SAYS + "import atexit, weakref, registry\nx = Says('x')\n"
    "atexit.register(print, 'first'); weakref.finalize(x, print, 'finalized')\n"
    "registry.Registry.method = lambda: x\natexit.register(int, 'no number')",
    "collections_that_are_told_of": SAYS
    + """
import gc
def told(phase, info):
    if phase == 'stop' and info['generation'] == 2:
        os.write(1, b'collected %d\\n' % info['uncollectable'])
gc.callbacks.append(told); Says('left')
""",
    "another_list_of_who_is_told": SAYS + "import gc, registry\ngc.callbacks = None\n"
    "gc.unfreeze = gc.freeze = gc.isenabled = None\nregistry.Registry.items.append(Says('a'))",
    "imports_while_it_ends": SAYS
    + """
class Imports(Says):
    def __del__(self, write=os.write):
        import knows
        write(1, knows.known.__class__.__name__.encode())
Imports('')
if len(os.sys.argv) < 3: import knows
""",
    "an_error_that_ends_it": SAYS + "import registry\nregistry.Registry.items.append(Says('a'))\n"
    "raise SystemExit(7)",
    "a_thread_that_ends_later": SAYS
    + """
import threading, time, registry
registry.Registry.items.append(Says('a'))
threading.Thread(target=lambda: (time.sleep(0.2), print('thread', flush=True))).start()
""",
}


@pytest.fixture(autouse=True)
def _modules(warm: Warm) -> None:
    for name, text in MODULES.items():
        (warm.cwd / f"{name}.py").write_text(text)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rank_ends_with(warm: Warm, name: str) -> None:
    (warm.cwd / "script.py").write_text(PROGRAMS[name])
    arguments = ["script.py", "x"]
    warm.trial(arguments)
    plain = warm.plain(arguments)
    for rank in warm.ranks(arguments, {}, {}):
        assert (rank.refused, rank.said()) == ("", plain.said())
    assert plain.stdout


def test_what_the_program_has_left_ends_though_it_has_not_imported_all(warm: Warm) -> None:
    """What it has not imported refers to what it has."""
    (warm.cwd / "script.py").write_text(
        "import os\nif 'TRIAL' in os.environ: import knows\n" + PROGRAMS["what_a_class_refers_to"]
    )
    warm.trial(["script.py"], {"TRIAL": "1"})
    assert "knows" in dict(warm.plan["warm"])
    plain = warm.plain(["script.py"])
    (rank,) = warm.ranks(["script.py"])
    assert int(warm.report["warm"]) == len(warm.plan["warm"])
    assert (rank.refused, rank.said()) == ("", plain.said())
    assert plain.stdout == "a\n"


ACTS = {
    "finalize": "import os, weakref\nclass Thing: pass\nthing = Thing()\n"
    "weakref.finalize(thing, os.write, 1, b'acts\\n')\n",
    "ends": "import os\nclass Thing:\n    def __del__(self, write=os.write): write(1, b'acts\\n')\n"
    "thing = Thing()\n",
    # what the program shares refers to the weak reference
    "is_called": "import os, weakref, registry\nclass Calls:\n"
    "    def __call__(self, gone, write=os.write): write(1, b'acts\\n')\n"
    "class Thing: pass\nthing = Thing()\n"
    "registry.Registry.items.append(weakref.ref(thing, Calls()))\n",
}


@pytest.mark.parametrize("collector", ["collect", "disable", "freeze", "unfreeze"])
@pytest.mark.parametrize("how", ACTS)
def test_what_the_program_has_not_imported_does_nothing(
    warm: Warm, how: str, collector: str
) -> None:
    (warm.cwd / "acts.py").write_text(ACTS[how])
    (warm.cwd / "script.py").write_text(
        "import os, atexit, weakref, registry\nif 'TRIAL' in os.environ: import acts\n"
        f"import gc; gc.{collector}()\nprint('said', flush=True)\n"
    )
    warm.trial(["script.py"], {"TRIAL": "1"})
    assert "acts" in dict(warm.plan["warm"])
    plain = warm.plain(["script.py"])
    (rank,) = warm.ranks(["script.py"])
    assert (rank.refused, rank.said()) == ("", plain.said())
    assert plain.stdout == "said\n"
