"""`brigade calibrate`: how quick is a file system's metadata service? Asked gently."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from brigade.cli.completing import DIR, FILE, WORDS
from brigade.cli.number import Number
from brigade.errors import UsageError

if TYPE_CHECKING:
    from brigade.calibrate.plan import Plan
    from brigade.trial.mounts import Mount


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  brigade calibrate --dry-run                  what would be asked of this file system?
  brigade calibrate --at /scratch/me -o scratch.json
  brigade calibrate --at /scratch/me --max-rate 2000 -- srun -N 2 -n 8
  brigade calibrate --json --figure knee.png > scratch-curve.json
  brigade predict --system scratch.json --ranks 40960 --nodes 1707""",
)
@click.option("--at", default=".", type=DIR, show_default=True, help="On the file system.")
@click.option(
    "--seconds",
    type=Number(3, 600),
    default=20.0,
    show_default=True,
    help="Begin nothing that is not expected to end by then.",
)
@click.option(
    "--max-requests",
    type=click.IntRange(1000),
    default=20_000,
    show_default=True,
    help="Metadata requests at most, in all.",
)
@click.option(
    "--max-rate",
    type=Number(1),
    help="Requests a second at most, in each step; a burst's come together.",
)
@click.option(
    "--max-clients",
    type=click.IntRange(1, 64),
    default=64,
    show_default=True,
    help="Clients at once, at most.",
)
@click.option(
    "--read-mib", type=click.IntRange(0, 4096), default=32, show_default=True,
    help="Size of the file that is read; 0: none.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("-o", "--output", type=FILE, help="Write the system for `brigade predict`.")
@click.option("--figure", type=FILE, help="Draw throughput and answer time (PNG, SVG, PDF).")
@click.option("--json", "as_json", is_flag=True, help="Everything measured, for machines.")
@click.option("-q", "--quiet", is_flag=True, help="Do not say beforehand what will be done.")
@click.argument("launcher", nargs=-1, type=WORDS)
def command(
    at: str,
    launcher: tuple[str, ...],
    dry_run: bool,
    output: str | None,
    figure: str | None,
    as_json: bool,
    quiet: bool,
    **allowed: float,
) -> None:
    """Measure the metadata service of a file system: service time, servers, round trip, caches.

    Looks names up from 1, 2, 4, 8 … clients at once until throughput stops growing, answers take
    four times as long as at rest, or the allowance is used up; then stops. Works in a folder of
    its own, which is removed again. LAUNCHER (`srun -N 2 -n 8`) spreads the clients over nodes.
    """
    from brigade.calibrate import plan
    from brigade.trial import mounts

    where = os.path.realpath(at)
    if not os.path.isdir(where):
        raise UsageError(f"--at {at}: no such folder")
    for path in (output, figure):
        if path and not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise UsageError(f"{path}: no such folder")
    limits = plan.Limits(
        seconds=allowed["seconds"],
        requests=int(allowed["max_requests"]),
        rate=allowed["max_rate"],
        read_bytes=int(allowed["read_mib"]) << 20,
        clients=int(allowed["max_clients"]),
    )
    made = plan.plan(limits)
    mount = mounts.read().of(where)
    if dry_run or not quiet:
        kind = f" ({mount.fstype} at {mount.point})" if mount else ""
        click.echo(f"brigade: calibrating {at}{kind}:", err=not dry_run)
        for sentence in plan.describe(made, at, list(launcher)):
            click.echo(f"  - {sentence}", err=not dry_run)
    if dry_run:
        return
    if made.lacks:
        raise UsageError(made.lacks)
    data = _measured(made, where, mount, list(launcher))
    from brigade.calibrate import report
    from brigade.model import system

    if output:
        system.save(system.from_json(data["system"]), output)
    if figure:
        report.draw(data, Path(figure))
    if as_json:
        click.echo(json.dumps(data, indent=1))
    else:
        report.print_report(data)


def _measured(made: Plan, where: str, mount: Mount | None, launcher: list[str]) -> dict[str, Any]:
    """Measure, and fit; ends the command if a signal asks for that."""
    from brigade import interrupt
    from brigade.calibrate import measure, report
    from brigade.job.progress import Progress

    progress = Progress(quiet=False)
    start = time.monotonic()
    with interrupt.listening():
        try:
            found = measure.measure(
                made,
                where,
                launcher,
                lambda text: progress.show(text, time.monotonic() - start, None),
            )
        except interrupt.Interrupted as stop:
            sys.exit(128 + stop.signum)
        finally:
            progress.close()
    return report.as_dict(found, found.fitted(), made.limits, where, mount, launcher)
