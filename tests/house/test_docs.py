"""The pages: links lead somewhere, and what the code knows is written down."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from brigade import errors

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_to_one(page):
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    broken = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_heading_leads_to_one(page):
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text())
    assert [link for link in links if "://" not in link[0] and not has_heading(page, *link)] == []


def has_heading(page: Path, target: str, anchor: str) -> bool:
    """Whether the page `target`, as linked from `page`, has a heading for `anchor`."""
    text = (page.parent / target).read_text() if target else page.read_text()
    titles = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return anchor in {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}


def test_every_page_is_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or not page.exists():
            continue
        reached.add(page)
        links = re.findall(r"\]\(([^)#\s]+\.md)", page.read_text())
        waiting += [(page.parent / link).resolve() for link in links if "://" not in link]
    assert {page.resolve() for page in PAGES} <= reached


def test_no_environment_variable_is_explained_twice():
    page = (ROOT / "docs/reference/environment.md").read_text()
    rows = re.findall(r"^\| (`.*?`) \|", page, re.MULTILINE)
    names = [name for row in rows for name in re.findall("`(.*?)`", row)]
    assert len(names) > 40
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_every_environment_variable_that_the_code_reads_is_documented():
    sources = [
        path
        for folder in ("python", "src")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".c", ".h")
    ]
    used = {
        name
        for path in sources
        for name in re.findall(r"[\"']((?:BRIGADE)_[A-Z_]*[A-Z])=?[\"']", path.read_text())
    }
    pages = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    assert used
    assert sorted(name for name in used if f"`{name}`" not in pages) == []


def test_every_exit_code_of_an_error_is_documented():
    codes = {
        error.exit_code
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.BrigadeError)
    }
    page = (ROOT / "docs/reference/exit-codes.md").read_text()
    assert sorted(code for code in codes if f"\n| {code} |" not in page) == []
