"""What import tables say of a folder, against FileFinder itself, and when a .pyc is used."""

from __future__ import annotations

import importlib.machinery as machinery
import importlib.util
import marshal
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest
from disk_tree import DiskTree
from hypothesis import given, settings
from hypothesis import strategies as st
from module_tree import TRIAL_S, write

from brigade.errors import TrialError
from brigade.imports import table

THIS = table.Interpreter(
    executable=sys.executable,
    cache_tag=sys.implementation.cache_tag,
    magic=importlib.util.MAGIC_NUMBER,
    optimization="",
    extension_suffixes=tuple(machinery.EXTENSION_SUFFIXES),
)


def describe(
    folder: Path,
    *,
    listed: bool = True,
    names: set[str] | None = None,
    tree: table.Tree | None = None,
) -> dict[str, int]:
    tree = tree or DiskTree([str(folder)], [str(folder)] if listed else [])
    what = table.Seen({THIS.key: THIS}, {str(folder): None}, names or set())
    blob = marshal.loads(table.build(tree, what))[THIS.key][str(folder)]
    canonical, is_listed, mtime_ns, found = marshal.loads(blob)
    assert canonical == os.path.realpath(folder) and is_listed == listed
    assert mtime_ns == folder.stat().st_mtime_ns
    return found


def pyc_bytes(folder: Path, name: str = "m") -> int:
    return describe(folder)[name] >> table.KIND_BITS


def compiled(folder: Path, mode: py_compile.PycInvalidationMode | None = None) -> Path:
    write(folder / "m.py", "value = 1\n")
    return Path(py_compile.compile(str(folder / "m.py"), invalidation_mode=mode, doraise=True))


def test_a_valid_pyc_is_used(tmp_path: Path) -> None:
    size = compiled(tmp_path).stat().st_size
    assert pyc_bytes(tmp_path) == size


def test_a_pyc_of_another_magic_number_is_not_used(tmp_path: Path) -> None:
    pyc = compiled(tmp_path)
    pyc.write_bytes(b"\x01\x02\r\n" + pyc.read_bytes()[4:])
    assert pyc_bytes(tmp_path) == table.SOURCE_ONLY


def test_a_pyc_of_an_older_source_is_not_used(tmp_path: Path) -> None:
    compiled(tmp_path)
    os.utime(tmp_path / "m.py", (1, 1))
    assert pyc_bytes(tmp_path) == table.SOURCE_ONLY


def test_a_pyc_of_a_source_of_another_size_is_not_used(tmp_path: Path) -> None:
    compiled(tmp_path)
    when = (tmp_path / "m.py").stat().st_mtime_ns
    write(tmp_path / "m.py", "value = 12\n")
    os.utime(tmp_path / "m.py", ns=(when, when))
    assert pyc_bytes(tmp_path) == table.SOURCE_ONLY


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_a_damaged_pyc_is_not_used(tmp_path: Path, damage: bytes | None) -> None:
    pyc = compiled(tmp_path)
    bad_flags = pyc.read_bytes()[:4] + b"\xff" + pyc.read_bytes()[5:]
    pyc.write_bytes(bad_flags if damage is None else damage)
    assert pyc_bytes(tmp_path) == table.SOURCE_ONLY


def test_hash_pycs_are_checked_only_if_they_ask_for_it(tmp_path: Path) -> None:
    modes = py_compile.PycInvalidationMode
    for mode, used_after_change in ((modes.CHECKED_HASH, False), (modes.UNCHECKED_HASH, True)):
        compiled(tmp_path, mode)
        assert pyc_bytes(tmp_path) > table.SOURCE_ONLY
        write(tmp_path / "m.py", "value = 2\n")
        assert (pyc_bytes(tmp_path) > table.SOURCE_ONLY) == used_after_change


def test_a_pyc_without_content_in_the_image_is_not_used(tmp_path: Path) -> None:
    compiled(tmp_path)
    root = str(tmp_path)
    tree = DiskTree([root], [root], lambda path: not path.endswith(".pyc"))
    with_source = table.SOURCE_MODULE | table.SOURCE_ONLY << table.KIND_BITS
    assert describe(tmp_path, tree=tree)["m"] == with_source
    tree = DiskTree([root], [root], lambda path: False)
    assert describe(tmp_path, tree=tree)["m"] == table.SOURCE_MODULE


