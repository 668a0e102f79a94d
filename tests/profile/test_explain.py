"""brigade explain: each step of a search, who asked, what is closest."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest
from made_traces import PYTHON, built, process, python
from profile_tools import brigade, compile_c

from brigade.console import make_console
from brigade.profile.explain import closest, explain, near_files
from brigade.profile.stepwise import print_explanation


def test_the_steps_of_a_module_are_told_in_their_order():
    (told,) = explain(built(python()), "json")
    places = [(step.place, step.owner, step.answer, step.calls) for step in told.steps]
    stdlib = "/mnt/soft/py/lib/python3.11"
    assert places == [
        ("/mnt/soft/site", "PYTHONPATH", "not in it", 4),
        (stdlib, "python", "listing", 1),
        (stdlib, "python", "found", 2),
        (stdlib, "python", "no byte code", 1),
    ]
    assert told.chain == ["app.py", "python3"]
    assert (told.wasted, told.read_bytes, told.certain) == (1, 900, False)
    assert any("compileall" in one for one in told.cheaper)


def test_the_steps_of_all_that_was_explained_are_its_calls():
    made = built(python())
    for story in made.stories:
        for search in story.searches:
            for told in explain(made, search.name) if search.name else []:
                assert told.calls == len(search.events)


def test_a_name_without_version_means_any_version():
    text = "exec 0 /mnt/soft/app/bin/app\nopen 3 /mnt/soft/lib/libx.so.2\n"
    assert [one.name for one in explain(built(process(text)), "libx.so")] == ["libx.so.2"]
    assert explain(built(process(text)), "libx.so.1") == []
    assert [one.name for one in explain(built(process(text)), "/mnt/soft/lib/libx.so.2")]


def test_a_program_is_explained_with_the_folders_of_path_that_lack_it():
    text = "stat ENOENT /usr/bin/tool\nstat 0 /bin/tool\nexec 0 /bin/tool\n"
    (told,) = explain(built(process(text, exe="/bin/bash")), "tool")
    assert (told.found, told.wasted, told.how) == ("/bin/tool", 1, "exec")


def test_the_exec_that_works_is_in_the_next_image_and_of_the_same_search():
    env = {"PATH": "/a:/b:/usr/bin"}
    before = process("exec ENOENT /a/tool\nexec ENOENT /b/tool\n", exe="/bin/python3", env=env)
    after = process("exec 0 /usr/bin/tool\n", exe="/usr/bin/tool", start_ns=10**7, env=env)
    (told,) = explain(built(before, after), "tool")
    assert [(s.place, s.answer) for s in told.steps] == [
        ("/a", "absent"), ("/b", "absent"), ("/usr/bin", "found"),
    ]  # fmt: skip
    assert (told.found, told.wasted, told.chain) == ("/usr/bin/tool", 2, ["python3"])
    assert sum(one.startswith("2 in vain at 2 folders") for one in told.cheaper) == 1


def test_what_nobody_looked_for_has_names_that_come_near():
    made = built(python())
    assert explain(made, "jsson") == []
    assert closest(made, "jsson") == ["json"]


def test_what_was_not_found_has_files_that_come_near(tmp_path):
    for name in ("libhdf5.so.200", "libhdf4.so.0", "libhdfview.so", "libhdf5.a", "other"):
        (tmp_path / name).touch()
    near = near_files("libhdf5.so.103", [str(tmp_path), "/nowhere"])
    assert near[0] == f"{tmp_path}/libhdf5.so.200"
    assert not {f"{tmp_path}/{one}" for one in ("libhdfview.so", "libhdf5.a", "other")} & {*near}


def test_ranks_that_looked_are_counted():
    made = built(python(rank=0), process("open 3 /scratch/x\n", rank=1, pid=200))
    (told,) = explain(made, "json")
    assert (told.ranks, told.of_ranks) == (1, 2)


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    """app needs libhere (RUNPATH: empty, lib) and libgone.so.1, of which lib has another version;
    it does not start."""
    base = Path(os.path.realpath(tmp_path_factory.mktemp("explain")))
    here = compile_c("int here(void){return 1;}", base / "lib/libhere.so.1")
    gone = compile_c("int gone(void){return 1;}", base / "lib/libgone.so.1")
    runpath = f"-Wl,--no-as-needed,-rpath,{base}/empty:{base}/lib"
    source = "int here(void); int main(void){return !here();}"
    compile_c(source, base / "app", runpath, str(here))
    compile_c(source, base / "broken", runpath, str(here), str(gone))
    gone.rename(base / "lib/libgone.so.2")
    (base / "empty").mkdir()
    return base


def explained(*words: str) -> dict:
    done = brigade("explain", "--json", *words)
    assert done.stderr.count("Traceback") == 0
    return json.loads(done.stdout)


def test_a_run_and_the_program_alone_tell_the_same_search(world):
    (ran,) = explained("libhere.so.1", "--", str(world / "app"))["libhere.so.1"]
    (read,) = explained("libhere.so.1", "--program", str(world / "app"))["libhere.so.1"]
    assert ran["found"] == read["found"] == f"{world}/lib/libhere.so.1"

    def places(told: dict) -> list:
        steps = [s for s in told["steps"] if s["answer"] != "there"]  # that there is such a folder
        return [(s["place"], s["cause"], s["hwcaps"], s["answer"]) for s in steps]

    assert [place for place in places(ran) if not place[2]] == [
        (f"{world}/empty", "RUNPATH", False, "absent"),
        (f"{world}/lib", "RUNPATH", False, "found"),
    ]
    assert [p for p in places(read) if not p[2]] == [p for p in places(ran) if not p[2]]


def test_a_library_that_is_nowhere_is_explained_with_what_comes_closest(world):
    for how in (["--", str(world / "broken")], ["--program", str(world / "broken")]):
        (told,) = explained("libgone.so.1", *how)["libgone.so.1"]
        assert told["found"] == ""
        assert told["closest"][0] == f"{world}/lib/libgone.so.2"
        assert told["chain"] == ["broken"]


def test_a_module_that_is_nowhere_is_named_by_who_imports_it(tmp_path):
    script = tmp_path / "app.py"
    (tmp_path / "colours.py").touch()
    script.write_text("import json\ntry:\n    import colour\nexcept ImportError:\n    pass\n")
    (told,) = explained("colour", "--", sys.executable, str(script))["colour"]
    assert (told["found"], told["certain"], told["chain"][0]) == ("", False, "app.py")
    searched = [step["place"] for step in told["steps"]]
    assert searched[0] == str(tmp_path) and len(searched) >= 3
    assert told["closest"][0] == f"{tmp_path}/colours.py"


def test_for_people_the_steps_stand_in_a_table(world):
    done = brigade("explain", "libhere.so.1", "--", str(world / "app"), COLUMNS="120")
    assert done.returncode == 0
    assert f"found at {world}/lib/libhere.so.1" in done.stdout
    assert "RUNPATH of app" in done.stdout


@pytest.mark.parametrize(
    ("calls", "said"),
    [("open 3", "1 call, not in vain"), ("open ENOENT", "1 call, in vain"),
     ("open ENOENT /mnt/soft/a/libx.so.2\nopen 3", "2 calls, 1 of them in vain")],
)  # fmt: skip
def test_one_call_is_counted_as_one(calls, said):
    text = f"exec 0 /mnt/soft/app/bin/app\n{calls} /mnt/soft/lib/libx.so.2\n"
    (told,) = explain(built(process(text)), "libx.so.2")
    out = io.StringIO()
    print_explanation(told, make_console(file=out, width=100))
    assert said in out.getvalue().splitlines()[0]


def test_a_name_that_nothing_looked_for_is_exit_code_1(world):
    done = brigade("explain", "libnothing.so", "--", str(world / "app"))
    assert done.returncode == 1
    assert "nothing looked for libnothing.so" in done.stderr


def test_without_something_to_explain_it_with_it_is_a_usage_error():
    done = brigade("explain", "libc.so.6")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "--trace DIR" in done.stderr


def test_a_script_has_no_search_of_its_own(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(PYTHON)
    done = brigade("explain", "libc.so.6", "--program", str(script))
    assert done.returncode == 1
    assert "not an ELF file" in done.stderr
