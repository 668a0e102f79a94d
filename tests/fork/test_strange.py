"""Whether a module that no trial has seen may set something in others, by its source."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from brigade.imports.table import SITE

sys.path.append(str(SITE))
from _brigade_strange import may_set

sys.path.remove(str(SITE))


@pytest.mark.parametrize(
    "text",
    [
        "",
        '"""What it is."""\nfrom __future__ import annotations\nimport numpy as np\n',
        "import logging\nlog = logging.getLogger(__name__)\nN = 3 * 4\nNAMES = ['a', *OTHERS]\n",
        "def f(x, y=3):\n    settings.digits = x\n",
        "class A:\n    n = 3\n    @property\n    def f(self): settings.x = 1\n",
        "class E(ValueError):\n    pass\n",
        "from dataclasses import dataclass, field\n@dataclass(frozen=True)\nclass C:\n"
        "    x: list = field(default_factory=list)\n",
        "import os\nHERE = os.path.dirname(__file__)\nkey = lambda x: x.update(y)\n",
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n",
        "if NAME in ('a', 'b'):\n    x = 1\nelse:\n    x: int = 2\n",
    ],
)
def test_definitions_imports_and_names_set_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "new.py").write_text(text)
    assert not may_set(str(tmp_path / "new.py"))


@pytest.mark.parametrize(
    "text",
    [
        "import settings\nsettings.digits = 15\n",
        "from settings import table\ntable['x'] = 1\n",
        "from settings import table\ntable.update(x=1)\n",
        "from settings import table\ntable += [1]\n",
        "import settings\nsettings.compile()\n",
        "import torch\ntorch.set_default_dtype(torch.float64)\n",
        "from base import Solver\nclass Fast(Solver): pass\n",
        "from base import register\n@register\ndef f(): pass\n",
        "class A(metaclass=M): pass\n",
        "class A:\n    settings.x = 1\n",
        "def f(x=settings.set(1)): pass\n",
        "for settings.x in range(3): pass\n",
        "with settings.double(): pass\n",
        "del settings.x\n",
        "try:\n    import torch\nexcept ImportError:\n    settings.torch = None\n",
        "x = [settings.set(i) for i in (1, 2)]\n",
        "if settings.set(1): pass\n",
        "exec('settings.x = 1')\n",
        "x = '\\d'\n",
        "no python",
    ],
)
def test_whatever_else_there_is_may(tmp_path: Path, text: str) -> None:
    (tmp_path / "new.py").write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert may_set(str(tmp_path / "new.py"))
    assert may_set(str(tmp_path / "none.py")) and may_set(str(tmp_path / "new.pyc"))
