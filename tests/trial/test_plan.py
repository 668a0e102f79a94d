"""What an image says, decided from hand-made records over a real small tree."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from made import NOTHING_MOUNTED, World, missing, process, record

from brigade.errors import TrialError
from brigade.image.assemble import Assembled, assemble
from brigade.image.layout import ABSENT, DIR, FILE, SYMLINK
from brigade.image.plan import Entry
from brigade.trial.record import load


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def by_path(what: Assembled) -> dict[str, Entry]:
    return {entry.path: entry for entry in what.entries}


def test_what_was_read_has_contents_and_what_was_only_seen_has_not(world: World) -> None:
    world.trial([record("stat", world.pkg / "unused.py")])
    entries = by_path(world.assemble())
    assert entries[f"{world.pkg}/core.py"].content
    assert not entries[f"{world.pkg}/unused.py"].content
    assert entries[f"{world.pkg}/unused.py"].kind == FILE


def test_every_entry_has_its_parents_up_to_the_covered_root(world: World) -> None:
    world.trial()
    entries = by_path(world.assemble())
    for path in entries:
        if path != str(world.root):
            assert os.path.dirname(path) in entries, path
    assert entries[str(world.root)].kind == DIR


def test_an_absence_that_was_looked_up_is_known(world: World) -> None:
    world.trial()
    absent = by_path(world.assemble())[f"{world.app}/settings.ini"]
    assert (absent.kind, absent.err) == (ABSENT, 2)


def test_an_absence_below_a_missing_folder_is_that_of_the_folder(world: World) -> None:
    world.trial([missing("stat", world.app / "no/such/thing")])
    entries = by_path(world.assemble())
    assert entries[f"{world.app}/no"].kind == ABSENT
    assert f"{world.app}/no/such" not in entries


def test_where_ld_so_went_on_there_is_an_absence_or_a_folder_with_its_names(world: World) -> None:
    own, software = world.root / "dev/build", world.env / "lib"
    own.mkdir(parents=True)
    World.write(own / "other.so", "of another machine")
    names = own / "lib.so", software / "lib.so", world.root / "none/lib.so", own / "other.so"
    world.trial([missing("probe", path) for path in names])
    entries = by_path(world.assemble())
    assert entries[f"{own}/lib.so"].kind == ABSENT
    assert entries[f"{world.root}/none"].kind == ABSENT
    assert entries[f"{own}/other.so"].order is not None  # it is compared, too
    assert entries[str(software)].listed and f"{software}/lib.so" not in entries


def test_installed_software_is_listed_with_the_metadata_of_all_its_names(world: World) -> None:
    world.trial()
    entries = by_path(world.assemble())
    assert entries[str(world.site)].listed
    assert entries[str(world.pkg)].listed
    assert entries[f"{world.pkg}/unused.py"].stat is not None


def test_an_absence_in_a_listed_directory_is_written_down(world: World) -> None:
    """The listing implies it; the namespace view hides the name by it."""
    world.trial()
    entries = by_path(world.assemble())
    assert entries[str(world.site)].listed
    assert entries[f"{world.site}/helper.py"].kind == ABSENT


def test_the_working_directory_and_the_scripts_folder_are_never_listed(world: World) -> None:
    inside = world.pkg  # even inside installed software
    script = world.site / "pkg-1.0.dist-info"
    World.write(script / "tool.py", "")
    process(
        world.records,
        [*world.start_up(), record("list", inside), record("list", script)],
        cwd=inside,
        argv=["python", str(script / "tool.py")],
    )
    entries = by_path(world.assemble())
    assert not entries[str(inside)].listed
    assert not entries[str(script)].listed
    assert entries[str(world.site)].listed


def test_a_folder_of_the_users_that_the_trial_listed_is_a_snapshot(world: World) -> None:
    world.trial([record("list", world.app, extra="200000")])
    entries = {entry.path: entry for entry in world.assemble().entries}
    app = entries[str(world.app)]
    assert app.snapshot and not app.listed
    assert f"{world.app}/helper.py" in entries


def test_a_folder_of_the_users_that_the_trial_wrote_to_is_no_snapshot(world: World) -> None:
    listing = record("list", world.app, extra="200000")
    world.trial([listing, record("write", world.app / "out.dat", extra="open")])
    entries = {entry.path: entry for entry in world.assemble().entries}
    assert not entries[str(world.app)].snapshot


def test_the_users_own_folders_are_not_listed(world: World) -> None:
    own = world.root / "project/lib"
    own.mkdir(parents=True)
    World.write(own / "mine.py", "")
    world.trial([record("list", own), record("open", own / "mine.py", extra="0")])
    assert not by_path(world.assemble())[str(own)].listed


def test_a_prefix_itself_is_not_listed_but_its_standard_folders_are(world: World) -> None:
    (world.env / "results").mkdir()
    world.trial([record("list", world.env), missing("stat", world.env / "results/x"),
                 missing("stat", world.env / "bin/x")])  # fmt: skip
    entries = by_path(world.assemble())
    assert not entries[str(world.env)].listed
    assert not entries[f"{world.env}/results"].listed
    assert entries[f"{world.env}/bin"].listed


def test_a_folder_that_libraries_were_loaded_from_is_listed_if_it_is_named_like_one(
    world: World,
) -> None:
    for name in ("sw/hdf5/lib", "build"):
        (world.root / name).mkdir(parents=True)
        World.write(world.root / name / "libx.so", "")
    world.trial([record("load", world.root / "sw/hdf5/lib/libx.so"),
                 record("load", world.root / "build/libx.so")])  # fmt: skip
    entries = by_path(world.assemble())
    assert entries[f"{world.root}/sw/hdf5/lib"].listed
    assert entries[f"{world.root}/sw/hdf5/lib/libx.so"].content
    assert not entries[f"{world.root}/build"].listed


def test_a_directory_that_the_trial_wrote_to_is_never_listed(world: World) -> None:
    World.write(world.site / "cache.db", "")
    world.trial([record("write", world.site / "cache.db", extra="open")])
    entries = by_path(world.assemble())
    assert not entries[str(world.site)].listed
    assert f"{world.site}/cache.db" not in entries
    assert entries[str(world.pkg)].listed


def test_nothing_that_the_trial_wrote_is_in_the_image(world: World) -> None:
    out = world.app / "out"
    out.mkdir()
    World.write(out / "result.txt", "")
    world.trial([record("write", out, extra="mkdir"),
                 record("write", out / "result.txt", extra="open"),
                 record("open", out / "result.txt", extra="0")])  # fmt: skip
    assert not [path for path in by_path(world.assemble()) if path.startswith(str(out))]


def test_a_file_written_through_a_link_is_left_out_under_both_names(world: World) -> None:
    World.write(world.app / "log.1", "")
    (world.app / "log").symlink_to("log.1")
    world.trial([record("stat", world.app / "log"),
                 record("write", world.app / "log", extra="open")])  # fmt: skip
    entries = by_path(world.assemble())
    assert f"{world.app}/log" not in entries
    assert f"{world.app}/log.1" not in entries


def test_a_write_that_failed_is_no_write(world: World) -> None:
    world.trial([record("write", world.pkg / "core.py", status=13, extra="open")])
    assert by_path(world.assemble())[f"{world.pkg}/core.py"].content


def test_byte_code_that_python_cached_does_not_count_as_written(world: World) -> None:
    cache = world.pkg / "__pycache__"
    cache.mkdir()
    World.write(cache / "core.cpython-311.pyc", "")
    pyc = cache / "core.cpython-311.pyc"
    world.trial([missing("stat", pyc), record("write", cache, extra="mkdir"),
                 record("write", f"{pyc}.139", extra="open"),
                 record("write", pyc, extra="rename")])  # fmt: skip
    entries = by_path(world.assemble())
    assert entries[str(world.pkg)].listed
    assert entries[str(pyc)].content


def test_source_brings_its_byte_code_and_byte_code_its_source(world: World) -> None:
    cache = world.pkg / "__pycache__"
    cache.mkdir()
    for name in ("core", "unused"):
        World.write(cache / f"{name}.cpython-311.pyc", "")
    world.trial([record("open", cache / "unused.cpython-311.pyc", extra="0")])
    entries = by_path(world.assemble())
    assert entries[f"{cache}/core.cpython-311.pyc"].content
    assert entries[f"{world.pkg}/unused.py"].content


def test_a_file_that_was_taken_for_a_folder_keeps_its_place(world: World) -> None:
    """Python's path finders list each entry of sys.path, and an archive is one."""
    archive = world.app / "base.zip"
    World.write(archive, "bytes")
    took = [record("open", archive, extra="0"), record("list", archive, status=errno.ENOTDIR)]
    world.trial([*took, record("stat", archive / "re", status=errno.ENOTDIR)])
    what = world.assemble()
    assert what.left_out == []
    assert by_path(what)[str(archive)].content


