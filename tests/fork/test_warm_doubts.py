"""Where a template is in doubt, ranks are refused, or a module is left to them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from warm_world import Warm

from brigade.fork.pins import pins_text

SAY = "import sys\nprint('MODULE' in sys.modules); import csv, MODULE; print(list(sys.modules))"


@pytest.fixture
def own(tmp_path: Path) -> Warm:
    return Warm(tmp_path, sys.executable)


def put(warm: Warm, text: str) -> list[str]:
    """A module `thing` with that text, which `above` imports, and a program that imports it."""
    (warm.cwd / "thing.py").write_text(text)
    (warm.cwd / "above.py").write_text("import thing\n")
    program = ["-c", SAY.replace("MODULE", "above")]
    warm.trial(program)
    return program


def test_without_a_plan_every_rank_is_refused(own: Warm) -> None:
    program = put(own, "x = 1")
    own.plan = {}
    done = own.ranks(program, {}, {})
    assert [rank.refused for rank in done] == ["the image's plan is of another version"] * 2


def test_a_plan_that_is_cut_refuses(own: Warm) -> None:
    program = put(own, "x = 1")
    own.plan_bytes = b"\xdb\x01"
    (rank,) = own.ranks(program)
    assert rank.refused.startswith("the image has no plan:")


@pytest.mark.parametrize("name", ["THING", "PYTHONHASHSEED", "LANG", "HOME"])
def test_a_variable_that_was_read_and_differs_refuses_that_rank(own: Warm, name: str) -> None:
    program = put(own, "import os\nx = os.environ.get('THING')")
    same, other, none = own.ranks(program, {name: "7"}, {name: "8"}, {"UNREAD": "1", name: "7"})
    assert (same.refused, none.refused) == ("", "")
    assert other.refused == f"variable {name} differs"


def test_a_variable_that_was_absent_when_it_was_read_must_be_absent(own: Warm) -> None:
    program = put(own, "import os\nx = 'THING' in os.environ")
    one, two = own.ranks(program, {}, {"THING": ""})
    assert (one.refused, two.refused) == ("", "variable THING differs")


def test_of_all_variables_only_those_may_differ_that_do_not_count(own: Warm) -> None:
    program = put(own, "import os\nx = {k for k in os.environ if k.startswith('MINE_')}")
    own.plan["names"] = {"environ": [("thing", ("MINE_*", "ONE"))]}
    envs = [{"MINE_A": "1"}, {"OTHER": "1", "MINE_A": "1"}, {"MINE_A": "1", "MINE_B": ""}, {}]
    refused = [rank.refused for rank in own.ranks(program, *envs)]
    assert refused == ["", "", "variable MINE_B differs", "variable MINE_A differs"]
    assert own.report["left"] == {}
    program = ["-c", "import os; os.environ['MINE_C'] = ''; import thing; print(thing.x)"]
    (rank,) = own.ranks(program)
    assert rank.stdout == "{'MINE_C'}\n"


NAMED_THREAD = """
import ctypes, threading, time
named = threading.Event()
def run():
    ctypes.CDLL(None).prctl(15, b"stays")
    named.set()
    time.sleep(60)
