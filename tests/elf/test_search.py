"""The search that is worked out is the one that ld.so makes: `LD_DEBUG=libs` is the witness."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from elf_world import search, tried, worked_out
from world_of_c import library, program

from brigade.elf.file import ElfFile
from brigade.elf.loader import Loader
from brigade.elf.search import Search

OLD, NEW = "-Wl,--disable-new-dtags", "-Wl,--enable-new-dtags"


def rpath(base: Path, *folders: str) -> str:
    return "-Wl,-rpath," + ":".join(f"{base}/{f}" if f[0] != "$" else f for f in folders)


def twins(base: Path, name: str, *folders: str, **options) -> Path:
    """A library of that name in each of the folders."""
    return [library(base / folder / name, **options) for folder in folders][0]


def by_rpath(base: Path) -> tuple[Path, dict[str, str]]:
    lib = twins(base, "libone.so", "far")
    return program(base / "app", OLD, rpath(base, "no", "near/", "far", "no"), needs=[lib]), {}


def by_runpath_after_the_variable(base: Path) -> tuple[Path, dict[str, str]]:
    lib = twins(base, "libone.so", "far", "run")
    app = program(base / "app", NEW, rpath(base, "run"), needs=[lib])
    return app, {"LD_LIBRARY_PATH": f"{base}/no:{base}/far;{base}/also"}


def rpath_of_the_one_who_loaded(base: Path) -> tuple[Path, dict[str, str]]:
    inner = twins(base, "libinner.so", "far")
    outer = library(base / "near/libouter.so", OLD, rpath(base, "no"), needs=[inner])
    return program(base / "app", OLD, rpath(base, "near", "far"), needs=[outer]), {}


def no_rpath_for_who_has_a_runpath(base: Path) -> tuple[Path, dict[str, str]]:
    inner = twins(base, "libinner.so", "far")
    outer = library(base / "near/libouter.so", NEW, rpath(base, "no"), needs=[inner])
    return program(base / "app", OLD, rpath(base, "near", "far"), needs=[outer]), {}


def runpath_is_for_the_requester_alone(base: Path) -> tuple[Path, dict[str, str]]:
    inner = twins(base, "libinner.so", "far")
    outer = library(base / "near/libouter.so", needs=[inner])
    return program(base / "app", NEW, rpath(base, "near", "far"), needs=[outer]), {}


def origin_behind_a_link(base: Path) -> tuple[Path, dict[str, str]]:
    inner = library(base / "real/inner/libinner.so")
    outer = library(base / "real/libouter.so", NEW, rpath(base, "${ORIGIN}/inner"), needs=[inner])
    (base / "links/inner").mkdir(parents=True)
    library(base / "links/inner/libinner.so")
    (base / "links/libouter.so").symlink_to(outer)
    program(base / "bin/app", NEW, rpath(base, "$ORIGIN/../links"), needs=[outer])
    (base / "app").symlink_to(base / "bin/app")
    return base / "app", {}


def subdirectories_first(base: Path) -> tuple[Path, dict[str, str]]:
    lib = twins(base, "libone.so", "far", "far/glibc-hwcaps/x86-64-v2")
    return program(base / "app", needs=[lib]), {"LD_LIBRARY_PATH": f"{base}/far"}


def nodefaultlib(base: Path) -> tuple[Path, dict[str, str]]:
    lib = twins(base, "libone.so", "far")
    own = f"/lib/{os.uname().machine}-linux-gnu"
    here = own if os.path.isdir(own) else "/lib64"
    flags = [NEW, "-Wl,-z,nodefaultlib", f"-Wl,-rpath,{base}/far:{here}"]
    return program(base / "app", *flags, needs=[lib]), {}


def by_lib_and_platform(base: Path) -> tuple[Path, dict[str, str]]:
    platform = search().loader.platform  # "haswell" on Intel's processors, "x86_64" on AMD's
    lib = twins(base, "libone.so", f"x/{platform}")
    return program(base / "app", OLD, rpath(base, "$ORIGIN/$LIB", "x/$PLATFORM"), needs=[lib]), {}


def needed_twice_and_by_soname(base: Path) -> tuple[Path, dict[str, str]]:
    a = library(base / "far/liba.so")
    b = library(base / "far/libb.so", needs=[a])
    return program(base / "app", OLD, rpath(base, "far"), needs=[b, a]), {}


WORLDS = [
    by_rpath, by_runpath_after_the_variable, rpath_of_the_one_who_loaded,
    no_rpath_for_who_has_a_runpath, runpath_is_for_the_requester_alone, origin_behind_a_link,
    subdirectories_first, nodefaultlib, by_lib_and_platform, needed_twice_and_by_soname,
]  # fmt: skip


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_the_search_is_that_of_ld_so(tmp_path, world):
    app, environment = world(tmp_path)
    files, loaded = tried(app, environment)
    ours, all_ = worked_out(app, search(environment))
    assert any("lib" in os.path.basename(one) for one in files)
    assert ours == files
    if loaded:  # nothing was missing
        assert set(loaded) == set(all_)


def test_an_empty_entry_is_the_working_directory(tmp_path):
    app = program(tmp_path / "app", needs=[library(tmp_path / "far/libone.so")])
    environment = {"LD_LIBRARY_PATH": ":/no"}
    files, _ = tried(app, environment, cwd=str(tmp_path / "far"))
    ours, _ = worked_out(app, search(environment, str(tmp_path / "far")))
    here = [os.path.join(tmp_path / "far", one) for one in files if "libone" in one]
    assert here == [one for one in ours if "libone" in one] and len(here) > 1


@pytest.mark.parametrize("flags", [(), ("-Wl,-z,nodefaultlib",)], ids=["default", "nodefaultlib"])
def test_what_is_missing_is_told_with_all_that_was_tried(tmp_path, flags):
    one = library(tmp_path / "far/libone.so")
    app = program(tmp_path / "app", OLD, rpath(tmp_path, "near"), *flags, needs=[one])
    files, _ = tried(app, {"LD_LIBRARY_PATH": f"{tmp_path}/no"})
    ours, _ = worked_out(app, search({"LD_LIBRARY_PATH": f"{tmp_path}/no"}))
    ours = [path for path in ours if path.endswith("libone.so")]
    assert files and ours == files  # ld.so ends at the first that is missing


def test_the_rpath_of_who_has_a_runpath_beside_it_is_not_searched():
    """As no linker makes it any more: glibc then takes the RUNPATH alone."""
    program = ElfFile("/bin/app", 64, "x86_64", rpath="/program")
    between = ElfFile("/lib/between.so", 64, "x86_64", rpath="/both", runpath="/run")
    requester = ElfFile("/lib/requester.so", 64, "x86_64", rpath="/own")
    places = Search({}, Loader("ld.so", system=())).places([requester, between, program])
    assert [one.folder for one in places if one.cause == "RPATH"] == ["/own", "/program"]


def test_a_file_for_another_machine_is_passed_over(tmp_path):
    lib = library(tmp_path / "far/libone.so")
    other = tmp_path / "near/libone.so"
    other.parent.mkdir()
    data = bytearray(lib.read_bytes())
    data[18:20] = (183).to_bytes(2, "little")
    other.write_bytes(data)
    app = program(tmp_path / "app", OLD, rpath(tmp_path, "near", "far"), needs=[lib])
    files, _ = tried(app, {})
    ours, loaded = worked_out(app, search())
    assert ours == files and str(other) in files
    assert str(lib) in loaded and str(other) not in loaded
