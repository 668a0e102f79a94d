"""Profiles made by hand: a NumPy start-up as it is, and one with nothing to say about it."""

from __future__ import annotations

import copy
from typing import Any

from brigade.profile.profile import (
    Cell,
    Identical,
    MountUse,
    Node,
    Overhead,
    Profile,
    RankTimes,
    SearchEntry,
    ServerCount,
    Timeline,
)

VENV = "/mnt/site/venv"
SITE = f"{VENV}/lib/python3.11/site-packages"
APP = "/mnt/site/app"

# phase, mount, kind, failed, by path, before main -> calls a rank, microseconds each, bytes each
_NUMPY = """
launch   /          exec  no  yes no     2   400      0
ld.so    /          open  no  yes yes    7    20      0
ld.so    /          map   no  no  yes   31     8  65536
ld.so    /mnt/site  open  yes yes yes  131   180      0
ld.so    /mnt/site  open  no  yes yes   12   240      0
ld.so    /mnt/site  stat  yes yes yes   94   150      0
ld.so    /mnt/site  stat  no  no  yes   12     5      0
ld.so    /mnt/site  read  no  no  yes   12   310    832
ld.so    /mnt/site  map   no  no  yes   49    12 262144
interpreter / open  no  yes no 22 15 0
interpreter / stat  yes yes no 18 9 0
interpreter /proc   open  no  yes no 4 11 0
interpreter /mnt/site stat yes yes no 203 160 0
interpreter /mnt/site stat no  yes no 88 170 0
interpreter /mnt/site link yes yes no 17 140 0
interpreter /mnt/site open no  yes no 31 260 0
interpreter /mnt/site read no  no  no 74 220 8192
imports  /mnt/site  stat  no  yes no 912 165 0
imports  /mnt/site  stat  yes yes no 1804 158 0
imports  /mnt/site  open  no  yes no 418 250 0
imports  /mnt/site  open  yes yes no 96 160 0
imports  /mnt/site  read  no  no  no 831 260 24576
imports  /mnt/site  list  no  no  no 122 420 0
imports  /mnt/site  stat  no  no  no 640 4 0
imports  /mnt/site  map   no  no  no 88 10 131072
mpi      /          open  no  yes no 61 14 0
mpi      /          list  no  no  no 9 22 0
mpi      /dev/shm   open  no  yes no 5 12 0
mpi      /mnt/site  open  yes yes no 24 170 0
user     /mnt/site  open  no  yes no 3 300 0
user     /mnt/site  read  no  no  no 40 900 1048576
user     /mnt/site  write no  no  no 2 700 4096
"""


def cells(table: str, ranks: int) -> list[Cell]:
    found = []
    for rank in range(ranks):
        for line in table.split("\n"):
            if line.strip():
                phase, mount, kind, failed, by_path, main, calls, micro, size = line.split()
                number = int(calls)
                found.append(
                    Cell(
                        *(rank, phase, mount, kind, failed == "yes", by_path == "yes"),
                        *(main == "yes", number, number * int(micro) / 1e6, number * int(size)),
                    )
                )
    return found


def quiet(width: int = 2, **changes: Any) -> Profile:
    """A start-up that asks the shared file system next to nothing."""
    profile = Profile(
        brigade="0.1.0",
        made="2026-11-22T01:02:03+00:00",
        command=["srun", "-n", str(width), "./solver"],
        program=["./solver"],
        launcher="srun",
        mechanism="seccomp",
        seen=["every system call that names a file, or uses a descriptor of one"],
        lost=[],
        overhead=Overhead(stops=90 * width, stopped_s=0.004),
        ranks=[
            RankTimes(r, f"n{r % 4}", 1, "/mnt/site/solver", 0.01, 0.02, 0.05, None, 1.0, 0)
            for r in range(width)
        ],
        mounts=[
            MountUse("/", "ext4", "/dev/vda1", "local"),
            MountUse("/mnt/site", "fuse.mfs", "mfsmaster:9421", "shared"),
            MountUse("/dev/shm", "tmpfs", "tmpfs", "memory"),
            MountUse("/proc", "proc", "proc", "kernel"),
        ],
        cells=cells(
            "ld.so /mnt/site open no yes yes 3 200 0\nld.so / open no yes yes 4 9 0", width
        ),
    )
    for name, value in changes.items():
        assert hasattr(profile, name)
        setattr(profile, name, value)
    return profile


