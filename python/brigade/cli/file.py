"""`brigade file`: shared files and checkpoints."""

from __future__ import annotations

import importlib

import click

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


class _Group(click.Group):
    """The commands above, loaded on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        found: click.Command = importlib.import_module(f"brigade.cli.file_{name}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=_Group,
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
