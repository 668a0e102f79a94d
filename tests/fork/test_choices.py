"""Which imports of a program cannot depend on what it is given."""

from __future__ import annotations

import pytest

from brigade.fork.source.choices import first_choice

PLAIN = '''"""A program."""
from __future__ import annotations
import logging, os, sys
import numpy as np
import conf
from base import Base
from typing import TYPE_CHECKING
try:
    import cupy
except ImportError:
    cupy = None
if TYPE_CHECKING:
    import torch
if sys.version_info >= (3, 11):
    import tomllib
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("MKL_NUM_THREADS", "1")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
np.random.seed(0)
logger = logging.getLogger(__name__)
SIZE = 2 * 1024
NAMES = {"a": [1, 2], **OTHERS}
import logging as log, warnings
log.basicConfig(level=log.INFO, format="%(message)s")
warnings.filterwarnings("ignore", category=np.VisibleDeprecationWarning)
HERE = os.path.abspath(__file__)
if cupy is not None and HERE not in sys.path and "QUIET" not in os.environ:
    sys.path.append(HERE)
from config import args, precision
LIMIT = args.limit
if args.verbose:
    LIMIT = 2 * LIMIT
try:
    DEPTH = args.depth
except AttributeError:
    DEPTH = 0
np.random.seed(SIZE)
conf.digits = 8
import argparse, json
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--size", type=int, default=SIZE, help="how many")
parser.add_argument("--double", action="store_true")
args = parser.parse_args()
rest, more = sys.argv[1:], [word for word in sys.argv if word.startswith("-")]
double = args.double and "more" in more
if "--loud" in sys.argv or double:
    LOUD = True
if not rest:
    sys.exit(2)
with open(os.path.join(HERE, "case.json")) as file:
    case = json.load(file)
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(args.size)
RANK = int(os.environ.get("SLURM_PROCID", 0))
os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["SLURM_LOCALID"]
assert args.limit
def f(a, b=SIZE):
    return sys.argv
class Model(Base):
    """One."""
    size = 3
    def g(self):
        parse(sys.argv)
import model
'''


def test_imports_definitions_and_plain_statements_are_alike_with_any() -> None:
    assert first_choice(PLAIN) is None


@pytest.mark.parametrize(
    "choice",
    [
        "import os\nif os.environ.get('X'): a.x = 1",
        "import os\nif 'X' not in os.environ: a.x = 1",
        "from os import environ\nif environ['X'] == 'y': import c",
        "import os\na.x = os.getenv('X')",
    ],
)
def test_variables_count_where_they_are_asked_for(choice: str) -> None:
    assert first_choice("import a\n" + choice) is None
    assert first_choice("import a\n" + choice, variables=True) == 3


@pytest.mark.parametrize(
    "doubtful",
    [
        "import sys\nif '--double' in sys.argv: a.x = 1",
        "args = docopt(__doc__)",
        "from sys import argv\nif argv: a.x = 1",
        "x = getattr(sys, 'argv')",
        "for name in NAMES: print(name)",
        "import sys\nfor name in sys.argv: a.seed(name)",
        "while True: break",
        "@hydra.main()\ndef main(): pass",
        "class A(B):\n    x = read_it()",
        "x = [i for i in f()]",
        "if __name__ == '__main__': main()",
        "main()",
        "def f(a=read_it()): pass",
        "exec(CODE)",
        "conf.digits = a.digits",
        "from c import args\nif args.double: conf.digits = 15",
        "from c import args; x = args.x\nif x: a.y = 1",
        "from c import args; x = 1 if args.x else 2\nif x: a.y = 1",
        "from c import args\nif args.x: x = 1\nif x: a.y = 1",
        "x = 0\nfrom c import args\nif args.x: x = 1\nif x: a.y = 1",
        "c = a\nif c.double: a.x = 1",
        "c = [a, 1]\nif c[0].double: a.x = 1",
        "if a.double:\n    import c",
        "if a.double: a.seed(1)",
        "a.double and a.seed(1)",
        "a.seed(1) if a.double else a.seed(2)",
        "a.seed(b.seed)",
        "from c import *\na.seed(double)",
        "SIZE = 1; SIZE += b.size\na.seed(SIZE)",
        "a.names[b.x] = 1",
        "import os\nif os.path.exists('restart'): a.x = 1",
        "import time\nif time.time() > 3: a.x = 1",
        "import a\nwith open('c') as f: a.x = f.read()",
        "import json\nwith open('c') as f: x = json.load(f)\nif x: a.x = 1",
        "import conf\nconf.load('c')",
        "from conf import load\nload('c')",
        "import conf\nconf.get('c')",
        "def get(x): a.x = 1\nget(1)",
        "get = a.set_up\nget(1)",
        "from a import get\nget(1)",
        "p.add_argument('-x', action=Sets)",
        "try:\n    x = a.double\nexcept AttributeError:\n    a.x = 1",
        "import os\nsize = os.environ['SIZE'] and a.seed(b.seed)",
        "import os, sys\nif sys.argv[1:]: os.environ['X'] = '1'",
        "del a.x",
        "def sin(x): pass\nsin(1)",
    ],
)
def test_what_may_depend_on_them_is_a_doubt_from_there_on(doubtful: str) -> None:
    last = 1 + len(doubtful.splitlines())
    assert 2 <= (first_choice("import a\n" + doubtful + "\nimport b\n") or 0) <= last


def test_a_module_is_no_program() -> None:
    text = "if __name__ == '__main__':\n    main()\nelse:\n    x = 1\n"
    assert first_choice(text) == 1
    assert first_choice(text, module=True) is None
    assert first_choice("if __name__ == 'other':\n    main()\n", module=True) == 1


def test_what_is_no_python_is_a_doubt_from_the_first_line() -> None:
    assert first_choice("import a\nprint 'two'\n") == 1


@pytest.mark.parametrize(
    "choice",
    ["if a.double: x = 1", "x = 1 if a.double else 2", "x = a.double and open('f').read()"],
)
def test_a_choice_of_values_counts_if_it_is_said(choice: str) -> None:
    assert first_choice("import a\n" + choice) is None
    assert first_choice("import a\n" + choice, strict=True) == 2
    assert first_choice("import a\nx = a.double", strict=True) is None
