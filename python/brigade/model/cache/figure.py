"""Simulations as pictures. Call model.figure.check first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from brigade.model.cache.compare import Phase
from brigade.model.figure import write
from brigade.page.figure import COLOURS
from brigade.printable import size

Results = Sequence[dict[str, Any]]
_BAND = 0.15


def draw(results: Results, path: str) -> None:
    """Rates of all writes and reads over time, and what each `look` found."""
    import matplotlib.pyplot as plt

    figure, (rates, places) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    moves = [one for one in results if one.get("samples")]
    for number, one in enumerate(moves):
        _rate(rates, one, one["begin"], COLOURS[number % len(COLOURS)], "-", one["name"])
    rates.set(yscale="log", xlabel="seconds", ylabel="MiB/s of each call")
    for number, one in enumerate(one for one in results if one["operation"] == "look"):
        _place(places, one, COLOURS[number % len(COLOURS)], "-", one["name"])
    places.set(xlabel="place in the file, %", ylabel="cached, %", ylim=(-5, 105))
    save(figure, [rates, places], path)


def draw_comparison(
    measured: Results, simulated: Mapping[str, Results], phases: dict[str, list[Phase]], path: str
) -> None:
    """Does the system behave as designed? Seconds of all phases, rates of one series, and what is
    cached: as measured, and as each policy has it."""
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    seconds, rates, large, small = grid.flat
    _seconds(seconds, phases)
    series = [i for i, one in enumerate(measured) if one.get("samples") and _slows(one)]
    if series:
        at = series[-1]
        _rate(rates, measured[at], 0.0, "black", "-", "measured")
        for colour, (name, results) in zip(COLOURS, simulated.items()):
            _rate(rates, results[at], 0.0, colour, "--", f"simulated, {name}")
        rates.set_title(f"{measured[at]['name']}: each call's rate", fontsize=9)
    rates.set(yscale="log", xlabel="seconds", ylabel="MiB/s")
    found = [i for i, one in enumerate(measured) if one["operation"] == "look"]
    for axis, at in zip((large, small), (found[:1] + found[-2:-1])):
        _place(axis, measured[at], "black", "-", "measured")
        for colour, (name, results) in zip(COLOURS, simulated.items()):
            _place(axis, results[at], colour, "--", f"simulated, {name}")
        axis.set_title(measured[at]["name"], fontsize=9)
        axis.set(xlabel="place in the file, %", ylabel="cached, %", ylim=(-5, 105))
    save(figure, list(grid.flat), path)


def _slows(one: dict[str, Any]) -> bool:
    return one["operation"] == "write" and str(one["file"]).startswith(("back", "large"))


def _seconds(axis: Any, phases: dict[str, list[Phase]]) -> None:
    for colour, (name, found) in zip(COLOURS, phases.items()):
        axis.plot(
            [one.measured for one in found], [one.simulated for one in found], ".",
            color=colour, label=name, alpha=0.7,
        )  # fmt: skip
    values = [one.measured for found in phases.values() for one in found] or [1.0]
    ends = [min(values) / 1.5, max(values) * 1.5]
    axis.plot(ends, ends, color="black", linewidth=0.8)
    axis.fill_between(
        ends, [(1 - _BAND) * one for one in ends], [(1 + _BAND) * one for one in ends],
        color="black", alpha=0.1, label="within 15%",
    )  # fmt: skip
    axis.set(xscale="log", yscale="log", xlabel="seconds measured", ylabel="seconds simulated")
    axis.set_title("time of each phase", fontsize=9)


def _rate(
    axis: Any, step: dict[str, Any], begin: float, colour: str, line: str, label: str
) -> None:
    times, values = [], []
    for at, took, calls, _ in step["samples"]:
        times += [begin + at, begin + at + took]
        values += 2 * [calls * step["size"] / max(took, 1e-9) / 2**20]
    axis.plot(times, values, line, color=colour, linewidth=0.9, label=label)


def _place(axis: Any, step: dict[str, Any], colour: str, line: str, label: str) -> None:
    parts = step["parts"]
    each = step["pages"] / len(parts)
    axis.plot(
        [100 * (i + 0.5) / len(parts) for i in range(len(parts))],
        [100 * part / each for part in parts],
        line, color=colour, linewidth=1, label=f"{label} ({size(step['bytes'])})",
    )  # fmt: skip


def save(figure: Any, axes: Sequence[Any], path: str) -> None:
    """Finish the axes, and write the figure. Raises BrigadeError if it cannot be written."""
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(frameon=False, fontsize=7)
    write(figure, path)
