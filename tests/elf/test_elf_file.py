"""What is read of an ELF file is what `readelf` reads."""

from __future__ import annotations

import glob
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from world_of_c import compile_c, library

from brigade.elf import cache, file

LIBRARIES = sorted(
    {os.path.realpath(path) for path in glob.glob("/usr/lib/*-linux-gnu/lib[a-m]*.so.*")}
)
FILES = [
    *("/bin/bash", "/bin/ls", os.path.realpath(sys.executable)),
    cache.read().find("libc.so.6", os.uname().machine, 64) or "/lib/libc.so.6",
    *(one for one in LIBRARIES if os.path.getsize(one) < 4 << 20),
][:40]


def readelf(*arguments: str) -> str:
    command = ["readelf", "-W", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    return done.stdout


def versions(said: str) -> tuple[dict[str, list[str]], list[str]]:
    """(needed, defined) of `readelf -V`."""
    needs = said.partition("Version needs section")[2]
    wanted: dict[str, list[str]] = {}
    for line in needs.splitlines():
        owner = re.search(r"File: (\S+)", line)
        if owner:
            names = wanted.setdefault(owner[1], [])
        name = re.search(r"Name: (\S+)  Flags: (\S+)", line)
        if name and name[2] != "WEAK":
            names.append(name[1])
    defines = said.partition("Version definition section")[2].partition("Version needs")[0]
    defined = re.findall(r"Rev: 1  Flags: (?!BASE)\S+ .*Name: (\S+)", defines)
    return wanted, defined


@pytest.mark.parametrize("path", FILES)
def test_the_dynamic_section_is_what_readelf_says(path):
    elf, said = file.read(path), readelf("-d", "-l", path)
    assert elf.needed == re.findall(r"\(NEEDED\).*\[(.*)\]", said)
    assert [elf.soname] == (re.findall(r"\(SONAME\).*\[(.*)\]", said) or [None])
    assert [elf.rpath] == (re.findall(r"\(RPATH\).*\[(.*)\]", said) or [None])
    assert [elf.runpath] == (re.findall(r"\(RUNPATH\).*\[(.*)\]", said) or [None])
    asked = re.findall(r"Requesting program interpreter: (.*)\]", said)
    assert [elf.interpreter] == (asked or [None])
    now = re.search(r"\(FLAGS\).*BIND_NOW|\(BIND_NOW\)|\(FLAGS_1\).*\bNOW\b", said)
    assert elf.bind_now == bool(now)


@pytest.mark.parametrize("path", FILES)
def test_versions_and_symbols_are_what_readelf_says(path):
    elf = file.read(path)
    assert (elf.versions_needed, elf.versions_defined) == versions(readelf("-V", path))
    rows = re.findall(
        r"^ *\d+: \w+ +\w+ \w+ +(?:GLOBAL|WEAK|UNIQUE) +\w+(?: +\[.*?\])? +(\w+) (\S+)",
        readelf("--dyn-syms", path),
        re.MULTILINE,
    )
    said = sorted((name.partition("@")[0], section != "UND") for section, name in rows)
    assert sorted((one.name, one.defined) for one in elf.symbols()) == said


def test_the_files_cover_what_they_are_to_show():
    read = [file.read(path) for path in FILES]
    assert any(one.versions_defined for one in read)
    assert any(one.bind_now for one in read) and not all(one.bind_now for one in read)
    assert any(one.interpreter for one in read)


def test_versions_of_symbols_are_told(tmp_path):
    script = tmp_path / "map"
    script.write_text("MINE_1.0 { global: mine; };")
    source = "#include <stdlib.h>\nvoid *mine(void) { return malloc(1); }"
    flag = f"-Wl,--version-script,{script}"
    symbols = {one.name: one for one in _symbols(library(tmp_path / "a.so", flag, source=source))}
    assert symbols["mine"] == ("mine", "MINE_1.0", True, False)
    assert symbols["malloc"].version.startswith("GLIBC_") and not symbols["malloc"].defined


def test_a_version_that_is_wanted_weakly_is_not_needed(tmp_path):
    script = tmp_path / "map"
    script.write_text("MINE_1.0 { global: mine; };")
    flag = f"-Wl,--version-script,{script}"
    lib = library(tmp_path / "libmine.so", flag, source="int mine(void) { return 0; }")
    source = "int mine(void); int main(void) { return mine(); }"
    app = compile_c(source, tmp_path / "app", needs=[lib])
    assert file.read(str(app)).versions_needed["libmine.so"] == ["MINE_1.0"]
    data = app.read_bytes()
    at = data.index(_hash(b"MINE_1.0").to_bytes(4, "little") + b"\0\0")  # its hash, then its flags
    app.write_bytes(data[: at + 4] + b"\2\0" + data[at + 6 :])
    assert "Flags: WEAK" in readelf("-V", str(app))
    assert file.read(str(app)).versions_needed["libmine.so"] == []


def _hash(name: bytes) -> int:
    """The ELF hash."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


def _symbols(path: Path) -> list[file.Symbol]:
    return list(file.read(str(path)).symbols())


def test_the_level_of_x86_64_that_a_file_asks_for_is_read(tmp_path):
    if os.uname().machine != "x86_64":
        pytest.skip("needs x86-64")
    app = compile_c("int main(void){return 0;}", tmp_path / "a", "-Wl,-z,x86-64-v4")
    assert file.read(str(app)).isa_level == 4


@pytest.mark.parametrize("path", ["/bin/ls", FILES[4]])
def test_a_file_that_is_cut_anywhere_is_told_or_read_and_never_breaks(tmp_path, path):
    data = Path(path).read_bytes()
    cut = tmp_path / "cut"
    told = 0
    for size in [*range(0, 1200, 7), *range(1200, len(data), len(data) // 50)]:
        cut.write_bytes(data[:size])
        try:
            list(file.read(str(cut)).symbols())
        except file.NotElf:
            told += 1
    assert told > 200


def test_a_file_with_any_byte_changed_never_breaks_the_reader(tmp_path):
    source = library(tmp_path / "a.so", source='#include <stdio.h>\nint a(void){return puts("");}')
    data = source.read_bytes()
    broken = tmp_path / "broken.so"
    for at in range(0, 2000, 3):
        for value in (0, 0xFF):
            broken.write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
            try:
                list(file.read(str(broken)).symbols())
            except file.NotElf:
                pass


def test_the_cache_is_what_ldconfig_prints():
    said = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    rows = re.findall(r"^\t(\S+) \(.*\) => (\S+)$", said, re.MULTILINE)
    ours = [(name, one[0]) for name, found in cache.read().entries.items() for one in found]
    assert rows and sorted(ours) == sorted(rows)


def test_the_cache_gives_the_best_subdirectory_that_the_processor_has(tmp_path):
    for folder in ("", "glibc-hwcaps/x86-64-v2", "glibc-hwcaps/x86-64-v3"):
        library(tmp_path / "lib" / folder / "libbest.so.1")
    (tmp_path / "conf").write_text(f"{tmp_path}/lib\n")
    command = ["/sbin/ldconfig", "-X", "-C", tmp_path / "cache", "-f", tmp_path / "conf"]
    done = subprocess.run(command, capture_output=True, text=True)
    found = cache.read(str(tmp_path / "cache"))
    if os.uname().machine != "x86_64" or len(found.entries.get("libbest.so.1", [])) != 3:
        pytest.skip(f"needs x86-64 and an ldconfig of glibc 2.33: {done.stderr[-200:]}")
    for hwcaps in (("x86-64-v3", "x86-64-v2"), ("x86-64-v2",), ()):
        best = f"glibc-hwcaps/{hwcaps[0]}/" if hwcaps else ""
        path = found.find("libbest.so.1", "x86_64", 64, hwcaps)
        assert path == f"{tmp_path}/lib/{best}libbest.so.1"
    assert found.find("libbest.so.1", "aarch64", 64) is None


def test_a_cache_that_is_damaged_is_empty(tmp_path):
    path = tmp_path / "cache"
    path.write_bytes(Path(cache.PATH).read_bytes()[:100])
    assert cache.read(str(path)).entries == {}
    path.write_bytes(b"glibc-ld.so.cache1.1" + struct.pack("<I", 1 << 30))
    assert cache.read(str(path)).entries == {}
    assert cache.read(str(tmp_path / "none")).entries == {}
