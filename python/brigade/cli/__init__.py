"""The command line: one file a subcommand, loaded only when it is called.

`brigade run` starts in milliseconds because nothing but click and the one
subcommand's module is imported. A module `brigade/cli/NAME.py` defines a click
command (or group) called `command`.
"""

from __future__ import annotations

import importlib
import signal
from typing import Any

import click

from brigade import __version__
from brigade.interrupt import Interrupted

# name -> one line for `brigade --help`, so that listing the commands imports none of them
COMMANDS = {
    "run": "Start a job from one image in every node's memory.",
    "stage": "Leave an image in nodes' memory for several jobs.",
    "unstage": "Take away what `brigade stage` has left.",
    "image": "Create, look into and check images.",
    "file": "Shared files and checkpoints: convert, look into, check.",
    "mpiio": "MPI-IO of unmodified programs through few writers.",
    "buffer": "File I/O of unmodified programs through buffers in their memory.",
    "clean": "Remove what dead jobs have left in nodes' memory.",
    "doctor": "Say what this machine allows, what would be chosen, and why.",
    "profile": "What a start-up costs the file system, why, and what to do.",
    "explain": "Why a library or module is looked for where it is.",
    "budget": "Fail if a start-up asks too much of the file system.",
    "calibrate": "Measure a file system's metadata service, gently.",
    "study": "The same start-up in several variants, side by side.",
    "predict": "Seconds and requests of a start-up at any width, before a run.",
    "model": "Models of what storage and jobs do: plan before you run.",
    "bench": "Benchmarks of loading, shared files and the page cache.",
    "io-config": "What builds a program with libbrigade_io.",
    "lab": "A cluster in a box, to try things on.",
    "completion": "Print shell completion for bash, zsh or fish.",
}


class Group(click.Group):
    """A group that shows the whole first sentence of each of its commands, on as many lines as that
    takes: click's own cuts what is longer than one."""

    def lines(self, ctx: click.Context) -> list[tuple[str, str]]:
        """(name, sentence) of each command."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        return [(name, one.get_short_help_str(200)) for name, one in found if one]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(self.lines(ctx))


class LazyGroup(Group):
    """A group whose commands in `lazy` (name -> one line of help) are imported on first use: each
    is `command` of the module `prefix` + its name. Those that it holds itself come after them."""

    def __init__(self, *args: Any, lazy: dict[str, str], prefix: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._lazy, self._prefix = lazy, prefix

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self._lazy:
            return super().get_command(ctx, name)
        module = importlib.import_module(self._prefix + name.replace("-", "_"))
        found: click.Command = module.command
        return found

    def lines(self, ctx: click.Context) -> list[tuple[str, str]]:
        own = [(name, found.get_short_help_str(200)) for name, found in self.commands.items()]
        return [*self._lazy.items(), *own]


class Root(LazyGroup):
    """All commands. click takes Ctrl-C for the end of a question that it asked, and ends with 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted(signal.SIGINT) from None


@click.group(
    cls=Root,
    lazy=COMMANDS,
    prefix="brigade.cli.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  brigade run -- srun -N 4 -n 32 python app.py
  brigade run -n 8 -- python app.py            one machine, no MPI needed
  brigade image info app                       what an image is made of
  brigade COMMAND --help                       more about a command, with examples""",
)
@click.version_option(__version__, "-V", "--version", message="brigade %(version)s")
def cli() -> None:
    """I/O for jobs too wide for their file system.

    Put two words in front of your launcher: brigade run.
    """
