#!/usr/bin/env python3
"""What tracing costs: a Python start-up and a compute loop, plainly, under brigade-trace (with its
filter, and with every call stopped) and under strace (with and without its filter), in turn.

    python bench/trace.py                              15 rounds, ratio of medians
    python bench/trace.py --python VENV/bin/python --modules numpy,scipy.stats --repeats 21

strace writes what a profile needs of it (-f -ttt -T -y); its filter shows the calls that
brigade-trace has; the moment of the entry point only brigade-trace finds out, and without it
(--no-entry) both do the same. Of the start-up all is timed, of the compute loop the loop.

`held` is the time in which tasks stood while brigade-trace dealt with them; what tracing costs
beyond it is the kernel's: waking the tracer, and the task again. Writes raw samples to OUT as JSON.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH), str(BENCH.parent / "python")]

from support.samples import median, save  # noqa: E402

from brigade.paths import native as part  # noqa: E402
from brigade.trace import native  # noqa: E402
from brigade.trace.events import KIND_OF  # noqa: E402

VARIANTS = (
    "plain",
    "brigade-trace",
    "brigade-trace --no-entry",
    "brigade-trace --all-stops",
    "strace -f --seccomp-bpf",
    "strace -f",
)
LOOP = """\
import time
n, start, cpu = 0, time.perf_counter(), time.process_time()
for i in range(20_000_000):
    n += i & 3
print(time.perf_counter() - start, time.process_time() - cpu)
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, help="the interpreter that is started")
    parser.add_argument("--modules", default="numpy", help="what its start-up imports")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--loops", type=int, default=5, help="rounds of the compute loop")
    parser.add_argument("--out", type=Path, default=Path("out/trace/trace.json"))
    return parser.parse_args()


def main() -> int:
    options = arguments()
    programs = {
        "start-up": ([options.python, "-c", f"import {options.modules}"], options.repeats),
        "compute": ([options.python, "-I", "-S", "-c", LOOP], options.loops),
    }
    samples: list[dict[str, Any]] = []
    for name, (words, repeats) in programs.items():
        for repeat in range(-1, repeats):  # the first round only warms the caches
            turn = repeat % len(VARIANTS)  # who comes first changes: so does the machine
            for variant in VARIANTS[turn:] + VARIANTS[:turn]:
                sample = {
                    "program": name,
                    "variant": variant,
                    "repeat": repeat,
                    **take(variant, words),
                }
                if repeat >= 0:
                    samples.append(sample)
    settings = {"modules": options.modules, "loop": LOOP}
    save(options.out, "trace", settings, samples)
    for name in programs:
        report(samples, name)
    print(f"raw samples: {options.out}")
    return 0


def take(variant: str, words: list[str]) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="brigade-bench-trace-"))
    try:
        command = prefix(variant, folder) + words
        start = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment())
        seconds = time.perf_counter() - start
        sample: dict[str, Any] = {"seconds": seconds}
        if done.stdout:  # the loop's own: seconds, and those of a processor
            sample["seconds"], sample["cpu_s"] = map(float, done.stdout.split())
        if variant.startswith("brigade"):
            says = native.load(folder)
            sample.update(stops=says.mechanism.stops, held_s=says.mechanism.stopped_ns / 1e9)
            sample["events"] = sum(1 for _ in says.events())
        return sample
    finally:
        shutil.rmtree(folder)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}


def prefix(variant: str, folder: Path) -> list[str]:
    if variant == "plain":
        return []
    if variant.startswith("brigade"):
        return [str(part("brigade-trace")), "--out", str(folder), *variant.split()[1:], "--"]
    words = [*variant.split(), "-ttt", "-T", "-y", "-o", str(folder / "out")]
    return words + (["-e", f"trace={known_calls()}"] if "bpf" in variant else [])


def known_calls() -> str:
    """The calls of the trace that strace knows; "?" lets it pass over others."""
    return ",".join(f"?{call}" for call in KIND_OF)


def report(samples: list[dict[str, Any]], program: str) -> None:
    plain = median(samples, "seconds", program=program, variant="plain")
    assert plain is not None
    print(f"{program}: plain {plain * 1e3:.1f} ms")
    for variant in VARIANTS[1:]:
        where = {"program": program, "variant": variant}
        seconds = median(samples, "seconds", **where) or 0.0
        line = f"  {variant:27} {seconds * 1e3:8.1f} ms  {seconds / plain:6.3f}"
        stops, held = median(samples, "stops", **where), median(samples, "held_s", **where)
        if stops and held is not None:
            line += f"  {stops:.0f} stops, {1e6 * (seconds - plain) / stops:.2f} us each,"
            line += f" of which {1e6 * held / stops:.2f} us in the tracer"
        cpu, plain_cpu = (
            median(samples, "cpu_s", program=program, variant=name) for name in (variant, "plain")
        )
        if cpu and plain_cpu:
            line += f"  processor seconds {cpu / plain_cpu:.3f}"
        print(line)


if __name__ == "__main__":
    raise SystemExit(main())
