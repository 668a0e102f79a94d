"""`brigade doctor`: what this machine allows, what would be chosen, and why."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from brigade.cli.completing import WORDS

if TYPE_CHECKING:
    from brigade.doctor.verdict import Verdict

EPILOG = """\b
Examples:
  brigade doctor                      this node
  brigade doctor -- srun -N 4         all nodes of an allocation; like answers are one
  brigade doctor -- mpirun --hostfile hosts
  brigade doctor --json | jq .nodes   for machines
"""


@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.argument("launcher", nargs=-1, type=WORDS)
def command(launcher: tuple[str, ...], as_json: bool) -> None:
    """Say what this node allows, or each node of LAUNCHER: views, node memory, launchers; what
    `brigade run` would choose, and why.

    Each thing is tried, not guessed from versions, and nothing is left behind. The exit code is 0
    if a job would start from an image on every node, and 1 if it would not on some, or if some do
    not answer.
    """
    from brigade import interrupt
    from brigade.doctor import probe, verdict

    groups: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    with interrupt.listening():
        try:
            answers, lost = probe.nodes(list(launcher))
        except interrupt.Interrupted as stop:
            sys.exit(128 + stop.signum)
    for node in answers:
        groups.setdefault(verdict.same(node), []).append(node)
    verdicts = [(nodes, verdict.judge(min(nodes, key=verdict.free))) for nodes in groups.values()]
    found = probe.launchers()
    ok = all(one.ok for _, one in verdicts) and not lost
    if as_json:
        answer = [
            {
                "hosts": sorted(node["host"] for node in nodes),
                "ok": one.ok,
                "views": {
                    view.name: {"why_not": view.why, "notes": view.notes} for view in one.views
                },
                "memory_why_not": one.memory,
                "auto": one.auto,
                "auto_static": one.auto_static,
                "why": one.why,
                "hints": one.hints,
                "probe": nodes[0],
            }
            for nodes, one in verdicts
        ]
        click.echo(
            json.dumps({"ok": ok, "lost": lost, "nodes": answer, "launchers": found}, indent=1)
        )
        sys.exit(0 if ok else 1)
    if lost:
        click.echo(lost)
    for nodes, one in verdicts:
        _print_node(nodes, one)
    click.echo("launchers (here)")
    for name, version in found.items():
        click.echo(f"  {name:<14} {version}")
    if not found:
        click.echo("  none in PATH: brigade run -n RANKS -- PROGRAM starts without one")
    sys.exit(0 if ok else 1)


def _print_node(nodes: list[dict[str, Any]], verdict: Verdict) -> None:
    from brigade.doctor.verdict import free
    from brigade.job.stage import node_base
    from brigade.printable import size

    first = nodes[0]
    hosts = sorted(node["host"] for node in nodes)
    shown = ", ".join(hosts[:4]) + (f" and {len(hosts) - 4} more" if len(hosts) > 4 else "")
    click.echo(f"{shown}: Linux {first['kernel']}, {first['machine']}")
    click.echo("views")
    for view in verdict.views:
        click.echo(f"  {view.name:<14} {'yes' if view.why is None else 'no: ' + view.why}")
        for note in view.notes:
            click.echo(f"  {'':<14} {note}")
    click.echo("chosen by --view auto")
    click.echo(f"  {','.join(verdict.auto):<26} for a Python program; without python for others")
    click.echo(f"  {','.join(verdict.auto_static):<26} for a static program")
    click.echo(f"  {verdict.why}")
    click.echo("node memory")
    room = (
        f"{size(min(map(free, nodes)))} free" if verdict.memory is None else f"no: {verdict.memory}"
    )
    click.echo(f"  {node_base():<14} {room}")
    for hint in verdict.hints:
        click.echo(f"hint: {hint}")
