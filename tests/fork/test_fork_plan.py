"""What is warm can be imported before all that is left; what is in doubt is left, with words."""

from __future__ import annotations

import marshal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brigade.errors import UsageError
from brigade.fork.pins import pins
from brigade.fork.plan import Plan, from_json, pinned
from brigade.fork.rules import Rule
from brigade.fork.trial_plan import make
from brigade.fork.variables import of_ranks
from brigade.trial.modules import Event, Execution, RankModules

NAMES = ["a", "b", "c", "p", "p.a", "p.b", "p.q", "p.q.a", "d", "e"]
DOINGS = ["getenv HOME", "getenv HOME!", "getenv PMIX_RANK", "environ ", "clock ", "host ",
          "thread /lib/libx.so", "thread /l/libopenblas.so", "child /bin/x", "output 1",
          "write /x/__pycache__/m.pyc", "socket 2", "random "]  # fmt: skip


def rank_of(
    *imports: str, events: tuple[str, ...] = (), rank: int = 0, **changes: object
) -> RankModules:
    """`imports`: "who>module", in order; `events`: "module what detail@executions"."""
    what = RankModules(rank, "n0", watched=True)
    for one in imports:
        by, _, module = one.rpartition(">")
        if module not in [e.module for e in what.executions]:
            what.executions.append(Execution(module, f"/{module}.py", by))
        what.asked.add((by, module))
    for one in events:
        done, _, executed = one.partition("@")
        module, kind, detail = done.split(" ")
        what.events.append(Event(module, kind, detail, int(executed or 99)))
    for name, value in changes.items():
        setattr(what, name, value)
    return what


@st.composite
def ranks(draw: st.DrawFn) -> list[RankModules]:
    """Trials of one to three ranks that do about the same."""
    order = draw(st.permutations(NAMES))
    found = []
    for number in range(draw(st.integers(1, 3))):
        what = RankModules(number, draw(st.sampled_from(["n0", "n1"])), watched=True)
        mine = [n for n in order if draw(st.integers(0, 9))]
        for name in mine:
            origin = f"/{name}.py" if draw(st.integers(0, 19)) else "/elsewhere.py"
            by = draw(st.sampled_from(["", *NAMES]))
            what.executions.append(Execution(name, origin, by))
            what.asked.add((by, name))
        for _ in range(draw(st.integers(0, 6))):
            what.asked.add((draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES))))
        for _ in range(draw(st.integers(0, 3))):
            kind, _, detail = draw(st.sampled_from(DOINGS)).partition(" ")
            module = draw(st.sampled_from(["", *NAMES]))
            what.events.append(Event(module, kind, detail, draw(st.integers(0, len(mine)))))
        what.variables = {"HOME": draw(st.sampled_from(["1", "1", "2"]))}
        found.append(what)
    return found


def check(plan: Plan, trial: list[RankModules]) -> None:
    names = [module.name for module in plan.modules]
    assert len(names) == len(set(names))
    warm = {module.name for module in plan.warm}
    asked = {pair for rank in trial for pair in rank.asked}
    for by, name in asked:
        assert not (by in warm and name in plan.left), f"{by} imports {name}"
    for name in warm:
        assert name.rpartition(".")[0] not in plan.left
        assert all(name in [e.module for e in rank.executions] for rank in trial)
    first = [e.module for e in trial[0].executions if e.module in warm]
    assert [module.name for module in plan.warm] == first
    for name, left in plan.left.items():
        assert left.why and name in names
        if left.through:
            assert left.through in plan.left and left.through in left.why
    assert warm.isdisjoint(plan.left) and warm | set(plan.left) == set(names)


@given(ranks())
def test_what_is_warm_needs_nothing_that_is_left(trial: list[RankModules]) -> None:
    plan = make(trial)
    check(plan, trial)
    for rank in trial:
        for event in rank.events:
            if (event.what, event.module) == ("output", ""):
                later = {e.module for e in rank.executions[event.executed :]}
                assert later <= set(plan.left)


