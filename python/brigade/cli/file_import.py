"""`brigade file import`: HDF5 or Zarr to named arrays."""

from __future__ import annotations

from pathlib import Path

import click

EPILOG = """\b
Examples:
  brigade file import start.h5 start
  brigade file import --skip mesh.nc mesh       leave out what has no equal, such as text
  brigade file import --force start.zarr start
"""


@click.command("import", epilog=EPILOG)
@click.option("-f", "--force", is_flag=True, help="Replace OUT if it is there.")
@click.option("--skip", is_flag=True, help="Leave out arrays that have no equal.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
def command(file: Path, out: Path, force: bool, skip: bool, quiet: bool) -> None:
    """Write the arrays and attributes of FILE, HDF5 or Zarr, to OUT, a file of named arrays.

    The name of FILE says which it is: .h5, .hdf5, .he5 or .nc, or .zarr. Arrays are copied in
    blocks of a few MiB (or one chunk of FILE); OUT appears when it is complete. An array whose
    elements have no equal (text, records) is an error, or is left out with --skip; attributes of
    that kind, attributes of groups, and links are told on standard error. Needs the Python package
    h5py or zarr.
    """
    from brigade.cli.file_moving import moving
    from brigade.io.transfer import foreign, take

    with moving("importing", quiet) as (progress, left):
        left += take.take(file, out, foreign.of(file), progress, replace=force, skip=skip)
