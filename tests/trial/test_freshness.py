"""A check notices what changed since an image was made, and is silent otherwise."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import World, missing, record

from brigade.errors import UsageError
from brigade.image import freshness
from brigade.image.build import build
from brigade.image.freshplan import Known, plan_checks
from brigade.image.layout import DIR, FILE
from brigade.image.reader import Image
from brigade.imports.claims import claims_of

LEVELS = ["fast", "full"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    (world.root / "current").symlink_to("env")
    world.trial([record("stat", world.root / "current/pyvenv.cfg"),
                 missing("stat", world.env / "lib/python3.11/absent.py")])  # fmt: skip
    return world


@pytest.fixture
def image(world: World) -> Iterator[Image]:
    path = world.base / "image.brg"
    build(world.records, path, cover=[str(world.root)])
    with Image(path) as image:
        yield image


def changes(image: Image, level: str = "fast", **how: int) -> list[tuple[str, str]]:
    return freshness.check(image, level, **how).changed


@pytest.mark.parametrize("level", [*LEVELS, "none"])
def test_nothing_is_said_when_nothing_changed(image: Image, level: str) -> None:
    found = freshness.check(image, level)
    assert found.ok, found.changed
    assert (found.requests > 0) == (level != "none")


@pytest.mark.parametrize("level", LEVELS)
def test_a_touched_script_is_noticed(world: World, image: Image, level: str) -> None:
    os.utime(world.app / "app.py")
    assert changes(image, level) == [(f"{world.app}/app.py", "changed")]


@pytest.mark.parametrize("level", LEVELS)
def test_an_edited_module_of_the_users_is_noticed(world: World, image: Image, level: str) -> None:
    World.write(world.app / "helper.py", "x = 22\n")
    assert changes(image, level) == [(f"{world.app}/helper.py", "changed")]


def test_a_name_that_goes_while_its_folder_is_read_takes_no_other_with_it(
    world: World, image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir, gone = os.scandir, str(world.app / "helper.py")

    class Names:
        def __init__(self, folder) -> None:
            self.entries = scandir(folder)

        def __enter__(self):
            names = sorted(self.entries, key=lambda entry: entry.name != "helper.py")
            if "helper.py" in (entry.name for entry in names):
                os.unlink(gone)
            return iter(names)

        def __exit__(self, *_) -> None:
            self.entries.close()

    monkeypatch.setattr(freshness.os, "scandir", Names)
    assert changes(image, "full") == [(gone, "is gone")]


@pytest.mark.parametrize("level", LEVELS)
def test_an_edit_that_puts_the_old_time_and_size_back_is_noticed(
    world: World, image: Image, level: str
) -> None:
    World.write(world.app / "helper.py", "x = 2\n")
    assert changes(image, level) == [
        (f"{world.app}/helper.py", "changed (its old time was put back)")
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_a_pipe_that_was_written_to_is_no_change_but_one_that_is_gone_is(
    world: World, level: str
) -> None:
    """An image answers for no pipe: what it says of its times is of no account."""
    pipe = world.app / "pipe"
    os.mkfifo(pipe)
    world.trial([record("stat", pipe)])
    build(world.records, world.base / "piped.brg", cover=[str(world.root)])
    with Image(world.base / "piped.brg") as image:
        os.utime(pipe)
        assert changes(image, level) == []
        pipe.unlink()
        assert changes(image, level) == [(str(pipe), "is gone")]
        World.write(pipe, "x = 1\n")
        assert changes(image, level) == [(str(pipe), "is a file now")]


@pytest.mark.parametrize("level", LEVELS)
def test_another_hard_link_to_a_file_is_no_change(world: World, image: Image, level: str) -> None:
    os.link(world.pkg / "core.py", world.base / "link")
    assert changes(image, level) == []


@pytest.mark.parametrize("level", LEVELS)
def test_an_upgrade_of_a_distribution_is_noticed(world: World, image: Image, level: str) -> None:
    os.rename(world.site / "pkg-1.0.dist-info", world.site / "pkg-1.1.dist-info")
    assert set(changes(image, level)) >= {
        (f"{world.site}/pkg-1.0.dist-info", "is gone"),
        (f"{world.site}/pkg-1.1.dist-info", "is new"),
    }


@pytest.mark.parametrize("level", LEVELS)
def test_a_reinstall_of_the_same_version_is_noticed(world: World, image: Image, level: str) -> None:
    shutil.copytree(world.pkg, world.base / "copy")
    shutil.rmtree(world.pkg)
    shutil.copytree(world.base / "copy", world.pkg)
    assert (f"{world.pkg}/core.py", "changed (its old time was put back)") in changes(image, level)


@pytest.mark.parametrize("level", LEVELS)
def test_a_new_file_in_installed_software_is_noticed(
    world: World, image: Image, level: str
) -> None:
    World.write(world.pkg / "deep/added.py", "")
    assert changes(image, level) == [(f"{world.pkg}/deep/added.py", "is new")]


@pytest.mark.parametrize("level", LEVELS)
def test_a_new_pth_file_is_noticed(world: World, image: Image, level: str) -> None:
    World.write(world.site / "new.pth", "")
    assert (f"{world.site}/new.pth", "is new") in changes(image, level)


@pytest.mark.parametrize("level", LEVELS)
def test_a_removed_file_is_noticed_once(world: World, image: Image, level: str) -> None:
    os.unlink(world.pkg / "core.py")
    assert changes(image, level) == [(f"{world.pkg}/core.py", "is gone")]


@pytest.mark.parametrize("level", LEVELS)
def test_a_replaced_link_is_noticed(world: World, image: Image, level: str) -> None:
    os.unlink(world.root / "current")
    (world.root / "current").symlink_to("app")
    assert (f"{world.root}/current", "changed") in changes(image, level)


@pytest.mark.parametrize("level", LEVELS)
def test_a_file_where_the_trial_found_none_is_noticed(
    world: World, image: Image, level: str
) -> None:
    World.write(world.app / "settings.ini", "")
    assert changes(image, level) == [(f"{world.app}/settings.ini", "is new")]


@pytest.mark.parametrize("level", LEVELS)
def test_a_file_that_became_a_folder_is_noticed(world: World, image: Image, level: str) -> None:
    os.unlink(world.app / "helper.py")
    (world.app / "helper.py").mkdir()
    assert changes(image, level) == [(f"{world.app}/helper.py", "is a folder now")]


@pytest.mark.parametrize("level", LEVELS)
def test_a_file_that_may_no_longer_be_executed_is_noticed(
    world: World, image: Image, level: str
) -> None:
    os.chmod(world.app / "app.py", 0o600)
    assert changes(image, level) == [(f"{world.app}/app.py", "has other permissions")]


@pytest.mark.parametrize("level", LEVELS)
def test_output_in_the_users_own_folders_is_no_change(
    world: World, image: Image, level: str
) -> None:
    World.write(world.app / "result.dat", "42")
    assert changes(image, level) == []


@pytest.mark.parametrize("level", LEVELS)
def test_a_new_name_in_a_snapshot_is_no_change_but_the_folder_has_moved(
    world: World, level: str
) -> None:
    world.trial([record("list", world.app, extra="200000")])
    build(world.records, world.base / "image.brg", cover=[str(world.root)])
    with Image(world.base / "image.brg") as image:
        assert freshness.check(image, level).moved == []
        World.write(world.app / "result.dat", "42")
        found = freshness.check(image, level)
    assert found.ok
    assert found.moved == [str(world.app)]


def image_of(world: World, *more: bytes) -> Image:
    """The image of a trial that did `more` as well."""
    world.trial(more)
    build(world.records, world.base / "more.brg", cover=[str(world.root)])
    return Image(world.base / "more.brg")


def silent_paths(image: Image, found: freshness.Freshness) -> set[str]:
    return {image.entry(number).path for number in freshness.silent_entries(image, found)}


@pytest.mark.parametrize("level", LEVELS)
def test_a_folder_of_the_users_that_is_gone_is_no_change_but_not_answered_for(
    world: World, level: str
) -> None:
    results = world.root / "results"
    (results / "old").mkdir(parents=True)
    with image_of(world, record("stat", results / "old"), missing("stat", results / "1")) as image:
        assert freshness.check(image, level).left == []
        shutil.rmtree(results)
        found = freshness.check(image, level)
        assert found.ok and str(results / "old") in found.left
        assert silent_paths(image, found) >= {str(results / "old")}
        if level == "full":
            assert silent_paths(image, found) == {str(results), f"{results}/old", f"{results}/1"}
        results.symlink_to(world.app)
        assert freshness.check(image, "full").changed == [(str(results), "is a link now")]


def test_a_folder_of_the_users_is_asked_for_only_if_nothing_in_it_is(world: World) -> None:
    deep = world.root / "one/two/three"
    deep.mkdir(parents=True)
    for name in "ab":
        World.write(deep / name, "")
    with image_of(world, record("stat", deep / "a"), record("stat", deep / "b")) as image:
        plan = plan_checks(freshness.known_entries(image), "fast")
    asked = [item.path for check in plan for item in check.items]
    assert [path for path in asked if "/one" in path] == [f"{deep}/a", f"{deep}/b"]


@pytest.mark.parametrize("level", LEVELS)
def test_what_the_trial_only_listed_may_change_but_is_not_answered_for(
    world: World, level: str
) -> None:
    """Its folder has moved, or is read in any case."""
    folders = world.root / "few", world.root / "many"
    for folder in folders:
        (folder / "sub").mkdir(parents=True)
        for name in ("used1", "used2", "used3", "gone", "edited", "kept"):
            World.write(folder / name, "x")
    used = [record("stat", folders[1] / f"used{i}") for i in (1, 2, 3)]
    lists = [record("list", folder, extra="200000") for folder in folders]
    with image_of(world, *lists, *used) as image:
        for folder in folders:
            (folder / "gone").unlink()
            World.write(folder / "edited", "longer")
            (folder / "sub").rmdir()
            World.write(folder / "new", "")
        found = freshness.check(image, level)
        assert found.ok, found.changed
        assert found.moved == [str(folder) for folder in folders]
        gone = {f"{folder}/{name}" for folder in folders for name in ("gone", "edited", "sub")}
        assert set(found.left) == gone
        assert silent_paths(image, found) == gone | set(found.moved)
        World.write(folders[1] / "used2", "longer")
        assert changes(image, level) == [(f"{folders[1]}/used2", "changed")]


@pytest.mark.parametrize("level", LEVELS)
def test_a_link_in_a_listed_folder_that_leads_elsewhere_is_a_change(
    world: World, level: str
) -> None:
    """Paths through it lead elsewhere: to be silent about the link itself is not enough."""
    latest = world.app / "latest"
    latest.symlink_to("run1")
    with image_of(world, record("list", world.app, extra="200000")) as image:
        latest.unlink()
        latest.symlink_to("run2")
        assert changes(image, level) == [(str(latest), "changed")]


def test_very_many_changes_in_listed_folders_are_a_reason_for_a_new_trial(world: World) -> None:
    data = [world.root / "data1", world.root / "data2"]
    for folder in data:
        folder.mkdir()
        for number in range(600):
            (folder / str(number)).touch()
    with image_of(world, *(record("list", folder, extra="200000") for folder in data)) as image:
        for folder in data:
            shutil.rmtree(folder)
            folder.mkdir()
        found = freshness.check(image)
        assert len(found.changed) == 1200 and found.left == []


def test_a_folder_that_is_gone_with_very_much_in_it_is_a_reason_for_a_new_trial(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = world.root / "data"
    folder.mkdir()
    for number in range(9):
        (folder / str(number)).touch()
    looked = [record("list", folder, extra="200000"), record("stat", folder)]
    with image_of(world, *looked) as image:
        shutil.rmtree(folder)
        few = freshness.check(image)
        assert few.changed == [] and str(folder) in few.left
        assert len(freshness.silent_entries(image, few)) >= 10
        monkeypatch.setattr(freshness, "_MOST_SILENT", 5)
        found = freshness.check(image)
        assert found.left == []
        assert (str(folder), "has changed, with very much in it") in found.changed


def with_table(world: World, *more: bytes) -> Image:
    """The image of a program that imports from its own folder, and writes into it."""
    (world.app / "space").mkdir()
    searched = [record("import", name, extra=f"{world.app}/{name}.py") for name in ("helper", "os")]
    searched += [record("import", name, status=1) for name in ("local_settings", "space")]
    return image_of(
        world,
        record("path-entry", world.app),
        record("stat", world.app / "space"),
        *searched,
        record("write", world.app / "log.txt"),
        *more,
    )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "name", ["local_settings.py", "local_settings.so", "local_settings", "helper.so", "space.py"]
)
def test_a_module_that_appears_where_a_table_says_there_is_none_makes_the_table_silent(
    world: World, level: str, name: str
) -> None:
    with with_table(world) as image:
        for other in ("log.txt", "log2.txt", "unsearched.py", "helper.pyc", "helper.txt"):
            World.write(world.app / other, "")
        found = freshness.check(image, level)
        assert found.ok and found.moved == []
        World.write(world.app / name, "")
        found = freshness.check(image, level)
        assert found.ok and found.moved == [str(world.app)]


def test_a_listed_folder_with_a_table_is_not_read_for_it(world: World) -> None:
    """Its time tells as much."""
    world.trial([record("path-entry", world.app), record("list", world.app, extra="200000")])
    build(world.records, world.base / "listed.brg", cover=[str(world.root)])
    with Image(world.base / "listed.brg") as listed, with_table(world) as written:
        claims = [claims_of(image.python_table) for image in (listed, written)]
        plans = [
            plan_checks(freshness.known_entries(image), "fast", claims=said)
            for image, said in zip((listed, written), claims)
        ]
    checks = [next(c for c in plan if c.folder == str(world.app)) for plan in plans]
    assert [bool(check.claims) for check in checks] == [False, True]


@pytest.mark.parametrize("level", LEVELS)
def test_a_folder_that_may_be_entered_but_not_listed_is_asked_for_each_path(
    world: World, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = world.root / "closed"
    closed.mkdir()
    for name in "abc":
        World.write(closed / name, name)
    used = [record("open", closed / name, extra="2000000") for name in "abc"]
    with image_of(world, *used, missing("stat", closed / "d")) as image:
        scandir = os.scandir

        def refused(where: int | str) -> Iterator[os.DirEntry[str]]:
            if os.path.samefile(where, closed):
                raise PermissionError(errno.EACCES, "Permission denied")
            return scandir(where)

        monkeypatch.setattr(os, "scandir", refused)
        assert changes(image, level) == []
        World.write(closed / "b", "longer")
        World.write(closed / "d", "")
        assert changes(image, level) == [(f"{closed}/b", "changed"), (f"{closed}/d", "is new")]


@pytest.mark.parametrize("level", LEVELS)
def test_a_temporary_file_that_came_and_went_is_no_change(
    world: World, image: Image, level: str
) -> None:
    World.write(world.pkg / "deep/tmp", "")
    os.unlink(world.pkg / "deep/tmp")
    assert changes(image, level) == []


def replaced_by_rename(path: Path) -> None:
    """What most editors, sed -i and rsync do."""
    World.write(path.with_suffix(".new"), "# longer than it was\n")
    os.rename(path.with_suffix(".new"), path)


def test_a_file_replaced_by_rename_is_noticed_however_deep_and_small_the_budget(
    world: World, image: Image
) -> None:
    everything = 10**6
    replaced_by_rename(world.pkg / "deep/a.py")
    for budget in (12, everything):
        assert changes(image, budget=budget, turn=0) == [(f"{world.pkg}/deep/a.py", "changed")]


@pytest.mark.parametrize("level", LEVELS)
def test_new_byte_code_is_no_change(world: World, image: Image, level: str) -> None:
    (world.pkg / "__pycache__").mkdir()
    World.write(world.pkg / "__pycache__/core.cpython-311.pyc", "")
    assert changes(image, level) == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("whose", ["app", "pkg"])
def test_machine_code_that_numba_caches_beside_byte_code_is_checked(
    world: World, level: str, whose: str
) -> None:
    cache = getattr(world, whose) / "__pycache__"
    cache.mkdir()
    index, code = cache / "core.f-1.py311.nbi", cache / "core.cpython-311.pyc"
    for path in (index, code):
        World.write(path, "old")
    world.trial([record("open", path, extra="2000000") for path in (index, code)])
    build(world.records, world.base / "numba.brg", cover=[str(world.root)])
    with Image(world.base / "numba.brg") as image:
        World.write(cache / "new.pyc", "")
        World.write(code, "newer")
        found = {path for path, _ in changes(image, level, budget=12)}
        assert found == (set() if level == "fast" else {str(code)})
        replaced_by_rename(index)
        assert (str(index), "changed") in changes(image, level, budget=12)
        index.unlink()
        assert (str(index), "is gone") in changes(image, level, budget=12)


@pytest.mark.parametrize("level", LEVELS)
def test_a_vanished_tree_is_a_change_and_no_exception(
    world: World, image: Image, level: str
) -> None:
    shutil.rmtree(world.root)
    assert not freshness.check(image, level).ok


def test_brigades_own_parts_are_not_asked_for(image: Image) -> None:
    assert all("/.brigade" not in known.path for known in freshness.known_entries(image))


def test_an_unknown_level_names_the_levels(image: Image) -> None:
    with pytest.raises(UsageError, match="full, fast, none"):
        freshness.check(image, "medium")


def test_a_cut_budget_still_checks_all_that_is_the_users(world: World, image: Image) -> None:
    os.utime(world.app / "helper.py")
    assert changes(image, budget=0) == [(f"{world.app}/helper.py", "changed")]


# ---- the plan alone


def known(path: str, kind: int = FILE, listed: bool = False) -> Known:
    return Known(path, kind, listed, True, 0, 0, 0, 0, 1)


def packages(number: int, files: int) -> list[Known]:
    """A site-packages `/s` with packages of some files each."""
    entries = [known("/s", DIR, True)]
    for i in range(number):
        entries.append(known(f"/s/p{i:03}", DIR, True))
        entries += [known(f"/s/p{i:03}/m{j}.py") for j in range(files)]
    return entries


def test_the_budget_is_kept() -> None:
    plan = plan_checks(packages(300, 5), "fast", budget=50)
    assert sum(check.cost for check in plan) <= 50
    assert sum(check.cost for check in plan_checks(packages(300, 5), "full")) > 600


def test_the_names_of_all_software_are_checked_within_a_small_budget() -> None:
    plan = plan_checks(packages(300, 5), "fast", budget=10)
    items = {item.path for check in plan for item in check.items}
    assert {f"/s/p{i:03}" for i in range(300)} <= items


def test_many_files_of_the_users_own_leave_room_for_the_software() -> None:
    own = [known(f"/own/d{i}/f") for i in range(200)]
    software = packages(40, 5)
    plans = [plan_checks(own + software, "fast", 90, turn) for turn in range(5)]
    seen = {item.path for plan in plans for check in plan for item in check.items}
    assert seen >= {known.path for known in own + software}
    assert max(sum(check.cost for check in plan) for plan in plans) <= 200 + 1 + 30


def test_an_installation_is_noticed_however_much_else_there_is() -> None:
    own = [known(f"/own/d{i}/f") for i in range(100)]
    many = [known(f"/a{i:02}/lib", DIR, True) for i in range(90)]
    many += [known(f"/a{i:02}/lib/sub", DIR, True) for i in range(90)]
    site = "/v/lib/python3/site-packages"
    deep = [known(path, DIR, True) for path in ("/v/lib", "/v/lib/python3", site, f"{site}/p")]
    plan = plan_checks(own + many + deep, "fast", turn=1)
    assert site in {item.path for check in plan for item in check.items}


@given(st.lists(st.integers(1, 4), min_size=1, max_size=30), st.integers(5, 40))
def test_every_file_has_its_turn(files: list[int], budget: int) -> None:
    entries = [known("/s", DIR, True)]
    for i, number in enumerate(files):
        entries.append(known(f"/s/p{i:03}", DIR, True))
        entries += [known(f"/s/p{i:03}/m{j}.py") for j in range(number)]
    seen: set[str] = set()
    for turn in range(2 * len(files) + 1):
        plan = plan_checks(entries, "fast", budget, turn)
        assert sum(check.cost for check in plan) <= budget
        seen |= {item.path for check in plan for item in check.items}
    assert {entry.path for entry in entries} - seen == set()


def test_the_same_turn_gives_the_same_plan() -> None:
    entries = packages(100, 3)
    there, back = (
        [check.folder for check in plan_checks(some, "fast", 33, 5)]
        for some in (entries, entries[::-1])
    )
    assert there == back


def test_one_or_two_files_are_asked_for_and_more_are_read_with_their_folder() -> None:
    few = plan_checks([known("/own/a"), known("/own/b")], "fast")
    many = plan_checks([known(f"/own/{i}") for i in range(3)], "fast")
    assert [(check.read, check.cost) for check in few] == [(False, 2)]
    assert [(check.read, check.cost) for check in many] == [(True, 2)]
