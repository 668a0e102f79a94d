"""`brigade profile`: what a start-up costs the shared file system, and why."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from brigade.cli.completing import DIR, FILE, WORDS
from brigade.cli.observing import covered, observing_options
from brigade.errors import BrigadeError, UsageError

EPILOG = """\b
Examples:
  brigade profile -- srun -n 2 python app.py         a small width tells all that a wide one does
  brigade profile -n 2 --cover ~/venv -- python app.py      on a laptop, without a launcher
  brigade profile --after --overhead -- srun -n 2 python app.py       before and after Brigade
  brigade profile --until-quiet 5 -- srun -n 2 ./solver     end it when its start-up is over
  brigade profile --from-strace start.strace --html start.html
  brigade profile --from start.json --html start.html       the page again
  brigade profile --keep-trace start -- srun -n 2 python app.py       for brigade explain
"""
_NO_PAGE = ("", "none")


@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@observing_options
@click.option(
    "--html",
    default="profile.html",
    show_default=True,
    type=FILE,
    help="The page; 'none': no page.",
)
@click.option(
    "--json",
    type=FILE,
    help="The profile, for machines ('-': standard error).  [default: beside the page, .json]",
)
@click.option("--csv", type=FILE, help="Every call as a line.")
@click.option("--perfetto", type=FILE, help="The calls over time, for ui.perfetto.dev.")
@click.option("--keep-trace", type=DIR, help="Keep the trace, for brigade explain.")
@click.option("--after", is_flag=True, help="Run it again under Brigade: before and after.")
@click.option("--warm", is_flag=True, help="Run it again: what reaches the servers when warm.")
@click.option(
    "--overhead", is_flag=True, help="Run it twice more, traced and untraced: what tracing cost."
)
@click.option(
    "--from-strace",
    "straces",
    multiple=True,
    type=FILE,
    help="Instead of a run: output of strace -f (a file for each rank), or a folder of -ff files.",
)
@click.option("--from", "earlier", type=FILE, help="Instead of a run: an earlier --json.")
@click.option(
    "--importtime",
    type=FILE,
    help="What python -X importtime said in a run of its own: who imports what, exactly.",
)
@click.argument("command", nargs=-1, type=WORDS)
def command(
    command: tuple[str, ...],
    html: str,
    json: str | None,
    csv: str | None,
    perfetto: str | None,
    straces: tuple[str, ...],
    earlier: str | None,
    cover: tuple[str, ...],
    **options: Any,
) -> None:
    """Run COMMAND traced, and write a page: what its start-up costs the file system, why, and what
    to do.

    Every system call that names a file is counted, of ld.so, static programs and Python alike, by
    rank, phase, file system, and by the search entry that caused it. A small width is enough: the
    ranks of a start-up do the same. The program's output, input and exit code stay its own; the
    report goes to standard error.
    """
    from brigade.profile.outputs import Outputs

    if sum(map(bool, (command, straces, earlier))) != 1:
        raise UsageError(
            "one thing to look at: a COMMAND, --from-strace FILE or --from FILE",
            hint="brigade profile -- srun -n 2 python app.py",
        )
    page = None if html in _NO_PAGE else html
    if page and not json and not earlier:
        json = os.path.splitext(page)[0] + ".json"  # what brigade predict is given next
    outputs = Outputs(page, json, csv, perfetto)
    outputs.check()
    if options["overhead"] and (options["limit"] or options["until_quiet"]):
        raise UsageError(
            "--overhead compares whole runs: a program that --limit or --until-quiet ends has none",
            hint="leave one of them out",
        )
    if earlier:
        status = _again(earlier, outputs, options)
    elif straces:
        status = _from_straces(straces, list(cover), outputs, options)
    else:
        status = _run(list(command), covered(cover), outputs, options)
    sys.exit(status)


def _again(earlier: str, outputs: Any, options: dict[str, Any]) -> int:
    from brigade.profile import profile

    _report(profile.load(earlier), None, outputs, options)
    return 0


def _from_straces(
    straces: tuple[str, ...], cover: list[str], outputs: Any, options: dict[str, Any]
) -> int:
    from brigade.job.observed import import_times
    from brigade.profile import build, insights
    from brigade.trace import merge, strace

    trace = merge.merged([strace.load(path) for path in straces])
    words = next((one.argv for one in trace.processes if one.argv), [])
    profile = build.build(
        trace,
        command=words,
        program=words,
        launcher=None,
        importtimes=import_times(options["importtime"]),
        cover=cover,
    ).profile
    profile.insights = insights.find(profile)
    _report(profile, trace, outputs, options)
    return 0


def _run(words: list[str], cover: list[str], outputs: Any, options: dict[str, Any]) -> int:
    from brigade.cli.observing import in_order
    from brigade.errors import NoTraceError
    from brigade.job.observed import Settings, import_times
    from brigade.job.profiled import profiled

    more = {name: value for name, value in options.items() if name != "importtime"}
    times = import_times(options["importtime"])
    try:
        with in_order():
            seen = profiled(Settings(words=words, cover=cover, importtimes=times, **more))
    except NoTraceError as error:  # the program's own status is worth more
        print(f"brigade: {error.message}\n  {error.hint}", file=sys.stderr)
        return _as_ended(error.status)
    if seen.built.profile.cells:
        try:
            _report(seen.built.profile, seen.trace, outputs, options)
        except (BrigadeError, OSError) as error:
            print(f"brigade: {error}", file=sys.stderr)
    else:
        why = seen.built.profile.lost or ["the program did not start"]
        print(
            f"brigade: no call was seen, so there is no profile: {'; '.join(why)}", file=sys.stderr
        )
    if seen.status and not options["quiet"]:
        _tell_failure(words, seen)
    return _as_ended(seen.status)


def _as_ended(status: int) -> int:
    """Ends as the program did, or returns its exit status."""
    from brigade.job.signals import die_of

    if status < 0:
        die_of(-status)
    return status


def _tell_failure(words: list[str], seen: Any) -> None:
    """Why the job failed, as far as that is certain: what was searched, what is closest."""
    from brigade.failure import Evidence, after, tell

    evidence = Evidence(
        words=words,
        program=seen.launch.program,
        status=seen.status,
        seconds=seen.seconds,
        launcher=seen.launch.kind,
        ranks=seen.launch.ranks,
        nodes=seen.launch.nodes,
    )
    tell(after(evidence, seen.trace), sys.stderr)


def _report(profile: Any, trace: Any, outputs: Any, options: dict[str, Any]) -> None:
    """The report first: nothing that cannot be written costs it. Raises BrigadeError if a file
    could not be written, once all others are."""
    from brigade.profile.outputs import show

    if not options["quiet"]:
        show(profile)
    written, failed = outputs.write(profile, trace)
    for path in written:
        if path != "-" and not options["quiet"]:
            print(f"brigade: {os.path.relpath(path)} is written", file=sys.stderr)
    if failed:
        raise BrigadeError("; ".join(failed))
