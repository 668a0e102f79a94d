"""Programs that ld.so ends."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from failing import Case, Made
from world_of_c import library, patch, program

RUNPATH, RPATH = "-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"


def in_a_folder_that_is_not_searched(base: Path) -> Made:
    lib = library(base / "hdf5/lib/libhdf5x.so.103")
    runpath = f"-Wl,-rpath,{base}/app/lib"
    app = program(base / "app/bin/solver", RUNPATH, runpath, needs=[lib])
    return Made([str(app)], {"LD_LIBRARY_PATH": f"{base}/gone", "HDF5X_ROOT": f"{base}/hdf5"})


def only_another_version(base: Path) -> Made:
    lib = library(base / "app/lib/libhdf5x.so.103")
    app = program(base / "app/bin/solver", RPATH, "-Wl,-rpath,$ORIGIN/../lib", needs=[lib])
    lib.unlink()
    library(base / "app/lib/libhdf5x.so.200")
    return Made([str(app)])


def of_a_library(base: Path) -> Made:
    inner = library(base / "x/libinner.so.1")
    outer = library(base / "app/libouter.so", needs=[inner])
    app = program(base / "app/solver", RUNPATH, "-Wl,-rpath,$ORIGIN", needs=[outer])
    inner.unlink()
    return Made([str(app)])


def of_a_known_package(base: Path) -> Made:
    lib = library(base / "x/libifcore.so.5")
    app = program(base / "solver", needs=[lib])
    lib.unlink()
    return Made([str(app)])


def with_a_module_on_offer(base: Path) -> Made:
    lib = library(base / "x/libfftw9.so.3")
    app = program(base / "solver", needs=[lib])
    lib.unlink()
    (base / "modules/fftw").mkdir(parents=True)
    return Made([str(app)], {"MODULEPATH": f"/nowhere:{base}/modules"})


def for_another_machine(base: Path) -> Made:
    lib = library(base / "lib/libone.so.1")
    app = program(base / "solver", needs=[lib])
    patch(lib, 18, (183 if os.uname().machine != "aarch64" else 62).to_bytes(2, "little"))
    return Made([str(app)], {"LD_LIBRARY_PATH": f"{base}/lib"})


def a_text_in_its_place(base: Path) -> Made:
    lib = library(base / "lib/libone.so.1")
    app = program(base / "solver", needs=[lib])
    lib.write_text("version https://git-lfs.github.com/spec/v1\n" * 20)
    return Made([str(app)], {"LD_LIBRARY_PATH": f"{base}/lib"})


def newer_libc(base: Path) -> Made:
    """A program that wants a version that this libc does not have: its name is changed in it, and
    the hash of it, as a newer libc would have it."""
    source = '#include <stdio.h>\nint main(void) { return puts("") < 0; }'
    app = program(base / "solver", source=source)
    _other_version(app, b"GLIBC_2.34", b"GLIBC_2.99")
    return Made([str(app)])


def _other_version(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old + b"\0" in data
    data = data.replace(old + b"\0", new + b"\0").replace(_hash(old), _hash(new))
    path.write_bytes(data)


def _hash(name: bytes) -> bytes:
    """The ELF hash of a name, as it stands in a file."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value.to_bytes(4, "little")


def _versioned(path: Path, version: str, name: str) -> Path:
    script = path.parent / f"{version}.map"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(f"{version} {{ global: {name}; }};")
    flag = f"-Wl,--version-script,{script}"
    return library(path, flag, source=f"int {name}(void) {{ return 0; }}")


def version_of_a_library(base: Path) -> Made:
    new = _versioned(base / "new/lib/libone.so.1", "ONE_2.0", "one")
    _versioned(base / "old/lib/libone.so.1", "ONE_1.0", "one")
    source = "int one(void); int main(void) { return one(); }"
    app = program(base / "new/bin/solver", source=source, needs=[new])
    env = {"LD_LIBRARY_PATH": f"{base}/old/lib", "ONE_ROOT": f"{base}/new"}
    return Made([str(app)], env)


