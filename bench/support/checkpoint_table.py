"""What of the checkpoint benchmark's targets is reached, as tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brigade.bench.checkpoint.plan import size_name

Cell = dict[str, Any]
MPIIO = ("ompio", "romio")
FASTER, AS_FILES, STEADIER = 3.0, 0.95, 0.5  # the targets


def best_mpiio(cell: Cell, direction: str) -> dict[str, float] | None:
    """The ratio to the faster of OMPIO and ROMIO."""
    ratios = [cell["ratios"][name][direction] for name in MPIIO if name in cell["ratios"]]
    return min(ratios, key=lambda ratio: ratio["ratio"]) if ratios else None


def directions(cells: Sequence[Cell]) -> list[str]:
    """Which of `write` and `read` were measured."""
    return [way for way in ("write", "read") if cells[0]["variants"]["brigade"].get(way)]


def small(cell: Cell) -> bool:
    """Where Brigade shall be FASTER times as fast as both."""
    return cell["pattern"] == "4d" or (cell["pattern"], cell["record"]) == ("strided", 1024)


def print_table(cells: Sequence[Cell]) -> None:
    columns = ["ranks", "pattern", "record", "MiB"]
    for direction in directions(cells):
        columns += [f"{direction} ms", "of MPI-IO's best", "of file per process"]
    print(f"| {' | '.join(columns)} |")
    print(f"|{'|'.join('---' if name == 'pattern' else '--:' for name in columns)}|")
    for cell in cells:
        words = [str(cell["ranks"]), cell["pattern"], size_name(cell["record"])]
        words.append(f"{cell['bytes'] / 2**20:.1f}")
        for direction in directions(cells):
            middle = cell["variants"]["brigade"][direction]["median"]
            words += [f"{1000 * middle:,.1f}", _shown(best_mpiio(cell, direction))]
            words.append(_shown(cell["ratios"]["posix-fpp"][direction]))
        print(f"| {' | '.join(words)} |")


def _shown(ratio: dict[str, float] | None) -> str:
    return f"{ratio['ratio']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]" if ratio else "-"


def print_steady(cells: Sequence[Cell]) -> None:
    print("\n| pattern | variant | median ms | quartiles | p10-p90 | (p90 - p10) / median |")
    print("|---|---|--:|--:|--:|--:|")
    for cell in cells:
        for name, ways in cell["variants"].items():
            one = ways["write"]
            middle, first, third, low, high = (
                1000 * one[key] for key in ("median", "q1", "q3", "p10", "p90")
            )
            shown = f"{cell['pattern']} {size_name(cell['record'])}"
            print(
                f"| {shown} | {name} | {middle:,.1f} | {first:,.1f}-{third:,.1f}"
                f" | {low:,.1f}-{high:,.1f} | {one['spread']:.2f} |"
            )


def verdicts(report: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """(target, figure, reached) for each target."""
    cells = report["cells"]
    found = []
    for direction in directions(cells):
        best = {_name(cell): best_mpiio(cell, direction) for cell in cells}
        found.append(_least(f"{direction}: never slower than OMPIO and ROMIO", best, 1.0))
        few = {_name(cell): best_mpiio(cell, direction) for cell in cells if small(cell)}
        text = f"{direction}: {FASTER:g} times faster, strided 1 KiB and 4-D"
        found.append(_least(text, few, FASTER))
        files = {_name(cell): cell["ratios"]["posix-fpp"][direction] for cell in cells}
        found.append(_least(f"{direction}: {AS_FILES} of a file per process", files, AS_FILES))
    for pattern, steady in report["steady"].items():
        ways = steady["cells"][0]["variants"]
        own, other = ways["brigade"]["write"], ways["ompio"]["write"]
        seconds = (own["p90"] - own["p10"]) / (other["p90"] - other["p10"])
        text = f"{pattern}: spread beside another job at most {STEADIER} of OMPIO's, "
        found.append((text + "in seconds", f"{seconds:.2f}", seconds <= STEADIER))
        share = own["spread"] / other["spread"]
        found.append((text + "each by its median", f"{share:.2f}", share <= STEADIER))
    return found


def _name(cell: Cell) -> str:
    return f"{cell['pattern']} {size_name(cell['record'])}, {cell['ranks']} ranks"


def _least(text: str, ratios: dict[str, Any], target: float) -> tuple[str, str, bool]:
    there = {name: ratio for name, ratio in ratios.items() if ratio}
    enough = sum(ratio["ratio"] >= target for ratio in there.values())
    worst = min(there, key=lambda name: there[name]["ratio"])
    shown = f"{enough} of {len(there)} cells; least {_shown(there[worst])} ({worst})"
    return text, shown, enough == len(there)


def print_verdicts(report: dict[str, Any], title: str) -> None:
    print(f"\n| target, {title} | measured | reached |")
    print("|---|---|---|")
    for text, shown, reached in verdicts(report):
        print(f"| {text} | {shown} | {'yes' if reached else 'no'} |")
