"""What a calibration found: the model's system, the JSON, sentences, and a figure."""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from brigade import __version__
from brigade.calibrate.measure import Measured
from brigade.calibrate.plan import Limits
from brigade.model import calibration
from brigade.model.calibration import Fit
from brigade.model.system import MEASURABLE, System, to_json
from brigade.trial.mounts import Mount

_BUSY = 0.75  # of the clients' processors: from here on they may be what was measured
_FAR = 0.25  # misfit of the bursts: from here on the number of servers says little
_BY_ITSELF_S = 10e-6  # a quicker answer did not come over a network: nothing to be remembered
_TOLD = 0.1  # of the service time of a look-up
_MEASURED = ("service_s", "servers", "round_trip_s", "link_bandwidth")
_BOUNDS = ("service_s", "servers", "round_trip_s")  # where the limit was not reached


def system(found: Measured, fitted: Fit, name: str) -> System:
    """The machine as `brigade predict --system` reads it; what was not measured is assumed."""
    known, _ = calibration.remembered(found.files_again, fitted.rest_s)
    known_absent, _ = calibration.remembered(found.absent_again, fitted.rest_s)
    more: dict[str, Any] = {"caches_names": known > 0} if found.files_again else {}
    if found.absent_again:
        more["caches_absent"] = known_absent > 0
    if known > 0:
        more["attribute_life_s"] = known
    if found.read:
        more["link_bandwidth"] = max(rate / found.nodes[n] for n, rate in found.read.items())
    measured = [name for name in _MEASURED if name in more or name != "link_bandwidth"]
    measured += [name for name in ("caches_names", "caches_absent") if name in more]
    if not fitted.reached:
        measured = [name for name in measured if name not in _BOUNDS]
    return System(
        name=name,
        service_s=fitted.service_s,
        service_by_kind=by_kind(found, fitted, known > 0),
        service_cv=fitted.service_cv,
        servers=fitted.servers,
        round_trip_s=fitted.round_trip_s,
        assumed=tuple(field for field in MEASURABLE if field not in measured),
        spread={"service_s": max(0.02, fitted.spread)} if fitted.reached else {},
        limit_reached=fitted.reached,
        **more,
    )


def by_kind(found: Measured, fitted: Fit, names_known: bool) -> dict[str, float]:
    """Service seconds of the kinds that were measured at rest, less round trips and look-ups. One
    that cannot be told from nothing is left out: a cache may have answered."""
    services = {"lookup": fitted.service_s}
    again = 0.0 if names_known else fitted.rest_s  # opening by name looks the name up again

    def service(kind: str, before_s: float) -> float:
        seconds = found.kinds.get(kind)
        return statistics.median(seconds) - before_s - fitted.round_trip_s if seconds else 0.0

    # a folder is opened and then listed, each on a way of its own; its name is known as a rule
    folder_s = max(0.0, service("opendir", 0.0)) + max(0.0, service("list", 0.0))
    measured = {"open": service("open", again), "readlink": service("link", again)}
    for kind, service_s in {**measured, "readdir": folder_s}.items():
        if service_s > _TOLD * fitted.service_s:
            services[kind] = service_s
    return services


def as_dict(
    found: Measured, fitted: Fit, limits: Limits, where: str, mount: Mount | None, words: list[str]
) -> dict[str, Any]:
    """Everything, for machines."""
    known = calibration.remembered(found.files_again, fitted.rest_s)
    absent = calibration.remembered(found.absent_again, fitted.rest_s)
    return {
        "brigade": __version__,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "at": where,
        "mount": asdict(mount) if mount else None,
        "launcher": words,
        "hosts": found.hosts,
        "ranks": found.ranks,
        "limits": asdict(limits),
        "requests": found.requests,
        "seconds": found.seconds,
        "stopped": found.stopped,
        "busy": found.busy,
        "points": [asdict(point) for point in found.points],
        "fit": asdict(fitted),
        "bursts": found.bursts,
        "kinds": {kind: statistics.median(seconds) for kind, seconds in found.kinds.items()},
        "remembered": {"files": known, "absent": absent},
        "bytes_per_second": found.read,
        "system": to_json(system(found, fitted, _name(where, mount))),
    }


def _name(where: str, mount: Mount | None) -> str:
    return f"{mount.fstype} at {mount.point}" if mount else where