threading.Thread(target=run, daemon=True).start()
named.wait()
"""


@pytest.mark.parametrize("name", ["stays", "goes"])
def test_only_a_thread_that_a_rule_names_may_stay(own: Warm, name: str) -> None:
    program = put(own, NAMED_THREAD)
    own.plan["names"] = {"thread": [("thing", (name,))]}
    own.env = {"PYTHONWARNINGS": "always"}  # Python says that a process with threads forks
    own.tries = False
    (rank,) = own.ranks(program)
    assert rank.refused == ("" if name == "stays" else "threads 1 stay when the process is forked")
    assert "fork" not in own.template_said + rank.stderr


def test_hash_seeds_are_refused_on_demand(own: Warm) -> None:
    program = put(own, "x = 1")
    own.template_env = {"BRIGADE_FORK_HASH": "refuse"}
    assert "PYTHONHASHSEED" in own.ranks(program)[0].refused
    assert own.ranks(program, {"PYTHONHASHSEED": "5"})[0].refused == ""
    own.template_env = {}
    assert own.ranks(program)[0].refused == ""


@pytest.mark.parametrize("options", [["-v"], ["-X", "importtime"]])
def test_options_that_show_each_import_refuse(own: Warm, options: list[str]) -> None:
    program = put(own, "x = 1")
    assert "show each import" in own.ranks([*options, *program])[0].refused


# what a module must not do while a template warms, and how it is told
SURPRISES = {
    "prints": ("print('hello')", "changed output"),
    "prints_from_below": ("import os; os.write(2, b'hello')", "changed output"),
    "sets_the_recursion_limit": ("import sys; sys.setrecursionlimit(5000)", "the recursion limit"),
    "takes_a_hook": ("import sys; sys.excepthook = lambda *a: None", "changed sys.excepthook"),
    "adds_a_builtin": ("import builtins; builtins.mine = 1", "changed builtins.mine"),
    "sets_a_signal": ("import signal; signal.signal(10, print)", "signal handlers"),
    "changes_the_folder": ("import os; os.chdir('/')", "the working directory"),
    "changes_the_umask": ("import os; os.umask(0o77)", "the umask"),
    "puts_an_equal_list_in_place": ("import sys; sys.argv = sys.argv[:]", "changed sys.argv"),
    "keeps_a_file_open": ("f = open('/dev/null')", "a descriptor that stays open"),
    "keeps_one_open_for_another": (
        "import os; os.open('/dev/null', 0); os.close(0)",
        "a descriptor that stays open",
    ),
    "has_its_lines_written_at_once": (
        "import sys; sys.stdout.reconfigure(line_buffering=True)",
        "the standard streams",
    ),
    "asks_what_the_program_has_set": (
        "import sys; ready = getattr(sys.modules['__main__'], 'ready', 0)",
        "asks the program for ready",
    ),
    "stops_collecting": ("import gc; gc.disable()", "the garbage collector"),
    "imports_otherwise": (
        "import builtins\nreal = builtins.__import__\n"
        "builtins.__import__ = lambda *given: real(*given)",
        "changed builtins.__import__",
    ),
    "finds_otherwise": (
        "from importlib.machinery import PathFinder\nreal = PathFinder.find_spec\n"
        "PathFinder.find_spec = lambda *given: real(*given)",
        "changed PathFinder.find_spec",
    ),
    "reads_all_variables": ("import os; x = dict(os.environ)", "all of the environment"),
    "sets_a_limit": (
        "from resource import *; setrlimit(RLIMIT_NOFILE, (512, getrlimit(RLIMIT_NOFILE)[1]))",
        "the limits",
    ),
    "is_nice": ("import os; os.nice(1)", "the priority"),
    "sets_an_alarm": ("import signal; signal.alarm(99)", "the timers"),
    "sets_a_timer": ("import signal; signal.setitimer(signal.ITIMER_PROF, 99)", "the timers"),
    "binds_itself": (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})",
        "the processors it may use",
    ),
    "seeds_random": ("import random; random.seed(42)", "the random numbers of random"),
    "draws_half_of_two": (
        "import random; random.gauss(0, 1)",
        "the random numbers of random",
    ),
    "counts_with_more_digits": (
        "import decimal; decimal.getcontext().prec = 50",
        "the context of decimal",
    ),
    "sets_a_context_variable": (
        "import contextvars; v = contextvars.ContextVar('v'); v.set([])",
        "context variables",
    ),
    "rounds_otherwise": (
        "import ctypes; ctypes.CDLL('libm.so.6').fesetround(0x800)",
        "how numbers are rounded",
    ),
    "has_longer_integers": (
        "import sys; sys.set_int_max_str_digits(9999)",
        "the digits of integers",
    ),
    "has_a_larger_stack": ("import threading; threading.stack_size(1 << 20)", "the stack of"),
    "waits_for_sockets": (
        "import socket; socket.setdefaulttimeout(9)",
        "the time that sockets wait",
    ),
    "reads_longer_fields": ("import csv; csv.field_size_limit(9)", "the longest field of csv"),
    "tells_of_faults": ("import faulthandler; faulthandler.enable()", "faulthandler"),
    "spawns": (
        "import multiprocessing; multiprocessing.set_start_method('spawn')",
        "the start method of multiprocessing",
    ),
    "starts_a_thread": (
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
        "threads 1 stay",
    ),
    "fails_when_it_is_imported_early": (
        "import sys; sys.modules['__main__'].__dict__['csv']",
        "KeyError",
    ),
}


@pytest.mark.parametrize("name", SURPRISES)
def test_a_template_without_another_try_is_of_no_use_after_a_module_that(
    own: Warm, name: str
) -> None:
    text, why = SURPRISES[name]
    program = put(own, text)
    own.plan["warm"] += [(n, str(own.cwd / f"{n}.py")) for n in ("above", "thing")]
    own.plan["warm"] = list(dict(own.plan["warm"]).items())
    own.tries = False
    for rank in own.ranks(program, {}, {}):
        assert why in rank.refused
    assert not own.template_said


@pytest.mark.parametrize("name", [n for n in SURPRISES if n not in ("starts_a_thread",)])
def test_at_a_second_try_it_leaves_a_module_that(own: Warm, name: str) -> None:
    text, why = SURPRISES[name]
    program = put(own, text)
    plain = own.plain(program)
    (rank,) = own.ranks(program)
    assert (rank.refused, rank.said()) == ("", plain.said())
    assert why in str(own.report["left"]), own.report
    assert int(own.report["warm"]) > 3  # csv, and what it imports


@pytest.mark.parametrize("who", ["thing", "above"])
def test_random_numbers_that_a_rule_lets_a_module_draw_blame_nobody(own: Warm, who: str) -> None:
    program = put(own, "import random; x = random.random()")
    own.plan["names"] = {"generator": [(who, ("random",))]}
    (rank,) = own.ranks(program)
    assert rank.refused == ""
    assert ("thing" in own.report["left"]) is (who == "above"), own.report
    assert ("above" in own.report["left"]) is (who == "above")


@pytest.mark.parametrize(
    ("variable", "value", "is_left"),
    [
        ("OMP_PROC_BIND", "close", True),
        ("OMP_PLACES", "cores", True),
        ("GOMP_CPU_AFFINITY", "0-3", True),
        ("OMP_PROC_BIND", "FALSE", False),
        ("OMP_PROC_BIND", "", False),
    ],
)
def test_openmp_that_binds_threads_is_left_though_the_trial_did_not(
    own: Warm, variable: str, value: str, is_left: bool
) -> None:
    program = put(own, "x = 1")
    own.plan["names"] = {"library": [("thing", ("OMP_*", "GOMP_*")), ("above", ("OTHER_*",))]}
    (rank,) = own.ranks(program, {variable: value})
    assert (rank.refused, "thing" in own.report["left"]) == ("", is_left), own.report


SEEDS = "import random, numpy; random.seed(42); numpy.random.seed(7); numpy.random.rand(); x = 1"
DRAWS = "import random, numpy; x = random.random(), numpy.random.rand()"


@pytest.mark.parametrize("text", [SEEDS, DRAWS])
def test_random_numbers_are_a_rank_s_own_unless_a_module_seeds_them(own: Warm, text: str) -> None:
    pytest.importorskip("numpy")
    put(own, text)
    program = ["-c", "import thing, random, numpy; print(thing.x, random.random(), "
               "numpy.random.rand(), 'numpy.random' in __import__('sys').modules)"]  # fmt: skip
    own.trial(program)
    plain, again = own.plain(program), own.plain(program)
    one, two = own.ranks(program, {}, {})
    assert (one.refused, two.refused) == ("", "")
    assert (one.stdout == two.stdout) is (plain.stdout == again.stdout) is (text == SEEDS)
    assert text == DRAWS or one.stdout == plain.stdout
    assert list(own.report["left"]) == ["thing"] and int(own.report["warm"]) > 90


TORCH = {
    "torch/__init__.py": "from . import _C, inner",  # draws before its generator may be asked
    "torch/inner.py": "from . import _C\n_C.default_generator.state += 1",
    "torch/_C.py": """
