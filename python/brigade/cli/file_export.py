"""`brigade file export`: named arrays to HDF5 or Zarr."""

from __future__ import annotations

from pathlib import Path

import click

EPILOG = """\b
Examples:
  brigade file export ckpt.0042 ckpt.0042.h5
  brigade file export ckpt.0042 ckpt.0042.zarr
  brigade file export --force ckpt.0042 latest.h5
"""


@click.command("export", epilog=EPILOG)
@click.option("-f", "--force", is_flag=True, help="Replace OUT if it is there.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
def command(file: Path, out: Path, force: bool, quiet: bool) -> None:
    """Write the arrays and attributes of FILE to OUT, an HDF5 or Zarr file.

    The name of OUT says which: .h5, .hdf5, .he5 or .nc, or .zarr. Arrays are copied in blocks of a
    few MiB; OUT appears when it is complete. What it has no words for is told on standard error.
    Needs the Python package h5py or zarr.
    """
    from brigade.cli.file_moving import moving
    from brigade.io.transfer import foreign, leave

    with moving("exporting", quiet) as (progress, left):
        left += leave.export(file, out, foreign.of(out), progress, replace=force)
