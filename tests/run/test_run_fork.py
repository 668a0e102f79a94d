"""`brigade run --fork` on one machine: ranks forked from one warm process do what they did without,
and the report says which were."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from processes import until
from project import Site

from brigade.paths import native

FORK = ("--fork", "-n", "4")
APP = """\
import json, os, sys
parent = os.getppid()
before = sorted(n for n in sys.modules if n.startswith(("pkg", "random", "decimal")))
import pkg, pkg.deep.leaf, random, decimal
text = json.dumps({"rank": os.environ["BRIGADE_RANK"], "parent": parent, "before": before,
                  "number": random.random(), "hidden": [n for n in os.environ if "FORK" in n],
                  "file": pkg.deep.leaf.__file__, "argv": sys.argv, "word": pkg.word})
sys.stdout.write(text + "\\n")
sys.stdout.flush()
if sys.argv[1:] == ["wait"]:
    os.read(int(os.environ["HOLD"]), 1)
sys.exit(int(os.environ["BRIGADE_RANK"]) if sys.argv[1:] == ["exit"] else 0)
"""


@pytest.fixture
def forked(site: Site) -> Site:
    """A program with a package that reads a variable."""
    site.app.write_text(APP)
    init = site.package / "__init__.py"
    init.write_text(init.read_text() + "word = os.environ.get('WORD', '')\n")
    return site


def told(done: subprocess.CompletedProcess[str]) -> list[dict]:
    assert done.returncode == 0, done.stderr
    return sorted(map(json.loads, done.stdout.splitlines()), key=lambda one: one["rank"])


def test_ranks_come_from_one_process_and_share_nothing_they_should_not(forked: Site) -> None:
    forked.brigade(run=FORK)
    ranks = told(forked.brigade("a", "b c", run=FORK))
    report = forked.report()
    assert [one["rank"] for one in ranks] == ["0", "1", "2", "3"]
    assert len({one["parent"] for one in ranks}) == 1
    assert len({one["number"] for one in ranks}) == 4
    assert all(one["before"] == [] and one["hidden"] == [] for one in ranks)
    assert all(one["argv"][1:] == ["a", "b c"] for one in ranks)
    assert report["fork"]["ranks"] == 4 and report["fork"]["plain"] == []
    assert report["fork"]["modules"] > 5 and report["fork"]["warm_seconds"] > 0


def test_output_is_what_it_is_without_a_fork(made: Site) -> None:
    plain, under = made.plain("a", "b c"), made.brigade("a", "b c", run=FORK)
    assert set(under.stdout.splitlines()) == set(plain.stdout.splitlines())
    assert made.report()["fork"]["ranks"] == 4


SAYS_ALL = """\
import os, sys
said = []
def tell(what):
    said.append([what, list(sys.modules), sorted(sys.path_importer_cache), sys.path])
    packages = [m for m in list(sys.modules.values()) if hasattr(m, "__path__")]
    said.append([(package.__name__, sorted(vars(package))) for package in packages])
tell("first")
import xml.dom.minidom
tell("xml")
import email.message, pkg
tell("pkg")
said.append([hasattr(sys.modules["email"], "parser"), hasattr(pkg, "deep")])
if os.listdir(os.environ["SHADOW"]):
    sys.path.insert(0, os.environ["PACKAGE"])
import pkg.whole
said.append([sys.modules["beside"].__file__, hasattr(pkg.deep, "leaf")])
tell("whole")
import pkg.deep.leaf, json.tool
tell("last")
import fcntl
turn = open(sys.argv[0])
fcntl.flock(turn, fcntl.LOCK_EX)  # it is longer than what a pipe takes at once
sys.stdout.write(repr(said) + "\\n")
sys.stdout.flush()
"""


@pytest.mark.parametrize("shadowed", [False, True])
def test_what_a_program_can_see_of_imports_is_the_same(
    site: Site, shadowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modules appear when they are imported, in the order of then; and one that would now be found
    elsewhere is taken from there."""
    site.app.write_text(SAYS_ALL)
    (site.package / "beside.py").write_text("")
    (site.package.parent / "beside.py").write_text("")
    (site.package / "whole.py").write_text("import beside, pkg.inner.thing\n")
    (site.package / "inner").mkdir()
    (site.package / "inner/__init__.py").write_text("")
    (site.package / "inner/thing.py").write_text("import pkg.deep\n")
    shadow = site.base / "shadow"  # neither another command line than the trial's nor another file
    shadow.mkdir()
    monkeypatch.setenv("SHADOW", str(shadow))
    monkeypatch.setenv("PACKAGE", str(site.package))
    covers = [sysconfig.get_path("stdlib"), str(site.app.parent), str(site.base / "venv")]
    covers += [entry for entry in os.environ.get("PYTHONPATH", "").split(":") if entry]
    run = (*FORK, *(word for cover in covers for word in ("--cover", cover)))
    site.brigade(run=run)
    if shadowed:
        (shadow / "it").touch()
    under = site.brigade(run=run)
    assert site.report()["fork"]["ranks"] == 4, site.report()["fork"]
    assert site.report()["fork"]["modules"] > 60
    plain = site.plain()
    assert ("pkg/beside.py" in plain.stdout) == shadowed
    assert set(under.stdout.splitlines()) == {plain.stdout.strip()}


