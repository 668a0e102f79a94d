"""The command line: one file a subcommand, loaded only when it is called.

`brigade run` starts in milliseconds because nothing but click and the one
subcommand's module is imported. A module `brigade/cli/NAME.py` defines a click
command (or group) called `command`.
"""

from __future__ import annotations

import importlib

import click

from brigade import __version__

# name -> one line for `brigade --help`, so that listing the commands imports none of them
COMMANDS = {
    "run": "Start a job from one image in every node's memory.",
    "stage": "Leave an image in nodes' memory for several jobs.",
    "unstage": "Take away what `brigade stage` has left.",
    "image": "Create, look into and check images.",
    "file": "Shared files and checkpoints: convert, look into, check.",
    "clean": "Remove what dead jobs have left in nodes' memory.",
    "doctor": "Say what this machine allows, what would be chosen, and why.",
    "profile": "What a start-up costs the file system, why, and what to do.",
    "explain": "Why a library or module is looked for where it is.",
    "budget": "Fail if a start-up asks too much of the file system.",
    "calibrate": "Measure a file system's metadata service, gently.",
    "study": "The same start-up in several variants, side by side.",
    "predict": "Seconds and requests of a start-up at any width, before it is run.",
    "bench": "Benchmarks of loading, with generated libraries.",
    "io-config": "What builds a program with libbrigade_io.",
    "lab": "A cluster in a box, to try things on.",
    "completion": "Print shell completion for bash, zsh or fish.",
}


class LazyGroup(click.Group):
    """A group whose commands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(
            f"brigade.cli.{name.replace('-', '_')}"
        ).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
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