import sys
class State(int):
    def equal(self, other): return int(self) == int(other)
    __eq__ = None
class Generator:
    state = 1
    def get_state(self):
        assert not sys.modules['torch'].__spec__._initializing
        return State(self.state)
default_generator = Generator()
_len_torch_dispatch_stack = _len_torch_function_stack = int
""",
}


def test_so_are_those_of_pytorch(own: Warm) -> None:
    (own.cwd / "torch").mkdir()
    for name, text in TORCH.items():
        (own.cwd / name).write_text(text)
    program = put(own, "import torch; torch._C.default_generator.state = 0")
    (rank,) = own.ranks(program)
    why = "changed the random numbers of torch"
    assert own.report["left"] == {"thing": why, "above": "imports thing"}, own.report
    assert rank.refused == ""


def test_a_context_of_decimal_that_is_only_used_is_no_surprise(own: Warm) -> None:
    text = "import decimal; x = decimal.Decimal('1.5') * 2"
    put(own, text)
    program = ["-c", "import above, decimal; decimal.DefaultContext.prec = 9; print(above, "
               "decimal.Decimal(1) / 3)"]  # fmt: skip
    own.trial(program)
    plain = own.plain(program)
    (rank,) = own.ranks(program)
    assert (rank.refused, own.report["left"], rank.said()) == ("", {}, plain.said())


def test_so_are_those_of_numpy(own: Warm) -> None:
    pytest.importorskip("numpy")
    program = put(own, "import numpy\nwith numpy.errstate(all='ignore'): x = numpy.ones(1) / 0")
    (rank,) = own.ranks(program)
    assert (rank.refused, own.report["left"]) == ("", {})
    program = put(own, "import numpy; numpy.seterr(all='ignore')")
    (rank,) = own.ranks(program)
    assert "thing" in own.report["left"] and "numpy" not in own.report["left"], own.report


def test_what_pybind11_keeps_among_the_builtins_is_no_surprise(own: Warm) -> None:
    text = "import builtins; builtins.__pybind11_internals_v4_gcc__ = object()"
    (rank,) = own.ranks(put(own, text))
    assert (rank.refused, own.report["left"]) == ("", {})


def test_what_a_plan_leaves_is_not_executed_though_something_imports_it(own: Warm) -> None:
    program = put(own, "open('executed', 'a').write('x')")
    own.plan["left"] = {"thing": "because"}
    (rank,) = own.ranks(program)
    assert rank.refused == ""
    assert (own.cwd / "executed").read_text() == "xx"  # in the trial, and in the rank
    assert own.report["left"] == {"above": "imports thing, which is left: because"}


def test_a_module_that_no_trial_has_seen_is_not_executed(own: Warm) -> None:
    program = put(own, "x = 1")
    (own.cwd / "thing.py").write_text("import more")
    (own.cwd / "more.py").write_text("open('executed', 'a').write('x')")
    (rank,) = own.ranks(program)
    assert (own.cwd / "executed").read_text() == "x"
    assert "not imported in the trial" in own.report["left"]["thing"]


def test_a_module_that_is_now_another_file_is_left(own: Warm) -> None:
    program = put(own, "where = __file__")
    own.plan["warm"] = [(n, "/elsewhere.py" if n == "thing" else o) for n, o in own.plan["warm"]]
    plain = own.plain(program)
    (rank,) = own.ranks(program)
    assert rank.said() == plain.said()
    assert "imports thing, which is /" in own.report["left"]["above"]


def test_a_module_that_is_not_found_is_left_and_needs_no_second_try(own: Warm) -> None:
    (own.cwd / "elsewhere").mkdir()
    (own.cwd / "elsewhere/far.py").write_text("x = 1")
    program = ["-c", f"import sys; sys.path.append('elsewhere'); import far; {SAY}"]
    program[1] = program[1].replace("MODULE", "far")
    own.trial(program)
    own.tries = False
    plain = own.plain(program)
    (rank,) = own.ranks(program)
    assert (rank.refused, rank.said()) == ("", plain.said())
    assert own.report["left"] == {"far": "No module named 'far'"}
    assert int(own.report["warm"]) > 3  # csv, and what it imports


# what the program does first, the module `thing`, whether that raises in the program, and why it
# is left
FAILURES = {
    "warnings are errors": (
        "import warnings; warnings.simplefilter('error')",
        "import warnings; warnings.warn('old')",
        True,
        "fails in the trial, and not in a template",
    ),
    "it asks the program for what it has set": (
        "ready = True",
        "import sys; assert sys.modules['__main__'].__dict__['ready']",
        False,
        "KeyError: 'ready'|fails in a template, and not in the trial",
    ),
    "it always fails": ("pass", "raise ValueError('no')", True, ""),
}


@pytest.mark.parametrize("caught", ["not caught", "by the program", "by a module"])
@pytest.mark.parametrize("case", FAILURES)
def test_a_module_fails_in_a_rank_where_it_fails_in_the_program(
    own: Warm, case: str, caught: str
) -> None:
    first, thing, fails, why = FAILURES[case]
    (own.cwd / "thing.py").write_text(thing)
    above = "try: import thing\nexcept Exception: thing = None\n"
    (own.cwd / "above.py").write_text(above if caught == "by a module" else "import thing\n")
    asks = "import csv, above; print(above.thing is None)"
    if caught == "by the program":
        asks = "import csv\ntry: import above\nexcept Exception as error: print(repr(error))"
    program = ["-c", f"{first}\n{asks}\nprint('thing' in __import__('sys').modules)"]
    own.trial(program)
    assert ("thing" in own.plan["fails"]) is fails
    plain = own.plain(program)
    for rank in own.ranks(program, {}, {}):
        assert (rank.refused, rank.said()) == ("", plain.said())
    assert int(own.report["warm"]) > 3  # csv, and what it imports
    assert re.fullmatch(why, own.report["left"].get("thing", "")), own.report
    own.tries = case != "it always fails"
    assert own.ranks(program)[0].refused == ""  # and what always fails needs no second try


def test_a_file_that_the_program_writes_anew_before_it_imports_it(own: Warm) -> None:
    (own.cwd / "thing.py").write_text("x = 'old'")
    text = "open('thing.py', 'w').write('x = \"new, and longer\"')\nimport thing; print(thing.x)"
    own.trial(["-c", text])
    (own.cwd / "thing.py").write_text("x = 'old'")
    (rank,) = own.ranks(["-c", text])
    assert (rank.stdout, own.report["left"]) == ("new, and longer\n", {})


def test_an_action_that_is_not_known_refuses(own: Warm) -> None:
    program = put(own, "x = 1")
    own.plan["again"] = [("thing", "dance")]
    assert "'dance'" in own.ranks(program)[0].refused


def test_what_the_user_pins(own: Warm) -> None:
    program = put(own, "x = 1")
    names = [name for name, _origin in own.plan["warm"]]
    number = names.index("thing")
    own.plan["left"] = {"above": "because", "thing": "because"}
    own.plan["others"] = [(number - 1, *own.plan["warm"][number - 1 + add]) for add in (0, 1)]
    assert [entry[1] for entry in own.plan["others"]] == ["above", "thing"]
    own.plan["warm"] = own.plan["warm"][: number - 1]
    plain = own.plain(program)

    def warm_with(pins: dict[str, str]) -> int:
        own.template_env = {"BRIGADE_FORK_PINS": pins_text(pins)} if pins else {}
        (rank,) = own.ranks(program)
        assert (rank.refused, rank.said()) == ("", plain.said())
        return int(own.report["warm"])

    assert warm_with({}) == number - 1
    assert warm_with({"above": "", "thing": ""}) == number + 1
    assert warm_with({"csv": "the user said so"}) < number - 1
