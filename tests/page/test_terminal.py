"""The report in a terminal: it fits, says the same as the page, and takes no orders from names."""

from __future__ import annotations

import io

import pytest
import startups
from rich.console import Console

from brigade.page import terminal
from brigade.profile.insights import find
from brigade.profile.profile import Profile


def printed(profile: Profile, width: int = 80, **options: object) -> str:
    out = io.StringIO()
    terminal.show(profile, Console(file=out, width=width, highlight=False, **options))
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 132, 200])
@pytest.mark.parametrize("make", [startups.numpy, startups.quiet, startups.hostile])
def test_nothing_but_commands_is_wider_than_the_terminal(make, width):
    lines = printed(make(), width).splitlines()
    assert [x for x in lines if len(x.rstrip()) > width and not x.startswith("  $ ")] == []


def test_no_figure_is_cut_at_60_columns():
    text = printed(startups.numpy(4096, after=False), 60)
    (row,) = [line.split() for line in text.splitlines() if line.startswith("  all ")]
    assert row[1:] == ["3,334", "2,369", "132", "18", "9", "0", "5,862"]
    assert "24,010,752 on 4,096 ranks together" in text


def test_sections_stand_in_the_order_of_the_page():
    text = printed(startups.numpy())
    heads = ["Each rank asks", "what to do", "calls of a rank", "searched in vain", "by phase"]
    heads += ["who loaded what", "the same on every rank", "before and after", "how it was seen"]
    lines = text.splitlines()
    places = [
        next(i for i, line in enumerate(lines) if head in line and not line.startswith(" "))
        for head in heads
    ]
    assert places == sorted(places)


def test_every_insight_is_there_with_its_severity_as_a_word_and_its_command_in_one_piece():
    profile = startups.numpy()
    text = printed(profile, 60)
    flat = " ".join(text.split())
    for one in find(profile):
        assert f"{one.severity.upper()}: {one.title}" in flat
        for line in one.command.split("\n"):
            assert line in text


def test_piped_there_is_no_escape_and_on_a_terminal_there_is_colour():
    assert "\x1b" not in printed(startups.hostile())
    assert "\x1b[1;31m" in printed(startups.numpy(), force_terminal=True, color_system="standard")


def test_names_are_printed_as_they_are_and_never_obeyed():
    text = printed(startups.hostile(), 200, force_terminal=True, color_system="standard")
    assert "[bold]so[/bold]" in text
    assert "\\xff\\x1b[31m/lib" in text
    text.encode("utf-8")


def test_the_tree_in_a_terminal_ends_somewhere():
    text = printed(startups.numpy())
    assert "python3.11 program" in text and "60 smaller" in text
    assert len(text.splitlines()) < 160


def test_words_end_where_they_end_and_not_at_the_edge():
    lines = printed(startups.numpy(), 100).splitlines()
    assert [line for line in lines if len(line) - len(line.rstrip()) > 2] == []
