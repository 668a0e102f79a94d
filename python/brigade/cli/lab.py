"""`brigade lab`: a cluster in a box, to try things on."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from brigade.cli import Group, lab_watch
from brigade.cli.completing import WORDS
from brigade.lab import inside, state
from brigade.lab.plan import LOCAL, SHARED, LabPlan
from brigade.printable import is_terminal

if TYPE_CHECKING:
    from brigade.lab.counters import Stats
    from brigade.lab.lab import Progress

# inside a node, the lab that it belongs to
_NAME = click.option(
    "--name", default="lab", envvar="BRIGADE_LAB", show_default=True, help="Which lab."
)
_REST = {"ignore_unknown_options": True, "allow_interspersed_args": False}
_COMMAND = click.argument("argv", nargs=-1, required=True, type=WORDS)


@click.group(
    cls=Group,
    epilog="""\b
Examples:
  brigade lab up
  brigade lab run -- srun -N4 -n8 hostname
  brigade lab stats
  brigade lab down""",
)
def command() -> None:
    """A cluster in a box: nodes, network, Slurm, MPI and a shared file system, all on this machine.

    Needs root. Every part is real; nothing of the machine's own configuration is touched.
    """


@command.command(
    epilog="""\b
Examples:
  brigade lab up                               4 nodes, MooseFS
  brigade lab up --name mine --nodes 2 --fs slow:0.5ms
  brigade lab up --bind /tmp/project           the nodes have a /tmp of their own"""
)
@click.option("--nodes", "n_nodes", default=4, show_default=True, help="How many nodes.")
@click.option("--fs", default="moosefs", show_default=True, help="moosefs or slow:0.5ms.")
@click.option("--bind", "binds", multiple=True, help="Show this folder below /tmp to the nodes.")
@_NAME
def up(n_nodes: int, fs: str, binds: tuple[str, ...], name: str) -> None:
    """Bring a lab up."""
    from brigade.lab.lab import Lab

    with _progress() as progress:
        lab = Lab.up(name, n_nodes, fs, binds, progress)
    click.echo(f"lab '{name}' is up: {', '.join(lab.nodes)}; shared file system at {SHARED}")


@command.command(
    epilog="""\b
Examples:
  brigade lab down
  brigade lab down --name mine"""
)
@_NAME
def down(name: str) -> None:
    """Take a lab down, whatever state it is in; leaves nothing behind."""
    from brigade.lab.lab import Lab

    there = Lab.take_down(name)
    click.echo(f"lab '{name}' is down" if there else f"there is no lab '{name}'")


@command.command(
    name="exec",
    context_settings=_REST,
    epilog="""\b
Examples:
  brigade lab exec n0 -- hostname
  brigade lab exec --user nobody n2 -- df /mnt/brigade-lab
  brigade lab exec --host-network n0 -- /mnt/brigade-lab/venv/bin/pip install numpy""",
)
@_NAME
@click.option("--user", help="Run as this user of the machine.")
@click.option("--host-network", is_flag=True, help="Keep the host's network (to install packages).")
@click.argument("node")
@_COMMAND
def exec_(
    name: str, user: str | None, host_network: bool, node: str, argv: tuple[str, ...]
) -> None:
    """Run a command on a node. Its exit code is the command's own."""
    words = _bare(argv)
    inside.become(state.find(name), node, words, user=user, host_network=host_network)


@command.command(
    context_settings=_REST,
    epilog="""\b
Examples:
  brigade lab run -- srun -N4 -n8 hostname
  brigade lab run -- mpirun -n 8 hostname
  brigade lab run --user nobody -- mpiexec.mpich -n 8 hostname""",
)
@_NAME
@click.option("--user", help="Run as this user of the machine.")
@_COMMAND
def run(name: str, user: str | None, argv: tuple[str, ...]) -> None:
    """Run a launcher from inside the first node. The exit code is the launcher's own."""
    words, plan = _bare(argv), state.find(name)
    inside.become(plan, plan.nodes[0], words, user=user)


@command.command(
    epilog="""\b
Examples:
  brigade lab status
  brigade lab status --json | jq .faults"""
)
@_NAME
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def status(name: str, as_json: bool) -> None:
    """Say whether a lab is up and whole; exit code 0 if so."""
    from brigade.lab.lab import Lab

    plan = state.load(name)
    faults = Lab(plan).faults() if plan else ["there is no such lab"]
    if as_json:
        click.echo(json.dumps(_description(plan, name, faults), indent=1))
    elif not faults and plan:
        click.echo(f"lab '{name}' is up: {', '.join(plan.nodes)} on {plan.fs}, at {SHARED}")
    else:
        click.echo(f"lab '{name}' is not up:")
        for fault in faults:
            click.echo(f"  {fault}")
    sys.exit(1 if faults else 0)


@command.command(
    epilog="""\b
Examples:
  brigade lab stats --reset                    count from now on
  brigade lab run -- srun -N4 -n8 hostname
  brigade lab stats --json | jq .total.requests"""
)
@_NAME
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("--reset", is_flag=True, help="Count from now on; prints what was counted so far.")
def stats(name: str, as_json: bool, reset: bool) -> None:
    """Show metadata requests to the shared file system, and bytes read from it, per node."""
    from brigade.lab.lab import Lab

    lab = Lab.find(name)
    found = lab.stats()
    if reset:
        lab.reset()
    if as_json:
        click.echo(json.dumps(found.as_dict(), indent=1))
    else:
        _print_stats(found)


@command.command(
    name="drop-caches",
    epilog="""\b
Examples:
  brigade lab drop-caches
  brigade lab drop-caches --name mine""",
)
@_NAME
def drop_caches(name: str) -> None:
    """Make the next access to the shared file system a cold one, on every node."""
    from brigade.lab.lab import Lab

    Lab.find(name).drop_caches()


command.add_command(lab_watch.command, "watch")


def _print_stats(found: Stats) -> None:
    from rich.table import Table

    from brigade.console import make_console

    table = Table(box=None, pad_edge=False)
    table.add_column("node")
    for title in ("requests", "background", "bytes read", "bytes written"):
        table.add_column(title, justify="right")
    table.add_column("most frequent requests")
    for node, count in [*found.nodes.items(), ("total", found.total)]:
        numbers = (count.requests, count.background, count.bytes_read, count.bytes_written)
        kinds = sorted(count.kinds.items(), key=lambda item: -item[1])[:4]
        table.add_row(
            node,
            *(f"{number:,}" for number in numbers),
            ", ".join(f"{kind} {times:,}" for kind, times in kinds),
        )
    make_console().print(table)


def _description(plan: LabPlan | None, name: str, faults: list[str]) -> dict[str, object]:
    answer: dict[str, object] = {"name": name, "up": not faults, "faults": faults}
    if plan is not None:
        answer.update(
            nodes=plan.nodes,
            fs=str(plan.fs),
            shared=SHARED,
            local=LOCAL,
            state=str(plan.state),
            data=str(plan.data),
            log=str(plan.log),
        )
    return answer


def _bare(argv: tuple[str, ...]) -> list[str]:
    """The command without the `--` that set it apart."""
    words = list(argv[1:] if argv[0] == "--" else argv)
    if not words:
        raise click.UsageError("no command is given", click.get_current_context(silent=True))
    return words


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show steps as they begin: a spinner on a terminal, nothing elsewhere."""
    if not is_terminal(sys.stderr):
        yield lambda step: None
        return
    from brigade.console import make_console

    with make_console(stderr=True).status("going up") as line:
        yield lambda step: line.update(f"going up: {step}")
