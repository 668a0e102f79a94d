"""What every benchmark in the lab can be told."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import Any, Callable

from brigade import paths


def numbers(text: str) -> list[int]:
    """`4,8,16` as a list."""
    return [int(number) for number in text.split(",")]


def words(separator: str = ",") -> Callable[[str], list[str]]:
    """A list of words with something between them."""
    return lambda text: text.split(separator)


def with_io() -> list[str]:
    """What a C program is compiled with that calls libbrigade_io."""
    include = Path(__file__).parents[2] / "include"
    native = paths.native("libbrigade_io.so").parent
    return [f"-I{include}", f"-L{native}", f"-Wl,-rpath,{native}", "-lbrigade_io"]


def end_in_order() -> None:
    """SIGTERM ends this process as Ctrl-C does: what was brought up or set is put back."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def lab_parser(doc: str | None, lab: str, out: str, **defaults: Any) -> argparse.ArgumentParser:
    """A parser that shows `doc` as it is written; `defaults`: of nodes and repeats, if not 4, 1.
    Who has a lab is to end in order."""
    end_in_order()
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=defaults.get("nodes", 4))
    parser.add_argument("--repeats", type=int, default=defaults.get("repeats", 1))
    parser.add_argument("--lab", default=lab, help="name of the lab to bring up")
    parser.add_argument("--out", type=Path, default=Path(out))
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path("/var/tmp/brigade-bench"),
        help="where what is installed or generated is kept",
    )
    return parser