@given(ranks(), st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES)))
def test_what_the_user_wishes_is_so_or_an_error(
    trial: list[RankModules], warm: set[str], leave: set[str]
) -> None:
    plan = make(trial)
    try:
        wanted = pinned(plan, warm, leave)
    except UsageError as error:
        named = str(error).split(":")[0].split()[1]
        known = {module.name for module in plan.modules}
        assert named not in known or plan.left[named].fixed
        return
    check(wanted, trial)
    assert leave <= set(wanted.left)
    for name in warm - set(leave):
        assert name not in wanted.left or wanted.left[name].through or name.startswith("p.")
    told = pins(plan, wanted)
    left = {m for m in plan.left if told.get(m) != ""} | {m for m, why in told.items() if why}
    assert left == set(wanted.left)


@given(ranks())
def test_a_description_tells_the_whole_plan(trial: list[RankModules]) -> None:
    plan = make(trial)
    again = from_json(plan.as_json())
    assert again.as_json() == plan.as_json()
    assert again.packed() == plan.packed()
    packed = marshal.loads(plan.packed())
    assert [name for name, _ in packed["warm"]] == [module.name for module in plan.warm]
    everything = list(packed["warm"])
    for place, name, origin in reversed(packed["others"]):
        everything.insert(place, (name, origin))
    fixed = {name for name, left in plan.left.items() if left.fixed}
    assert [n for n, _ in everything] == [m.name for m in plan.modules if m.name not in fixed]


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ("a getenv PMIX_RANK", "reads PMIX_RANK, with which PMIx tells ranks apart"),
        ("a getenv HOME!", "reads HOME, which the program had changed"),
        ("a environ ", "reads the whole environment, which differs between ranks"),
        ("a environ !", "reads the whole environment, which the program had changed"),
        ("a clock ", "asks for the time"),
        ("a pid ", "asks for the process's number"),
        ("a process /proc/self/stat", "reads what is known of this process (/proc/self/stat)"),
        ("a random ", "asks for random numbers"),
        ("a terminal ", "asks whether it has a terminal"),
        ("a thread /l/libx.so", "starts a thread (/l/libx.so)"),
        ("a child /bin/ls", "starts a child (/bin/ls)"),
        ("a socket 2", "opens a socket"),
        ("a output 1", "writes output (1)"),
        ("a device /dev/mem", "opens a device (/dev/mem)"),
        ("a write /tmp/x", "writes to the file system (/tmp/x)"),
        ("a loader Own", "is loaded by a loader of the program's own (Own)"),
        ("a unheard-of ", "unheard-of"),
    ],
)
def test_what_a_module_does_leaves_it_and_its_importers(event: str, words: str) -> None:
    plan = make([rank_of("top", "top>a", "a>below", "other", events=(event,))])
    assert plan.left["a"].why == words
    assert plan.left["top"] == ("imports a, which is left", "a", False)
    assert [module.name for module in plan.warm] == ["below", "other"]


@pytest.mark.parametrize(
    "event", ["a getenv HOME", "a host ", "a write /x/__pycache__", "a thread /l/libopenblas.so"]
)
def test_what_is_the_same_in_all_ranks_or_done_again_leaves_nothing(event: str) -> None:
    assert not make([rank_of("a", events=(event,))]).left


def test_a_variable_that_differed_between_ranks_of_a_node_leaves_who_reads_it() -> None:
    def trial(*hosts: str) -> list[RankModules]:
        return [
            rank_of("a", events=("a getenv X",), rank=i, host=host, variables={"X": str(i)})
            for i, host in enumerate(hosts)
        ]

    assert "differed" in make(trial("n0", "n0")).left["a"].why
    assert "differed" in make(trial("n0", "n1")).left["a"].why  # nothing else is known
    two = [*trial("n0", "n1"), trial("n0")[0]]
    assert not make(two).left  # a template is of one node


