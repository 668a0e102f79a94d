"""Runs in a rank of `brigade bench pynamic`: import every module, then visit every function.

Prints one line that starts with MARK; `brigade bench` gathers them. Runs under any Python 3.9 or
later and needs nothing but its standard library.
"""

import os
import time

MAIN_NS = time.time_ns()  # main is reached
MAIN_BOOT_NS = time.clock_gettime_ns(time.CLOCK_BOOTTIME)

import importlib  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402

MARK = "brigade-bench: "
RANKS = ("BRIGADE_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")


def startup_s() -> float:
    """Seconds from the start of this process to main, as exact as the kernel's ticks (10 ms)."""
    with open("/proc/self/stat", encoding="ascii") as stat:
        ticks = int(stat.read().rpartition(")")[2].split()[19])
    return max(0.0, MAIN_BOOT_NS / 1e9 - ticks / os.sysconf("SC_CLK_TCK"))


def main() -> None:
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "world.json"), encoding="utf-8") as file:
        world = json.load(file)
    sys.path[:0] = [os.path.join(folder, entry) for entry in world["python_path"]]
    begin = time.monotonic_ns()
    modules = [importlib.import_module(name) for name in world["imports"]]
    imported = time.monotonic_ns()
    total = sum(module.visit() for module in modules) % 2**64
    visited = time.monotonic_ns()
    answer = {
        "rank": next((int(os.environ[name]) for name in RANKS if name in os.environ), 0),
        "host": os.uname().nodename,
        "main_ns": MAIN_NS,
        "startup": startup_s(),
        "import": (imported - begin) / 1e9,
        "visit": (visited - imported) / 1e9,
        "checksum": f"{total:016x}",
    }
    os.write(1, (MARK + json.dumps(answer) + "\n").encode())  # one write: ranks share the pipe


if __name__ == "__main__":
    main()
