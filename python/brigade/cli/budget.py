"""`brigade budget`: fail if a start-up asks too much of the shared file system."""

from __future__ import annotations

import sys
from typing import Any

import click

from brigade.cli.completing import FILE, WORDS
from brigade.cli.observing import covered, in_order, observing_options
from brigade.errors import BrigadeError, OverBudget, ProgramFailed, UsageError

EPILOG = """\b
Examples:
  brigade budget --max-ops 20000 -- srun -n 2 python app.py
  brigade budget --max-ops 200 --under-brigade -- srun -n 2 python app.py
  brigade budget --max-failed 0 --max-opens 50 --per node -- mpirun -n 4 ./solver
  brigade budget --max-ops 9000 --profile start.json      of brigade profile --json start.json
"""
_LIMITS = {
    "ops": "Calls of all kinds.",
    "opens": "Opens, whether or not they find a file.",
    "failed": "Calls by path that find nothing.",
    "bytes": "Bytes that are read.",
}


def _limits(command: Any) -> Any:
    for name, text in reversed(_LIMITS.items()):
        option = click.option(f"--max-{name}", type=click.IntRange(0), metavar="N", help=text)
        command = option(command)
    return command


@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@_limits
@click.option(
    "--per",
    type=click.Choice(["rank", "node", "job"]),
    default="rank",
    show_default=True,
    help="Of what the limits are: the rank or node that asks most, or all together.",
)
@click.option("--under-brigade", is_flag=True, help="Measure the job under brigade run.")
@click.option("--profile", "earlier", type=FILE, help="Judge a profile, instead of a run.")
@click.option("--json", "as_json", is_flag=True, help="For machines, on standard output.")
@observing_options
@click.argument("command", nargs=-1, type=WORDS)
def command(
    command: tuple[str, ...],
    per: str,
    under_brigade: bool,
    earlier: str | None,
    as_json: bool,
    cover: tuple[str, ...],
    **options: Any,
) -> None:
    """Run COMMAND traced, and fail if it asks more of shared file systems than is allowed. What
    COMMAND says goes to standard error.

    Exit code 0: within all limits; 8: over one, with what asked most; 9: the program itself failed,
    nothing is judged; 1: not all of it was seen, so nobody knows.
    """
    limits = {name: options.pop(f"max_{name}") for name in _LIMITS}
    limits = {name: most for name, most in limits.items() if most is not None}
    if not limits:
        raise UsageError("no limit is given", hint="for instance --max-ops 200")
    if bool(command) == bool(earlier):
        raise UsageError("a COMMAND or --profile FILE", hint="brigade budget --max-ops 200 -- …")
    from brigade.profile.budget import judge

    profile, status = _profile(list(command), earlier, list(cover), under_brigade, options)
    if status:
        raise ProgramFailed(
            f"the program ended with status {status}: there is nothing to judge",
            hint="does it work without Brigade?",
        )
    verdict = judge(profile, limits, per)
    if not profile.complete and not verdict.over:
        raise BrigadeError(
            f"not all was seen, so nothing is within its limits: {'; '.join(profile.lost)}",
            hint="measure it once more, with room for the trace and one for each rank",
        )
    if as_json:
        _print_json(verdict)
    elif not options["quiet"]:
        _print(verdict)
    if verdict.over:
        over = [limit for limit in verdict.limits if limit.over]
        raise OverBudget(
            "over the budget: "
            + ", ".join(f"{one.measured:,} {one.what} of at most {one.most:,}" for one in over)
        )


def _profile(
    words: list[str], earlier: str | None, cover: list[str], under_brigade: bool, options: Any
) -> tuple[Any, int]:
    if earlier:
        from brigade.profile.profile import load

        return load(earlier), 0
    from brigade.job.observed import Settings
    from brigade.job.profiled import observed_once, observed_under_brigade

    settings = Settings(words=words, cover=covered(cover), **options)
    with in_order():
        seen = observed_under_brigade(settings) if under_brigade else observed_once(settings)
    return seen.built.profile, seen.status


def _print(verdict: Any) -> None:
    """One line a limit, and what asked most if one is over."""
    for limit in verdict.limits:
        word = "OVER" if limit.over else "ok"
        print(
            f"{word:4} {limit.what} a {verdict.per}: {limit.measured:,} of at most {limit.most:,}",
            file=sys.stderr,
        )
    for cause, calls in verdict.causes:
        print(f"     {calls:,} calls a rank: {cause}", file=sys.stderr)


def _print_json(verdict: Any) -> None:
    import dataclasses
    import json

    limits = [{**dataclasses.asdict(one), "over": one.over} for one in verdict.limits]
    causes = [{"cause": cause, "calls": calls} for cause, calls in verdict.causes]
    print(
        json.dumps({"over": verdict.over, "per": verdict.per, "limits": limits, "causes": causes})
    )
