"""The page is whole, needs nothing else, says what the cells say, and takes names as text."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
import startups

from brigade.errors import BrigadeError
from brigade.page import html
from brigade.profile.insights import find
from brigade.profile.profile import Profile, SearchEntry, Timeline
from brigade.profile.sums import Sums

VOID = {"meta", "link", "br", "img", "input", "hr", "line", "path"}
PROFILES = {"numpy": startups.numpy, "quiet": startups.quiet, "hostile": startups.hostile}


class Page(HTMLParser):
    """What a browser would make of it: elements, texts, and where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.numbers: list[tuple[str, int, str]] = []  # section, data-n, text
        self.text = ""
        self.section = ""
        self._n: int | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags[tag] += 1
        if tag not in VOID:
            self.open.append(tag)
        if "id" in named:
            self.ids.append(named["id"] or "")
        if tag == "section":
            self.section = named["id"] or ""
        self.links += [named[name] or "" for name in ("href", "src") if name in named]
        self._n = int(named["data-n"] or "") if "data-n" in named else None

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.text += data
        if self._n is not None:
            self.numbers.append((self.section, self._n, data))
            self._n = None


@pytest.fixture(params=list(PROFILES))
def profile(request) -> Profile:
    return PROFILES[request.param]()


def test_the_page_is_well_formed_and_its_ids_are_one_each(profile):
    page = Page(html.render(profile))
    assert page.wrong == [] and page.open == []
    assert len(page.ids) == len(set(page.ids))


def test_the_page_needs_nothing_from_anywhere_and_its_links_lead_somewhere(profile):
    text = html.render(profile)
    page = Page(text)
    assert [x for x in page.links if not x.startswith("#") and x != "data:,"] == []
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert not re.search(r"https?:|@import|url\(|\bfetch\(", text)


def test_every_count_on_the_page_is_the_sum_over_its_cells():
    profile = startups.numpy(4)
    sums = Sums(profile)
    shown = [
        (n, text) for section, n, text in Page(html.render(profile)).numbers if section == "counts"
    ]
    kinds = {cell.kind for cell in profile.cells}
    places = {"shared": ["/mnt/site"], "local": ["/"], "memory": ["/dev/shm", "/proc"]}

    def calls(**wanted: object) -> int:
        mounts = wanted.pop("mounts", None)
        return sum(
            c.calls
            for c in profile.cells
            if c.rank >= 0
            and (mounts is None or c.mount in mounts)
            and all(getattr(c, key) == value for key, value in wanted.items())
        )

    order = ["open", "stat", "read", "map", "list", "link", "exec", "write"]
    assert sorted(order) == sorted(kinds)
    wanted = [{"kind": kind} for kind in order]
    wanted += [{}, {"before_main": True}, {"before_main": False}]
    expected = []
    for row in wanted:
        for mounts in places.values():
            expected += [calls(mounts=mounts, failed=failed, **row) for failed in (False, True)]
        expected += [calls(**row)] * 2
    assert [n for n, _ in shown[: len(expected)]] == expected
    per_rank = [text for _, text in shown[: len(expected)]]
    assert per_rank[7::8] == [f"{n:,}" for n in expected[7::8]]
    assert per_rank[0] == f"{expected[0] / 4:,.0f}"
    phases = [n for n, _ in shown[len(expected) :]]
    assert sum(phases) == sums.calls() == calls()


def test_mounts_on_the_page_add_up_to_all_calls_of_ranks():
    profile = startups.numpy(3)
    numbers = [n for section, n, _ in Page(html.render(profile)).numbers if section == "seen"]
    assert sum(numbers) == Sums(profile).calls()


def test_a_cell_on_a_mount_that_is_not_listed_is_counted_all_the_same():
    profile = startups.quiet()
    profile.cells.append(profile.cells[0]._replace(mount="/gone", calls=1234))
    numbers = [n for section, n, _ in Page(html.render(profile)).numbers if section == "counts"]
    assert {1234 + 2 * 3 + 2 * 4, 1234 + 2 * 4} <= set(numbers)


def test_names_stay_text():
    text = html.render(startups.hostile())
    page = Page(text)
    assert page.tags["script"] == 1 and page.tags["img"] == 0 and page.tags["u"] == 0
    assert "<b>x</b>.so" in page.text and "{{ 7*7 }}" in page.text
    assert "\\xff\\x1b[31m/lib" in page.text
    assert not re.search(r"[\ud800-\udfff\x00-\x08\x0b-\x1f]", text)


