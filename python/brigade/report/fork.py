"""What became of `--fork`, for the report: from the nodes' counters (src/view/state.h)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from brigade.printable import size
from brigade.trial.modules import SEVERAL

_SHOWN = 5
_ONCE = {
    "main": "libraries loaded, and constructors run, once a node",
    "preinit": "libraries loaded once a node, constructors run by each rank",
}


def summary(
    nodes: list[dict[str, Any]], nowhere: str | None = None, plan: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """How many ranks were forked, what that saved, what was warm, and why others were started in
    the ordinary way; None if it was not asked for, or each node had one rank. `nowhere`: why none
    was asked for. `plan`: of the image, if it was."""
    slots = [slot for node in nodes for slot in node.get("slots", []) if "forked" in slot]
    told = [(node["host"], node["fork"]) for node in nodes if node.get("fork")]
    shared = any(len(node.get("slots", [])) > 1 for node in nodes)
    behind = str(plan["behind"]) if plan and shared else ""
    if not slots and not told and not nowhere and not behind:
        return None
    asked = bool(slots or told)
    words = {host: _words(one["words"]) for host, one in told}
    modules = [int(one["warm"]) for one in words.values() if "warm" in one]
    dropped: dict[str, str] = {}
    for one in words.values():
        dropped.update(one.get("left", {}))
    return {
        "kind": next((str(one["kind"]) for one in words.values() if "kind" in one), "python"),
        "nowhere": nowhere,
        "before_main": str(plan["why"]) if plan and plan.get("kind") == "preinit" else "",
        "not_met": "" if asked or nowhere else behind.removeprefix(SEVERAL),
        "ranks": max(
            sum(1 for slot in slots if slot["forked"]),
            sum(int(one.get("forked", 0)) for _, one in told),  # of a launcher's, one slot
        ),
        "refused": sum(int(one.get("refused", 0)) for _, one in told),
        "plain": sorted(slot["rank"] for slot in slots if not slot["forked"]),
        "why": {host: one["why"] for host, one in told if one["why"]},
        "warm_seconds": max((one["warm_ns"] for _, one in told), default=0) / 1e9,
        "saved_bytes": {host: one["saved_bytes"] for host, one in told if one["saved_bytes"]},
        "modules": max(modules, default=0),
        "dropped": dropped,
        "doubts": {host: str(one["doubt"]) for host, one in words.items() if one.get("doubt")},
    }


def _words(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def facts(fork: dict[str, Any] | None) -> list[str]:
    """The same in lines for people."""
    if not fork:
        return []
    if fork["nowhere"]:
        return [f"no rank was forked: {fork['nowhere']}"]
    if fork["not_met"]:
        return [f"no rank was forked: its wrapper started no {fork['not_met']}"]
    once = _ONCE.get(fork["kind"], f"{fork['modules']:,} modules imported once a node")
    lines = [f"{fork['ranks']:,} ranks forked, {once}"]
    if fork["before_main"]:
        lines.append(f"  {fork['before_main']}")
    lines += [f"  {why} ({host})" for host, why in fork["doubts"].items()][:_SHOWN]
    if fork["warm_seconds"]:
        lines.append(f"warming {fork['warm_seconds']:.2f} s")
    if fork["saved_bytes"]:
        lines.append(f"{size(max(fork['saved_bytes'].values()))} of memory saved a node")
    plain = max(len(fork["plain"]), fork["refused"])
    if plain:
        lines.append(f"{plain:,} started in the ordinary way:")
        lines += [f"  {why} ({host})" for host, why in list(fork["why"].items())[:_SHOWN]]
    for module, why in list(fork["dropped"].items())[:_SHOWN]:
        lines.append(f"left to each rank: {module}: {why}")
    return lines
