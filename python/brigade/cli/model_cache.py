"""`brigade model cache`: the page cache, simulated, and beside what `brigade bench cache` saw."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import click

from brigade.cli.completing import FILE
from brigade.cli.duration import Duration
from brigade.cli.size import Size
from brigade.cli.there import There
from brigade.errors import UsageError
from brigade.load_json import load_json
from brigade.model.cache.settings import POLICIES

EPILOG = """\b
Examples:
  brigade model cache                                      twice the memory, written and read
  brigade model cache --memory 16G --write 200M --read 500M --workload steps
  brigade model cache --client-dirty 256M --write-through  mfsmount, or another client's cache
  brigade model cache --policy fifo --figure fifo.png
  brigade model cache --machine study.json --workload steps
  brigade model cache --trace traced --memory 16G           what brigade-trace wrote
  brigade model cache --compare study.json --figure compared.png

\b
A workload has a step a line:
  write a bytes=160M size=1M every=16M sleep=100ms         # sleeps after every 16 MiB
  look a                                                   # which part is cached?
  [reader] read a bytes=160M size=128k                     # of a client of its own
  fsync a / drop a / remove a / sleep sleep=2s / probe a count=64 / file b bytes=1G

\b
Policies:
""" + "\n".join(f"  {name:<7}{meaning}" for name, meaning in POLICIES.items())


@click.command(epilog=EPILOG)
@click.option("--workload", type=There(dir_okay=False), help="What is done.")
@click.option(
    "--trace", type=There(file_okay=False),
    help="What a program did: the folder that brigade-trace wrote.",
)  # fmt: skip
@click.option(
    "--machine", type=There(dir_okay=False),
    help="The machine of a study: `brigade bench cache --json`.",
)  # fmt: skip
@click.option(
    "--compare", type=There(dir_okay=False),
    help="Do what a study did, and put it beside what it measured.",
)  # fmt: skip
@click.option(
    "--policy", type=click.Choice(list(POLICIES)), default="linux", show_default=True,
    help="How the cache works.",
)  # fmt: skip
@click.option("--memory", type=Size(positive=True), help="For pages of files.  [default: 128M]")
@click.option(
    "--write", type=Size(positive=True), help="Bytes a second of the device.  [default: 100M]"
)
@click.option(
    "--read", type=Size(positive=True), help="Bytes a second of the device.  [default: 100M]"
)
@click.option("--latency", type=Duration(), help="Of a request to it.  [default: 100us]")
@click.option("--shared", is_flag=True, help="It writes and reads in turn, not both at once.")
@click.option("--background", type=Size(), help="Dirty bytes at which it begins to be written.")
@click.option(
    "--dirty",
    type=Size(positive=True),
    help="Most dirty bytes.  [default: the study's, or 1/5 of the memory]",
)
@click.option(
    "--strict", type=Size(positive=True), help="Most dirty bytes of this device (FUSE: 1% of them)."
)
@click.option(
    "--client-dirty", type=Size(positive=True), help="Most of a client, as Lustre's max_dirty_mb."
)
@click.option("--write-through", is_flag=True, help="Pages are clean at once (FUSE, by default).")
@click.option("--expire", type=Duration(), help="Age at which dirty pages go.  [default: 30s]")
@click.option(
    "--writeback", type=Duration(positive=True), help="Between looks for such.  [default: 5s]"
)
@click.option("--read-ahead", type=Size(), help="At most.  [default: 128k]")
@click.option("--figure", type=FILE, help="Draw it, too (needs Matplotlib).")
@click.option("--json", "as_json", is_flag=True, help="For machines, with all samples.")
def command(
    workload: str | None,
    trace: str | None,
    machine: str | None,
    compare: str | None,
    policy: str,
    figure: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Simulate the page cache: what a workload's writes and reads take, and what stays cached.

    The machine is described by options, or is that of a study (its kernel's settings, and what its
    calibration says of device and memory). Nothing is written or read.
    """
    from brigade.model.cache import simulate
    from brigade.model.cache import workload as workloads

    if figure:
        from brigade.model import figure as figures

        figures.check(figure)
    if compare:
        if (
            machine
            or workload
            or trace
            or any(value not in (None, False) for value in given.values())
        ):
            raise UsageError("--compare takes machine and workload of the study: give only that")
        _compare(compare, policy, figure, as_json)
        return
    described = _machine(machine, policy, given)
    if trace and workload:
        raise UsageError("give one of --trace and --workload")
    if trace:
        from brigade.model.cache import from_trace
        from brigade.trace import native

        steps = from_trace.steps(native.load(trace))
    elif workload:
        steps = workloads.load(workload)
    else:
        twice = 2 * described.memory.bytes
        text = f"write a bytes={twice}\nlook a\nfsync a\nread a bytes={twice}\nlook a\n"
        steps = workloads.parse(text)
    results = simulate.run(steps, described)
    if figure:
        from brigade.model.cache import figure as pictures

        pictures.draw(results, figure)
    if as_json:
        click.echo(json.dumps({"machine": dataclasses.asdict(described), "results": results}))
    else:
        from brigade.model.cache import show

        show.print_steps(results)


