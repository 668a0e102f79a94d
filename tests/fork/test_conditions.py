"""Whether what a script chooses by is what it is given."""

from __future__ import annotations

import ast

import pytest

from brigade.fork.source.conditions import Conditions

IMPORTS = """\
import argparse, json, os, random, socket, sys, time
from os import environ, path
from pathlib import Path
import numpy as np
from mpi4py import MPI
from config import cfg
"""


def choice(text: str) -> bool:
    """Whether the condition of the last `if` is given."""
    statements = ast.parse(IMPORTS + text + "\n").body
    found = [
        (node, scope)
        for one in statements
        for scope in [one.name if isinstance(one, ast.FunctionDef) else ""]
        for node in ast.walk(one)
        if isinstance(node, ast.If)
    ]
    node, scope = found[-1]
    return Conditions(statements).are_given(node.test, scope)


@pytest.mark.parametrize(
    "text",
    [
        "if '--double' in sys.argv: pass",
        "if len(sys.argv) > 2 and sys.argv[1] == 'x': pass",
        "if os.environ.get('DOUBLE'): pass",
        "if 'DOUBLE' in os.environ or 'X' not in environ: pass",
        "if environ['DOUBLE'] == '1' or os.getenv('X', '') != '': pass",
        "if __name__ == '__main__': pass",
        "if sys.version_info >= (3, 9): pass",
        "if os.path.exists('restart') and path.isdir(sys.argv[1]): pass",
        "p = argparse.ArgumentParser()\nargs = p.parse_args()\nif args.double: pass",
        "p = argparse.ArgumentParser()\nargs, rest = p.parse_known_args()\nif not rest: pass",
        "with open('case') as f: case = json.load(f)\nif case['n'] > 2: pass",
        "case = Path('case').read_text().split()\nif case[0] == 'double': pass",
        "def parse():\n    return argparse.ArgumentParser().parse_args()\n"
        "args = parse()\nif args.double: pass",
        "def main(args):\n    if args.x: pass\nmain(argparse.ArgumentParser().parse_args())",
        "def main(args, deep=True):\n    if args.x and deep: pass\nmain(sys.argv)",
        "for word in sys.argv:\n    if word == 'x': pass",
        "n = 1\nn += len(sys.argv)\nif n: pass",
    ],
)
def test_arguments_variables_and_files_are(text: str) -> None:
    assert choice(text)


@pytest.mark.parametrize(
    "text",
    [
        "if MPI.COMM_WORLD.rank > 2: pass",
        "rank = MPI.COMM_WORLD.Get_rank()\nif rank == 0: pass",
        "if os.environ['SLURM_PROCID'] == '0': pass",
        "if int(os.getenv('OMPI_COMM_WORLD_RANK')) == 0: pass",
        "if os.environ[cfg.name] == '0': pass",
        "if int(os.environ['OMPI_COMM_WORLD_SIZE']) > 2: pass",
        "if socket.gethostname() == 'n0': pass",
        "if os.cpu_count() > 2: pass",
        "if os.getpid() % 2: pass",
        "if time.time() > 5: pass",
        "if random.random() > 5: pass",
        "if sys.stdin.read() == 'double': pass",
        "if input(): pass",
        "if cfg.double: pass",
        "if np.zeros(3).any(): pass",
        "if Path.cwd().name == 'double': pass",
        "x = 1\nx = MPI.COMM_WORLD.size\nif x: pass",
        "def main(rank):\n    if rank == 0: pass\nmain(MPI.COMM_WORLD.rank)",
        "def main(rank):\n    if rank == 0: pass\nspawn(main)",
        "@app.command()\ndef main(double=False):\n    if double: pass\nmain()",
        "class A:\n    def f(self): return 1\nif A().f(): pass",
        "def rank():\n    return MPI.COMM_WORLD.rank\nif rank() == 0: pass",
        "def f(*words):\n    if words: pass\nf(*cfg)",
        "if (lambda: 1)(): pass",
        "if unknown: pass",
        "if [name for name in os.environ if name.startswith('APP_')]: pass",
        "for name in environ:\n    if name == 'x': pass",
        "given = dict(os.environ)\nif given: pass",
        "if cfg.name in os.environ: pass",
        "if os.environ.get('X', cfg.x): pass",
    ],
)
def test_ranks_machines_times_and_others_are_not(text: str) -> None:
    assert not choice(text)
