"""`brigade file info`: what a file is made of."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import click

from brigade.cli.file_tool import ask
from brigade.cli.there import There
from brigade.errors import BrigadeIOError
from brigade.printable import printable

_SHOWN = 30  #: arrays; more are counted


@click.command(
    "info",
    epilog="""\b
Examples:
  brigade file info ckpt.0042
  brigade file info --json ckpt.0042 | jq .layout
  brigade file info --json ckpt.0042 | jq -r '.arrays[].name'""",
)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.argument("file", type=There(dir_okay=False, plain=True))
def command(file: str, as_json: bool) -> None:
    """Say what a file is made of: size, layout, parts, whether it has checksums, named arrays."""
    facts = ask("info", file)
    facts.update(_named(file))
    if as_json:
        click.echo(json.dumps(facts, indent=1, default=str))
        return
    for label, text in _rows(facts):
        click.echo(f"{label:10} {printable(text)}")


def _named(file: str) -> dict[str, Any]:
    """Arrays and attributes; nothing where the file holds plain bytes."""
    import brigade.io

    with brigade.io.open(None, file) as f:
        try:
            named = f.arrays
        except BrigadeIOError as error:
            return {"arrays_damaged": error.strerror}
        if not named and not f.attrs:
            return {}
        arrays = [
            {
                "name": array.name,
                "type": array.type,
                "shape": array.shape,
                "offset": array.offset,
                "attributes": _plain(array.attrs),
            }
            for array in named.values()
        ]
        return {"arrays": arrays, "attributes": _plain(f.attrs)}


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes for JSON: lists for arrays, text for what JSON does not know."""
    found = {}
    for name, value in attributes.items():
        value = value.tolist() if hasattr(value, "tolist") else value
        found[name] = [_known(one) for one in value] if isinstance(value, list) else _known(value)
    return found


def _known(value: Any) -> Any:
    """Complex numbers, and those that are none or have no end, are text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if isinstance(value, (str, bool, int)) else str(value)


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("file", facts["file"]), ("bytes", f"{facts['bytes']:,}")]
    if facts["layout"] == "shared":
        rows += [("layout", "one plain file"), ("checksums", facts["checksums"])]
    else:
        parts = facts["parts"]
        number = "1 part" if len(parts) == 1 else f"{len(parts)} parts"
        rows.append(("layout", f"{number} in {facts['folder']}"))
        rows.append(
            ("extents", f"{facts['extents']:,} in an index of {facts['index_bytes']:,} bytes")
        )
        rows += [(f"part {part['name']}", f"{part['bytes']:,} bytes") for part in parts]
    if "block_bytes" in facts:
        rows.append(("block", f"{facts['block_bytes']:,} bytes for each checksum"))
    if "arrays_damaged" in facts:
        rows.append(("arrays", facts["arrays_damaged"]))
    for name, value in facts.get("attributes", {}).items():
        rows.append(("attribute", f"{name} = {value}"))
    arrays = facts.get("arrays", [])
    for array in arrays[:_SHOWN]:
        rows.append(("array", f"{array['name']}: {array['type']} {list(array['shape'])}"))
    if len(arrays) > _SHOWN:
        rows.append(("", f"and {len(arrays) - _SHOWN:,} more arrays: --json lists them"))
    return rows