def test_every_insight_is_a_card_with_its_command():
    profile = startups.numpy()
    page = Page(html.render(profile))
    flat = " ".join(page.text.split())
    found = find(profile)
    assert page.tags["article"] == len(found)
    for one in found:
        assert one.title in flat and one.detail in flat and one.command in page.text


def test_the_insights_of_the_profile_itself_are_shown_if_it_has_any():
    profile = startups.numpy()
    profile.insights = find(profile)[:2]
    assert Page(html.render(profile)).tags["article"] == 2


def test_an_ordinary_profile_makes_less_than_a_megabyte():
    profile = startups.numpy(64)
    profile.tree += [
        startups.node("module", f"package.module_{i}", i % 700, calls=9) for i in range(2500)
    ]
    profile.searches += [startups.entry("sys.path", f"/mnt/site/{i}", 90) for i in range(300)]
    profile.timelines.append(Timeline("nfs", 0.1, {"GETATTR": list(range(20_000))}))
    assert len(html.render(profile).encode()) < 1_000_000


def test_every_node_of_the_tree_is_counted_whatever_the_loaders_say():
    profile = startups.quiet(
        tree=[startups.node("module", f"m{i}", (i + 1) % 9, calls=1) for i in range(9)]
    )
    profile.tree.append(startups.node("module", "own", 9, calls=1))
    profile.tree.append(startups.node("module", "far", 99, calls=1))
    page = Page(html.render(profile))
    assert page.wrong == [] and page.open == []
    assert all(f"m{i} " in " ".join(page.text.split()) for i in range(9))


def test_a_tree_a_thousand_deep_is_drawn():
    profile = startups.quiet(
        tree=[startups.node("module", f"m{i}", i - 1, calls=1) for i in range(1000)]
    )
    page = Page(html.render(profile))
    assert page.wrong == [] and page.tags["details"] >= 999


def test_a_profile_with_nothing_in_it_is_a_page(tmp_path: Path):
    profile = startups.quiet(ranks=[], cells=[], mounts=[], command=[], program=[], seen=[])
    page = Page(html.render(profile))
    assert page.wrong == [] and "asked no shared file system" in page.text


def test_an_empty_search_entry_is_named():
    profile = startups.numpy()
    profile.searches.append(SearchEntry("PATH", "", False, "PATH", "/mnt/site", 999, 999, 0, 0.1))
    assert "(empty: the current folder)" in Page(html.render(profile)).text


def test_a_page_that_cannot_be_written_is_one_clear_error(tmp_path: Path):
    with pytest.raises(BrigadeError, match="the page cannot be written to .*/no/such"):
        html.write(startups.quiet(), tmp_path / "no/such")
    html.write(startups.quiet(), tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_all_that_is_drawn_over_time_has_one_axis_long_enough_for_each():
    profile = startups.numpy()
    assert profile.after
    profile.after.timelines = [Timeline("calls", 0.05, {"open": [1] * 179})]
    drawn = html.charts(profile)
    assert {round(main.length_s, 3) for _, main, _, _ in drawn} == {8.95}
    assert [after.length_s for _, _, after, _ in drawn if after] == [drawn[0][1].length_s]
    profile.after, profile.ranks[0].ready_s = None, 40.0
    assert all("ready" in [mark.text for mark in marks] for _, _, _, marks in html.charts(profile))


def test_a_second_run_that_is_busier_than_the_first_stays_below_the_edge():
    profile = startups.numpy()
    assert profile.after
    profile.after.timelines = [Timeline("calls", 0.05, {"open": [100_000]})]
    ((main, after),) = [(main, after) for _, main, after, _ in html.charts(profile) if after]
    assert after.peak == 2_000_000
    assert main.top == after.top >= after.peak


def test_a_run_under_brigade_that_asks_nothing_is_an_empty_drawing():
    profile = startups.numpy()
    assert profile.after
    profile.after.timelines = [Timeline("calls", 0.02, {})]
    assert "on the same scale: 0 in all" in Page(html.render(profile)).text


def test_a_reason_of_several_lines_is_one_sentence():
    profile = startups.quiet(lost=["it failed:\n    because\n    of this"])
    assert "it failed: because of this" in Page(html.render(profile)).text