def test_a_module_that_asks_for_one_that_is_there_already_is_left_with_it() -> None:
    trial = rank_of("mpi", "free", "asks", "asks>mpi", events=("mpi pid ",))
    plan = make([trial])
    assert set(plan.left) == {"mpi", "asks"}


def test_what_lies_in_a_package_that_is_left_is_left() -> None:
    plan = make([rank_of("p", "p.a", "p.q", "p.q.a", events=("p.q pid ",))])
    assert set(plan.left) == {"p.q", "p.q.a"}
    assert plan.left["p.q.a"].why == "lies in p.q, which is left"


def test_nothing_is_warm_after_what_the_program_itself_has_begun() -> None:
    plan = make([rank_of("a", "b", "c", events=(" thread /l/x.so@1", " output 1@2", " pid @0"))])
    assert [module.name for module in plan.warm] == ["a"]
    assert plan.left["b"].why == "before it the program itself starts a thread (/l/x.so)"


@pytest.mark.parametrize("leaves", [True, False])
def test_what_a_module_sets_is_read_by_who_comes_then_if_it_is_left(leaves: bool) -> None:
    """`a` asks for the time, maybe, and sets something in `c`; `d` imports `c`, `b` does not."""
    doings = ("a called c.setup@3", *(["a clock @2"] if leaves else []))
    plan = make([rank_of("c", "a", "a>c", "b", "d", "d>c", events=doings)])
    assert set(plan.left) == ({"a", "d"} if leaves else set())
    if leaves:
        assert plan.left["d"].why == "may read c.setup, set by a, which is left"
        assert set(pinned(plan, leave=["a"]).left) == {"a", "d"}
    assert set(pinned(from_json(plan.as_json()), leave=["a"]).left) == {"a", "d"}


def test_what_a_modules_text_sets_counts_likewise() -> None:
    """`p.a`, left, sets something in `p.b`: `p.q` reads that, `p.q.a` and `d` read others."""
    texts = {"/p.a.py": b"from . import b\nb.x = 1\n"}
    orders = ("p", "p>p.b", "p>p.a", "p.a>p.b", "p>p.q", "p.q>p.b", "c", "d", "d>c")
    plan = make(
        [rank_of(*orders, events=("p.a clock @3",))], read=lambda path: texts.get(path, b"")
    )
    assert set(plan.left) == {"p", "p.a", "p.b", "p.q"}
    assert plan.left["p.a"].why == "asks for the time"
    plan = make([rank_of(*orders, events=())], read=lambda path: texts.get(path, b""))
    assert not plan.left and "p.a" in next(m for m in plan.modules if m.name == "p.q").imports


@pytest.mark.parametrize("who", ["", "b"])
def test_nothing_is_warm_after_somebody_has_changed_how_modules_are_imported(who: str) -> None:
    plan = make([rank_of("a", "b", "c", "d", events=(f"{who} imports builtins.__import__@2",))])
    assert [module.name for module in plan.warm] == (["a"] if who else ["a", "b"])
    doing = f"{who or 'the program itself'} changes how modules are imported (builtins.__import__)"
    assert {plan.left[name].why for name in "cd"} == {f"before it {doing}"}


def test_a_rank_that_did_otherwise_leaves_the_module() -> None:
    one, two = rank_of("a", "b", "c"), rank_of("a", "c", rank=1)
    two.executions[1] = Execution("c", "/other/c.py", "")
    plan = make([one, two])
    assert plan.left["b"].why == "rank 1 of the trial did not import it"
    assert plan.left["c"].why == "it was /other/c.py for rank 1"
    assert plan.left["c"].fixed


def test_who_was_not_watched_and_who_is_no_python_program_proves_nothing() -> None:
    assert "not watched" in make([rank_of("a", watched=False)]).left["a"].why
    assert "not every rank" in make([rank_of("a")], all_ranks=2).left["a"].why


