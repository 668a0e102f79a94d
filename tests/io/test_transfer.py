"""`brigade file export` and `import`: HDF5 and Zarr hold what the file held, and the way back."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brigade.io
from brigade.__main__ import main
from brigade.io import _lib
from brigade.io.transfer.blocks import block_shape, blocks, slices

ROOT = Path(__file__).resolve().parents[2]
FORMATS = {"h5": "h5py", "zarr": "zarr"}


class Said(NamedTuple):
    returncode: int
    stderr: str


def brigade_file(*words: str | Path, without: str = "") -> Said:
    """The command, in this process: h5py and zarr take long to load."""
    err = io.StringIO()
    command = ["brigade", "file", *map(str, words)]
    hidden = {without: None} if without else {}
    with redirect_stderr(err), patch.object(sys, "argv", command), patch.dict(sys.modules, hidden):
        try:
            code = main()
        except SystemExit as end:
            code = end.code
    return Said(int(code or 0), err.getvalue())


def done(*words: str | Path) -> str:
    result = brigade_file(*words)
    assert result.returncode == 0, result.stderr
    return result.stderr


@pytest.fixture(params=FORMATS)
def suffix(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(FORMATS[request.param])
    return str(request.param)


ARRAYS: dict[str, Any] = {
    **{f"types/{name}": numpy.arange(6).reshape(2, 3).astype(name) for name in _lib.NUMBERS},
    "group/deeper/large": numpy.arange(1_500_000.0).reshape(1000, 1500),
    "none": numpy.zeros((0, 4)),
    "scalar": numpy.int16(-5),
    "ä": numpy.ones(3, "u1"),
}
ATTRIBUTES = {"title": "Prüfung", "time": 1.5, "step": -7, "on": True, "list": [1.5, 2.5]}


def write(path: Path) -> None:
    with brigade.io.open(None, path, "w", sync=False) as f:
        f.attrs.update(ATTRIBUTES)
        for name, array in ARRAYS.items():
            f.write_array(name, array)
            f[name].attrs.update({"unit": name, "index": 3})


def test_what_goes_out_comes_back(tmp_path: Path, suffix: str) -> None:
    first, out, second = tmp_path / "first", tmp_path / f"out.{suffix}", tmp_path / "second"
    write(first)
    assert done("export", first, out) == "" == done("import", out, second)
    with brigade.io.open(None, second) as f:
        assert sorted(f) == sorted(ARRAYS)
        for name, array in ARRAYS.items():
            back = f.read_array(name)
            assert back.dtype == array.dtype and back.shape == array.shape
            assert (back == array).all()
            assert dict(f[name].attrs) == {"unit": name, "index": 3}
        found = {name: f.attrs[name] for name in f.attrs}
        assert found.pop("list").tolist() == ATTRIBUTES["list"]
        assert found == {name: value for name, value in ATTRIBUTES.items() if name != "list"}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_librarys_own_reader_finds_the_arrays(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / "f")
    done("export", tmp_path / "f", tmp_path / f"o.{suffix}")
    library = pytest.importorskip(FORMATS[suffix])
    opener = library.File if suffix == "h5" else library.open_group
    root = opener(str(tmp_path / f"o.{suffix}"), mode="r")
    assert (root["group/deeper/large"][10:12, 5] == ARRAYS["group/deeper/large"][10:12, 5]).all()
    assert root["group"]["deeper"]["large"].attrs["unit"] == "group/deeper/large"
    assert root["scalar"][()] == -5 and root.attrs["title"] == "Prüfung"


def test_hdf5_keeps_the_types_of_attributes(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    values = [numpy.float32(0.1), numpy.array([1, 2], "u2"), numpy.complex64(1j), numpy.int8(3)]
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        for i, value in enumerate(values):
            f.attrs[f"a{i}"] = value
    done("export", tmp_path / "f", tmp_path / "o.h5")
    with h5py.File(tmp_path / "o.h5") as file:
        assert [file.attrs[f"a{i}"].dtype for i in range(4)] == [value.dtype for value in values]
    done("import", tmp_path / "o.h5", tmp_path / "g")
    with brigade.io.open(None, tmp_path / "g") as f:
        assert f.attrs["a0"] == values[0] and f.attrs["a1"].tolist() == [1, 2]


def test_attributes_of_any_length_go_out_and_come_back(tmp_path: Path, suffix: str) -> None:
    many, text = numpy.arange(2**17, dtype="f8"), "x" * 2**20
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        f.write_array("a", numpy.arange(3))
        f["a"].attrs["many"] = many
        f.attrs["text"] = text
    assert done("export", tmp_path / "f", tmp_path / f"o.{suffix}") == ""
    done("import", tmp_path / f"o.{suffix}", tmp_path / "g")
    with brigade.io.open(None, tmp_path / "g") as f:
        assert (f["a"].attrs["many"] == many).all() and f.attrs["text"] == text


def test_what_hdf5_has_and_we_have_not_is_told(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["group/a"] = numpy.arange(5, dtype=">i4")
        file["group/text"] = ["one", "two"]
        file["records"] = numpy.zeros(3, "i4,f8")
        file["soft"] = h5py.SoftLink("/group/a")
        file["group"].attrs["of group"] = 1
        file["group/a"].attrs["names"] = ["x", "y"]
        file["group/a"].attrs["unit"] = numpy.bytes_(b"K")
        file.create_dataset("chunked", data=numpy.arange(60).reshape(6, 10), chunks=(4, 3))
    refused = brigade_file("import", tmp_path / "in.h5", tmp_path / "f")
    assert refused.returncode == 2 and "array records" in refused.stderr
    assert "array group/text" in refused.stderr and "--skip" in refused.stderr
    assert not (tmp_path / "f").exists()
    told = done("import", "--skip", tmp_path / "in.h5", tmp_path / "f")
    for words in ("link soft", "attributes of group group", "attribute names of array group/a"):
        assert words in told
    with brigade.io.open(None, tmp_path / "f") as f:
        assert sorted(f) == ["chunked", "group/a"]
        assert f.read_array("group/a").tolist() == [0, 1, 2, 3, 4]
        assert f["group/a"].attrs["unit"] == "K"
        assert (f.read_array("chunked") == numpy.arange(60).reshape(6, 10)).all()


def test_a_named_type_of_hdf5_is_told_and_the_arrays_beside_it_come(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["kind"] = numpy.dtype("f8")
        file["group/colours"] = h5py.enum_dtype({"red": 1})
        file["group/a"] = numpy.arange(3)
        file.create_dataset("b", data=[0.5], dtype=file["kind"])
    told = done("import", tmp_path / "in.h5", tmp_path / "f")
    assert "type kind: it is no array" in told and "type group/colours: it is no array" in told
    with brigade.io.open(None, tmp_path / "f") as f:
        assert sorted(f) == ["b", "group/a"]
        assert f.read_array("group/a").tolist() == [0, 1, 2] and f.read_array("b")[0] == 0.5


def test_what_zarr_cannot_hold_is_told(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        f.write_array("a", numpy.zeros(3))
        f["a"].attrs["complex"] = 1j
    assert "attribute complex of array a" in done("export", tmp_path / "f", tmp_path / "o.zarr")


def test_what_is_there_is_replaced_only_if_asked_and_only_if_it_is_such_a_file(
    tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"o.{suffix}"
    write(tmp_path / "f")
    done("export", tmp_path / "f", out)
    again = brigade_file("export", tmp_path / "f", out)
    assert again.returncode == 2 and "--force" in again.stderr
    done("export", "--force", tmp_path / "f", out)
    back = brigade_file("import", out, tmp_path / "f")
    assert back.returncode == 2 and "--force" in back.stderr
    folder = tmp_path / "precious.zarr"
    folder.mkdir()
    (folder / "letter").write_text("dear")
    if suffix == "zarr":
        kept = brigade_file("export", "--force", tmp_path / "f", folder)
        assert kept.returncode == 2 and "left alone" in kept.stderr
    assert (folder / "letter").read_text() == "dear"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_export_that_is_told_to_end_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    with brigade.io.open(None, tmp_path / "f", "w", checksums=False) as f:
        f.write_array("zeros", None, shape=(500_000_000,), dtype="f8")  # takes seconds to copy
    command = [sys.executable, "-m", "brigade", "file", "export", tmp_path / "f", tmp_path / "f.h5"]
    job = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        while os.listdir(tmp_path) == ["f"]:
            assert job.poll() is None
            time.sleep(0.01)
        job.terminate()
        _, said = job.communicate(timeout=60)
    finally:
        job.kill()
    assert os.listdir(tmp_path) == ["f"]
    assert (job.returncode, said) == (128 + signal.SIGTERM, b"")


# SIGTERM comes before the first change in the folder that --force makes, before the second, ...
INTERRUPTED = """
import os, signal, sys
from pathlib import Path
import brigade.io
from brigade.__main__ import main
from brigade.io.transfer import foreign
source, out = Path(sys.argv[1]), Path(sys.argv[2])
sys.argv[1:] = ["file", "export", "-q", "--force", str(source), str(out)]
format = type(foreign.of(out))
left = None  # changes until the signal comes; None: the export copies still
def count(event, arguments):
    global left
    if left is not None and event in ("os.rename", "os.remove", "os.rmdir"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGTERM)
