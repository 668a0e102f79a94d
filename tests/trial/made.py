"""Records written by hand, and a small world to record: what the tests of this folder share."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from brigade.image.assemble import Assembled, assemble
from brigade.trial.mounts import MountTable
from brigade.trial.record import load

INTERPRETER = (
    '{"executable": "%s/bin/python", "cache_tag": "cpython-311", "magic": "a70d0d0a",'
    ' "optimization": "", "extension_suffixes": [".so"], "check_hash_pycs": "default", "path": [],'
    ' "prefix": "%s", "base_prefix": "/usr", "version": "3.11.2"}'
)
NOTHING_MOUNTED = MountTable([])


def record(
    kind: str,
    path: str | os.PathLike[str] = "",
    *,
    status: int = 0,
    by: str = "",
    extra: str = "",
    time_ns: int = 0,
    pid: int = 100,
) -> bytes:
    """One record as a recorder writes it."""
    fields = (kind, str(status), by, os.fspath(path), extra, str(time_ns), str(pid))
    return b"".join(os.fsencode(text) + b"\0" for text in fields)


def missing(kind: str, path: str | os.PathLike[str]) -> bytes:
    return record(kind, path, status=2)


def process(
    folder: Path,
    records: Iterable[bytes],
    *,
    rank: int | None = 0,
    pid: int = 100,
    parent: int = 1,
    exe: str = "",
    cwd: str | os.PathLike[str] = "/",
    argv: Iterable[str] = ("program",),
    env: dict[str, str] | None = None,
    host: str = "n0",
    tail: bytes = b"",
) -> Path:
    """Write the record file of one process, a Python if its interpreter is among the records;
    `tail` is appended as it is."""
    folder.mkdir(exist_ok=True)
    records = list(records)
    is_python = any(one.startswith(b"interpreter\0") for one in records)
    exe = exe or f"/usr/bin/{'python3' if is_python else 'program'}"
    words = list(argv)
    parts = [
        record("process", exe, status=pid, by=str(parent), extra="" if rank is None else str(rank)),
        record("argv", cwd, status=len(words), extra="\x1f".join(words)),
        *(record("env", name, extra=value) for name, value in (env or {}).items()),
        *records,
        record("end"),
    ]
    path = folder / f"{host}.{pid}.{1000 + pid}.rec"
    path.write_bytes(b"".join(parts) + tail)
    return path


class World:
    """A program on a shared disk: an environment with a package, and a script beside it.

    env/bin/python, env/lib/python3.11/site-packages/{pkg,pkg-1.0.dist-info}, app/app.py
    """

    def __init__(self, base: Path) -> None:
        self.base = Path(os.path.realpath(base))
        self.root = self.base / "shared"
        self.records = self.base / "records"
        self.env = self.root / "env"
        self.site = self.env / "lib/python3.11/site-packages"
        self.pkg = self.site / "pkg"
        self.app = self.root / "app"
        for folder in (self.env / "bin", self.pkg / "deep", self.site / "pkg-1.0.dist-info"):
            folder.mkdir(parents=True)
        self.app.mkdir()
        self.write(self.env / "pyvenv.cfg", "home = /usr/bin\n")
        self.write(self.env / "bin/python", "#!/bin/sh\n")
        for name in ("__init__.py", "core.py", "unused.py"):
            self.write(self.pkg / name, f"# {name}\n")
        for name in ("__init__.py", "a.py", "b.py", "c.py"):
            self.write(self.pkg / "deep" / name, f"# deep {name}\n")
        self.write(self.site / "pkg-1.0.dist-info/METADATA", "Name: pkg\n")
        self.write(self.app / "app.py", "import pkg, helper\n")
        self.write(self.app / "helper.py", "x = 1\n")

    @staticmethod
    def write(path: Path, text: str) -> None:
        path.write_text(text)
        os.utime(path, ns=(10**18, 10**18))

    def start_up(self) -> list[bytes]:
        """What a start of app.py looks up."""
        found = [self.pkg / "__init__.py", self.pkg / "core.py", self.app / "app.py"]
        found += [self.app / "helper.py", self.pkg / "deep/__init__.py", self.pkg / "deep/a.py"]
        found += [self.pkg / "deep/b.py", self.pkg / "deep/c.py"]
        out = [
            record("interpreter", extra=INTERPRETER % (self.env, self.env)),
            record("stat", self.env / "pyvenv.cfg"),
            missing("stat", self.site / "helper.py"),
            missing("stat", self.app / "settings.ini"),
            record("list", self.site, extra="200000"),
            record("list", self.pkg, extra="200000"),
        ]
        for path in found:
            out += [record("stat", path), record("open", path, extra="2000000")]
        return out

    def trial(self, more: Iterable[bytes] = (), **about: object) -> None:
        process(
            self.records,
            [*self.start_up(), *more],
            cwd=self.app,
            argv=[f"{self.env}/bin/python", "app.py"],
            **about,  # type: ignore[arg-type]
        )

    def assemble(self, **options: object) -> Assembled:
        options.setdefault("cover", [self.root])
        return assemble(load(self.records), table=NOTHING_MOUNTED, **options)  # type: ignore[arg-type]