def entry(cause: str, place: str, wasted: int, found: int = 0, **more: Any) -> SearchEntry:
    values: dict[str, Any] = {
        "hwcaps": False,
        "owner": {"sys.path": "pyvenv.cfg", "ld.so.cache": "ld.so"}.get(cause, cause),
        "mount": "/mnt/site" if place.startswith("/mnt/site") else "/",
        "calls": wasted + found,
        "seconds_wasted": wasted * 160e-6,
        "names": {f"lib{i}.so": 1 for i in range(min(wasted, 9))},
    }
    return SearchEntry(cause=cause, place=place, wasted=wasted, found=found, **{**values, **more})


def node(kind: str, name: str, loader: int = -1, **more: Any) -> Node:
    asked = {"library": "DT_NEEDED", "process": "exec", "program": "exec"}.get(kind, "import")
    values: dict[str, Any] = {
        "path": f"{SITE}/{name}",
        "asked": asked,
        "certain": kind in ("program", "library", "process"),
        "calls": 4,
        "wasted": 0,
        "seconds": 0.0006,
    }
    return Node(kind=kind, name=name, loader=loader, **{**values, **more})


def _searches() -> list[SearchEntry]:
    libraries = ["libopenblas64_p.so.0", "libgfortran.so.5", "libquadmath.so.0", "libmpi.so.40"]
    modules = ["numpy", "scipy", "pandas", "mpi4py", "dateutil", "pytz", "six", "yaml", "json"]
    found = [
        entry("LD_LIBRARY_PATH", f"/mnt/site/{name}/lib", 19, names=dict.fromkeys(libraries, 4))
        for name in ("gcc-12", "fftw", "hdf5", "openblas")
    ]
    found.append(entry("LD_LIBRARY_PATH", "/mnt/site/mpi/lib", 8, 5, names={"libz.so.1": 8}))
    found.append(
        entry(
            *("RUNPATH", f"{SITE}/numpy.libs", 60, 3),
            owner=f"{SITE}/numpy/core/_multiarray_umath.so",
            hwcaps=True,
            names=dict.fromkeys(libraries, 15),
        )
    )
    for i, (place, owner, wasted) in enumerate(
        [
            (APP, "script", 231),
            ("/mnt/site/tools/python", "PYTHONPATH", 229),
            ("/mnt/site/old/lib/python3.11/site-packages", "PYTHONPATH", 229),
            (f"{VENV}/lib/python311.zip", "pyvenv.cfg", 12),
            (f"{VENV}/lib/python3.11", "pyvenv.cfg", 180),
            (f"{VENV}/lib/python3.11/lib-dynload", "pyvenv.cfg", 164),
            (SITE, "pyvenv.cfg", 22),
        ]
    ):
        names = {name: wasted // (4 + i + 2 * j) for j, name in enumerate(modules)}
        found.append(entry("sys.path", place, wasted, 9 if i > 3 else 0, owner=owner, names=names))
    found.append(entry("package path", f"{SITE}/numpy", 408, 96, owner="numpy"))
    found.append(entry("package path", f"{SITE}/scipy", 305, 80, owner="scipy"))
    found.append(entry("locale", "/mnt/site/locale", 17, owner="glibc"))
    found.append(entry("PATH", "/mnt/site/bin", 4, 1, owner="PATH", names={"python": 4}))
    found.append(entry("other", "/mnt/site", 200, owner="", names={"pyvenv.cfg": 2}))
    return found


def _tree() -> list[Node]:
    tree = [
        node("program", "python3.11", path=f"{VENV}/bin/python", calls=90, wasted=31, seconds=0.02),
        node("library", "libpython3.11.so.1.0", 0, calls=28, wasted=19, seconds=0.006),
        node("library", "libc.so.6", 0, path="/lib/x86_64-linux-gnu/libc.so.6", calls=5),
        node("module", "site", 0, calls=54, wasted=12, seconds=0.01, import_us=2100),
        node("module", "numpy", 0, calls=210, wasted=102, seconds=0.09, import_us=91000),
        node("module", "numpy.core", 4, calls=93, wasted=30, seconds=0.03, import_us=20400),
        node("extension", "numpy.core._multiarray_umath", 5, calls=140, wasted=88, seconds=0.04),
        node("library", "libopenblas64_p.so.0", 6, calls=44, wasted=38, seconds=0.012),
        node("library", "libgfortran.so.5", 7, calls=41, wasted=37, seconds=0.008),
        node("process", "ldconfig", 3, path="/sbin/ldconfig.real", calls=30, seconds=0.004),
        node("module", "mpi4py.MPI", 0, calls=77, wasted=41, seconds=0.02, asked="import"),
    ]
    tree += [
        node("module", f"scipy.part{i}", 0, calls=20 + i % 9, wasted=9, seconds=0.002)
        for i in range(60)
    ]
    return tree


def _timelines() -> list[Timeline]:
    opens = [0, 14, 160, 240, 310, 420, 380, 410, 390, 280, 120, 60, 22, 8, 3, 0, 0, 1, 0, 0]
    stats = [0, 40, 330, 810, 990, 1404, 1310, 1290, 1500, 900, 610, 220, 60, 18, 6, 0, 0, 0, 2, 0]
    kinds = {"open": opens, "stat": stats, "list": [n // 9 for n in opens]}
    server = {"lookup": [n * 2 for n in stats], "open": opens, "readdir": [n // 9 for n in opens]}
    return [Timeline("calls", 0.1, kinds), Timeline("moosefs", 0.1, server)]


def numpy(ranks: int = 4, after: bool = True) -> Profile:
    """A NumPy, SciPy and MPI start-up from a shared file system, with all that is usual."""
    profile = quiet(
        ranks,
        command=["srun", "-N", "2", "-n", str(ranks), f"{VENV}/bin/python", "app.py"],
        program=[f"{VENV}/bin/python", "app.py"],
        lost=["nothing that is known of"],
        overhead=Overhead(stops=6120 * ranks, stopped_s=0.31, traced_s=2.9, plain_s=2.2),
        ranks=[
            RankTimes(
                *(r, f"n{r % 2}", 2, f"{VENV}/bin/python", 0.05 + 0.01 * r, 0.12 + 0.01 * r),
                *(1.9 + 0.04 * r, (1.5, 1.72), 2.6, 0),
            )
            for r in range(ranks)
        ],
        cells=cells(_NUMPY, ranks)
        + [Cell(-1, "launch", "/", "open", False, True, False, 41, 0, 0)],
        searches=_searches(),
        tree=_tree(),
        identical=Identical(
            calls=3829 * ranks,
            alike=3790 * ranks,
            paths=2411,
            only_some={"/mnt/site/app/out.0": 1, "/mnt/site/app/seed.3": 1},
        ),
        server=[
            ServerCount(
                *("moosefs", "/mnt/site", "cold", 2950 * ranks, 61_500_000 * ranks),
                {"lookup": 2600 * ranks, "open": 300 * ranks, "readdir": 50 * ranks},
            ),
            ServerCount("moosefs", "/mnt/site", "warm", 2410 * ranks, 0, {"lookup": 2410 * ranks}),
        ],
        timelines=_timelines(),
        files={
            **{f"{SITE}/numpy/m{i}.py": 9000 + i for i in range(40)},
            **{f"{SITE}/scipy/__pycache__/m{i}.cpython-311.pyc": 14000 + i for i in range(300)},
            f"{SITE}/numpy.libs/libopenblas64_p.so.0": 38_000_000,
        },
    )
    if after:
        profile.after = under_brigade(profile, ranks)
    return profile


def under_brigade(profile: Profile, ranks: int) -> Profile:
    """The same job with a few look-ups left on the shared file system."""
    then = copy.deepcopy(profile)
    then.after = None
    then.command = ["brigade", "run", "--", *profile.command]
    then.cells = cells(
        """
        launch / exec no yes no 3 400 0
        ld.so / open no yes yes 16 20 0
        imports /dev/shm open no yes no 420 12 0
        imports /dev/shm stat no yes no 1010 4 0
        imports /mnt/site stat no yes no 9 160 0
        imports /mnt/site open yes yes no 4 160 0
        user /mnt/site open no yes no 3 300 0
        """,
        ranks,
    )
    then.server = [ServerCount("moosefs", "/mnt/site", "cold", 125, 64_487_424, {"lookup": 125})]
    then.timelines = [
        Timeline("calls", 0.1, {"open": [0, 0, 9, 4, 0, 1], "stat": [0, 3, 20, 11, 2, 0]})
    ]
    then.ranks = [
        RankTimes(r.rank, r.host, 2, r.program, 0.4, 0.44, 1.3, (1.0, 1.2), 1.9, 0)
        for r in profile.ranks
    ]
    return then


def hostile() -> Profile:
    """Names that try to break out of the page or the terminal."""
    bad = "/mnt/site/<script>alert(1)</script>\"'&\udcff\x1b[31m/lib"
    profile = numpy(2)
    profile.command.append("--title=</pre><img src=x onerror=alert(2)>")
    profile.searches.append(
        entry(
            "RPATH",
            bad,
            900,
            owner=bad,
            names={"<b>x</b>.so": 900, "[red]y": 700, "{{ 7*7 }}": 600},
        )
    )
    profile.tree.append(node("module", "<i>m</i>", 0, path=bad))
    assert profile.identical
    profile.identical.only_some[bad] = 3
    profile.files[bad + "/x.py"] = 1
    profile.ranks[0].host = "<u>n0</u>"
    profile.seen.append("<b>seen</b> [bold]so[/bold]")
    return profile
