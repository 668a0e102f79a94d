"""A program's barriers while its checkpoint is written: `brigade bench overlap`, with its samples.

python bench/overlap.py --out bench/results/overlap-2-ranks.json -- -n 2 --rounds 4
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="where the samples go")
    parser.add_argument("options", nargs="*", help="of `brigade bench overlap`, after --")
    chosen = parser.parse_args()
    command = [sys.executable, "-m", "brigade", "bench", "overlap", "--json", *chosen.options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    report = {"benchmark": "overlap", **json.loads(done.stdout)}
    chosen.out.write_text(json.dumps(report) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
