"""Named arrays and brigade.io in one process: what NumPy says is what the file holds."""

from __future__ import annotations

import array
import errno
import os
import pickle
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

import brigade.io
from brigade.errors import BrigadeError
from brigade.io import _lib

ROOT = Path(__file__).resolve().parents[2]
TYPES = sorted(_lib.NUMBERS)
RELAXED = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def viewed(draw: st.DrawFn) -> numpy.ndarray[Any, Any]:
    """Any array of any type, also transposed, backwards, with steps, of the other byte order."""
    shape = draw(arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=7))
    dtype = draw(st.sampled_from(TYPES))
    kind = numpy.dtype(dtype)
    data = draw(st.binary(min_size=64, max_size=64))
    size = int(numpy.prod(shape)) * kind.itemsize
    raw = bytes((data * (size // 64 + 1))[:size])
    found = numpy.frombuffer(raw, dtype=kind if dtype != "bool" else "uint8").reshape(shape)
    if dtype == "bool":
        found = (found & 1).astype(bool)
    if draw(st.booleans()):
        found = found.T
    steps = tuple(slice(None, None, draw(st.sampled_from([1, -1, 2, -3]))) for _ in found.shape)
    found = found[steps]
    return found.astype(found.dtype.newbyteorder(">")) if draw(st.integers(0, 9)) == 0 else found


views = st.composite(viewed)()


@RELAXED
@given(st.lists(views, max_size=6), st.sampled_from(["64K", "4M"]))
def test_any_numpy_array_comes_back(
    tmp_path: Path, given_arrays: list[numpy.ndarray[Any, Any]], segment: str
) -> None:
    path = tmp_path / "f"
    with brigade.io.open(None, path, "w", segment=segment, sync=False) as f:
        for i, one in enumerate(given_arrays):
            f.write_array(f"group/{i}", one)
    with brigade.io.open(None, path) as f:
        assert list(f) == [f"group/{i}" for i in range(len(given_arrays))]
        for i, one in enumerate(given_arrays):
            assert f[f"group/{i}"].shape == one.shape
            back = f.read_array(f"group/{i}")
            assert back.dtype == one.dtype.newbyteorder("=")
            assert back.tobytes() == one.astype(back.dtype).tobytes()


@RELAXED
@given(st.data())
def test_any_block_is_written_and_read_into_any_strides(
    tmp_path: Path, data: st.DataObject
) -> None:
    path, draw = tmp_path / "f", data.draw
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    start = [draw(st.integers(0, n)) for n in shape]
    count = [draw(st.integers(0, n - at)) for n, at in zip(shape, start)]
    where = tuple(slice(at, at + n) for at, n in zip(start, count))
    reference = numpy.zeros(shape, "i4")
    block = numpy.arange(1, 1 + numpy.prod(count), dtype="i4").reshape(count)
    reference[where] = block
    with brigade.io.open(None, path, "w", sync=False) as f:
        f.write_array("a", numpy.zeros(shape, "i4"))
        f.write_array("a", block, shape=shape, start=start)
    with brigade.io.open(None, path) as f:
        assert (f.read_array("a") == reference).all()
        assert (f.read_array("a", start=start, count=count) == block).all()
        flipped = numpy.empty([2 * n for n in reversed(count)], "i4")
        steps = tuple(slice(None, None, draw(st.sampled_from([2, -2]))) for _ in count)
        out = flipped[steps].T
        f.read_array("a", start=start, count=count, out=out)
        assert (out == block).all()


def test_a_thousand_arrays_and_their_attributes_survive(tmp_path: Path) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        for i in range(1000):
            f.write_array(f"small{i}", numpy.full(i % 50, i))
            f[f"small{i}"].attrs["number"] = i
        f.write_array("large", numpy.arange(300_000.0))
    with brigade.io.open(None, tmp_path / "f") as f:
        assert len(f) == 1001 and f["large"].offset % (1 << 20) == 0
        for i in (0, 1, 49, 50, 517, 999):
            assert (f.read_array(f"small{i}") == i).all() and f[f"small{i}"].size == i % 50
            assert f[f"small{i}"].attrs["number"] == i
        assert (f.read_array("large") == numpy.arange(300_000.0)).all()


def test_attributes_come_back_as_what_they_were(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "text": "Größe\nin K", "none": "", "yes": True, "number": -7, "huge": 2**63 + 1,
        "real": 0.1, "complex": 1 - 2j, "list": [1.5, 2.5], "empty": numpy.zeros(0, "f4"),
        "numpy": numpy.float32(0.1), "bytes": b"\x00\xff", "big": numpy.array([1, 2], ">u2"),
    }  # fmt: skip
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        f.attrs.update(values)
        f.write_array("a", numpy.zeros(3))
        f["a"].attrs["unit"] = "m"
        f["a"].attrs["unit"] = "K"
        assert f.attrs["number"] == -7, "and at once, here"
    with brigade.io.open(None, tmp_path / "f") as f:
        assert list(f.attrs) == list(values) and dict(f["a"].attrs) == {"unit": "K"}
        for name in ("text", "none", "yes", "number", "huge", "real", "complex"):
            assert f.attrs[name] == values[name] and type(f.attrs[name]) is type(values[name])
        assert f.attrs["list"].tolist() == [1.5, 2.5]
        assert f.attrs["empty"].dtype == "f4" and f.attrs["empty"].shape == (0,)
        assert f.attrs["numpy"] == numpy.float32(0.1)
        assert f.attrs["bytes"].tobytes() == b"\x00\xff" and f.attrs["big"].tolist() == [1, 2]
        assert "absent" not in f.attrs
        with pytest.raises(KeyError):
            f.attrs["absent"]


@pytest.mark.parametrize("value", [["a", "b"], numpy.zeros((2, 2)), 2**64, None, object()])
def test_what_cannot_be_an_attribute_is_a_type_error(tmp_path: Path, value: Any) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        with pytest.raises(TypeError, match="attribute a"):
            f.attrs["a"] = value


NO_UTF8 = [b"\xff", b"abc\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\0\x80", b"\xf5\x80\x80\x80"]


@pytest.mark.parametrize("text", NO_UTF8)
def test_text_that_is_not_utf8_is_refused_when_it_is_written(tmp_path: Path, text: bytes) -> None:
    with brigade.io.open(None, tmp_path / "f", "w", sync=False) as f:
        with pytest.raises(
            brigade.io.BrigadeIOError, match="attribute t: text is UTF-8"
        ) as refused:
            f.attrs._set("t", _lib.TEXT, len(text), text)
        assert refused.value.errno == errno.EINVAL
        with pytest.raises(UnicodeEncodeError):
            f.attrs["t"] = text.decode(errors="surrogateescape")
        f.attrs["u"] = "a\0ä€😀"
    with brigade.io.open(None, tmp_path / "f") as f:
        assert dict(f.attrs) == {"u": "a\0ä€😀"}


def test_text_that_somebody_else_wrote_otherwise_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with brigade.io.open(None, path, "w", checksums=False) as f:
        f.attrs["t"] = "??"
    data = bytearray(path.read_bytes().replace(b"??", b"\xff?"))
    at, size = struct.unpack_from("<QQ", data, 16)
    struct.pack_into("<I", data, 32, zlib.crc32(data[at : at + size]))
    struct.pack_into("<I", data, 60, zlib.crc32(data[:60]))
    path.write_bytes(data)
    with brigade.io.open(None, path) as f:
        assert f.attrs["t"] == f.attrs.typed("t") == "\udcff?"


@pytest.mark.parametrize("kind", ["f2", "M8[s]", "S5", "U3", "O", "i4,f8"])
def test_elements_that_have_no_type_in_the_file_are_named(tmp_path: Path, kind: str) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        with pytest.raises((TypeError, ValueError)):
            f.write_array("a", numpy.zeros(3, kind))


def test_every_object_with_a_buffer_can_be_written(tmp_path: Path) -> None:
    class Tensor:
        """What PyTorch's tensors offer."""

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return numpy.arange(4, dtype="f4")

    frozen = numpy.arange(5)
    frozen.flags.writeable = False
    sources: dict[str, tuple[Any, list[Any]]] = {
        "bytes": (b"abc", [97, 98, 99]),
        "bytearray": (bytearray(b"de"), [100, 101]),
        "array.array": (array.array("l", [1, -2, 3]), [1, -2, 3]),
        "memoryview": (memoryview(b"abcdef")[::-2], [102, 100, 98]),
        "read-only": (frozen, [0, 1, 2, 3, 4]),
        "tensor": (Tensor(), [0, 1, 2, 3]),
        "list": ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
    }
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        for name, (source, _) in sources.items():
            f.write_array(name, source)
    with brigade.io.open(None, tmp_path / "f") as f:
        for name, (_, wanted) in sources.items():
            assert f.read_array(name).tolist() == wanted


def test_bytes_and_pieces_are_plain_bytes_at_plain_offsets(tmp_path: Path) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        f.write(4, b"efgh")
        f.write(0, numpy.frombuffer(b"ab", "i2"))
        f.write_pieces([(10, 2), (2, 2), (12, 0)], b"klcd")
        f.write()
        assert f.size == 12
    assert (tmp_path / "f").read_bytes() == b"abcdefgh\0\0kl"
    with brigade.io.open(None, tmp_path / "f") as f:
        assert f.read(3, 4) == b"defg"
        out = bytearray(4)
        f.read_pieces([(10, 2), (0, 2)], out)
        assert out == b"klab" and list(f) == []
        with pytest.raises(brigade.io.BrigadeIOError) as caught:
            f.read(10, 3)
    assert caught.value.errno == errno.ENODATA and caught.value.filename == str(tmp_path / "f")


def test_neither_numpy_nor_mpi4py_is_imported_for_bytes(tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules["numpy"] = sys.modules["mpi4py"] = None
import brigade.io, array
with brigade.io.open(None, {str(tmp_path / "f")!r}, "w") as f:
    f.write_array("a", array.array("d", [1, 2, 3]))
    f.attrs["c"], f.attrs["t"] = 1j, "text"
with brigade.io.open(None, {str(tmp_path / "f")!r}) as f:
    out = array.array("d", [0] * 3)
    f.read_array("a", out=out)
    print(out.tolist(), f["a"].dtype, f.attrs["c"], f.attrs["t"])
"""
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", code], env=environ, text=True, capture_output=True)
    assert done.stdout == "[1.0, 2.0, 3.0] float64 1j text\n", done.stderr


def test_an_exception_in_the_block_leaves_what_was_there(tmp_path: Path) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        f.write(0, b"old")
    with pytest.raises(ZeroDivisionError):
        with brigade.io.open(None, tmp_path / "f", "w") as f:
            f.write_array("a", numpy.zeros(10))
            1 / 0  # noqa: B018
    assert f.closed and (tmp_path / "f").read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} <= {"f", "f.sums"}


def test_a_commit_may_go_on_while_the_program_does(tmp_path: Path) -> None:
    with brigade.io.open(None, tmp_path / "f", "w", async_=True) as f:
        f.write_array("a", numpy.arange(5))
        request = f.commit(wait=False)
        assert request is not None
        while not request.test():
            pass
        request.wait()
    with brigade.io.open(None, tmp_path / "f") as f:
        assert f.read_array("a").tolist() == [0, 1, 2, 3, 4]


def test_a_failure_is_an_oserror_of_brigades_tree_and_can_be_sent(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file") as caught:
        brigade.io.open(None, tmp_path / "none/f", "w")
    error = pickle.loads(pickle.dumps(caught.value))
    for one in (caught.value, error):
        assert isinstance(one, (brigade.io.BrigadeIOError, BrigadeError))
        assert (
            one.errno == errno.ENOENT and one.exit_code == 10 and one.strerror == str(one.message)
        )
    assert error.rank == caught.value.rank == 0


@pytest.mark.parametrize(
    "mistake, words",
    [
        (lambda f: f.write_array("a", numpy.zeros(4)), "array a is float64 .3., not float64 .4."),
        (lambda f: f.write_array("a", numpy.zeros(3, "f4")), "array a is float64 .3., not float32"),
        (lambda f: f.write_array("b/../c", numpy.zeros(3)), "cannot be a name"),
        (lambda f: f.write_array("b", numpy.zeros(3), shape=(5,), start=(3,)), "do not lie in 5"),
        (lambda f: f.write(0, b"x"), "holds arrays"),
        (lambda f: f.read_array("a"), "opened for writing"),
    ],
)
def test_a_mistake_says_what_is_wrong(tmp_path: Path, mistake: Any, words: str) -> None:
    f = brigade.io.open(None, tmp_path / "f", "w")
    f.write_array("a", numpy.zeros(3))
    with pytest.raises(brigade.io.BrigadeIOError, match=words):
        mistake(f)
    f.commit()
    f.close()
    with brigade.io.open(None, tmp_path / "f") as f:
        assert f.read_array("a").tolist() == [0, 0, 0], "and nothing else has changed"


def test_a_damaged_index_is_one_clear_error_and_its_bytes_can_still_be_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with brigade.io.open(None, path, "w") as f:
        f.write_array("a", numpy.arange(100))
        f.attrs["x"] = 1
    good = path.read_bytes()
    (tmp_path / "f.sums").unlink(missing_ok=True)
    for at in (9, 20, 61, len(good) - 3):
        data = bytearray(good)
        data[at] ^= 4
        path.write_bytes(data)
        with brigade.io.open(None, path) as f:
            assert f.read(0, len(good)) == data
            with pytest.raises(brigade.io.BrigadeIOError, match="damaged") as caught:
                f.read_array("a")
            assert caught.value.errno == errno.EBADMSG and str(path) in str(caught.value)
            with pytest.raises(brigade.io.BrigadeIOError, match="damaged"):
                dict(f.arrays)
    for cut in (70, len(good) - 1):
        path.write_bytes(good[:cut])
        with brigade.io.open(None, path) as f, pytest.raises(brigade.io.BrigadeIOError):
            f["a"]


def test_a_name_that_c_would_cut_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="null"):
        brigade.io.open(None, f"{tmp_path}/f\0g", "w")
    with pytest.raises(ValueError, match="null"):
        brigade.io.open(None, tmp_path / "f", "w", transport="auto\0")
    with brigade.io.open(None, tmp_path / "f", "w", sync=False) as f:
        f.write_array("a", numpy.ones(3))
        for refused in (
            lambda: f.write_array("a\0b", numpy.ones(3)),
            lambda: f.attrs.update({"x\0y": 1}),
        ):
            with pytest.raises(ValueError, match="null"):
                refused()
    with brigade.io.open(None, tmp_path / "f", "r") as f:
        assert list(f) == ["a"] and not f.attrs
        with pytest.raises(ValueError, match="null"):
            f["a\0b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f", "f.sums"]


def test_a_name_that_is_too_long_is_shown_with_its_length(tmp_path: Path) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        with pytest.raises(
            brigade.io.BrigadeIOError, match=r"'weights/x+' \(1024 bytes\) cannot be"
        ):
            f.write_array("weights/" + "x" * 1016, numpy.zeros(3))
