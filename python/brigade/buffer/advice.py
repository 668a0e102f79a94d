"""From the counters of many processes to a table, and to what would have helped. No I/O."""

from __future__ import annotations

from typing import Any

Entry = dict[str, Any]
LABELS = [
    "<64",
    "<256",
    "<1K",
    "<4K",
    "<16K",
    "<64K",
    "<256K",
    "<1M",
    "<4M",
    "<16M",
    "<64M",
    "≥64M",
]
_ENOUGH_CALLS = 100


def merge(processes: list[Entry]) -> list[Entry]:
    """One entry a path: its counters summed over processes, `processes` how many; slowest first."""
    files: dict[str, Entry] = {}
    for process in processes:
        for entry in process["files"]:
            known = files.setdefault(entry["path"], {"path": entry["path"], "processes": 0})
            known["processes"] += 1
            for name, value in entry.items():
                if name == "path":
                    continue
                if name in ("left", "error"):
                    known[name] = known.get(name) or value
                elif isinstance(value, list):
                    known[name] = [a + b for a, b in zip(known.get(name, [0] * 99), value)]
                else:
                    known[name] = known.get(name, 0) + value
    return sorted(files.values(), key=lambda f: (-(f["read_s"] + f["write_s"]), f["path"]))


def typical(sizes: list[int]) -> str | None:
    """The size class of the call in the middle; None without calls."""
    seen, calls = 0, sum(sizes)
    for label, n in zip(LABELS, sizes):
        seen += n
        if calls and seen * 2 >= calls:
            return label
    return None


def advice(entry: Entry) -> list[str]:
    """What would have helped this file, most important first; empty if nothing is seen."""
    said = []
    calls = entry["reads"] + entry["writes"]
    seconds = entry["read_s"] + entry["write_s"]
    if entry["errors"]:
        said.append("writes failed in the background: look at the program's own error messages")
    if entry["left"]:
        said.append(
            f"it was left to the kernel ({entry['left']}) after {calls} calls: "
            "what follows that is neither buffered nor counted"
        )
    if entry["wait_s"] > 0.25 * seconds and entry["wait_s"] > 0.05:
        said.append(
            f"{entry['wait_s']:.1f} of {seconds:.1f} s were spent waiting for the background: "
            "more or larger buffers (count=, size=) help if the program pauses between writes"
        )
    if entry["syncs"] * 4 > entry["writes"] > _ENOUGH_CALLS:
        said.append("it is synced or asked for its size after almost every write: do that less")
    if entry["direct_writes"] * 2 > entry["writes"] > _ENOUGH_CALLS:
        said.append(
            "most writes went to the file system at once: they are as large as a buffer (then "
            "buffering cannot help), synchronous, or the rule says safe"
        )
    if entry["writes"] > _ENOUGH_CALLS and entry["flushes"] * 2 > entry["writes"]:
        said.append(
            "writes do not follow each other in the file: sort them, or write larger pieces"
        )
    if entry["reads"] > _ENOUGH_CALLS and entry["read_hits"] * 2 < entry["reads"]:
        said.append("reads do not follow each other in the file: read larger pieces at a time")
    if entry["ahead"] > 4 and entry["ahead_used"] * 2 < entry["ahead"]:
        said.append("half of what was read ahead was never used: prefetch=0")
    return said