def test_names_that_lead_out_of_the_image_are_unknown(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    write(outside / "pkg/__init__.py")
    write(outside / "m.py")
    inside.mkdir()
    (inside / "pkg").symlink_to(outside / "pkg")
    (inside / "m.py").symlink_to(outside / "m.py")
    assert describe(inside) == {"pkg": table.UNKNOWN, "m": table.UNKNOWN}


def test_a_folder_that_is_not_listed_tells_only_of_names_that_were_searched(
    tmp_path: Path,
) -> None:
    write(tmp_path / "seen.py")
    write(tmp_path / "unseen.py")
    found = describe(tmp_path, listed=False, names={"seen", "absent", "pkg.tail"})
    found["seen"] &= 15
    assert found == {"seen": table.SOURCE_MODULE, "absent": table.ABSENT, "tail": table.ABSENT}


def test_a_path_entry_outside_the_image_has_no_table(tmp_path: Path) -> None:
    tree = DiskTree([str(tmp_path / "elsewhere")])
    entries = dict.fromkeys([str(tmp_path), "", "relative", str(tmp_path / "absent")])
    section = table.build(tree, table.Seen({THIS.key: THIS}, entries))
    assert marshal.loads(section) == {THIS.key: {}}


def test_no_interpreter_no_section(tmp_path: Path) -> None:
    assert table.build(DiskTree([str(tmp_path)]), table.Seen()) == b""


def test_a_damaged_interpreter_record_is_explained() -> None:
    with pytest.raises(TrialError, match="interpreter is damaged"):
        table.seen([("interpreter", "0", "", "/usr/bin/python3", '{"magic": 1', "0", "1")])


def test_records_of_all_processes_are_summed_up() -> None:
    total = table.seen(
        [
            ("import", "0", "__main__", "a", "/x/a.py", "0", "1"),
            ("import", "2", "a", "b", "", "0", "1"),
            ("import", "2", "a", "c", "", "0", "1"),
            ("import", "0", "a", "c", "/x/c.py", "0", "2"),
            ("path-entry", "0", "", "/x", "", "0", "1"),
            ("path-entry", "0", "", "/x", "", "0", "2"),
            ("stat", "0", "", "/x", "", "0", "2"),
        ]
    )
    assert total.names == {"a", "b", "c"} and total.missing == {"b"}
    assert list(total.path_entries) == ["/x"] and total.origins["c"] == "/x/c.py"


def test_every_folder_below_a_prefix_is_an_entry_without_a_trial(tmp_path: Path) -> None:
    write(tmp_path / "pkg/sub/m.py")
    write(tmp_path / "pkg/__pycache__/m.pyc")
    write(tmp_path / "name-1.0.dist-info/METADATA")
    found = table.package_entries(DiskTree([str(tmp_path)]), str(tmp_path))
    assert [os.path.relpath(f, tmp_path) for f in found] == [".", "pkg", "pkg/sub"]


def test_the_view_s_compiled_code_goes_into_the_image(python: str, tmp_path: Path) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(table.SITE),
        "BRIGADE_RECORD": str(tmp_path),
        "BRIGADE_RECORD_FORK": "1",
    }
    subprocess.run([python, "-c", ""], env=env, check=True)
    from staged import read_records

    files = table.site_files(table.seen(read_records(tmp_path)))
    tag = subprocess.run(
        [python, "-c", "import sys; print(sys.implementation.cache_tag)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    for path in table.SITE.glob("*.py"):
        assert path.name in files
        compiled = f"__pycache__/{path.stem}.{tag}.pyc" in files
        assert compiled == (path.stem not in TRIAL_S), path.name


# Any small folder: the table and FileFinder must agree on every name ----------------

STEMS = ["a", "b"]
SUFFIXES = [
    ".py",
    ".pyc",
    machinery.EXTENSION_SUFFIXES[0],
    machinery.EXTENSION_SUFFIXES[-1],
    ".txt",
    "",
]
FILES = [
    f"{folder}{stem}{suffix}"
    for folder in ("", "a/", "b/")
    for stem in ["a", "b", "__init__"]
    for suffix in SUFFIXES
]


def spell(kind: int, folder: Path, name: str) -> object:
    number, kind = kind >> table.KIND_BITS, kind & 15
    if kind in (table.ABSENT, table.NAMESPACE):
        return [None, "namespace"][kind == table.NAMESPACE]
    package = kind % 2 == 0
    base = f"{folder}/{name}/__init__" if package else f"{folder}/{name}"
    plain = kind - package
    suffix = (
        ".py"
        if plain == table.SOURCE_MODULE
        else ".pyc"
        if plain == table.SOURCELESS_MODULE
        else machinery.EXTENSION_SUFFIXES[number // 2]
    )
    return base + suffix


@settings(max_examples=80, deadline=None)
@given(files=st.sets(st.sampled_from(FILES)), folders=st.sets(st.sampled_from(["a", "b", "a.py"])))
def test_a_table_finds_what_filefinder_finds(
    tmp_path_factory: pytest.TempPathFactory, files: set[str], folders: set[str]
) -> None:
    here = tmp_path_factory.mktemp("any")
    for name in sorted(folders):
        (here / name).mkdir()
    for name in sorted(files):
        path = here / name
        if not path.exists() and (path.parent == here or not path.parent.is_file()):
            write(path)
    finder = machinery.FileFinder(
        str(here),
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        (machinery.SourceFileLoader, [".py"]),
        (machinery.SourcelessFileLoader, [".pyc"]),
    )
    found = describe(here)
    for name in STEMS:
        spec = finder.find_spec(name)
        expected = spec and (spec.origin or "namespace")
        assert spell(found.get(name, table.ABSENT), here, name) == expected
