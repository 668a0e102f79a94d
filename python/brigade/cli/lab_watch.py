"""`brigade lab watch`: what the nodes ask of the shared file system, as it happens."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, TextIO

import click

from brigade.cli.completing import FILE, WORDS
from brigade.cli.number import Number
from brigade.lab import inside, state

if TYPE_CHECKING:
    from brigade.lab.plan import LabPlan
    from brigade.lab.watch import Step
    from brigade.profile.counters import Sampler

EPILOG = """\b
Examples:
  brigade lab watch                                  until Ctrl-C
  brigade lab watch --seconds 60 --json > load.json  a JSON object each second
  brigade lab watch --figure load.png -- srun -N4 -n32 python app.py
"""
_TITLES = "seconds   requests/s   MiB read/s  background  most frequent"


@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.option("--name", default="lab", envvar="BRIGADE_LAB", show_default=True, help="Which lab.")
@click.option(
    "--every", type=Number(0.05), default=1.0, show_default=True, metavar="SECONDS",
    help="A line each.",
)  # fmt: skip
@click.option("--seconds", type=Number(0, min_open=True), help="Stop after so many.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line, for machines.")
@click.option("--figure", type=FILE, help="Draw it: .png, .svg or .pdf (needs Matplotlib).")
@click.argument("command", nargs=-1, type=WORDS)
def command(
    name: str,
    every: float,
    seconds: float | None,
    as_json: bool,
    figure: str | None,
    command: tuple[str, ...],
) -> None:
    """Show how many requests reach the shared file system each second, from all nodes.

    With COMMAND, that runs from inside the first node, as with `brigade lab run`; watching ends
    with it, the lines go to standard error, and the exit code is the command's own.
    """
    from brigade.lab.watch import steps

    plan = state.find(name)
    out = sys.stderr if command else sys.stdout
    sampler = _sampler(plan) if figure else None
    process = None
    try:
        if command:
            process = inside.popen(plan, plan.nodes[0], list(command))
        if not as_json:
            print(_TITLES, file=out, flush=True)
        over = (lambda: process.poll() is not None) if process else (lambda: False)
        for step in steps(plan, every, seconds, over):
            _print(step, as_json, out)
    except KeyboardInterrupt:
        if process:
            process.wait()  # it has had the Ctrl-C, too
    finally:
        if sampler:
            sampler.stop()
    if sampler and figure:
        _draw(sampler, figure, plan)
    if process:
        sys.exit(_status(process))


def _status(process: subprocess.Popen[bytes]) -> int:
    """The command's exit code, waiting for it if --seconds was shorter."""
    code = int(process.wait())
    return code if code >= 0 else 128 - code


def _print(step: Step, as_json: bool, out: TextIO) -> None:
    if as_json:
        print(json.dumps(step.as_dict()), file=out, flush=True)
        return
    total, length = step.total, step.length_s or 1.0
    kinds = sorted(total.kinds.items(), key=lambda item: -item[1])[:3]
    print(
        f"{step.at_s:7.1f} {total.requests / length:12,.0f} "
        f"{total.bytes_read / length / 2**20:12,.1f} {total.background / length:11,.1f}  "
        f"{', '.join(f'{kind} {times:,}' for kind, times in kinds)}",
        file=out,
        flush=True,
    )


def _sampler(plan: LabPlan) -> Sampler:
    """Finer than the lines, for the figure."""
    from brigade.profile.clients.lab import client
    from brigade.profile.counters import Sampler

    sampler = Sampler([client([plan.counters(node) for node in plan.nodes], str(plan.fs))])
    sampler.start()
    return sampler


def _draw(sampler: Sampler, figure: str, plan: LabPlan) -> None:
    from brigade.page.figure import draw
    from brigade.profile.profile import Timeline

    lines = sampler.timelines() or [Timeline("none", 1.0, {})]
    draw([(f"{plan.fs}, {len(plan.nodes)} nodes", lines[0])], figure)
