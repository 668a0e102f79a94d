"""Each rule of the insights speaks when it should, with its evidence, and is silent otherwise."""

from __future__ import annotations

import os
import subprocess
from typing import Any, Callable

import pytest
import startups

from brigade.profile import insights
from brigade.profile.profile import (
    Identical,
    Insight,
    MountUse,
    Overhead,
    Profile,
    RankTimes,
    ServerCount,
)
from brigade.profile.rules import job, python, scale, search
from brigade.profile.sums import Sums

LOOKUPS = "imports /mnt/site stat no yes no {} 160 0"


def said(rule: Callable[[Sums], Any], profile: Profile) -> list[Insight]:
    return list(rule(Sums(profile)))


def with_searches(*entries: Any) -> Profile:
    return startups.quiet(searches=list(entries), cells=startups.cells(LOOKUPS.format(1000), 2))


def with_ends(status: int) -> Profile:
    ends = [RankTimes(r, "n0", 1, "p", 0, 0.1, 0.2, None, 1.0, status * r) for r in range(2)]
    return startups.quiet(ranks=ends)


def with_parts(number: int) -> Profile:
    tree = [startups.node("program", "app", path="/mnt/site/app")]
    parts = [f"/mnt/site/mpi/lib/openmpi/mca_{i}.so" for i in range(number)]
    tree += [startups.node("library", os.path.basename(path), 0, path=path) for path in parts]
    return startups.quiet(
        tree=tree, cells=startups.cells("mpi /mnt/site open no yes no 300 9 0", 2)
    )


def with_processes(number: int) -> Profile:
    tree = [startups.node("process", f"p{i}", path=f"/sbin/p{i}", calls=20) for i in range(number)]
    return startups.quiet(tree=tree)


def with_modules(sources: int, cached: int) -> Profile:
    files = {f"/mnt/site/a/m{i}.py": 10 for i in range(sources)}
    files.update({f"/mnt/site/a/__pycache__/m{i}.cpython-311.pyc": 9 for i in range(cached)})
    return startups.quiet(files=files)


def with_after(calls: int) -> Profile:
    after = startups.quiet(cells=startups.cells(LOOKUPS.format(calls), 2))
    return startups.quiet(cells=startups.cells(LOOKUPS.format(4000), 2), after=after)


def with_server(warm: int, first: int = 1000, state: str = "as found") -> Profile:
    server = [ServerCount("nfs", "/mnt/site", state, first, None)]
    server.append(ServerCount("nfs", "/mnt/site", "warm", warm, None))
    return startups.quiet(server=server, cells=startups.cells(LOOKUPS.format(500), 2))


def cells(line: str, width: int = 2) -> Profile:
    return startups.quiet(width, cells=startups.cells(line, width))


def uneven(more: int) -> Profile:
    profile = cells(LOOKUPS.format(300), 4)
    profile.cells[2] = profile.cells[2]._replace(calls=300 + more)
    return profile


def alike(calls: int, same: int) -> Profile:
    return startups.quiet(identical=Identical(calls, same, 9, {}))


def shared_root(kind: str) -> Profile:
    profile = cells("ld.so / open no yes yes 90 9 0")
    profile.mounts[0] = MountUse("/", "nfs4", "server:/root", kind)
    return profile


E = startups.entry
SITE, OTHER = "/mnt/site/lib", "/mnt/site/more/lib"

