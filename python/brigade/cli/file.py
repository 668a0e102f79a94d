"""`brigade file`: shared files and checkpoints."""

from __future__ import annotations

import click

from brigade.cli import LazyGroup

# each has a module of its own, loaded when it is called: name -> one line of help
_COMMANDS = {
    "info": "What a file is made of.",
    "verify": "Whether every byte is as it was written.",
    "join": "One plain file of a file of parts.",
    "split": "A file of parts of a plain one.",
    "export": "Named arrays to HDF5 or Zarr.",
    "import": "HDF5 or Zarr to named arrays.",
    "clean": "Remove what jobs that died have left.",
}


@click.group(
    cls=LazyGroup,
    lazy=_COMMANDS,
    prefix="brigade.cli.file_",
    epilog="""\b
Examples:
  brigade file info ckpt.0042
  brigade file verify ckpt.0042
  brigade file join ckpt.0042 ckpt.plain
  brigade file export ckpt.0042 ckpt.0042.h5
  brigade file import start.h5 start""",
)
def command() -> None:
    """Look into, check and convert files that programs write with brigade/io.h or brigade.io.

    Such a file is plain bytes, with its checksums beside it in FILE.sums; or (layout=parts) an
    index of parts, which lie in a hidden folder beside it.
    """
