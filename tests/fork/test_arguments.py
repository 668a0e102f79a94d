"""Which imports of a program cannot depend on its arguments."""

from __future__ import annotations

import pytest

from brigade.fork.arguments import first_doubt, looks

PLAIN = '''"""A program."""
from __future__ import annotations
import os, sys
import numpy as np
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
    assert first_doubt(PLAIN) is None


@pytest.mark.parametrize(
    "doubtful",
    [
        "if '--double' in sys.argv: x = 1",
        "args = parser.parse_args()",
        "args = docopt(__doc__)",
        "size = int(sys.argv[1])",
        "from sys import argv",
        "x = getattr(sys, 'argv')",
        "for name in NAMES: print(name)",
        "while True: break",
        "@hydra.main()\ndef main(): pass",
        "class A(B):\n    x = read()",
        "x = [i for i in f()]",
        "if __name__ == '__main__': main()",
        "main()",
        "try:\n    import a\nexcept ImportError:\n    sys.exit(1)",
        "with open(NAME) as f: pass",
        "def f(a=read()): pass",
        "exec(CODE)",
    ],
)
def test_what_may_depend_on_them_is_a_doubt_from_there_on(doubtful: str) -> None:
    assert first_doubt("import a\n" + doubtful + "\nimport b\n") == 2


def test_what_is_no_python_is_a_doubt_from_the_first_line() -> None:
    assert first_doubt("import a\nprint 'two'\n") == 1


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("import sys\nQUIET = '-q' in sys.argv\n", True),
        ("from sys import argv\n", True),
        ("import sys\nclass A:\n    words = sys.argv[1:]\n", True),
        ("import sys\ndef f(words=sys.argv): pass\n", True),
        ("import sys\ndef main():\n    return sys.argv\n", False),
        ("import sys\nmain = lambda: sys.argv\n", False),
        ("# argv\nx = 1\n", False),
        ("x = 1\n", False),
        ("argv syntax error", True),
    ],
)
def test_a_module_looks_if_its_own_statements_do(text: str, answer: bool) -> None:
    assert looks(text.encode()) is answer
