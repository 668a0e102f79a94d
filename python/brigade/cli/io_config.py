"""`brigade io-config`: the words that build a program with libbrigade_io or one of its kin."""

from __future__ import annotations

import click

from brigade.errors import UsageError


@click.command(
    epilog="""\b
Examples:
  brigade io-config --cflags --libs        the words for a compiler, as in:
  cc app.c $(brigade io-config --cflags --libs)
  mpicc -o app app.c $(brigade io-config --cflags --libs)
  mpifort -o app $(brigade io-config --fortran) app.f90 $(brigade io-config --libs)
  cmake -S . -B build -Dbrigade_DIR=$(brigade io-config --cmake)
  mpicc -o app app.c $(brigade io-config --pmpi --cflags --libs)
  oshcc -o app app.c $(brigade io-config --shmem --cflags --libs)
  mpicc -o app app.c $(brigade io-config --mpiio --libs)
  mpirun -x LD_PRELOAD=$(brigade io-config --pmpi) python app.py
  export PKG_CONFIG_PATH=$(brigade io-config --pkgconfig); pkg-config --libs brigade-io
"""
)
@click.option("--pmpi", is_flag=True, help="What takes the time of collective calls: before MPI.")
@click.option("--shmem", is_flag=True, help="With --libs: libbrigade_shmemio, for OpenSHMEM.")
@click.option("--mpiio", is_flag=True, help="With --libs: libbrigade_mpiio, for MPI-IO programs.")
@click.option("--cflags", is_flag=True, help="Where brigade/io.h is, for the C or C++ compiler.")
@click.option("--libs", is_flag=True, help="The library, for the linker.")
@click.option("--fortran", is_flag=True, help="The source of the Fortran module brigade_io.")
@click.option("--adios2", is_flag=True, help="The source of the engine for ADIOS2.")
@click.option("--cmake", is_flag=True, help="The folder of the CMake package, for brigade_DIR.")
@click.option("--pkgconfig", is_flag=True, help="The folder of brigade-io.pc and others.")
def command(
    pmpi: bool,
    shmem: bool,
    mpiio: bool,
    cflags: bool,
    libs: bool,
    fortran: bool,
    adios2: bool,
    cmake: bool,
    pkgconfig: bool,
) -> None:
    """Print what builds a program with libbrigade_io, with libbrigade_shmemio for programs of
    OpenSHMEM, or with libbrigade_mpiio for those of MPI-IO, on one line, in the order below.

    The library belongs to this installation: a program that is built with it finds it there by
    itself when it runs.
    """
    from brigade.paths import native_dir

    folder = native_dir().absolute()
    include = folder / "include"
    if shmem and mpiio:
        raise UsageError("--shmem and --mpiio name two libraries", hint="ask for one at a time")
    library = "-lbrigade_shmemio" if shmem else "-lbrigade_io"
    if mpiio:  # a program in Fortran uses no name of it itself: its MPI does
        library = "-Wl,--push-state,--no-as-needed -lbrigade_mpiio -Wl,--pop-state"
    said = [
        (pmpi, str(folder / "libbrigade_pmpi.so")),
        (cflags, f"-I{include}"),
        (libs, f"-L{folder} -Wl,-rpath,{folder} {library}"),
        (fortran, str(include / "brigade" / "brigade_io.F90")),
        (adios2, str(include / "brigade" / "brigade_adios2.cpp")),
        (cmake, str(folder / "cmake" / "brigade")),
        (pkgconfig, str(folder / "pkgconfig")),
    ]
    if not any(wanted for wanted, _ in said):
        raise UsageError("nothing is asked for", hint="try: brigade io-config --cflags --libs")
    click.echo(" ".join(words for wanted, words in said if wanted))
