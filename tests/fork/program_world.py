"""Programs of C with libraries of their own, and `brigade run --fork` in front of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from libc_version import stops_before_constructors
from world_of_c import library, program

KINDS = ["main", pytest.param("preinit", marks=stops_before_constructors)]
LIBRARIES = 10  # as many as are worth a fork, with the C library
SHARED = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
extern char order[256]; extern long own;
"""
DONE = 'strcat(order, "%s ");'


class ProgramSite:
    """A program `bin/app` that a test has written, and what a job of it said."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.app = base / "bin/app"
        (base / "node").mkdir()
        self.environment = {
            **os.environ,
            "BRIGADE_CACHE": str(base / "cache"),
            "BRIGADE_NODE_DIR": str(base / "node"),
            "BRIGADE_PATIENCE": "60",  # machines that run tests may be slow
        }

    def make(
        self, main: str, constructor: str = "", flags: tuple[str, ...] = (), outside: str = ""
    ) -> ProgramSite:
        """`main`: the body of main; `constructor`: that of the last library, which has `flags`, and
        `outside` any function. `order` is a string that all of them can add to, `own` a number."""
        folder = self.base / "lib"
        needs = [library(folder / "liborder.so", source="char order[256]; long own;")]
        for number in range(LIBRARIES):
            last = number == LIBRARIES - 1
            body = DONE % f"lib{number}" + (constructor if last else "")
            text = f"{outside if last else ''}\n__attribute__((constructor)) static void c(void)"
            needs.append(
                library(
                    folder / f"lib{number}.so",
                    *(flags if last else ()),
                    needs=needs[:1],
                    source=f"{SHARED}{text} {{{body}}}",
                )  # fmt: skip
            )
        own = f"__attribute__((constructor)) static void c(void) {{{DONE % 'own'}}}"
        text = SHARED + own + "\nint main(int argc, char **argv, char **envp) {" + main + "}\n"
        program(self.app, f"-Wl,-rpath,{folder}", needs=needs, source=text)
        return self

    def command(self, *arguments: str, ranks: int = 3, run: tuple[str, ...] = ("--fork",)) -> list:
        words = [sys.executable, "-m", "brigade", "run", "-q", "-n", str(ranks)]
        words += ["--json", str(self.base / "report.json"), *run]
        return [*words, "--", str(self.app), *arguments]

    def brigade(
        self, *arguments: str, ranks: int = 3, run: tuple[str, ...] = ("--fork",), **options: Any
    ) -> subprocess.CompletedProcess[str]:
        env = {**self.environment, **options.pop("env", {})}
        return subprocess.run(
            self.command(*arguments, ranks=ranks, run=run), env=env, timeout=120, check=False,
            capture_output=True, text=True, **options,
        )  # fmt: skip

    def said(self, *arguments: str, **options: Any) -> list[str]:
        """The lines of a job that ends well, one a rank, sorted."""
        done = self.brigade(*arguments, **options)
        assert (done.returncode, done.stderr) == (0, ""), done
        return sorted(done.stdout.splitlines())

    def fork(self) -> dict[str, Any]:
        """What the last report says of the fork."""
        return json.loads((self.base / "report.json").read_text())["fork"]
