"""What Python gives to brigade.io besides NumPy's arrays of the right size: it is taken for what it
says, or refused; nothing is cut to 64 bits, or read into memory that nobody sees."""

from __future__ import annotations

import ctypes
import errno
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import brigade.io


@pytest.mark.parametrize("number", [2**64, 2**65 + 8, -1])
@pytest.mark.parametrize(
    "call",
    [
        lambda f, n: f.write_array("a", numpy.ones(1), shape=(n,)),
        lambda f, n: f.write_array("a", numpy.ones(1), shape=(9,), start=(n,)),
        lambda f, n: f.write_array("a", None, shape=(n,), dtype="f8"),
    ],
)
def test_an_array_that_64_bits_do_not_hold_is_refused(
    tmp_path: Path, call: Any, number: int
) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        with pytest.raises((ValueError, brigade.io.BrigadeIOError)):
            call(f, number)
        f.write_array("good", numpy.ones(1))
    with brigade.io.open(None, tmp_path / "f") as f:
        assert f["good"].shape == (1,)


@pytest.mark.parametrize("number", [2**64, 2**65 + 8, -1, -(2**63) - 8])
@pytest.mark.parametrize(
    "call", [lambda f, n: f.write(n, b"x"), lambda f, n: f.write_pieces([(n, 1)], b"x")]
)
def test_an_offset_that_64_bits_do_not_hold_is_refused(
    tmp_path: Path, call: Any, number: int
) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        with pytest.raises(brigade.io.BrigadeIOError) as refused:
            call(f, number)
        assert refused.value.errno == errno.EOVERFLOW
        f.write(4, b"good")
    assert (tmp_path / "f").read_bytes() == b"\0\0\0\0good"