COUNTS_PAGES = """\
import os, resource
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = faults()
import pkg.all
os.write(1, b"%d\\n" % (faults() - before))
"""


def test_a_rank_writes_to_few_pages_when_it_imports_what_is_warm(site: Site) -> None:
    """What is written to is shared no longer. What showing looks at lies together (140 pages here);
    it would be four pages a module or more if it lay where it was made."""
    modules = 800
    site.app.write_text(COUNTS_PAGES)
    names = [f"m{number}" for number in range(modules)]
    for name in names:
        (site.package / f"{name}.py").write_text(f"class Thing:\n    '{name}'\ndef f(): pass\n")
    (site.package / "all.py").write_text("".join(f"from . import {name}\n" for name in names))
    run = (*FORK, "--cover", str(site.app.parent), "--cover", str(site.base / "venv"))
    plain = int(site.plain().stdout)
    site.brigade(run=run)
    done = site.brigade(run=run)
    assert site.report()["fork"]["modules"] > modules
    most = max(map(int, done.stdout.splitlines()))
    assert most < modules // 4 < modules < plain


def test_the_status_of_the_job_is_a_ranks(forked: Site) -> None:
    assert forked.brigade("exit", run=FORK).returncode in (1, 2, 3)
    assert forked.report()["fork"]["ranks"] == 4


def test_one_rank_is_started_in_the_ordinary_way(forked: Site) -> None:
    told(forked.brigade(run=("--fork", "-n", "1"), env={"BRIGADE_RANK": "0"}))
    assert forked.report()["fork"] is None


def test_a_module_that_reads_what_differs_between_ranks_is_left_to_each(forked: Site) -> None:
    init = forked.package / "__init__.py"
    init.write_text(init.read_text().replace("'WORD'", "'BRIGADE_RANK'"))
    ranks = told(forked.brigade(run=FORK))
    assert [one["word"] for one in ranks] == ["0", "1", "2", "3"]
    assert forked.report()["fork"]["ranks"] == 4


@pytest.mark.parametrize("ask", ["os.isatty(1)", "os.get_terminal_size(1)"])
def test_a_module_that_asks_for_a_terminal_is_left_to_each(forked: Site, ask: str) -> None:
    """Ranks may have other descriptors than the template: one of them a terminal, say."""
    told(forked.brigade(run=FORK))
    all_warm = forked.report()["fork"]["modules"]
    init = forked.package / "__init__.py"
    init.write_text(init.read_text() + f"try: {ask}\nexcept OSError: pass\n")
    ranks = told(forked.brigade(run=FORK))
    assert len(ranks) == 4 and forked.report()["fork"]["modules"] == all_warm - 3


def test_pins_are_obeyed_and_wrong_ones_refused(forked: Site) -> None:
    all_warm = (told(forked.brigade(run=FORK)), forked.report()["fork"]["modules"])[1]
    told(forked.brigade(run=(*FORK, "--fork-leave", "pkg")))
    assert forked.report()["fork"]["modules"] == all_warm - 3
    for run in [(*FORK, "--fork-leave", "nothing"), ("-n", "2", "--fork-leave", "pkg")]:
        refused = forked.brigade(run=run)
        assert refused.returncode == 2 and "--fork-leave" in refused.stderr, refused
    assert forked.brigade(run=(*FORK, "--view", "namespace")).returncode == 2