def test_python_s_own_start_and_repetitions_are_left() -> None:
    trial = rank_of("sitecustomize", "b", "zipped")
    trial.executions.append(Execution("b", "/b.py", ""))
    trial.executions[2] = Execution("zipped", "<memory>", "")
    assert {name: left.why for name, left in make([trial]).left.items()} == {
        "sitecustomize": "Python itself imports it when it starts",
        "b": "it was imported more than once",
        "zipped": "it does not come from a file",
    }


def test_who_imports_a_module_once_more_is_left_and_the_module_is_not() -> None:
    """PyTorch's compiler makes copies of `operator` and `heapq` with their parts in C kept away."""
    trial = rank_of("operator", "polyfills", "user")
    trial.executions.append(Execution("operator", "/operator.py", "polyfills"))
    trial.asked.add(("user", "polyfills"))
    plan = make([trial])
    assert plan.left["polyfills"].why == "it imports operator once more"
    assert plan.left["polyfills"].fixed and set(plan.left) == {"polyfills", "user"}


def test_who_tries_a_module_once_more_that_has_failed_is_not_left() -> None:
    """JAX tries what needs a package that is mostly not there, in two modules."""
    failed = Execution("optional", "/optional.py", "one", failed=True)
    trial = rank_of("one", "two")
    trial.executions += [failed, failed._replace(by="two")]
    assert make([trial]).left == {}
    trial.executions.append(Execution("optional", "/optional.py", "two"))
    assert make([trial]).left == {}
    trial.executions.append(Execution("optional", "/optional.py", "one"))
    assert make([trial]).left["one"].why == "it imports optional once more"


def test_what_fails_in_all_ranks_is_expected_to_and_what_fails_in_some_is_left() -> None:
    one, two = rank_of("a", "b", "c"), rank_of("a", "b", "c", rank=1)
    for rank in (one, two):
        rank.executions[1] = rank.executions[1]._replace(failed=True)
    two.executions[2] = two.executions[2]._replace(failed=True)
    plan = make([one, two])
    assert {module.name for module in plan.modules if module.fails} == {"b"}
    assert marshal.loads(plan.packed())["fails"] == ["b"]
    assert plan.left["c"].why == "it failed in rank 1 of the trial, and not in every other"
    assert set(plan.left) == {"c"}


@pytest.mark.parametrize(("second", "main"), [("/a.py", "/a.py"), ("/b.py", "")])
def test_a_template_is_told_what_a_module_is_that_all_ranks_run(second: str, main: str) -> None:
    plan = make([rank_of("a", main="/a.py"), rank_of("a", rank=1, main=second)])
    assert marshal.loads(plan.packed())["main"] == main


def test_a_rule_lets_pass_what_it_names_and_says_what_is_done_again() -> None:
    rules = (Rule("a*", "clock", "only the year", action="again"),)
    trial = [rank_of("ab", "b", events=("ab clock ", "b clock ", "ab clock "))]
    plan = make(trial, rules=rules)
    assert list(plan.left) == ["b"]
    assert plan.again == [("ab", "again")]


def test_a_wish_for_a_package_is_for_all_in_it() -> None:
    plan = make([rank_of("p", "p.a", "p.q", "b", "b>p.a", events=("p.q pid ",))])
    assert not pinned(plan, warm=["p"]).left
    left = pinned(plan, warm=["p"], leave=["p.a"]).left
    assert {name: bool(one.through) for name, one in left.items()} == {"p.a": False, "b": True}
    told = pins(plan, pinned(plan, warm=["p"], leave=["p.a"]))
    assert told["p.q"] == "" and "--fork-leave" in told["p.a"]


@pytest.mark.parametrize("wish", [{"warm": ["none"]}, {"leave": ["none"]}, {"warm": ["b"]}])
def test_a_wish_that_cannot_be_had_is_an_error(wish: dict[str, list[str]]) -> None:
    plan = make([rank_of("a", "b"), rank_of("a", rank=1)])
    with pytest.raises(UsageError):
        pinned(plan, **wish)


