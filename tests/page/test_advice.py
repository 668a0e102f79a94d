"""What an insight says about a real program is so, and its command makes the start-up cheaper."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from brigade import paths
from brigade.errors import BrigadeError


@pytest.fixture(autouse=True)
def able() -> None:
    try:
        paths.native("brigade-trace")
    except BrigadeError:
        pytest.skip("needs brigade-trace (`make native`)")


def profiled(folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    """The profile of a Python program that lies in `folder`, which counts as shared."""
    script = folder / "app.py"
    script.write_text("import json, email.message, http.client, decimal, statistics\n")
    out = folder.parent / "profile.json"
    command = [sys.executable, "-m", "brigade", "profile", "--html", "none", "--json", str(out)]
    done = subprocess.run(
        [*command, "--cover", str(folder), "--", sys.executable, str(script)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def calls(profile: dict[str, Any], mount: str) -> int:
    fields = profile["cell_fields"]
    where, number = fields.index("mount"), fields.index("calls")
    return sum(cell[number] for cell in profile["cells"] if cell[where] == mount)


def test_idle_folders_of_path_variables_are_found_and_leaving_them_out_is_cheaper(tmp_path: Path):
    folder = tmp_path.resolve() / "shared"
    for name in ("a", "b", "lib"):
        (folder / name).mkdir(parents=True)
    here = os.environ.get("PYTHONPATH", "")
    idle = f"{folder}/a:{folder}/b"
    before = profiled(folder, {"PYTHONPATH": f"{idle}:{here}", "LD_LIBRARY_PATH": f"{folder}/lib"})
    titles = {one["title"]: one["command"] for one in before["insights"]}
    (python,) = [title for title in titles if "2 PYTHONPATH folders gave nothing" in title]
    (library,) = [title for title in titles if "1 LD_LIBRARY_PATH folder gave nothing" in title]
    assert titles[library] == "unset LD_LIBRARY_PATH"
    script = f'{titles[python]}; {titles[library]}; printf %s "$PYTHONPATH"'
    mended = subprocess.run(
        ["sh", "-c", script],
        env={**os.environ, "PYTHONPATH": f"{idle}:{here}", "LD_LIBRARY_PATH": f"{folder}/lib"},
        capture_output=True,
        text=True,
    ).stdout
    assert mended in (here, "")
    after = profiled(folder, {"PYTHONPATH": here, "LD_LIBRARY_PATH": ""})
    assert calls(before, str(folder)) > 2 * calls(after, str(folder))
    assert not [one for one in after["insights"] if "PATH folder" in one["title"]]