@pytest.mark.parametrize(
    ("how", "variable"), [("os.environ", "WORD"), ("getenv", "WORD"), ("os.environ", "LC_ALL")]
)
def test_a_rank_for_whom_something_read_is_otherwise_starts_by_itself(
    forked: Site, how: str, variable: str
) -> None:
    """Though in the trial it was the same for all."""
    init = forked.package / "__init__.py"
    if how == "getenv":
        init.write_text(
            "import ctypes, os\nget = ctypes.CDLL(None).getenv\n"
            "get.restype = ctypes.c_char_p\nword = (get(b'WORD') or b'').decode()\n"
        )
    told(forked.brigade(run=(*FORK, "--keep"), env={variable: "C"}))
    stage = next(forked.nodes.glob("brigade-*/" + "?" * 32))
    join = [native("brigade-stage"), "join", "--base", forked.nodes, "--job", "by-hand"]
    subprocess.run([*join, "--image-id", stage.name], check=True, stdout=subprocess.DEVNULL)
    command = [stage / "root/.brigade/bin/brigade-rank", "--job", "by-hand", "--fork", "python"]
    ranks = [
        subprocess.Popen(
            [*command, "--", forked.python, forked.app],
            env={**os.environ, "BRIGADE_RANK": str(rank), variable: value},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, value in enumerate(["C", "C", "POSIX", "C"])
    ]
    said = [json.loads(rank.communicate(timeout=60)[0]) for rank in ranks]
    if variable == "WORD":
        assert [one["word"] for one in said] == ["C", "C", "POSIX", "C"]
    parents = [one["parent"] for one in said]
    alone = [rank for rank, parent in enumerate(parents) if parent == os.getpid()]
    assert alone in ([2], [0, 1, 3])  # whoever came first started the template


@pytest.mark.parametrize("option", ["-E", "-S", "-I"])
def test_a_python_that_reads_no_sitecustomize_runs_once_a_rank(forked: Site, option: str) -> None:
    command = [sys.executable, "-m", "brigade", "run", "-q", "--fork", "-n", "3", "--"]
    environment = {
        **os.environ,
        "BRIGADE_CACHE": str(forked.base / "cache"),
        "BRIGADE_NODE_DIR": str(forked.nodes),
    }
    program = [str(forked.python), option, "-c", "import sys; sys.stdout.write('here\\n')"]
    for _ in range(2):
        done = subprocess.run([*command, *program], env=environment, stdout=-1, text=True)
        assert done.stdout.splitlines() == ["here"] * 3


@pytest.mark.parametrize("name", ["the template", "a rank", "the launcher"])
def test_whoever_is_killed_nothing_is_left(forked: Site, name: str) -> None:
    told(forked.brigade(run=FORK))
    read, write = os.pipe()
    environment = {
        **os.environ,
        "HOLD": str(read),
        "BRIGADE_CACHE": str(forked.base / "cache"),
        "BRIGADE_NODE_DIR": str(forked.nodes),
    }
    command = [sys.executable, "-m", "brigade", "run", "-q", *FORK, "--"]
    job = subprocess.Popen(
        [*command, str(forked.python), str(forked.app), "wait"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=[read],
    )
    os.close(read)
    assert job.stdout
    ranks = [json.loads(job.stdout.readline()) for _ in range(4)]
    parent = ranks[0]["parent"]
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    pids = [parent, *map(int, children)]
    assert len(pids) == 5
    if name == "the launcher":
        job.send_signal(signal.SIGTERM)
    else:
        os.kill(pids[0] if name == "the template" else pids[1], signal.SIGKILL)
        if name == "a rank":
            os.close(write)
    assert job.wait(timeout=60) != 0
    if name != "a rank":
        os.close(write)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    job.stdout.close()


def test_an_image_that_was_prepared_holds_the_plan(forked: Site) -> None:
    environment = {**os.environ, "BRIGADE_CACHE": str(forked.base / "cache")}
    image = forked.base / "app.brg"
    create = [sys.executable, "-m", "brigade", "image", "create", "--fork", "-n", "2"]
    create += ["--cover", str(forked.base), "-o", str(image), "--json"]
    program = ["--", str(forked.python), str(forked.app)]
    made = subprocess.run([*create, *program], env=environment, stdout=-1, text=True)
    assert made.returncode == 0 and json.loads(made.stdout)["files"] > 3
    ranks = told(forked.brigade(run=(*FORK, "--image", str(image))))
    assert len({one["parent"] for one in ranks}) == 1
    report = forked.report()
    assert report["fork"]["ranks"] == 4 and report["fork"]["modules"] > 5
    create.remove("--fork")
    subprocess.run([*create, *program], env=environment, stdout=-1, check=True)
    told(forked.brigade(run=(*FORK, "--image", str(image))))
    assert forked.report()["fork"]["ranks"] == 0
    assert "brigade image create --fork" in forked.report()["fork"]["nowhere"]
    refused = subprocess.run([*create, "--fork"], env=environment, stdout=-1, stderr=-1, text=True)
    assert refused.returncode == 2


def explained(site: Site) -> dict[str, str]:
    """What is left to each rank, and why, down to the cause."""
    words = ["explain", "--fork", "-q", "--json", "-n", "2", "--cover", str(site.base), "--"]
    command = [sys.executable, "-m", "brigade", *words, str(site.python), str(site.app)]
    environment = {**os.environ, "BRIGADE_CACHE": str(site.base / "cache")}
    done = subprocess.run(command, env=environment, stdout=-1, text=True, check=True)
    return {name: told["cause"] for name, told in json.loads(done.stdout)["left"].items()}


SETS_FIRST = """\
import pkg, random, {imports}
{sets}
import pkg.made, other
print(pkg.made.value, other.value, flush=True)
"""
# what a program does before it imports what reads it, and whether others than its readers are left
SETS = {
    "calls_a_function": ("", "pkg.set_precision(8)"),
    "calls_it_from_a_module_of_its_own": ("mine", "mine.prepare()"),
    "sets_an_attribute": ("", "pkg.precision = 8"),
    "seeds_the_generator": ("", "random.seed(5)"),
    "seeds_numpy_s": ("numpy", "numpy.random.seed(5)"),
}


@pytest.mark.parametrize("name", SETS)
def test_what_a_program_sets_before_an_import_is_what_the_import_reads(
    site: Site, name: str
) -> None:
    imports, sets = SETS[name]
    of_numpy = "numpy" in name
    if of_numpy:
        numpy = Path(pytest.importorskip("numpy").__file__).parents[1]
        (site.package.parent / "more.pth").write_text(f"{numpy}\n")
    site.app.write_text(SETS_FIRST.format(imports=imports or "os", sets=sets))
    init = site.package / "__init__.py"
    text = "\nprecision = 4\ndef set_precision(n):\n    global precision\n    precision = n\n"
    init.write_text(init.read_text() + text)
    state = "numpy.random.get_state" if of_numpy else "random.getstate"  # who draws is left anyway
    (site.package / "made.py").write_text(
        f"import pkg\nimport {state.partition('.')[0]}\nvalue = pkg.precision, {state}()[1][0]\n"
    )
    (site.package.parent / "other.py").write_text("import decimal\nvalue = 5\n")
    (site.package.parent / "mine.py").write_text(
        "import pkg\ndef prepare():\n    pkg.set_precision(8)\n"
    )
    if "seed" not in sets:
        site.app.write_text(site.app.read_text().replace(sets, f"{sets}; random.seed(1)"))
    plain = site.plain()
    site.brigade(run=FORK)
    under = site.brigade(run=FORK)
    assert plain.stdout.startswith("(")
    assert set(under.stdout.splitlines()) == {plain.stdout.strip()}
    assert site.report()["fork"]["ranks"] == 4
    left = explained(site)
    assert "before it the program itself" in left["pkg.made"]
    assert "other" not in left


# what a program puts in the place of a part of the standard library, and who holds it from then on
REPLACES = {
    "a_function": ("time.sleep = lambda _: 'mine'", "from time import sleep\nvalue = sleep(0)"),
    "one_of_a_module_in_python": ("json.dumps = str", "from json import dumps\nvalue = dumps({1})"),
    "a_path": ("os.path.exists = id", "from os.path import exists\nvalue = exists is id"),
    "a_builtin": ("builtins.mine = 5", "import builtins\nvalue = getattr(builtins, 'mine', 0)"),
    "output": ("sys.stdout = sys.stderr", "import sys\nvalue = sys.stdout is sys.stderr"),
    "arguments": ("sys.argv[1:] = ['mine']", "import sys\nvalue = sys.argv[1:]"),
}


@pytest.mark.parametrize("name", REPLACES)
def test_what_a_program_puts_into_the_standard_library_is_what_an_import_holds(
    site: Site, name: str
) -> None:
    sets, holds = REPLACES[name]
    text = "import builtins, json, os, pkg, sys, time\nsay = sys.stdout\n"
    site.app.write_text(f"{text}{sets}\nimport pkg.made\nprint(pkg.made.value, file=say)\n")
    (site.package / "made.py").write_text(holds)
    plain = site.plain()
    under = site.brigade(run=FORK)
    assert plain.returncode == 0
    assert set(under.stdout.splitlines()) == {plain.stdout.strip()}
    assert site.report()["fork"]["ranks"] == 4
    assert "before it the program itself calls or changes" in explained(site)["pkg.made"]


def test_what_is_asked_of_the_standard_library_when_it_is_used_leaves_nothing(site: Site) -> None:
    text = "import platform, sys, warnings\nwith warnings.catch_warnings():\n"
    text += "    sys.path.append('/nowhere'); platform.uname()\n"
    site.app.write_text(text + "    import pkg.made\nprint(pkg.made.value)\n")
    (site.package / "made.py").write_text("import platform, sys, warnings\nvalue = 1")
    assert site.brigade(run=FORK).stdout.splitlines() == ["1"] * 4
    assert "pkg.made" not in explained(site)