def test_launchers_variables_are_known_and_others_are_not() -> None:
    known = "PMIX_RANK PMI_FD OMPI_COMM_WORLD_LOCAL_RANK OMPI_MCA_ess_base_vpid SLURM_PROCID"
    known += " SLURM_CPU_BIND_LIST HYDI_CONTROL_FD BRIGADE_RANK"
    assert [name for name in known.split() if not of_ranks(name)] == []
    others = "HOME SLURM_JOB_ID SLURM_NTASKS OMP_NUM_THREADS OMPI_MCA_btl PM"
    assert [name for name in others.split() if of_ranks(name)] == []


def left_of(*events: str, rules: tuple[Rule, ...] = (), **changes: object) -> dict[str, str]:
    trial = [rank_of(">a", ">b", ">c", events=events, **changes)]
    plan = make(trial, rules=rules)
    return {name: left.why for name, left in plan.left.items()}


def test_a_variable_that_only_modules_have_set_leaves_nothing_unless_they_are_left() -> None:
    read = "b getenv FLAG!"
    assert left_of("a setenv FLAG", read) == {}
    assert "the program" in left_of(read)["b"]
    assert "the program" in left_of("a setenv FLAG", " setenv FLAG", read)["b"]
    assert list(left_of("a setenv FLAG", read, "a clock ")) == ["a", "b"]


def test_a_rule_says_which_variables_count_of_all_that_are_read() -> None:
    rules = (Rule("b", "environ", "its own", names=("MINE_*",)),)
    all_read = ("b environ ", "b getenv PMIX_RANK", "b getenv PATH!")
    assert left_of(*all_read, rules=rules) == {}
    assert list(left_of(*all_read)) == ["b"]
    assert "MINE_A" in left_of(*all_read, "b getenv MINE_A!", rules=rules)["b"]
    gone = {"variables": {"MINE_B": "1"}}
    assert "MINE_B" in left_of("b environ !", rules=rules, **gone)["b"]
    assert left_of("b environ !", "b getenv MINE_B", rules=rules, **gone) == {}
    plan = make([rank_of(">b", events=all_read)], rules=rules)
    assert marshal.loads(plan.packed())["names"]["environ"] == [("b", ("MINE_*",))]


def test_what_is_the_same_for_all_ranks_of_a_node_tells_none_apart() -> None:
    assert of_ranks("OMPI_COMM_WORLD_LOCAL_SIZE") is None
    assert of_ranks("OMPI_COMM_WORLD_LOCAL_RANK") == "Open MPI"


def test_a_package_whose_modules_tell_it_that_they_are_loaded_is_warm_or_left_as_a_whole() -> None:
    imports = ("vtkmodules", "vtkmodules.a", "vtkmodules.b", "user", "user>vtkmodules.b", "other")
    names = ["vtkmodules", "vtkmodules.a", "vtkmodules.b", "user", "other"]
    assert [module.name for module in make([rank_of(*imports)]).warm] == names
    plan = make([rank_of(*imports, events=("vtkmodules.a clock ",))])
    assert [module.name for module in plan.warm] == ["other"]
    assert plan.chain("user") == ["user", "vtkmodules", "vtkmodules.a"] or (
        plan.chain("user") == ["user", "vtkmodules.b", "vtkmodules.a"]
    )
    assert [module.name for module in pinned(plan, ["vtkmodules.a"]).warm] == names


def test_who_asks_whether_a_module_is_there_that_came_before_is_left_with_it() -> None:
    asks = b"import sys\nHAS = 'a' in sys.modules\n"
    trial = [rank_of(">early", ">a", ">asks", ">b", events=("a clock ",))]
    texts = {"/early.py": asks, "/asks.py": asks, "/b.py": asks.replace(b"'a'", b"'early'")}
    left = make(trial, read=lambda path: texts.get(path, b"")).left
    assert set(left) == {"a", "asks"}
    assert left["asks"] == ("may read sys.modules, set by a, which is left", "a", False)
