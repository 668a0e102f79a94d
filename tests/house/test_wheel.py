"""The installed package: everything a job needs is in it, and a compute node needs nothing more."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import brigade
from brigade.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
NATIVE = Path(brigade.__file__).parent / "_native"
INJECTED = [
    "libbrigade-audit.so",
    "libbrigade-preload.so",
    "libbrigade-preload-watch.so",
    "brigade-rank",
    "brigade-trace",
]
LIBRARIES = ["libbrigade.so", "libbrigade_io.so", "libbrigade_shmemio.so"]
PARTS = [
    *LIBRARIES,
    "libbrigade_pmpi.so",
    "libbrigade_mpiio.so",
    "libbrigade_buffer.so",
    *INJECTED,
    "brigade-stage",
    "brigade-land",
    "brigade-slowfs",
]
# ld.so and the parts of glibc, which every node has
GLIBC = re.compile(r"(libc|libdl|libpthread|librt|libm|ld-linux-[a-z0-9-]+)\.so\.\d")

pytestmark = pytest.mark.skipif(
    not NATIVE.is_dir(), reason="needs Brigade installed from its wheel (`make build`)"
)


def needed(part: str) -> list[str]:
    """The libraries that a native part names as needed."""
    said = subprocess.run(
        ["readelf", "-dW", NATIVE / part], capture_output=True, text=True, check=True
    )
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said.stdout)


@pytest.mark.parametrize("part", PARTS)
def test_the_wheel_has_every_native_part(part):
    assert (NATIVE / part).is_file()


def test_every_native_part_that_the_package_asks_for_is_in_the_wheel():
    sources = (ROOT / "python").rglob("*.py")
    asked = {
        name
        for path in sources
        for name in re.findall(r"\bnative\(\"([^\"]+)\"\)", path.read_text())
    }
    assert asked
    assert sorted(name for name in asked if not (NATIVE / name).is_file()) == []


@pytest.mark.parametrize("part", [*LIBRARIES, "brigade-stage", *INJECTED])
def test_what_runs_on_a_compute_node_needs_only_glibc(part):
    assert [name for name in needed(part) if not GLIBC.fullmatch(name)] == []


def test_the_auditor_needs_no_library_at_all():
    assert needed("libbrigade-audit.so") == []


@pytest.mark.parametrize("library", [*LIBRARIES, "libbrigade_mpiio.so"])
def test_a_library_exports_only_its_own_names(library):
    own = {
        "libbrigade_shmemio.so": "SHMEM_",
        "libbrigade_mpiio.so": ("MPI_", "PMPI_", "brigade_mpiio_"),
    }
    said = subprocess.run(
        ["nm", "-D", "--defined-only", NATIVE / library],
        capture_output=True,
        text=True,
        check=True,
    )
    names = [line.split()[-1] for line in said.stdout.splitlines() if " A " not in line]
    assert names
    begins = own.get(library, "brg_")
    assert [name for name in names if not name.startswith(begins)] == []


def test_what_a_user_compiles_is_in_the_wheel_and_no_link_is():
    sources = {path.name for path in (ROOT / "include/brigade").iterdir()}
    assert {path.name for path in (NATIVE / "include/brigade").iterdir()} == sources
    assert [path for path in NATIVE.rglob("*") if path.is_symlink()] == []


def test_manual_pages_are_installed_where_man_looks():
    folder = Path(sys.prefix) / "share/man/man1"
    pages = ["brigade.1", *(f"brigade-{name}.1" for name in COMMANDS)]
    assert [page for page in pages if not (folder / page).is_file()] == []
    assert (folder.with_name("man3") / "brigade_io.3").is_file()


def test_the_templates_of_the_page_are_in_the_wheel_and_make_a_page():
    from brigade.page import html
    from brigade.profile.profile import Overhead, Profile

    folder = Path(html.__file__).parent / "templates"
    sources = ROOT / "python/brigade/page/templates"
    assert sorted(p.name for p in folder.iterdir()) == sorted(p.name for p in sources.iterdir())
    nothing = Profile(
        *("0", "2026-01-01T00:00:00", [], [], None, "none", [], [], Overhead(0, 0.0), [], [], [])
    )
    assert html.render(nothing).rstrip().endswith("</html>")
