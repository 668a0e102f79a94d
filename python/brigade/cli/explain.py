"""`brigade explain`: why a library, module or program is looked for where it is."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from brigade.cli.completing import DIR, FILE, WORDS
from brigade.cli.observing import BeforeAndAfter, covered, in_order, observing_options
from brigade.errors import BrigadeError, UsageError

EPILOG = """\b
Examples:
  brigade explain numpy.linalg -- python app.py
  brigade explain libmpi.so.40 libhdf5.so -- srun -n 2 ./solver
  brigade explain numpy.linalg --trace start        of brigade profile --keep-trace start
  brigade explain --fork scipy.stats -- python app.py   why it is imported once per node, or is not
  brigade explain --fork -- srun -n 2 python app.py     all that is left to each rank
  brigade explain libfoo.so.1 --program ./app       without a run: ld.so's search, worked out
"""


@click.command(cls=BeforeAndAfter, epilog=EPILOG)
@observing_options
@click.option(
    "--trace",
    "--profile",
    "folder",
    type=DIR,
    help="A folder of brigade profile --keep-trace, instead of a run.",
)
@click.option(
    "--program", type=FILE, help="A program or library, instead of a run: nothing is started."
)
@click.option(
    "--fork",
    is_flag=True,
    help="Say which modules `brigade run --fork` imports once per node, and why not the others.",
)
@click.option("--image", type=FILE, help="With --fork: an image with a plan, instead of a run.")
@click.option("--json", "as_json", is_flag=True, help="For machines, on standard output.")
@click.argument("names", nargs=-1, type=WORDS, metavar="NAME…")
def command(
    names: tuple[str, ...],
    folder: str | None,
    program: str | None,
    fork: bool,
    image: str | None,
    as_json: bool,
    cover: tuple[str, ...],
    **options: Any,
) -> None:
    """Say where each NAME was looked for, in what order, because of what, who asked, and what each
    step cost.

    NAME is a library (libfoo.so.1, or libfoo.so for any version), a module (numpy.linalg), a
    program, or a path. COMMAND is run traced, its output goes to standard error; a trace that was
    kept, or the program alone, will do as well. What was never found is explained too, with what
    comes closest. Exit code 1: nothing looked for one of the names.

    With --fork, each NAME is a module; without one, all that are left to each rank are listed. Of a
    program that is no Python, it says where that is stopped, and why.
    COMMAND is run as a trial; an image that such a trial made will do as well.
    """
    words: list[str] = click.get_current_context().meta.get("job", [])
    if words:
        cover = tuple(covered(cover))
    if fork:
        sys.exit(_explain_fork(list(names), words, image, as_json, options))
    if not names or image:
        raise UsageError(
            "--image is for --fork" if image else "a name to explain is needed",
            hint="brigade explain numpy.linalg -- python app.py",
        )
    if sum(map(bool, (words, folder, program))) != 1:
        raise UsageError(
            "one thing to explain it with: -- COMMAND, --trace DIR or --program FILE",
            hint=f"brigade explain {names[0]} -- python app.py",
        )
    if program:
        from brigade.profile.resolve import explained

        told = {name: explained(name, program) for name in names}
        near: dict[str, list[str]] = {}
    else:
        told, near = _traced(list(names), words, folder, list(cover), options)
    if as_json:
        _print_json(told)
    else:
        _print(told, near)
    sys.exit(0 if all(told.values()) else 1)


def _explain_fork(
    names: list[str], words: list[str], image: str | None, as_json: bool, options: Any
) -> int:
    from brigade.fork import explain
    from brigade.job.planned import plan_of_image, plan_of_trial

    if bool(words) == bool(image):
        raise UsageError(
            "one thing to explain it with: -- COMMAND or --image FILE",
            hint="brigade explain --fork -- python app.py",
        )
    if image:
        plan = plan_of_image(image)
    else:
        with in_order():
            plan = plan_of_trial(words, **options)
    if as_json:
        print(explain.as_json(plan, names))
    else:
        print("\n".join(explain.lines(plan, names)))
    return 0 if all(plan.knows(name) for name in names) else 1


def _traced(
    names: list[str], words: list[str], folder: str | None, cover: list[str], options: Any
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Explanations of each name, and what comes near those that have none."""
    from brigade.profile.explain import closest, explain

    built = _built(words, folder, cover, options)
    told = {name: explain(built, name) for name in names}
    return told, {name: closest(built, name) for name in names if not told[name]}


def _built(words: list[str], folder: str | None, cover: list[str], options: Any) -> Any:
    from brigade.job.observed import Settings
    from brigade.job.profiled import PROFILE, observed_once
    from brigade.profile import build, profile
    from brigade.trace import native

    if not folder:
        with in_order():
            return observed_once(Settings(words=words, cover=cover, **options)).built
    given = folder
    folder = os.path.dirname(folder) or "." if folder.endswith(".json") else folder
    names = os.listdir(folder) if os.path.isdir(folder) else []
    if PROFILE not in names or not any(name.endswith(native.SUFFIX) for name in names):
        raise BrigadeError(
            f"{given}: there is no kept trace",
            hint="a profile alone does not tell enough; keep the trace with it: "
            "`brigade profile --keep-trace DIR -- COMMAND`",
        )
    known = profile.load(os.path.join(folder, PROFILE))
    return build.build(
        native.load(folder),
        command=known.command,
        program=known.program,
        launcher=known.launcher,
        cover=cover,
    )


def _print(told: dict[str, Any], near: dict[str, list[str]]) -> None:
    from brigade.console import make_console
    from brigade.profile.stepwise import print_explanation

    console = make_console(highlight=False, soft_wrap=False)
    for name, explanations in told.items():
        for explanation in explanations:
            print_explanation(explanation, console)
            console.print()
        if not explanations:
            print(f"brigade: nothing looked for {name}", file=sys.stderr)
            if near.get(name):
                print(f"  it looked for {', '.join(near[name])}", file=sys.stderr)


def _print_json(told: dict[str, Any]) -> None:
    import dataclasses
    import json

    shown = {
        name: [
            {**dataclasses.asdict(one), "calls": one.calls, "wasted": one.wasted} for one in each
        ]
        for name, each in told.items()
    }
    print(json.dumps(shown, indent=2))
