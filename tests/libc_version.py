"""What an older C library cannot do, as a reason to skip a test."""

from __future__ import annotations

import os

import pytest

try:
    GLIBC = tuple(map(int, (os.confstr("CS_GNU_LIBC_VERSION") or "").split()[1].split(".")))
except (ValueError, IndexError):  # another C library
    GLIBC = (0, 0)

#: libpthread is a library of its own, and its constructors run before all others.
stops_before_constructors = pytest.mark.skipif(
    GLIBC < (2, 34), reason="before glibc 2.34 nobody stops before libpthread's constructors"
)
#: Its own defects, whoever the auditor is.
sound_under_auditors = pytest.mark.skipif(
    GLIBC < (2, 35), reason="before glibc 2.35 auditors end dlmopen, and slow calls down"
)
