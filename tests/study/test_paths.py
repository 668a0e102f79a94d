"""`brigade study paths`: what each variant saves is counted, and no file of the user's changes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from brigade.study import shorten

needs_patchelf = pytest.mark.skipif(not shutil.which("patchelf"), reason="needs patchelf")
N = 5


def compile_c(source: str, target: Path, *flags: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-x", "c", "-", "-o", str(target), *flags]
    subprocess.run(command, input=source, text=True, check=True)


@pytest.fixture(scope="module")
def app(tmp_path_factory) -> Path:
    """A program whose libraries lie in a folder each, behind as many empty ones."""
    root = tmp_path_factory.mktemp("paths") / "app"
    for i in range(N):
        (root / f"empty{i}").mkdir(parents=True)
        compile_c(
            f"int f{i}(void) {{ return {i}; }}", root / f"lib{i}/libf{i}.so", "-shared", "-fPIC"
        )
    calls = "+".join(f"f{i}()" for i in range(N))
    declared = "".join(f"int f{i}(void);" for i in range(N))
    search = ":".join(
        [f"$ORIGIN/../empty{i}" for i in range(N)] + [f"$ORIGIN/../lib{i}" for i in range(N)]
    )
    linked = [word for i in range(N) for word in (f"-L{root}/lib{i}", f"-lf{i}")]
    compile_c(
        f"{declared} int main(void) {{ return ({calls}) != {sum(range(N))}; }}",
        root / "bin/app",
        "-Wl,--no-as-needed", *linked, f"-Wl,-rpath,{search}", "-Wl,--enable-new-dtags",
    )  # fmt: skip
    return root


def tree(root: Path) -> dict[str, str]:
    """Path -> content's hash, or link's target, of everything below."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            found[str(path)] = os.readlink(path)
        else:
            found[str(path)] = hashlib.sha1(path.read_bytes()).hexdigest() if path.is_file() else ""
    return found


def study(app: Path, *words: object, **variables: str) -> tuple[dict, str]:
    raw = app.parent.parent / f"raw-{os.getpid()}.json"
    command = [sys.executable, "-m", "brigade", "study", "paths", "--json", raw, "--repeats", 1]
    done = subprocess.run(
        list(map(str, [*command, *words])),
        env={**os.environ, **variables}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(raw.read_text()), done.stdout


def test_links_and_shrunk_paths_save_failed_probes_and_change_no_file(app):
    before = tree(app.parent)
    variants = "plain,links" + (",shrunk" if shutil.which("patchelf") else "")
    found, said = study(app, "--variants", variants, "--widths", 1, "--", app / "bin/app")
    calls = found["operations"]
    # library i is found in the directory N + i; the first visits look for hwcaps, too
    probes = sum(N + i for i in range(N))
    assert calls["plain"]["failed"] >= probes
    assert calls["links"]["failed"] <= calls["plain"]["failed"] - probes
    if "shrunk" in calls:
        assert calls["shrunk"]["failed"] <= calls["plain"]["failed"] - N * N
    assert "Calls by path of one rank" in said
    assert tree(app.parent) == before


def test_under_brigade_probes_are_answered_from_memory(app):
    words = ["--variants", "brigade", "--widths", "1,2", "--", app / "bin/app"]
    found, _ = study(app, *words)
    assert found["left_out"] == {}
    calls = found["operations"]
    # what is left: those of the loader before Brigade is there
    assert calls["brigade"]["failed"] <= calls["plain"]["failed"] - sum(N + i for i in range(N))
    assert {s["ranks"] for s in found["samples"] if s["variant"] == "brigade"} == {1, 2}


def test_a_run_without_an_image_is_not_taken_for_brigade(app):
    words = ["--variants", "brigade", "--widths", 1, "--", app / "bin/app"]
    found, _ = study(app, *words, BRIGADE_NODE_DIR="/proc/nowhere")
    assert "it ran without an image" in found["left_out"]["brigade"]


def test_a_shortened_path_leaves_out_what_never_found_anything(app):
    path = f"{app}/empty0:{app}/lib0:{app}/empty1"
    words = ["--variants", "short", "--widths", 1, "--", app / "bin/app"]
    found, _ = study(app, *words, LD_LIBRARY_PATH=path)
    calls = found["operations"]
    assert calls["short"]["failed"] < calls["plain"]["failed"]
    assert {s["variant"] for s in found["samples"]} == {"plain", "short"}


def test_variants_that_would_change_nothing_are_left_out_with_a_word(tmp_path):
    (tmp_path / "bin").mkdir()
    shutil.copy2("/bin/true", tmp_path / "bin/app")
    words = ["--variants", "short,shrunk", "--widths", 1, "--", tmp_path / "bin/app"]
    found, said = study(
        tmp_path, *words, LD_LIBRARY_PATH="", PYTHONPATH=os.environ.get("PYTHONPATH", "")
    )
    assert set(found["left_out"]) == {"short", "shrunk"}
    assert "RPATH was left out" in said


@needs_patchelf
def test_a_copy_that_does_not_start_is_left_out_with_its_reason(app, tmp_path):
    """A patchelf that breaks what it touches."""
    (tmp_path / "patchelf").write_text('#!/bin/sh\nfor last; do :; done; : > "$last"\n')
    (tmp_path / "patchelf").chmod(0o755)
    words = ["--variants", "shrunk", "--widths", 1, "--", app / "bin/app"]
    command = [sys.executable, "-m", "brigade", "study", "paths", *map(str, words)]
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(command, env={**os.environ, **path}, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert "shrunk RPATH was left out" in done.stdout
    assert not list(app.parent.glob("brigade-study-*"))


def test_an_unknown_variant_is_refused():
    command = [sys.executable, "-m", "brigade", "study", "paths", "--variants", "x", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "variants are plain, links" in done.stderr


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/a:/b:/c", "/b:/c"),
        ("/b/", "/b/"),
        ("/a", ""),
        ("", ""),
    ],
)
def test_entries_with_libraries_stay(path, wanted):
    opened = ["/b/libx.so.1", "/a", "/a/sub/liby.so", "/c/glibc-hwcaps/x86-64-v3/libz.so"]
    assert shorten.of_libraries(path, opened) == wanted


def test_entries_with_modules_stay():
    opened = ["/p/pkg/__init__.py", "/q", "/q/pkg", "/rr/m.py"]
    assert shorten.of_modules("/p:/q:/r:/rr", opened) == "/p:/rr"


def test_archives_that_were_opened_stay():
    opened = ["/a/one.zip", "/a/two.egg", "/a/lib-1.2"]
    path = "/a/one.zip:/a/lib-1.2:/a/two.egg:/a/none.zip"
    assert shorten.of_modules(path, opened) == "/a/one.zip:/a/two.egg"
