"""The table of real programs that are compared on the lab's shared file system.

A row says what is fetched (Debian packages that are unpacked, not installed, or packages from
PyPI), and the command. In `command` and `environment`, {tree} is the folder where it all lies,
{lib} its library folder, {app} the program of apps/, {work} a folder that is empty when the program
starts, {python} the name of the machine's Python, as in python3.11. All that the program prints, on
both streams, and its exit status are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: What a program needs that the paths of its Debian packages do not say, once it lies elsewhere.
PYTHONPATH = "{tree}/usr/lib/python3/dist-packages"
LIBRARIES = "{lib}:{lib}/openblas-pthread:{lib}/blas:{lib}/lapack"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
PROJECT = r"""[project]\nname = "edited"\nversion = "1.0"\nscripts.say-edited = "edited:main"
[build-system]\nrequires = ["setuptools>=64"]\nbuild-backend = "setuptools.build_meta"\n"""


@dataclass(frozen=True)
class Program:
    name: str
    app: str
    command: tuple[str, ...]
    debian: tuple[str, ...] = ()
    pypi: tuple[str, ...] = ()
    prepare: str = ""  # shell, in the tree, when all is there
    environment: dict[str, str] = field(default_factory=dict)
    says: str = ""  # part of what it must print
    status: int = 0
    not_forked: str = ""  # part of why its ranks are not forked; of Python's they always are
    prints_its_path: bool = False  # as the kernel says it is
    launcher: tuple[str, ...] = ()  # by which it is run once more, on both nodes of the lab


TABLE = (
    Program(
        "gpaw",
        "gpaw_h2.py",
        ("/usr/bin/python3", "{app}"),
        debian=("gpaw",),
        environment={
            "LD_LIBRARY_PATH": LIBRARIES,
            "PYTHONPATH": PYTHONPATH,
            "GPAW_SETUP_PATH": "{tree}/usr/share/gpaw-setups",
            **ONE_THREAD,
        },
        says="energy -6.29",
        launcher=("srun", "--mpi=pmix", "-N2", "-n4"),
    ),
    Program(
        "dolfinx",
        "dolfinx_poisson.py",
        ("/usr/bin/python3", "{app}"),
        debian=("python3-dolfinx",),
        prepare="cd usr/lib && ln -s petscdir/*/x86_64-linux-gnu-real petsc",
        environment={
            "LD_LIBRARY_PATH": LIBRARIES,
            "PYTHONPATH": "{tree}/usr/lib/petsc/lib/python3/dist-packages:" + PYTHONPATH,
            "CPATH": "{tree}/usr/include:{tree}/usr/include/{python}",
            "XDG_CACHE_HOME": "{work}/compiled",  # its forms are compiled, then imported from there
            **ONE_THREAD,
        },
        says="norm 4.0434",
    ),
    Program(
        "pytorch",
        "pytorch_fit.py",
        ("/usr/bin/python3", "{app}"),
        debian=("python3-torch",),
        environment={
            "LD_LIBRARY_PATH": LIBRARIES + ":{tree}/usr/lib",
            "PYTHONPATH": PYTHONPATH,
            **ONE_THREAD,
        },
        says="more than a thousand: True",
    ),
    Program(
        "r",
        "r_models.R",
        ("{tree}/usr/lib/R/bin/exec/R", "--no-echo", "--vanilla", "--file={app}"),
        debian=("r-base-core", "r-cran-nlme", "r-cran-matrix", "r-cran-lattice"),
        prepare="cp usr/lib/R/etc/Renviron.ucf etc/R/Renviron",
        environment={
            "LD_LIBRARY_PATH": "{tree}/usr/lib/R/lib:" + LIBRARIES,
            "R_HOME": "{tree}/usr/lib/R",
            "R_SHARE_DIR": "{tree}/usr/share/R/share",
            **ONE_THREAD,
        },
        says="-17.579095",
    ),
    Program(
        "perl",
        "perl_modules.pl",
        ("{tree}/usr/bin/perl", "{app}"),
        debian=("perl", "perl-base", "perl-modules-5.36", "libperl5.36", "libwww-perl"),
        environment={
            "LD_LIBRARY_PATH": LIBRARIES,
            "PERL5LIB": "{tree}/usr/share/perl5:{lib}/perl5/5.36:{lib}/perl/5.36"
            ":{tree}/usr/share/perl/5.36:{lib}/perl-base",
        },
        says="LWP/UserAgent.pm",
        not_forked="libraries only",
        prints_its_path=True,
    ),
    Program(
        "jupyter",
        "jupyter_kernel.py",
        ("{tree}/bin/python", "{app}"),
        pypi=("ipykernel", "jupyter_client"),
        environment={"JUPYTER_RUNTIME_DIR": "{work}", "IPYTHONDIR": "{work}"},
        says="ZeroDivisionError division by zero",
    ),
    Program(
        "editable",
        "edited.py",
        ("{tree}/bin/say-edited", "a word"),
        pypi=("setuptools",),
        prepare="mkdir -p project/edited && mv edited.py project/edited/__init__.py && "
        f"printf '{PROJECT}' > project/pyproject.toml && bin/pip install -q -e project",
        says="edited 1.0",
        status=4,
    ),
    Program(
        "workers",
        "worker_pools.py",
        ("{tree}/bin/python", "{app}"),
        pypi=("scikit-learn", "dask[distributed]", "numba"),
        environment={"NUMBA_CACHE_DIR": "{work}/compiled", **ONE_THREAD},
        says="total 332833500.0",
    ),
    Program(
        "scientific",
        "scientific_stack.py",
        ("{tree}/bin/python", "{app}"),
        pypi=("scipy", "pandas", "matplotlib"),
        environment={"MPLCONFIGDIR": "{work}", **ONE_THREAD},
        says="modules",
    ),
)
