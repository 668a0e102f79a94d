"""What a script does with others: what of it may be another thing with other arguments."""

from __future__ import annotations

import sys

import pytest

from brigade.fork.source.choices import first_choice

IMPORTS = """\
import argparse, collections, contextlib, dataclasses, enum, functools, itertools, json, logging
import math, operator, os, re, sys, types
from dataclasses import dataclass, field
from pathlib import Path
import settings, a, b
from config import args, cfg, Base
parser = argparse.ArgumentParser()
"""


@pytest.mark.parametrize(
    "doubtful",
    [
        # what is changed is not always the same thing, or is an imported one
        "parser.parse_args(namespace=cfg)",
        "parser.parse_args(None, cfg)",
        "parser.parse_known_args(**settings.options)",
        "space = cfg\nparser.parse_args(namespace=space)",
        "space = types.SimpleNamespace(x=0)\nparser.parse_args(namespace=space)\n"
        "if space.x: settings.d = 1",
        "x = a if args.k else b\nx.active = True",
        "x = a if args.k else b\nx.update(active=True)",
        "x = a if args.k else b\nx.names['y'] = 1",
        "x, y = (cfg, settings)\nx.get('d')",
        "x = [cfg]\nx[0].get('d')",
        "args.model.active = True",
        "x = args.model\nx.active = True",
        "x = args.model\nx.names['y'] = 1",
        "args.model.update(active=True)",
        "args.names += [1]",
        "x = [a, b][args.k]\nx.active = True",
        "x, y = (a, b) if args.k else (b, a)\nx.active = True",
        "if args.k: a = b\na.active = True",
        "for x in (a, b):\n    x.active = args.k",
        "one = []; two = []\nx = one if args.k else two\nx.append(1)\nif one: settings.d = 1",
        "rest = cfg.names\nrest += args.names",
        "from config import table\ntable |= {'d': args.d}",
        # calls of what is imported
        "args.double and settings.set('digits', 15)",
        "settings.set('digits', 15) if args.double else None",
        "[cfg.seed(1) for _ in args.names]",
        "[cfg.seed(1) for n in (1, 2) if args.d]",
        "1 < args.d < cfg.seed(1)",
        "cfg.get('x')",
        "cfg.read()",
        "from config import get\nget()",
        "from config import update\nupdate()",
        "cfg.update()",
        "args.d and cfg.update()",
        "args.d and cfg.use('x')",
        "from cli import parser as other\nother.parse_args()",
        "other = argparse.ArgumentParser(parents=[cfg.parser])",
        "parser.add_argument('-d', type=settings.digits)",
        "def kind(x): settings.d = x\nparser.add_argument('-d', type=kind)",
        "def kind(x): return settings.get(x)\nparser.add_argument('-d', type=kind)",
        "parser.add_argument('-d', **cfg.options)",
        "sorted(sys.argv, key=settings.note)",
        "sorted(sys.argv, key=lambda x: settings.names.append(1))",
        "list(map(settings.note, sys.argv))",
        "list(map(exec, sys.argv))",
        "list(map([exec][0], sys.argv))",
        "re.sub('a', settings.note, sys.argv[0])",
        "functools.reduce(settings.note, sys.argv)",
        "it = iter([1, 2])\nx = args.k and list(it)\nfor y in it: settings.d = y",
        "args.k and functools.update_wrapper(settings.f, print)",
        "args.k and dataclasses.dataclass(settings.C)",
        "dataclasses.replace(cfg, x=args.x)",
        "operator.setitem(settings.table, 'd', args.d)",
        "p = functools.partial(settings.set, 15)\np()",
        "(lambda: settings.seed(1))()",
        "main = lambda: settings.seed(args.d)\nmain()",
        "f'{settings.note(args.d)}'",
        "exec('settings.d = 1')",
        "__import__(args.name)",
        "import importlib\nimportlib.import_module(args.name)",
        "import asyncio\nasync def main(): settings.d = args.d\nasyncio.run(main())",
        "def main():\n    settings.d = args.d\nmain()",
        "type('C', (Base,), {'digits': args.d})",
        "sorted(sys.argv, key=args.function)",
        "z = list(map(args.function, [1]))",
        "z = list(map(*[cfg.note, sys.argv]))",
        "z = list(map(Base.note, sys.argv))",
        "parser.add_argument('-d', type=args.kind)",
        "parser.add_argument('-d', type=functools.partial(settings.note, 1))",
        "args.d and open('flag', 'w')",
        "args.d and Path('flag').open('a')",
        "parser.add_argument('-d', type=argparse.FileType('w'))",
        "vars(settings).update(d=1) if args.d else None",
        "sys.modules[args.d].d = 1",
        "(a if args.d else b).x = 1",
        "for z in range(args.n): settings.d += 1",
        "json.load(open('x'), object_hook=settings.note)",
        # classes and decorators
        "class C(Base, digits=args.d): pass",
        "class C(Base):\n    digits = args.d",
        "class C(Base):\n    class D:\n        digits = args.d",
        "class C(Base): pass\nclass D(C):\n    digits = args.d",
        "B = a.B if args.d else b.B\nclass C(B): pass",
        "class C(metaclass=settings.meta): pass",
        "class C(enum.Enum):\n    A = 1\n    def __init__(self, x): settings.d = args.d",
        "class C(enum.Enum):\n    def __init__(self, x): settings.d = x\nclass D(C):\n    A = 1",
        "class C(type):\n    def __new__(*x): settings.d = args.d\nclass D(metaclass=C): pass",
        "class C:\n    def __init_subclass__(D): settings.d = args.d\nclass D(C): pass",
        "class C:\n    __init_subclass__ = Base\nclass D(C): pass",
        "dtype = args.dtype\nclass C:\n    dtype = 'f4'\nsettings.dtype = dtype",
        "class C:\n    def open(self): pass\n    open = Base\n    open()",
        "@functools.partial(settings.note, args.d)\ndef f(): pass",
        "@functools.lru_cache(settings.note)\ndef f(): pass",
        "@settings.note\ndef f(): pass",
        "@settings.note(args.d)\nclass C: pass",
        "@Base.register\nclass C: pass",
        "def note(f): settings.d = args.d\n@note\ndef f(): pass",
        "del args\n@args.setter\ndef f(): pass",
        "def f(x: settings.note(args.d)): pass",
        "x: settings.note(args.d) = 1",
        # targets
        "for settings.x in sys.argv: pass",
        "for settings.x[args.d] in (1, 2): pass",
        "with open('f') as settings.f: pass",
        "with open('f') as (x, settings.f): pass",
        "[0 for settings.x in sys.argv]",
        "for y in (1, 2):\n    settings.x = z\n    z = args.d",
        "with settings.context: pass",
        "with settings.context(): pass",
        "with contextlib.suppress(KeyError):\n    args.d['x']\n    settings.d = 1",
        "quiet = contextlib.suppress(KeyError)\nwith quiet:\n    args.d['x']\n    settings.d = 1",
        # what a program is given
        "for line in sys.stdin:\n    if line: settings.d = 1",
        "os.environ['X'] = args.d\nsettings.d = os.environ['X']",
        "from os import environ\nenviron |= args.d\nif 'X' in environ: settings.d = 1",
        "os.environ.update(X=args.d)\nif os.getenv('X'): settings.d = 1",
        "sys.path += [args.d]\nif 'x' in sys.path: settings.d = 1",
        "if sys.stdin.read(): settings.d = 1",
        "case = sys.stdin\nif case.readline() == 'x': settings.d = 1",
        "log = logging.getLogger()\nif log.level: settings.d = 1",
        "if logging.getLogger('x').level: settings.d = 1",
        "logging.getLogger(args.name).setLevel(3)",
        "parser.parse_args(*[None, types.SimpleNamespace()])",
        "if sys.flags.verbose: settings.d = 1",
        "if 'x' in sys._xoptions: settings.d = 1",
        "if sys.stdout.encoding: settings.d = 1",
        "if sys.modules['config'].args: settings.d = 1",
        "if [sys][0].argv: settings.d = 1",
        "argv = sys.argv\nif argv: settings.d = 1",
        "if os.path.abspath('.') == '/x': settings.d = 1",
        "if os.getcwd(): settings.d = 1",
        "if input(): settings.d = 1",
        "import site\nif site.USER_SITE: settings.d = 1",
        "import builtins\nif builtins.args: settings.d = 1",
        "import __main__\nif __main__.args: settings.d = 1",
        "z = 1\nfrom config import *\nsettings.d = z",
        "from config import *\nlen(sys.argv)",
        "len = settings.note\ndel len\nlen(sys.argv)",
        # statements
        "match args.d:\n    case 1: settings.d = 1",
        "if (n := args.d) > 2: settings.d = 1",
        "if (z := settings.seed(args.d)): pass",
        "while args.d: settings.d = 1",
        "try:\n    int(args.d)\nexcept ValueError:\n    settings.d = 1",
        "try:\n    z = args.d['x']\nexcept KeyError:\n    pass\nelse:\n    settings.d = 1",
        "try:\n    raise ValueError(args.d)\nexcept settings.errors():\n    pass",
        "if args.d:\n    z = 1\nelif args.k:\n    settings.d = 1",
        "if args.d:\n    if args.k: settings.d = 1",
        "global z",
        "z: int = settings.note()",
        "z = 0\nif args.d: z += settings.seed(1)",
        "del settings.table['x']",
    ],
)
def test_what_may_change_another_module_by_them_is_a_doubt(doubtful: str) -> None:
    assert first_choice(IMPORTS) is None
    if doubtful.startswith("match") and sys.version_info < (3, 10):
        return  # no Python; another test's
    begins = 1 + len(IMPORTS.splitlines())
    last = begins + len(doubtful.splitlines()) - 1
    assert begins <= (first_choice(IMPORTS + doubtful + "\nimport b\n") or 0) <= last


