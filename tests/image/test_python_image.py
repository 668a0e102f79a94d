"""Images from Python: what is written is read back; damage and misuse raise ImageError."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from brigade.errors import ImageError
from brigade.image import layout
from brigade.image.layout import ABSENT, DIR, EXISTS, FILE, MISSING
from brigade.image.reader import Image
from brigade.image.writer import ImageWriter, search_context


@pytest.fixture
def tree(tmp_path):
    here = tmp_path.resolve() / "tree"
    (here / "lib").mkdir(parents=True)
    (here / "lib" / "one.py").write_bytes(b"one = 1\n" * 2000)
    (here / "lib" / "same.py").write_bytes(b"one = 1\n" * 2000)
    (here / "lib" / "empty").write_bytes(b"")
    (here / "lib64").symlink_to("lib")
    return here


def write(tree, path, **options):
    with ImageWriter(path, **options) as writer:
        fill(writer, tree)
        writer.commit()
    return path


def fill(writer, tree):
    writer.add_root(str(tree))
    writer.add(str(tree), os.lstat(tree), listed=True)
    for order, path in enumerate(sorted(tree.rglob("*"))):
        found = os.lstat(path)
        if path.is_symlink():
            writer.add(str(path), found, target=os.readlink(path))
        elif path.is_dir():
            writer.add(str(path), found, listed=True)
        else:
            writer.add(str(path), found, source=str(path), order=order)
    writer.add(str(tree / "lib" / "none.py"), err=errno.ENOENT)


@pytest.fixture
def image(tree, tmp_path):
    with Image(write(tree, tmp_path / "x.brg", block_bytes=4096)) as opened:
        yield opened


def test_every_field_of_a_stat_comes_back(tree, tmp_path):
    stats = {path: os.lstat(path) for path in [tree, *tree.rglob("*")]}
    with ImageWriter(tmp_path / "x.brg") as writer:
        for path, found in stats.items():
            target = os.readlink(path) if path.is_symlink() else None
            writer.add(str(path), found, target=target)
        writer.commit()
    with Image(tmp_path / "x.brg") as image:
        entries = {entry.path: entry for entry in image.entries()}
    names = "mode uid gid nlink size blocks blksize dev ino rdev atime_ns mtime_ns ctime_ns"
    for path, found in stats.items():
        for name in names.split():
            have = getattr(entries[str(path)], name)
            assert have == getattr(found, "st_" + name), (path, name)


def test_contents_come_back_and_equal_ones_are_one(tree, image):
    for path in ("lib/one.py", "lib64/same.py", "lib/empty"):
        assert image.read(str(tree / path)) == (tree / path).read_bytes()
    one, same = (image.lookup(str(tree / "lib" / name)).entry for name in ("one.py", "same.py"))
    assert one.content == same.content
    assert image.n_contents == 2
    assert image.read_content(one.content, 7990, 20) == (b"one = 1\n" * 2000)[7990:8010]


def test_entries_children_and_absences_are_listed(tree, image):
    paths = [entry.path for entry in image.entries()]
    assert paths[0] == str(tree)
    assert len(paths) == len(set(paths)) == image.n_entries == 7
    lib = image.lookup(str(tree / "lib")).entry
    assert lib.listed
    assert [os.path.basename(e.path) for e in image.children(lib)] == ["empty", "one.py", "same.py"]
    found = image.lookup(str(tree / "lib" / "none.py"))
    assert (found.status, found.err, found.entry.kind) == (MISSING, errno.ENOENT, ABSENT)


def test_roots_sections_and_answers_come_back(tmp_path):
    context = search_context("/usr/bin/python3", "/opt/lib")
    with ImageWriter(tmp_path / "x.brg") as writer:
        for root in ("/sw", "/opt", "/sw"):
            writer.add_root(root)
        writer.meta = {"program": ["python", "app.py"]}
        writer.python_table = bytes(range(256))
        writer.add_answer(context, "/usr/bin/python3", "libz.so.1", "/opt/lib/libz.so.1")
        writer.add_answer(context, "/usr/bin/python3", "libnone.so")
        image_id = writer.commit()
    with Image(tmp_path / "x.brg") as image:
        assert image.id == image_id
        assert image.roots == ["/opt", "/sw"]
        assert image.meta == {"program": ["python", "app.py"]}
        assert image.python_table == bytes(range(256))
        assert [(a.name, a.path) for a in image.answers()] == [
            ("libnone.so", ""),
            ("libz.so.1", "/opt/lib/libz.so.1"),
        ]
        assert {a.context for a in image.answers()} == {context}


def test_contents_of_an_older_image_serve_and_what_is_none_is_done_without(tree, tmp_path):
    old = write(tree, tmp_path / "old.brg")
    with ImageWriter(tmp_path / "new.brg", base=old) as writer:
        fill(writer, tree)
        data = (tree / "lib/one.py").read_bytes()
        (tree / "lib/one.py").unlink()
        writer.commit()
    with Image(tmp_path / "new.brg") as image:
        assert image.read(str(tree / "lib/one.py")) == data
        image.verify()
    (tree / "lib/one.py").write_bytes(b"two = 2\n")
    with Image(write(tree, tmp_path / "new.brg", base=tree / "lib/one.py")) as image:
        assert image.read(str(tree / "lib/one.py")) == b"two = 2\n"


def test_a_name_that_is_not_utf8_survives(tmp_path):
    name = os.fsdecode(b"/r/\xff\xfe")
    with ImageWriter(tmp_path / "x.brg") as writer:
        writer.add(name, kind=FILE, source=b"odd")
        writer.commit()
    with Image(tmp_path / "x.brg") as image:
        assert [entry.path for entry in image.entries()] == [name]


def test_bytes_can_be_a_content_without_a_file(tmp_path):
    with ImageWriter(tmp_path / "x.brg", level=0) as writer:
        writer.add_root("/.brigade")
        writer.add("/.brigade", kind=DIR)
        writer.add("/.brigade/data", kind=FILE, source=b"\0" * 10000)
        writer.commit()
    with Image(tmp_path / "x.brg") as image:
        assert image.lookup("/.brigade/data").status == EXISTS
        assert image.read("/.brigade/data") == b"\0" * 10000
        assert image.total_bytes > 10000  # level 0 stores


def test_what_an_image_does_not_hold_is_said(tree, image):
    with pytest.raises(ImageError, match="none.py"):
        image.read(str(tree / "lib" / "none.py"))
    with pytest.raises(ImageError, match="does not hold"):
        image.read(str(tree))
    with pytest.raises(ImageError, match="has only"):
        image.read_content(0, 10**9, 1)
    with pytest.raises(IndexError):
        image.entry(image.n_entries)


def test_a_lost_source_is_told_and_its_entry_stays(tree, tmp_path):
    told = []
    with ImageWriter(tmp_path / "x.brg") as writer:
        fill(writer, tree)
        (tree / "lib" / "one.py").write_text("changed")
        (tree / "lib" / "empty").unlink()
        writer.commit(lost=lambda path, words: told.append((os.path.basename(path), words)))
    assert sorted(name for name, _ in told) == ["empty", "one.py"]
    assert all("tree/lib" in words for _, words in told)
    with Image(tmp_path / "x.brg") as image:
        assert image.lookup(str(tree / "lib" / "one.py")).entry.content is None
        assert image.read(str(tree / "lib" / "same.py"))


def test_a_lost_source_without_a_listener_is_an_error_and_leaves_nothing(tree, tmp_path):
    with ImageWriter(tmp_path / "x.brg") as writer:
        fill(writer, tree)
        (tree / "lib" / "one.py").write_text("changed")
        with pytest.raises(ImageError, match="one.py changed"):
            writer.commit()
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


@pytest.mark.parametrize("where", ["commit", "verify"])
def test_an_exception_in_progress_stops_the_work_and_comes_through(tree, tmp_path, where):
    def stop(done, total):
        raise KeyboardInterrupt

    path = tmp_path / "x.brg"
    if where == "verify":
        write(tree, path)
        with Image(path) as image, pytest.raises(KeyboardInterrupt):
            image.verify(stop)
        return
    with ImageWriter(path) as writer:
        fill(writer, tree)
        with pytest.raises(KeyboardInterrupt):
            writer.commit(stop)
    assert not path.exists()


def test_progress_ends_at_the_total(tree, tmp_path):
    seen = []
    with ImageWriter(tmp_path / "x.brg") as writer:
        fill(writer, tree)
        writer.commit(lambda *state: seen.append(state))
    assert seen[-1] == (32000, 32000)
    with Image(tmp_path / "x.brg") as image:
        seen.clear()
        image.verify(lambda *state: seen.append(state))
    assert seen[-1] == (16000, 16000)


def test_damage_names_the_file_and_the_offset(tree, tmp_path):
    path = write(tree, tmp_path / "x.brg")
    good = path.read_bytes()
    path.write_bytes(good[:-1])
    with pytest.raises(ImageError, match=r"x\.brg is truncated"):
        Image(path)
    with_flip = bytearray(good)
    with_flip[-40] ^= 1  # in the last block
    path.write_bytes(with_flip)
    with Image(path) as image, pytest.raises(ImageError, match=r"x\.brg .*block 0 at offset \d+"):
        image.verify()


def test_an_image_that_shrinks_while_it_is_open_is_an_error(tree, tmp_path):
    path = write(tree, tmp_path / "x.brg")
    with Image(path) as image:
        os.truncate(path, 5000)
        assert image.lookup(str(tree / "lib")).status == EXISTS
        with pytest.raises(ImageError, match="truncated"):
            image.read(str(tree / "lib" / "one.py"))


def test_a_closed_image_or_writer_says_so(tree, tmp_path):
    image = Image(write(tree, tmp_path / "x.brg"))
    image.close()
    image.close()
    for use in (lambda: image.lookup("/"), lambda: list(image.entries()), lambda: image.roots):
        with pytest.raises(ImageError, match="closed"):
            use()
    writer = ImageWriter(tmp_path / "y.brg")
    writer.close()
    with pytest.raises(ImageError, match="closed"):
        writer.add_root("/r")


def test_a_name_with_a_nul_is_refused(tmp_path):
    with ImageWriter(tmp_path / "x.brg") as writer, pytest.raises(ImageError, match="NUL"):
        writer.add("/r/a\0b")


def test_a_description_that_is_not_json_is_an_error(tmp_path):
    from brigade.image import _lib

    with ImageWriter(tmp_path / "x.brg") as writer:
        writer.meta = {"a": "MARK"}
        writer.commit()
    broken = tmp_path / "x.brg"
    real_call = _lib.call

    def call(name, *arguments):
        if name == "writer_set_section" and arguments[1] == 1:
            arguments = (arguments[0], 1, b"[1]", 3)
        real_call(name, *arguments)

    with pytest.MonkeyPatch.context() as patch, ImageWriter(broken) as writer:
        patch.setattr(_lib, "call", call)
        writer.commit()
    with Image(broken) as image, pytest.raises(ImageError, match="not a JSON object"):
        _ = image.meta


def test_two_formats_of_the_layout_agree(tree, image):
    assert layout.HEADER.size == 184
    assert (layout.ENTRY.size, layout.ANSWER.size) == (144, 40)
    assert layout.HEADER.unpack_from(image._index)[2] == layout.HEADER.size


def test_opening_an_image_imports_little(tree, tmp_path):
    path = write(tree, tmp_path / "x.brg")
    program = (
        "import sys; from brigade.image.reader import Image\n"
        f"Image({str(path)!r}).close()\n"
        "heavy = {'json', 'rich', 'click', 'tempfile', 'inspect'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-S", "-c", program], check=True, env=environment())


def environment():
    """For a child without site-packages: where this test's `brigade` is."""
    import brigade
    from brigade.paths import native_dir

    package = os.path.dirname(os.path.dirname(brigade.__file__))
    return {**os.environ, "PYTHONPATH": package, "BRIGADE_NATIVE": str(native_dir())}


def test_verify_covers_brigades_own_parts(tmp_path):
    path = tmp_path / "own.brg"
    with ImageWriter(path) as writer:
        writer.add_root("/sw")
        writer.add("/.brigade", kind=DIR)
        writer.add("/.brigade/tool", kind=FILE, source=os.urandom(5000))
        writer.commit()
    with Image(path) as image:
        image.verify()
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)
    with Image(path) as image, pytest.raises(ImageError, match="own.brg"):
        image.verify()
