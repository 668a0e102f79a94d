"""What is a rank's own in a process that was forked: random streams, streams, environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_fork_rules import python_with
from warm_world import Warm

from brigade.fork.rules import RULES


@pytest.fixture
def own(tmp_path: Path) -> Warm:
    return Warm(tmp_path, sys.executable)


# (what is asked of the rank, the plan's action, whether it differs without the action)
AGAIN = {
    "random-seed": ("random", "import random; print(random.random())", False),
    "numpy-random": ("numpy.random", "import numpy; print(numpy.random.rand())", True),
    "torch-random": ("torch._C", "import torch; print(torch.rand(1))", True),
    "torch-contract": (
        "torch.distributed._composable.contract",
        "import sys, torch.distributed._composable.contract\n"
        "c = sys.modules['torch.distributed._composable.contract']\n"
        "print(c.STATE_KEY, c.REGISTRY_KEY)",
        True,
    ),
    "multiprocessing-key": (
        "multiprocessing.process",
        "import multiprocessing as m; print(bytes(m.current_process().authkey))",
        True,
    ),
    "logging-start": (
        "logging",
        "import time; t = time.time(); time.sleep(.1); import logging; s = logging._startTime;"
        "print((s / 1e9 if isinstance(s, int) else s) > t, t)",  # from 3.13 on nanoseconds
        True,
    ),
    "tempfile-names": ("tempfile", "import tempfile; print(tempfile.mktemp())", False),
    "uuid-node": (
        "uuid",
        "import uuid; print(uuid._node, uuid._last_timestamp, uuid.uuid4())",
        False,
    ),
    "numexpr-threads": (
        "numexpr",
        "import os, numexpr as n; threads = len(os.listdir('/proc/self/task'));"
        "print(threads > n.nthreads == n.get_num_threads() == 2, n.evaluate('1+1'), os.getpid())",
        True,
    ),
    "numcodecs-pid": (
        "numcodecs.blosc",
        "import os; from numcodecs import blosc as b; p = os.getpid();"
        "print(b._importer_pid == p, len(b.decompress(b.compress(b'1' * 99999, b'lz4', 1))), p)",
        True,
    ),
    "sympy-random": (
        "sympy.core.random",
        "from sympy.core import random as r; print(r.random(), r._assumptions_rng.random())",
        True,
    ),
    "sympy-dummies": (
        "sympy.core.symbol",
        "import sympy; print(sympy.Dummy('x').dummy_index, sympy.Dummy._prng.random())",
        True,
    ),
    "xarray-locks": (
        "xarray.backends.locks",
        "import pickle; from xarray.backends import locks as l; a = l.HDF5_LOCK;"
        "print(pickle.loads(pickle.dumps(a)).lock is a.lock, a.token, l.NETCDFC_LOCK.token)",
        True,
    ),
    "datasets-random": (
        "datasets.fingerprint",
        "import datasets.fingerprint as f; print(f.generate_random_fingerprint())",
        True,
    ),
    "distributed-futures": (
        "distributed.client",
        "import distributed.client as c; print(c.Future._uid)",
        True,
    ),
    "transformers-session": (
        "transformers.utils.hub",
        "import transformers.utils.hub as h; print(h.http_user_agent())",
        True,
    ),
    "threading": (
        "threading",
        "import os, threading; p = os.getpid(); print(threading.main_thread().native_id == p, p)",
        False,
    ),
}


@pytest.mark.parametrize("action", AGAIN)
def test_a_rank_does_again(own: Warm, action: str) -> None:
    module, text, needed = AGAIN[action]
    own.python = python_with(module)
    own.env = {"NUMEXPR_NUM_THREADS": "2"}
    program = ["-c", text]
    own.trial(program)
    own.plan["names"] = {  # of all that is imported with it
        event: [(rule.modules, rule.names) for rule in RULES if rule.event == event and rule.names]
        for event in ("environ", "thread", "library")
    }
    if needed:
        before = own.ranks(program, {}, {})
        assert before[0].stdout.startswith("False") or before[0].stdout == before[1].stdout
    own.plan["again"] = [(module, action)]
    plain = own.plain(program)
    one, two = own.ranks(program, {}, {})
    assert (one.refused, one.stderr, plain.stderr) == ("", "", "")
    assert len({one.stdout, two.stdout, plain.stdout}) == 3
    assert not one.stdout.startswith("False")


def test_tempfile_keeps_the_folder_that_dill_has_asked_for(own: Warm) -> None:
    own.python = python_with("dill")
    text = "import dill.session, os, tempfile; os.environ['TMPDIR'] = '/'; print(tempfile.mktemp())"
    program = ["-c", text]
    own.trial(program)
    kept = own.plain(program).stdout.rpartition("/")[0]
    own.plan["again"] = [("tempfile", "tempfile-names")]
    (lost,) = own.ranks(program)
    own.plan["again"] += [("dill.session", "tempfile-folder")]
    (rank,) = own.ranks(program)
    assert (rank.refused, lost.refused) == ("", "")
    assert rank.stdout.rpartition("/")[0] == kept != lost.stdout.rpartition("/")[0]


def test_a_module_with_which_it_cannot_be_done_is_executed_by_the_rank(own: Warm) -> None:
    """`random` without its generator: it, and who imports it, are executed as always."""
    (own.cwd / "other.py").write_text("import random\ndel random._inst\n")
    own.trial(["-c", "import other"])
    own.plan["again"] = [("random", "random-seed")]
    program = ["-c", "import other, sys; print(other.random is sys.modules['random'])"]
    text = "import sys; sys.modules['random']._inst; import random; print(random.random() < 1)"
    (rank,) = own.ranks(program)
    assert (rank.refused, rank.stderr, rank.stdout) == ("", "", "True\n")
    (rank,) = own.ranks(["-c", f"import random\n{text}"])
    assert (rank.refused, rank.stderr, rank.stdout) == ("", "", "True\n")


def test_it_is_done_though_the_module_is_executed_anew(own: Warm) -> None:
    """A module in C keeps what it has, however often it is executed."""
    pytest.importorskip("numpy")
    own.trial(["-c", "import numpy.random"])
    own.plan["again"] = [("numpy.random.mtrand", "numpy-random")]
    text = "import secrets, sys; del sys.modules['secrets']; import secrets\n"
    program = ["-c", text + "import numpy; print(numpy.random.rand())"]
    one, two = own.ranks(program, {}, {})
    assert (one.refused, one.stderr, two.stderr) == ("", "", "")
    assert one.stdout and one.stdout != two.stdout


def test_what_modules_of_cython_share_may_be_there_before(own: Warm) -> None:
    text = "import sys, types\nsys.modules.setdefault('cython_runtime', types.ModuleType('c'))\n"
    (own.cwd / "shares.py").write_text(text + "open('executed', 'a').write('x')\n")
    own.trial(["-c", "import shares"])
    (rank,) = own.ranks(["-c", text + "import shares"])
    assert (rank.refused, rank.stderr, own.report["left"]) == ("", "", {})
    assert (own.cwd / "executed").read_text() == "xx"  # in the trial, and in the template


def test_it_is_done_when_the_program_sees_the_module_and_no_earlier(own: Warm) -> None:
    (own.cwd / "multiprocessing_like.py").write_text("import random\nvalue = random.random()\n")
    text = "import random; random.seed(5); import json; print(random.random())"
    program = ["-c", text]
    own.trial(program)
    own.plan["again"] = [("random", "random-seed")]
    assert {rank.stdout for rank in own.ranks(program, {}, {})} == {own.plain(program).stdout}


def test_each_rank_has_its_environment_in_python_and_below(own: Warm) -> None:
    text = "import json, os; print(sorted(k for k in os.environ if k != '_'), os.environ['MINE'])"
    program = ["-c", text]
    envs = [{"MINE": "1", "ONLY": "1"}, {"MINE": "2", "MORE": "x"}]
    own.trial(program, envs[0])
    for env, rank in zip(envs, own.ranks(program, *envs)):
        assert rank.said() == own.plain(program, env).said()


STREAMS = """
import json, sys
for s in (sys.stdin, sys.stdout, sys.stderr):
    raw = s and getattr(s.buffer, 'raw', s.buffer)
    print(s and (s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through,
          s.isatty(), s.seekable(), type(s.buffer).__name__, raw.mode,
          raw.closefd, raw.name, s.seekable() and s.tell()), file=sys.stderr)
