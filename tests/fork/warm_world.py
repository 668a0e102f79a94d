"""A template with a false library: ranks are made by os.fork and write to files of their own.

    world = Warm(folder, python)
    world.trial([...])                        what a plain run imports becomes the plan
    plain = world.plain([...], env)           a Done
    one, two = world.ranks([...], env, env)   the same from one template; a Done each

The site folder is a copy in which `_brigade_channel.py` is replaced; all else is what runs in a
job. The stage has an index without tables, so that modules are found in their own places.
"""

from __future__ import annotations

import json
import marshal
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from brigade.imports.table import SITE

HEADER_BYTES = 208

CHANNEL = """
import sys
posix = sys.modules["posix"]
REPORT_BYTES = 360
FOLDER = {folder!r}
class Channel:
    def __init__(self):
        self.number = -1
        self.report("{{}}")
    def _path(self, what):
        return f"{{FOLDER}}/{{self.number}}.{{what}}"
    def _put(self, what, data):
        fd = posix.open(self._path(what), posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o644)
        posix.write(fd, data); posix.close(fd)
    def twins(self):
        return 0
    def wait(self):
        self.number += 1
        try:
            fd = posix.open(self._path("env"), posix.O_RDONLY)
        except OSError:
            return None
        data = posix.read(fd, 1 << 20); posix.close(fd)
        return data
    def refuse(self, why):
        self._put("refused", why.encode())
    def forked(self, pid):
        self._put("status", str(posix.waitpid(pid, 0)[1]).encode())
    def child(self):
        for name in (b"BRIGADE_FORK", b"BRIGADE_FORK_LEFT"):
            posix.unsetenv(name)
        kind = {kind!r}
        for fd, what in ((0, "in"), (1, "out"), (2, "err")):
            flags = posix.O_RDWR | posix.O_CREAT
            if kind == "appended" and fd == 1:
                self._put("out", b"before\\n")
                flags |= posix.O_APPEND
            path = "/dev/null" if kind == "null" and not fd else self._path(what)
            new = posix.open(path, flags, 0o644)
            posix.lseek(new, 0, 2 if flags & posix.O_APPEND else 0)
            if kind == "pipe" and fd == 0:
                new, end = posix.pipe()
                posix.write(end, b"hello\\n"); posix.close(end)
            if kind == "closed" and fd == 0:
                posix.close(0)
            else:
                posix.dup2(new, fd)
            posix.close(new)
    def refuse_all(self, why):
        pass
    def begin(self):
        pass
    def own(self):
        return ""
    def otherwise(self, environ):
        return set(), 0
    def again(self):
        return {{}}
    def report(self, text):
        self.number, before = -1, self.number
        self._put("report", text.encode())
        self.number = before
"""

RECORD = """
import sys
_bootstrap, _posix = sys.modules["_frozen_importlib"], sys.modules["posix"]
def _start(load):
    def say(*words):
        fd = _posix.open({path!r}, _posix.O_WRONLY | _posix.O_CREAT | _posix.O_APPEND)
        _posix.write(fd, "\\t".join(words).encode() + b"\\n"); _posix.close(fd)
    def _load_unlocked(spec):
        if spec.name in ("sitecustomize", "usercustomize"):
            return load(spec)
        say("begins", spec.name, spec.origin or "")
        ended = "fails"
        try:
            module, ended = load(spec), "ends"
            return module
        finally:
            say(ended, spec.name)
    _bootstrap._load_unlocked = _load_unlocked
_start(_bootstrap._load_unlocked)
"""


@dataclass
class Done:
    stdout: str
    stderr: str
    returncode: int
    refused: str = ""

    def said(self) -> tuple[str, str, int]:
        return self.stdout, self.stderr, self.returncode