# rule, a profile in which it speaks, one in which it is silent, severity, what it must say
CASES = [
    (
        *(search.rpath, with_searches(E("RPATH", SITE, 60, owner="/mnt/site/a b.so"))),
        *(
            with_searches(E("RPATH", SITE, 9)),
            "warning",
            "patchelf --shrink-rpath '/mnt/site/a b.so'",
        ),
    ),
    (
        search.library_path,
        with_searches(E("LD_LIBRARY_PATH", SITE, 600), E("LD_LIBRARY_PATH", OTHER, 5, 9)),
        with_searches(E("LD_LIBRARY_PATH", SITE, 600, 1)),
        *("critical", f"-e {SITE} "),
    ),
    (
        search.library_path_cost,
        with_searches(E("LD_LIBRARY_PATH", SITE, 60, 3), E("LD_LIBRARY_PATH", OTHER, 5, 9)),
        with_searches(E("LD_LIBRARY_PATH", SITE, 60, 3)),
        *("warning", "65 calls"),
    ),
    (
        search.hwcaps,
        with_searches(E("default path", SITE, 12, hwcaps=True)),
        with_searches(E("default path", SITE, 12)),
        *("info", "export LD_HWCAP_MASK=0"),
    ),
    (
        search.dominating_entry,
        with_searches(E("sys.path", SITE, 260)),
        with_searches(E("sys.path", SITE, 240)),
        *("warning", "260 of 1,000"),
    ),
    (
        search.relative_entry,
        with_searches(E("LD_LIBRARY_PATH", SITE, 3, relative=True)),
        with_searches(E("LD_LIBRARY_PATH", SITE, 3)),
        *("warning", "empty or relative"),
    ),
    (
        search.program_path,
        with_searches(E("PATH", "/mnt/site/bin", 11, names={"srun": 11})),
        with_searches(E("PATH", "/usr/bin", 11)),
        *("info", "srun"),
    ),
    (
        search.locale,
        with_searches(E("locale", "/mnt/site/locale", 17)),
        with_searches(E("locale", "/usr/share/locale", 17)),
        *("info", "LC_ALL=C.UTF-8"),
    ),
    (
        python.python_path,
        with_searches(E("sys.path", SITE, 229, owner="PYTHONPATH")),
        with_searches(E("sys.path", SITE, 229, owner="pyvenv.cfg")),
        *("warning", "unset PYTHONPATH"),
    ),
    (
        python.editable,
        with_searches(E("sys.path", "/mnt/site/src", 40, owner="/mnt/site/x.pth")),
        with_searches(E("sys.path", "/mnt/site/src", 40)),
        *("info", "pip install /mnt/site/src"),
    ),
    (
        python.user_site,
        with_searches(E("sys.path", "/mnt/site/me/.local/lib/python3.11/site-packages", 80)),
        with_searches(E("sys.path", "/mnt/site/me/.local/lib/python3.11/site-packages", 80, 2)),
        *("warning", "PYTHONNOUSERSITE=1"),
    ),
    (
        python.script_folder,
        with_searches(E("sys.path", "/mnt/site/app", 9, owner="the script's folder", calls=120)),
        with_searches(E("sys.path", "/mnt/site/app", 900, 1, owner="the script's folder")),
        *("warning", "120 calls"),
    ),
    (
        python.long_path,
        with_searches(*(E("sys.path", f"{SITE}{i}", 30) for i in range(4))),
        with_searches(*(E("sys.path", f"{SITE}{i}", 40) for i in range(3))),
        *("warning", "120 times"),
    ),
    (
        *(python.uncompiled, with_modules(70, 3), with_modules(7, 3)),
        *("warning", "-m compileall -q /mnt/site/a"),
    ),
    (
        *(python.bytecode_written, cells("imports /mnt/site write no no no 4 9 9")),
        *(cells("user /mnt/site write no no no 4 9 9"), "warning", "PYTHONDONTWRITEBYTECODE"),
    ),
    (job.ended_badly, with_ends(-9), with_ends(0), "warning", "signal 9"),
    (job.identical, alike(2000, 1900), alike(2000, 900), "critical", "brigade run -- srun"),
    (job.ranks_differ, uneven(100), uneven(50), "info", "rank 2 has 400"),
    (job.children, with_processes(12), with_processes(1), "warning", "240 calls"),
    (job.mpi_components, with_parts(24), with_parts(19), "warning", "=/mnt/site/mpi/lib/openmpi"),
    (
        *(job.user_data, cells("user /mnt/site read no no no 80 9 1048576")),
        *(cells("imports /mnt/site read no no no 80 9 1048576"), "warning", "80.0 MiB"),
    ),
    (job.system_shared, shared_root("shared"), shared_root("local"), "warning", "--cover /"),
    (
        *(job.big_bytes, startups.quiet(files={"/mnt/site/big.so": 400 << 20})),
        *(startups.quiet(files={"/mnt/site/big.so": 200 << 20}), "warning", "400.0 MiB"),
    ),
    (
        job.opened_again,
        startups.quiet(
            files={f"f{i}": 1 for i in range(100)},
            cells=startups.cells("imports /mnt/site open no yes no 250 9 0", 2),
        ),
        startups.quiet(
            files={f"f{i}": 1 for i in range(200)},
            cells=startups.cells("imports /mnt/site open no yes no 250 9 0", 2),
        ),
        *("info", "2.5 times"),
    ),
    (
        *(job.listings, cells("imports /mnt/site list no no no 200 9 0")),
        *(cells("imports / list no no no 200 9 0"), "info", "200 times"),
    ),
    (
        *(scale.growth, cells(LOOKUPS.format(5671)), cells(LOOKUPS.format(49))),
        *("critical", "5.81 million"),
    ),
    (
        *(scale.in_vain, cells("imports /mnt/site stat yes yes no 400 9 0")),
        *(cells("user /mnt/site stat yes yes no 400 9 0"), "warning", "100%"),
    ),
    (scale.little, startups.quiet(), cells(LOOKUPS.format(50)), "good", "3 look-ups"),
    (scale.improved, with_after(4), startups.quiet(), "good", "1,000 times fewer"),
    (scale.improved, with_after(3000), startups.quiet(), "warning", "still asks 3,000"),
    (scale.absorbed, with_server(900), with_server(100), "info", "90%"),
    (scale.absorbed, with_server(900, state="cold"), with_server(90, 90), "info", "90%"),
    (
        *(scale.slowed, startups.quiet(overhead=Overhead(9, 1.0, 4.0, 2.0))),
        *(startups.quiet(overhead=Overhead(9, 1.0, 2.2, 2.0)), "info", "2.0 times slower"),
    ),
    (
        *(scale.unseen, startups.quiet(lost=["9 events of rank 2"])),
        *(startups.quiet(lost=["Nothing at all."]), "info", "9 events of rank 2."),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_a_rule_speaks_with_its_evidence_and_only_then(case):
    rule, speaks, silent, severity, words = case
    found = said(rule, speaks)
    assert [one.severity for one in found] == [severity]
    assert words in " ".join([found[0].title, found[0].detail, found[0].command])
    assert said(rule, silent) == []


def test_every_rule_is_tried_here():
    assert {rule for rule, *_ in CASES} == set(insights.RULES)


def test_the_gravest_comes_first_and_a_good_start_up_says_only_so():
    order = [insights.SEVERITIES.index(one.severity) for one in insights.find(startups.numpy())]
    assert order == sorted(order)
    assert len(set(order)) > 2
    assert [one.severity for one in insights.find(startups.quiet())] == ["good"]


def test_a_start_up_without_shared_mounts_or_ranks_has_no_false_alarm():
    profile = startups.quiet(mounts=[], cells=[])
    assert [one.severity for one in insights.find(profile)] == ["good"]


@pytest.mark.parametrize(
    "places, kept",
    [([SITE], f"{OTHER}:/a b"), ([SITE, "/a b"], OTHER), (["/mnt", "/a"], f"{SITE}:{OTHER}:/a b")],
)
def test_the_command_for_a_path_variable_takes_out_these_places_and_keeps_the_order(places, kept):
    command = search.without("LD_LIBRARY_PATH", places)
    done = subprocess.run(
        ["sh", "-c", f'{command}; printf %s "$LD_LIBRARY_PATH"'],
        env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": f"{SITE}:{OTHER}:/a b"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == kept
    assert done.stderr == ""


def test_the_command_for_empty_entries_leaves_none():
    (found,) = said(search.relative_entry, with_searches(E("PATH", "/a", 3, relative=True)))
    for given in (":/bin:/usr/bin", "/bin::a/b:/usr/bin:", "/bin:/usr/bin"):
        done = subprocess.run(
            ["/bin/sh", "-c", f'{found.command}; printf %s "$PATH"'],
            env={"PATH": given},
            capture_output=True,
            text=True,
        )
        assert done.stdout == "/bin:/usr/bin"


def test_every_command_is_one_that_a_shell_understands():
    for profile in (startups.numpy(), startups.hostile(), *(case[1] for case in CASES)):
        for one in insights.find(profile):
            command = one.command.encode(errors="surrogateescape")
            assert subprocess.run(["sh", "-n", "-c", command]).returncode == 0


def test_sources_far_apart_are_compiled_where_most_of_them_lie():
    files = {f"/mnt/site/venv/lib/python3/m{i}.py": 9 for i in range(30)}
    files.update({"/mnt/elsewhere/x.py": 9, "/mnt/site/y.py": 9, "/mnt/site/venv/z.py": 9})
    (found,) = said(python.uncompiled, startups.quiet(files=files))
    assert found.command == "python -m compileall -q /mnt/site/venv/lib"


def test_a_command_to_run_again_has_its_width_where_no_launcher_tells_it():
    profile = startups.numpy(2)
    assert any("brigade run -- srun -N 2 -n 2 " in one.command for one in insights.find(profile))
    profile.launcher, profile.command = None, ["python", "my app.py"]
    wanted = "brigade run -n 2 -- python 'my app.py'"
    assert wanted in [one.command for one in insights.find(profile)]


def test_the_mask_for_older_hwcaps_is_named_only_where_they_were_tried_for_nothing():
    new = [E("RUNPATH", f"{SITE}{i}", 8, hwcaps=True) for i in range(3)]
    (found,) = said(search.hwcaps, with_searches(*new))
    assert "24 times" in found.title and found.command == ""
    used = [E("RUNPATH", SITE, 20, hwcaps=True), E("RUNPATH", OTHER, 2, 1, hwcaps=True)]
    (found,) = said(search.hwcaps, with_searches(*used))
    assert found.command == ""
