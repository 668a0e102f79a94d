"""What a shell completes with the names of files: a value taken as it is, and looked at by nobody
before the command does that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Completed(click.ParamType):  # type: ignore[type-arg]  # not generic in older click
    """`kind`: "file", also folders on the way; or "dir", folders only."""

    def __init__(self, kind: str) -> None:
        self.name = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=self.name)]


FILE, DIR = Completed("file"), Completed("dir")
WORDS = FILE  #: of a command line: a program, and what it is given