def sentences(data: dict[str, Any]) -> list[str]:
    """What the figures mean, and where they cannot be trusted."""
    fitted, mount = data["fit"], data["mount"]
    found = []
    if mount and not Mount(**mount).shared:
        found.append(
            f"{mount['point']} is {mount['fstype']}, not a file system that nodes share: this is "
            "how quick this machine is by itself"
        )
    if fitted["reached"]:
        found.append(
            f"{fitted['servers']} at a time, {_time(fitted['service_s'])} each, and "
            f"{_time(fitted['round_trip_s'])} on the way: at most "
            f"{fitted['throughput']:,.0f} look-ups a second"
        )
        if fitted["also"]:
            others = ", ".join(map(str, fitted["also"]))
            found.append(f"the number of servers is not certain: {others} would explain it as well")
        if fitted["misfit"] > _FAR:
            clocks = ", or the nodes' clocks differ" if len(data["hosts"]) > 1 else ""
            found.append(
                f"no number of servers explains the bursts well (they are off by "
                f"{100 * fitted['misfit']:.0f}% of the answer time at rest): other work came in "
                f"between{clocks}; calibrate again{', from one node' if clocks else ''}"
            )
    else:
        found.append(
            f"the limit was not reached ({data['stopped']}): more than "
            f"{fitted['throughput']:,.0f} look-ups a second; servers and service time are bounds"
        )
    if data["busy"] > _BUSY:
        found.append(
            f"the clients' own processors were {100 * data['busy']:.0f}% in use: the file system "
            "may be quicker than they could ask (start them on more nodes)"
        )
    if fitted["rest_s"] > _BY_ITSELF_S:
        found += _memory(data["remembered"])
    return found


def _memory(remembered: dict[str, tuple[float, float | None]]) -> list[str]:
    found = []
    for kind, label in (("files", "found"), ("absent", "not there")):
        known, forgotten = remembered[kind]
        if known and forgotten:
            text = f"are remembered by the client for {known:g} to {forgotten:g} s"
        elif known:
            text = f"are remembered by the client for {known:g} s or longer"
        elif forgotten:
            text = "are not remembered by the client: each rank asks anew"
        else:
            text = "may be remembered or not: there was no time to find out"
        found.append(f"names that were {label} {text}")
    return found


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def print_report(data: dict[str, Any]) -> None:
    """For people, on standard output."""
    from rich.table import Table

    from brigade.console import make_console

    console = make_console(highlight=False)
    table = Table(box=None, pad_edge=False)
    for title in ("clients", "look-ups", "per second", "answer, mean", "median"):
        table.add_column(title, justify="right")
    for point in data["points"]:
        table.add_row(
            str(point["clients"]),
            f"{point['requests']:,}",
            f"{point['throughput']:,.0f}",
            _time(point["mean_s"]),
            _time(point["median_s"]),
        )
    console.print(table)
    console.print()
    table = Table(box=None, pad_edge=False)
    table.add_column("at rest")
    table.add_column("median", justify="right")
    for kind, seconds in data["kinds"].items():
        table.add_row(kind, _time(seconds))
    for clients, rate in data["bytes_per_second"].items():
        table.add_row(f"reading, {clients} at once", f"{rate / 1e6:,.0f} MB/s")
    console.print(table)
    console.print()
    for sentence in sentences(data):
        console.print(f"- {sentence}", soft_wrap=False)
    asked, took = data["requests"], data["seconds"]
    console.print(f"- asked at most {asked:,} requests in {took:.1f} s; {data['stopped']}")


def draw(data: dict[str, Any], path: Path) -> None:
    """Throughput and answer time against clients, and what the fit says of them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fitted = Fit(**data["fit"])
    clients = [point["clients"] for point in data["points"]]
    fine = [1 + (max(clients) - 1) * i / 200 for i in range(201)]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    curves = [calibration.predicted(fitted, n) for n in fine]
    left.plot(fine, [x for x, _ in curves], "--", color="#8c8c8c", label="bounds of the fit")
    left.plot(clients, [p["throughput"] for p in data["points"]], "o", color="#4c72b0")
    left.set_ylabel("look-ups a second")
    right.plot(fine, [1e3 * s for _, s in curves], "--", color="#8c8c8c", label="bounds of the fit")
    right.plot(clients, [1e3 * p["mean_s"] for p in data["points"]], "o", color="#4c72b0")
    right.set_ylabel("answer time, ms (mean)")
    for axes in (left, right):
        axes.set_xlabel("clients at once")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    servers = f"{fitted.servers} server{'s' if fitted.servers != 1 else ''}"
    figure.suptitle(f"{data['system']['name']}: {servers}, {_time(fitted.service_s)} a look-up")
    figure.savefig(path, dpi=120)
    plt.close(figure)
