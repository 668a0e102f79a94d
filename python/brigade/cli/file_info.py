"""`brigade file info`: what a file is made of."""

from __future__ import annotations

import json
from typing import Any

import click

from brigade.cli.file_tool import ask


@click.command(
    "info",
    epilog="""\b
Examples:
  brigade file info ckpt.0042
  brigade file info --json ckpt.0042 | jq .layout""",
)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
def command(file: str, as_json: bool) -> None:
    """Say what a file is made of: size, layout, parts, and whether it has checksums."""
    facts = ask("info", file)
    if as_json:
        click.echo(json.dumps(facts, indent=1))
        return
    for label, text in _rows(facts):
        click.echo(f"{label:10} {text}")


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("file", facts["file"]), ("bytes", f"{facts['bytes']:,}")]
    if facts["layout"] == "shared":
        rows += [("layout", "one plain file"), ("checksums", facts["checksums"])]
    else:
        parts = facts["parts"]
        rows.append(("layout", f"{len(parts)} parts in {facts['folder']}"))
        rows.append(
            ("extents", f"{facts['extents']:,} in an index of {facts['index_bytes']:,} bytes")
        )
        rows += [(f"part {part['name']}", f"{part['bytes']:,} bytes") for part in parts]
    if "block_bytes" in facts:
        rows.append(("block", f"{facts['block_bytes']:,} bytes for each checksum"))
    return rows
