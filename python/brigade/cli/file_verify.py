"""`brigade file verify`: whether a file is as it was written."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from brigade.cli.file_tool import ask
from brigade.cli.there import There
from brigade.errors import BrigadeIOError

_SUMS = ".sums"


@click.command(
    "verify",
    epilog="""\b
Examples:
  brigade file verify ckpt.0042
  brigade file verify -q ckpt.* && sbatch restart.sh

Exit code 0 if every byte is as it was written, 10 if not or if there are no checksums.""",
)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.argument("files", nargs=-1, required=True, type=There(dir_okay=False, plain=True))
def command(files: tuple[str, ...], as_json: bool, quiet: bool) -> None:
    """Compare every byte of FILES with its checksums, and the checksums with their own.

    A NAME.sums beside a NAME among FILES, as in ckpt.*, is not taken for a file of its own.
    """
    outcomes: list[dict[str, Any]] = []
    named = set(files)
    for file in files:
        if file.endswith(_SUMS) and file[: -len(_SUMS)] in named:
            continue  # read with the file that it belongs to
        try:
            outcomes.append({"file": file, **ask("verify", file, quiet=quiet)})
        except BrigadeIOError as failure:
            outcomes.append({"file": file, "error": failure.message})
        if not as_json:
            _tell(outcomes[-1])
    if as_json:
        click.echo(json.dumps(outcomes, indent=1))
    if any(outcome.get("damaged", 1) for outcome in outcomes):
        sys.exit(BrigadeIOError.exit_code)


def _tell(outcome: dict[str, Any]) -> None:
    if "error" in outcome:
        click.secho(outcome["error"], fg="red")
    elif outcome["damaged"] == 0:
        click.echo(f"{outcome['file']}: all {outcome['blocks']} blocks are as they were written")
    else:
        listed = outcome["listed"]
        words = f"{outcome['damaged']} of {outcome['blocks']} blocks are not as they were written"
        click.secho(f"{outcome['file']}: {words}", fg="red")
        for bad in listed:
            end = bad["offset"] + bad["bytes"]
            click.echo(f"  {bad['path']}, bytes {bad['offset']} to {end}: {bad['what']}")
        if outcome["damaged"] > len(listed):
            click.echo(f"  and {outcome['damaged'] - len(listed)} more")