def test_what_appeared_after_the_trial_looked_is_left_to_the_file_system(world: World) -> None:
    World.write(world.app / "late.txt", "")
    world.trial([missing("stat", world.app / "late.txt")])
    what = world.assemble()
    assert f"{world.app}/late.txt" not in by_path(what)
    assert [left.why for left in what.left_out] == ["appeared since the trial looked"]


def test_what_vanished_since_is_not_called_absent_and_its_folder_not_listed(world: World) -> None:
    world.trial([record("open", world.site / "temporary.py", extra="0")])
    entries = by_path(world.assemble())
    assert f"{world.site}/temporary.py" not in entries
    assert not entries[str(world.site)].listed


def test_links_on_the_way_are_entries_and_their_targets_too(world: World) -> None:
    (world.root / "current").symlink_to("env")
    (world.root / "absolute").symlink_to(world.root / "current/lib")
    world.trial([record("open", f"{world.root}/absolute/../pyvenv.cfg", extra="0")])
    entries = by_path(world.assemble())
    assert (entries[f"{world.root}/current"].kind, entries[f"{world.root}/current"].target) == (
        SYMLINK, "env",
    )  # fmt: skip
    assert entries[f"{world.root}/absolute"].target == f"{world.root}/current/lib"
    assert entries[f"{world.env}/pyvenv.cfg"].content


