"""A look-up in an image says what the kernel says about the same tree, or that it cannot tell."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brigade.image.layout import EXISTS, MISSING, OUTSIDE, UNKNOWN
from brigade.image.reader import Image
from brigade.image.writer import ImageWriter

NAMES = st.sampled_from(["a", "b", "c", "dd"])
COMPONENTS = st.sampled_from(["a", "b", "c", "dd", "x", ".", "..", ""])
# HERE stands for the tree's own path, so that absolute targets lead back into it
STARTS = st.sampled_from(["", "", "HERE/", "HERE/../", "/"])


@st.composite
def words(draw, start=STARTS, most=5):
    path = draw(start) + "/".join(draw(st.lists(COMPONENTS, min_size=1, max_size=most)))
    return path or "."


THINGS = st.lists(
    st.tuples(
        st.sampled_from(["dir", "dir", "file", "link", "link"]),
        st.lists(NAMES, min_size=1, max_size=4),
        words(),
    ),
    max_size=25,
)
QUERIES = st.lists(words(start=st.just("HERE/"), most=7), min_size=1, max_size=25)


def quick(examples):
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )


@contextmanager
def a_tree(things):
    """A real folder with these things in it; what cannot be made there is left out."""
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="brigade-tree-")))
    here = base / "tree"
    here.mkdir()
    try:
        for kind, names, target in things:
            path = here.joinpath(*names)
            try:
                if os.path.realpath(path.parent) != str(path.parent):
                    continue  # through a link
                if kind == "dir":
                    path.mkdir(parents=True)
                elif kind == "file":
                    with open(path, "x") as file:  # not through a link
                        file.write("/".join(names))
                else:
                    path.symlink_to(target.replace("HERE", str(here)))
            except OSError:
                pass
        yield here
    finally:
        shutil.rmtree(base)


def everything_in(here):
    """(path, children) of the tree, links not followed; children is None for what is no folder."""
    for folder, dirs, files in os.walk(here):
        names = dirs + files
        yield folder, [os.path.join(folder, name) for name in names]
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isdir(path):
                yield path, None


def add(writer, path, listed=False):
    found = os.lstat(path)
    target = os.readlink(path) if os.path.islink(path) else None
    writer.add(path, found, target=target, listed=listed)


def ask(path, follow):
    """(errno, device, inode) as the kernel has it."""
    try:
        found = os.stat(path, follow_symlinks=follow)
    except OSError as error:
        return error.errno, None, None
    return 0, found.st_dev, found.st_ino


def compare(image, here, query, everything_is_known):
    for follow in (True, False):
        found = image.lookup(query, follow)
        truth = ask(query, follow)
        note = f"{query} (follow={follow}): {found} but {truth}"
        if found.status == EXISTS:
            assert truth == (0, found.entry.dev, found.entry.ino), note
        elif found.status == MISSING:
            assert truth[0] == found.err, note
        else:
            assert ask(found.path, follow) == truth, note
        if everything_is_known and found.status == UNKNOWN:
            assert truth[0] == errno.ELOOP, note
        if found.status == OUTSIDE:
            # it stops where it leaves the tree, and what remains may come back
            assert not (os.path.normpath(found.path) + "/").startswith(f"{here}/") or any(
                part == ".." for part in found.path.split("/")
            ), note


@quick(150)
@given(things=THINGS, queries=QUERIES)
def test_a_listed_tree_is_answered_exactly_as_the_kernel_does(things, queries):
    with a_tree(things) as here:
        image_path = here.parent / "image"
        with ImageWriter(image_path) as writer:
            writer.add_root(str(here))
            for path, children in everything_in(here):
                add(writer, path, listed=children is not None)
            writer.commit()
        with Image(image_path) as image:
            for query in queries:
                compare(image, here, query.replace("HERE", str(here)), True)


@quick(150)
@given(things=THINGS, queries=QUERIES, data=st.data())
def test_an_image_that_knows_a_part_is_never_wrong(things, queries, data):
    with a_tree(things) as here:
        image_path = here.parent / "image"
        tree = dict(everything_in(here))
        known, listed = {str(here)}, set()
        for path, children in tree.items():
            if data.draw(st.booleans()):
                known.add(path)
            if children is not None and data.draw(st.booleans()):
                listed.add(path)
                known.update([path, *children])
        for path in list(known):  # parents are known too
            while path != str(here):
                path = os.path.dirname(path)
                known.add(path)
        with ImageWriter(image_path) as writer:
            writer.add_root(str(here))
            for path in known:
                add(writer, path, path in listed)
            for path, children in tree.items():
                for name in ("a", "x"):
                    absent = os.path.join(path, name)
                    if os.path.islink(path) or os.path.lexists(absent):
                        continue
                    if data.draw(st.booleans()):
                        code = errno.ENOTDIR if children is None else errno.ENOENT
                        writer.add(absent, err=code)
            writer.commit()
        with Image(image_path) as image:
            for query in queries:
                compare(image, here, query.replace("HERE", str(here)), False)


@pytest.mark.parametrize("links", [40, 41])
def test_the_forty_first_link_is_too_many_for_both(tmp_path, links):
    here = Path(os.path.realpath(tmp_path)) / "tree"
    here.mkdir()
    (here / "l0").write_text("end")
    for i in range(links):
        (here / f"l{i + 1}").symlink_to(f"l{i}")
    with ImageWriter(tmp_path / "image") as writer:
        writer.add_root(str(here))
        for path, children in everything_in(here):
            add(writer, path, listed=children is not None)
        writer.commit()
    with Image(tmp_path / "image") as image:
        found = image.lookup(str(here / f"l{links}"))
    truth = ask(here / f"l{links}", True)
    if links == 40:
        assert truth[0] == 0
        assert found.status == EXISTS
    else:
        assert truth[0] == errno.ELOOP
        assert found.status == UNKNOWN
