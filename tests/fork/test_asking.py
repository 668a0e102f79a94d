"""Which modules may look at a program's arguments when they are imported."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from brigade.fork.source.asking import asking, looks

_LIBRARY = Path(sysconfig.get_paths()["stdlib"])


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("import sys\nQUIET = '-q' in sys.argv\n", True),
        ("from sys import argv\n", True),
        ("import sys\nclass A:\n    words = sys.argv[1:]\n", True),
        ("import sys\ndef f(words=sys.argv): pass\n", True),
        ("import sys\nif __name__ == 'other': x = sys.argv\n", True),
        ("import sys\nif __name__ == '__main__':\n    pass\nelse: x = sys.argv\n", True),
        ("import sys\ndef main():\n    return sys.argv\n", False),
        ("import sys\nmain = lambda: sys.argv\n", False),
        ("import sys\nif __name__ == '__main__':\n    main(sys.argv)\n", False),
        ("import sys\nif '__main__' == __name__:\n    main(sys.argv)\n", False),
        ("import sys\nif 1 > 0 and __name__ == '__main__':\n    main(sys.argv)\n", False),
        ("import sys\nif 1 > 0 or __name__ == '__main__':\n    main(sys.argv)\n", True),
        ("# argv\nx = 1\n", False),
        ("x = 1\n", False),
        ("argv syntax error", True),
    ],
)
def test_a_module_looks_if_its_own_statements_do(text: str, answer: bool) -> None:
    assert looks(text.encode()) is answer


@pytest.mark.parametrize("name", ["platform", "calendar", "shlex", "getopt", "pstats"])
def test_what_a_module_of_the_library_does_as_a_program_is_no_look(name: str) -> None:
    assert not looks((_LIBRARY / f"{name}.py").read_bytes())


@pytest.mark.filterwarnings("error")
def test_what_warns_when_it_is_compiled_is_looked_at_in_silence() -> None:
    assert looks(b"import sys\nx = '\\d' in sys.argv\n")
    assert not looks(b"import sys\nx = '\\d'\ndef f(): sys.argv\n")


def test_modules_of_the_program_ask_by_words_or_by_one_that_has_them() -> None:
    texts = {
        "plain": b"import argparse\nargs = argparse.ArgumentParser().parse_args()\n",
        "config": b"import argparse, os\nargs = argparse.ArgumentParser().parse_args()\n"
        b"LOG = os.getpid() if args.loud else 0\n",
        "tools": b"import argparse\ndef read(): return argparse.ArgumentParser().parse_args()\n",
        "uses": b"import tools\nargs = tools.read()\n",
        "choice": b"from uses import args\nimport settings\nif args.x: settings.y = 1\n",
        "settings": b"y = 0\n",
        "names": b"from uses import args\nLIMIT = args.limit\n",
        "other": b"import numpy\nX = numpy.zeros(3)\n",
    }
    imports = {"uses": ["tools"], "choice": ["uses", "settings"], "names": ["uses"]}
    assert asking(imports, texts) == {"config", "uses", "choice"}
