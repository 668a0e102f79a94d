"""What a job did, as one plain object: the `--json` report, and what the table prints.

All seconds are floats, all sizes bytes. A value that was not measured is None, never 0.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from brigade import __version__
from brigade.report import fork

if TYPE_CHECKING:
    from brigade.job.course import Course

SCHEMA = 1
NOTHING_TO_COVER = "the image covers no folder of installed software"  # src/view/state.h


def report(course: Course) -> dict[str, Any]:
    """The report of a finished (or unstaged) job."""
    launch = course.launch
    nodes = _without(course.nodes, "NO_CONTENT") if course.stays_on_disk else course.nodes
    slots = [slot for node in nodes for slot in node.get("slots", [])]
    return {
        "schema": SCHEMA,
        "brigade": __version__,
        "program": launch.program if launch else course.settings.words,
        "launcher": launch.kind if launch else None,
        "ranks": launch.ranks if launch else None,
        "status": course.status,
        "failure": [diagnosis.as_dict() for diagnosis in course.failure],
        "unstaged": course.unstaged,
        "views": course.views,
        "namespace": _namespace(nodes, course.settings.view == "auto"),
        "image": _image(course),
        "staging": _staging(course.staged, course.stays_on_disk),
        "away": sum(node["away"] for node in nodes if node.get("away")),
        "fork": fork.summary(
            nodes, course.fork_why, course.meta.get("fork") if course.settings.fork else None
        ),
        "startup": _startup(slots, course.launched_ns),
        "operations": _operations(slots, course.meta),
        "misses": _misses(nodes),
        "seconds": {"before_launcher": course.before_launcher_s, "job": course.job_s},
    }


def write_json(report: dict[str, Any], path: str) -> None:
    """Write `report` to a file, or to standard error for '-'."""
    text = json.dumps(report, indent=2) + "\n"
    if path == "-":
        sys.stderr.write(text)
        return
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def _without(nodes: list[dict[str, Any]], cause: str) -> list[dict[str, Any]]:
    """The nodes' counters without the misses of one cause, which are meant to be."""
    return [
        {
            **node,
            "slots": [
                {**slot, "misses": {name: n for name, n in slot["misses"].items() if name != cause}}
                for slot in node.get("slots", [])
            ],
            "misses": [miss for miss in node.get("misses", []) if miss["cause"] != cause],
        }
        for node in nodes
    ]


def spread(values: list[float]) -> dict[str, float] | None:
    """Minimum, median and maximum, or None of nothing."""
    if not values:
        return None
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def _image(course: Course) -> dict[str, Any] | None:
    if not course.image_id:
        return None
    return {
        "path": course.image,
        "id": course.image_id,
        "bytes": course.staged.get("image_bytes") if course.staged else None,
        "trial": course.trial,
        "check": course.check,
        "renewed": course.renewed,
        "grown": course.grown,
        "left_to_file_system": course.left,
        "ranks_agreed": course.meta.get("trial", {}).get("agreed"),
    }


def _staging(staged: dict[str, Any] | None, on_disk: bool) -> dict[str, Any] | None:
    if not staged:
        return None
    seconds, size = staged.get("seconds"), staged.get("bytes")
    already: dict[str, bool] = {}  # by host: a launcher may have put several processes on one
    for node in staged.get("nodes", []):
        already[node["host"]] = already.get(node["host"], True) and bool(node.get("already"))
    return {
        "transport": staged.get("transport"),
        "transport_why": staged.get("transport_why"),
        "nodes": len(already),
        "already": sum(already.values()),
        "seconds": seconds,
        "bytes_per_node": size,
        "read_bytes": staged.get("read_bytes"),
        "memory": staged.get("memory"),
        "stays_on_disk": on_disk,
        "topology": staged.get("topology"),
        "bytes_per_second_per_node": size / seconds if seconds and size else None,
    }


def _namespace(nodes: list[dict[str, Any]], automatic: bool) -> dict[str, Any] | None:
    """What became of the namespace view: how many ranks were in it, and each node's why not. An
    image with nothing for it to do is worth a word only to who asked for it."""
    told = [(node["host"], node["namespace"]) for node in nodes if node.get("namespace")]
    if automatic:
        told = [(host, one) for host, one in told if one["why"] != NOTHING_TO_COVER]
    if not told:
        return None
    without = {
        host: f"{one['why']} ({one['error']})" if one["error"] else str(one["why"])
        for host, one in told
        if one["why"]
    }
    return {
        "nodes": sum(1 for _, one in told if one["ranks"]),
        "ranks": sum(one["ranks"] for _, one in told),
        "folders": max(one["covers"] for _, one in told),
        "without": without,
    }


def _startup(slots: list[dict[str, Any]], launched_ns: int) -> dict[str, Any] | None:
    """Seconds from each rank's process start, and from the launch, to its last start-up look-up."""
    ends = [(slot["start_ns"], slot["ready_ns"] or slot["last_load_ns"]) for slot in slots]
    own = [(end - start) / 1e9 for start, end in ends if end]
    launched = [(end - launched_ns) / 1e9 for _, end in ends if end]
    if not own:
        return None
    return {"ranks": len(slots), "per_rank": spread(own), "after_launch": spread(launched)}


def _operations(slots: list[dict[str, Any]], meta: dict[str, Any]) -> dict[str, Any] | None:
    """Look-ups under the covered roots, per rank: in the trial (all of them real), and now (the
    misses).
    """
    if not slots:
        return None
    return {
        "before_per_rank": meta.get("trial", {}).get("lookups_per_rank"),
        "after_per_rank": spread([float(sum(slot["misses"].values())) for slot in slots]),
        "answered_per_rank": spread([float(slot["hits"]) for slot in slots]),
    }


def _misses(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """Misses by cause, and the paths that were missed, most frequent first."""
    causes: Counter[str] = Counter()
    paths: Counter[tuple[str, str, str]] = Counter()
    for node in nodes:
        for slot in node.get("slots", []):
            causes.update({cause: number for cause, number in slot["misses"].items() if number})
        for miss in node.get("misses", []):
            paths[miss["op"], miss["cause"], miss["path"]] += miss.get("count", 1)
    return {
        "total": sum(causes.values()),
        "by_cause": dict(causes.most_common()),
        "paths": [
            {"op": op, "cause": cause, "path": path, "count": number}
            for (op, cause, path), number in paths.most_common()
        ],
    }
