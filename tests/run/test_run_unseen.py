"""A program that starts others which Brigade does not see reads what those have written now."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import mpi_world
import pytest
from project import Site

from brigade.image.grow import grow
from brigade.image.missed import missed_of

WRITES = """
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int f = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    return write(f, argv[2], strlen(argv[2])) < 0 || close(f);
}
"""
READS = """
import os, subprocess, sys, time
here, now = os.path.dirname(__file__), str(time.time_ns())
subprocess.run([*sys.argv[1:], here + "/tool", here + "/out.txt", now], check=True)
print("now" if open(here + "/out.txt").read() == now else "then")
"""
IMPORTS = """
import importlib, os, subprocess, sys, time
here, now = os.path.dirname(__file__), str(time.time_ns())
text = f"x = {now} " + "#" * (int(now) // 1000 % 997)  # byte code is known by seconds and size
subprocess.run([here + "/tool", here + "/made.py", text], check=True)
importlib.invalidate_caches()
import made
print("now" if str(made.x) == now else "then")
"""


def site_with(site: Site, program: str, *flags: str) -> Site:
    site.app.write_text(program)
    tool = site.app.parent / "tool"
    command = ["cc", "-x", "c", "-", "-o", str(tool), *flags]
    subprocess.run(command, input=WRITES, text=True, check=True)
    return site


def run_again(site: Site, *words: str) -> list[str]:
    """What three runs say; the second and third find the first one's image fresh."""
    said = []
    for _ in range(3):
        done = site.brigade(
            *words, run=("-n", "1", "--cover", str(site.base)), env=mpi_world.ENVIRONMENT
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.strip())
    assert site.report()["image"]["trial"] is None, "the image was made again"
    return said


def test_a_static_program_writes_what_the_python_that_started_it_reads(site: Site) -> None:
    assert run_again(site_with(site, READS, "-static")) == ["now"] * 3


@pytest.mark.skipif(not shutil.which("mpirun"), reason="needs an MPI")
def test_so_does_what_a_launcher_starts(site: Site) -> None:
    assert run_again(site_with(site, READS), "mpirun", "-n", "1") == ["now"] * 3


@pytest.mark.parametrize("view", ["interpose,python", "python"])
def test_a_static_program_writes_a_module_that_is_imported(site: Site, view: str) -> None:
    site_with(site, IMPORTS, "-static")
    for _ in range(2):
        done = site.brigade(run=("-n", "1", "--view", view, "--cover", str(site.base)))
        assert (done.returncode, done.stdout) == (0, "now\n"), done.stderr


def test_an_image_that_has_grown_still_knows_what_is_written_anew(site: Site) -> None:
    site_with(site, READS, "-static")
    run = ("-n", "1", "--cover", str(site.base))
    assert site.brigade(run=run).stdout == "now\n"
    (image,) = (site.base / "cache/images").glob("*.brg")
    Path(missed_of(str(image))).write_text(f'[["open", "{site.package}/deep/leaf.py"]]')
    grown = grow(str(image))
    assert grown is not None
    assert str(site.app.parent / "out.txt") in [left.path for left in grown.built.left_out]
    assert site.brigade(run=run).stdout == "now\n"
