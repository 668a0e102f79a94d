"""Whole images: built, opened again, and asked."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from made import World, missing, process, record

from brigade.cli.image import command as image_command
from brigade.cli.image_create import command, size
from brigade.errors import ImageError, TrialError, UsageError
from brigade.image.assemble import assemble
from brigade.image.build import build, make
from brigade.image.layout import EXISTS, MISSING, OUTSIDE, UNKNOWN
from brigade.image.own_parts import own_parts
from brigade.image.prefix import ask, assemble_prefix
from brigade.image.reader import Image
from brigade.image.writer import search_context
from brigade.imports.table import Seen
from brigade.trial.mounts import Mount, MountTable
from brigade.trial.record import load


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def image_of(world: World, **options: object) -> Image:
    path = world.base / "image.brg"
    build(world.records, path, cover=[str(world.root)], **options)  # type: ignore[arg-type]
    return Image(path)


def test_an_image_answers_as_the_file_system_did(world: World) -> None:
    (world.base / "home").symlink_to(world.root)
    world.trial([record("stat", world.base / "home/app/app.py")])
    with image_of(world) as image:
        assert image.lookup(f"{world.pkg}/core.py").status == EXISTS
        assert image.lookup(f"{world.base}/home/app/../app/app.py").status == EXISTS
        assert image.lookup(f"{world.pkg}/nope.py").status == MISSING
        assert image.lookup(f"{world.app}/settings.ini").err == errno.ENOENT
        assert image.lookup(f"{world.app}/unheard-of").status == UNKNOWN
        assert image.lookup("/etc/passwd").status == OUTSIDE
        assert image.read(f"{world.pkg}/core.py") == b"# core.py\n"


def test_metadata_is_that_of_the_source(world: World) -> None:
    world.trial()
    with image_of(world) as image:
        for name in ("app/app.py", "env/lib", "env/pyvenv.cfg"):
            entry = image.lookup(f"{world.root}/{name}").entry
            real = os.lstat(world.root / name)
            assert entry is not None
            assert (entry.size, entry.mtime_ns, entry.ctime_ns, entry.mode, entry.ino) == (
                real.st_size, real.st_mtime_ns, real.st_ctime_ns, real.st_mode, real.st_ino,
            )  # fmt: skip


def test_a_device_that_is_the_mounts_own_number_is_marked_and_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = os.stat(world.root).st_dev
    seen = [Mount("/", "ext4", "d", device), Mount(f"{world.root}/env", "nfs4", "s:/", device + 1)]
    monkeypatch.setattr("brigade.trial.mounts.read", lambda folder=None: MountTable(seen))
    world.trial()
    with image_of(world) as image:
        marked = {entry.path for entry in image.entries() if entry.mount_dev}
        assert f"{world.app}/app.py" in marked
        assert not any(path.startswith(f"{world.root}/env") for path in marked)
        assert image.lookup(f"{world.root}/env").entry is not None


def test_a_program_with_capabilities_is_marked_if_the_trial_executed_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(os, "getxattr", lambda path, name, **_: asked.append((path, name)) or b"x")
    World.write(world.app / "tool", "#!/bin/sh\n")
    world.trial([record("exec", world.app / "tool"), missing("exec", world.app / "other")])
    with image_of(world) as image:
        marked = [entry.path for entry in image.entries() if entry.own_rights]
    assert marked == [f"{world.app}/tool"]
    assert asked == [(f"{world.app}/tool", "security.capability")]


def test_the_loaders_answers_are_found_by_context_requester_and_name(world: World) -> None:
    World.write(world.pkg / "liba.so", "")
    found = record("search", "liba.so", by="/bin/x", extra=str(world.pkg / "liba.so"))
    world.trial([found], env={"LD_LIBRARY_PATH": "/l"}, exe="/bin/x")
    with image_of(world) as image:
        (answer,) = image.answers()
        assert answer.context == search_context("/bin/x", "/l")
        assert (answer.requester, answer.name) == ("/bin/x", "liba.so")
        assert answer.entry == image.lookup(f"{world.pkg}/liba.so").entry.number  # type: ignore[union-attr]
        assert image.lookup(answer.path).entry.content is not None  # type: ignore[union-attr]


def test_brigades_own_parts_are_inside_and_answer_for_nothing(world: World) -> None:
    world.trial()
    with image_of(world) as image:
        held = {entry.path for entry in image.entries() if entry.content is not None}
        assert held >= {f"/.brigade/{name}" for name in (
            "bin/brigade-rank", "lib/libbrigade-audit.so", "lib/libbrigade-preload.so",
            "python/sitecustomize.py",
        )}  # fmt: skip
        assert image.lookup("/.brigade/bin/brigade-rank").status == OUTSIDE


def test_brigades_own_parts_can_be_read_and_listed(world: World) -> None:
    world.trial()
    with image_of(world) as image:
        for part in own_parts(Seen()):
            if part.source is not None:
                data = part.source
                assert image.read(part.path) == (
                    data if isinstance(data, bytes) else Path(data).read_bytes()
                )
        with pytest.raises(ImageError, match="has no file /.brigade/bin/none"):
            image.read("/.brigade/bin/none")
        with pytest.raises(ImageError, match="does not hold its contents"):
            image.read("/.brigade/bin")
    said = CliRunner().invoke(image_command, ["ls", str(world.base / "image.brg"), "/.brigade/bin"])
    lines = [line.split() for line in said.output.splitlines()]
    assert [(line[0], line[-1]) for line in lines] == [
        ("--", "/.brigade/bin"), ("C-", "/.brigade/bin/brigade-rank"),
    ]  # fmt: skip


def test_the_description_says_what_the_image_is(world: World) -> None:
    libmpi = world.root / "mpi/lib/libmpi.so.40"
    libmpi.parent.mkdir(parents=True)
    World.write(libmpi, "")
    world.trial([record("load", libmpi)])
    with image_of(world) as image:
        meta = image.meta
    assert meta["mpi_library"] == str(libmpi)
    assert meta["roots"] == {str(world.root): "asked"}
    assert meta["program"] == [f"{world.env}/bin/python", "app.py"]
    assert meta["trial"]["agreed"] is True
    assert meta["trial"]["lookups_per_rank"] > 10
    assert meta["python"][0]["version"] == "3.11.2"


def test_import_tables_are_made_for_what_python_searched(world: World) -> None:
    world.trial([record("path-entry", world.site), record("import", "pkg", extra="x")])
    with image_of(world) as image:
        assert str(world.site).encode() in image.python_table


def test_a_file_that_cannot_be_read_is_left_to_the_file_system(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file replaced between looking and reading stands for all that cannot be read."""
    world.trial()
    calls = []

    def look():  # type: ignore[no-untyped-def]
        what = assemble(load(world.records), cover=[str(world.root)])
        if not calls:
            World.write(world.pkg / "core.py", "longer than before\n")
            os.unlink(world.app / "helper.py")
        calls.append(1)
        return what

    built = make(look, world.base / "image.brg", trial=load(world.records))
    assert len(calls) == 2
    with Image(built.path) as image:
        assert image.lookup(f"{world.pkg}/core.py").status == UNKNOWN
        assert image.lookup(f"{world.app}/helper.py").status == UNKNOWN
    assert {left.path for left in built.left_out} >= {f"{world.pkg}/core.py"}


