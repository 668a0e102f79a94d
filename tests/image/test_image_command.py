"""`brigade image info|ls|verify|diff`: what they print, and their exit codes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from brigade.__main__ import main
from brigade.image.layout import DIR, FILE, SYMLINK
from brigade.image.writer import ImageWriter


class Stat:
    """Of a file that never was."""

    def __init__(self, **fields):
        self.st_mode, self.st_uid, self.st_gid, self.st_mtime_ns = 0o100644, 7, 8, 10**18
        self.__dict__.update(fields)


def write(path, *, text=b"text", extra=None, created="1", root="/sw", trial=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    with ImageWriter(path) as writer:
        writer.add_root(root)
        writer.add("/sw", Stat(st_mode=0o40755), DIR, listed=True)
        writer.add("/sw/a.py", Stat(), FILE, source=text)
        writer.add("/sw/link", Stat(st_mode=0o120777), SYMLINK, target="a.py")
        writer.add("/sw/odd\n\x1b[31mname", Stat(), FILE)
        writer.add("/sw/none")
        if extra:
            writer.add(extra, Stat(), FILE, source=b"extra")
        writer.meta = {"created": created, "program": ["python", "app.py"], "trial": trial or {}}
        writer.commit()
    return path


@pytest.fixture
def image(tmp_path):
    return write(tmp_path / "x.brg")


@pytest.fixture
def brigade(tmp_path, monkeypatch, capsys):
    """`brigade image WORDS` inside this process."""
    monkeypatch.setenv("BRIGADE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["brigade", "image", *map(str, words)])
        capsys.readouterr()
        try:
            code = main()
        except SystemExit as end:
            code = end.code or 0
        return subprocess.CompletedProcess(words, code, *capsys.readouterr())

    return run


def test_info_says_what_is_inside(brigade, image):
    facts = json.loads(brigade("info", "--json", image).stdout)
    assert facts["entries"] == {"file": 2, "dir": 1, "symlink": 1, "absent": 1}
    assert (facts["files_held"], facts["files_held_bytes"], facts["roots"]) == (1, 4, ["/sw"])
    assert facts["bytes"] == image.stat().st_size
    text = brigade("info", image).stdout
    for word in (facts["id"], "/sw", "python app.py", "2 file"):
        assert word in text


def test_each_fact_is_a_line_where_there_is_no_terminal(brigade, tmp_path, monkeypatch):
    image = write(tmp_path / ("long name " * 9) / "x.brg", root="/sw" + "/deep" * 50)
    monkeypatch.setenv("COLUMNS", "60")
    lines = brigade("info", image).stdout.splitlines()
    assert [line[4:].strip() for line in lines if line.startswith("file ")] == [str(image)]
    assert lines == [line.rstrip() for line in lines]
    assert sum(line.startswith("answers for ") and line.endswith("/deep") for line in lines) == 1
    monkeypatch.setattr("brigade.cli.image_show.is_terminal", lambda stream: True)
    folded = brigade("info", image).stdout
    assert str(image) not in folded and max(map(len, folded.splitlines())) <= 60
    assert "".join(folded.split()) == "".join("".join(lines).split())


@pytest.mark.parametrize(("term", "redraws"), [("xterm", True), ("dumb", False)])
def test_a_bar_is_drawn_only_where_a_line_can_be_wiped(
    brigade, tmp_path, monkeypatch, term, redraws
):
    (tmp_path / "prefix/lib").mkdir(parents=True)
    (tmp_path / "prefix/lib/a.py").write_text("")
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    done = brigade("create", "--prefix", tmp_path / "prefix", "-o", tmp_path / "a.brg")
    assert done.returncode == 0 and ("\r\033[K" in done.stderr) is redraws


def test_a_folder_is_no_place_for_an_image(brigade, tmp_path, monkeypatch):
    (tmp_path / "prefix").mkdir()
    (tmp_path / "prefix.brg").mkdir()
    monkeypatch.chdir(tmp_path)
    for more, folder in (((), "prefix.brg"), (("-o", "."), ".")):
        done = brigade("create", "--prefix", "prefix", *more)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"brigade: {folder} is a folder\n" in done.stderr


def test_ls_lists_what_exists_and_absences_if_asked(brigade, image):
    lines = brigade("ls", image).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["-L", "C-", "--", "--"]
    assert lines[1].startswith("C- -rw-r--r--     7     8            4 ")
    assert lines[2].endswith("/sw/link -> a.py")
    assert brigade("ls", "--absent", image).stdout == "-- ENOENT /sw/none\n"
    assert len(brigade("ls", "--kind", "dir", "--kind", "symlink", image).stdout.splitlines()) == 2


def test_ls_of_a_path_lists_what_lies_at_and_below_it(brigade, image):
    assert brigade("ls", image, "/sw/a.py").stdout.count("\n") == 1
    assert brigade("ls", image, "/sw/").stdout.count("\n") == 4
    assert brigade("ls", image, "/s").stdout == ""
    assert brigade("ls", image, "sw").returncode == 2


def test_ls_sends_no_control_characters_to_the_terminal(brigade, image):
    listing = brigade("ls", image).stdout
    assert "\x1b" not in listing
    assert "odd\\n\\x1b[31mname" in listing
    paths = [entry["path"] for entry in json.loads(brigade("ls", "--json", image).stdout)]
    assert "/sw/odd\n\x1b[31mname" in paths


def test_verify_says_that_an_image_is_whole(brigade, image):
    assert "is whole" in brigade("verify", image).stdout
    assert json.loads(brigade("verify", "--json", image).stdout)["ok"] is True


@pytest.mark.parametrize("at", [0, 20, 5000, -33, -1])
def test_verify_of_a_damaged_image_says_why_and_exits_4(brigade, image, at):
    damaged = bytearray(image.read_bytes())
    damaged[at] ^= 1
    image.write_bytes(damaged)
    result = brigade("verify", image)
    assert result.returncode == 4
    assert str(image) in result.stderr
    result = brigade("verify", "--json", image)
    assert result.returncode == 4
    assert str(image) in json.loads(result.stdout)["reason"]


@pytest.mark.parametrize("command", ["info", "ls", "verify", "update"])
def test_a_file_that_is_no_image_exits_4(brigade, tmp_path, command):
    (tmp_path / "text").write_text("hello\n" * 2000)
    (tmp_path / "empty").touch()
    for name in ("text", "empty"):
        result = brigade(command, tmp_path / name)
        assert (result.returncode, result.stdout) == (4, "")
        assert "not a Brigade image" in result.stderr
    result = brigade(command, tmp_path)
    assert (result.returncode, result.stdout) == (4, "")
    assert str(tmp_path) in result.stderr


def test_update_of_an_image_that_has_missed_nothing_says_so(brigade, image):
    result = brigade("update", image)
    assert (result.returncode, result.stderr) == (0, "")
    assert "missed nothing" in result.stdout


def test_diff_of_images_made_at_other_times_is_nothing(brigade, image, tmp_path):
    later = write(tmp_path / "later.brg", created="2")
    assert later.read_bytes() != image.read_bytes()
    result = brigade("diff", image, later)
    assert (result.returncode, result.stdout) == (0, "both images give the same answers\n")


def test_info_names_what_the_trials_ranks_differed_in(brigade, image, tmp_path):
    assert "ranks" not in brigade("info", image).stdout
    paths = [
        {"what": "paths", "path": f"/sw/\x1b{n}", "ranks": {"found": [1], "not asked": [0]}}
        for n in range(7)
    ]
    order = {"what": "order", "path": "b", "ranks": {"a": [0], "b": [1]}}
    said = brigade("info", write(tmp_path / "y.brg", trial={"differences": [*paths, order]})).stdout
    assert "/sw/\\x1b0: looked up by some ranks only (found: rank 1; not asked: rank 0)" in said
    assert "and 2 more like it" in said and "b: loaded in another order (a: rank 0;" in said


def test_diff_says_what_differs_and_exits_1(brigade, image, tmp_path):
    other = write(tmp_path / "other.brg", text=b"TEXTS", extra="/sw/new.py")
    result = brigade("diff", image, other)
    assert result.returncode == 1
    assert "+ /sw/new.py\n" in result.stdout
    assert "~ /sw/a.py: size 4 -> 5, content " in result.stdout
    assert result.stdout.endswith("0 only in the first, 1 only in the second, 1 changed\n")
    assert "- /sw/new.py\n" in brigade("diff", other, image).stdout
    facts = json.loads(brigade("diff", "--json", image, other).stdout)
    assert facts["added"] == ["/sw/new.py"]
    assert facts["changed"][0]["path"] == "/sw/a.py"
    quiet = brigade("diff", "-q", image, other)
    assert (quiet.returncode, quiet.stdout) == (1, "")


def test_diff_sees_other_roots(brigade, image, tmp_path):
    result = brigade("diff", image, write(tmp_path / "other.brg", root="/"))
    assert result.returncode == 1
    assert "- covered root /sw\n+ covered root /\n" in result.stdout


def test_an_image_of_the_cache_is_found_by_the_start_of_its_name_or_id(brigade, tmp_path):
    hello = write(tmp_path / "cache" / "images" / "hello-12ab.brg")
    write(tmp_path / "cache" / "images" / "help-34cd.brg", text=b"other")
    facts = json.loads(brigade("info", "--json", "hello").stdout)
    assert facts["file"] == str(hello)
    assert json.loads(brigade("info", "--json", facts["id"][:8]).stdout)["id"] == facts["id"]
    assert json.loads(brigade("info", "--json", "hello-12ab.brg").stdout)["id"] == facts["id"]
    two = brigade("info", "hel")
    assert two.returncode == 4
    assert "hello-12ab.brg, help-34cd.brg" in two.stderr
    none = brigade("info", "nope")
    assert none.returncode == 4
    assert "nope" in none.stderr


def test_each_command_gives_examples(brigade):
    for name in ("info", "ls", "verify", "diff"):
        assert "Examples:" in brigade(name, "--help").stdout
    assert "create" in brigade("--help").stdout


def test_completion_offers_the_images_of_the_cache(brigade, tmp_path, monkeypatch):
    write(tmp_path / "cache" / "images" / "hello-12ab.brg")
    monkeypatch.setenv("_BRIGADE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "brigade image info he")
    monkeypatch.setenv("COMP_CWORD", "3")
    offered = brigade().stdout.split()
    assert offered == ["plain,hello-12ab.brg", "file,he"]
