"""Which files are buffered: the same text means the same to the command and to the library."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from buffer_world import buffered, run

from brigade.buffer.rules import as_text, parse
from brigade.errors import UsageError

READ = "import sys\nfor name in sys.argv[1:]: open(name, 'w').write('x')"


def paths_buffered(tmp_path, rules, *names, **more):
    folder = tmp_path / "report"
    folder.mkdir()
    env = buffered(rules, BRIGADE_BUFFER_REPORT=str(folder), **more)
    done = run([sys.executable, "-c", READ, *names], tmp_path, env)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for path in folder.iterdir() for line in path.open()]
    return {entry["path"] for process in found for entry in process["files"]}, done.stderr


def test_the_first_rule_that_fits_decides(tmp_path):
    found, _ = paths_buffered(tmp_path, "b*.dat:off,*.dat", "a.dat", "b1.dat", "c.txt")
    assert found == {"a.dat"}


def test_a_pattern_with_a_slash_means_the_whole_path(tmp_path):
    (tmp_path / "sub").mkdir()
    found, _ = paths_buffered(tmp_path, f"{tmp_path}/sub/*", "sub/a", "b")
    assert found == {"sub/a"}


def test_iobuf_params_is_heeded_where_brigade_buffer_is_not_set(tmp_path):
    text = "*.dat:count=2:size=64k:prefetch=1:vbuffer_count=4096:preflush=8,%stdout:size=2M"
    more = {"IOBUF_PARAMS": text}
    env = {k: v for k, v in buffered("", **more).items() if k != "BRIGADE_BUFFER"}
    folder = tmp_path / "report"
    folder.mkdir()
    run(
        [sys.executable, "-c", READ, "a.dat"],
        tmp_path,
        {**env, "BRIGADE_BUFFER_REPORT": str(folder)},
    )
    assert list(folder.iterdir()) != []
    assert [rule.pattern for rule in parse(text)] == ["*.dat", "%stdout"]


def test_a_rule_says_whether_files_are_read_past_the_page_cache():
    said = [rule.direct for rule in parse("a:direct,b:direct=0,c:size=4M")]
    assert said == [True, False, False]
    assert "read past the page cache" in parse("a:direct")[0].words()


@pytest.mark.parametrize("text", ["*.dat:siz=4M", "*:size=1", "*:count=0", ":size=4M", "*:delay=x"])
def test_what_cannot_be_meant_is_an_error_of_the_command_and_a_word_of_the_library(tmp_path, text):
    with pytest.raises(UsageError):
        parse(text)
    found, said = paths_buffered(tmp_path, f"{text},a.dat", "a.dat", "b.dat")
    assert found == {"a.dat"}, "the other rules hold"
    assert said.startswith("brigade buffer: BRIGADE_BUFFER: '") and said.count("\n") == 1


def test_spaces_around_a_rule_do_not_count(tmp_path):
    found, said = paths_buffered(tmp_path, " *.dat ,\t*.log:size=8K \n,", "a.dat", "b.log", "c")
    assert (found, said) == ({"a.dat", "b.log"}, "")


@pytest.mark.parametrize(
    ("text", "passed_on"),
    [
        ("*.dat , *.log:off ", "*.dat,*.log:off"),
        ("*:size=4MiB:count= 2:delay=1_0:prefetch", "*:size=4194304:count=2:delay=10.0:prefetch=1"),
        ("a:direct=0:noflush:verbose,b:synchronous", "a:direct=0:verbose,b:synchronous"),
        ("*:count=99999999999999999999999", "*:count=1073741824"),
    ],
)
def test_the_command_passes_on_what_the_library_reads_in_the_same_way(tmp_path, text, passed_on):
    assert as_text(parse(text)) == passed_on
    assert paths_buffered(tmp_path, passed_on)[1] == ""


@pytest.mark.parametrize(
    "text", ["\u00e4" * 128, "a" * 256 + ":size=4K", ",".join(["b" * 200] * 21)]
)
def test_what_the_library_has_no_room_for_is_one_error_of_the_command(tmp_path, text):
    with pytest.raises(UsageError, match="more than"):
        as_text(parse(text))
    assert "brigade buffer: BRIGADE_BUFFER: " in paths_buffered(tmp_path, text)[1]


def test_a_misspelt_option_is_answered_with_the_right_one():
    done = subprocess.run(
        [sys.executable, "-m", "brigade", "buffer", "--files", "*:siz=4M", "--", "true"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "do you mean size?" in done.stderr
