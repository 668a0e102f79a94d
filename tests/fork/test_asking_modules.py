"""Modules as programs have them, which of them may have looked at the arguments when they have been
imported: not those that only say how it is to be done."""

from __future__ import annotations

import pytest

from brigade.fork.source.asking import asking

# what the others import
SHARED = {
    "app.config": """\
import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

@dataclass
class Config:
    lr: float = 0.1
    tags: list = field(default_factory=list)
    root: Path = Path(__file__).parent
    name: Optional[str] = None

    @classmethod
    def from_args(cls, argv=None):
        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float, default=0.1)
        return cls(**vars(parser.parse_args(argv)))

def parse():
    return Config.from_args()

def main():
    print(parse())

if __name__ == "__main__":
    main()
""",
    "app.model": "class Model: pass\ndef build(size=3): return Model()\n",
    "app.registry": """\
from app.config import Config
TABLE = {}
def register(name):
    def add(made):
        TABLE[name] = made
        return made
    return add
""",
}

SILENT = {
    "uses": """\
from app.config import parse
from app.model import Model, build
MODEL = build()
def main():
    print(parse().lr)
if __name__ == "__main__":
    main()
""",
    "click": """\
import click, os
from app.model import build
BUILT = build()

@click.group(context_settings=dict(help_option_names=["-h"]))
@click.option("--debug/--no-debug", default=False)
@click.pass_context
def cli(ctx, debug):
    ctx.obj = debug

@cli.command()
@click.argument("path", type=click.Path(exists=True))
def show(path):
    click.echo(path)

@click.command("other")
def other():
    import sys
    print(sys.argv)

cli.add_command(other)

if __name__ == "__main__":
    cli()
""",
    "typer": """\
import typer
from typing import List
from app.model import build
app = typer.Typer(help="what")
BUILT = build()

@app.callback()
def first(): pass

@app.command()
def train(lr: float = typer.Option(0.1, help="rate"), names: List[str] = typer.Argument(None)):
    print(lr)

if __name__ == "__main__":
    app()
""",
    "hydra": """\
import hydra
from dataclasses import dataclass
from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

@dataclass
class Config:
    lr: float = MISSING

store = ConfigStore.instance()
store.store(name="config", node=Config)

@hydra.main(version_base=None, config_name="config")
def main(config):
    print(config.lr)

if __name__ == "__main__":
    main()
""",
    "registered": """\
from app.registry import register
import app.model
made = app.model.build()
def parse_args(): pass
""",
    "constants": """\
import math, os, re
from pathlib import Path
HERE = Path(__file__).parent
WORDS = re.compile("[a-z]+")
SIZE = int(math.sqrt(16))
def read(argv): return argv
""",
    "logs": """\
import logging, logging.config
logging.config.dictConfig({"version": 1})
log = logging.getLogger(__name__)
def set_up(parser):
    log.setLevel(parser.parse_args().level)
""",
    "kinds": """\
import enum
class Kind(enum.Enum):
    ONE = enum.auto()
    @classmethod
    def from_arguments(cls):
        import sys
        return cls[sys.argv[1]]
NAMES = [kind.name for kind in Kind]
""",
    "types": """\
from typing import NewType, Protocol, TypeVar, TYPE_CHECKING
if TYPE_CHECKING:
    from app.config import Config
T = TypeVar("T")
Id = NewType("Id", int)
class Parses(Protocol):
    def parse_args(self) -> "Config": ...
def load(config: "Config") -> T: ...
""",
    "abstract": """\
import abc, functools
from app.model import Model, build
class Command(abc.ABC):
    @abc.abstractmethod
    def run(self): ...
    @property
    def words(self):
        import sys
        return sys.argv
class Fit(Command):
    def run(self):
        from app.config import parse
        return parse()
@functools.lru_cache(maxsize=None)
def arguments():
    import sys
    return sys.argv
BUILT = build()
""",
    "parser": """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
def parse():
    return parser.parse_args()
""",
    "plain": """\
import argparse
parser = argparse.ArgumentParser()
args = parser.parse_args()
LR = args.lr
def main():
    train(args)
if __name__ == "__main__":
    main()
""",
    "commented": """\
# fire, hydra and sys.argv are not for us
from app.model import build
BUILT = build()
""",
}