def _machine(study: str | None, policy: str, given: dict[str, Any]) -> Any:
    """The machine of a study or a usual one, with what is given instead of its own."""
    from brigade.model.cache import from_study
    from brigade.model.cache.settings import Limits, Machine

    made = from_study.machine(_study(study), policy) if study else Machine()
    device = {name: given[name] for name in ("write", "read") if given[name] is not None}
    if given["latency"] is not None:
        device.update(write_latency=given["latency"], read_latency=given["latency"])
    memory = dataclasses.replace(made.memory, bytes=given["memory"] or made.memory.bytes)
    limits = list(made.kernel.limits)
    if given["dirty"] or given["background"] is not None or not limits:
        limits[:1] = [_dirty(given, limits[0].hard if limits else memory.bytes // 5)]
    if given["strict"]:
        limits.append(Limits(given["strict"] / 2, given["strict"], strict=True))
    if given["client_dirty"]:
        limits.append(Limits(0, given["client_dirty"], blocking=True))
    named = ("expire", "writeback", "read_ahead")
    kernel = {name: given[name] for name in named if given[name] is not None}
    through = given["write_through"]
    return Machine(
        dataclasses.replace(made.device, shared=given["shared"] or made.device.shared, **device),
        memory,
        dataclasses.replace(
            made.kernel, limits=tuple(limits), policy=policy,
            write_through=through or made.kernel.write_through,
            close_waits=through or made.kernel.close_waits, **kernel,
        ),
    )  # fmt: skip


def _dirty(given: dict[str, Any], usual: float) -> Any:
    """The limits of dirty bytes; `usual`: the most of them where --dirty does not say it."""
    from brigade.model.cache.settings import Limits

    dirty, background = given["dirty"] or usual, given["background"]
    if background is None:
        background = dirty // 2
    if background < dirty:
        return Limits(background, dirty)
    if given["dirty"]:
        raise UsageError("--background must be less than --dirty")
    if given["background"] is not None:
        raise UsageError(
            f"--background must be less than the most dirty bytes, here {dirty:,.0f}",
            hint="say more with --dirty",
        )
    raise UsageError(
        f"--memory is too little: with a fifth of it, {dirty:,.0f} bytes, nothing can be dirty",
        hint="say more with --memory, or how much may be dirty with --dirty",
    )


def _study(path: str) -> dict[str, Any]:
    try:
        found = load_json(Path(path).read_text("utf-8"))
        if found["benchmark"] == "cache" and found["schema"] == 1:
            return dict(found)
    except (ValueError, KeyError, TypeError):
        pass
    raise UsageError(f"{path} is no study", hint="make one: brigade bench cache --json > FILE")


def _compare(path: str, policy: str, picture: str | None, as_json: bool) -> None:
    from brigade.model.cache import compare, from_study, simulate, workload

    study = _study(path)
    steps = workload.parse("\n".join(study["steps"]), path)
    direct = [step.direct for step in steps]
    measured = study["results"]
    simulated = {name: simulate.run(steps, from_study.machine(study, name)) for name in POLICIES}
    phases = {
        name: compare.phases(direct, measured, results) for name, results in simulated.items()
    }
    summaries = {name: compare.summary(found) for name, found in phases.items()}
    looks = compare.looks(measured, simulated[policy])
    if picture:
        from brigade.model.cache import figure

        figure.draw_comparison(measured, simulated, phases, picture)
    if as_json:
        said = {
            "machine": dataclasses.asdict(from_study.machine(study, policy)),
            "phases": [{**dataclasses.asdict(p), "error": p.error} for p in phases[policy]],
            "cached": [dataclasses.asdict(one) for one in looks],
            "summary": summaries,
        }
        click.echo(json.dumps(said, indent=1))
    else:
        from brigade.model.cache import show

        show.print_comparison(policy, phases[policy], looks, summaries)