def test_a_number_that_is_none_is_a_type_error(tmp_path: Path) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        with pytest.raises(TypeError, match="float"):
            f.write(1.0, b"x")
        with pytest.raises(TypeError, match="float"):
            f.write_array("a", numpy.ones(1), shape=(2.0,))
        with pytest.raises(TypeError, match="name"):
            f.write_array(5, numpy.ones(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [numpy.ones(1), None])
def test_a_negative_extent_is_called_so_with_and_without_data(tmp_path: Path, data: Any) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        with pytest.raises(ValueError, match="never negative"):
            f.write_array("a", data, dtype="f8", shape=(-1,))


def test_one_number_is_the_extent_of_one_dimension(tmp_path: Path) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        f.write_array("a", numpy.ones(3), shape=5, start=numpy.int64(2))
        f.write_array("b", None, shape=4, dtype="i4")
    with brigade.io.open(None, tmp_path / "f") as f:
        assert f["a"].shape == (5,) and f["b"].shape == (4,)
        assert f.read_array("a", start=1, count=numpy.uint8(3)).tolist() == [0, 1, 1]


def test_what_is_read_is_never_put_where_nobody_sees_it(tmp_path: Path) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        f.write_array("a", numpy.arange(3.0))
        f.write_array("none", numpy.zeros(0))
    with brigade.io.open(None, tmp_path / "f") as f:
        for fill in (
            lambda: f.read_array("a", out=[0.0] * 3),
            lambda: f.read_into(0, [0] * 8),
            lambda: f.read_pieces([(0, 8)], [0]),
        ):
            with pytest.raises(TypeError, match="list has no memory"):
                fill()
        with pytest.raises(TypeError, match="index|integer"):
            f.read(0, numpy.zeros(3))  # type: ignore[arg-type]

        class Wrapped:  # as a tensor is: no buffer, but NumPy sees its memory
            memory = numpy.zeros(3)

            def __array__(self, *_: Any, **__: Any) -> Any:
                return self.memory

        assert f.read_array("a", out=Wrapped()).memory.tolist() == [0, 1, 2]
        assert f.read_array("none", out=numpy.zeros(0)).size == 0


def test_arrays_of_ctypes_are_written_and_filled(tmp_path: Path) -> None:
    table = ((ctypes.c_int * 3) * 2)((1, 2, 3), (4, 5, 6))
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        f.write_array("table", table)
        f.write_array("one", ctypes.c_double(1.5))
        f.attrs["row"] = table[1]
    back = (ctypes.c_int * 3)()
    with brigade.io.open(None, tmp_path / "f") as f:
        assert f.read_array("table").tolist() == [[1, 2, 3], [4, 5, 6]]
        assert f.read_array("one") == 1.5 and f.attrs["row"].tolist() == [4, 5, 6]
        f.read_into(f["table"].offset, back)
    assert list(back) == [1, 2, 3]


@pytest.mark.parametrize(
    "data, name",
    [
        (numpy.zeros(2, "f2"), "float16"),
        (numpy.zeros(2, "M8[s]"), r"datetime64\[s\]"),
        (numpy.datetime64("2020-01-01"), r"datetime64\[D\]"),
        (numpy.zeros(2, [("x", "f8"), ("n", "i4")]), "'x'"),
        (["a", "b"], "str|<U1"),
    ],
)
def test_elements_that_have_no_equal_are_called_as_numpy_calls_them(
    tmp_path: Path, data: Any, name: str
) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        with pytest.raises(TypeError, match=name):
            f.write_array("a", data)
        with pytest.raises(TypeError, match=name):
            f.attrs["a"] = data


class Variable:
    """As one of netCDF4 is: no buffer, and NumPy is given what it holds with its mask."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        return numpy.ma.masked_greater([1.0, 2.0, 3.0], 2)


MASKED = {
    "some": numpy.ma.masked_greater([1.0, 2.0, 3.0], 2),
    "none of it": numpy.ma.array([1.0, 2.0]),
    "a scalar": numpy.ma.masked,
    "beneath another object": Variable(),
}


@pytest.mark.parametrize("data", MASKED.values(), ids=list(MASKED))
def test_a_masked_array_is_not_written_without_its_mask(tmp_path: Path, data: Any) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        for write in (
            lambda: f.write_array("a", data),
            lambda: f.write(0, data),
            lambda: f.write_pieces([(0, 8 * numpy.size(data))], data),
            lambda: f.attrs.__setitem__("a", data),
        ):
            with pytest.raises(TypeError, match=r"lose its mask: give its filled\(\.\.\.\), or"):
                write()
        f.write_array("kept", numpy.ones(2))
    with brigade.io.open(None, tmp_path / "f") as f:
        assert list(f.arrays) == ["kept"] and not f.attrs


def test_what_the_error_of_a_masked_array_says_keeps_all_of_it(tmp_path: Path) -> None:
    whole = numpy.ma.masked_greater([1.0, 2.0, 3.0], 2)
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        f.write_array("filled", whole.filled(-1))
        f.write_array("data", whole.data)
        f.write_array("mask", numpy.ma.getmaskarray(whole))
    with brigade.io.open(None, tmp_path / "f") as f:
        assert f.read_array("filled").tolist() == [1, 2, -1]
        back = numpy.ma.array(f.read_array("data"), mask=f.read_array("mask"))
        assert back.tolist() == whole.tolist() == [1, 2, None]
        for fill in (
            lambda: f.read_array("data", out=whole),
            lambda: f.read_into(f["data"].offset, whole),
        ):
            with pytest.raises(TypeError, match="beneath its mask: give its data"):
                fill()
        f.read_array("filled", out=whole.data)
        assert whole.data.tolist() == [1, 2, -1]


def test_another_packages_masked_arrays_are_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Masked(numpy.ndarray):
        pass

    package = SimpleNamespace(Masked=Masked)
    monkeypatch.setitem(sys.modules, "astropy.utils.masked", package)  # type: ignore[arg-type]
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        with pytest.raises(TypeError, match="lose its mask"):
            f.write_array("a", numpy.ones(2).view(Masked))
        f.write_array("a", numpy.ones(2))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_other_kinds_of_numpy_arrays_are_written_as_they_are(tmp_path: Path) -> None:
    mapped = numpy.memmap(tmp_path / "mapped", "i4", "w+", shape=(2, 3))
    mapped[:] = numpy.arange(6).reshape(2, 3)
    record = numpy.rec.fromarrays([[1, 2], [True, False]], names="value,mask")

    class Own(numpy.ndarray):
        mask = True

    kinds = {
        "matrix": numpy.matrix([[1.0, 2.0], [3.0, 4.0]]),
        "transposed": numpy.matrix([[1.0, 2.0], [3.0, 4.0]]).T,
        "swapped": numpy.matrix([[1, 2]], dtype=">i4"),
        "memmap": mapped,
        "own": numpy.arange(4.0).view(Own),
    }
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        for name, kind in kinds.items():
            f.write_array(name, kind)
    with brigade.io.open(None, tmp_path / "f") as f:
        for name, kind in kinds.items():
            assert f.read_array(name).tolist() == kind.tolist(), name
    with brigade.io.open(None, tmp_path / "g", "w") as f:
        f.write(0, record)
        f.write(record.nbytes, mapped)
    assert (tmp_path / "g").read_bytes() == record.tobytes() + mapped.tobytes()


FORK = """\
import os, sys, brigade.io
with brigade.io.open(None, sys.argv[1], "w") as f:
    f.write(0, b"before ")
    child = os.fork()
    if child == 0:
        {child}
    assert os.waitpid(child, 0)[1] == 0
    f.write(7, b"after")
"""


@pytest.mark.parametrize(
    "child",
    [
        "sys.exit(0)",
        "f.close(); sys.exit(0)",
        "f.__exit__(None, None, None); sys.exit(0)",
        "\n        try: f.write(0, b'the child')"
        "\n        except ValueError: sys.exit(0)"
        "\n        sys.exit(3)",
    ],
)
def test_a_child_that_is_forked_leaves_the_file_to_its_parent(tmp_path: Path, child: str) -> None:
    path = tmp_path / "f"
    program = FORK.format(child=child)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, path],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert path.read_bytes() == b"before after"


OBJECTS = [
    numpy.array(["one", None], dtype=object),
    numpy.zeros(2, [("n", "i4"), ("of", "O")]),
    (ctypes.py_object * 2)(1, 2),
]


@pytest.mark.parametrize("data", ["hello", "", {"a": 1}, [1, 2], 1.5, object(), *OBJECTS])
def test_bytes_are_written_of_what_has_bytes_only(tmp_path: Path, data: Any) -> None:
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        with pytest.raises(TypeError, match=r"has no bytes|Python objects"):
            f.write(0, data)
        with pytest.raises(TypeError, match=r"has no bytes|Python objects"):
            f.write_pieces([(0, 8), (8, 8)], data)
        f.write(0, numpy.zeros(2, [("Of", "i4"), ("O", "f4")]))  # a field's name is no type
    assert (tmp_path / "f").read_bytes() == bytes(16)


@pytest.mark.parametrize("out", OBJECTS)
def test_objects_are_not_filled_with_bytes(tmp_path: Path, out: Any) -> None:
    size = memoryview(out).nbytes
    with brigade.io.open(None, tmp_path / "f", "w") as f:
        f.write(0, bytes(size))
    with brigade.io.open(None, tmp_path / "f") as f:
        with pytest.raises(TypeError, match="Python objects"):
            f.read_into(0, out)
        with pytest.raises(TypeError, match="Python objects"):
            f.read_pieces([(0, size)], out)