ASKING = {
    "calls": "from app.config import parse\nCONFIG = parse()\n",
    "by_class": "from app.config import Config\nCONFIG = Config.from_args()\n",
    "by_package": "import app.config\nCONFIG = app.config.parse()\n",
    "by_alias": "from app import config as c\nread = c.parse\nCONFIG = read()\n",
    "by_root": "import app\nCONFIG = getattr(app, 'config').parse()\n",
    "by_star": "from app.config import *\nCONFIG = parse()\n",
    "by_name": "import importlib\nimport app.model\n"
    "CONFIG = importlib.import_module('app.config').parse()\n",
    "by_function": """\
def words():
    import sys
    return sys.argv[1:]
def read(): return words()
FIRST = read()
""",
    "by_method": """\
import sys
class Words:
    def first(self): return sys.argv[1]
    def __init__(self): self.words = self.first()
WORDS = Words()
""",
    "by_getattr": """\
import sys
def words(): return sys.argv
def call(name): return getattr(sys.modules[__name__], name)()
WORDS = call("words")
""",
    "by_text": "import argparse\np = argparse.ArgumentParser()\n"
    "ARGS = getattr(p, 'parse_args')()\n",
    "by_dict": "import sys\nWORDS = list(sys.__dict__['argv'])\nmake(WORDS)\n",
    "by_other_name": "from sys import argv as words\nmake(words[0])\n",
    "by_property": """\
import sys
class Words:
    @property
    def first(self): return sys.argv[1]
FIRST = Words().first
""",
    "by_lambda": "import sys\nread = lambda: sys.argv\nWORDS = read()\n",
    "by_default": "import sys\ndef f(words=sys.argv): pass\nf()\n",
    "by_decorator": """\
from app.registry import register
import sys
@register("x")
def words(): return sys.argv
""",
    "by_bare_decorator": "import runner, sys\n@runner.now\ndef words(): return sys.argv\n",
    "click": "import click\n@click.command()\ndef main(): pass\nmain(standalone_mode=False)\n",
    "click_group": "import click\ncli = click.Group()\nrun = cli\nrun()\n",
    "typer": "import typer\napp = typer.Typer()\n@app.command()\ndef main(): pass\napp()\n",
    "typer_run": "import typer\ndef main(): pass\ntyper.run(main)\n",
    "fire": "from fire import Fire\ndef main(): pass\nFire(main)\n",
    "hydra": "import hydra\n@hydra.main()\ndef main(conf): pass\nmain()\n",
    "call_parse": "from fastcore.script import call_parse\n@call_parse\ndef main(): pass\n",
    "choice": "import argparse\nargs = argparse.ArgumentParser().parse_args()\n"
    "if args.x: import fast\n",
    "other_main": "import sys\nif __name__ == 'app.x':\n    WORDS = read(sys.argv)\n",
    "settings": "from pydantic_settings import BaseSettings\n"
    "class S(BaseSettings, cli_parse_args=True): pass\nSETTINGS = S()\n",
    "process": "WORDS = open('/proc/self/cmdline').read()\nmake(WORDS)\n",
    "told": """\
import sys
class Base:
    def __init_subclass__(cls): cls().run()
class Fit(Base):
    def run(self): self.words = sys.argv
""",
    "no_python": "print 'argv'\n",
}


# of what finds classes that it has not imported
REGISTRIES = {
    "by_base": (
        "class Base:\n    all = []\n    def __init_subclass__(cls): cls.all.append(cls)\n",
        "import app.fit\nfrom app.base import Base\nRUN = [one().run() for one in Base.all]\n",
    ),
    "by_subclasses": (
        "class Base: pass\ndef run(): return [one().run() for one in Base.__subclasses__()]\n",
        "import app.fit\nfrom app.base import run\nRUN = run()\n",
    ),
    "by_a_package": (
        "from plugins import Base\n",
        "import app.fit, plugins\nRUN = plugins.run()\n",
    ),
    "by_a_decorator": (
        "TABLE = {}\nclass Base: pass\ndef add(made): TABLE[0] = made\n",
        "import app.fit\nfrom app.base import TABLE\nRUN = TABLE[0]().run()\n",
    ),
}


@pytest.mark.parametrize("name", REGISTRIES)
def test_who_runs_what_others_have_registered_may_have(name: str) -> None:
    base, runs = REGISTRIES[name]
    fit = "import sys\nfrom app.base import Base\nfrom plugins import Base as Other\n"
    kind = "Other" if name == "by_a_package" else "Base"
    decorator = "from app.base import add\n@add\n" if name == "by_a_decorator" else ""
    fit += f"{decorator}class Fit({kind}):\n    def run(self): return sys.argv\n"
    texts = {"app.base": base, "app.fit": fit, "app.x": runs}
    imports = {"app.fit": ["app.base"], "app.x": ["app.fit", "app.base"]}
    asked = asking(imports, {one: text.encode() for one, text in texts.items()})
    assert asked == ({"app.fit"} if decorator else {"app.x"})


def modules(name: str, text: str) -> tuple[dict[str, list[str]], dict[str, bytes]]:
    imports = {"app.registry": ["app.config"], name: [*SHARED]}
    return imports, {one: source.encode() for one, source in {**SHARED, name: text}.items()}


@pytest.mark.parametrize("name", SILENT)
def test_what_only_says_how_has_not_looked(name: str) -> None:
    assert asking(*modules(f"app.of.{name}", SILENT[name])) == set()


@pytest.mark.parametrize("name", ASKING)
def test_what_does_so_as_it_is_imported_may_have(name: str) -> None:
    assert asking(*modules(f"app.of.{name}", ASKING[name])) == {f"app.of.{name}"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("app.x", "from .config import parse\nCONFIG = parse()\n"),
        ("app.x", "from . import config\nCONFIG = config.parse()\n"),
        ("app.of.x", "from ..config import parse\nCONFIG = parse()\n"),
        ("app", "from .config import parse\nCONFIG = parse()\n"),
    ],
)
def test_a_name_may_be_of_a_neighbour(name: str, text: str) -> None:
    assert asking(*modules(name, text)) == {name}
    other = text.replace("config", "model").replace("parse", "build")
    assert asking(*modules(name, other)) == set()
