"""ld.so's searches, made for real: the causes of a profile against what ld.so itself says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from profile_tools import compile_c

from brigade.profile.build import Built, build
from brigade.trace import strace

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """app needs libone (RUNPATH: a, b) and libthree (LD_LIBRARY_PATH: c, d); libone needs libtwo
    by an RPATH of its own ($ORIGIN/../far)."""
    two = compile_c("int two(void){return 2;}", tmp_path / "far/libtwo.so.1")
    rpath = "-Wl,--disable-new-dtags,-rpath,$ORIGIN/../none:$ORIGIN/../far"
    source = "int two(void); int one(void){return two();}"
    one = compile_c(source, tmp_path / "b/libone.so.1", rpath, str(two))
    three = compile_c("int three(void){return 3;}", tmp_path / "d/libthree.so.1")
    runpath = f"-Wl,--enable-new-dtags,-rpath,{tmp_path}/a:{tmp_path}/b"
    source = "int one(void); int three(void); int main(void){return one()+three()-5;}"
    more = ["-Wl,--allow-shlib-undefined"]
    compile_c(source, tmp_path / "app", runpath, str(one), str(three), *more)
    for folder in "ac":
        (tmp_path / folder).mkdir()
    return tmp_path


def traced(world: Path, *command: str, **env: str) -> Built:
    out = world / "out.strace"
    subprocess.run(
        ["strace", "-f", "-y", "-ttt", "-T", "-o", str(out), *command],
        env={"PATH": os.environ["PATH"], **env}, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    trace = strace.load(out)
    trace.processes[0].env = env or {"PATH": os.environ["PATH"]}
    words = list(command)
    return build(trace, command=words, program=words, launcher=None)


def said(world: Path, **env: str) -> Counter[str]:
    """(folder) -> files that ld.so says it tried there, by its own account."""
    done = subprocess.run(
        [world / "app"], env={**env, "LD_DEBUG": "libs"}, capture_output=True, text=True, check=True
    )
    return Counter(os.path.dirname(f) for f in re.findall(r"trying file=(\S+)", done.stderr))


def opened(built: Built) -> Counter[str]:
    """The same, as the profile has it: opens that belong to a search of a library."""
    counts: Counter[str] = Counter()
    for story in built.stories:
        for event, mark in zip(story.process.events, story.marks):
            library = mark.search >= 0 and story.searches[mark.search].kind == "library"
            if library and event.kind == "open" and event.path != "/etc/ld.so.cache":
                counts[os.path.dirname(event.path)] += 1
    return counts


def test_every_file_that_ld_so_tries_belongs_to_a_search(world):
    env = {"LD_LIBRARY_PATH": f"{world}/c:{world}/d"}
    built = traced(world, str(world / "app"), **env)
    expected = said(world, **env)
    assert opened(built) == expected
    assert sum(expected.values()) > 20


def test_each_folder_has_the_cause_that_ld_so_names(world):
    built = traced(world, str(world / "app"), LD_LIBRARY_PATH=f"{world}/c:{world}/d")
    causes = {}
    for entry in built.profile.searches:
        if entry.place.startswith(str(world)) and entry.cause != "other":
            place = os.path.relpath(os.path.normpath(entry.place), world)
            causes.setdefault(place, set()).add((entry.cause, os.path.basename(entry.owner)))
    variable = ("LD_LIBRARY_PATH", "LD_LIBRARY_PATH")
    assert causes["a"] == causes["b"] == {("RUNPATH", "app")}
    assert causes["c"] == causes["d"] == {variable}
    assert causes["none"] == causes["far"] == {("RPATH", "libone.so.1")}


def test_subdirectories_for_kinds_of_processors_are_kept_apart(world):
    built = traced(world, str(world / "app"), LD_LIBRARY_PATH=f"{world}/c:{world}/d")
    kept = [e for e in built.profile.searches if e.place == f"{world}/a"]
    plain = next(e for e in kept if not e.hwcaps)
    apart = next(e for e in kept if e.hwcaps)
    assert plain.names == {"libone.so.1": 1, "libc.so.6": 1}
    assert apart.wasted >= 3 and apart.found == 0


def test_who_needs_a_library_is_certain_and_stands_above_it(world):
    nodes = traced(world, str(world / "app"), LD_LIBRARY_PATH=f"{world}/c:{world}/d").profile.tree
    names = {node.name: node for node in nodes}
    assert nodes[names["libtwo.so.1"].loader].name == "libone.so.1"
    assert nodes[names["libone.so.1"].loader].kind == "program"
    assert names["libtwo.so.1"].certain and names["libtwo.so.1"].asked == "DT_NEEDED"


def test_an_rpath_holds_for_what_its_object_needs_in_turn(tmp_path):
    two = compile_c("int two(void){return 2;}", tmp_path / "lib/libtwo.so.1")
    one = compile_c("int two(void);int one(void){return two();}", tmp_path / "lib/libone.so.1",
                    str(two))  # fmt: skip
    rpath = f"-Wl,--disable-new-dtags,-rpath,{tmp_path}/lib,--allow-shlib-undefined"
    compile_c("int one(void);int main(void){return one()-2;}", tmp_path / "app", rpath, str(one))
    profile = traced(tmp_path, str(tmp_path / "app")).profile
    (entry,) = (e for e in profile.searches if e.place == f"{tmp_path}/lib" and not e.hwcaps)
    assert (entry.cause, os.path.basename(entry.owner), entry.found) == ("RPATH", "app", 2)


def test_a_folder_in_two_lists_is_searched_where_it_stands_first(tmp_path):
    one = compile_c("int one(void){return 1;}", tmp_path / "lib/libone.so.1")
    flags = [f"-Wl,--enable-new-dtags,-rpath,{tmp_path}/gone:{tmp_path}/lib", str(one)]
    compile_c("int one(void);int main(void){return one()-1;}", tmp_path / "app", *flags)
    env = {"LD_LIBRARY_PATH": f"{tmp_path}/gone:{tmp_path}/lib"}
    searches = traced(tmp_path, str(tmp_path / "app"), **env).profile.searches
    assert {e.cause for e in searches if e.place == f"{tmp_path}/gone"} == {"LD_LIBRARY_PATH"}


def test_a_file_for_another_machine_is_passed_over(world):
    other = bytearray((world / "b/libone.so.1").read_bytes())
    other[18:20] = (183).to_bytes(2, "little")  # e_machine: aarch64
    (world / "a/libone.so.1").write_bytes(other)
    built = traced(world, str(world / "app"), LD_LIBRARY_PATH=f"{world}/d")
    one = next(node for node in built.profile.tree if node.name == "libone.so.1")
    assert one.path == f"{world}/b/libone.so.1"
    assert not [node for node in built.profile.tree if node.path.startswith(f"{world}/a/")]


def test_a_trace_that_does_not_tell_the_variable_infers_it(world):
    environment = {"LD_LIBRARY_PATH": f"{world}/c:{world}/d"}
    out = world / "out.strace"
    subprocess.run(
        ["strace", "-f", "-y", "-ttt", "-o", str(out), str(world / "app")],
        env=environment, check=True,
    )  # fmt: skip
    trace = strace.load(out)
    trace.processes[0].env = {}
    profile = build(trace, command=["app"], program=["app"], launcher=None).profile
    entry = next(e for e in profile.searches if e.place == f"{world}/c" and not e.hwcaps)
    assert (entry.cause, entry.owner) == ("LD_LIBRARY_PATH", "LD_LIBRARY_PATH (inferred)")


def test_a_dlopen_is_asked_for_by_whom_it_led_there(world):
    compile_c(
        "#include <dlfcn.h>\nint main(void){return !dlopen(\"libtwo.so.1\", RTLD_NOW);}",
        world / "opener", f"-Wl,-rpath,{world}/a:{world}/far",
    )  # fmt: skip
    nodes = traced(world, str(world / "opener")).profile.tree
    two = next(node for node in nodes if node.name == "libtwo.so.1")
    assert (two.asked, nodes[two.loader].name, two.wasted > 0) == ("dlopen", "opener", True)


def test_totals_equal_what_strace_itself_counts(world):
    from brigade.trace.events import KIND_OF

    summary = world / "summary"
    command = [str(world / "app")]
    env = {"LD_LIBRARY_PATH": f"{world}/c:{world}/d"}
    subprocess.run(["strace", "-f", "-c", "-o", str(summary), *command], env=env, check=True)
    counts = {}
    for line in summary.read_text().splitlines()[2:-2]:
        words = line.split()
        counts[words[-1]] = (int(words[3]), int(words[4]) if len(words) > 5 else 0)
    profile = traced(world, *command, **env).profile
    wanted = {call: n for call, n in counts.items() if call in KIND_OF and call != "mmap"}
    calls = sum(n for n, _ in wanted.values())
    assert calls == profile.total() - profile.total(kind="map")
    assert sum(failed for _, failed in wanted.values()) == profile.total(failed=True)
