from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from brigade.image.snapshot import Snapshot
from brigade.image.walk import Walker

NAMES = ["a", "b", "c"]
part = st.sampled_from([*NAMES, "..", "."])
relative = st.lists(part, min_size=1, max_size=4).map("/".join)
thing = st.one_of(
    st.just(("dir", "")),
    st.just(("file", "")),
    st.tuples(st.just("link"), relative),
    st.tuples(st.just("absolute"), st.lists(part, max_size=3).map("/".join)),
)
places = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)


def build_world(base: str, things: dict[str, tuple[str, str]]) -> None:
    for place, (kind, target) in sorted(things.items()):
        path = os.path.join(base, place)
        folder = os.path.realpath(os.path.dirname(path))
        if folder != base and not folder.startswith(f"{base}/"):
            continue  # a link leads out of it
        try:
            if kind == "dir":
                os.makedirs(path, exist_ok=True)
            else:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if kind == "file":
                    open(path, "x").close()  # not through a link
                else:
                    os.symlink(f"{base}/{target}" if kind == "absolute" else target, path)
        except OSError:
            continue  # something else is there already


def walker(steps: list[str] | None = None, whole: bool = False) -> Walker:
    steps = [] if steps is None else steps
    return Walker(Snapshot(), lambda folder: whole, steps.append)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(places, thing, max_size=8), st.lists(relative, min_size=1), st.booleans())
def test_paths_lead_where_the_kernel_leads(
    things: dict[str, tuple[str, str]], paths: list[str], whole: bool
) -> None:
    with tempfile.TemporaryDirectory() as made:
        base = os.path.realpath(made)
        build_world(base, things)
        one = walker(whole=whole)
        for path in paths:
            path = f"{base}/{path}"
            end = one.resolve(path)
            try:
                os.stat(path)
            except OSError as error:
                assert end.err == error.errno, path
            else:
                assert end.err == 0, path
                assert end.path == os.path.realpath(path)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(places, thing, max_size=8), relative)
def test_every_step_on_the_way_is_canonical_up_to_its_name(
    things: dict[str, tuple[str, str]], path: str
) -> None:
    with tempfile.TemporaryDirectory() as made:
        base = os.path.realpath(made)
        build_world(base, things)
        steps: list[str] = []
        walker(steps).resolve(f"{base}/{path}")
        for step in steps:
            folder, _, name = step.rpartition("/")
            assert os.path.realpath(folder or "/") == (folder or "/")
            assert name not in ("", ".", "..")
            os.lstat(step)


def test_each_link_of_a_chain_is_a_step(tmp_path: Path) -> None:
    base = Path(os.path.realpath(tmp_path))
    (base / "real").mkdir()
    (base / "one").symlink_to("two")
    (base / "two").symlink_to(base / "real")
    steps: list[str] = []
    assert walker(steps).resolve(f"{base}/one").path == f"{base}/real"
    inside = [os.path.basename(step) for step in steps if step.startswith(f"{base}/")]
    assert list(dict.fromkeys(inside)) == ["one", "two", "real"]


def test_a_dangling_link_ends_at_what_is_missing(tmp_path: Path) -> None:
    base = os.path.realpath(tmp_path)
    os.symlink("gone/for/good", f"{base}/link")
    end = walker().resolve(f"{base}/link")
    assert (end.path, end.err) == (f"{base}/gone", errno.ENOENT)
    assert walker().resolve(f"{base}/link", follow=False).err == 0


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    os.symlink("b", tmp_path / "a")
    os.symlink("a", tmp_path / "b")
    assert walker().resolve(f"{os.path.realpath(tmp_path)}/a").err == errno.ELOOP


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    base = os.path.realpath(tmp_path)
    Path(base, "file").write_text("x")
    assert walker().resolve(f"{base}/file/x").err == errno.ENOTDIR
    assert walker().resolve(f"{base}/file/").err == errno.ENOTDIR
    assert walker().resolve(f"{base}/file/..").err == errno.ENOTDIR
