"""What a job changes is seen as without the view; what it does not change is not asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from disk_tree import DiskTree
from module_tree import make_world, write
from staged import Staged


def give_away(world: Staged, module: str = "solo") -> None:
    """Make the staged code of a module differ, so that a run shows where its code came from."""
    source = write(world.folder / "made" / f"{module}.py", "value = 'staged'\n")
    staged = next((world.stage_folder / "root").glob(f"**/lib/__pycache__/{module}.*.pyc"))
    header = staged.read_bytes()[:16]
    code = (
        f"import marshal; print(marshal.dumps(compile(open({str(source)!r}).read(), "
        f"'x', 'exec')).hex())"
    )
    done = subprocess.run([world.python, "-c", code], capture_output=True, text=True, check=True)
    staged.write_bytes(header + bytes.fromhex(done.stdout))
    restage_sizes(world)


def restage_sizes(world: Staged) -> None:
    """Rebuild the index alone, with the .pyc as it lies in the staged folder."""
    from staged import index_bytes

    from brigade.imports import table

    tree = world.tree
    root = str(world.stage_folder / "root")

    class Restaged(DiskTree):
        def read(self, path: str) -> bytes:
            return super().read(root + path if path.endswith(".pyc") else path)

    again = Restaged(world.roots, tree._listed)
    section = table.build(again, world.seen())
    (world.stage_folder / "index").write_bytes(index_bytes(world.folders, section))


SOLO = ["-c", "import solo; print(solo.value)"]
NEW = """
import importlib, sys
try:
    import late
except ImportError:
    pass