def symbol_of_a_library(base: Path) -> Made:
    one = "int one_count(void) { return 0; }"
    lib = library(base / "lib/libone.so", source=one.replace("count", "size"))
    source = "int one_size(void); int main(void) { return one_size(); }"
    app = program(base / "solver", "-Wl,-z,now", source=source, needs=[lib])
    library(base / "lib/libone.so", source=one)
    return Made([str(app)], {"LD_LIBRARY_PATH": f"{base}/lib"})


def for_a_newer_processor(base: Path) -> Made:
    """Marked as for a level above all that there are today."""
    app = program(base / "solver", "-Wl,-z,x86-64-v4")
    data = app.read_bytes()
    at = data.index(b"\x02\x80\x00\xc0\x04\x00\x00\x00")
    return Made([str(patch(app, at + 8, (0x1F).to_bytes(4, "little")))])


def not_x86() -> str:
    return "" if os.uname().machine == "x86_64" else "needs x86-64"


def behind_a_script(base: Path) -> Made:
    """The command line's program is a script; what it starts has no library."""
    app = Path(of_a_library(base).argv[0])
    script = base / "run.sh"
    script.write_text(f"#!/bin/sh\n{app}\necho status $?\nexit 3\n")
    script.chmod(0o755)
    return Made([str(script)])


def in_an_interpreter_of_a_script(base: Path) -> Made:
    lib = library(base / "x/libpython9.9.so.1.0")
    app = program(base / "bin/python9.9", needs=[lib])
    lib.unlink()
    library(base / "lib/libpython9.9.so.1.0")
    script = base / "app"
    script.write_text(f"#!{app}\n")
    script.chmod(0o755)
    return Made([str(script)])


assert shutil.which("cc")

CASES = [
    Case("missing-library", "a library in a folder that is not searched",
         in_a_folder_that_is_not_searched,
         ["libhdf5x.so.103 is needed by {base}/app/bin/solver, and was not found",
          "searched: {base}/gone (LD_LIBRARY_PATH, is not there)",
          "{base}/app/lib (RUNPATH of solver)", "/etc/ld.so.cache", "(default)",
          "closest:  {base}/hdf5/lib/libhdf5x.so.103",
          "export LD_LIBRARY_PATH={base}/hdf5/lib:$LD_LIBRARY_PATH"]),
    Case("missing-library", "a library of which only another version is there",
         only_another_version,
         ["{base}/app/bin/../lib (RPATH of solver)", "closest:  {base}/app/lib/libhdf5x.so.200",
          "build solver again with libhdf5x.so.200"]),
    Case("missing-library", "a library that a library needs", of_a_library,
         ["libinner.so.1 is needed by {base}/app/libouter.so (solver -> libouter.so)"]),
    Case("missing-library", "a library of a compiler", of_a_known_package, ["Intel's compilers"]),
    Case("missing-library", "a library of an environment module", with_a_module_on_offer,
         ["module load fftw"]),
    Case("missing-library", "a library for another machine", for_another_machine,
         ["{base}/lib/libone.so.1: for", "closest:  {base}/lib/libone.so.1"]),
    Case("missing-library", "libpython, of an interpreter", in_an_interpreter_of_a_script,
         ["libpython9.9.so.1.0 is needed by {base}/bin/python9.9",
          "export LD_LIBRARY_PATH={base}/lib"]),
    Case("missing-library", "a library, of a program that a script starts", behind_a_script,
         ["libinner.so.1 is needed by"], trial=True),
    Case("no-library", "a text where a library should be", a_text_in_its_place,
         ["{base}/lib/libone.so.1, which {base}/solver needs, is not an ELF file"]),
    Case("missing-version", "a program built for a newer libc", newer_libc,
         ["needs GLIBC_2.99 of libc.so.6", "GLIBC_2.", "is its newest"]),
    Case("missing-version", "an older library found first", version_of_a_library,
         ["needs ONE_2.0 of libone.so.1; {base}/old/lib/libone.so.1 does not have it",
          "export LD_LIBRARY_PATH={base}/new/lib:$LD_LIBRARY_PATH"]),
    Case("undefined-symbol", "a symbol that the library found does not have",
         symbol_of_a_library, ["one_size is used by {base}/solver", "libone.so"]),
    Case("newer-processor", "a program built for a newer processor", for_a_newer_processor,
         ["was built for processors of x86-64-v5"], needs=not_x86),
]  # fmt: skip
