"""The page of `brigade bench all`: one HTML file that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from brigade.bench.all.run import Outcome
from brigade.page.html import environment_of


def render(outcomes: Sequence[Outcome], host: dict[str, Any], settings: dict[str, Any]) -> str:
    """The page as text. Names, tables and failures are escaped; figures are SVG of our own."""
    environment = environment_of()
    failed = [one for one in outcomes if one.failure]
    return environment.get_template("laboratory.html").render(
        outcomes=outcomes, failed=failed, host=host, settings=settings, facts=_facts(host),
        seconds=sum(one.seconds for one in outcomes), figure=_inline,
    )  # fmt: skip


def _facts(host: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(label, value, note)"""
    return [
        ("processors", str(host["cpus"]), host["cpu"]),
        ("memory", f"{host['memory_bytes'] / 2**30:.1f} GiB", ""),
        ("kernel", re.split(r"[-+]", host["kernel"])[0], host["kernel"]),
        ("brigade", host["brigade"], host["commit"] or ""),
    ]


def _inline(svg: str, name: str) -> Any:
    """An SVG of Matplotlib's for a page with several: its ids are made the figure's own, so that
    no figure takes glyphs or clips of another."""
    from markupsafe import Markup

    body = svg[svg.index("<svg") :]
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", body)
    body = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", body, count=1)
    body = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", body, count=1)
    return Markup(body)
