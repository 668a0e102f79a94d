"""docs/reference/io.md says what header, module and library say; the C of its pages works."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from decimal_comma import decimal_comma
from mpi_world import INCLUDE, compile_mpi, run_mpi

import brigade.io

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/io.md").read_text()
C_PART, FORTRAN_PART = PAGE.split("\n## Fortran\n")
FORTRAN_PART, PYTHON_PART = FORTRAN_PART.split("\n## Python\n")
HEADER = re.sub(r"/\*.*?\*/", "", (INCLUDE / "brigade/io.h").read_text(), flags=re.DOTALL)
MODULE = (INCLUDE / "brigade/brigade_io.F90").read_text()
KIND = (INCLUDE / "brigade/brigade_io_kind.inc").read_text()
HINTS = (ROOT / "src/world/hints.c").read_text()


def calls(text: str) -> set[str]:
    return set(re.findall(r"`(brg_\w+\([\w, ]*\))`", text))


def test_the_page_has_every_call_of_the_header_with_its_arguments():
    declared = set()
    for name, arguments in re.findall(r"\b(brg_\w+)\(([^()]*)\)\s*[;{]", HEADER):
        names = [words.split()[-1].lstrip("*") for words in arguments.split(",")]
        if name != "brg_file_open_handle" or "uintptr_t comm" in arguments:
            declared.add(f"{name}({', '.join(names)})")
    assert len(declared) > 25
    assert calls(C_PART) == declared


def test_the_page_has_every_call_of_the_fortran_module_with_its_arguments():
    public = re.search(r"module brigade_io\n(.*?)  implicit none", MODULE, re.DOTALL)
    assert public
    names = set(re.findall(r"\bbrg_(?:file|request)_\w+", public[1]))
    procedure = r"(?:subroutine|function) (\w+)\(([\w, ]+)\)"
    told = {f"{n}({a})" for n, a in re.findall(procedure, MODULE) if n in names}
    generic = dict(re.findall(r"interface (\w+)\n    module procedure (\w+)", MODULE + KIND))
    plain = dict(re.findall(procedure, MODULE + KIND))
    told |= {f"{name}({plain[procedure]})" for name, procedure in generic.items()}
    assert len(told) > 20
    assert calls(FORTRAN_PART) == told


def test_the_page_has_everything_of_a_file_in_python():
    public = {name for name in dir(brigade.io.File) if not name.startswith("_")} | {"name", "mode"}
    table = PYTHON_PART.split("\n## Hints\n")[0]
    words = set(re.findall(r"`(\w+)`", table))
    assert sorted(public - words) == []


ROWS = {
    cells[0].strip("` "): [cell.strip() for cell in cells[1:]]
    for line in PAGE.split("\n## Hints\n")[1].splitlines()
    if (cells := line.strip("|").split("|")) and line.startswith("| `")
}


def opened(path: Path, hint: str) -> bool:
    """Whether a file opens with this hint."""
    key, value = hint.split("=")
    try:
        brigade.io.open(None, path, "w", **{key.replace("-", "_"): value}).close()
    except brigade.io.BrigadeIOError as error:
        assert "hint" in str(error)
        return False
    return True


def test_the_page_has_the_hints_that_the_library_knows(tmp_path):
    with pytest.raises(brigade.io.BrigadeIOError) as refused:
        brigade.io.open(None, tmp_path / "f", "w", nonsense=1)
    known = str(refused.value).split("there are: ")[1].split(" (")[0]
    assert sorted(known.split(", ")) == sorted(ROWS)


def number(text: str) -> int:
    unit = "KMGT".find(text[-1]) + 1
    return int(text[:-1]) << 10 * unit if unit else int(text)


@pytest.mark.parametrize("hint", ROWS)
def test_a_hint_takes_what_the_page_says_and_nothing_else(hint, tmp_path):
    takes = ROWS[hint][0]
    path = tmp_path / "f"
    if least := re.fullmatch(r"from (\w+)|(\w+) to (\w+)", takes):
        low = number(least[1] or least[2])
        assert opened(path, f"{hint}={low}")
        assert not opened(path, f"{hint}={low - 1}")
        if least[3]:
            assert opened(path, f"{hint}={least[3]}")
            assert not opened(path, f"{hint}={number(least[3]) + 1}")
    else:
        words = takes.split(", ")
        assert [word for word in words if not opened(path, f"{hint}={word}")] == []
        array = re.search(rf'{{"{hint}", WORD, AT\(\w+\), (\w+)', HINTS)[1]
        known = re.search(rf"\b{array}\[\] = {{(.*?), NULL}}", HINTS)[1]
        assert sorted(known.replace('"', "").split(", ")) == sorted(words)


@pytest.mark.parametrize(
    "entry",
    ["transport=direct", "*.ckpt", "*;transport=direct", "writers=3:transport=direct", ":sync=no"],
)
def test_an_entry_of_the_environment_that_no_file_could_match_is_an_error(
    entry, tmp_path, monkeypatch
):
    monkeypatch.setenv("BRIGADE_IO", f"*.log:sync=no, {entry}")
    with pytest.raises(brigade.io.BrigadeIOError) as refused:
        brigade.io.open(None, tmp_path / "f", "w")
    assert refused.value.errno == errno.EINVAL
    said = refused.value.strerror
    assert f"BRIGADE_IO, entry {entry}: " in said and "PATTERN:hint=value" in said


@pytest.mark.parametrize("text", ["", ",", " , *:,", "*.log:sync=no,", "f=1:segment=1M, x:"])
def test_an_environment_that_asks_for_nothing_here_is_none(text, tmp_path, monkeypatch):
    monkeypatch.setenv("BRIGADE_IO", text)
    brigade.io.open(None, tmp_path / "f", "w").close()


def test_blanks_around_the_words_of_the_environment_mean_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("BRIGADE_IO", " *.log : sync=no , f : checksums=no : stripe=64K ,")
    with brigade.io.open(None, tmp_path / "f", "w") as file:
        file.write(0, b"x")
        assert "stripe: 65536 bytes" in file.explain()
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_factor_is_read_in_every_language_of_the_program(tmp_path):
    program = (
        "import locale, sys, brigade.io; locale.setlocale(locale.LC_ALL, '');"
        "assert locale.localeconv()['decimal_point'] == ',';"
        "brigade.io.open(None, sys.argv[1], 'w', slowdown=1.5).close()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "f"],
        env={**os.environ, **decimal_comma(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_defaults_of_the_page_are_those_of_the_library():
    chosen = re.search(r"\*hints = \(struct io_hints\){(.*?)};", HINTS, re.DOTALL)[1]
    given = dict(re.findall(r"\.(\w+) = ([^,}]+)", chosen))
    keys = re.findall(r'{"([\w-]+)", (\w+), AT\((\w+)\), (\w+), ([\w-]+),', HINTS)
    assert len(keys) + 1 == len(ROWS)
    for name, kind, member, words, first in keys:
        value, told = given.get(member, "0"), ROWS[name][1]
        if kind == "WORD":
            known = re.search(rf"\b{words}\[\] = {{(.*?), NULL}}", HINTS)[1].replace('"', "")
            at = int(value) - (int(first) if first.lstrip("-").isdigit() else 0)
            assert told == known.split(", ")[at], name
        elif value in ("0", "-1"):
            assert told in ("chosen", "none"), name
        elif "<<" in value:
            factor, shift = value.replace("u", "").split(" << ")
            assert number(told) == int(factor) << int(shift), name
        else:
            assert told == value, name
    assert number(ROWS["memory"][1]) == 2 * number(ROWS["segment"][1])


def test_the_hints_of_an_mpi_info_are_passed_on_as_the_page_shows(tmp_path):
    page = (ROOT / "docs/how-to/checkpoint-from-c.md").read_text()
    function = re.findall(r"```c\n(.*?)```", page.split("## Hints that stand")[1], re.DOTALL)[0]
    main = """int main(int argc, char **argv)
    {
        char text[100];
        MPI_Info info;
        MPI_Init(&argc, &argv);
        MPI_Info_create(&info);
        MPI_Info_set(info, "brigade_writers", "2");
        MPI_Info_set(info, "cb_nodes", "7");
        MPI_Info_set(info, "brigade_sync", "no");
        hints_of(info, text, sizeof text);
        puts(text);
        return MPI_Finalize();
    }"""
    includes = "#include <mpi.h>\n#include <stdio.h>\n#include <string.h>\n"
    (tmp_path / "m.c").write_text(includes + function + main)
    program = compile_mpi("openmpi", tmp_path / "m.c", tmp_path / "m")
    assert run_mpi("openmpi", 1, [program]).stdout == "writers=2:sync=no\n"


def test_the_programs_of_the_page_for_c_compile(tmp_path):
    page = (ROOT / "docs/how-to/checkpoint-from-c.md").read_text()
    writing, reading = re.findall(r"```c\n(.*?)```", page, re.DOTALL)[:2]
    includes, body = writing.split("\n\n", 1)
    lines = [
        "#include <stdio.h>",
        includes,
        "static uint64_t n, first, rows; static int64_t step; static int rank; static double *u;",
        "int main(void) {" + body + reading + "return rc; }",
    ]
    (tmp_path / "m.c").write_text("\n".join(lines))
    compile_mpi("openmpi", tmp_path / "m.c", tmp_path / "m", "-Wall", "-Werror")