print(sys.stdin and sys.stdin.read(), file=sys.stderr)
print('out'); print('err', file=sys.stderr)
"""


@pytest.mark.parametrize("kind", ["pipe", "null", "closed", "appended"])
@pytest.mark.parametrize("options", [[], ["-u"]])
def test_standard_streams_of_another_kind_than_the_template_s(
    own: Warm, kind: str, options: list[str]
) -> None:
    program = [*options, "-c", STREAMS]
    own.trial(program)
    own.stdin = kind
    plain = own.plain(program)
    (rank,) = own.ranks(program)
    assert (rank.refused, rank.said()) == ("", plain.said())


# modules of a program's own, and programs that import them in another order than the trial
MODULES = {
    "b": "name = 'b'\n",
    "c": "import b\n",
    "d": "import b, c\n",
    "tries": "try: import maybe\nexcept ImportError: maybe = None\n"
    "def bye(): print('bye of another')\n",
    "leaves": "import atexit\ndef bye(): print('bye')\natexit.register(bye)\n",
    "leaves_another_s": "import atexit, functools, tries\natexit.register(tries.bye)\n"
    "atexit.register(functools.partial(print, 'a part'))\n",
    "shows": "import logging, warnings\nlogging.setLogRecordFactory(print)\n"
    "def mine(*given): print('shown', given[0])\nwarnings.showwarning = mine\n",
    "logs": "import logging\nlog = logging.getLogger('of_its_own'); log.more = 1\n",
    "log_class": "import logging\nclass Log(logging.Logger):\n  told = 0\n"
    "  def mine(self, *given): print('mine', given[0])\n",
    "shows_as_well": "import log_class, logging, shows, warnings\nbefore = warnings.showwarning\n"
    "logging.setLoggerClass(log_class.Log); log = logging.getLogger('as_well')\n"
    "logging.setLoggerClass(logging.Logger); warnings.showwarning = log.mine\n"
    "log.told += 1\n",
    "filters": "import warnings\nwarnings.filterwarnings('ignore', 'of mine')\n",
    "collects": "import gc\nseen = []\ndef told(phase, info): seen.append(phase)\n"
    "gc.callbacks.append(told)\n",
    "guesses": "try: import _codecs; has = True\nexcept ImportError: has = False\n",
    "marks": "import sys\nsys._marked = 'by it'\n",
    "asks": "import os\nvalue, mark = os.environ.get('ASKED'), os.environ.get('SET')\n",
    "lazy": "def __getattr__(name):\n  if name != 'b': raise AttributeError(name)\n  import b\n"
    "  globals()[name] = b\n  return b\n",
    "gives": "import b, lazy\nb.more = lazy.b.name\n",
    "sets": "import os\nos.environ['SET'] = '1'; os.environ['GONE'] = ''; del os.environ['GONE']\n",
}
ORDERS = {
    "what_a_later_module_asks_for_again": "import c, sys; print(list(sys.modules)[-2:])",
    "a_module_that_was_made_anew_meanwhile": "import b, sys; old = b; del sys.modules['b']\n"
    "import b, c, d; print(c.b is b, c.b is old, d.b is b)",
    "a_module_that_can_be_found_now": "import sys, types\n"
    "class Finder:\n"
    "  def find_spec(self, name, path=None, target=None):\n"
    "    from importlib.util import spec_from_loader\n"
    "    return spec_from_loader(name, self) if name == 'maybe' else None\n"
    "  def create_module(self, spec): return None\n"
    "  def exec_module(self, module): module.x = 1\n"
    "sys.meta_path.append(Finder())\nimport tries; print(tries.maybe.x)",
    "what_is_called_at_the_end": "import atexit; atexit.register(print, 'first')\n"
    "import leaves; atexit.register(print, 'last')",
    "what_is_called_at_the_end_of_what_was_not_imported": "import b, atexit",
    "what_of_another_module_is_called_at_the_end": "import atexit, tries\n"
    "atexit.register(print, 'first')\nimport leaves_another_s; atexit.register(print, 'last')",
    "how_warnings_are_shown_before_and_after": "import logging, warnings\n"
    "warnings.warn('before'); print(logging.getLogRecordFactory())\n"
    "import shows; warnings.warn('after'); print(logging.getLogRecordFactory())",
    "how_warnings_are_shown_by_a_module_and_by_one_that_it_imports": "import warnings\n"
    "import shows_as_well, shows; print(shows_as_well.before is shows.mine)\n"
    "warnings.warn('after'); print(shows_as_well.log.told)",
    "a_logger_of_a_module_that_is_executed_anew": "import logging, shows, sys, types, warnings\n"
    "sys.modules['maybe'] = types.ModuleType('maybe'); warnings.showwarning = print\n"
    "import shows_as_well; print(shows_as_well.log.told)",
    "a_logger_that_the_program_asks_for_before": "import logging\n"
    "log = logging.getLogger('of_its_own'); print(sorted(vars(log)))\n"
    "import logs; print(logs.log is log, log.more)",
    "how_warnings_are_shown_by_the_program": "import warnings\n"
    "warnings.showwarning = lambda *given: print('mine', given[0])\n"
    "warnings.warn('before'); import shows; warnings.warn('after')",
    "filters_in_front_of_the_program_s": "import warnings; warnings.simplefilter('error')\n"
    "print(len(warnings.filters)); import filters; print([f[0] for f in warnings.filters])",
    "who_is_told_of_collections": "import gc; print(gc.callbacks); gc.callbacks.append(print)\n"
    "import collects; print(gc.callbacks == [print, collects.told]); gc.callbacks.remove(print)\n"
    "gc.collect(); print(collects.seen[-2:])",
    "who_is_told_of_collections_by_what_was_not_imported": "import b, gc; print(gc.callbacks)",
    "what_is_imported_while_a_part_in_c_is_kept_away": "import sys\nsys.modules['_codecs'] = None\n"
    "import guesses; print(guesses.has)",
    "what_an_import_gives_to_sys": "import sys; print(hasattr(sys, '_marked'))\n"
    "import marks; print(sys._marked)",
    "what_the_program_gave_to_sys": "import sys; sys._marked = 'before'\n"
    "import marks; print(sys._marked)",
    "a_variable_that_the_program_has_set": "import os; os.environ['ASKED'] = 'now'\n"
    "import asks; print(asks.value)",
    "a_variable_that_no_import_has_set_yet": "import asks; print(asks.mark)\n"
    "import sets, sys; del sys.modules['asks']; import asks; print(asks.mark)",
    "a_variable_that_an_import_has_set": "import sets, asks; print(asks.mark)",
    "a_lazy_attribute_that_a_module_asked_for_that_is_not_imported_here": "import lazy, sys\n"
    "print(sorted(vars(lazy)), 'b' in sys.modules); print(lazy.b, 'b' in sys.modules)\n"
    "import gives; print(gives.b is lazy.b, sorted(vars(lazy)))",
    "what_a_module_puts_into_another": "import b; print(sorted(vars(b)))\n"
    "import gives; print(sorted(vars(b)), b.more)",
    "variables_that_an_import_sets": "import os; print(os.environ.get('SET'))\n"
    "import sets; print(os.environ.get('SET'), os.environ.get('GONE'), os.getenv('SET'))",
}


@pytest.mark.parametrize("name", ORDERS)
def test_a_rank_that_imports_otherwise_than_the_trial_sees(own: Warm, name: str) -> None:
    for module, text in MODULES.items():
        (own.cwd / f"{module}.py").write_text(text)
    names = [name for name in MODULES if name not in ("b", "c", "d")]
    own.trial(["-c", f"import d, {', '.join(names)}, importlib.util"])
    program = ["-c", ORDERS[name]]
    plain = own.plain(program)
    (rank,) = own.ranks(program)
    assert (rank.refused, rank.said()) == ("", plain.said())
    assert own.report["left"] == {} and plain.returncode == 0


def test_what_a_module_and_one_that_it_imports_replace_is_shown_and_not_executed(own: Warm) -> None:
    (own.cwd / "shows.py").write_text(MODULES["shows"])
    (own.cwd / "log_class.py").write_text(MODULES["log_class"])
    (own.cwd / "shows_as_well.py").write_text(MODULES["shows_as_well"])
    program = [
        "-c",
        "import sys\nseen = []\n"
        "sys.setprofile(lambda frame, *given: seen.append(frame.f_code.co_filename))\n"
        "import shows_as_well\nsys.setprofile(None)\n"
        "print([name for name in seen if 'shows' in name and name.endswith('.py')] == [])",
    ]
    own.trial(program)
    (rank,) = own.ranks(program)
    assert (rank.refused, rank.stdout) == ("", "True\n"), rank.stderr


@pytest.mark.parametrize("how", ["rmdir ../gone", "chmod 0 ."])
@pytest.mark.parametrize("arguments", [["{}/script.py"], ["-m", "json.tool", "/dev/null"]])
def test_in_a_folder_that_is_gone_or_closed(warm: Warm, how: str, arguments: list[str]) -> None:
    (warm.cwd / "script.py").write_text(
        "import json, os, sys\nprint(sys.path, list(sys.modules))\n"
        "try: print(os.getcwd())\nexcept OSError as error: print(error)\n"
    )
    python = warm.folder / "python"
    python.write_text(f'#!/bin/sh\nmkdir -p gone; cd gone; {how}; exec {warm.python} "$@"\n')
    python.chmod(0o755)
    warm.python = str(python)
    arguments = [word.format(warm.cwd) for word in arguments]
    warm.trial(arguments)
    plain = warm.plain(arguments)
    (rank,) = warm.ranks(arguments)
    assert not warm.template_said and warm.report["refused"] == ""
    assert (rank.refused, rank.said()) == ("", plain.said())