sys.addaudithook(count)
finish = format.finish
def finished(self, path):
    global left
    finish(self, path)
    left = point
format.finish = finished
def export():
    try:
        return main() or 0
    except SystemExit as end:
        return end.code or 0
point = code = held = 0
while point < 2 or code:
    with brigade.io.open(None, source, "w", sync=False) as f:
        f.write_array("a", None, shape=(3,), dtype="f8")
        f.attrs["point"] = point
    code = export()
    left, point = None, point + 1
    with format().open(out, "r") as root:
        assert root["a"].shape == (3,)
        assert root.attrs["point"] in (point - 1, held), (point, held, dict(root.attrs))
        held = root.attrs["point"]
    assert len(os.listdir(out.parent)) <= 3, os.listdir(out.parent)
print(point)
"""


def test_an_export_that_replaces_leaves_the_old_or_the_new_whenever_it_is_told_to_end(
    tmp_path: Path, suffix: str
) -> None:
    command = [sys.executable, "-B", "-c", INTERRUPTED, tmp_path / "f", tmp_path / f"o.{suffix}"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    ended = subprocess.run(command, env=env, text=True, capture_output=True)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > (2 if suffix == "h5" else 5)
    assert sorted(p.name.split(".")[0] for p in tmp_path.iterdir()) == ["f", "f", "o"]


def test_a_missing_library_is_named_with_the_way_to_get_it(tmp_path: Path) -> None:
    write(tmp_path / "f")
    for suffix, library in FORMATS.items():
        said = brigade_file("export", tmp_path / "f", tmp_path / f"o.{suffix}", without=library)
        assert said.returncode == 2 and f"pip install {library}" in said.stderr
    said = brigade_file("export", tmp_path / "f", tmp_path / "o.txt")
    assert said.returncode == 2 and ".zarr (Zarr)" in said.stderr


def test_plain_bytes_and_damaged_files_are_one_message(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    (tmp_path / "plain").write_bytes(b"x" * 100)
    said = brigade_file("export", tmp_path / "plain", tmp_path / "o.h5")
    assert said.returncode == 2 and "holds no arrays" in said.stderr
    (tmp_path / "no.h5").write_bytes(b"x" * 100)
    said = brigade_file("import", tmp_path / "no.h5", tmp_path / "f")
    assert said.returncode != 0 and "importing failed" in said.stderr
    assert not (tmp_path / "f").exists() and not (tmp_path / "o.h5").exists()


MEMORY = """
import resource, sys
from pathlib import Path
from brigade.io.transfer import foreign, leave, take
one, out, two = map(Path, sys.argv[1:4])
leave.export(one, out, foreign.of(out), lambda done, total: None)
take.take(out, two, foreign.of(out), lambda done, total: None)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_arrays(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    peaks = []
    for mib in (1, 128):
        one, out, two = (tmp_path / f"{mib}{name}" for name in ("one", "out.h5", "two"))
        with brigade.io.open(None, one, "w", sync=False) as f:
            f.write_array("a", numpy.zeros((mib, 1 << 17)))
        done_ = subprocess.run(
            [sys.executable, "-B", "-c", MEMORY, str(one), str(out), str(two)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
            text=True, capture_output=True, check=True,
        )  # fmt: skip
        peaks.append(int(done_.stdout))
    assert peaks[1] - peaks[0] < 64 << 10, "KiB"


@settings(deadline=None)
@given(st.data())
def test_blocks_cover_an_array_once_and_keep_their_bound(data: st.DataObject) -> None:
    draw = data.draw
    shape = draw(st.lists(st.integers(0, 12), max_size=4))
    grain = [draw(st.integers(1, 14)) for _ in shape] if draw(st.booleans()) else None
    limit, itemsize = draw(st.integers(1, 500)), draw(st.sampled_from([1, 8]))
    block = block_shape(shape, itemsize, limit, grain)
    seen = numpy.zeros(shape, int)
    for start, count in blocks(shape, block):
        seen[slices(start, count)] += 1
        assert all(n <= b for n, b in zip(count, block))
    assert (seen == 1).all()
    unit = [min(n, g) for n, g in zip(shape, grain or [1] * len(shape))]
    assert numpy.prod(block) * itemsize <= max(
        limit, numpy.prod([max(1, n) for n in unit]) * itemsize
    )
    assert all(b % max(1, u) == 0 or b == n for b, u, n in zip(block, unit, shape))
