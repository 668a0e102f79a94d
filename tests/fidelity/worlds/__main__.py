"""Judge worlds by hand:  python -m worlds SEED... | FILE.json... | --from SEED --count N

Prints what differs. With --keep, leaves each failing world's folder and says where it is; with
--shrink, writes the smallest world that still fails to kept/.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "view")]

from .build import Builder, CannotBuild  # noqa: E402
from .compare import Bench, judge  # noqa: E402
from .describe import ElfWorld, features, from_json  # noqa: E402
from .draw import draw  # noqa: E402
from .shrink import keep, shrink  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="worlds", description=__doc__.splitlines()[0])
    parser.add_argument("worlds", nargs="*", help="seeds, or JSON files")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--shrink", action="store_true")
    options = parser.parse_args()
    names = options.worlds + [str(options.first + i) for i in range(options.count)]
    with tempfile.TemporaryDirectory(prefix="brigade-objects-") as folder:
        builder = Builder(Path(folder))
        start = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            failed = list(pool.map(lambda name: _one(name, builder, options), names))
        print(f"{sum(failed)} of {len(names)} differ, {time.monotonic() - start:.1f} s")
    had = Counter(word for name in names for word in features(_world(name)))
    print(", ".join(f"{word} {count}" for word, count in sorted(had.items())))
    return 1 if any(failed) else 0


def _world(name: str) -> ElfWorld:
    return from_json(Path(name).read_text()) if name.endswith(".json") else draw(name)


def _one(name: str, builder: Builder, options: argparse.Namespace) -> bool:
    world = _world(name)
    try:
        verdict = judge(world, builder)
    except CannotBuild as error:
        print(f"=== world {name}: cannot be built: {error}")
        return True
    if not verdict.differences:
        return False
    print(f"=== world {name}\n{verdict}", flush=True)
    if options.shrink:
        small = shrink(world, builder, next(iter(verdict.differences)))
        print(f"kept as {keep(small, name)}\n{judge(small, builder)}", flush=True)
        world = small
    if options.keep:
        folder = Path(tempfile.mkdtemp(prefix="brigade-kept-"))
        bench = Bench(world, builder, folder)
        print(f"in {folder}: cd {bench.cwd} && {' '.join(map(repr, bench.command()))}")
    return True


if __name__ == "__main__":
    sys.exit(main())
