"""`brigade run` and the namespace view: what is chosen, and what the report says of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from project import Site

from brigade.errors import UsageError
from brigade.job import views

STATIC = """
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    char line[100] = "";
    FILE *file = fopen(argc > 1 ? argv[1] : getenv("DATA"), "r");
    puts(file && fgets(line, sizeof line, file) ? line : "nothing");
    return 0;
}
"""


def compiled(folder: Path, *flags: str) -> Path:
    program = folder / ("static" if flags else "dynamic")
    command = ["cc", "-x", "c", "-", "-o", str(program), *flags]
    subprocess.run(command, input=STATIC, text=True, check=True)
    return program


def test_only_static_programs_get_the_namespace_by_themselves(tmp_path: Path) -> None:
    static, dynamic = compiled(tmp_path, "-static"), compiled(tmp_path)
    assert views.automatic([[str(static)]], has_python=False) == ["namespace", "interpose"]
    assert views.automatic([[str(dynamic)]], has_python=False) == ["interpose"]
    assert views.automatic([[sys.executable]], has_python=True) == ["interpose", "python"]
    several = [[str(dynamic)], [str(static), "x"]]
    assert views.automatic(several, has_python=False) == ["namespace", "interpose"]
    wrapper = static.rename(tmp_path / "pixi")  # of its own it asks little, and Python much
    assert views.automatic([[str(wrapper), "run"]], has_python=True) == ["interpose", "python"]
    assert views.automatic([[str(wrapper), "run"]], has_python=False)[0] == "namespace"
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    for other in (str(script), "no-such-program", "sh"):
        assert views.automatic([[other]], has_python=False) == ["interpose"]
    with pytest.raises(UsageError):
        views.parse("namespace,overlay")


def test_a_static_program_is_served_from_an_image_of_its_software(tmp_path: Path) -> None:
    prefix = tmp_path / "sw"
    (prefix / "share").mkdir(parents=True)
    (prefix / "share" / "data").write_text("staged\n")
    program = compiled(tmp_path, "-static")
    image, report = tmp_path / "sw.brg", tmp_path / "report.json"
    brigade = [sys.executable, "-m", "brigade"]
    create = [*brigade, "image", "create", "-q", "--prefix", str(prefix), "-o", str(image)]
    subprocess.run(create, check=True)
    (tmp_path / "node").mkdir()
    stamp = os.stat(prefix / "share" / "data")
    (prefix / "share" / "data").write_text("CHANGE\n")  # of one size and time: not noticed
    os.utime(prefix / "share" / "data", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    run = [*brigade, "run", "-n", "2", "--check", "none", "--image", str(image)]
    run += ["--json", str(report), "--", str(program), str(prefix / "share" / "data")]
    places = {"BRIGADE_NODE_DIR": str(tmp_path / "node")}
    done = subprocess.run(
        run, env={**os.environ, **places}, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["staged"] * 2, done.stderr
    told = json.loads(report.read_text())
    assert told["views"] == ["namespace", "interpose"]
    assert told["namespace"] == {"nodes": 1, "ranks": 2, "folders": 1, "without": {}}
    assert "2 ranks, 1 folder covered" in done.stderr
    assert not list((tmp_path / "node").glob("brigade-*/[0-9a-f]*"))


def test_the_report_says_why_ranks_did_without(made: Site) -> None:
    """In a user namespace that allows no further ones, `max_user_namespaces` being its own."""
    limit = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    shell = ["unshare", "--user", "--map-root-user", "/bin/sh", "-c", limit, "sh"]
    if subprocess.run([*shell, "true"], capture_output=True).returncode:
        pytest.skip("needs user namespaces, to take them away")
    report = made.base / "report.json"
    brigade = [sys.executable, "-m", "brigade", "run", "--json", str(report), "--view", "namespace"]
    places = {"BRIGADE_CACHE": str(made.base / "cache"), "BRIGADE_NODE_DIR": str(made.nodes)}
    command = [*shell, *brigade, "--", str(made.python), str(made.app)]
    done = subprocess.run(
        command, env={**os.environ, **places}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    told = made.report()["namespace"]
    assert told["ranks"] == 0
    assert set(told["without"].values()) == {
        "no user namespaces for this user (No space left on device)"
    }
    assert "no user namespaces" in done.stderr


def test_a_static_program_is_served_from_its_own_trial(tmp_path: Path) -> None:
    """`lib` beside `bin`: installed software. What was read there is in the image."""
    prefix, report = tmp_path / "sw", tmp_path / "report.json"
    for name in ("bin", "lib"):
        (prefix / name).mkdir(parents=True)
    (tmp_path / "node").mkdir()
    data = prefix / "lib" / "data"
    data.write_text("staged\n")
    program = compiled(prefix / "bin", "-static")
    places = {"BRIGADE_NODE_DIR": str(tmp_path / "node"), "BRIGADE_CACHE": str(tmp_path / "cache")}

    def run(*options: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "brigade", "run", "--cover", str(prefix), *options]
        command += ["--json", str(report), "--", str(program)]
        return subprocess.run(
            command, env={**os.environ, **places, "DATA": str(data)}, cwd=tmp_path,
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    first = run()
    assert first.stdout.split() == ["staged"], first.stderr
    stamp = os.stat(data)
    data.write_text("CHANGE\n")  # of one size and time: not noticed
    os.utime(data, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    second = run("--check", "none")
    assert second.stdout.split() == ["staged"], second.stderr
    told = json.loads(report.read_text())
    assert told["views"][0] == "namespace" and not told["image"]["trial"]
    assert told["namespace"]["ranks"] == 1 and told["namespace"]["without"] == {}


def test_a_static_program_whose_image_holds_no_software_is_not_bothered(tmp_path: Path) -> None:
    program, report = compiled(tmp_path, "-static"), tmp_path / "report.json"
    (tmp_path / "node").mkdir()
    places = {"BRIGADE_NODE_DIR": str(tmp_path / "node"), "BRIGADE_CACHE": str(tmp_path / "cache")}
    run = [sys.executable, "-m", "brigade", "run", "--json", str(report), "--cover", str(tmp_path)]
    done = subprocess.run(
        [*run, "--", str(program), "/etc/hostname"],
        env={**os.environ, **places}, cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(report.read_text())
    assert told["unstaged"] is None and told["namespace"] is None
    assert "namespace" not in done.stderr