def test_a_link_outside_that_leads_to_a_covered_root_is_a_stepping_stone(world: World) -> None:
    (world.base / "home").symlink_to(world.root)
    (world.base / "aside").symlink_to("/usr")
    world.trial([record("open", world.base / "home/app/helper.py", extra="0"),
                 record("stat", world.base / "aside/bin")])  # fmt: skip
    entries = by_path(world.assemble())
    assert entries[f"{world.base}/home"].target == str(world.root)
    assert entries[str(world.base)].kind == DIR
    assert f"{world.base}/aside" not in entries


def test_sockets_and_pipes_are_never_read(world: World) -> None:
    os.mkfifo(world.app / "pipe")
    world.trial([record("open", world.app / "pipe", extra="0")])
    pipe = by_path(world.assemble())[f"{world.app}/pipe"]
    assert not pipe.content


def test_large_data_stays_where_it_is_but_large_programs_do_not(world: World) -> None:
    World.write(world.app / "data.bin", "x" * 100)
    World.write(world.app / "big.py", "#" * 100)
    (world.app / "big.so").write_bytes(b"\x7fELF" + b"x" * 100)
    names = ("data.bin", "big.py", "big.so")
    world.trial([record("open", world.app / name, extra="0") for name in names])
    what = world.assemble(max_data_file=50)
    entries = by_path(what)
    assert [entries[f"{world.app}/{name}"].content for name in names] == [False, True, True]
    assert [left.path for left in what.left_out] == [f"{world.app}/data.bin"]
    assert not by_path(world.assemble(max_file=50))[f"{world.app}/big.py"].content


def test_entries_are_numbered_by_first_use(world: World) -> None:
    world.trial()
    entries = by_path(world.assemble())
    order = [entries[f"{world.pkg}/{name}"].order for name in ("__init__.py", "core.py")]
    assert None not in order
    assert order == sorted(order)  # type: ignore[type-var]
    assert entries[f"{world.pkg}/unused.py"].order is None


def test_files_outside_the_covered_roots_are_not_in_the_image(world: World) -> None:
    world.trial([record("open", "/etc/passwd", extra="0"), record("stat", "/proc/self/maps")])
    assert all(path.startswith(str(world.root)) for path in by_path(world.assemble()))


def test_without_shared_files_the_environment_and_the_script_are_covered(world: World) -> None:
    world.trial()
    what = world.assemble(cover=[])
    assert what.coverage.roots == sorted([str(world.env), str(world.app)])
    assert what.coverage.fallback


def test_a_trial_of_local_system_programs_says_to_name_folders(world: World) -> None:
    process(world.records, [record("open", "/etc/passwd", extra="0")], exe="/usr/bin/true")
    with pytest.raises(TrialError, match="no shared file system") as failed:
        assemble(load(world.records), table=NOTHING_MOUNTED)
    assert "--cover" in (failed.value.hint or "")


def test_a_folder_to_cover_must_exist(world: World) -> None:
    world.trial()
    with pytest.raises(TrialError, match="there is no such folder"):
        world.assemble(cover=[world.root / "nope"])
