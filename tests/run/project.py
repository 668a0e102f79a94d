"""A small program in a virtual environment of its own, and `brigade run` in front of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

APP = """\
import json, os, sys
import pkg, pkg.deep.leaf
assert "BRIGADE_STAGE" not in os.environ and "LD_AUDIT" not in os.environ
text = json.dumps({"path": sys.path, "file": pkg.__file__, "leaf": pkg.deep.leaf.__file__,
                  "executable": sys.executable, "argv": sys.argv, "data": pkg.data(),
                  "pythonpath": os.environ.get("PYTHONPATH")})
sys.stdout.write(text + "\\n")  # one write: ranks share the pipe
print("to stderr", file=sys.stderr)
if sys.argv[1:2] == ["exit"]:
    sys.exit(int(sys.argv[2]))
if sys.argv[1:2] == ["signal"]:
    os.kill(os.getpid(), int(sys.argv[2]))
"""


@dataclass
class Site:
    """What a user has: an environment with a package, and a program. `nodes`: a node's memory."""

    base: Path

    @property
    def python(self) -> Path:
        return self.base / "venv/bin/python"

    @property
    def app(self) -> Path:
        return self.base / "project/app.py"

    @property
    def package(self) -> Path:
        return next((self.base / "venv/lib").glob("python*")) / "site-packages/pkg"

    @property
    def nodes(self) -> Path:
        return self.base / "node"

    def make(self) -> Site:
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", self.base / "venv"], check=True
        )
        (self.package / "deep").mkdir(parents=True)
        (self.package / "__init__.py").write_text(
            "import os\n"
            "def data():\n"
            "    with open(os.path.join(os.path.dirname(__file__), 'data.txt')) as f:\n"
            "        return f.read()\n"
        )
        (self.package / "data.txt").write_text("forty-two\n")
        (self.package / "deep/__init__.py").write_text("")
        (self.package / "deep/leaf.py").write_text("x = 1\n")
        self.app.parent.mkdir()
        self.app.write_text(APP)
        self.nodes.mkdir()
        return self

    def plain(self, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
        return _run([str(self.python), str(self.app), *arguments], dict(os.environ), options)

    def brigade(
        self,
        *arguments: str,
        run: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        **options,
    ) -> subprocess.CompletedProcess[str]:
        """`brigade run [run…] -- python app.py [arguments…]`; the report is in `report()`."""
        words = [str(self.python), str(self.app), *arguments]
        return self.brigade_of(words, run, env, **options)

    def brigade_of(
        self,
        words: list[str],
        run: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        **options,
    ) -> subprocess.CompletedProcess[str]:
        """The same of any command."""
        environment = {
            **os.environ,
            "BRIGADE_CACHE": str(self.base / "cache"),
            "BRIGADE_NODE_DIR": str(self.nodes),
            "BRIGADE_PATIENCE": "60",  # machines that run tests may be slow
            **(env or {}),
        }
        command = [sys.executable, "-m", "brigade", "run", "--json", str(self.base / "report.json")]
        command += [*run, "--", *words]
        return _run(command, environment, options)

    def report(self) -> dict:
        return json.loads((self.base / "report.json").read_text())


def _run(
    command: list[str], environment: dict[str, str], options: dict
) -> subprocess.CompletedProcess:
    options.setdefault("timeout", 120)
    return subprocess.run(command, capture_output=True, text=True, env=environment, **options)
