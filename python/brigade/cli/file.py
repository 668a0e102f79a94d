"""`brigade file`: shared files and checkpoints."""

from __future__ import annotations

import importlib

import click

# each has a module of its own, loaded when it is called: name -> one line of help
_COMMANDS = {
    "export": "Named arrays to HDF5 or Zarr.",
    "import": "HDF5 or Zarr to named arrays.",
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
  brigade file export ckpt.0042 ckpt.0042.h5
  brigade file import start.h5 start""",
)
def command() -> None:
    """Look into, check and convert files that programs write with brigade/io.h or brigade.io."""