def test_a_failed_build_leaves_no_file(world: World) -> None:
    process(world.records, [record("open", "/etc/passwd", extra="0")], exe="/usr/bin/true")
    with pytest.raises(TrialError):
        build(world.records, world.base / "image.brg")
    assert not list(world.base.glob("image*"))


def test_progress_ends_at_the_total(world: World) -> None:
    world.trial()
    told: list[tuple[int, int]] = []
    image_of(world, progress=lambda done, total: told.append((done, total))).close()
    assert told and told[-1][0] == told[-1][1] > 0


# ---- a whole folder, without a trial


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with a package of its own."""
    base = Path(os.path.realpath(tmp_path_factory.mktemp("prefix"))) / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", base], check=True)
    (site,) = base.glob("lib/python3*/site-packages")
    (site / "pkg/sub").mkdir(parents=True)
    (site / "pkg/__init__.py").write_text("")
    (site / "pkg/sub/__init__.py").write_text("")
    (base / ".git").mkdir()
    (base / ".git/HEAD").write_text("ref")
    return base


def test_a_whole_folder_is_in_the_image_with_nothing_left_out(environment: Path) -> None:
    path = environment.parent / "env.brg"
    built = make(lambda: assemble_prefix(environment), path, trial=None)
    with Image(path) as image:
        for folder, names, files in os.walk(environment):
            entry = image.lookup(folder).entry
            assert entry is not None and entry.listed, folder
            for name in [*names, *files]:
                here = image.lookup(f"{folder}/{name}", follow=False).entry
                assert here is not None, name
                real = Path(folder, name)
                assert (here.content is not None) == (real.is_file() and not real.is_symlink())
        assert image.meta["trial"] == {}
        assert image.lookup(f"{environment}/nope").status == MISSING
    assert built.left_out == []


def test_the_prefixs_own_python_says_which_folders_get_import_tables(environment: Path) -> None:
    what = assemble_prefix(environment)
    (interpreter,) = what.python.interpreters.values()
    assert interpreter.executable == f"{environment}/bin/python3"
    entries = [os.path.relpath(entry, environment) for entry in what.python.path_entries]
    assert [e.split("site-packages")[1] for e in entries] == ["", "/pkg", "/pkg/sub"]


def test_asking_a_python_writes_no_byte_code(environment: Path) -> None:
    from brigade.imports.table import SITE

    before = sorted(SITE.rglob("*"))
    ask(f"{environment}/bin/python3")
    assert sorted(SITE.rglob("*")) == before


def test_a_folder_without_python_has_no_import_tables(tmp_path: Path) -> None:
    (tmp_path / "sw").mkdir()
    assert assemble_prefix(tmp_path / "sw").python.interpreters == {}


def test_a_python_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrialError, match="/bin/false did not say how it imports"):
        assemble_prefix(tmp_path, python="/bin/false")


def test_a_prefix_reached_by_a_link_keeps_both_names(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(environment)
    make(lambda: assemble_prefix(tmp_path / "link"), tmp_path / "i.brg", trial=None)
    with Image(tmp_path / "i.brg") as image:
        assert image.roots == [str(environment)]
        assert image.lookup(f"{os.path.realpath(tmp_path)}/link/pyvenv.cfg").status == EXISTS


# ---- the command


def run(*words: object) -> tuple[int, str, BaseException | None]:
    result = CliRunner().invoke(command, [str(word) for word in words])
    return result.exit_code, result.output, result.exception


def test_the_command_makes_an_image_of_a_folder_and_says_so_as_json(
    environment: Path, tmp_path: Path
) -> None:
    code, text, _ = run("--prefix", environment, "-o", tmp_path / "e.brg", "--json")
    assert code == 0
    said = json.loads(text)
    assert said["path"] == str(tmp_path / "e.brg")
    assert said["bytes"] == os.path.getsize(tmp_path / "e.brg")
    with Image(tmp_path / "e.brg") as image:
        assert image.id == said["id"]


def test_the_command_makes_an_image_from_records(world: World) -> None:
    world.trial([missing("stat", world.app / "x")])
    code, text, _ = run("--record", world.records, "--cover", world.root,
                        "-o", world.base / "r.brg")  # fmt: skip
    assert code == 0
    assert "One rank was recorded" in text


@pytest.mark.parametrize(
    "words",
    [[], ["--prefix", "/a", "--record", "/b"], ["--prefix", "/a", "--cover", "/b"],
     ["--record", "/a", "--python", "p"], ["--prefix", "/usr", "-o", "/usr/x.brg"],
     ["--prefix", "/a", "--max-file", "many"]],
)  # fmt: skip
def test_a_command_line_that_cannot_be_meant_is_refused(words: list[str]) -> None:
    _, _, error = run(*words)
    assert isinstance(error, UsageError)


def test_sizes_are_read_as_people_write_them() -> None:
    assert [size(t) for t in ("300", "20k", "500M", "2GiB", "1TB")] == [
        300, 20 << 10, 500 << 20, 2 << 30, 1 << 40,
    ]  # fmt: skip