class Warm:
    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        self.python = python
        self.cwd = folder / "work"
        self.stage = folder / "stage"
        self.asked = folder / "asked"
        self.plan: dict = {"version": 1, "warm": [], "left": {}, "fails": [], "again": []}
        self.plan["main"] = ""
        self.plan_bytes = b""  # in place of the plan
        self.stdin = "file"  # of ranks; or pipe, null, closed; or file, and stdout is appended to
        self.tries = True  # a template may execute itself once more
        self.env: dict[str, str] = {}
        self.template_env: dict[str, str] = {}
        self.report: dict = {}
        self.template_said = ""
        self.cwd.mkdir(parents=True)
        site = self.stage / "root/.brigade/python"
        shutil.copytree(SITE, site, ignore=shutil.ignore_patterns("__pycache__"))
        (self.stage / "index").write_bytes(bytes(HEADER_BYTES))

    def _environ(self, *more: dict[str, str]) -> dict[str, str]:
        ours = ("BRIGADE_", "PYTHON", "COV_")
        environ = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        for each in (self.env, *more):
            environ.update(each)
        return environ

    def trial(self, arguments: Sequence[str], env: dict[str, str] | None = None) -> None:
        """Make the plan of a plain run: all that was executed, in the order of its beginning."""
        records, site = self.folder / "records", self.folder / "record"
        site.mkdir(exist_ok=True)
        (site / "sitecustomize.py").write_text(RECORD.format(path=str(records)))
        records.unlink(missing_ok=True)
        environ = self._environ(env or {})
        environ["PYTHONPATH"] = f"{site}:{environ.get('PYTHONPATH', '')}".rstrip(":")
        self._run(arguments, environ)
        lines = records.read_text().splitlines() if records.exists() else []
        said = [line.split("\t") for line in lines]
        ended = {name: what for what, name, *_ in said if what != "begins"}
        self.plan["warm"] = list(dict.fromkeys(tuple(w) for what, *w in said if what == "begins"))
        self.plan["fails"] = [name for name, what in ended.items() if what == "fails"]

    def plain(self, arguments: Sequence[str], env: dict[str, str] | None = None) -> Done:
        done = self._run(arguments, self._environ(env or {}))
        return Done(done.stdout, done.stderr, done.returncode)

    def _run(self, arguments: Sequence[str], environ: dict[str, str]):
        """The same kinds of descriptors as ranks have: files, or what `stdin` says."""
        appended = self.stdin == "appended"
        (self.folder / "out").write_text("before\n" if appended else "")
        (self.folder / "in").write_text("hello\n" if self.stdin == "pipe" else "")
        with (
            open("/dev/null" if self.stdin == "null" else self.folder / "in", "r+") as stdin,
            open(self.folder / "out", "a+" if appended else "r+") as out,
            open(self.folder / "err", "w+") as err,
        ):
            words = [self.python, *arguments]
            if self.stdin == "closed":
                words = ["sh", "-c", 'exec "$@" <&-', "sh", *words]
            elif self.stdin == "pipe":
                words = ["sh", "-c", 'cat | "$@"', "sh", *words]
            done = subprocess.run(
                words, env=environ, cwd=self.cwd, stdin=stdin, stdout=out, stderr=err,
                timeout=300, check=False,
            )  # fmt: skip
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, out.read(), err.read())

    def ranks(self, arguments: Sequence[str], *envs: dict[str, str]) -> list[Done]:
        """A rank of one template for each environment; the template has the first one's."""
        shutil.rmtree(self.asked, ignore_errors=True)
        self.asked.mkdir()
        channel = CHANNEL.format(folder=str(self.asked), kind=self.stdin)
        (self.stage / "root/.brigade/python/_brigade_channel.py").write_text(channel)
        plan = self.stage / "root/.brigade/fork/plan"
        plan.parent.mkdir(exist_ok=True)
        plan.write_bytes(self.plan_bytes or marshal.dumps(self.plan))
        environs = [self._of_rank(env, number) for number, env in enumerate(envs or ({},))]
        for number, environ in enumerate(environs):
            block = b"".join(f"{k}={v}".encode() + b"\0" for k, v in environ.items())
            (self.asked / f"{number}.env").write_bytes(block)
        template = {"BRIGADE_FORK": "python", **self.template_env}
        if not self.tries:
            template["BRIGADE_FORK_LEFT"] = ""
        stdin, self.stdin = self.stdin, "file"
        done = self._run(arguments, {**environs[0], **template})
        self.stdin = stdin
        self.template_said = done.stdout + done.stderr
        assert done.returncode == 0, self.template_said
        self.report = json.loads((self.asked / "-1.report").read_text())
        if "a descriptor that stays" in str(self.report["left"].get("_ctypes")):
            pytest.skip("needs a libffi that holds no file: only a real template puts it apart")
        return [self._done(number) for number in range(len(environs))]

    def _of_rank(self, env: dict[str, str], number: int) -> dict[str, str]:
        site = str(self.stage / "root/.brigade/python")
        environ = self._environ(env)
        ours = {
            "BRIGADE_STAGE": str(self.stage),
            "BRIGADE_STATE": str(self.folder / "state"),
            "BRIGADE_SLOT": str(number),
            "BRIGADE_VIEW": "python",
            "PYTHONPATH": site,
        }
        if "PYTHONPATH" in environ:
            ours["BRIGADE_SAVED_PYTHONPATH"] = environ["PYTHONPATH"]
            ours["PYTHONPATH"] += ":" + environ["PYTHONPATH"]
        return {**environ, **ours}

    def _done(self, number: int) -> Done:
        def read(what: str) -> str:
            path = self.asked / f"{number}.{what}"
            return path.read_text() if path.exists() else ""

        status = int(read("status") or -1)
        code = -1 if status < 0 else os.waitstatus_to_exitcode(status)
        return Done(read("out"), read("err"), code, read("refused"))