with open({path!r}, 'w') as f: f.write('value = "written"')
{invalidate}
import late
print(late.value)
"""


def test_code_comes_from_the_staged_folder(own_world: Staged) -> None:
    give_away(own_world)
    assert own_world.plain(SOLO, own_world.env).stdout == "solo from lib\n"
    assert own_world.run(SOLO, own_world.env).stdout == "staged\n"


def test_no_call_names_a_covered_file(own_world: Staged) -> None:
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    world, log = own_world, own_world.folder / "calls"
    python, world.python = world.python, "strace"
    code = "import pkg.mod, pkg.sub, space.one, solo, both, bare"
    command = ["-f", "-e", "trace=file,desc", "-y", "-o", str(log), python, "-c", code]
    assert world.run(command, world.env).returncode == 0
    # before the index is opened, the interpreter itself searches PYTHONPATH for its own modules
    after = log.read_text().partition("/stage/index")[2].splitlines()
    calls = [c for c in after if f'"{world.lib}' in c or f"<{world.lib}" in c]
    assert calls == []
    assert world.plain(command, world.env).returncode == 0
    assert f'"{world.lib}/solo.py"' in log.read_text()


@pytest.mark.parametrize("listed", [True, False])
def test_alone_a_module_written_and_invalidated_is_found(
    own_world: Staged, unlisted_world: Staged, listed: bool
) -> None:
    world = own_world if listed else unlisted_world
    script = NEW.format(path=str(world.lib / "late.py"), invalidate="importlib.invalidate_caches()")
    # from 3.13 on invalidate_caches imports what the trial did not
    lax = {**world.env, "BRIGADE_STRICT": "0"}
    assert world.run(["-c", script], lax).stdout == "written\n"


def test_alone_a_module_written_into_a_users_folder_is_found_at_once(
    unlisted_world: Staged,
) -> None:
    script = NEW.format(path=str(unlisted_world.lib / "late.py"), invalidate="")
    assert unlisted_world.run(["-c", script], unlisted_world.env).stdout == "written\n"


def test_alone_a_rewritten_source_in_a_users_folder_is_used(unlisted_world: Staged) -> None:
    world = unlisted_world
    give_away(world)
    assert world.run(SOLO, world.env).stdout == "staged\n"
    write(world.lib / "solo.py", "value = 'rewritten, and longer than it was'\n")
    assert world.run(SOLO, world.env).stdout == "rewritten, and longer than it was\n"


RELOAD = """
import importlib, solo
first = solo.value
with open(solo.__file__, 'w') as f: f.write('value = "rewritten"')
importlib.reload(solo)
print(first, solo.value)
"""


@pytest.mark.parametrize("interposed", [False, True])
def test_a_reloaded_module_is_the_one_on_disk(
    own_world: Staged, preload: str, interposed: bool
) -> None:
    give_away(own_world)
    done = own_world.run(["-c", RELOAD], own_world.env, preload if interposed else None)
    assert done.stdout == "staged rewritten\n"


def test_interposed_a_folder_marked_changed_is_searched_for_real(
    own_world: Staged, preload: str
) -> None:
    give_away(own_world)
    assert own_world.run(SOLO, own_world.env, preload).stdout == "staged\n"
    own_world.mark_changed(own_world.lib)
    assert own_world.run(SOLO, own_world.env, preload).stdout == "solo from lib\n"
    script = NEW.format(path=str(own_world.lib / "late.py"), invalidate="")
    assert own_world.run(["-c", script], own_world.env, preload).stdout == "written\n"


def test_interposed_a_change_elsewhere_changes_nothing(own_world: Staged, preload: str) -> None:
    give_away(own_world)
    own_world.mark_changed(own_world.lib / "pkg" / "sub")
    own_world.mark_changed(None)
    assert own_world.run(SOLO, own_world.env, preload).stdout == "staged\n"


@pytest.mark.parametrize("by_link", [True, False])
def test_interposed_after_a_move_only_a_path_without_links_is_certain(
    tmp_path: Path, preload: str, by_link: bool
) -> None:
    world = make_world(tmp_path, sys.executable, by_link=by_link)
    give_away(world)
    assert world.run(SOLO, world.env, preload).stdout == "staged\n"
    world.mark_moved()
    found = "solo from lib\n" if by_link else "staged\n"
    assert world.run(SOLO, world.env, preload).stdout == found


def test_interposed_a_package_whose_folder_changed_is_searched_for_real(
    own_world: Staged, preload: str
) -> None:
    world = own_world
    show = ["-c", "import pkg; print(pkg.name)"]
    write(world.lib / "pkg/__init__.py", "name = 'rewritten'\n")
    assert world.run(show, world.env, preload).stdout == "pkg\n"
    world.mark_changed(world.lib / "pkg")
    assert world.run(show, world.env, preload).stdout == "rewritten\n"


def test_interposed_absences_of_a_users_folder_end_with_invalidate_caches(
    unlisted_world: Staged, preload: str
) -> None:
    world = unlisted_world
    path = str(world.lib / "late.py")
    script = NEW.format(path=path, invalidate="importlib.invalidate_caches()")
    assert world.run(["-c", script], world.env, preload).stdout == "written\n"


def test_a_lost_state_file_means_that_anything_may_have_changed(
    own_world: Staged, preload: str
) -> None:
    give_away(own_world)
    own_world.state.unlink()
    assert own_world.run(SOLO, own_world.env, preload).stdout == "solo from lib\n"


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_damaged_staged_copy_is_passed_over_or_aborts_when_strict(
    own_world: Staged, damage: str
) -> None:
    world = own_world
    staged = next((world.stage_folder / "root").glob("**/lib/__pycache__/solo.*.pyc"))
    if damage == "missing":
        staged.unlink()
    else:
        staged.write_bytes(staged.read_bytes()[:-1])
    strict = world.run(SOLO, world.env)
    assert strict.returncode == 125 and "solo.py" in strict.stderr
    lax = world.run(SOLO, {**world.env, "BRIGADE_STRICT": "0"})
    assert (lax.stdout, lax.stderr) == ("solo from lib\n", "")


@pytest.mark.parametrize("damage", [b"", b"x" * 400, b"BRGIDX1\0" + bytes(400)])
def test_a_damaged_index_leaves_the_program_alone(own_world: Staged, damage: bytes) -> None:
    (own_world.stage_folder / "index").write_bytes(damage)
    done = own_world.run(SOLO, {**own_world.env, "BRIGADE_STRICT": "0"})
    assert done.stdout == "solo from lib\n"


# Counts ------------------------------------------------------------------------------


def test_answers_are_counted_in_the_rank_s_slot(own_world: Staged) -> None:
    code = "import pkg.sub, time; time.sleep(0.03); import solo, time"
    assert own_world.run(["-c", code], own_world.env).returncode == 0
    hits, misses, paths = own_world.counted()
    assert hits >= 4 and not misses and not paths


def test_misses_are_counted_by_cause_with_their_path(unlisted_world: Staged) -> None:
    world = unlisted_world
    write(world.lib / "unseen.py", "value = 1\n")
    lax = {**world.env, "BRIGADE_STRICT": "0"}
    assert world.run(["-c", "import unseen, solo"], lax).returncode == 0
    _hits, misses, paths = world.counted()
    assert misses[0] >= 1 and misses[2] >= 1
    assert str(world.lib / "unseen") in paths


def test_strict_ends_a_process_that_asks_for_what_the_trial_did_not(
    unlisted_world: Staged,
) -> None:
    done = unlisted_world.run(["-c", "import unseen"], unlisted_world.env)
    assert done.returncode == 125
    assert f"{unlisted_world.lib}/unseen: not looked up in the trial" in done.stderr


def test_a_module_without_valid_bytecode_is_compiled_from_the_staged_source(
    own_world: Staged, unlisted_world: Staged
) -> None:
    for world in (own_world, unlisted_world):
        next(world.lib.glob("__pycache__/solo.*.pyc")).unlink()
        world.stage()
        staged = next((world.stage_folder / "root").glob("**/lib/solo.py"))
        times = staged.stat()
        staged.write_text(staged.read_text().replace("from lib", "from mem"))
        os.utime(staged, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert world.run(SOLO, world.env).stdout == "solo from mem\n"
        assert not list(world.lib.glob("__pycache__/solo.*.pyc"))


def test_a_module_that_is_not_in_the_image_is_a_miss(own_world: Staged) -> None:
    world = own_world
    world.content = lambda path: "solo" not in path
    world.stage()
    lax = {**world.env, "BRIGADE_STRICT": "0"}
    assert world.run(SOLO, lax).stdout == "solo from lib\n"
    assert world.counted()[1:] == ({1: 1}, [str(world.lib / "solo.py")])