PLAIN_ALONE = r"""
@dataclass(frozen=True)
class C:
    x: int = 1
    y: list = field(default_factory=list)
---
class Kind(enum.Enum):
    ONE = enum.auto()
    TWO = enum.auto()
---
WORD = re.compile(r'\w+', re.I)
if WORD.match('x'): settings.d = 1
---
@functools.lru_cache(maxsize=None)
def f(x): return settings.d
---
@functools.wraps(print)
def f(x): return settings.d
---
power = functools.partial(pow, 2)
---
COUNTS = collections.defaultdict(int)
QUEUE = collections.deque(maxlen=8)
---
space = types.SimpleNamespace(x=1)
settings.space = space.x
---
settings.root = math.sqrt(2) * math.pi
---
import torch
torch.manual_seed(0)
DEVICE = torch.device('cpu')
---
from typing import NewType, TypeVar
Id = NewType('Id', int)
T = TypeVar('T')
---
Colour = enum.Enum('Colour', 'RED GREEN')
---
import contextvars, threading
VAR = contextvars.ContextVar('x')
LOCK = threading.Lock()
---
import numpy as np
settings.x = np.array([1, 2], dtype=np.float32)
z = np.zeros(args.n)
---
import struct
HEAD = struct.Struct('<I')
settings.size = struct.calcsize('<I')
---
from decimal import Decimal, getcontext
getcontext().prec = 50
settings.x = Decimal('1')
---
from datetime import datetime, timedelta
settings.x = timedelta(days=1)
z = datetime.now()
---
import textwrap
TEXT = textwrap.dedent(' x')
---
HERE = Path(__file__).resolve().parent
settings.root = HERE / '..'
---
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
---
logger = logging.getLogger(__name__)
logger.setLevel(logging.INFO)
---
handler = logging.StreamHandler(sys.stdout)
handler.setFormatter(logging.Formatter('%(x)s'))
logging.getLogger().addHandler(handler)
---
logging.basicConfig(stream=sys.stdout, level=logging.INFO)
---
PAIRS = list(itertools.product('ab', repeat=2))
settings.pairs = PAIRS
---
first = operator.itemgetter(0)
settings.last = sorted(['a'], key=first)
---
settings.names = list(zip('ab'))
---
class C:
    @property
    def x(self): return 1
    @x.setter
    def x(self, y): pass
---
class C(Base):
    size = 3
    kind = settings.Kind
    def f(self): return args.d
---
class C(Base): pass
class D(C): pass
---
dtype = args.dtype
class C:
    other = 'f4'
z = dtype
---
import click
@click.group()
@click.option('--x', type=click.Path())
def cli(x): pass
@cli.command()
def one(): settings.d = 1
---
import typer
app = typer.Typer()
@app.command()
def one(x: int = typer.Option(3)): pass
---
import hydra
@hydra.main(config_path='conf', version_base=None)
def main(conf): pass
---
def truth(x):
    if x.lower() in ('yes', 'true'): return True
    raise argparse.ArgumentTypeError(x)
parser.add_argument('-d', type=truth)
---
parser.add_argument('-d', type=Path, action='append', choices=[1, 2])
---
parser.set_defaults(x=1)
args, rest = parser.parse_known_args()
---
args = parser.parse_args(args=sys.argv[1:])
args.rank = int(os.environ['RANK'])
---
space = argparse.Namespace(x=1)
args = parser.parse_args(namespace=space)
---
if args.d:
    z = 1
elif args.k:
    z = 2
else:
    parser.error('x')
---
try:
    import tomllib
except ImportError:
    import tomli as tomllib
with open('x', 'rb') as f:
    conf = tomllib.load(f)
---
try:
    import cupy
except ImportError:
    cupy = None
settings.fast = cupy is not None
---
for name in ('A', 'B'):
    os.environ[name] = args.d
---
with contextlib.suppress(ImportError):
    import fast
---
settings.cfg.digits = 15
cfg.digits = 15
cfg.update(digits=15)
Base.size = 3
---
import torch, jax
torch.backends.cudnn.benchmark = True
jax.config.update('x', True)
---
if args.d: args = json.loads(open(args.d).read())
name = re.sub('a', '', sys.argv[0])
---
from math import *
settings.d = len('abc')
---
from config import table
table += [1]
---
z = 1
z += 2
settings.d = z
---
sys.path += [args.folder]
sys.path[:0] = [args.folder]
---
del z, os.environ['X']
---
x = args.name.lower().split(',')
y = [part.strip() for part in x if part]
---
case = json.loads(Path('x').read_text())
if case.get('x'): z = case['x'].items()
---
if __name__ == '__main__':
    z = 1
"""


@pytest.mark.parametrize("plain", PLAIN_ALONE.strip().split("\n---\n"))
def test_what_can_change_no_other_by_them_is_none(plain: str) -> None:
    assert first_choice(IMPORTS + plain + "\nimport b\n") is None
