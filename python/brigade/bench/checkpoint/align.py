"""Headers before large blocks: each rank writes a small header and then a block, four times.

Two places: one shared file, in which every rank's region begins where the last one's ends, so that
a header moves all blocks off their boundaries; or a file for each rank. The rates are those of the
published table, writing with fsync: all blocks by the seconds from when the first rank begins until
the last one has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from brigade.bench.checkpoint.plan import BACK_ENDS, Cell, size_name
from brigade.bench.wide import console_for
from brigade.errors import UsageError

PLACES = {"shared": "posix-shared", "own": "posix-fpp"}
COLUMNS = ("read_offset", "read_plain", "write_offset", "write_plain")


def cells(headers: Sequence[int], block: int, ranks: int) -> list[Cell]:
    """One cell without a header, and one for each header."""
    wrong = [size for size in (*headers, block) if size < 8 or size % 8]
    if wrong:
        raise UsageError(f"{wrong[0]} bytes: sizes are multiples of 8, and not 0")
    plain = Cell("plain", block, ranks, 1, (ranks,), (block,))
    return [plain] + [
        Cell(f"header {size_name(size)}", block, ranks, 1, (ranks,), (block,), header=size)
        for size in headers
    ]


def variants(back_ends: Sequence[str], places: Sequence[str]) -> list[str]:
    """Back ends as checkpoint.plan.variant knows them, for `brigade` and `posix` in each place.
    Brigade's own files are its layout `parts`: a file a writer."""
    made = []
    for back_end in back_ends:
        for place in places:
            if back_end == "posix":
                made.append(PLACES[place])
            elif place == "shared":
                made.append("brigade")
            else:
                made.append("brigade:layout=parts:writers={ranks}")
    assert all(name.partition(":")[0] in BACK_ENDS for name in made)
    return made


def rates(samples: Sequence[dict[str, Any]], system: str) -> list[dict[str, Any]]:
    """The published table's rows: a row for each variant, header and iteration, MB/s."""
    rows = []
    plain = {_turn(sample): sample for sample in samples if not sample["header"]}
    for sample in samples:
        if sample["header"]:
            other = plain[_turn(sample)]
            rows.append(
                {
                    "system": system,
                    "variant": sample["variant"],
                    "ranks": sample["ranks"],
                    "iteration": sample["round"],
                    "header": sample["header"],
                    "read_offset": _rate(sample, "read"),
                    "read_plain": _rate(other, "read"),
                    "write_offset": _rate(sample, "write"),
                    "write_plain": _rate(other, "write"),
                }
            )
    order = ("variant", "header", "ranks", "iteration")
    return sorted(rows, key=lambda row: tuple(row[key] for key in order))


def _turn(sample: dict[str, Any]) -> tuple[Any, ...]:
    """In which there is one cell without a header."""
    return tuple(sample[key] for key in ("variant", "ranks", "round"))


def _rate(sample: dict[str, Any], direction: str) -> float:
    """MB/s as published: ranks * block by seconds."""
    return float(sample["ranks"] * sample["record"] / 1e6 / sample[direction]["total"])


def print_report(report: dict[str, Any]) -> None:
    """The tables of `brigade bench align --json`'s object."""
    print_table(report["rows"], report["settings"]["block"])


def print_table(rows: Sequence[dict[str, Any]], block: int) -> None:
    """One published table for each variant and header, on standard output."""
    for variant, header in dict.fromkeys((row["variant"], row["header"]) for row in rows):
        title = f"{variant}: header {size_name(header)}, block {size_name(block)}; MB/s"
        table = Table(title=title, box=None, title_justify="left", pad_edge=False)
        for text in ("system", "ranks", "iteration", *COLUMNS, "read ratio", "write ratio"):
            table.add_column(text, justify="left" if text == "system" else "right")
        for row in rows:
            if (row["variant"], row["header"]) == (variant, header):
                table.add_row(
                    row["system"], str(row["ranks"]), str(row["iteration"]),
                    *(f"{row[name]:,.0f}" for name in COLUMNS),
                    f"{row['read_offset'] / row['read_plain']:.2f}",
                    f"{row['write_offset'] / row['write_plain']:.2f}",
                )  # fmt: skip
        console_for(table).print(table)


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """The published file's form, with the variant and header before the rates."""
    names = ("system", "variant", "header", "ranks", "iteration", *COLUMNS)
    lines = [",".join(names)]
    for row in rows:
        lines.append(
            ",".join(
                f"{row[name]:.0f}" if isinstance(row[name], float) else str(row[name])
                for name in names
            )
        )
    return "\n".join(lines) + "\n"
