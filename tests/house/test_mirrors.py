"""Structures that Python lays out itself are those of the headers, byte for byte."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from world_of_c import program

from brigade.image import _lib
from brigade.io import _lib as _io
from brigade.native_error import NativeError

INCLUDE = Path(__file__).parents[2] / "include"
MIRRORS = [
    ("error.h", "brg_error", NativeError),
    ("image.h", "brg_image_options", _lib.Options),
    ("image.h", "brg_image_entry", _lib.RawEntry),
    ("image.h", "brg_image_info", _lib.Info),
    ("io.h", "brg_piece", _io.Piece),
    ("io.h", "brg_array", _io.RawArray),
]


@pytest.mark.parametrize(("header", "name", "mirror"), MIRRORS, ids=[one[1] for one in MIRRORS])
def test_a_mirror_has_the_size_and_the_offsets_of_its_struct(
    tmp_path: Path, header: str, name: str, mirror: type[ctypes.Structure]
) -> None:
    fields = [field[0] for field in mirror._fields_]
    said = "".join(f'printf("%zu\\n", offsetof(struct {name}, {field}));' for field in fields)
    source = f"""
    #include <stddef.h>
    #include <stdio.h>
    #include "brigade/{header}"
    int main(void) {{ {said} printf("%zu\\n", sizeof(struct {name})); }}
    """
    path = program(tmp_path / "sizes", f"-I{INCLUDE}", source=source)
    out = subprocess.run([path], capture_output=True, text=True, check=True).stdout
    ours = [getattr(mirror, field).offset for field in fields] + [ctypes.sizeof(mirror)]
    assert ours == [int(number) for number in out.split()]
