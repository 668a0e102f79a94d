"""docs/reference/shmemio.md says what the header says."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/shmemio.md").read_text()
HEADER = (ROOT / "include/brigade/shmemio.h").read_text()
CODES = (ROOT / "src/shmemio/error.c").read_text()
HINTS = (ROOT / "src/world/hints.c").read_text()
INFO = (ROOT / "src/shmemio/info.c").read_text()


def part(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_page_has_every_call_of_the_header() -> None:
    declared = set(re.findall(r"BRG_API [^;(]*?\b(SHMEM_\w+)\(", HEADER))
    table = "\n".join(line for line in part("Calls").splitlines() if line.startswith("|"))
    assert set(re.findall(r"`(SHMEM_[A-Z][a-z]\w+)`", table)) == declared


def test_the_page_has_every_code_with_its_words() -> None:
    codes = re.findall(r"^    (SHMEM_ERR_\w+)", HEADER, re.MULTILINE)
    rows = dict(re.findall(r"^\| `(SHMEM_ERR_\w+)` \| (.*) \|$", part("Codes"), re.MULTILINE))
    assert list(rows) == codes
    for code, words in rows.items():
        assert code == "SHMEM_ERR_OTHER" or f'{code}, "{words}"' in CODES


def test_the_hints_of_the_page_are_known() -> None:
    rows = re.findall(r"^\| `([\w-]+)`(?:, MPI's `(\w+)`)? \|", part("Hints"), re.MULTILINE)
    assert len(rows) > 6
    for ours, mpis in rows:
        assert f'{{"{ours}", ' in HINTS
        assert not mpis or f'{{"{mpis}", "{ours}"}}' in INFO
    assert {mpis for _, mpis in rows if mpis} == set(re.findall(r'\{"(\w+_\w+)", "', INFO))
