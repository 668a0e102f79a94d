"""include/brigade/error.h for Python: what a failed call of a native library says."""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_int, c_int64


class NativeError(ctypes.Structure):
    _fields_ = [
        ("code", c_int),
        ("text", c_char * 1024),
        ("rank", c_int),
        ("offset", c_int64),
        ("path", c_char * 1024),
    ]
