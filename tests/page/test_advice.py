"""What an insight says about a real program is so, and its command makes the start-up cheaper."""

from __future__ import annotations

import json
import os
import shutil
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


IMPORTS = "import json, email.message, http.client, decimal, statistics\n"


def profiled(folder: Path, environment: dict[str, str], source: str = IMPORTS) -> dict[str, Any]:
    """The profile of a Python program that lies in `folder`, which counts as shared."""
    script = folder / "app.py"
    script.write_text(source)
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


def test_a_variable_whose_other_folder_is_in_use_keeps_it_on_whatever_mount(tmp_path: Path):
    folder, local = tmp_path.resolve() / "shared", tmp_path.resolve() / "local"
    idle = [folder / name for name in ("python", "lib")]
    for one in (*idle, local):
        one.mkdir(parents=True)
    (local / "of_use.py").write_text("")
    linked = subprocess.run(["ldd", sys.executable], capture_output=True, text=True).stdout
    library = next(word for word in linked.split() if word.startswith("/") and "/libm." in word)
    shutil.copy(library, local)
    here = os.environ.get("PYTHONPATH", "")
    told = {"PYTHONPATH": f"{idle[0]}:{local}:{here}", "LD_LIBRARY_PATH": f"{idle[1]}:{local}"}
    found = profiled(folder, told, "import of_use\n" + IMPORTS)
    used = [e for e in found["searches"] if e["place"] == str(local) and e["found"]]
    assert {e["cause"] for e in used} == {"sys.path", "LD_LIBRARY_PATH"}
    said = {one["title"]: one["command"] for one in found["insights"]}
    for variable in told:
        (command,) = [c for title, c in said.items() if f"1 {variable} folder gave" in title]
        left = subprocess.run(
            ["sh", "-c", f'{command}; printf %s "${variable}"'],
            env={**os.environ, **told},
            capture_output=True,
            text=True,
        ).stdout
        assert str(local) in left and str(folder) not in left
